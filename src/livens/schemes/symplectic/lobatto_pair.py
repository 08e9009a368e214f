"""Lobatto IIIA-IIIB pair (J-PRK), RATTLE and SHAKE."""

from __future__ import annotations

from collections.abc import Collection
from types import SimpleNamespace
from typing import Any, ClassVar

import casadi as ca

from livens import tableaus
from livens.schemes.core.scheme import Requirement, Scheme
from livens.schemes.core.step_equations import StepEquations
from livens.schemes.discretization.element_scheme import (
    ElementContribution,
    ElementFunctions,
    ElementScheme,
    MechanicalState,
)
from livens.schemes.discretization.element_step import ElementEquations
from livens.schemes.discretization.livens_runge_kutta import (
    PartitionedLivensRK,
    has_constant_momentum_map,
    powers,
    total_force,
    velocity_constraint,
)
from livens.schemes.discretization.partitioned_rk import (
    constrained_lobatto_stages,
    partitioned_first_order_stages,
    partitioned_hamiltonian_stages,
)
from livens.schemes.discretization.stage_elimination import StageElimination
from livens.types import Expr

#: The reason is given in docs/theory/runge-kutta.md.
REGULAR_MASS = Requirement(
    "regular_mass",
    "a regular mass matrix (for singular mass the last constraint force and the velocity at the end of a step are "
    "undetermined)",
)


class LobattoPair(Scheme):
    """J-PRK, Symank 2025, def. 6.2, in Livens form: order 2s - 2, symplectic, on constraints and hidden constraints::

        Q_i = q0 + h sum_j a_ij V_j           dT/dv(Q_i, V_i) = p0 + h sum_j abar_ij F_j
        q1  = Q_s                             dT/dv(q1, v1)   = p0 + h sum_j b_j F_j
        0   = g(Q_i), i = 2 .. s              0 = G(q1) v1

    with a of Lobatto IIIA and abar of IIIB; every F_j has a multiplier L_j. As ``abar_is = 0``, the last multiplier
    enters p1 only. The reported multipliers are those of the accelerations at t + h.

    On a Hamiltonian H(q, p) with constraints (`livens.ConstrainedHamiltonian`) ``V_j = dH/dp(Q_j, P_j)``. On a
    partitioned first-order model (Symank 2025, def. 6.1) the first method is for the first part.
    """

    family = "lobatto-iiia-iiib-<s>"
    aliases = ("J-PRK-<s>",)
    member_aliases: ClassVar[dict[str, tuple[Any, ...]]] = {"J-PRK": (3,)}
    group = "Symplectic schemes for systems with constraints"
    examples: ClassVar[tuple[tuple[Any, ...], ...]] = ((2,), (3,), (4,))
    symplectic = symmetric = True
    conserves = ("constraint", "velocity_constraint", "momentum_maps")
    summary, source = "Lobatto IIIA on positions, IIIB on momenta (J-PRK)", "Symank 2025, def. 6.2"
    when_to_use = "Order 4 and more with constraints, symplectic, both constraint levels exact."
    when_to_avoid = (
        "The mass matrix is singular, or the forces are stiff and damped: use `livens-em` or `radau-iia-<s>`."
    )
    formulations = ("elements", "phase space", "partitioned", "constrained phase space")
    requires = (REGULAR_MASS,)

    def __init__(self, s: int) -> None:
        self.pair = tableaus.lobatto_iiia_iiib(s)
        self.name = type(self).family.replace("<s>", str(s))
        self.order, self.error_order = self.pair.order, s - s % 2  # symmetric, so even

    def unmet_requirements(self, model: Any) -> list[str]:
        """Return the unmet requirements; a Hamiltonian meets all, as its momenta determine the velocities."""
        if "constrained phase space" in model.formulations:
            return (
                []
                if model.formulation == "index-3"
                else ["the formulation 'index-3': the scheme enforces hidden constraints"]
            )
        meets_all = _is_hamiltonian(model) or "partitioned" in model.formulations
        return self._unsupported_external_force(model) if meets_all else super().unmet_requirements(model)

    def equations(self, model: Any, removed_constraints: Collection[int] = ()) -> StepEquations:
        x, y = self.pair.q, self.pair.p
        if _is_hamiltonian(model):
            return partitioned_hamiltonian_stages(model, self.pair, self.error_order)
        if "partitioned" in model.formulations:
            return partitioned_first_order_stages(model, self.pair, self.error_order)
        if "constrained phase space" in model.formulations:
            return constrained_lobatto_stages(model, self.pair, self.error_order)
        elimination = StageElimination(x.A, y.A, x.b, x.c, has_constant_momentum_map(model))
        stage_scheme = _JPRKStages(elimination, constrained=bool(model.m))
        stage_scheme.error_order = self.error_order
        return ElementEquations(model, stage_scheme, tuple(removed_constraints))


