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

#: Largest number of Newton corrections of the first step, and relative size of the last one. Constraints are divided by
#: h, which amplifies their round-off.
_MAX_CORRECTIONS, _TOLERANCE = 30, 1e-12


class DiscreteEulerLagrange(Scheme):
    """Discrete Euler-Lagrange equations of `DiscreteLagrangian` (Modin 2009, eqs. 2.25 to 2.28)::

        p0 = -D_1 L_d(q0, q1, h) - f_d^- + h G(q0)^T lam        p1 = D_2 L_d(q0, q1, h) + f_d^+        0 = g(q1)

    Symplectic for every discrete Lagrangian without discrete forces, with the momentum maps of its symmetries; the
    order is that of the discrete Lagrangian, at least 1 if it is consistent. The unknowns are ``v = (q1 - q0)/h`` and
    lam. v is reported with the discrete energy ``-dL_d/dh`` at the end of the step, although they belong to its middle.
    Their initial values are those of the first step. The work of discrete forces is ``(f_d^- + f_d^+) . v``.
    """

    name = "discrete-euler-lagrange"
    group = "Splitting and variational schemes, without constraints"
    formulations = ("discrete Lagrangian",)
    order, symplectic, symmetric = 1, True, False
    conserves = ("momentum_maps", "constraint")
    completes_model_state = True
    summary = "variational integrator of a user-defined discrete Lagrangian, of its order"
    source = "Modin 2009, 2.6.4; Marsden and West 2001"
    when_to_use = "You have a discrete Lagrangian of your own (`DiscreteLagrangian`)."
    when_to_avoid = "You have energies T and V: use `livens-variational` or `variational:<alpha>`."

    def initial_scheme_state(
        self, model: Any, values: Mapping[str, FloatArray], k: FloatArray, t: float, h: float
    ) -> dict[str, Any]:
        v, lam = _first_step(model, values["q"], values["p"], k, t, h)
        energy = np.array(model.action(values["q"], values["q"] + h * v, h, t, k)[2]).ravel()
        return {"v": v, "discrete_energy": energy} | ({"multipliers": lam} if model.m else {})

    def equations(self, model: Any, removed_constraints: Collection[int] = ()) -> StepEquations:
        def build_step(old: SimpleNamespace, x: SimpleNamespace, h: Expr, t: Expr, k: Expr) -> Any:
            q1, lam = old.q + h * x.v, getattr(x, "lam", ca.SX(0, 1))
            p0, p1, energy, work = model.action(old.q, q1, h, t, k)
            new = {"q": q1, "v": x.v, "p": p1, "discrete_energy": energy, "multipliers": lam}
            if model.has_forces:
                new |= {"supplied_energy": old.supplied_energy + work, "dissipated_energy": old.dissipated_energy}
            guess = {"v": old.v} | ({"lam": old.multipliers} if model.m else {})
            return new, _residual(model, old.q, q1, p0 - old.p, lam, h, k), guess

        unknowns = Layout(v=model.n, lam=model.m) if model.m else Layout(v=model.n)
        return map_step_graph(model.layout, unknowns, model.parameter_count, build_step)


def _residual(model: DiscreteLagrangian, q0: Any, q1: Any, impulse: Any, lam: Any, h: Any, k: Any) -> list[Any]:
    """Return the residuals of a step: momenta at its start, and constraints at its end."""
    if not model.m:
        return [impulse]
    return [impulse + h * model.constraint(q0, k)[1].T @ lam, model.constraint(q1, k)[0] / h]


def _first_step(
    model: DiscreteLagrangian, q: FloatArray, p: FloatArray, k: FloatArray, t: float, h: float
) -> tuple[FloatArray, FloatArray]:
    """Return ``(q1 - q0)/h`` and the multipliers of the first step, by Newton's method from rest."""
    x = ca.SX.sym("x", model.n + model.m)
    v, lam = x[: model.n], x[model.n :]
    impulse = model.action(q, q + h * v, h, t, k)[0] - p
    residual = ca.vertcat(*_residual(model, q, q + h * v, impulse, lam, h, k))
    newton = ca.Function("newton", [x], [residual, ca.jacobian(residual, x)])
    value = np.zeros(model.n + model.m)
    for _ in range(_MAX_CORRECTIONS):
        r, J = (np.array(part) for part in newton(value))
        if not (np.isfinite(r).all() and np.isfinite(J).all()):
            break
        change = np.linalg.lstsq(J, r.ravel(), rcond=None)[0]
        value = value - change
        if np.abs(change).max() <= _TOLERANCE * max(np.abs(value).max(), 1e-3):
            return value[: model.n], value[model.n :]
    raise InputError("the discrete Lagrangian has no first step from q0 and p0: its equations have no solution near q0")
