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

#: Binary operation by operation code, ten times as fast as the Python operators of CasADi.
_binary = ca.SX.binary


@dataclass(frozen=True)
class BodyState:
    """State of a body at time t: coordinates, velocities, momenta, and body angular momentum Pi."""

    q: Any
    v: Any
    p: Any
    spin: Any


@dataclass(frozen=True)
class BodyInertia:
    """Mass and Euler tensor ``integral X X^T dm`` of a body."""

    mass: Any
    euler: Any


@dataclass(frozen=True)
class Motion:
    """Kinematics of a step: unknowns, and directors at t, t + h/2 and t + h."""

    u: Any
    w: Any
    start: list[Any]
    mid: list[Any]
    end: list[Any]
    rates: list[Any]
    #: Additional unknowns without kinematic effect, see `RotorStep`.
    more: Any = field(default_factory=lambda: ca.SX(0, 1))

    @property
    def rate(self) -> Any:
        """``(q1 - q0)/h``."""
        return ca.vertcat(self.u, *self.rates)

    @property
    def flat(self) -> list[Any]:
        """All quantities that depend on the unknowns."""
        return [*self.unknown, *self.mid, *self.end, *self.rates]

    @property
    def unknown(self) -> list[Any]:
        """Unknowns, block by block."""
        return [self.u, self.w, *([self.more] if self.more.numel() else [])]

    @property
    def flat_parts(self) -> tuple[list[Any], list[Any], list[Any]]:
        """Directors at t + h/2 and t + h, and their rates."""
        return self.mid, self.end, self.rates


