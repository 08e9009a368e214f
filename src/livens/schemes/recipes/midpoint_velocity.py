"""What one-step schemes with the midpoint velocity as unknown have in common."""

from __future__ import annotations

import dataclasses
from typing import Any

import casadi as ca

from livens.models.system import System
from livens.schemes.recipes.elements import ElementScheme, State
from livens.schemes.recipes.turning import chord_velocities, with_unit_multipliers
from livens.schemes.step import StepEquations


class MidpointVelocity(ElementScheme):
    """Schemes with ``q1 - q0 = h v_m``, ``v_m = (v0 + v1)/2`` and a discrete fibre derivative for ``p_m``.

    Unknowns are v_m and lam. Positions and velocities follow from the two relations above, the momenta from
    ``p1 = 2 p_m - p0``; what is left to solve is the balance of momentum with ``p1 - p0 = 2 p_m - 2 p0``. With q1 as
    the unknown, ``v1 = 2/h (q1 - q0) - v0`` would amplify round-off by 2/h.
    """

    unknowns = ("v_m",)
    multipliers = ("lam",)

    def guess(self, old: State) -> list[Any]:
        return [old.v]

    def end(self, old: State, x: Any, h: Any) -> tuple[Any, Any]:
        return old.q + h * x.v_m, 2 * x.v_m - old.v

    def rows(self, old: State, x: Any, h: Any) -> list[Any]:
        return [-2 * old.p]

    def momentum(self, old: State, x: Any, h: Any) -> Any:
        return -old.p

    def reduce(self, equations: StepEquations, system: System) -> StepEquations:
        """Nothing is eliminated, but quaternions are guessed to turn on."""
        guess = ca.vertcat(chord_velocities(equations, system), equations.guess[system.n :, :])
        return dataclasses.replace(equations, guess=with_unit_multipliers(equations, system, guess, balance=0))
