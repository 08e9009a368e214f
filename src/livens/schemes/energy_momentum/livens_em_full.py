"""Energy-momentum scheme with (q, v, p) as unknowns, as in the paper."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import casadi as ca

from livens.schemes.discretization.element_scheme import ElementContribution, ElementFunctions, MechanicalState
from livens.schemes.discretization.unit_quaternion import free_rotation_guess
from livens.schemes.energy_momentum.base import EnergyMomentum
from livens.schemes.energy_momentum.livens_em import LivensEM
from livens.types import Expr


class LivensEMFull(EnergyMomentum):
    """`livens-em` without any elimination, Kinon and Betsch 2024, (72): unknowns are ``(q1-q0)/h``, v1, p1 and lam.

    The trajectory is the same. The scheme shows the effect of the elimination of v1 and p1 (Kinon and Betsch 2024,
    Fig. 9).
    """

    name = "livens-em-full"
    group = "Energy-momentum and midpoint schemes"
    order = 2
    symplectic = False
    symmetric = True
    conserves = ("generalized_energy", "constraint")
    summary = "energy-momentum scheme on Livens' principle, nothing eliminated"
    source = "Kinon and Betsch 2024, (72)"
    when_to_use = "You study the elimination of velocities and momenta; the trajectory is that of `livens-em`."
    when_to_avoid = "You want a fast run: use `livens-em`."
    unknowns = ("v_m", "v1", "p1")
    multipliers = ("lam",)
    momentum_block = "v1"  # the momentum balance is the second equation

    def initial_guess(self, old: MechanicalState, h: Expr) -> list[Expr]:
        return [old.v, old.v, old.p]

    def initial_quaternion_guess(self, old: MechanicalState, h: Expr) -> list[Expr]:
        v_m = free_rotation_guess(old.q, old.v, h)
        return [v_m, v_m, old.p]

    def refine_guess(self, x: SimpleNamespace, r: SimpleNamespace) -> dict[str, Expr] | dict[str, ca.DM]:
        """Return the p1 of the third equation, which is linear in p1, for the guessed velocities."""
        return {"p1": x.p1 + r.p1}

    def kinematic_update(self, old: MechanicalState, x: SimpleNamespace, h: Expr) -> tuple[Expr, Expr]:
        return old.q + h * x.v_m, x.v1

    def nodal_residual(self, old: MechanicalState, x: Any, h: Expr) -> list[Expr]:
        return [x.v_m - (old.v + x.v1) / 2, x.p1 - old.p, -(old.p + x.p1)]

    def nodal_momentum(self, old: MechanicalState, x: SimpleNamespace, h: Expr) -> Expr:
        return x.p1

    def element_contribution(
        self, e: ElementFunctions, old: MechanicalState, new: MechanicalState, x: SimpleNamespace, h: Expr, t: Expr
    ) -> ElementContribution:
        contribution = LivensEM(self.gradient).element_contribution(e, old, new, x, h, t)
        two_p_m = contribution.momentum
        zeros = ca.SX(e.n, 1)
        return ElementContribution(
            residuals=[zeros, contribution.residuals[0] - two_p_m, two_p_m],
            constraint_residuals=contribution.constraint_residuals,
            momentum=zeros,
            supplied_work=contribution.supplied_work,
            dissipated_work=contribution.dissipated_work,
        )


class LivensEMReduced(LivensEM):
    """`livens-em` with v1 and p1 eliminated, Kinon and Betsch 2024, (101)-(103): unknowns are ``(q1-q0)/h`` and lam.

    This is the form in which `livens-em` is solved; the name is for comparison with `livens-em-full`.
    """

    name = "livens-em-reduced"
    aliases = ("REML",)
    summary = "energy-momentum scheme on Livens' principle, v1 and p1 eliminated (REML): the same as livens-em"
    source = "Kinon and Betsch 2024, (101)-(103)"
    when_to_use = "You reproduce published results of the reduced scheme; the trajectory is that of `livens-em`."
    when_to_avoid = "There is no reason to avoid the scheme; `livens-em` is the same."
