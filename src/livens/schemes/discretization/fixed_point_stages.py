"""Runge-Kutta stages solved by fixed-point iteration, in fictive time."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass
from typing import Any

import casadi as ca

from livens.expressions.state_layout import Layout
from livens.schemes.core.step_equations import StepEquations, StepGraph
from livens.schemes.discretization.collocation import linear_combination
from livens.schemes.tableaus import Tableau


@dataclass(frozen=True, eq=False)
class FixedPointStages(StepEquations):
    """Stages ``Y_i = y0 + h sum_j a_ij Y'_j`` with ``(Y'_i, t'_i) = vector_field(Y_i)`` for ``y = (q, p)``.

    The unknowns are the stage derivatives ``Y'_i``, stage by stage.
    """

    vector_field: ca.Function  # (y, H0, k) -> time derivatives of y and of t
    velocity: ca.Function  # (y, k) -> v
    tableau: Tableau
    layout: Layout
    coordinates: tuple[str, ...]

    @property
    def n_variables(self) -> int:
        """Number of entries of y."""
        return 2 * len(self.coordinates)

    @property
    def n_unknowns(self) -> int:
        return self.tableau.s * self.n_variables

    @functools.cached_property
    def state_indices(self) -> tuple[int, ...]:
        """Indices of y in the state."""
        return tuple(i for part in "qp" for i in range(self.layout[part].start, self.layout[part].stop))

    @functools.cached_property
    def fingerprint_data(self) -> str:
        """Text that identifies the generated code of an iteration."""
        return f"{self.tableau.A.tolist()} {self.vector_field.serialize()}"

    @functools.cached_property
    def fingerprint(self) -> str:
        data = f"{self.fingerprint_data} {self.velocity.serialize()} {self.layout.sizes}"
        return hashlib.sha256(f"swept {data}".encode()).hexdigest()

    def to_single_graph(self) -> StepGraph:
        """Return the step graph for Newton's method."""
        T, layout, m = self.tableau, self.layout, self.n_variables
        x, z = ca.SX.sym("x", self.n_unknowns), ca.SX.sym("z", layout.size)
        c = ca.SX.sym("c", 2 + self.vector_field.nnz_in(2))
        h, k, y0, H0 = c[0], c[2:], z[list(self.state_indices)], z[layout["start_energy"]]
        stage_derivatives = [x[i * m : (i + 1) * m] for i in range(T.s)]
        residuals, time = [], ca.SX(0)
        values: dict[str, Any] = {}
        for i in range(T.s):
            stage = y0 + h * linear_combination(T.A[i], stage_derivatives)
            derivatives = self.vector_field(stage, H0, k)
            residuals.append(stage_derivatives[i] - derivatives[:m])
            time += T.b[i] * derivatives[m]
            values |= {f"Q{i + 1}": stage[: m // 2], f"P{i + 1}": stage[m // 2 :]}
        final_state, y1 = ca.SX(z), y0 + h * linear_combination(T.b, stage_derivatives)
        final_state[list(self.state_indices)] = y1
        final_state[layout["t"]] = z[layout["t"]] + h * time
        final_state[layout["v"]] = self.velocity(y1, k)
        names = [f"{quantity} of {name}" for quantity in ("velocity", "force") for name in self.coordinates]
        return StepGraph.from_residual(
            x,
            z,
            c,
            residual=ca.densify(ca.vertcat(*residuals)),
            final_state=ca.densify(final_state),
            initial_guess=ca.densify(ca.repmat(self.vector_field(y0, H0, k)[:m], T.s, 1)),
            block_sizes=(m // 2,) * (2 * T.s),
            layout=layout,
            equation_labels=tuple(f"{name} at stage {i + 1}" for i in range(T.s) for name in names),
            named_values=values,
        )
