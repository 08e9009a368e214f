"""Forces in a ball bearing: balls on races and in pockets of the cage.

A normal force ``Q = Q_elastic max(0, 1 + c depth')`` (Hunt and Crossley), friction ``mu Q`` against sliding and, on
races, ``mu Q a`` against pivoting, both made smooth where they change their sign. The elastic part has a potential; all
else is given as forces. Balls need no orientation: their angles are ignorable, only the rates count.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from livens import math as m
from livens.expressions.read import ModelFunction
from livens.multibody.ring_modes import around, moves

#: Depths below this count as none; it keeps the root in Hertz' law, and its derivative, away from zero.
_NOTHING = 1e-30
_AXIS = np.array([1.0, 0.0, 0.0])


class Touch(NamedTuple):
    """Where a ball meets a surface: the direction into it, how deep, and the way from the ball's centre."""

    u: Any
    depth: Any
    lever: Any


def _hertz(K: Any, depth: Any) -> Any:
    """``K depth^(3/2)``."""
    return K * depth * m.sqrt(depth)


def _hertz_energy(K: Any, depth: Any) -> Any:
    return 0.4 * K * depth * depth * m.sqrt(depth)


def _pushed(Q: Any, u: Any, sliding: Any, mu: Any, creep: Any) -> Any:
    """Friction on a body that slides with this velocity over a surface whose normal is u."""
    across = sliding - m.dot(sliding, u) * u
    return -(mu * Q / m.sqrt(m.dot(across, across) + creep**2)) * across


# -- races ------------------------------------------------------------------------------------------------------------
class Ring(NamedTuple):
    """What a race belongs to: whether its ring spins (its angle then follows its centre), numbers of waves of its
    modes, where they begin among the coordinates of the contact, and whether it is oval."""

    spins: bool
    waves: tuple[int, ...] = ()
    first: int = 9
    oval: bool = False

    @property
    def round(self) -> bool:
        return not (self.waves or self.oval)

    @property
    def shows_turning(self) -> bool:
        """It is not round and turns, so that the place of a ball on it depends on time."""
        return self.spins and not self.round


class Groove(NamedTuple):
    """A ball and a race as seen from the ring."""

    d: Any  # from the ring's centre
    rho: Any  # distance from the axis
    e_r: Any
    e_t: Any
    touch: Touch
    waves: list[tuple[Any, Any]]  # cos and sin of n times the angle on the ring, for every mode of it
    slope: Any  # of the ring's deflection along the angle


def _groove(q: Any, t: Any, k: Any, ring: Ring) -> Groove:
    """The torus that a groove is; its deflection moves the circle of its section's centre outwards.

    Deflections turn with the ring: an oval race goes in and out twice around it, modes as often as their waves say.
    """
    d = q[:3] - q[6:9]
    rho = m.sqrt(d[1] ** 2 + d[2] ** 2)
    c, s = d[1] / rho, d[2] / rho
    along, aside = c, s  # of the angle on the ring
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
    """How the depth grows with the ball's place (with the other sign, with the ring's) and with each mode, and its
    rate."""
    u = groove.touch.u
    radial = m.dot(u, groove.e_r)
    on_ball = u if ring.round else u - radial * groove.slope / groove.rho * groove.e_t
    on_modes = [-radial * wave for both in groove.waves for wave in both]
    rate = m.dot(on_ball, v[:3] - v[6:9])
    for i, part in enumerate(on_modes):
        rate = rate + part * v[ring.first + i]
    if ring.shows_turning:  # the race turns under the ball
        rate = rate + radial * groove.slope * (k.speed + v[9])
    return on_ball, on_modes, rate


@functools.cache
def race_forces(ring: Ring) -> ModelFunction:
    """Damping, friction and pivoting between a ball and a race."""

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
    """The normal force, of coordinates, velocities, time and parameters."""

    def normal(q: Any, v: Any, t: Any, k: Any) -> Any:
        groove = _groove(q, t, k, ring)
        _, _, rate = _growth(groove, v, k, ring)
        return _hertz(k.K, groove.touch.depth) * m.maximum(0.0, 1 + k.damping * rate)

    return normal


def race_point(ring: Ring) -> Callable[..., Any]:
    """Where a ball touches a race."""
    return lambda q, v, t, k: q[:3] + _groove(q, t, k, ring).touch.lever


# -- pockets ----------------------------------------------------------------------------------------------------------
#: Coordinates of a ball, then those of the cage: its centre and directors; modes of an elastic cage follow.
_MODES = 18


def _centre(q: Any, k: Any, waves: Sequence[int]) -> tuple[Any, list[Any]]:
    """The place of a pocket's centre seen from that of the cage, and how each mode moves it."""
    outwards, along = k.cosine * q[12:15] + k.sine * q[15:18], k.cosine * q[15:18] - k.sine * q[12:15]
    centre, found = k.circle * outwards, []
    for i, (w, v) in enumerate(moves(k.cosine, k.sine, waves)):
        found.append(w * outwards + v * along)
        centre = centre + q[_MODES + i] * found[-1]
    return centre, found


def _pocket(q: Any, k: Any, waves: Sequence[int]) -> tuple[Touch, list[Any]]:
    """A sphere in a sphere, and how the modes move its centre."""
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
    """How fast a ball goes deeper into its pocket."""
    turned = m.array([*v[:18], *q[18:]])  # directors that move, modes as they are
    moving, _ = _centre(turned, k, waves)
    _, bending = _centre(q, k, waves)
    for i, one in enumerate(bending):
        moving = moving + v[_MODES + i] * one
    return m.dot(u, v[:3] - v[6:9] - moving)


@functools.cache
def pocket_forces(waves: tuple[int, ...]) -> ModelFunction:
    """Damping and friction between a ball and its pocket. Forces on directors add up to that at the contact."""

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
    """The normal force."""

    def normal(q: Any, v: Any, t: Any, k: Any) -> Any:
        (u, depth, _), _ = _pocket(q, k, waves)
        rate = _pocket_rate(q, v, k, u, waves)
        return k.pocket_stiffness * depth * m.maximum(0.0, 1 + k.pocket_damping * rate)

    return normal


def pocket_point(waves: tuple[int, ...]) -> Callable[..., Any]:
    """Where a ball touches its pocket."""
    return lambda q, v, t, k: q[:3] + _pocket(q, k, waves)[0].lever
