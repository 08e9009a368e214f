"""Energy-momentum scheme for rigid bodies with body angular momenta."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from livens.models.system import System
from livens.schemes.core.scheme import Requirement, Scheme
from livens.schemes.core.step_equations import StepEquations
from livens.schemes.discretization.midpoint_external_force import MidpointForceEquations
from livens.schemes.discretization.rigid_body_equations import (
    BODY_ANGULAR_MOMENTA,
    RigidBodyEquations,
    body_angular_momenta,
    body_angular_momenta_expression,
)
from livens.schemes.discretization.rigid_body_kernels import RigidBodyScheme
from livens.schemes.discretization.rigid_body_step import LieGroupStep, RigidBodyStep
from livens.schemes.discretization.rotor import RotorStep, check_rotors
from livens.schemes.energy_momentum.livens_em import LivensEM
from livens.types import Expr, FloatArray

DIRECTOR_BODIES = Requirement("has_frames", "rigid bodies in director coordinates (frames=True)")
REGULAR_INERTIA = Requirement("has_regular_inertia", "bodies whose principal moments of inertia are all positive")


class LieEM(RigidBodyScheme, Scheme):
    """Energy-momentum scheme with six unknowns per body (three in the plane)::

        q1 - q0  = h (u, w x dm_i)
        p1 - p0  = h F,          (p0 + p1)/2 = m u
        l1 - l0  = h tau,        w = Rm J^-1 (Pi0 + Pi1)/2,    l = R Pi,    tau = sum dm_i x F_i
        0        = g(q1)

    F and F_i are the discrete gradients of `livens-em` on centre and directors. As forces act at the midpoint positions
    of their points, which move with the body, energy, linear and angular momentum are conserved exactly. This holds for
    all joints at most quadratic in the directors and all potentials of invariants.
    """

    name = "lie-em"
    group = "Energy-momentum and midpoint schemes"
    order = 2
    symplectic = False
    symmetric = True
    conserves: tuple[str, ...] = ("generalized_energy", "constraint")
    summary = "energy-momentum scheme for rigid bodies: rotations by a Cayley map, body angular momenta"
    source = "docs/howto/build-mechanisms.md"
    when_to_use = "Mechanisms of rigid bodies, with joints, contact, beams and controllers: the default of `Multibody`."
    when_to_avoid = "The model has no rigid bodies in director coordinates: use `livens-em`."
    requires: tuple[Requirement, ...] = (DIRECTOR_BODIES, REGULAR_INERTIA)
    body_step = LieGroupStep
    rotor_step: type[RigidBodyStep] | None = RotorStep
    supports_velocity_constraints = True
    supports_sampled_control = True
    steps_on_trees = True
    external_force_at_midpoint = True
    error_order, estimates_error_by_doubling = 2, True

    def force_scheme(self) -> LivensEM:
        return LivensEM()

    def equations(self, model: System, removed_constraints: Collection[int] = ()) -> StepEquations:
        if model.external_force is not None:
            return MidpointForceEquations(model, lambda symbolic: self.equations(symbolic, removed_constraints))
        return RigidBodyEquations(model, self, tuple(removed_constraints))

    def initial_scheme_state(
        self, model: System, values: Mapping[str, FloatArray], k: FloatArray, t: float, h: float
    ) -> dict[str, Any]:
        body_momenta = body_angular_momenta(model, values["q"], values["p"])
        check_rotors(model, body_momenta, k, h)
        return {BODY_ANGULAR_MOMENTA: body_momenta} if body_momenta.size else {}

    def symbolic_scheme_state(self, model: Any, q: Expr, p: Expr, k: Expr, t: float, h: float) -> dict[str, Any]:
        body_momenta = body_angular_momenta_expression(model, q, p)
        return {BODY_ANGULAR_MOMENTA: body_momenta} if body_momenta.numel() else {}
