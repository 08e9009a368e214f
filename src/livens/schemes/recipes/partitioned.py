"""Runge-Kutta methods and partitioned pairs on mechanical systems in Livens form (q, v, p).

With independent positions, velocities and momenta, a method for coordinates and another for momenta is::

    Q_i = q0 + h sum_j a_ij V_j          P_i = dT/dv(Q_i, V_i) = p0 + h sum_j abar_ij F_j
    q1  = q0 + h sum_j b_j V_j           p1  = dT/dv(q1, v1)   = p0 + h sum_j b_j F_j
    F_j = dL/dq(Q_j, V_j) - dR/dv(Q_j, V_j) + F(Q_j, V_j) - G(Q_j)^T L_j

No mass matrix is inverted. The stages are eliminated as in `livens.schemes.discretization.stage_elimination`; the
derivation is in docs/runge-kutta.md.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import casadi as ca
import numpy as np

from livens.models.system import System
from livens.schemes.recipes.elements import ElementEnergies, ElementScheme, Share, State
from livens.schemes.recipes.relations import Relations, weighted
from livens.schemes.recipes.stages import (
    combined,
    estimate_weights,
    integral_weights,
    lagrange_weights,
    polynomial_onward,
)


def force(e: ElementEnergies, q: Any, v: Any, t: Any) -> Any:
    """Return ``dL/dq - dR/dv + F``: all forces except constraint forces."""
    return e.T_q(q, v) - e.V_q(q, t) - e.R_v(q, v, t) + e.F(q, v, t)


def powers(e: ElementEnergies, q: Any, v: Any, lam: Any, t: Any) -> tuple[Any, Any]:
    """Return the power of forces, time-dependent potentials and rheonomic constraints, and the dissipated power."""
    supplied = ca.dot(e.F(q, v, t), v) + e.V_t(q, t) + ca.dot(lam, e.g_t(q, t))
    return supplied, ca.dot(e.R_v(q, v, t), v)


def velocity_constraint(e: ElementEnergies, q: Any, v: Any, t: Any) -> Any:
    """Return the hidden constraint ``d/dt g = G v + dg/dt``."""
    return e.G(q, t) @ v + e.g_t(q, t)


def constant_momentum_map(system: System) -> bool:
    """Return True if ``p = M v`` with constant M: sums of momenta are momenta of sums."""
    return system.constant_mass and system.separable


class Staged(ElementScheme):
    """Base class of Livens-form stages; the initial guess of all stage multipliers is the previous multiplier."""

    def multiplier_guess(self, name: str, lam: Any) -> Any:
        return lam

    def positions(self, old: State, x: Any, h: Any) -> list[Any]:
        """Return the stage positions ``Q_i``."""
        raise NotImplementedError

    def increments(self, x: Any) -> list[Any]:
        """Return the velocity increments ``V_i - v0`` of the stages."""
        raise NotImplementedError

    def values(self, old: State, x: Any, h: Any) -> dict[str, Any]:
        """Return positions and velocities of the stages by name; the stage multipliers are unknowns."""
        stages = zip(self.positions(old, x, h), self.increments(x), strict=True)
        return {
            f"{name}{i + 1}": part for i, (Q, V) in enumerate(stages) for name, part in (("Q", Q), ("V", old.v + V))
        }


class PartitionedStages(Staged):
    """Runge-Kutta method or pair in Livens form with its stage elimination; subclasses add constraints."""

    order, symplectic, symmetric, conserves = 0, False, False, ()  # defined by the scheme that uses this class
    summary = source = ""
    multipliers: tuple[str, ...] = ()

    def __init__(self, relations: Relations) -> None:
        self.relations = relations
        w = relations.velocity_weights
        self.unknowns = relations.unknowns if w is not None else (*relations.unknowns, "v1")

    # -- stages -------------------------------------------------------------------------------------------------------
    def increments(self, x: Any) -> list[Any]:
        """Return ``V_i - v0``."""
        u = self._basic(x)
        return [weighted(row, u, 0 * u[0]) for row in self.relations.S]

    def velocities(self, old: State, x: Any) -> list[Any]:
        """Return the stage velocities ``V_i``."""
        return [old.v + increment for increment in self.increments(x)]

    def positions(self, old: State, x: Any, h: Any) -> list[Any]:
        """Return the stage positions ``Q_i``."""
        r, u = self.relations, self._basic(x)
        return [
            old.q + h * weighted(r.R[i], u, r.reach[i] * old.v) if r.reach[i] or r.R[i].any() else old.q
            for i in range(r.s)
        ]

    def stage_multipliers(self, e: ElementEnergies, x: Any) -> list[Any]:
        """Return the stage multipliers ``L_i``; zero without constraints."""
        return [ca.SX(e.m, 1)] * self.relations.s

    def _basic(self, x: Any) -> list[Any]:
        return [getattr(x, name) for name in self.relations.unknowns]

    # -- discretization -----------------------------------------------------------------------------------------------
    def guess(self, old: State, h: Any) -> list[Any]:
        return [0 * old.v] * len(self.unknowns)

    def end(self, old: State, x: Any, h: Any) -> tuple[Any, Any]:
        r = self.relations
        q1 = old.q + h * weighted(r.e, self._basic(x), old.v)
        if r.velocity_weights is None:
            return q1, old.v + x.v1
        return q1, weighted(r.velocity_weights, self.increments(x), old.v)

    def rows(self, old: State, x: Any, h: Any) -> list[Any]:
        r = self.relations
        rows = [0 * old.p if r.constant_mass else -float(w.sum()) * old.p for w in r.W]
        if not r.constant_mass:
            rows += [-float(n.sum()) * old.p for n in r.N]
        if r.velocity_weights is None:
            rows.append(0 * old.p if r.constant_mass else -old.p)
        return rows + [0 * old.p] * (len(self.unknowns) - len(rows))

    def momentum(self, old: State, x: Any, h: Any) -> Any:
        return 0 * old.p

    def share(self, e: ElementEnergies, old: State, new: State, x: Any, h: Any, t: Any) -> Share:
        r, times = self.relations, self.times(t, h)
        Q, V, L = self.positions(old, x, h), self.velocities(old, x), self.stage_multipliers(e, x)
        F = [force(e, Q[i], V[i], times[i]) - e.G(Q[i], times[i]).T @ L[i] for i in range(r.s)]
        F_free, zero = [F[i] for i in r.free], ca.SX(e.n, 1)
        P = [self._momentum(e, Q[i], V[i], old.v) for i in range(r.s)]
        P_core = [P[i] for i in r.with_force]
        rows = [
            weighted(r.W[k], P_core, zero) - h * weighted(r.X[k], F_free, F[stage])
            for k, stage in enumerate(r.with_force)
        ]
        if not r.constant_mass:
            rows += [weighted(n, P, zero) for n in r.N]
        if r.velocity_weights is None:
            # P_core is small for constant M; otherwise the increment of p0 is a sum of forces, which is small
            if r.constant_mass:
                change = weighted(r.d, P_core, h * weighted(r.f, F_free, zero))
            else:
                change = h * weighted(r.b, F, zero)
            rows.append(self._momentum(e, new.q, new.v, old.v) - change)
        work = [powers(e, Q[i], V[i], L[i], times[i]) for i in range(r.s)]
        share = Share(
            rows=rows,
            constraints=[],
            momentum=e.T_v(new.q, new.v),
            supplied=h * weighted(r.b, [supplied for supplied, _ in work], 0.0),
            dissipated=h * weighted(r.b, [dissipated for _, dissipated in work], 0.0),
        )
        self.constrain(share, e, SimpleNamespace(Q=Q, V=V, L=L, t=times, q1=new.q, v1=new.v, h=h), x)
        return share

    def _momentum(self, e: ElementEnergies, q: Any, v: Any, v0: Any) -> Any:
        """Return ``dT/dv``, minus p0 for constant M, which reduces round-off."""
        return e.T_v(q, v - v0) - e.T_v(q, 0 * v0) if self.relations.constant_mass else e.T_v(q, v)

    def constrain(self, share: Share, e: ElementEnergies, stages: Any, x: Any) -> None:
        """Add the constraint residuals to the contribution."""

    @property
    def onward(self) -> np.ndarray:
        r = self.relations
        weights = np.zeros((len(r.with_mean), len(self.unknowns)))
        later = [i for i, stage in enumerate(r.with_mean) if r.reach[stage]]  # c = 0 is the initial state
        change = np.zeros(len(self.unknowns))  # v1 - v0
        if r.velocity_weights is None:
            change[self.unknowns.index("v1")] = 1.0
        else:
            change[: r.S.shape[1]] = r.velocity_weights @ r.S
        known = np.vstack([np.eye(len(self.unknowns))[later], change])
        weights[later] = polynomial_onward(r.reach[r.with_mean][later]) @ known
        return weights

    def times(self, t: Any, h: Any) -> list[Any]:
        return [t if c == 0 else t + (h if c == 1 else c * h) for c in self.relations.c]

    # -- dense output and error estimate ------------------------------------------------------------------------------
    def inside(self, old: State, x: Any, h: Any, theta: Any) -> tuple[Any, Any]:
        """Return the dense output.

        Positions are the integral of the polynomial through all V_i. Velocities are on the polynomial through v0, v1
        and the V_i of interior nodes.
        """
        r, V = self.relations, self.velocities(old, x)
        q = old.q + h * combined(integral_weights(r.c, theta), V)
        between = [i for i in range(r.s) if 1e-9 < r.c[i] < 1 - 1e-9]
        nodes = np.array([0.0, *r.c[between], 1.0])
        values = [old.v, *(V[i] for i in between), self.end(old, x, h)[1]]
        return q, combined(lagrange_weights(nodes, theta), values)

    def estimate(self, old: State, x: Any, h: Any) -> Any:
        """Return the embedded error estimate with the initial velocity as initial derivative; the weights sum to 0."""
        r = self.relations
        return h * combined(estimate_weights(r.c, r.b, bool(r.A_p[0].any()))[1:], self.increments(x))


class StagesOnConstraints(PartitionedStages):
    """Livens-form stages with ``g(Q_i) = 0`` at all stages (index 3), for stiffly accurate methods."""

    def __init__(self, relations: Relations) -> None:
        super().__init__(relations)
        self.multipliers = tuple(f"L{i + 1}" for i in range(relations.s))

    def stage_multipliers(self, e: ElementEnergies, x: Any) -> list[Any]:
        return [getattr(x, name) for name in self.multipliers]

    def constrain(self, share: Share, e: ElementEnergies, stages: Any, x: Any) -> None:
        # divided by h: of the size of a velocity, like the other unknowns
        share.constraints = [e.g(q, t) / stages.h for q, t in zip(stages.Q, stages.t, strict=True)]

    def force_multipliers(self, x: Any) -> Any:
        """Return the multipliers of the last stage, which is the final state."""
        return getattr(x, self.multipliers[-1])
