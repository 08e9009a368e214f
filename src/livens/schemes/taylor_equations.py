"""Step equations of Taylor schemes: a vector field, from which all Taylor coefficients follow."""

from __future__ import annotations

import functools
import hashlib
import math
from dataclasses import dataclass

import casadi as ca

from livens.expressions.graph.taylor_coefficients import taylor_coefficients
from livens.expressions.graph.taylor_graph import VectorFieldGraph, decompose
from livens.expressions.state_layout import Layout
from livens.schemes.core.step_equations import StepEquations, StepGraph
from livens.types import Expr


def optimal_order(tolerance: float) -> int:
    """Return the optimal order for this relative local error (Jorba and Zou, sect. 3.2)."""
    return math.ceil(1 - math.log(tolerance) / 2 - 1e-9)


@dataclass(frozen=True, eq=False)
class TaylorEquations(StepEquations):
    """Taylor step equations of ``x' = f(x, t, k)``."""

    vector_field: ca.Function  # vector field (x, t, k) -> x'
    order: int
    layout: Layout
    state_indices: tuple[int, ...]  # indices of the variables in the state
    velocity_slots: dict[
        int, int
    ]  # variables whose derivatives are part of the state, with the indices of the derivatives
    n_controlled: int  # number of leading variables that determine the step size
    algebraic: ca.Function | None = None  # (x, t, k) -> algebraic part of the state
    algebraic_slots: tuple[int, ...] = ()  # indices of the algebraic part in the state

    @property
    def n_unknowns(self) -> int:
        return 0

    @functools.cached_property
    def field(self) -> VectorFieldGraph:
        """Vector field as a list of elementary operations."""
        return decompose(self.vector_field, self.n_controlled)

    @functools.cached_property
    def fingerprint_data(self) -> str:
        """Text that identifies the generated code of a step."""
        slots = f"{self.order} {self.state_indices} {self.velocity_slots} {self.n_controlled} {self.layout.sizes}"
        algebraic = "" if self.algebraic is None else f" {self.algebraic_slots} {self.algebraic.serialize()}"
        return f"{slots} {self.vector_field.serialize()}{algebraic}"

    @functools.cached_property
    def fingerprint(self) -> str:
        return hashlib.sha256(f"taylor {self.fingerprint_data}".encode()).hexdigest()

    def to_single_graph(self) -> StepGraph:
        """Return a step of given size as one graph; independent reference implementation, differentiable."""
        z, c, theta = (
            ca.SX.sym("z", self.layout.size),
            ca.SX.sym("c", 2 + self.vector_field.nnz_in(2)),
            ca.SX.sym("theta"),
        )
        h, t, k = c[0], c[1], c[2:]
        series = taylor_coefficients(self.field, self.order)(z[list(self.state_indices)], t, k)
        final_state = ca.SX(z)
        final_state[list(self.state_indices)] = _horner(series, h)
        if self.velocity_slots:
            derivatives = self.vector_field(final_state[list(self.state_indices)], t + h, k)
            final_state[list(self.velocity_slots.values())] = derivatives[list(self.velocity_slots)]
        if self.algebraic is not None:
            final_state[list(self.algebraic_slots)] = self.algebraic(final_state[list(self.state_indices)], t + h, k)
        return StepGraph.from_residual(
            ca.SX.sym("x", 0),
            z,
            c,
            residual=ca.SX(0, 1),
            final_state=ca.densify(final_state),
            initial_guess=ca.SX(0, 1),
            block_sizes=(),
            equation_labels=(),
            layout=self.layout,
            dense_output=(theta, self._dense_output(z, c, series, theta * h)),
        )

    def _dense_output(self, z: Expr, c: Expr, series: Expr, time: Expr) -> dict[str, Expr]:
        """Return the parts of the state at this time after the beginning of the step."""
        state = ca.SX(z)
        state[list(self.state_indices)] = _horner(series, time)
        if self.velocity_slots:
            derivatives = ca.horzcat(*(k * series[:, k] for k in range(1, self.order + 1)))
            state[list(self.velocity_slots.values())] = _horner(derivatives, time)[list(self.velocity_slots)]
        if self.algebraic is not None:
            state[list(self.algebraic_slots)] = self.algebraic(state[list(self.state_indices)], c[1] + time, c[2:])
        return {name: state[self.layout[name]] for name in ("q", "v", "p", "x", "y") if name in self.layout}


def _horner(series: Expr, time: Expr) -> Expr:
    """Return ``sum c_k time^k`` of columns c_k, by Horner's rule."""
    total = series[:, -1]
    for k in reversed(range(series.shape[1] - 1)):
        total = series[:, k] + time * total
    return total