class BodyRecipe:
    """Discrete equations of one body type: dimension and number of directors (0 for a particle).

    `element_residual` is ``-h F`` of all elements, ordered like the coordinates. `ggl_correction` is the velocity
    correction of the elements, see `GGLStep`; it is zero in other body steps.
    """

    def __init__(self, dimension: int, directors: int) -> None:
        self.d, self.count = dimension, directors
        self.turning = 0 if not directors else 3 if dimension == 3 else 1
        #: Number of unknowns in addition to u and w.
        self.more = 0

    @property
    def size(self) -> int:
        """Number of unknowns."""
        return self.d + self.turning + self.more

    # -- kinematics ---------------------------------------------------------------------------------------------------
    def parts(self, q: Any) -> list[Any]:
        """Split a coordinate vector into centre and directors."""
        return [q[self.d * i : self.d * (i + 1)] for i in range(1 + self.count)]

    def moved(self, y: Any, q: Any, h: Any) -> Motion:
        """Return the step kinematics: directors at t, t + h/2 and t + h, and their rates."""
        if not self.count:
            return Motion(y, ca.SX(0, 1), [], [], [], [])
        u, w, more = y[: self.d], y[self.d : self.d + self.turning], y[self.d + self.turning :]
        start = self.parts(q)[1:]
        a = h / 2 * w
        f = 1 / (1 + ca.dot(a, a))
        if self.d == 3:
            mid = [f * (d + cross(a, d) + a * ca.dot(a, d)) for d in start]
        else:
            mid = [f * (d + a * quarter(d)) for d in start]
        end = [2 * m - d for m, d in zip(mid, start, strict=True)]
        rates = [self.turned(w, d) for d in mid]
        return Motion(u, w, start, mid, end, rates, more if self.more else ca.SX(0, 1))

    def turned(self, w: Any, d: Any) -> Any:
        """Return ``w x d``."""
        return cross(w, d) if self.d == 3 else w * quarter(d)

    def moment(self, arms: list[Any], forces: list[Any]) -> Any:
        """Return the torque ``sum arm_i x force_i``; a scalar in the plane."""
        if self.d == 3:
            return sum((cross(x, f) for x, f in zip(arms, forces, strict=True)), ca.SX.zeros(3))
        return sum((x[0] * f[1] - x[1] * f[0] for x, f in zip(arms, forces, strict=True)), ca.SX.zeros(1))

    def guess(self, q: Any, v: Any) -> Any:
        """Return the initial guess: velocity, and angular velocity of the directors."""
        if not self.count:
            return v
        turning = self.moment(self.parts(q)[1:], self.parts(v)[1:])
        return ca.vertcat(v[: self.d], turning / 2)

    def placed(self, b: Motion, q: Any, h: Any) -> tuple[Any, list[Any]]:
        """Return centre and directors at t + h, with the orthonormality of the directors restored to round-off."""
        centre = q[: self.d] + h * b.u
        if not self.count:
            return centre, []
        D = ca.horzcat(*b.end)
        D = D @ (3 * ca.SX.eye(self.count) - D.T @ D) / 2
        return centre, ca.horzsplit(D)

    # -- variations ---------------------------------------------------------------------------------------------------
    # The Newton variations are those of u and of the rotation at t + h, eta. They change the directors by h eta x d1,
    # so that no derivative of the Cayley map is needed. The change of w follows from `inverse_tangent`.
    def spread(self, b: Motion) -> Any:
        """Return the derivative of ``(q1 - q0)/h`` with respect to the variations."""
        found = ca.SX(self.d * (1 + self.count), self.size)
        found[: self.d, : self.d] = ca.SX.eye(self.d)
        for i, d in enumerate(b.end, 1):
            found[self.d * i : self.d * (i + 1), self.d : self.d + self.turning] = (
                -hat(d) if self.d == 3 else quarter(d)
            )
        return found

    def turn(self, b: Motion, h: Any) -> Any:
        """Return the derivative of the unknowns with respect to the variations: ``dw = (I - a^ + a a^T) eta``."""
        found = ca.SX(ca.SX.eye(self.size))
        a = h / 2 * b.w
        if self.d == 3 and self.count:
            found[self.d : self.d + 3, self.d : self.d + 3] = ca.SX.eye(3) - hat(a) + a @ a.T
        elif self.count:
            found[self.d, self.d] = 1 + a**2
        return found

    def slopes(self, b: Motion, old: BodyState, rows: Any, inertia: BodyInertia, h: Any) -> tuple[Any, Any]:
        """Return the derivatives of the body residual with respect to variations and to the element residuals."""
        free = Motion(_like(b.u), _like(b.w), b.start, _likes(b.mid), _likes(b.end), _likes(b.rates), _like(b.more))
        pushed = ca.SX.sym("r", self.d * (1 + self.count))
        balance = self.balance(free, old, pushed, ca.SX.zeros(pushed.numel()), inertia, h)
        unknown, moving = ca.vertcat(*free.unknown), ca.vertcat(*free.mid, *free.end, *free.rates)
        found = [ca.jacobian(balance, x) for x in (unknown, moving, pushed)]
        values = [*b.flat, rows]
        by_unknown, by_moving, by_rows = ca.substitute(found, [*free.flat, pushed], values)
        total = by_unknown @ self.turn(b, h)
        if self.count:
            moved = self.spread(b)[self.d :, :]
            total = total + by_moving @ ca.vertcat(h / 2 * moved, h * moved, moved)
        return total, by_rows

    # -- momenta ------------------------------------------------------------------------------------------------------
    def velocity(self, b: Motion, old: BodyState, pull: Any, inertia: BodyInertia, h: Any) -> Any:
        """Return velocities of centre and directors at t + h."""
        raise NotImplementedError

    def balance(self, b: Motion, old: BodyState, rows: Any, pull: Any, inertia: BodyInertia, h: Any) -> Any:
        """Return the residual of the body, one equation per unknown."""
        raise NotImplementedError

    def end(self, b: Motion, old: BodyState, pull: Any, inertia: BodyInertia, h: Any) -> BodyState:
        """Return the state of the body at t + h."""
        raise NotImplementedError

    def momenta(self, v: Any, inertia: BodyInertia) -> Any:
        """Return the momenta of centre and directors from their velocities."""
        phi, *directors = self.parts(v)
        E = inertia.euler
        of = [sum((E[i, j] * d for j, d in enumerate(directors)), ca.SX.zeros(self.d)) for i in range(self.count)]
        return ca.vertcat(inertia.mass * phi, *of)


