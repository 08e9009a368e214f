"""Energy-momentum scheme for rigid bodies with constraints on position and velocity level."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca

from livens.schemes.core.scheme import Requirement
from livens.schemes.discretization.element_scheme import ElementFunctions
from livens.schemes.discretization.rigid_body_step import GGLStep
from livens.schemes.energy_momentum.lie_em import DIRECTOR_BODIES, REGULAR_INERTIA, LieEM
from livens.schemes.symplectic.ggl import constraint_hessian_force, hidden_constraints
from livens.types import Expr, ModelFunction


class LieGGL(LieEM):
    """`lie-em` on the GGL Hamiltonian ``H + lam.g(q) + gam.(G(q) v)`` with ``v = (p/m, omega x d_i)``.

    Both levels of the constraints are enforced at t + h::

        0 = g(q1, t1),   0 = G(q1, t1) v1 + g_t(q1, t1)

    and energy, linear and angular momentum are conserved exactly. The constraints must be at most quadratic, so that
    their midpoint gradient is a discrete gradient.
    """

    name = "lie-ggl"
    steps_on_trees = False
    conserves = ("total_energy", "constraint", "velocity_constraint")
    summary = "lie-em with both constraint levels at the end of the step"
    when_to_use = "Mechanisms with moving constraints or velocity drives, whose velocities have to be exact as well."
    when_to_avoid = "Bodies are rotors, or joints are not quadratic in the coordinates: use `lie-em`."
    requires = (
        DIRECTOR_BODIES,
        REGULAR_INERTIA,
        Requirement("without_rotors", "no rotor bodies (rotor=False)"),
        Requirement("quadratic_constraints", "constraints that are at most quadratic in the coordinates"),
    )
    body_step = GGLStep
    rotor_step = None
    ggl = True

    def ggl_correction(self, e: ElementFunctions, q: Expr, v_m: Expr, gam: Expr, h: Expr, t: Expr) -> Expr:
        q_m = q + h / 2 * v_m
        if not _is_rheonomic(e):
            return e.G(q_m, 0).T @ gam
        return (e.G(q_m, t) + e.G(q_m, t + h)).T @ gam / 2

    def hidden_constraint_terms(
        self, e: ElementFunctions, q: Expr, v_m: Expr, v: Expr, v1: Expr, gam: Expr, h: Expr, t: Expr
    ) -> tuple[Any, Any, Any]:
        q_m, q1, v_mean = q + h / 2 * v_m, q + h * v_m, (v + v1) / 2
        if not _is_rheonomic(e):
            return h * constraint_hessian_force(e, q_m, v_mean, gam), hidden_constraints(e, q1, v1), 0.0
        constraints = rheonomic_constraints(e)
        # mean over both times in (q, v), over both ends in time: the sum is the change of S
        # (Kinon and Betsch 2024, 129-131)
        hessian_force = sum(constraints.gradient(q_m, v_mean, gam, time) for time in (t, t + h)) / 2
        end_states = ((q, v), (q1, v1))
        work = (
            sum(ca.dot(gam, constraints.value(*state, t + h) - constraints.value(*state, t)) for state in end_states)
            / 2
        )
        return h * hessian_force, constraints.value(q1, v1, t + h), work


def _is_rheonomic(e: ElementFunctions) -> bool:
    return bool(ca.depends_on(e.model.g, e.model.t))


@dataclass(frozen=True)
class RheonomicConstraints:
    """Hidden constraints ``S = G(q, t) v + g_t(q, t)`` of an element, and the gradient of ``gam.S`` in q."""

    value: ModelFunction
    gradient: ModelFunction


def rheonomic_constraints(e: ElementFunctions) -> RheonomicConstraints:
    """Return the hidden constraints of an element with rheonomic constraints."""
    m = e.model
    weights = ca.SX.sym("gam", m.m)
    value = ca.Function("S", [m.q, m.v, m.t, m.k], [m.g_dot])
    gradient = ca.Function("S_q", [m.q, m.v, weights, m.t, m.k], [ca.gradient(ca.dot(weights, m.g_dot), m.q)])
    return RheonomicConstraints(lambda q, v, t: value(q, v, t, e.k), lambda q, v, gam, t: gradient(q, v, gam, t, e.k))
