"""Time-transformed variational integrators."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, ClassVar

import casadi as ca

from livens.models.hamiltonian.model import Hamiltonian
from livens.schemes.discretization.phase_space_map import HamiltonianFunctions, MapResult, format_number
from livens.schemes.discretization.time_transformation import TimeTransformedMap
from livens.types import Expr


class AdaptiveVariational(TimeTransformedMap):
    """Variational integrator in fictive time (Modin 2009, paper II, eqs. 21-25), for any energy ``H(q, p)``.

    With ``q_a = (1-a) q0 + a q1`` and the energy E0 of the initial state, the discrete Lagrangian is the stationary
    value over p_m of ``p_m.(q1 - q0) - eps l(q_b, p_m) D``, ``D = H(q_a, p_m) - E0``::

        q1 = q0 + eps (l H_p + l_p D)
        p0 = p_m + eps ((1-a) l H_q + (1-b) l_q D)
        p1 = p_m - eps (a l H_q + b l_q D)
        t1 = t0 + eps l

    l and its derivatives are evaluated at (q_b, p_m), H and its derivatives at (q_a, p_m). In the paper l is a function
    of the coordinates, where l_p is zero, and of the velocity in fictive time, which is here a function of the momenta.
    The map of (q, t, p, -E0) is symplectic, and momentum maps of symmetries of both H and l are kept. With a = b it is
    ``variational:a`` for the energy ``l (H - E0)``.

    With a = b = 0, a constant mass matrix and a scaling of q only, the momenta follow from a quadratic equation
    (eq. 26) in closed form. It has no real root if the step is too long.
    """

    family = "adaptive-variational:<alpha>,<beta>"
    examples = ((0.5, 0.5), (0.0, 0.0))
    member_aliases: ClassVar[dict[str, tuple[Any, ...]]] = {"met1": (0.5, 0.5), "met2": (0.0, 0.0)}
    symplectic = True
    conserves = ("momentum_maps",)
    source = "Modin 2009, paper II, eqs. 21-26"
    when_to_use = "Adaptive steps without energy drift, any H(q, p) and any scaling of the coordinates."
    when_to_avoid = "The Hamiltonian is separable and the scaling a function of the energies: `sundman` is explicit."
    implicit = True

    def __init__(self, alpha: float, beta: float) -> None:
        self.alpha, self.beta = alpha, beta
        self.name = f"adaptive-variational:{format_number(alpha)},{format_number(beta)}"
        self.order = 2 if alpha == 0.5 else 1
        self.symmetric = alpha == beta == 0.5
        self.summary = "variational integrator in a fictive time, symplectic with time and energy"
        self.implicit = not alpha == beta == 0

    def keeps_momentum(self, model: object, name: str) -> bool:
        """Return whether a momentum map is kept: the scaling is invariant under its symmetry as well."""
        return self.scaling_is_invariant(model, name)

    def _has_closed_form(self, model: Hamiltonian) -> bool:
        if self.implicit or not model.separable or model.inverse_mass is None:
            return False
        velocity_at_zero = ca.sparsify(ca.simplify(ca.substitute(model.velocity, model.p, ca.SX.zeros(model.n))))
        return bool(velocity_at_zero.is_zero()) and "p" not in self.checked_scaling(model).variables(model)

    def unknowns(self, model: Hamiltonian) -> dict[str, int]:
        return {} if self._has_closed_form(model) else {"w": model.n, "p_m": model.n}

    def initial_guess(
        self, phase: HamiltonianFunctions, old: SimpleNamespace, h: Expr, t: Expr
    ) -> Mapping[str, object]:
        return {"w": self.g(phase, old.q, old.p) * phase.H_p(old.q, old.p, t), "p_m": old.p}

    def step(
        self, phase: HamiltonianFunctions, old: SimpleNamespace, x: SimpleNamespace, h: Expr, t: Expr
    ) -> MapResult:
        if self._has_closed_form(phase.model):
            return self._closed_form_step(phase, old, h)
        a, b = self.alpha, self.beta
        q_a, q_b = old.q + a * h * x.w, old.q + b * h * x.w
        energy_defect = phase.H(q_a, x.p_m, 0) - old.start_energy
        scale = self.g(phase, q_b, x.p_m)
        force, scaling_force = scale * phase.H_q(q_a, x.p_m, 0), energy_defect * self.g_q(phase, q_b, x.p_m)
        residual = [
            x.w - scale * phase.H_p(q_a, x.p_m, 0) - energy_defect * self.g_p(phase, q_b, x.p_m),
            x.p_m + h * ((1 - a) * force + (1 - b) * scaling_force) - old.p,
        ]
        new = {"q": old.q + h * x.w, "p": x.p_m - h * (a * force + b * scaling_force), "t": old.t + h * scale}
        return MapResult(new, residual)

    def _closed_form_step(self, phase: HamiltonianFunctions, old: SimpleNamespace, h: Expr) -> MapResult:
        """Return the step ``p1 = A - B s``, ``s = p1.W p1`` with the inverse mass W: a quadratic equation for s."""
        scale, scaling_gradient = self.g(phase, old.q, old.p), self.g_q(phase, old.q, old.p)
        W = phase.evaluate("W", phase.model.inverse_mass, old.q, old.p, 0)
        T0 = phase.T(0 * old.p)  # a constant of the kinetic energy is moved to the potential energy
        A = old.p - h * scale * phase.V_q(old.q, 0) + h * scaling_gradient * (old.start_energy - T0 - phase.V(old.q, 0))
        B = h / 2 * scaling_gradient
        AA, AB, BB = ca.dot(A, W @ A), ca.dot(A, W @ B), ca.dot(B, W @ B)
        c = 1 + 2 * AB
        # the root that tends to A.W A for short steps, written without cancellation
        s = 2 * AA / (c + ca.sqrt(c**2 - 4 * AA * BB))
        p = A - B * s
        return MapResult({"q": old.q + h * scale * (W @ p), "p": p, "t": old.t + h * scale})