def _is_hamiltonian(model: Any) -> bool:
    return "phase space" in model.formulations and "elements" not in model.formulations


class _JPRKStages(PartitionedLivensRK):
    """J-PRK stages; the accelerations a at t + h are additional unknowns, for the reported multipliers."""

    def __init__(self, elimination: StageElimination, constrained: bool) -> None:
        super().__init__(elimination)
        if constrained:
            self.unknowns = (*self.unknowns, "a")
            self.multipliers = (*(f"L{i + 1}" for i in range(elimination.s)), "lam")

    def stage_multipliers(self, e: ElementFunctions, x: SimpleNamespace) -> list[Expr]:
        return [getattr(x, name) for name in self.multipliers[:-1]] or super().stage_multipliers(e, x)

    def add_constraints(
        self, contribution: ElementContribution, e: ElementFunctions, stages: SimpleNamespace, x: SimpleNamespace
    ) -> None:
        if not self.multipliers:
            return
        q1, v1, t1, h = stages.q1, stages.v1, stages.t[-1], stages.h
        momentum_rate, g_ddot = momentum_rate_and_gddot(e, q1, v1, x.a, t1)
        balance = momentum_rate - total_force(e, q1, v1, t1) + e.G(q1, t1).T @ x.lam
        contribution.residuals = [*contribution.residuals, h * balance]
        contribution.constraint_residuals = [
            *(e.g(q, t) / h for q, t in zip(stages.Q[1:], stages.t[1:], strict=True)),
            velocity_constraint(e, q1, v1, t1),
            h * g_ddot,
        ]

    def reported_multipliers(self, x: SimpleNamespace, old_multipliers: Expr) -> Expr:
        return x.lam

    def error_estimate(self, old: MechanicalState, x: Any, h: Any) -> Expr:
        """Return the error estimate: velocities at both ends minus those of the first and the last stage."""
        increments = self.velocity_increments(x)
        return h * self.elimination.b[0] * (x.v1 - increments[0] - increments[-1])


def momentum_rate_and_gddot(e: ElementFunctions, q: Expr, v: Expr, a: Expr, t: Expr) -> tuple[Expr, Expr]:
    """Return ``d/dt dT/dv`` and ``d^2/dt^2 g`` for these positions, velocities and accelerations."""
    m, acceleration = e.model, ca.SX.sym("a", e.n)

    def total_derivative(f: Expr) -> Expr:
        return ca.jtimes(f, m.q, m.v) + ca.jtimes(f, m.v, acceleration) + ca.jacobian(f, m.t)

    hidden = total_derivative(m.g) if e.m else m.g
    outputs = [total_derivative(ca.gradient(m.T, m.v)), total_derivative(hidden) if e.m else m.g]
    momentum_rate, gddot = ca.Function("rates", [m.q, m.v, acceleration, m.t, m.k], outputs)(q, v, a, t, e.k)
    return momentum_rate, gddot


