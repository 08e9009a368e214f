"""Isospectral midpoint method for flows of matrices."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import SimpleNamespace
from typing import Any

import casadi as ca

from livens.expressions.state_layout import Layout
from livens.schemes.core.scheme import Scheme
from livens.schemes.core.step_equations import StepEquations
from livens.schemes.discretization.phase_space_map import map_step_graph
from livens.types import Expr


class IsospectralMidpoint(Scheme):
    """Isospectral midpoint method (Modin and Viviani 2020, eq. 12)::

        W0 = (I - h/2 B) X (I + h/2 B)        B = B(X)
        W1 = (I + h/2 B) X (I - h/2 B)

    ``W1 = C W0 C^-1`` with ``C = (I + h/2 B)(I - h/2 B)^-1``, so that the eigenvalues are those of W0. If B is the
    gradient of a Hamiltonian, the map is symplectic on the orbits of constant eigenvalues. Skew-symmetric W remains so
    with skew-symmetric B, and symmetric W as well. Unknown is ``D = (X - W0)/h``; then ``W1 = W0 + h (B X - X B)``.
    """

    name = "isospectral-midpoint"
    group = "Poisson and Lie-Poisson systems"
    formulations = ("isospectral",)
    order, symplectic, symmetric = 2, True, True
    conserves = ("casimirs",)
    summary = "midpoint rule of isospectral flows: constant eigenvalues"
    source = "Modin and Viviani 2020, (12)"
    when_to_use = "Flows of matrices with constant eigenvalues: Lax pairs, rigid bodies in n dimensions."
    when_to_avoid = "Three-dimensional spins and rigid bodies: use `spherical-midpoint`."

    def equations(self, model: Any, removed_constraints: Collection[int] = ()) -> StepEquations:
        def build_step(old: SimpleNamespace, x: SimpleNamespace, h: Expr, t: Expr, k: Expr) -> Any:
            W0, D = model.matrix(old.x), model.matrix(x.increment)
            X = W0 + h * D
            B = model.field(model.state(X), k)
            bracket = B @ X - X @ B
            residual = D - bracket / 2 - h / 4 * (B @ X @ B)
            new: Mapping[str, Any] = {**vars(old), "x": model.state(W0 + h * bracket)}
            return new, [model.state(residual)], {"increment": ca.SX.zeros(model.rows**2)}

        return map_step_graph(model.layout, Layout(increment=model.rows**2), model.parameter_count, build_step)