class DirectorBody(BodyRecipe):
    """`livens-em` in directors: momenta of the directors, projected with ``dm_i x`` to the balance of angular momentum.

    The projection eliminates the constraint forces of the orthonormality of the directors. The trajectory is that of
    the scheme with all directors and their constraints.
    """

    def velocity(self, b: Motion, old: BodyState, pull: Any, inertia: BodyInertia, h: Any) -> Any:
        return 2 * b.rate - old.v

    def balance(self, b: Motion, old: BodyState, rows: Any, pull: Any, inertia: BodyInertia, h: Any) -> Any:
        r = 2 * self.momenta(b.rate, inertia) - 2 * old.p + rows
        if not self.count:
            return r
        phi, *directors = self.parts(r)
        return ca.vertcat(phi, self.moment(b.mid, directors))

    def end(self, b: Motion, old: BodyState, pull: Any, inertia: BodyInertia, h: Any) -> BodyState:
        phi, directors = self.placed(b, old.q, h)
        p = 2 * self.momenta(b.rate, inertia) - old.p
        return BodyState(ca.vertcat(phi, *directors), self.velocity(b, old, pull, inertia, h), p, old.spin)


class LieBody(BodyRecipe):
    """Lie group step: linear momentum p and body angular momentum Pi, which is part of the state::

        2 m u - 2 p0 = h F                                             p1  = 2 m u - p0
        2 J W + h W x J W - 2 Pi0 = h R0^T (tau - a x tau)             Pi1 = 2 J W - Pi0        W = R0^T w

    This is ``l1 = l0 + h tau`` in space with ``w = Rm J^-1 (Pi0 + Pi1)/2``, multiplied out; it is solved in the form
    ``R1 Pi1 - R0 Pi0 = h tau``. Pi is stored instead of recomputed from the momenta of the directors, which keeps the
    round-off of the directors out of the energy.
    """

    def mean(self, b: Motion, old: BodyState, pull: Any, inertia: BodyInertia, h: Any) -> tuple[Any, Any]:
        """Return twice the mean of linear and angular momentum of t and t + h."""
        return 2 * inertia.mass * b.u, 2 * self.spin_of(b, inertia)

    def spin_of(self, b: Motion, inertia: BodyInertia) -> Any:
        """Return the mean body angular momentum ``J W``."""
        if not self.count:
            return ca.SX(0, 1)
        trace = ca.trace(inertia.euler)
        if self.d == 2:
            return trace * b.w
        return (trace * ca.SX.eye(3) - inertia.euler) @ (ca.horzcat(*b.start).T @ b.w)

    def rotation(self, spin: Any, directors: list[Any], inertia: BodyInertia) -> Any:
        """Return the spatial angular velocity of a body angular momentum."""
        trace = ca.trace(inertia.euler)
        if self.d == 2:
            return spin / trace
        return ca.horzcat(*directors) @ solved(trace * ca.SX.eye(3) - inertia.euler, spin)

    def velocity(self, b: Motion, old: BodyState, pull: Any, inertia: BodyInertia, h: Any) -> Any:
        return self.lifted(self.twist(b, old, *self.mean(b, old, pull, inertia, h), inertia), b)

    def twist(self, b: Motion, old: BodyState, twice_p: Any, twice_spin: Any, inertia: BodyInertia) -> Any:
        """Return the twist at t + h: velocity of the centre and angular velocity."""
        of_centre = (twice_p - old.p[: self.d]) / inertia.mass
        if not self.count:
            return of_centre
        return ca.vertcat(of_centre, self.rotation(twice_spin - old.spin, b.end, inertia))

    def lifted(self, twist: Any, b: Motion) -> Any:
        """Return the velocities of centre and directors at t + h from a twist."""
        return ca.vertcat(twist[: self.d], *(self.turned(twist[self.d :], d) for d in b.end))

    def balance(self, b: Motion, old: BodyState, rows: Any, pull: Any, inertia: BodyInertia, h: Any) -> Any:
        twice_p, twice_spin = self.mean(b, old, pull, inertia, h)
        torque = self.torque(b, old, rows, pull, inertia, h) if self.count else None
        return self.balanced(b, old, rows, twice_p, twice_spin, torque, h)

    def balanced(self, b: Motion, old: BodyState, rows: Any, twice_p: Any, twice_spin: Any, torque: Any, h: Any) -> Any:
        """Return the residual for these mean momenta and this torque."""
        of_centre = twice_p - 2 * old.p[: self.d] + rows[: self.d]
        if not self.count:
            return of_centre
        if self.d == 2:
            return ca.vertcat(of_centre, twice_spin - 2 * old.spin + torque)
        after = ca.horzcat(*b.end) @ (twice_spin - old.spin)
        return ca.vertcat(of_centre, after - ca.horzcat(*b.start) @ old.spin + torque)

    def slopes(self, b: Motion, old: BodyState, rows: Any, inertia: BodyInertia, h: Any) -> tuple[Any, Any]:
        """Return the balance Jacobians of ``R1 Pi1 - R0 Pi0 + sum dm_i x r_i`` with ``Pi1 = 2 J W - Pi0``::

            -h l1^ + 2 R1 J R0^T (I - a^ + a a^T) + h/2 sum (d1_i r_i^T - d1_i.r_i I)

        where ``R0^T (I - a^ + a a^T)`` is ``1 + a.a`` times the transpose of the directors at the midpoint.
        """
        if self.d == 2 or not self.count or self.more:
            return super().slopes(b, old, rows, inertia, h)
        R, a = ca.horzcat(*b.end), h / 2 * b.w
        J = ca.trace(inertia.euler) * ca.SX.eye(3) - inertia.euler
        larger = ca.horzcat(*(d + cross(a, d) + a * ca.dot(a, d) for d in b.start))
        turning = 2 * ((R @ J) @ larger.T) - h * hat(R @ (2 * self.spin_of(b, inertia) - old.spin))
        for d, r in zip(b.end, self.parts(rows)[1:], strict=True):
            turning += h / 2 * (d @ r.T - ca.dot(d, r) * ca.SX.eye(3))
        total, by_rows = ca.SX(6, 6), ca.SX(6, 12)
        total[:3, :3], total[3:, 3:] = 2 * inertia.mass * ca.SX.eye(3), turning
        by_rows[:3, :3] = ca.SX.eye(3)
        for i, d in enumerate(b.mid, 1):
            by_rows[3:, 3 * i : 3 * i + 3] = hat(d)
        return total, by_rows

    def pushed(self, b: Motion, rows: Any, inertia: BodyInertia, h: Any) -> tuple[Any, Any]:
        """Return the increments of both momenta from the projected residual of all elements (negative impulses).

        By the momentum balance they equal ``2 m u - 2 p0`` and ``2 J W - 2 Pi0``, but small increments keep their
        relative accuracy here.
        """
        of_centre, torque = -rows[: self.d], rows[self.d :]
        if not self.count or self.d == 2:
            return of_centre, -torque
        R, a, W = ca.horzcat(*b.start), h / 2 * b.w, ca.horzcat(*b.start).T @ b.w
        return of_centre, -h * cross(W, self.spin_of(b, inertia)) - R.T @ (torque - cross(a, torque))

    def torque(self, b: Motion, old: BodyState, rows: Any, pull: Any, inertia: BodyInertia, h: Any) -> Any:
        """Return ``-h tau`` with lever arms at the midpoint of the step."""
        return self.moment(b.mid, self.parts(rows)[1:])

    def end(self, b: Motion, old: BodyState, pull: Any, inertia: BodyInertia, h: Any) -> BodyState:
        phi, directors = self.placed(b, old.q, h)
        twice_p, twice_spin = self.mean(b, old, pull, inertia, h)
        p, spin = twice_p - old.p[: self.d], twice_spin - old.spin
        v = p / inertia.mass
        if self.count:
            omega = self.rotation(spin, directors, inertia)
            v = ca.vertcat(v, *(self.turned(omega, d) for d in directors))
        all_p = ca.vertcat(p, self.momenta(v, inertia)[self.d :]) if self.count else p
        return BodyState(ca.vertcat(phi, *directors), v, all_p, spin)


