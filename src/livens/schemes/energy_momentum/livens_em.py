"""Energy-momentum scheme on Livens' principle (EML)."""

from __future__ import annotations

from collections.abc import Collection
from types import SimpleNamespace
from typing import Any, ClassVar

import casadi as ca

from livens.models.system import System
from livens.schemes.core.step_equations import StepEquations
from livens.schemes.discretization.element_scheme import ElementContribution, ElementFunctions, MechanicalState
from livens.schemes.discretization.midpoint_external_force import MidpointForceEquations
from livens.schemes.discretization.midpoint_velocity import MidpointVelocity
from livens.schemes.discretization.rigid_body_equations import RigidBodyEquations
from livens.schemes.discretization.rigid_body_kernels import RigidBodyScheme
from livens.schemes.discretization.rigid_body_step import DirectorStep
from livens.schemes.discretization.velocity_constraints import velocity_constraint_forces
from livens.schemes.energy_momentum.base import EnergyMomentum
from livens.schemes.gradients import DiscreteGradient
from livens.types import Expr


class LivensEM(EnergyMomentum, MidpointVelocity):
    """Energy-momentum scheme with partitioned discrete gradients (Kinon and Betsch 2023, 28; 2024, 72, 129-131)::

        q1 - q0     = h v_m
        p1 - p0     = h DG_q L - h sum_k lam_k DG g_k + h F_m
        (p0 + p1)/2 = DG_v L
        0           = g(q1)

    Velocity-level constraints are enforced at the midpoint, where their forces act and do no work. Applied forces and
    dissipation act at the midpoint: their work ``h F_m . v_m``, with that of rheonomic constraints, is exactly the
    change of the generalised energy ``p.v - L``.

    Rigid bodies in director coordinates have six unknowns each (three in the plane); the trajectory is the same.
    """

    name = "livens-em"
    aliases = ("EML",)
    group = "Energy-momentum and midpoint schemes"
    order = 2
    symplectic = False
    symmetric = True
    conserves = ("generalized_energy", "constraint")
    summary = "energy-momentum scheme on Livens' principle (EML)"
    source = "Kinon and Betsch 2023, (28), Kinon and Betsch 2024, (72)"
    when_to_use = (
        "Long runs of mechanical systems with constraints, singular or configuration-dependent mass: the default."
    )
    when_to_avoid = (
        "You need more than order 2, or the hidden constraints exactly: see `lobatto-iiia-iiib-<s>` and `ggl-em`."
    )
    supports_velocity_constraints = True
    external_force_at_midpoint = True

    def equations(self, model: System, removed_constraints: Collection[int] = ()) -> StepEquations:
        if model.external_force is not None:
            return MidpointForceEquations(model, lambda symbolic: self.equations(symbolic, removed_constraints))
        if model.frames and model.has_regular_inertia:
            return RigidBodyEquations(model, DirectorLivensEM(self), tuple(removed_constraints))
        return super().equations(model, removed_constraints)

    def element_contribution(
        self, e: ElementFunctions, old: MechanicalState, new: MechanicalState, x: SimpleNamespace, h: Expr, t: Expr
    ) -> ElementContribution:
        Dq, Dv, q_m, v_m = h * x.v_m, 2 * (x.v_m - old.v), old.q + h / 2 * x.v_m, x.v_m
        F, R_v = e.F(q_m, v_m, t + h / 2), e.R_v(q_m, v_m, t + h / 2)
        T_q, T_v = self.gradient.kinetic_gradients(e, old.q, Dq, old.v, Dv)
        V_q, dV_t = self.gradient.gradient_and_time_increment(e, e.model.V, old.q, Dq, t, h)
        force = T_q - V_q + F - R_v
        supplied = h * ca.dot(F, v_m) + dV_t
        for i in range(e.model.n_position_constraints):
            g_q, dg_t = self.gradient.gradient_and_time_increment(e, e.model.g[i], old.q, Dq, t, h)
            force -= x.lam[i] * g_q
            supplied += x.lam[i] * dg_t
        constraint_residual = e.g(new.q, t + h) / h  # divided by h: of the size of a velocity, like the other unknowns
        dissipated = h * ca.dot(R_v, v_m)
        if e.model.velocity_constraints is not None:
            reaction, work, friction_loss, constraint_residual = velocity_constraint_forces(
                e, old.q, v_m, x.lam, constraint_residual, t, h
            )
            force, supplied, dissipated = force + reaction, supplied + work, dissipated + friction_loss
        return ElementContribution(
            residuals=[2 * T_v - h * force],
            constraint_residuals=[constraint_residual],
            momentum=2 * T_v,
            supplied_work=supplied,
            dissipated_work=dissipated,
        )


class DirectorLivensEM(RigidBodyScheme):
    """`livens-em` on rigid bodies in director coordinates: momenta of directors, projected body by body."""

    body_step = DirectorStep
    stores_angular_momenta = False

    def __init__(self, scheme: LivensEM) -> None:
        self._scheme = scheme

    def force_scheme(self) -> LivensEM:
        return self._scheme


class LivensEMWithGradient(LivensEM):
    """`livens-em` with the discrete gradient of its name, as ``livens-em:mean-value``."""

    family = "livens-em:<gradient>"
    when_to_use = "You compare discrete gradients."
    when_to_avoid = "You want order 2 with every gradient: `itoh-abe` is of order 1."
    examples: ClassVar[tuple[tuple[Any, ...], ...]] = (("mean-value",), ("itoh-abe",))

    def __init__(self, gradient: DiscreteGradient | str) -> None:
        super().__init__(gradient)
        if self.name == LivensEM.name:  # explicit "gonzalez": keep the name of the look-up
            self._append_gradient_name()
