"""Runge-Kutta stages solved by fixed-point iteration, in fictive time."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass
from typing import Any

import casadi as ca

from livens.expressions.layout import Layout
from livens.schemes.recipes.stages import combined
from livens.schemes.step import FlatEquations, StepEquations
from livens.schemes.tableaus import Tableau


@dataclass(frozen=True, eq=False)
class SweptStages(StepEquations):
    """Stages ``Y_i = y0 + h sum_j a_ij Y'_j`` with ``(Y'_i, t'_i) = vector_field(Y_i)`` for ``y = (q, p)``.

    The unknowns are the stage derivatives ``Y'_i``, stage by stage.
    """

    rates: ca.Function  # (y, H0, k) -> time derivatives of y and of t
    velocity: ca.Function  # (y, k) -> v
    tableau: Tableau
    layout: Layout
    coordinates: tuple[str, ...]

    @property
    def variables(self) -> int:
        """Number of entries of y."""
        return 2 * len(self.coordinates)

    @property
    def size(self) -> int:
        """Number of unknowns of a step."""
        return self.tableau.s * self.variables

    @functools.cached_property
    def columns(self) -> tuple[int, ...]:
        """Indices of y in the state."""
        return tuple(i for part in "qp" for i in range(self.layout[part].start, self.layout[part].stop))

    @functools.cached_property
    def content(self) -> str:
        """Text that identifies the generated code of an iteration."""
        return f"{self.tableau.A.tolist()} {self.rates.serialize()}"

    @functools.cached_property
    def fingerprint(self) -> str:
        whole = f"{self.content} {self.velocity.serialize()} {self.layout.sizes}"
        return hashlib.sha256(f"swept {whole}".encode()).hexdigest()

    def flatten(self) -> FlatEquations:
        """Return the step graph for Newton's method."""
        T, layout, m = self.tableau, self.layout, self.variables
        x, z = ca.SX.sym("x", self.size), ca.SX.sym("z", layout.size)
        c = ca.SX.sym("c", 2 + self.rates.nnz_in(2))
        h, k, y0, H0 = c[0], c[2:], z[list(self.columns)], z[layout["start_energy"]]
        slopes = [x[i * m : (i + 1) * m] for i in range(T.s)]
        rows, time = [], ca.SX(0)
        values: dict[str, Any] = {}
        for i in range(T.s):
            stage = y0 + h * combined(T.A[i], slopes)
            found = self.rates(stage, H0, k)
            rows.append(slopes[i] - found[:m])
            time += T.b[i] * found[m]
            values |= {f"Q{i + 1}": stage[: m // 2], f"P{i + 1}": stage[m // 2 :]}
        end, y1 = ca.SX(z), y0 + h * combined(T.b, slopes)
        end[list(self.columns)] = y1
        end[layout["t"]] = z[layout["t"]] + h * time
        end[layout["v"]] = self.velocity(y1, k)
        names = [f"{what} of {name}" for what in ("velocity", "force") for name in self.coordinates]
        return FlatEquations.of(
            x,
            z,
            c,
            residual=ca.densify(ca.vertcat(*rows)),
            end=ca.densify(end),
            guess=ca.densify(ca.repmat(self.rates(y0, H0, k)[:m], T.s, 1)),
            kinds=(m // 2,) * (2 * T.s),
            layout=layout,
            row_names=tuple(f"{name} at stage {i + 1}" for i in range(T.s) for name in names),
            values=values,
        )