class GGLBody(LieBody):
    """GGL step: `LieGroupStep` with the Hamiltonian ``H + lam.g(q) + gam.(G(q) v)``, constraints on both levels.

    `ggl_correction` is ``G(q_m)^T gam``, with parts FV_phi and FV_i, ``(s_i)_j = (d_j + a x d_j) . FV_i``::

        p_m  = m u - FV_phi
        Pi_m = J W - sum_i e_i x s_i
        tau  = sum_i dm_i x F_i - sum_i v_mean,i x FV_i
    """

    def mean(self, b: Motion, old: BodyState, pull: Any, inertia: BodyInertia, h: Any) -> tuple[Any, Any]:
        twice_p, twice_spin = super().mean(b, old, pull, inertia, h)
        twice_p -= 2 * pull[: self.d]
        if not self.count:
            return twice_p, twice_spin
        forward = [d + self.turned(h / 2 * b.w, d) for d in b.start]
        of_directors = self.parts(pull)[1:]
        if self.d == 2:
            return twice_p, twice_spin - 2 * self.moment(forward, of_directors)
        for i, force in enumerate(of_directors):
            axis = ca.SX.zeros(3)
            axis[i] = 1
            twice_spin -= 2 * cross(axis, ca.horzcat(*forward).T @ force)
        return twice_p, twice_spin

    def drawn(self, b: Motion, pull: Any, h: Any) -> tuple[Any, Any]:
        """Return the GGL part of both momenta: ``FV_phi`` and ``sum_i e_i x s_i``."""
        if not self.count:
            return pull[: self.d], ca.SX(0, 1)
        forward = [d + self.turned(h / 2 * b.w, d) for d in b.start]
        of_directors = self.parts(pull)[1:]
        if self.d == 2:
            return pull[: self.d], self.moment(forward, of_directors)
        turning = ca.SX.zeros(3)
        for i, force in enumerate(of_directors):
            axis = ca.SX.zeros(3)
            axis[i] = 1
            turning += cross(axis, ca.horzcat(*forward).T @ force)
        return pull[: self.d], turning

    def torque(self, b: Motion, old: BodyState, rows: Any, pull: Any, inertia: BodyInertia, h: Any) -> Any:
        plain = super().torque(b, old, rows, pull, inertia, h)
        mean = (old.v + self.velocity(b, old, pull, inertia, h)) / 2
        return plain + h * self.moment(self.parts(mean)[1:], self.parts(pull)[1:])

    def level_slopes(
        self, b: Motion, old: BodyState, rows: Any, pull: Any, inertia: BodyInertia, h: Any
    ) -> tuple[Any, ...]:
        """Return the Jacobians of the GGL equations of a body.

        The GGL correction enters the momenta through mu, with as many entries as unknowns; the velocities at t + h
        follow from the twist. Returned are derivatives of the residual with respect to variations, element residual,
        correction (at fixed mu), mu, and velocities at t + h; of mu with respect to variations and correction; of the
        twist with respect to variations and mu; of the velocities at t + h with respect to variations (at fixed
        twist); `kinematic_jacobian` and `inverse_tangent`.
        """
        free = Motion(_like(b.u), _like(b.w), b.start, _likes(b.mid), _likes(b.end), _likes(b.rates))
        pushed, pulled, mu = _like(rows), _like(pull), ca.SX.sym("mu", self.size)
        moving, twist = ca.SX.sym("v1", self.d * (1 + self.count)), ca.SX.sym("twist", self.size)
        of_p, of_spin = super().mean(free, old, pulled, inertia, h)
        means = of_p - 2 * mu[: self.d], of_spin - 2 * mu[self.d :] if self.count else of_spin
        torque = None
        if self.count:
            mean = (old.v + moving) / 2
            torque = super().torque(free, old, pushed, pulled, inertia, h)
            torque = torque + h * self.moment(self.parts(mean)[1:], self.parts(pulled)[1:])
        balance = self.balanced(free, old, pushed, *means, torque, h)
        contracted = ca.vertcat(*(part for part in self.drawn(free, pulled, h)))
        ended, lifted = self.twist(free, old, *means, inertia), self.lifted(twist, free)
        motion = [ca.vertcat(free.u, free.w), *(ca.vertcat(*x) if x else ca.SX(0, 1) for x in free.flat_parts)]
        wanted = [(balance, (pushed, pulled, mu, moving)), (contracted, (pulled,)), (ended, (mu,)), (lifted, ())]
        by = [ca.jacobian(y, x) for y, others in wanted for x in (*motion, *others)]
        mu_now = ca.vertcat(*self.drawn(b, pull, h))
        twist_now = self.twist(b, old, *self.mean(b, old, pull, inertia, h), inertia)
        values = [*b.flat, rows, pull, mu_now, self.lifted(twist_now, b), twist_now]
        by = ca.substitute(by, [*free.flat, pushed, pulled, mu, moving, twist], values)
        spread, turn = self.spread(b), self.turn(b, h)
        turned = spread[self.d :, :] if self.count else ca.SX(0, self.size)

        def total() -> Any:
            of_unknown, of_mid, of_end, of_rates = (by.pop(0) for _ in range(4))
            return of_unknown @ turn + of_mid @ (h / 2 * turned) + of_end @ (h * turned) + of_rates @ turned

        found = []
        for _, others in wanted:
            found += [total(), *(by.pop(0) for _ in others)]
        return (*found, spread, turn)


