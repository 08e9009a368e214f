"""Strang's splitting into a kinetic part that carries time, the kick of all forces, and what couples the two."""

from __future__ import annotations

from math import factorial
from typing import Any

import casadi as ca

from livens.models.hamiltonian.model import Hamiltonian
from livens.schemes.recipes.maps import MapScheme, Phase, Step, phase_of

#: The degree of both polynomials of the quotient that stands for the exponential function.
_DEGREE = 6


class Strang(MapScheme):
    """Half a drift, a kick, half a drift; time belongs to the drift (S003 paper I).

    ``q_m = q0 + h/2 T'(p0)``, ``p1 = p0 + h f(q_m, t0 + h/2)``, ``q1 = q_m + h/2 T'(p1)`` with ``f = -V' + F``. Both
    parts are flows that are known exactly, also of systems that are driven, as in the paper: ``x' = A x + f(t)``.

    A may depend on time and need not be separable: ``H = T(p, t) + p.C(t) q + V(q, t)``, as in frames that turn and for
    gyroscopic forces. Then there is a third part, ``q' = C q`` and ``p' = -C^T p``, around the kick and half as long on
    each side, with C of the middle of the step: the flow of a matrix, ``exp(h/2 C)``, by a quotient of polynomials that
    is symplectic in every digit, and exact to the last ones as long as h C is below one.
    """

    name, order, symplectic, symmetric = "strang", 2, True, True
    conserves = ("momentum_maps",)
    summary, source = "drift, kick, drift, for driven systems: explicit, symplectic", "S003 paper I"
    at_rest = True

    def missing(self, model: Any) -> list[str]:
        missing = super().missing(model)
        if missing or "phase space" not in model.forms:
            return missing
        phase = phase_of(model)
        mixed = ca.depends_on(_coupling(phase), ca.vertcat(phase.q, phase.p))
        return ["an energy T(p) + V(q), or T(p, t) + p.C(t) q + V(q, t)"] if mixed else []

    def step(self, phase: Phase, old: Any, x: Any, h: Any, t: Any) -> Step:
        t_m = t + h / 2
        if phase.model.separable:
            q_m = old.q + h / 2 * phase.T_p(old.p)
            p = old.p + h * phase.force(q_m, phase.T_p(old.p), t_m)
            q = q_m + h / 2 * phase.T_p(p)
        else:
            C = phase.any("C", _coupling(phase.model), 0 * old.q, 0 * old.p, t_m)
            origin = 0 * old.q
            q, p = old.q + h / 2 * phase.H_p(origin, old.p, t_m), old.p
            q_m, p = _turned(h / 2 * C, q, p)
            kick = phase.F(q_m, phase.H_p(origin, p, t_m), t_m) - phase.H_q(q_m, origin, t_m)
            q, p = _turned(h / 2 * C, q_m, p + h * kick)
            q += h / 2 * phase.H_p(origin, p, t_m)
        supplied, dissipated = phase.work(q_m, p, (q - old.q) / h, t_m)
        return Step({"q": q, "p": p}, supplied=h * supplied, dissipated=h * dissipated)


def _coupling(model: Hamiltonian) -> Any:
    """The matrix C of second derivatives of H by p and q; of H = T(p) + V(q) it is zero."""
    return ca.densify(ca.jacobian(model.velocity, model.q))


def _turned(X: Any, q: Any, p: Any) -> tuple[Any, Any]:
    """``exp(X) q`` and ``exp(-X^T) p``, so that q.p stays what it is."""
    n, s = X.shape[0], _DEGREE
    power, ahead, back = ca.SX.eye(n), ca.SX.eye(n), ca.SX.eye(n)
    for j in range(1, s + 1):
        power = power @ X
        weight = factorial(2 * s - j) * factorial(s) / (factorial(2 * s) * factorial(j) * factorial(s - j))
        ahead, back = ahead + weight * power, back + (-1) ** j * weight * power
    return ca.solve(back, ahead @ q), ca.solve(ahead.T, back.T @ p)
