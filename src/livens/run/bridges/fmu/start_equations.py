"""Start of an FMU: equations of the initial state of a mechanical system, as expressions and tables in C."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np

from livens.engine.compiled_step import CompiledStep
from livens.errors import InputError
from livens.expressions.state_layout import Layout
from livens.models.base import InitialState
from livens.models.equations_of_motion import equations_of_motion
from livens.models.initialization.dense import NEGLIGIBLE_MASS
from livens.models.initialization.derivative_array import TOLERANCE
from livens.models.input_entry import input_entry
from livens.models.system import System
from livens.run.plan import Plan
from livens.schemes.core.step_equations import StepGraph


class StartEquations:
    """Equations of the initial state of a mechanical system: constraints, momenta, KKT system and scheme state."""

    def __init__(
        self, system: System, layout: Layout, e: StepGraph, removed: Sequence[int], scheme_state: Mapping[str, Any]
    ) -> None:
        d = equations_of_motion(system)
        matrix, rhs = d.kkt_system
        rows, columns = matrix.sparsity().get_triplet()
        terms: list[Any] = [d.g, d.velocity_constraint, d.fibre_derivative, rhs, *matrix.nonzeros()]
        column = ca.vertcat(*terms, *scheme_state.values())
        at_state = ca.Function("start", [d.q, d.v, d.t, d.k], [ca.densify(column)])
        values = at_state(e.z[layout["q"]], e.z[layout["v"]], e.c[1], e.c[2:])
        self.function = ca.Function("start", e.arguments, [values])
        is_position = np.zeros(system.m, dtype=bool)
        is_position[list(d.G_position.sparsity().get_triplet()[0])] = True
        starts = {name: layout[name].start if name in layout else -1 for name in ("q", "v", "p", "multipliers")}
        self.sizes = {
            "NQ": system.n, "NM": system.m, "N_KKT": len(rows), "START_TOLERANCE": TOLERANCE,
            "Q_OFFSET": starts["q"], "V_OFFSET": starts["v"], "P_OFFSET": starts["p"],
            "LAMBDA_OFFSET": starts["multipliers"], "N_SCHEME": sum(int(v.numel()) for v in scheme_state.values()),
        }  # fmt: skip
        self.tables = [
            c_table("KKT_ROWS", rows, "int"),
            c_table("KKT_COLUMNS", columns, "int"),
            c_table("IS_REMOVED", (i in removed for i in range(system.m)), "char"),
            c_table("IS_POSITION", is_position, "char"),
            c_table(
                "SCHEME_ENTRIES", (i for name in scheme_state for i in range(*layout[name].indices(e.z.numel()))), "int"
            ),
        ]

    @classmethod
    def of(cls, plan: Plan, compiled: CompiledStep, initial: InitialState) -> StartEquations | None:
        """Return the equations, or None if the start of the model or the scheme is not determined by them alone."""
        system, layout = plan.model, compiled.layout
        if not isinstance(system, System) or system.uses_sparse_path or not {"q", "v", "p"} <= set(layout.sizes):
            return None
        d = equations_of_motion(system)
        known = plan.scheme.initial_scheme_state(compiled.model, initial.values, plan.k, initial.t, plan.h)
        scheme_state = plan.scheme.symbolic_scheme_state(system, d.q, d.fibre_derivative, d.k, initial.t, plan.h)
        (matrix,) = d.evaluator(d.augmented_mass)(initial["q"], initial["v"], initial.t, plan.k)
        has_inertia = bool(np.linalg.eigvalsh(matrix).min() > NEGLIGIBLE_MASS * np.abs(matrix).max())
        if known.keys() != scheme_state.keys() or system.control_indices or not has_inertia:
            return None
        return cls(system, layout, compiled.flat_equations, initial.removed_constraints, scheme_state)


def check_start(plan: Plan, compiled: CompiledStep, initial: InitialState, name: str) -> None:
    """Raise `InputError` if the initial state, which the FMU does not compute, depends on a parameter."""

    def packed(state: InitialState, k: np.ndarray) -> np.ndarray:
        extra = plan.scheme.initial_scheme_state(compiled.model, state.values, k, state.t, plan.h)
        return compiled.layout.pack({**state.values, **extra})

    k = plan.k.copy()
    for slice_ in input_entry(plan.model, name).value.slices:
        k[slice_] = 1.001 * k[slice_] + 1e-6
    changed = compiled.model.initial_state(plan.start, k, plan.t0, True, plan.redundant)
    if not np.array_equal(packed(changed, k), packed(initial, plan.k)):
        raise InputError(
            f"'{name}' cannot be tunable: the initial state depends on it, and an FMU of scheme "
            f"'{plan.scheme.name}' for this model does not compute its initial state"
        )


def c_table(name: str, values: Iterable[Any], c_type: str = "double") -> str:
    """Return a constant table in C."""
    items = list(values) or [0]
    text = ", ".join(float(value).hex() if c_type == "double" else str(int(value)) for value in items)
    return f"static const {c_type} {name}[] = {{{text}}};"