def _like(part: Any) -> Any:
    return ca.SX.sym("b", part.numel()) if part.numel() else ca.SX(0, 1)


def _likes(parts: list[Any]) -> list[Any]:
    return [_like(part) for part in parts]


def hat(a: Any) -> Any:
    """Return the skew-symmetric matrix of ``a x``."""
    return ca.skew(a)


def cross(a: Any, b: Any) -> Any:
    """Return ``a x b``, written out, as CasADi's version keeps products with zero."""
    (a0, a1, a2), (b0, b1, b2) = ca.SX(a).elements(), ca.SX(b).elements()

    def minor(a: Any, b: Any, c: Any, d: Any) -> Any:
        return _binary(ca.OP_SUB, _binary(ca.OP_MUL, a, b), _binary(ca.OP_MUL, c, d))

    return ca.vertcat(minor(a1, b2, a2, b1), minor(a2, b0, a0, b2), minor(a0, b1, a1, b0))


def quarter(d: Any) -> Any:
    """Return a vector of the plane rotated by 90 degrees counter-clockwise."""
    return ca.vertcat(-d[1], d[0])


def solved(J: Any, b: Any) -> Any:
    """Return ``J^-1 b`` of a symmetric 3 x 3 matrix, by its cofactors."""
    columns = [J[:, i] for i in range(3)]
    cofactors = [cross(columns[(i + 1) % 3], columns[(i + 2) % 3]) for i in range(3)]
    return ca.vertcat(*(ca.dot(c, b) for c in cofactors)) / ca.dot(columns[0], cofactors[0])
