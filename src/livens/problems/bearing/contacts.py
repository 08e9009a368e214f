"""Contact forces in a ball bearing: balls on races and in the pockets of the cage.

The normal force is ``Q = Q_elastic max(0, 1 + c depth')`` (Hunt and Crossley). Regularised Coulomb friction consists of
``mu Q`` against sliding and, on races, ``mu Q a`` against pivoting. The elastic part has a potential; dissipative parts
are generalised forces. Angles of balls are ignorable coordinates: only their rates enter.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from livens import math as m
from livens.expressions.read import ModelFunction
from livens.multibody.ring_modes import around, moves

#: Lower bound of the penetration depth in m; it keeps the square root of Hertz' law and its derivative regular.
_NOTHING = 1e-30
_AXIS = np.array([1.0, 0.0, 0.0])


class Touch(NamedTuple):
    """Contact kinematics of a ball: normal into the surface, penetration depth, vector from ball centre to contact."""

    u: Any
    depth: Any
    lever: Any


def _hertz(K: Any, depth: Any) -> Any:
    """Return the Hertz force ``K depth^(3/2)``."""
    return K * depth * m.sqrt(depth)


def _hertz_energy(K: Any, depth: Any) -> Any:
    return 0.4 * K * depth * depth * m.sqrt(depth)


def _pushed(Q: Any, u: Any, sliding: Any, mu: Any, creep: Any) -> Any:
    """Return the regularised Coulomb friction force at a given sliding velocity on a surface with normal u."""
    across = sliding - m.dot(sliding, u) * u
    return -(mu * Q / m.sqrt(m.dot(across, across) + creep**2)) * across


# -- races ------------------------------------------------------------------------------------------------------------
class Ring(NamedTuple):
    """Race definition: rotating ring (its angle is the coordinate after its centre), wave numbers of its modes, index
    of the first modal coordinate in the contact element, and whether the race is oval."""

    spins: bool
    waves: tuple[int, ...] = ()
    first: int = 9
    oval: bool = False

    @property
    def round(self) -> bool:
        return not (self.waves or self.oval)

    @property
    def shows_turning(self) -> bool:
        """True for a rotating race that is not round, so that contact kinematics depend on the rotation angle."""
        return self.spins and not self.round


class Groove(NamedTuple):
    """Kinematics of a ball on a race, relative to the ring."""

    d: Any  # position relative to the centre of the ring
    rho: Any  # distance from the axis
    e_r: Any
    e_t: Any
    touch: Touch
    waves: list[tuple[Any, Any]]  # cos(n angle) and sin(n angle) of the angle on the ring, for each mode
    slope: Any  # derivative of the deflection of the ring by the angle


def _groove(q: Any, t: Any, k: Any, ring: Ring) -> Groove:
    """Return the contact kinematics of a toroidal groove; deflections displace the circle of section centres radially.

    Deflections rotate with the ring: two waves for an oval race, n waves for a mode of wave number n.
    """
    d = q[:3] - q[6:9]
    rho = m.sqrt(d[1] ** 2 + d[2] ** 2)
    c, s = d[1] / rho, d[2] / rho
    along, aside = c, s  # cosine and sine of the angle on the ring
    if ring.shows_turning:
        turned = k.speed * t + q[9]
        cosine, sine = m.cos(turned), m.sin(turned)
        along, aside = c * cosine + s * sine, s * cosine - c * sine
    angles = around(along, aside, ring.waves)
    bent = slope = 0.0
    for i, (n, (cosine, sine)) in enumerate(zip(ring.waves, angles, strict=True)):
        a, b = q[ring.first + 2 * i], q[ring.first + 2 * i + 1]
        bent = bent + a * cosine + b * sine
        slope = slope + n * (b * cosine - a * sine)
    if ring.oval:
        bent = bent + k.oval * (along * along - aside * aside)
        slope = slope - 4 * k.oval * along * aside
    off = rho - k.R - bent
    size = m.sqrt(d[0] ** 2 + off**2)
    u = m.array([d[0], off * c, off * s]) / size
    depth = m.maximum(size + k.D / 2 - k.r, _NOTHING)
    e_r, e_t = m.array([0.0, c, s]), m.array([0.0, -s, c])
    return Groove(d, rho, e_r, e_t, Touch(u, depth, (k.D / 2 - depth / 2) * u), angles, slope)


@functools.cache
def race_energy(ring: Ring) -> ModelFunction:
    if ring.shows_turning:
        return lambda q, t, k: _hertz_energy(k.K, _groove(q, t, k, ring).touch.depth)
    return lambda q, k: _hertz_energy(k.K, _groove(q, 0.0, k, ring).touch.depth)


def _growth(groove: Groove, v: Any, k: Any, ring: Ring) -> tuple[Any, Any, Any]:
    """Return the gradient of the penetration depth by the ball position (negative: by the ring position) and by each
    mode, and the penetration rate."""
    u = groove.touch.u
    radial = m.dot(u, groove.e_r)
    on_ball = u if ring.round else u - radial * groove.slope / groove.rho * groove.e_t
    on_modes = [-radial * wave for both in groove.waves for wave in both]
    rate = m.dot(on_ball, v[:3] - v[6:9])
    for i, part in enumerate(on_modes):
        rate = rate + part * v[ring.first + i]
    if ring.shows_turning:  # motion of the race relative to the ball
        rate = rate + radial * groove.slope * (k.speed + v[9])
    return on_ball, on_modes, rate


@functools.cache
def race_forces(ring: Ring) -> ModelFunction:
    """Return the dissipative forces between ball and race: damping, friction and pivoting moment."""

    def acting(q: Any, v: Any, t: Any, k: Any) -> Any:
        groove = _groove(q, t, k, ring)
        u, depth, lever = groove.touch
        on_ball, on_modes, rate = _growth(groove, v, k, ring)
        elastic = _hertz(k.K, depth)
        Q = elastic * m.maximum(0.0, 1 + k.damping * rate)
        spin = k.speed + v[9] if ring.spins else 0.0
        arm = groove.d + lever
        sliding = v[:3] + m.cross(v[3:6], lever) - v[6:9]
        pivoting = m.dot(v[3:6], u)
        if ring.spins:
            sliding = sliding - spin * m.array([0.0, -arm[2], arm[1]])
            pivoting = pivoting - spin * u[0]
        friction = _pushed(Q, u, sliding, k.mu, k.creep)
        moment = -(k.mu * k.pivot * Q * pivoting / m.sqrt(pivoting**2 + k.pivot_creep**2)) * u
        pushed = friction - (Q - elastic) * on_ball
        found = [*pushed, *(m.cross(lever, friction) + moment), *(-pushed)]
        if ring.spins:
            turning = -(arm[1] * friction[2] - arm[2] * friction[1]) - moment[0]
            shown = ring.shows_turning
            found.append(turning - (Q - elastic) * m.dot(u, groove.e_r) * groove.slope if shown else turning)
        return [*found, *(-(Q - elastic) * part for part in on_modes)]

    if ring.shows_turning:
        return acting
    return lambda q, v, k: acting(q, v, 0.0, k)


def race_normal(ring: Ring) -> Callable[..., Any]:
    """Return the normal force as a function of coordinates, velocities, time and parameters."""

    def normal(q: Any, v: Any, t: Any, k: Any) -> Any:
        groove = _groove(q, t, k, ring)
        _, _, rate = _growth(groove, v, k, ring)
        return _hertz(k.K, groove.touch.depth) * m.maximum(0.0, 1 + k.damping * rate)

    return normal


def race_point(ring: Ring) -> Callable[..., Any]:
    """Return the contact point of a ball on a race as a function of coordinates, velocities, time and parameters."""
    return lambda q, v, t, k: q[:3] + _groove(q, t, k, ring).touch.lever


# -- pockets ----------------------------------------------------------------------------------------------------------
#: Index of the first mode of an elastic cage, after 6 coordinates of the ball and 12 of the cage (centre, directors).
_MODES = 18


def _centre(q: Any, k: Any, waves: Sequence[int]) -> tuple[Any, list[Any]]:
    """Return the position of a pocket centre relative to the cage centre, and its derivatives by the modes."""
    outwards, along = k.cosine * q[12:15] + k.sine * q[15:18], k.cosine * q[15:18] - k.sine * q[12:15]
    centre, found = k.circle * outwards, []
    for i, (w, v) in enumerate(moves(k.cosine, k.sine, waves)):
        found.append(w * outwards + v * along)
        centre = centre + q[_MODES + i] * found[-1]
    return centre, found


def _pocket(q: Any, k: Any, waves: Sequence[int]) -> tuple[Touch, list[Any]]:
    """Return the contact of a ball in a spherical pocket, and the derivatives of the pocket centre by the modes."""
    centre, moving = _centre(q, k, waves)
    e = q[:3] - q[6:9] - centre
    size = m.sqrt(m.dot(e, e) + _NOTHING)
    depth = m.maximum(size - k.gap, 0.0)
    u = e / size
    return Touch(u, depth, (k.D / 2 - depth / 2) * u), moving


@functools.cache
def pocket_energy(waves: tuple[int, ...]) -> ModelFunction:
    return lambda q, k: k.pocket_stiffness / 2 * _pocket(q, k, waves)[0].depth ** 2


def _pocket_rate(q: Any, v: Any, k: Any, u: Any, waves: Sequence[int]) -> Any:
    """Return the penetration rate of a ball in its pocket."""
    turned = m.array([*v[:18], *q[18:]])  # velocities of centre and directors, modes unchanged
    moving, _ = _centre(turned, k, waves)
    _, bending = _centre(q, k, waves)
    for i, one in enumerate(bending):
        moving = moving + v[_MODES + i] * one
    return m.dot(u, v[:3] - v[6:9] - moving)


@functools.cache
def pocket_forces(waves: tuple[int, ...]) -> ModelFunction:
    """Return damping and friction between ball and pocket; forces on directors are equivalent to the contact force."""

    def acting(q: Any, v: Any, k: Any) -> Any:
        (u, depth, lever), bending = _pocket(q, k, waves)
        elastic = k.pocket_stiffness * depth
        Q = elastic * m.maximum(0.0, 1 + k.pocket_damping * _pocket_rate(q, v, k, u, waves))
        arm = q[:3] + lever - q[6:9]
        parts = [m.dot(arm, q[9 + 3 * i : 12 + 3 * i]) for i in range(3)]
        of_cage = v[6:9] + sum(x * v[9 + 3 * i : 12 + 3 * i] for i, x in enumerate(parts))
        for i, one in enumerate(bending):
            of_cage = of_cage + v[_MODES + i] * one
        friction = _pushed(Q, u, v[:3] + m.cross(v[3:6], lever) - of_cage, k.pocket_mu, k.creep)
        pushed = friction - (Q - elastic) * u
        on_cage = [*(-pushed), *(-x * f for x in parts for f in pushed), *(-m.dot(pushed, one) for one in bending)]
        return [*pushed, *m.cross(lever, friction), *on_cage]

    return acting


def pocket_normal(waves: tuple[int, ...]) -> Callable[..., Any]:
    """Return the normal force between ball and pocket as a function of coordinates, velocities, time and parameters."""

    def normal(q: Any, v: Any, t: Any, k: Any) -> Any:
        (u, depth, _), _ = _pocket(q, k, waves)
        rate = _pocket_rate(q, v, k, u, waves)
        return k.pocket_stiffness * depth * m.maximum(0.0, 1 + k.pocket_damping * rate)

    return normal


def pocket_point(waves: tuple[int, ...]) -> Callable[..., Any]:
    """Return the contact point of a ball in its pocket."""
    return lambda q, v, t, k: q[:3] + _pocket(q, k, waves)[0].lever
