"""Discrete Euler-Lagrange equations of a discrete Lagrangian."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import SimpleNamespace
from typing import Any

import casadi as ca
import numpy as np

from livens.errors import InputError
from livens.expressions.state_layout import Layout
from livens.models.discrete_lagrangian import DiscreteLagrangian
from livens.schemes.core.scheme import Scheme
from livens.schemes.core.step_equations import StepEquations
from livens.schemes.discretization.phase_space_map import map_step_graph
from livens.types import Expr, FloatArray

#: Largest number of Newton corrections of the first step, and relative size of the last one.
_MAX_CORRECTIONS, _TOLERANCE = 30, 1e-14


class DiscreteEulerLagrange(Scheme):
    """Discrete Euler-Lagrange equations ``p0 = -D_1 L_d``, ``p1 = D_2 L_d`` (Modin 2009, eqs. 2.25 to 2.28).

    Symplectic for every discrete Lagrangian, with the momentum maps of its symmetries; the order is that of the
    discrete Lagrangian, at least 1 if it is consistent. The unknown is ``v = (q1 - q0)/h``, which is reported with the
    discrete energy ``-dL_d/dh`` at the end of the step. Their initial values are those of the first step.
    """

    name = "discrete-euler-lagrange"
    group = "Splitting and variational schemes, without constraints"
    formulations = ("discrete Lagrangian",)
    order, symplectic, symmetric = 1, True, False
    conserves = ("momentum_maps",)
    summary = "variational integrator of a user-defined discrete Lagrangian, of its order"
    source = "Modin 2009, 2.6.4; Marsden and West 2001"
    when_to_use = "You have a discrete Lagrangian of your own (`DiscreteLagrangian`)."
    when_to_avoid = "You have energies T and V: use `livens-variational` or `variational:<alpha>`."

    def initial_scheme_state(
        self, model: Any, values: Mapping[str, FloatArray], k: FloatArray, t: float, h: float
    ) -> dict[str, Any]:
        v = _first_velocity(model, values["q"], values["p"], k, t, h)
        return {"v": v, "discrete_energy": np.array(model.action(values["q"], values["q"] + h * v, h, t, k)[2]).ravel()}

    def equations(self, model: Any, removed_constraints: Collection[int] = ()) -> StepEquations:
        def build_step(old: SimpleNamespace, x: SimpleNamespace, h: Expr, t: Expr, k: Expr) -> Any:
            q1 = old.q + h * x.v
            p0, p1, energy = model.action(old.q, q1, h, t, k)
            new = {"q": q1, "v": x.v, "p": p1, "discrete_energy": energy}
            return new, [p0 - old.p], {"v": old.v}

        return map_step_graph(model.layout, Layout(v=model.n), model.parameter_count, build_step)


def _first_velocity(
    model: DiscreteLagrangian, q: FloatArray, p: FloatArray, k: FloatArray, t: float, h: float
) -> FloatArray:
    """Return ``(q1 - q0)/h`` of the first step, by Newton's method from rest."""
    v = ca.SX.sym("v", model.n)
    residual = model.action(q, q + h * v, h, t, k)[0] - p
    newton = ca.Function("newton", [v], [residual, ca.jacobian(residual, v)])
    value = np.zeros(model.n)
    for _ in range(_MAX_CORRECTIONS):
        r, J = (np.array(part) for part in newton(value))
        if not (np.isfinite(r).all() and np.isfinite(J).all()):
            break
        change = np.linalg.lstsq(J, r.ravel(), rcond=None)[0]
        value = value - change
        if np.abs(change).max() <= _TOLERANCE * max(np.abs(value).max(), 1e-3):
            return value
    raise InputError("the discrete Lagrangian has no first step from q0 and p0: its equations have no solution near q0")
