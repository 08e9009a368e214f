"""Energy-momentum scheme with the discrete null space method: three unknowns per quaternion."""

from __future__ import annotations

from typing import Any

import casadi as ca

from livens.models.system import System
from livens.schemes.base import Requirement
from livens.schemes.livens_em import LivensEM
from livens.schemes.recipes.elements import Reduction, State
from livens.schemes.recipes.turning import E, G, chord_velocity, unit_multiplier


class LivensEMNullspace(LivensEM):
    """`livens-em` for unit quaternions with the discrete null space method, S004 rem. 4.11.

    For every quaternion, the unknown is the incremental rotation vector ``theta = h w`` with

        q1 = exp(theta/2) o q0                                         (105)

    which preserves the norm. The momentum balance is multiplied by ``G(q_m)``, whose null space is spanned by q_m, the
    direction of the constraint force (104). The unit-norm multiplier is eliminated. All other unknowns and equations,
    and the trajectory, are those of `livens-em`.
    """

    name = "livens-em-nullspace"
    aliases = ("Null-EML",)
    summary = "energy-momentum scheme on Livens' principle with a discrete null space for unit quaternions (Null-EML)"
    source = "S004 rem. 4.11"
    requires = (Requirement("has_quaternions", "coordinates that are unit quaternions"),)

    balance = ""  # the unit-norm multiplier is eliminated

    def quaternion_guess(self, old: State, h: Any) -> None:
        """Return None: the initial guess is the angular velocity, see `reduce_guess` below."""

    def without_reductions(self) -> LivensEM:
        return LivensEM(self.gradient)

    def reductions(self, system: System) -> list[Reduction]:
        """Return one reduction per quaternion: angular velocity as unknown, unit-norm constraint eliminated."""
        found = []
        for number, four in zip(system.quaternion_constraints, system.quaternions, strict=True):
            turned = system.coordinates[four[0]]
            found.append(
                Reduction(
                    coordinates=tuple(four),
                    constraints=(number,),
                    size=3,
                    row_names=tuple(
                        f"balance of angular momentum about axis {axis} of the quaternion at {turned}" for axis in "123"
                    ),
                    lift=chord_velocity,
                    contract=_along_the_sphere,
                    recover=lambda q0, v, r, h: unit_multiplier(q0 + h / 2 * v, r, h),
                    start=lambda q0, v: 2 * E(q0) @ v,
                )
            )
        return found


def _along_the_sphere(q0: Any, v: Any, r: Any, h: Any) -> Any:
    """Return ``G(q_m) r / |q_m|^2``; the division excludes the spurious solution q_m = 0 (a full rotation)."""
    q_m = q0 + h / 2 * v
    return G(q_m) @ r / ca.dot(q_m, q_m)
