"""The energy-momentum scheme for frame bodies with constraints on position and velocity level."""

from __future__ import annotations

from typing import Any

from livens.schemes.base import Requirement
from livens.schemes.ggl import FIXED_CONSTRAINTS, hessian_terms, velocity_constraints
from livens.schemes.lie_em import FRAMES, TURNING, LieEM
from livens.schemes.recipes.elements import ElementEnergies
from livens.schemes.recipes.frame_bodies import GGLBody


class LieGGL(LieEM):
    """`lie-em` on the GGL Hamiltonian ``H + lam.g(q) + gam.(G(q) v)`` with ``v = (p/m, omega x d_i)``.

    Both levels of the constraints hold at the end of every step::

        0 = g(q1),   0 = G(q1) v1

    and energy, linear and angular momentum stay exact. The constraints must be at most quadratic, so that their
    gradient in the middle of the step is a discrete gradient.
    """

    name = "lie-ggl"
    conserves = ("total_energy", "constraint", "velocity_constraint")
    summary = "lie-em with both constraint levels at the end of the step"
    requires = (
        FRAMES,
        TURNING,
        FIXED_CONSTRAINTS,
        Requirement("quadratic_constraints", "constraints that are at most quadratic in the coordinates"),
    )
    body = GGLBody
    both_levels = True

    def pull(self, e: ElementEnergies, q: Any, v_m: Any, gam: Any, h: Any) -> Any:
        return e.G(q + h / 2 * v_m, 0).T @ gam

    def hidden(self, e: ElementEnergies, q: Any, v_m: Any, v: Any, v1: Any, gam: Any, h: Any) -> tuple[Any, Any]:
        bent = hessian_terms(e, q + h / 2 * v_m, (v + v1) / 2, gam)
        return h * bent, velocity_constraints(e, q + h * v_m, v1)
