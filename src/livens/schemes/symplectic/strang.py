"""Strang splitting into drift with time, kick of all forces, and linear coupling."""

from __future__ import annotations

from math import factorial
from types import SimpleNamespace
from typing import Any

import casadi as ca

from livens.models.hamiltonian.model import Hamiltonian
from livens.schemes.discretization.phase_space_map import HamiltonianFunctions, MapResult, MapScheme, as_hamiltonian
from livens.types import Expr

#: Degree of numerator and denominator of the Pade approximation of the matrix exponential.
_DEGREE = 6


class Strang(MapScheme):
    """Strang splitting: half drift, kick, half drift; time belongs to the drift (Modin 2009, paper I).

    ``q_m = q0 + h/2 T'(p0)``, ``p1 = p0 + h f(q_m, t0 + h/2)``, ``q1 = q_m + h/2 T'(p1)`` with ``f = -V' + F``. Both
    parts are exact flows, also for driven systems, as in the paper: ``x' = A x + f(t)``.

    A may depend on time and need not be separable: ``H = T(p, t) + p.C(t) q + V(q, t)``, as in rotating frames and for
    gyroscopic forces. Then there is a third part, ``q' = C q`` and ``p' = -C^T p``, half before and half after the
    kick, with C at the midpoint. Its flow ``exp(h/2 C)`` is a Pade approximation that is symplectic to round-off, and
    accurate to round-off for h C below one.
    """

    name, order, symplectic, symmetric = "strang", 2, True, True
    conserves = ("momentum_maps",)
    summary, source = "drift, kick, drift, for driven systems: explicit, symplectic", "Modin 2009, paper I"
    when_to_use = "Driven separable Hamiltonians, and rotors in rotating frames."
    when_to_avoid = "Forces depend on velocities: use `implicit-midpoint`."
    requires_velocity_independent_forces = True

    def unmet_requirements(self, model: Any) -> list[str]:
        unmet = super().unmet_requirements(model)
        if unmet or "phase space" not in model.formulations:
            return unmet
        phase = as_hamiltonian(model)
        mixed = ca.depends_on(_mixed_hessian(phase), ca.vertcat(phase.q, phase.p))
        return ["an energy T(p) + V(q), or T(p, t) + p.C(t) q + V(q, t)"] if mixed else []

    def step(self, phase: HamiltonianFunctions, old: Any, x: SimpleNamespace, h: Expr, t: Expr) -> MapResult:
        t_m = t + h / 2
        if phase.model.separable:
            q_m = old.q + h / 2 * phase.T_p(old.p)
            p = old.p + h * phase.force(q_m, phase.T_p(old.p), t_m)
            q = q_m + h / 2 * phase.T_p(p)
        else:
            C = phase.evaluate("C", _mixed_hessian(phase.model), 0 * old.q, 0 * old.p, t_m)
            origin = 0 * old.q
            q, p = old.q + h / 2 * phase.H_p(origin, old.p, t_m), old.p
            q_m, p = _symplectic_pade(h / 2 * C, q, p)
            kick = phase.F(q_m, phase.H_p(origin, p, t_m), t_m) - phase.H_q(q_m, origin, t_m)
            q, p = _symplectic_pade(h / 2 * C, q_m, p + h * kick)
            q += h / 2 * phase.H_p(origin, p, t_m)
        supplied, dissipated = phase.work(q_m, p, (q - old.q) / h, t_m)
        return MapResult({"q": q, "p": p}, supplied=h * supplied, dissipated=h * dissipated)


def _mixed_hessian(model: Hamiltonian) -> Expr:
    """Return the mixed Hessian C of H with respect to p and q; it is zero for H = T(p) + V(q)."""
    return ca.densify(ca.jacobian(model.velocity, model.q))


def _symplectic_pade(X: Expr, q: Expr, p: Expr) -> tuple[Expr, Expr]:
    """Return ``exp(X) q`` and ``exp(-X^T) p`` by a symplectic Pade approximation, which preserves q.p."""
    n, s = X.shape[0], _DEGREE
    power, numerator, denominator = ca.SX.eye(n), ca.SX.eye(n), ca.SX.eye(n)
    for j in range(1, s + 1):
        power = power @ X
        weight = factorial(2 * s - j) * factorial(s) / (factorial(2 * s) * factorial(j) * factorial(s - j))
        numerator, denominator = numerator + weight * power, denominator + (-1) ** j * weight * power
    return ca.solve(denominator, numerator @ q), ca.solve(numerator.T, denominator.T @ p)
