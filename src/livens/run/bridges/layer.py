"""Simulation as a function of arrays with a vector-Jacobian product: common part of all bridges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from livens.engine.lru_cache import LruCache
from livens.errors import InputError, suggestion
from livens.run.derivatives.gradient import Gradient, record_run
from livens.run.derivatives.initial_state import InitialStateDerivatives
from livens.run.derivatives.member_map import make_plan
from livens.run.derivatives.tape import Tape, observed_steps
from livens.run.prepare import Prepared
from livens.validation import check_array, check_integer

_INITIAL_VALUES = ("q0", "v0", "p0", "x0")
#: Largest number of runs cached between the forward and the backward pass.
_MAX_CACHED_RUNS = 8


class SimulationLayer:
    """Differentiable simulation: inputs are initial values and parameters, outputs are variables by time.

    Initial values are projected to the nearest consistent ones, so that gradient steps may leave the constraints.

    Parameters
    ----------
    step : Prepared
        Prepared step, see `livens.prepare`.
    inputs : sequence of str
        Names of initial values (``q0 v0 p0 x0``) and parameters.
    outputs : sequence of str
        Names of variables (``q v p x``).
    every : int, optional
        Return every `every`-th state and the last one. Default: the last state only.
    parameters : mapping of str to array_like, optional
        Values of parameters that are not inputs.
    **run
        Further arguments of `Prepared.run`: `h`, `t_end`, `t0`.
    """

    def __init__(
        self,
        step: Prepared,
        inputs: Sequence[str],
        outputs: Sequence[str],
        *,
        every: int | None = None,
        parameters: Mapping[str, object] | None = None,
        **run: float,
    ) -> None:
        plan = make_plan(step, {}, parameters=parameters, **run)
        self._step, self._run, self._parameters, model = step, run, dict(parameters or {}), step.model
        self._every = None if every is None else check_integer("every", every, minimum=1)
        self.inputs, self.outputs = _parse_names("inputs", inputs), _parse_names("outputs", outputs)
        table, n = model.parameter_table, len(model.coordinates)
        self.input_shapes: list[tuple[int, ...]] = []
        for name in self.inputs:
            if name not in _INITIAL_VALUES and name not in table.entries:
                raise InputError(f"unknown input '{name}'{suggestion(name, [*table.entries, *_INITIAL_VALUES])}")
            self.input_shapes.append((n,) if name in _INITIAL_VALUES else table.entries[name].shape)
        symbols = model.view.symbols
        for name in self.outputs:
            if name not in symbols:
                raise InputError(f"unknown output '{name}', allowed: {', '.join(symbols)}")
        observed = observed_steps(plan, self._every)
        self.t = plan.t0 + np.minimum(observed * plan.h, plan.t_end - plan.t0)
        self.output_shapes = [(len(observed), int(symbols[name].numel())) for name in self.outputs]
        self._cache: LruCache[bytes, tuple[Tape, InitialStateDerivatives]] = LruCache(_MAX_CACHED_RUNS)

    def forward(self, *values: object) -> list[np.ndarray]:
        """Return the outputs of a run."""
        tape, _ = self._recorded(values)
        layout = tape.compiled.layout
        return [tape.states[:, layout[name]].copy() for name in self.outputs]

    def backward(self, values: Sequence[object], cotangents: Sequence[object]) -> list[np.ndarray]:
        """Return the cotangents of the inputs, given those of the outputs."""
        tape, initial_sensitivity = self._recorded(values)
        layout = tape.compiled.layout
        rows = np.zeros_like(tape.states)
        for name, cotangent in zip(self.outputs, cotangents, strict=True):
            rows[:, layout[name]] += np.asarray(cotangent, dtype=float)
        a, g = tape.adjoint(rows)
        gradient = Gradient.from_tangent(self._step.model, initial_sensitivity.vjp(a, g[2:], g[0]))
        derivatives = {**gradient.start, **gradient.parameters}
        missing = [name for name in self.inputs if name not in derivatives]
        if missing:
            raise InputError(f"this model has no initial values {', '.join(missing)}")
        return [np.asarray(derivatives[name], dtype=float) for name in self.inputs]

    def _recorded(self, values: Sequence[object]) -> tuple[Tape, InitialStateDerivatives]:
        if len(values) != len(self.inputs):
            raise InputError(f"the simulation takes {len(self.inputs)} inputs ({', '.join(self.inputs)})")
        arrays = [
            check_array(name, value, shape) if shape else np.asarray(check_array(name, value)).reshape(())
            for name, value, shape in zip(self.inputs, values, self.input_shapes, strict=True)
        ]
        key = b"".join(value.tobytes() for value in arrays)
        recorded = self._cache.get(key)
        return self._cache.put(key, self._record(arrays)) if recorded is None else recorded

    def _record(self, arrays: Sequence[np.ndarray]) -> tuple[Tape, InitialStateDerivatives]:
        """Run with these inputs; return the tape and the derivatives of the initial state."""
        values = dict(zip(self.inputs, arrays, strict=True))
        initial = {name: value for name, value in values.items() if name in _INITIAL_VALUES}
        parameters = {name: value for name, value in values.items() if name not in _INITIAL_VALUES}
        plan = make_plan(self._step, initial, parameters={**self._parameters, **parameters}, project=True, **self._run)
        _, tape, initial_sensitivity = record_run(plan, self._every, keep=False)
        return tape, initial_sensitivity


def _parse_names(what: str, names: Sequence[str]) -> tuple[str, ...]:
    parsed = (names,) if isinstance(names, str) else names
    if not isinstance(parsed, Sequence) or not parsed or not all(isinstance(name, str) for name in parsed):
        raise InputError(f"{what} must be names, got {names!r}")
    return tuple(parsed)
