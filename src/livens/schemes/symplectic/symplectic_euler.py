"""Symplectic Euler method, also for constrained systems."""

from __future__ import annotations

from collections.abc import Collection
from types import SimpleNamespace
from typing import Any

import casadi as ca

from livens.schemes.core.scheme import Requirement
from livens.schemes.core.step_equations import StepEquations
from livens.schemes.discretization.element_scheme import (
    ElementContribution,
    ElementFunctions,
    ElementScheme,
    MechanicalState,
)
from livens.schemes.symplectic.variational import Variational
from livens.types import Expr


class SymplecticEuler(ElementScheme):
    """Variational integrator of the discrete Lagrangian ``h L(q0, (q1-q0)/h)``; Kinon et al. 2023, (41) with gam = 0::

        q1 - q0 = h v
        p1 - p0 = h D_1 L(q0, v) - h G(q0)^T lam + h F(q0, v)
        p1      = D_2 L(q0, v)
        0       = g(q1)

    The unknown velocity v is that of the interval; it is reported as the velocity at t + h. On models in Hamiltonian
    form, and where the step is explicit, this is `variational:0`: a kick, then a drift.
    """

    name = "symplectic-euler"
    group = "Symplectic schemes for systems with constraints"
    order = 1
    symplectic = True
    symmetric = False
    conserves = ("constraint", "momentum_maps")
    summary = "symplectic Euler, constraints on position level (index 3)"
    source = "Kinon et al. 2023, (41) with gam = 0, Modin 2009, 2.6.4"
    when_to_use = "Teaching, and long runs in which order 1 suffices."
    when_to_avoid = "You need accuracy: use `livens-variational` or `lobatto-iiia-iiib-<s>`."
    requires = (Requirement("mass_or_damping_regular_on_nullspace", "mass or damping on the null space of G"),)
    unknowns = ("v",)
    multipliers = ("lam",)
    formulations = ("elements", "phase space")

    def unmet_requirements(self, model: Any) -> list[str]:
        """Return the unmet requirements; a Hamiltonian meets all, as its momenta determine the velocities."""
        return (
            super().unmet_requirements(model)
            if "elements" in model.formulations
            else Variational(0.0).unmet_requirements(model)
        )

    def equations(self, model: Any, removed_constraints: Collection[int] = ()) -> StepEquations:
        variational = Variational(0.0)
        if "elements" not in model.formulations or (
            not model.m and not variational.unmet_requirements(model) and variational.is_explicit(model)
        ):
            return variational.equations(model)
        return super().equations(model, removed_constraints)

    def initial_guess(self, old: MechanicalState, h: Expr) -> list[Expr]:
        return [old.v]

    def kinematic_update(self, old: MechanicalState, x: SimpleNamespace, h: Expr) -> tuple[Expr, Expr]:
        return old.q + h * x.v, x.v

    def nodal_residual(self, old: MechanicalState, x: Any, h: Expr) -> list[Expr]:
        return [-old.p]

    def nodal_momentum(self, old: MechanicalState, x: SimpleNamespace, h: Expr) -> Expr:
        return 0 * old.p

    def element_contribution(
        self, e: ElementFunctions, old: MechanicalState, new: MechanicalState, x: SimpleNamespace, h: Expr, t: Expr
    ) -> ElementContribution:
        F, R_v = e.F(old.q, x.v, t), e.R_v(old.q, x.v, t)
        force = e.T_q(old.q, x.v) - e.V_q(old.q, t) - e.G(old.q, t).T @ x.lam + F - R_v
        p1 = e.T_v(old.q, x.v)
        return ElementContribution(
            residuals=[p1 - h * force],
            constraint_residuals=[e.g(new.q, t + h) / h],
            momentum=p1,
            supplied_work=h * (ca.dot(F, x.v) + e.V_t(old.q, t) + ca.dot(x.lam, e.g_t(old.q, t))),
            dissipated_work=h * ca.dot(R_v, x.v),
        )
