"""Energy-momentum scheme for rigid bodies with constraints on position and velocity level."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import casadi as ca

from livens.schemes.base import Requirement
from livens.schemes.ggl import hessian_terms, velocity_constraints
from livens.schemes.lie_em import FRAMES, TURNING, LieEM
from livens.schemes.recipes.elements import ElementEnergies
from livens.schemes.recipes.frame_bodies import GGLBody


class LieGGL(LieEM):
    """`lie-em` on the GGL Hamiltonian ``H + lam.g(q) + gam.(G(q) v)`` with ``v = (p/m, omega x d_i)``.

    Both levels of the constraints are enforced at t + h::

        0 = g(q1, t1),   0 = G(q1, t1) v1 + g_t(q1, t1)

    and energy, linear and angular momentum are conserved exactly. The constraints must be at most quadratic, so that
    their midpoint gradient is a discrete gradient.
    """

    name = "lie-ggl"
    conserves = ("total_energy", "constraint", "velocity_constraint")
    summary = "lie-em with both constraint levels at the end of the step"
    requires = (
        FRAMES,
        TURNING,
        Requirement("without_rotors", "no rotor bodies (rotor=False)"),
        Requirement("quadratic_constraints", "constraints that are at most quadratic in the coordinates"),
    )
    body = GGLBody
    rotor_body = None
    both_levels = True

    def pull(self, e: ElementEnergies, q: Any, v_m: Any, gam: Any, h: Any, t: Any) -> Any:
        q_m = q + h / 2 * v_m
        if not _moves(e):
            return e.G(q_m, 0).T @ gam
        return (e.G(q_m, t) + e.G(q_m, t + h)).T @ gam / 2

    def hidden(
        self, e: ElementEnergies, q: Any, v_m: Any, v: Any, v1: Any, gam: Any, h: Any, t: Any
    ) -> tuple[Any, Any, Any]:
        q_m, q1, mean = q + h / 2 * v_m, q + h * v_m, (v + v1) / 2
        if not _moves(e):
            return h * hessian_terms(e, q_m, mean, gam), velocity_constraints(e, q1, v1), 0.0
        S = moving_constraints(e)
        # in (q, v) the mean over both times, in time over both ends: the sum is the change of S, S004 (129)-(131)
        bent = sum(S.gradient(q_m, mean, gam, time) for time in (t, t + h)) / 2
        ends = ((q, v), (q1, v1))
        work = sum(ca.dot(gam, S.value(*end, t + h) - S.value(*end, t)) for end in ends) / 2
        return h * bent, S.value(q1, v1, t + h), work


def _moves(e: ElementEnergies) -> bool:
    return bool(ca.depends_on(e.model.g, e.model.t))


@dataclass(frozen=True)
class MovingConstraints:
    """Hidden constraints ``S = G(q, t) v + g_t(q, t)`` of an element, and the gradient of ``gam.S`` in q."""

    value: Callable[..., Any]
    gradient: Callable[..., Any]


def moving_constraints(e: ElementEnergies) -> MovingConstraints:
    """Return the hidden constraints of an element with rheonomic constraints."""
    m = e.model
    S = ca.jtimes(m.g, m.q, m.v) + ca.jacobian(m.g, m.t)
    weights = ca.SX.sym("gam", m.m)
    value = ca.Function("S", [m.q, m.v, m.t, m.k], [S])
    slope = ca.Function("S_q", [m.q, m.v, weights, m.t, m.k], [ca.gradient(ca.dot(weights, S), m.q)])
    return MovingConstraints(lambda q, v, t: value(q, v, t, e.k), lambda q, v, gam, t: slope(q, v, gam, t, e.k))
