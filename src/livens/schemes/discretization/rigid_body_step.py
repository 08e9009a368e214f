"""Step of one rigid body in director coordinates: Cayley update and momentum balance.

A body has its centre and its directors as coordinates, ``(phi, d_1, d_2, d_3)`` in space and ``(phi, d_1, d_2)`` in the
plane. The unknowns of a step are ``(u, w)``: mean velocity of the centre and mean angular velocity. The step rotates
the directors by the Cayley map of ``h w``::

    dm_i = (d_i + a x d_i + a (a.d_i))/(1 + a.a)        a = h w/2
    d_i1 - d_i = h w x dm_i,   dm_i = (d_i + d_i1)/2

Every director has a midpoint and an increment, like the coordinates of schemes with midpoint velocities. Elements that
are written in directors are therefore used unchanged. The body steps differ in the choice of the momenta.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import casadi as ca

from livens.schemes.discretization.so3 import cross, cross_in_space_or_plane, orthonormalize, perp, skew, solve_3x3
from livens.types import Expr

#: Binary operation by operation code, ten times as fast as the Python operators of CasADi.


@dataclass(frozen=True)
class BodyState:
    """State of a body at time t: coordinates, velocities, momenta, and body angular momentum Pi."""

    q: Any
    v: Any
    p: Any
    body_angular_momentum: Any


@dataclass(frozen=True)
class BodyInertia:
    """Mass and Euler tensor ``integral X X^T dm`` of a body."""

    mass: Any
    euler_tensor: Any


@dataclass(frozen=True)
class StepKinematics:
    """Kinematics of a step: unknowns, and directors at t, t + h/2 and t + h."""

    u: Expr
    w: Any
    d_0: list[Any]
    d_mid: list[Any]
    d_1: list[Any]
    d_dot: list[Any]
    #: Additional unknowns without kinematic effect, see `RotorStep`.
    extra: Any = field(default_factory=lambda: ca.SX(0, 1))

    @property
    def q_increment_rate(self) -> Expr:
        """``(q1 - q0)/h``."""
        return ca.vertcat(self.u, *self.d_dot)

    @property
    def all_symbols(self) -> list[Expr]:
        """All quantities that depend on the unknowns."""
        return [*self.unknowns, *self.d_mid, *self.d_1, *self.d_dot]

    @property
    def unknowns(self) -> list[Expr]:
        """Unknowns, block by block."""
        return [self.u, self.w, *([self.extra] if self.extra.numel() else [])]

    @property
    def directors(self) -> tuple[list[Any], list[Any], list[Any]]:
        """Directors at t + h/2 and t + h, and their rates."""
        return self.d_mid, self.d_1, self.d_dot


class RigidBodyStep:
    """Discrete equations of one body type: dimension and number of directors (0 for a particle).

    `element_residual` is ``-h F`` of all elements, ordered like the coordinates. `ggl_correction` is the velocity
    correction of the elements, see `GGLStep`; it is zero in other body steps.
    """

    def __init__(self, dimension: int, directors: int) -> None:
        self.dim, self.n_directors = dimension, directors
        self.n_rot = 0 if not directors else 3 if dimension == 3 else 1
        #: Number of unknowns in addition to u and w.
        self.n_extra = 0

    @property
    def n_unknowns(self) -> int:
        """Number of unknowns."""
        return self.dim + self.n_rot + self.n_extra

    # -- kinematics ---------------------------------------------------------------------------------------------------
    def split_coordinates(self, q: Expr) -> list[Expr]:
        """Split a coordinate vector into centre and directors."""
        return [q[self.dim * i : self.dim * (i + 1)] for i in range(1 + self.n_directors)]

    def cayley_update(self, y: Expr, q: Expr, h: Expr) -> StepKinematics:
        """Return the step kinematics: directors at t, t + h/2 and t + h, and their rates."""
        if not self.n_directors:
            return StepKinematics(y, ca.SX(0, 1), [], [], [], [])
        u, w, extra = y[: self.dim], y[self.dim : self.dim + self.n_rot], y[self.dim + self.n_rot :]
        d_0 = self.split_coordinates(q)[1:]
        a = h / 2 * w
        f = 1 / (1 + ca.dot(a, a))
        if self.dim == 3:
            d_mid = [f * (d + cross(a, d) + a * ca.dot(a, d)) for d in d_0]
        else:
            d_mid = [f * (d + a * perp(d)) for d in d_0]
        d_1 = [2 * m - d for m, d in zip(d_mid, d_0, strict=True)]
        d_dot = [self.cross_with(w, d) for d in d_mid]
        return StepKinematics(u, w, d_0, d_mid, d_1, d_dot, extra if self.n_extra else ca.SX(0, 1))

    def cross_with(self, w: Expr, d: Expr) -> Expr:
        """Return ``w x d``."""
        return cross(w, d) if self.dim == 3 else w * perp(d)

    def total_moment(self, arms: list[Any], forces: list[Any]) -> Expr:
        """Return the torque ``sum arm_i x force_i``; a scalar in the plane."""
        if self.dim == 3:
            return sum((cross(x, f) for x, f in zip(arms, forces, strict=True)), ca.SX.zeros(3))
        return sum((cross_in_space_or_plane(x, f) for x, f in zip(arms, forces, strict=True)), ca.SX.zeros(1))

    def initial_guess(self, q: Expr, v: Expr) -> Expr:
        """Return the initial guess: velocity, and angular velocity of the directors."""
        if not self.n_directors:
            return v
        moment = self.total_moment(self.split_coordinates(q)[1:], self.split_coordinates(v)[1:])
        return ca.vertcat(v[: self.dim], moment / 2)

    def final_pose(self, b: StepKinematics, q: Expr, h: Expr) -> tuple[Any, list[Any]]:
        """Return centre and directors at t + h, with the orthonormality of the directors restored to round-off."""
        centre = q[: self.dim] + h * b.u
        if not self.n_directors:
            return centre, []
        return centre, ca.horzsplit(orthonormalize(ca.horzcat(*b.d_1)))

    # -- variations ---------------------------------------------------------------------------------------------------
    # The Newton variations are those of u and of the rotation at t + h, eta. They change the directors by h eta x d1,
    # so that no derivative of the Cayley map is needed. The change of w follows from `inverse_tangent`.
    def kinematic_jacobian(self, b: StepKinematics) -> Expr:
        """Return the derivative of ``(q1 - q0)/h`` with respect to the variations."""
        jacobian = ca.SX(self.dim * (1 + self.n_directors), self.n_unknowns)
        jacobian[: self.dim, : self.dim] = ca.SX.eye(self.dim)
        for i, d in enumerate(b.d_1, 1):
            jacobian[self.dim * i : self.dim * (i + 1), self.dim : self.dim + self.n_rot] = (
                -skew(d) if self.dim == 3 else perp(d)
            )
        return jacobian

    def inverse_tangent(self, b: StepKinematics, h: Expr) -> Expr:
        """Return the derivative of the unknowns with respect to the variations: ``dw = (I - a^ + a a^T) eta``."""
        tangent = ca.SX(ca.SX.eye(self.n_unknowns))
        a = h / 2 * b.w
        if self.dim == 3 and self.n_directors:
            tangent[self.dim : self.dim + 3, self.dim : self.dim + 3] = ca.SX.eye(3) - skew(a) + a @ a.T
        elif self.n_directors:
            tangent[self.dim, self.dim] = 1 + a**2
        return tangent

    def balance_jacobians(
        self, b: StepKinematics, old: BodyState, element_residual: Expr, inertia: BodyInertia, h: Expr
    ) -> tuple[Expr, Expr]:
        """Return the derivatives of the body residual with respect to variations and to the element residuals."""
        free = StepKinematics(
            _symbols_like(b.u),
            _symbols_like(b.w),
            b.d_0,
            _symbol_lists_like(b.d_mid),
            _symbol_lists_like(b.d_1),
            _symbol_lists_like(b.d_dot),
            _symbols_like(b.extra),
        )
        residual_symbols = ca.SX.sym("r", self.dim * (1 + self.n_directors))
        residual = self.residual(free, old, residual_symbols, ca.SX.zeros(residual_symbols.numel()), inertia, h)
        unknowns, directors = ca.vertcat(*free.unknowns), ca.vertcat(*free.d_mid, *free.d_1, *free.d_dot)
        jacobians = [ca.jacobian(residual, x) for x in (unknowns, directors, residual_symbols)]
        values = [*b.all_symbols, element_residual]
        d_dunknowns, d_ddirectors, d_dresidual = ca.substitute(jacobians, [*free.all_symbols, residual_symbols], values)
        total = d_dunknowns @ self.inverse_tangent(b, h)
        if self.n_directors:
            director_jacobian = self.kinematic_jacobian(b)[self.dim :, :]
            total = total + d_ddirectors @ ca.vertcat(
                h / 2 * director_jacobian, h * director_jacobian, director_jacobian
            )
        return total, d_dresidual

    # -- momenta ------------------------------------------------------------------------------------------------------
    def final_velocity(
        self, b: StepKinematics, old: BodyState, ggl_correction: Expr, inertia: BodyInertia, h: Expr
    ) -> Expr:
        """Return velocities of centre and directors at t + h."""
        raise NotImplementedError

    def residual(
        self,
        b: StepKinematics,
        old: BodyState,
        element_residual: Expr,
        ggl_correction: Expr,
        inertia: BodyInertia,
        h: Expr,
    ) -> Expr:
        """Return the residual of the body, one equation per unknown."""
        raise NotImplementedError

    def final_state(
        self, b: StepKinematics, old: BodyState, ggl_correction: Expr, inertia: BodyInertia, h: Expr
    ) -> BodyState:
        """Return the state of the body at t + h."""
        raise NotImplementedError

    def momenta(self, v: Expr, inertia: BodyInertia) -> Expr:
        """Return the momenta of centre and directors from their velocities."""
        phi, *directors = self.split_coordinates(v)
        E = inertia.euler_tensor
        director_momenta = [
            sum((E[i, j] * d for j, d in enumerate(directors)), ca.SX.zeros(self.dim)) for i in range(self.n_directors)
        ]
        return ca.vertcat(inertia.mass * phi, *director_momenta)


class DirectorStep(RigidBodyStep):
    """`livens-em` in directors: momenta of the directors, projected with ``dm_i x`` to the balance of angular momentum.

    The projection eliminates the constraint forces of the orthonormality of the directors. The trajectory is that of
    the scheme with all directors and their constraints.
    """

    def final_velocity(
        self, b: StepKinematics, old: BodyState, ggl_correction: Expr, inertia: BodyInertia, h: Expr
    ) -> Expr:
        return 2 * b.q_increment_rate - old.v

    def residual(
        self,
        b: StepKinematics,
        old: BodyState,
        element_residual: Expr,
        ggl_correction: Expr,
        inertia: BodyInertia,
        h: Expr,
    ) -> Expr:
        r = 2 * self.momenta(b.q_increment_rate, inertia) - 2 * old.p + element_residual
        if not self.n_directors:
            return r
        phi, *directors = self.split_coordinates(r)
        return ca.vertcat(phi, self.total_moment(b.d_mid, directors))

    def final_state(
        self, b: StepKinematics, old: BodyState, ggl_correction: Expr, inertia: BodyInertia, h: Expr
    ) -> BodyState:
        phi, directors = self.final_pose(b, old.q, h)
        p = 2 * self.momenta(b.q_increment_rate, inertia) - old.p
        return BodyState(
            ca.vertcat(phi, *directors),
            self.final_velocity(b, old, ggl_correction, inertia, h),
            p,
            old.body_angular_momentum,
        )


class LieGroupStep(RigidBodyStep):
    """Lie group step: linear momentum p and body angular momentum Pi, which is part of the state::

        2 m u - 2 p0 = h F                                             p1  = 2 m u - p0
        2 J W + h W x J W - 2 Pi0 = h R0^T (tau - a x tau)             Pi1 = 2 J W - Pi0        W = R0^T w

    This is ``l1 = l0 + h tau`` in space with ``w = Rm J^-1 (Pi0 + Pi1)/2``, multiplied out; it is solved in the form
    ``R1 Pi1 - R0 Pi0 = h tau``. Pi is stored instead of recomputed from the momenta of the directors, which keeps the
    round-off of the directors out of the energy.
    """

    def twice_mean_momenta(
        self, b: StepKinematics, old: BodyState, ggl_correction: Expr, inertia: BodyInertia, h: Expr
    ) -> tuple[Expr, Expr]:
        """Return twice the mean of linear and angular momentum of t and t + h."""
        return 2 * inertia.mass * b.u, 2 * self.body_momentum(b, inertia)

    def body_momentum(self, b: StepKinematics, inertia: BodyInertia) -> Expr:
        """Return the mean body angular momentum ``J W``."""
        if not self.n_directors:
            return ca.SX(0, 1)
        trace = ca.trace(inertia.euler_tensor)
        if self.dim == 2:
            return trace * b.w
        return (trace * ca.SX.eye(3) - inertia.euler_tensor) @ (ca.horzcat(*b.d_0).T @ b.w)

    def angular_velocity(self, body_angular_momentum: Expr, directors: list[Any], inertia: BodyInertia) -> Expr:
        """Return the spatial angular velocity of a body angular momentum."""
        trace = ca.trace(inertia.euler_tensor)
        if self.dim == 2:
            return body_angular_momentum / trace
        return ca.horzcat(*directors) @ solve_3x3(trace * ca.SX.eye(3) - inertia.euler_tensor, body_angular_momentum)

    def final_velocity(
        self, b: StepKinematics, old: BodyState, ggl_correction: Expr, inertia: BodyInertia, h: Expr
    ) -> Expr:
        return self.lift_twist(
            self.final_twist(b, old, *self.twice_mean_momenta(b, old, ggl_correction, inertia, h), inertia), b
        )

    def final_twist(
        self, b: StepKinematics, old: BodyState, twice_p: Expr, twice_body_momentum: Expr, inertia: BodyInertia
    ) -> Expr:
        """Return the twist at t + h: velocity of the centre and angular velocity."""
        linear = (twice_p - old.p[: self.dim]) / inertia.mass
        if not self.n_directors:
            return linear
        return ca.vertcat(
            linear, self.angular_velocity(twice_body_momentum - old.body_angular_momentum, b.d_1, inertia)
        )

    def lift_twist(self, twist: Expr, b: StepKinematics) -> Expr:
        """Return the velocities of centre and directors at t + h from a twist."""
        return ca.vertcat(twist[: self.dim], *(self.cross_with(twist[self.dim :], d) for d in b.d_1))

    def residual(
        self,
        b: StepKinematics,
        old: BodyState,
        element_residual: Expr,
        ggl_correction: Expr,
        inertia: BodyInertia,
        h: Expr,
    ) -> Expr:
        twice_p, twice_body_momentum = self.twice_mean_momenta(b, old, ggl_correction, inertia, h)
        torque = self.torque(b, old, element_residual, ggl_correction, inertia, h) if self.n_directors else None
        return self.residual_from_means(b, old, element_residual, twice_p, twice_body_momentum, torque, h)

    def residual_from_means(
        self,
        b: StepKinematics,
        old: BodyState,
        element_residual: Expr,
        twice_p: Expr,
        twice_body_momentum: Expr,
        torque: Expr | None,
        h: Expr,
    ) -> Expr:
        """Return the residual for these mean momenta and this torque."""
        linear = twice_p - 2 * old.p[: self.dim] + element_residual[: self.dim]
        if not self.n_directors:
            return linear
        if self.dim == 2:
            return ca.vertcat(linear, twice_body_momentum - 2 * old.body_angular_momentum + torque)
        after = ca.horzcat(*b.d_1) @ (twice_body_momentum - old.body_angular_momentum)
        return ca.vertcat(linear, after - ca.horzcat(*b.d_0) @ old.body_angular_momentum + torque)

    def balance_jacobians(
        self, b: StepKinematics, old: BodyState, element_residual: Expr, inertia: BodyInertia, h: Expr
    ) -> tuple[Expr, Expr]:
        """Return the balance Jacobians of ``R1 Pi1 - R0 Pi0 + sum dm_i x r_i`` with ``Pi1 = 2 J W - Pi0``::

            -h l1^ + 2 R1 J R0^T (I - a^ + a a^T) + h/2 sum (d1_i r_i^T - d1_i.r_i I)

        where ``R0^T (I - a^ + a a^T)`` is ``1 + a.a`` times the transpose of the directors at the midpoint.
        """
        if self.dim == 2 or not self.n_directors or self.n_extra:
            return super().balance_jacobians(b, old, element_residual, inertia, h)
        R, a = ca.horzcat(*b.d_1), h / 2 * b.w
        J = ca.trace(inertia.euler_tensor) * ca.SX.eye(3) - inertia.euler_tensor
        scaled_d_mid = ca.horzcat(*(d + cross(a, d) + a * ca.dot(a, d) for d in b.d_0))
        rotational = 2 * ((R @ J) @ scaled_d_mid.T) - h * skew(
            R @ (2 * self.body_momentum(b, inertia) - old.body_angular_momentum)
        )
        for d, r in zip(b.d_1, self.split_coordinates(element_residual)[1:], strict=True):
            rotational += h / 2 * (d @ r.T - ca.dot(d, r) * ca.SX.eye(3))
        total, d_dresidual = ca.SX(6, 6), ca.SX(6, 12)
        total[:3, :3], total[3:, 3:] = 2 * inertia.mass * ca.SX.eye(3), rotational
        d_dresidual[:3, :3] = ca.SX.eye(3)
        for i, d in enumerate(b.d_mid, 1):
            d_dresidual[3:, 3 * i : 3 * i + 3] = skew(d)
        return total, d_dresidual

    def momentum_increments(
        self, b: StepKinematics, element_residual: Expr, inertia: BodyInertia, h: Expr
    ) -> tuple[Expr, Expr]:
        """Return the increments of both momenta from the projected residual of all elements (negative impulses).

        By the momentum balance they equal ``2 m u - 2 p0`` and ``2 J W - 2 Pi0``, but small increments keep their
        relative accuracy here.
        """
        linear, torque = -element_residual[: self.dim], element_residual[self.dim :]
        if not self.n_directors or self.dim == 2:
            return linear, -torque
        R, a, W = ca.horzcat(*b.d_0), h / 2 * b.w, ca.horzcat(*b.d_0).T @ b.w
        return linear, -h * cross(W, self.body_momentum(b, inertia)) - R.T @ (torque - cross(a, torque))

    def torque(
        self,
        b: StepKinematics,
        old: BodyState,
        element_residual: Expr,
        ggl_correction: Expr,
        inertia: BodyInertia,
        h: Expr,
    ) -> Expr:
        """Return ``-h tau`` with lever arms at the midpoint of the step."""
        return self.total_moment(b.d_mid, self.split_coordinates(element_residual)[1:])

    def final_state(
        self, b: StepKinematics, old: BodyState, ggl_correction: Expr, inertia: BodyInertia, h: Expr
    ) -> BodyState:
        phi, directors = self.final_pose(b, old.q, h)
        twice_p, twice_body_momentum = self.twice_mean_momenta(b, old, ggl_correction, inertia, h)
        p, body_angular_momentum = twice_p - old.p[: self.dim], twice_body_momentum - old.body_angular_momentum
        v = p / inertia.mass
        if self.n_directors:
            omega = self.angular_velocity(body_angular_momentum, directors, inertia)
            v = ca.vertcat(v, *(self.cross_with(omega, d) for d in directors))
        all_p = ca.vertcat(p, self.momenta(v, inertia)[self.dim :]) if self.n_directors else p
        return BodyState(ca.vertcat(phi, *directors), v, all_p, body_angular_momentum)


class GGLStep(LieGroupStep):
    """GGL step: `LieGroupStep` with the Hamiltonian ``H + lam.g(q) + gam.(G(q) v)``, constraints on both levels.

    `ggl_correction` is ``G(q_m)^T gam``, with parts FV_phi and FV_i, ``(s_i)_j = (d_j + a x d_j) . FV_i``::

        p_m  = m u - FV_phi
        Pi_m = J W - sum_i e_i x s_i
        tau  = sum_i dm_i x F_i - sum_i v_mean,i x FV_i
    """

    def twice_mean_momenta(
        self, b: StepKinematics, old: BodyState, ggl_correction: Expr, inertia: BodyInertia, h: Expr
    ) -> tuple[Expr, Expr]:
        twice_p, twice_body_momentum = super().twice_mean_momenta(b, old, ggl_correction, inertia, h)
        twice_p -= 2 * ggl_correction[: self.dim]
        if not self.n_directors:
            return twice_p, twice_body_momentum
        forward = [d + self.cross_with(h / 2 * b.w, d) for d in b.d_0]
        director_corrections = self.split_coordinates(ggl_correction)[1:]
        if self.dim == 2:
            return twice_p, twice_body_momentum - 2 * self.total_moment(forward, director_corrections)
        for i, force in enumerate(director_corrections):
            axis = ca.SX.zeros(3)
            axis[i] = 1
            twice_body_momentum -= 2 * cross(axis, ca.horzcat(*forward).T @ force)
        return twice_p, twice_body_momentum

    def ggl_momenta(self, b: StepKinematics, ggl_correction: Expr, h: Expr) -> tuple[Expr, Expr]:
        """Return the GGL part of both momenta: ``FV_phi`` and ``sum_i e_i x s_i``."""
        if not self.n_directors:
            return ggl_correction[: self.dim], ca.SX(0, 1)
        forward = [d + self.cross_with(h / 2 * b.w, d) for d in b.d_0]
        director_corrections = self.split_coordinates(ggl_correction)[1:]
        if self.dim == 2:
            return ggl_correction[: self.dim], self.total_moment(forward, director_corrections)
        angular = ca.SX.zeros(3)
        for i, force in enumerate(director_corrections):
            axis = ca.SX.zeros(3)
            axis[i] = 1
            angular += cross(axis, ca.horzcat(*forward).T @ force)
        return ggl_correction[: self.dim], angular

    def torque(
        self,
        b: StepKinematics,
        old: BodyState,
        element_residual: Expr,
        ggl_correction: Expr,
        inertia: BodyInertia,
        h: Expr,
    ) -> Expr:
        lie_torque = super().torque(b, old, element_residual, ggl_correction, inertia, h)
        mean = (old.v + self.final_velocity(b, old, ggl_correction, inertia, h)) / 2
        return lie_torque + h * self.total_moment(
            self.split_coordinates(mean)[1:], self.split_coordinates(ggl_correction)[1:]
        )

    def ggl_jacobians(
        self,
        b: StepKinematics,
        old: BodyState,
        element_residual: Expr,
        ggl_correction: Expr,
        inertia: BodyInertia,
        h: Expr,
    ) -> tuple[Any, ...]:
        """Return the Jacobians of the GGL equations of a body.

        The GGL correction enters the momenta through mu, with as many entries as unknowns; the velocities at t + h
        follow from the twist. Returned are derivatives of the residual with respect to variations, element residual,
        correction (at fixed mu), mu, and velocities at t + h; of mu with respect to variations and correction; of the
        twist with respect to variations and mu; of the velocities at t + h with respect to variations (at fixed
        twist); `kinematic_jacobian` and `inverse_tangent`.
        """
        free = StepKinematics(
            _symbols_like(b.u),
            _symbols_like(b.w),
            b.d_0,
            _symbol_lists_like(b.d_mid),
            _symbol_lists_like(b.d_1),
            _symbol_lists_like(b.d_dot),
        )
        residual_symbols, correction_symbols, mu = (
            _symbols_like(element_residual),
            _symbols_like(ggl_correction),
            ca.SX.sym("mu", self.n_unknowns),
        )
        v1, twist = ca.SX.sym("v1", self.dim * (1 + self.n_directors)), ca.SX.sym("twist", self.n_unknowns)
        of_p, of_spin = super().twice_mean_momenta(free, old, correction_symbols, inertia, h)
        means = of_p - 2 * mu[: self.dim], of_spin - 2 * mu[self.dim :] if self.n_directors else of_spin
        torque = None
        if self.n_directors:
            mean = (old.v + v1) / 2
            torque = super().torque(free, old, residual_symbols, correction_symbols, inertia, h)
            torque = torque + h * self.total_moment(
                self.split_coordinates(mean)[1:], self.split_coordinates(correction_symbols)[1:]
            )
        residual = self.residual_from_means(free, old, residual_symbols, *means, torque, h)
        contracted = ca.vertcat(*(momentum for momentum in self.ggl_momenta(free, correction_symbols, h)))
        final_twist, final_velocity = self.final_twist(free, old, *means, inertia), self.lift_twist(twist, free)
        motion = [ca.vertcat(free.u, free.w), *(ca.vertcat(*x) if x else ca.SX(0, 1) for x in free.directors)]
        outputs = [
            (residual, (residual_symbols, correction_symbols, mu, v1)),
            (contracted, (correction_symbols,)),
            (final_twist, (mu,)),
            (final_velocity, ()),
        ]
        jacobians = [ca.jacobian(y, x) for y, variables in outputs for x in (*motion, *variables)]
        mu_now = ca.vertcat(*self.ggl_momenta(b, ggl_correction, h))
        twist_now = self.final_twist(b, old, *self.twice_mean_momenta(b, old, ggl_correction, inertia, h), inertia)
        values = [*b.all_symbols, element_residual, ggl_correction, mu_now, self.lift_twist(twist_now, b), twist_now]
        jacobians = ca.substitute(
            jacobians, [*free.all_symbols, residual_symbols, correction_symbols, mu, v1, twist], values
        )
        kinematic_jacobian, inverse_tangent = self.kinematic_jacobian(b), self.inverse_tangent(b, h)
        director_jacobian = kinematic_jacobian[self.dim :, :] if self.n_directors else ca.SX(0, self.n_unknowns)

        def total() -> Expr:
            of_unknown, of_mid, of_end, of_rates = (jacobians.pop(0) for _ in range(4))
            return (
                of_unknown @ inverse_tangent
                + of_mid @ (h / 2 * director_jacobian)
                + of_end @ (h * director_jacobian)
                + of_rates @ director_jacobian
            )

        blocks = []
        for _, variables in outputs:
            blocks += [total(), *(jacobians.pop(0) for _ in variables)]
        return (*blocks, kinematic_jacobian, inverse_tangent)


def _symbols_like(vector: Expr) -> Expr:
    return ca.SX.sym("b", vector.numel()) if vector.numel() else ca.SX(0, 1)


def _symbol_lists_like(vectors: list[Any]) -> list[Expr]:
    return [_symbols_like(vector) for vector in vectors]