class Rattle(ElementScheme):
    """RATTLE, the J-PRK pair with s = 2 for a kinetic energy that depends on v only (Symank 2025, sect. 6.2)::

        M v  = p0 + h/2 F(q0, v) - h/2 G(q0)^T lam          q1 = q0 + h v,  0 = g(q1)
        M v1 = M v + h/2 F(q1, v) - h/2 G(q1)^T mu          0 = G(q1) v1

    The implementation is independent and serves as a check of the general discretization.
    """

    name = "rattle"
    group = "Symplectic schemes for systems with constraints"
    order = 2
    symplectic = symmetric = True
    conserves: tuple[str, ...] = ("constraint", "velocity_constraint", "momentum_maps")
    summary, source = "RATTLE: half steps with multipliers for positions, then for velocities", "Symank 2025, sect. 6.2"
    when_to_use = (
        "Constant mass, constraints, velocities on the constraints: the classical choice of molecular dynamics."
    )
    when_to_avoid = "Forces are stiff, or the mass matrix is singular: use `livens-em`."
    requires = (REGULAR_MASS, Requirement("separable", "a kinetic energy of velocities alone"))
    unknowns = ("v", "v1")
    multipliers: tuple[str, ...] = ("lam", "mu")
    error_order, estimates_error_by_doubling = 2, True

    def initial_guess(self, old: MechanicalState, h: Expr) -> list[Expr]:
        return [old.v, old.v]

    def kinematic_update(self, old: MechanicalState, x: SimpleNamespace, h: Expr) -> tuple[Expr, Expr]:
        return old.q + h * x.v, x.v1

    def nodal_residual(self, old: MechanicalState, x: Any, h: Expr) -> list[Expr]:
        return [-old.p, 0 * old.p]

    def nodal_momentum(self, old: MechanicalState, x: SimpleNamespace, h: Expr) -> Expr:
        return 0 * old.p

    def element_contribution(
        self, e: ElementFunctions, old: MechanicalState, new: MechanicalState, x: SimpleNamespace, h: Expr, t: Expr
    ) -> ElementContribution:
        end_points = (old.q, x.lam, t), (new.q, self._end_multipliers(e, x), t + h)
        force_0, force_1 = (total_force(e, q, x.v, time) - e.G(q, time).T @ L for q, L, time in end_points)
        work = [powers(e, q, x.v, L, time) for q, L, time in end_points]
        p, p1 = e.T_v(new.q, x.v), e.T_v(new.q, new.v)
        return ElementContribution(
            residuals=[p - h / 2 * force_0, p1 - p - h / 2 * force_1],
            constraint_residuals=self._constraints(e, new, t + h, h),
            momentum=p1,
            supplied_work=h / 2 * (work[0][0] + work[1][0]),
            dissipated_work=h / 2 * (work[0][1] + work[1][1]),
        )

    def _end_multipliers(self, e: ElementFunctions, x: SimpleNamespace) -> Expr:
        """Return the multipliers at t + h."""
        return x.mu

    def _constraints(self, e: ElementFunctions, new: MechanicalState, t: Expr, h: Expr) -> list[Expr]:
        return [e.g(new.q, t) / h, velocity_constraint(e, new.q, new.v, t)]

    def reported_multipliers(self, x: SimpleNamespace, old_multipliers: Expr) -> Expr:
        """Return the mean of both multipliers, which act on half a step each; second order at the midpoint."""
        return (x.lam + x.mu) / 2


class Shake(Rattle):
    """SHAKE: RATTLE without its last multipliers, so that the velocity violates the hidden constraints.

    The positions are those of RATTLE: the defect of p1 is normal to the constraints and is compensated by the
    multiplier of the next step. The velocities are of first order.
    """

    name = "shake"
    symmetric = False
    conserves = ("constraint", "momentum_maps")
    summary, source = "SHAKE: positions of RATTLE, velocities not on the constraints", "Symank 2025, sect. 6.2"
    when_to_use = "Positions are all you need, at the least cost per step."
    when_to_avoid = "You use the velocities: use `rattle`."
    multipliers = ("lam",)

    def _end_multipliers(self, e: ElementFunctions, x: SimpleNamespace) -> Expr:
        return ca.SX(e.m, 1)

    def _constraints(self, e: ElementFunctions, new: MechanicalState, t: Expr, h: Expr) -> list[Expr]:
        return [e.g(new.q, t) / h]

    def reported_multipliers(self, x: SimpleNamespace, old_multipliers: Expr) -> Expr:
        """Return half the multiplier: it acts on half a step, but represents the interval between two midpoints."""
        return x.lam / 2
