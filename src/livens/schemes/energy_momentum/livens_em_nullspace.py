"""Energy-momentum scheme with the discrete null space method: three unknowns per quaternion."""

from __future__ import annotations

import casadi as ca

from livens.models.system import System
from livens.schemes.core.scheme import Requirement
from livens.schemes.discretization.element_scheme import MechanicalState, NullspaceReduction
from livens.schemes.discretization.so3 import E, G
from livens.schemes.discretization.unit_quaternion import quaternion_increment_rate, unit_norm_multiplier
from livens.schemes.energy_momentum.livens_em import LivensEM
from livens.types import Expr


class LivensEMNullspace(LivensEM):
    """`livens-em` for unit quaternions with the discrete null space method, Kinon and Betsch 2024, rem. 4.11.

    For every quaternion, the unknown is the incremental rotation vector ``theta = h w`` with

        q1 = exp(theta/2) o q0                                         (105)

    which preserves the norm. The momentum balance is multiplied by ``G(q_m)``, whose null space is spanned by q_m, the
    direction of the constraint force (104). The unit-norm multiplier is eliminated. All other unknowns and equations,
    and the trajectory, are those of `livens-em`.
    """

    name = "livens-em-nullspace"
    aliases = ("Null-EML",)
    summary = "energy-momentum scheme on Livens' principle with a discrete null space for unit quaternions (Null-EML)"
    source = "Kinon and Betsch 2024, rem. 4.11"
    when_to_use = "You study discrete null spaces of unit quaternions."
    when_to_avoid = "The model has other coordinates: use `livens-em`."
    requires = (Requirement("has_quaternions", "coordinates that are unit quaternions"),)

    momentum_block = ""  # the unit-norm multiplier is eliminated

    def initial_quaternion_guess(self, old: MechanicalState, h: Expr) -> None:
        """Return None: the initial guess is the angular velocity, see `reduce_guess` below."""

    def unreduced(self) -> LivensEM:
        return LivensEM(self.gradient)

    def nullspace_reductions(self, system: System) -> list[NullspaceReduction]:
        """Return one reduction per quaternion: angular velocity as unknown, unit-norm constraint eliminated."""
        reductions = []
        for constraint, quat_dofs in zip(system.quaternion_constraints, system.quaternions, strict=True):
            coordinate = system.coordinates[quat_dofs[0]]
            reductions.append(
                NullspaceReduction(
                    coordinates=tuple(quat_dofs),
                    constraints=(constraint,),
                    size=3,
                    equation_labels=tuple(
                        f"balance of angular momentum about axis {axis} of the quaternion at {coordinate}"
                        for axis in "123"
                    ),
                    prolong=quaternion_increment_rate,
                    project_residual=_project_residual,
                    recover_multipliers=lambda q0, v, r, h: unit_norm_multiplier(q0 + h / 2 * v, r, h),
                    reduce_guess=lambda q0, v: 2 * E(q0) @ v,
                )
            )
        return reductions


def _project_residual(q0: Expr, v: Expr, r: Expr, h: Expr) -> Expr:
    """Return ``G(q_m) r / |q_m|^2``; the division excludes the spurious solution q_m = 0 (a full rotation)."""
    q_m = q0 + h / 2 * v
    return G(q_m) @ r / ca.dot(q_m, q_m)
