"""Serialised step for worker processes: equations, monitor and pivot order, without the model."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from livens.engine.codegen.unrolled_lu import PivotOrder
from livens.engine.compiled_step import CompiledStep
from livens.engine.ensemble.lane_run import (
    EnsembleArrays,
    HistogramSpec,
    InputTable,
    TimeGrid,
)
from livens.engine.ensemble.monitor_kernel import EnsembleMonitorSpec
from livens.engine.ensemble.stepper import EnsembleStepper
from livens.engine.lru_cache import LruCache
from livens.schemes.core.step_equations import StepGraph

#: Maximum number of steps that a worker process caches.
_MAX_CACHED_STEPS = 8


@dataclass(frozen=True)
class SerializedStep:
    """Serialised equations, monitor and pivot order of a step; `fingerprint` identifies it."""

    payload: bytes
    fingerprint: str

    @classmethod
    def serialize(
        cls, equations: StepGraph, monitor_spec: EnsembleMonitorSpec, order: PivotOrder | None, width: int
    ) -> SerializedStep:
        e = equations
        update_matrix = (
            None
            if e.update_matrix is None
            else (list(map(int, e.update_matrix[1])), list(map(int, e.update_matrix[2])))
        )
        outputs = [e.residual, e.jac_values, e.final_state, *([] if e.update_matrix is None else [e.update_matrix[0]])]
        outputs += [] if e.linear_predictor is None else [e.linear_predictor]
        graphs = ca.Function("step", e.arguments, [ca.SX(part) for part in outputs])
        fields = dict(
            graphs=graphs.serialize(),
            guess=e.initial_guess_function.serialize(),
            noise=None if e.assembled_roundoff_bound is None else e.assembled_roundoff_bound.serialize(),
            places=(e.jac_rows, e.jac_cols),
            turn=update_matrix,
            onward=e.linear_predictor is not None,
            kinds=e.block_sizes,
            names=e.equation_labels,
            layout=e.layout,
            watched=(
                monitor_spec.function.serialize(),
                monitor_spec.momentum_sizes,
                monitor_spec.n_reduced,
                monitor_spec.supplied_index,
            ),
            order=order,
            width=width,
        )
        payload = pickle.dumps(fields)
        return cls(payload, hashlib.sha256(payload).hexdigest())

    def deserialize(self) -> EnsembleStepper:
        """Return the ensemble stepper of this process, compiled (or loaded from disk) once."""
        return _steppers.get_or_make(self.fingerprint, self._rebuild)

    def _rebuild(self) -> EnsembleStepper:
        fields = pickle.loads(self.payload)
        graphs = ca.Function.deserialize(fields["graphs"])
        x, z, c = (ca.SX.sym(name, graphs.numel_in(i)) for i, name in enumerate("xzc"))
        # called with symbols, the graphs are expanded operation by operation, in the same order
        graph_outputs = graphs.call([x, z, c], True, False)
        residual, jacobian, end = graph_outputs[:3]
        remaining = list(graph_outputs[3:])
        update_matrix = None if fields["turn"] is None else (remaining.pop(0), *fields["turn"])
        equations = StepGraph(
            x=x,
            z=z,
            c=c,
            residual=residual,
            jac_rows=fields["places"][0],
            jac_cols=fields["places"][1],
            jac_values=jacobian,
            final_state=end,
            initial_guess=ca.Function.deserialize(fields["guess"]).call([z, c], True, False)[0],
            block_sizes=fields["kinds"],
            equation_labels=fields["names"],
            layout=fields["layout"],
            assembled_roundoff_bound=None if fields["noise"] is None else ca.Function.deserialize(fields["noise"]),
            update_matrix=update_matrix,
            linear_predictor=remaining.pop(0) if fields["onward"] else None,
        )
        function, *monitor_fields = fields["watched"]
        monitor_spec = EnsembleMonitorSpec(ca.Function.deserialize(function), *monitor_fields)
        step = CompiledStep(None, _FrozenScheme(equations))  # type: ignore[arg-type]  # the model is not accessed
        return EnsembleStepper(step, fields["order"], monitor_spec, fields["width"])


class _FrozenScheme:
    """Scheme stand-in with fixed equations."""

    def __init__(self, equations: StepGraph) -> None:
        self._equations = equations

    def equations(self, model: Any, removed_constraints: Collection[int] = ()) -> StepGraph:
        return self._equations


_steppers: LruCache[str, EnsembleStepper] = LruCache(_MAX_CACHED_STEPS)


def run_block(
    serialized: SerializedStep,
    z: np.ndarray,
    k: np.ndarray,
    grid: TimeGrid,
    n_threads: int,
    bins: tuple[HistogramSpec, ...],
    inputs: InputTable,
) -> EnsembleArrays:
    """Integrate a block of members in a worker process."""
    return serialized.deserialize().integrate(z, k, grid, n_threads, bins, inputs=inputs)
