"""Base class of one-step schemes with the midpoint velocity as unknown."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from livens.schemes.discretization.element_scheme import ElementScheme, MechanicalState
from livens.schemes.discretization.unit_quaternion import free_rotation_guess
from livens.types import Expr


class MidpointVelocity(ElementScheme):
    """Schemes with ``q1 - q0 = h v_m``, ``v_m = (v0 + v1)/2`` and a discrete fibre derivative for ``p_m``.

    Unknowns are v_m and lam. Positions and velocities follow from the two relations above, the momenta from
    ``p1 = 2 p_m - p0``; the equation to be solved is the momentum balance with ``p1 - p0 = 2 p_m - 2 p0``. With q1 as
    the unknown, ``v1 = 2/h (q1 - q0) - v0`` would amplify round-off by 2/h.
    """

    unknowns = ("v_m",)
    multipliers = ("lam",)
    momentum_block = "v_m"
    error_order, estimates_error_by_doubling = 2, True

    def initial_guess(self, old: MechanicalState, h: Expr) -> list[Expr]:
        return [old.v]

    def initial_quaternion_guess(self, old: MechanicalState, h: Expr) -> list[Expr] | None:
        return [free_rotation_guess(old.q, old.v, h)]

    def kinematic_update(self, old: MechanicalState, x: SimpleNamespace, h: Expr) -> tuple[Expr, Expr]:
        return old.q + h * x.v_m, 2 * x.v_m - old.v

    def nodal_residual(self, old: MechanicalState, x: Any, h: Expr) -> list[Expr]:
        return [-2 * old.p]

    def nodal_momentum(self, old: MechanicalState, x: SimpleNamespace, h: Expr) -> Expr:
        return -old.p
