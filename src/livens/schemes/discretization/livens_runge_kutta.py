"""Runge-Kutta methods and partitioned pairs on mechanical systems in Livens form (q, v, p).

With independent positions, velocities and momenta, a method for coordinates and another for momenta is::

    Q_i = q0 + h sum_j a_ij V_j          P_i = dT/dv(Q_i, V_i) = p0 + h sum_j abar_ij F_j
    q1  = q0 + h sum_j b_j V_j           p1  = dT/dv(q1, v1)   = p0 + h sum_j b_j F_j
    F_j = dL/dq(Q_j, V_j) - dR/dv(Q_j, V_j) + F(Q_j, V_j) - G(Q_j)^T L_j

No mass matrix is inverted. The stages are eliminated as in `livens.schemes.discretization.stage_elimination`; the
derivation is in docs/theory/runge-kutta.md.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import casadi as ca
import numpy as np

from livens.models.system import System
from livens.schemes.discretization.collocation import (
    embedded_error_weights,
    lagrange_basis,
    lagrange_integrals,
    linear_combination,
    stage_extrapolation_matrix,
)
from livens.schemes.discretization.element_scheme import (
    ElementContribution,
    ElementFunctions,
    ElementScheme,
    MechanicalState,
)
from livens.schemes.discretization.stage_elimination import StageElimination, weighted_sum
from livens.types import Expr


def total_force(e: ElementFunctions, q: Expr, v: Expr, t: Expr) -> Expr:
    """Return ``dL/dq - dR/dv + F``: all forces except constraint forces."""
    return e.T_q(q, v) - e.V_q(q, t) - e.R_v(q, v, t) + e.F(q, v, t)


def powers(e: ElementFunctions, q: Expr, v: Expr, lam: Expr, t: Expr) -> tuple[Expr, Expr]:
    """Return the power of forces, time-dependent potentials and rheonomic constraints, and the dissipated power."""
    supplied = ca.dot(e.F(q, v, t), v) + e.V_t(q, t) + ca.dot(lam, e.g_t(q, t))
    return supplied, ca.dot(e.R_v(q, v, t), v)


def velocity_constraint(e: ElementFunctions, q: Expr, v: Expr, t: Expr) -> Expr:
    """Return the hidden constraint ``d/dt g = G v + dg/dt``."""
    return e.G(q, t) @ v + e.g_t(q, t)


def has_constant_momentum_map(system: System) -> bool:
    """Return True if ``p = M v`` with constant M: sums of momenta are momenta of sums."""
    return system.constant_mass and system.separable


class LivensStages(ElementScheme):
    """Base class of Livens-form stages; the initial guess of all stage multipliers is the previous multiplier."""

    def initial_multiplier_guess(self, name: str, lam: Expr) -> Expr:
        return lam

    def positions(self, old: MechanicalState, x: SimpleNamespace, h: Expr) -> list[Expr]:
        """Return the stage positions ``Q_i``."""
        raise NotImplementedError

    def velocity_increments(self, x: SimpleNamespace) -> list[Expr]:
        """Return the velocity increments ``V_i - v0`` of the stages."""
        raise NotImplementedError

    def named_values(self, old: MechanicalState, x: SimpleNamespace, h: Expr) -> dict[str, Expr]:
        """Return positions and velocities of the stages by name; the stage multipliers are unknowns."""
        stages = zip(self.positions(old, x, h), self.velocity_increments(x), strict=True)
        return {
            f"{name}{i + 1}": value for i, (Q, V) in enumerate(stages) for name, value in (("Q", Q), ("V", old.v + V))
        }


class PartitionedLivensRK(LivensStages):
    """Runge-Kutta method or pair in Livens form with its stage elimination; subclasses add constraints."""

    order, symplectic, symmetric, conserves = 0, False, False, ()  # defined by the scheme that uses this class
    summary = source = ""
    multipliers: tuple[str, ...] = ()

    def __init__(self, elimination: StageElimination) -> None:
        self.elimination = elimination
        w = elimination.final_velocity_weights
        self.unknowns = elimination.unknowns if w is not None else (*elimination.unknowns, "v1")

    # -- stages -------------------------------------------------------------------------------------------------------
    def velocity_increments(self, x: SimpleNamespace) -> list[Expr]:
        """Return ``V_i - v0``."""
        u = self._stage_unknowns(x)
        return [weighted_sum(row, u, 0 * u[0]) for row in self.elimination.S]

    def velocities(self, old: MechanicalState, x: SimpleNamespace) -> list[Expr]:
        """Return the stage velocities ``V_i``."""
        return [old.v + increment for increment in self.velocity_increments(x)]

    def positions(self, old: MechanicalState, x: SimpleNamespace, h: Expr) -> list[Expr]:
        """Return the stage positions ``Q_i``."""
        r, u = self.elimination, self._stage_unknowns(x)
        return [
            old.q + h * weighted_sum(r.R[i], u, r.row_sums[i] * old.v) if r.row_sums[i] or r.R[i].any() else old.q
            for i in range(r.s)
        ]

    def stage_multipliers(self, e: ElementFunctions, x: SimpleNamespace) -> list[Expr]:
        """Return the stage multipliers ``L_i``; zero without constraints."""
        return [ca.SX(e.m, 1)] * self.elimination.s

    def _stage_unknowns(self, x: SimpleNamespace) -> list[Expr]:
        return [getattr(x, name) for name in self.elimination.unknowns]

    # -- discretization -----------------------------------------------------------------------------------------------
    def initial_guess(self, old: MechanicalState, h: Expr) -> list[Expr]:
        return [0 * old.v] * len(self.unknowns)

    def kinematic_update(self, old: MechanicalState, x: SimpleNamespace, h: Expr) -> tuple[Expr, Expr]:
        r = self.elimination
        q1 = old.q + h * weighted_sum(r.e, self._stage_unknowns(x), old.v)
        if r.final_velocity_weights is None:
            return q1, old.v + x.v1
        return q1, weighted_sum(r.final_velocity_weights, self.velocity_increments(x), old.v)

    def nodal_residual(self, old: MechanicalState, x: SimpleNamespace, h: Expr) -> list[Expr]:
        r = self.elimination
        residual = [0 * old.p if r.constant_mass else -float(w.sum()) * old.p for w in r.W]
        if not r.constant_mass:
            residual += [-float(n.sum()) * old.p for n in r.N]
        if r.final_velocity_weights is None:
            residual.append(0 * old.p if r.constant_mass else -old.p)
        return residual + [0 * old.p] * (len(self.unknowns) - len(residual))

    def nodal_momentum(self, old: MechanicalState, x: SimpleNamespace, h: Expr) -> Expr:
        return 0 * old.p

    def element_contribution(
        self, e: ElementFunctions, old: MechanicalState, new: MechanicalState, x: SimpleNamespace, h: Expr, t: Expr
    ) -> ElementContribution:
        r, times = self.elimination, self.times(t, h)
        Q, V, L = self.positions(old, x, h), self.velocities(old, x), self.stage_multipliers(e, x)
        F = [total_force(e, Q[i], V[i], times[i]) - e.G(Q[i], times[i]).T @ L[i] for i in range(r.s)]
        undetermined_forces, zero = [F[i] for i in r.undetermined_forces], ca.SX(e.n, 1)
        P = [self._momentum(e, Q[i], V[i], old.v) for i in range(r.s)]
        force_stage_momenta = [P[i] for i in r.force_stages]
        residuals = [
            weighted_sum(r.W[k], force_stage_momenta, zero) - h * weighted_sum(r.X[k], undetermined_forces, F[stage])
            for k, stage in enumerate(r.force_stages)
        ]
        if not r.constant_mass:
            residuals += [weighted_sum(n, P, zero) for n in r.N]
        if r.final_velocity_weights is None:
            # P_core is small for constant M; otherwise the increment of p0 is a sum of forces, which is small
            if r.constant_mass:
                momentum_increment = weighted_sum(
                    r.d, force_stage_momenta, h * weighted_sum(r.f, undetermined_forces, zero)
                )
            else:
                momentum_increment = h * weighted_sum(r.b, F, zero)
            residuals.append(self._momentum(e, new.q, new.v, old.v) - momentum_increment)
        work = [powers(e, Q[i], V[i], L[i], times[i]) for i in range(r.s)]
        contribution = ElementContribution(
            residuals=residuals,
            constraint_residuals=[],
            momentum=e.T_v(new.q, new.v),
            supplied_work=h * weighted_sum(r.b, [supplied for supplied, _ in work], 0.0),
            dissipated_work=h * weighted_sum(r.b, [dissipated for _, dissipated in work], 0.0),
        )
        self.add_constraints(contribution, e, SimpleNamespace(Q=Q, V=V, L=L, t=times, q1=new.q, v1=new.v, h=h), x)
        return contribution

    def _momentum(self, e: ElementFunctions, q: Expr, v: Expr, v0: Expr) -> Expr:
        """Return ``dT/dv``, minus p0 for constant M, which reduces round-off."""
        return e.T_v(q, v - v0) - e.T_v(q, 0 * v0) if self.elimination.constant_mass else e.T_v(q, v)

    def add_constraints(
        self, contribution: ElementContribution, e: ElementFunctions, stages: SimpleNamespace, x: SimpleNamespace
    ) -> None:
        """Add the constraint residuals to the contribution."""

    @property
    def linear_predictor(self) -> np.ndarray:
        r = self.elimination
        weights = np.zeros((len(r.position_stages), len(self.unknowns)))
        later_stages = [
            i for i, stage in enumerate(r.position_stages) if r.row_sums[stage]
        ]  # c = 0 is the initial state
        velocity_increment = np.zeros(len(self.unknowns))  # v1 - v0
        if r.final_velocity_weights is None:
            velocity_increment[self.unknowns.index("v1")] = 1.0
        else:
            velocity_increment[: r.S.shape[1]] = r.final_velocity_weights @ r.S
        deviations = np.vstack([np.eye(len(self.unknowns))[later_stages], velocity_increment])
        weights[later_stages] = stage_extrapolation_matrix(r.row_sums[r.position_stages][later_stages]) @ deviations
        return weights

    def times(self, t: Expr, h: Expr) -> list[Expr]:
        return [t if c == 0 else t + (h if c == 1 else c * h) for c in self.elimination.c]

    # -- dense output and error estimate ------------------------------------------------------------------------------
    def dense_output(self, old: MechanicalState, x: SimpleNamespace, h: Expr, theta: Expr) -> tuple[Expr, Expr]:
        """Return the dense output.

        Positions are the integral of the polynomial through all V_i. Velocities are on the polynomial through v0, v1
        and the V_i of interior nodes.
        """
        r, V = self.elimination, self.velocities(old, x)
        q = old.q + h * linear_combination(lagrange_integrals(r.c, theta), V)
        interior = [i for i in range(r.s) if 1e-9 < r.c[i] < 1 - 1e-9]
        nodes = np.array([0.0, *r.c[interior], 1.0])
        values = [old.v, *(V[i] for i in interior), self.kinematic_update(old, x, h)[1]]
        return q, linear_combination(lagrange_basis(nodes, theta), values)

    def error_estimate(self, old: MechanicalState, x: Any, h: Any) -> Expr:
        """Return the embedded error estimate with the initial velocity as initial derivative; the weights sum to 0."""
        r = self.elimination
        return h * linear_combination(
            embedded_error_weights(r.c, r.b, bool(r.A_p[0].any()))[1:], self.velocity_increments(x)
        )


class ConstrainedLivensRK(PartitionedLivensRK):
    """Livens-form stages with ``g(Q_i) = 0`` at all stages (index 3), for stiffly accurate methods."""

    def __init__(self, elimination: StageElimination) -> None:
        super().__init__(elimination)
        self.multipliers = tuple(f"L{i + 1}" for i in range(elimination.s))

    def error_estimate(self, old: MechanicalState, x: Any, h: Any) -> Expr:
        """Return the embedded error estimate; with a first stage at the initial time, ``q0 - Q_1``.

        The initial velocity v0 violates ``G v = 0`` by an amount that depends on the size of the previous step. A
        difference of v0 and a velocity at the same time would be of the size of that violation. The sum of the weights
        ``a_1j`` is zero: ``b_j - a_1j`` is an embedded formula of order s - 1 that does not contain v0.
        """
        r = self.elimination
        if r.c[0] != 0 or not r.A[0].any():
            return super().error_estimate(old, x, h)
        return -h * linear_combination(r.A[0], self.velocity_increments(x))

    def stage_multipliers(self, e: ElementFunctions, x: SimpleNamespace) -> list[Expr]:
        return [getattr(x, name) for name in self.multipliers]

    def add_constraints(
        self, contribution: ElementContribution, e: ElementFunctions, stages: SimpleNamespace, x: SimpleNamespace
    ) -> None:
        # divided by h: of the size of a velocity, like the other unknowns
        contribution.constraint_residuals = [e.g(q, t) / stages.h for q, t in zip(stages.Q, stages.t, strict=True)]

    def reported_multipliers(self, x: SimpleNamespace, old_multipliers: Expr) -> Expr:
        """Return the multipliers of the last stage, which is the final state."""
        return getattr(x, self.multipliers[-1])
