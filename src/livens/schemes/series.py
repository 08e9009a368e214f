"""Step equations of Taylor schemes: a vector field, from which all Taylor coefficients follow."""

from __future__ import annotations

import functools
import hashlib
import math
from dataclasses import dataclass
from typing import Any

import casadi as ca

from livens.expressions.graph.elementary import Field, decompose
from livens.expressions.graph.series import coefficients
from livens.expressions.layout import Layout
from livens.schemes.step import FlatEquations, StepEquations


def best_order(tolerance: float) -> int:
    """Return the optimal order for this relative local error (Jorba and Zou, sect. 3.2)."""
    return math.ceil(1 - math.log(tolerance) / 2 - 1e-9)


@dataclass(frozen=True, eq=False)
class SeriesEquations(StepEquations):
    """Taylor step equations of ``x' = f(x, t, k)``."""

    rates: ca.Function  # vector field (x, t, k) -> x'
    order: int
    layout: Layout
    columns: tuple[int, ...]  # indices of the variables in the state
    velocities: dict[int, int]  # variables whose derivatives are part of the state, with the indices of the derivatives
    counted: int  # number of leading variables that determine the step size
    follows: ca.Function | None = None  # (x, t, k) -> algebraic part of the state
    following: tuple[int, ...] = ()  # indices of the algebraic part in the state

    @functools.cached_property
    def field(self) -> Field:
        """Vector field as a list of elementary operations."""
        return decompose(self.rates, self.counted)

    @functools.cached_property
    def content(self) -> str:
        """Text that identifies the generated code of a step."""
        places = f"{self.order} {self.columns} {self.velocities} {self.counted} {self.layout.sizes}"
        follows = "" if self.follows is None else f" {self.following} {self.follows.serialize()}"
        return f"{places} {self.rates.serialize()}{follows}"

    @functools.cached_property
    def fingerprint(self) -> str:
        return hashlib.sha256(f"taylor {self.content}".encode()).hexdigest()

    def flatten(self) -> FlatEquations:
        """Return a step of given size as one graph; independent reference implementation, differentiable."""
        z, c, theta = ca.SX.sym("z", self.layout.size), ca.SX.sym("c", 2 + self.rates.nnz_in(2)), ca.SX.sym("theta")
        h, t, k = c[0], c[1], c[2:]
        series = coefficients(self.field, self.order)(z[list(self.columns)], t, k)
        end = ca.SX(z)
        end[list(self.columns)] = _horner(series, h)
        if self.velocities:
            rates = self.rates(end[list(self.columns)], t + h, k)
            end[list(self.velocities.values())] = rates[list(self.velocities)]
        if self.follows is not None:
            end[list(self.following)] = self.follows(end[list(self.columns)], t + h, k)
        return FlatEquations.of(
            ca.SX.sym("x", 0),
            z,
            c,
            residual=ca.SX(0, 1),
            end=ca.densify(end),
            guess=ca.SX(0, 1),
            kinds=(),
            row_names=(),
            layout=self.layout,
            inside=(theta, self._inside(z, c, series, theta * h)),
        )

    def _inside(self, z: Any, c: Any, series: Any, time: Any) -> dict[str, Any]:
        """Return the parts of the state at this time after the beginning of the step."""
        within = ca.SX(z)
        within[list(self.columns)] = _horner(series, time)
        if self.velocities:
            slopes = ca.horzcat(*(k * series[:, k] for k in range(1, self.order + 1)))
            within[list(self.velocities.values())] = _horner(slopes, time)[list(self.velocities)]
        if self.follows is not None:
            within[list(self.following)] = self.follows(within[list(self.columns)], c[1] + time, c[2:])
        return {name: within[self.layout[name]] for name in ("q", "v", "p", "x", "y") if name in self.layout}


def _horner(series: Any, time: Any) -> Any:
    """Return ``sum c_k time^k`` of columns c_k, by Horner's rule."""
    total = series[:, -1]
    for k in reversed(range(series.shape[1] - 1)):
        total = series[:, k] + time * total
    return total
