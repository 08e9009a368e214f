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
class Groove(NamedTuple):
    """A ball and a race as seen from the ring."""

    d: Any  # from the ring's centre
    rho: Any  # distance from the axis
    e_r: Any
    e_t: Any
    touch: Touch
    waves: list[tuple[Any, Any]]  # cos and sin of n theta, for every mode of an elastic ring
    slope: Any  # of the ring's deflection along theta


def _groove(q: Any, k: Any, waves: Sequence[int], first: int, turned: Any = None) -> Groove:
    """The torus that a groove is; its deflection moves the circle of its section's centre outwards.

    A ring that is `turned` by an angle is oval: its race goes in and out twice around it.
    """
    d = q[:3] - q[6:9]
    rho = m.sqrt(d[1] ** 2 + d[2] ** 2)
    c, s = d[1] / rho, d[2] / rho
    around = _angles(c, s, waves)
    bent = slope = 0.0
    for i, (n, (cosine, sine)) in enumerate(zip(waves, around, strict=True)):
        a, b = q[first + 2 * i], q[first + 2 * i + 1]
        bent = bent + a * cosine + b * sine
        slope = slope + n * (b * cosine - a * sine)
    if turned is not None:
        across, along = c * c - s * s, 2 * s * c  # cos and sin of 2 theta
        c2, s2 = m.cos(2 * turned), m.sin(2 * turned)
        bent = bent + k.oval * (c2 * across + s2 * along)
        slope = slope + 2 * k.oval * (s2 * across - c2 * along)
    off = rho - k.R - bent
    size = m.sqrt(d[0] ** 2 + off**2)
    u = m.array([d[0], off * c, off * s]) / size
    depth = m.maximum(size + k.D / 2 - k.r, _NOTHING)
    e_r, e_t = m.array([0.0, c, s]), m.array([0.0, -s, c])
    return Groove(d, rho, e_r, e_t, Touch(u, depth, (k.D / 2 - depth / 2) * u), around, slope)


def _angles(c: Any, s: Any, waves: Sequence[int]) -> list[tuple[Any, Any]]:
    """``cos n theta`` and ``sin n theta`` by the addition theorem."""
    found, last = [], (c, s)
    for n in range(2, max(waves, default=1) + 1):
        last = last[0] * c - last[1] * s, last[1] * c + last[0] * s
        if n in waves:
            found.append(last)
    return found


def _turned(q: Any, t: Any, k: Any) -> Any:
    """How far an inner ring has turned in space."""
    return k.speed * t + q[9]


@functools.cache
def race_energy(waves: tuple[int, ...], first: int, oval: bool = False) -> ModelFunction:
    if oval:
        return lambda q, t, k: _hertz_energy(k.K, _groove(q, k, waves, first, _turned(q, t, k)).touch.depth)
    return lambda q, k: _hertz_energy(k.K, _groove(q, k, waves, first).touch.depth)


def _growth(groove: Groove, v: Any, k: Any, first: int, bends: bool, oval: bool) -> tuple[Any, Any, Any]:
    """How the depth grows with the ball's place (with the other sign, with the ring's) and with each mode, and its
    rate."""
    u = groove.touch.u
    radial = m.dot(u, groove.e_r)
    on_ball = u - radial * groove.slope / groove.rho * groove.e_t if bends or oval else u
    on_modes = [-radial * wave for both in groove.waves for wave in both]
    rate = m.dot(on_ball, v[:3] - v[6:9])
    for i, part in enumerate(on_modes):
        rate = rate + part * v[first + i]
    if oval:  # the race turns under the ball
        rate = rate + radial * groove.slope * (k.speed + v[9])
    return on_ball, on_modes, rate


@functools.cache
def race_forces(spins: bool, waves: tuple[int, ...], first: int, oval: bool = False) -> ModelFunction:
    """Damping, friction and pivoting between a ball and a race; a ring that `spins` has its angle after its centre."""

    def acting(q: Any, v: Any, k: Any, turned: Any) -> Any:
        groove = _groove(q, k, waves, first, turned)
        u, depth, lever = groove.touch
        on_ball, on_modes, rate = _growth(groove, v, k, first, bool(waves), oval)
        elastic = _hertz(k.K, depth)
        Q = elastic * m.maximum(0.0, 1 + k.damping * rate)
        spin = k.speed + v[9] if spins else 0.0
        arm = groove.d + lever
        sliding = v[:3] + m.cross(v[3:6], lever) - v[6:9]
        pivoting = m.dot(v[3:6], u)
        if spins:
            sliding = sliding - spin * m.array([0.0, -arm[2], arm[1]])
            pivoting = pivoting - spin * u[0]
        friction = _pushed(Q, u, sliding, k.mu, k.creep)
        moment = -(k.mu * k.pivot * Q * pivoting / m.sqrt(pivoting**2 + k.pivot_creep**2)) * u
        pushed = friction - (Q - elastic) * on_ball
        found = [*pushed, *(m.cross(lever, friction) + moment), *(-pushed)]
        if spins:
            turning = -(arm[1] * friction[2] - arm[2] * friction[1]) - moment[0]
            found.append(turning - (Q - elastic) * m.dot(u, groove.e_r) * groove.slope if oval else turning)
        return [*found, *(-(Q - elastic) * part for part in on_modes)]

    if oval:
        return lambda q, v, t, k: acting(q, v, k, _turned(q, t, k))
    return lambda q, v, k: acting(q, v, k, None)


def race_normal(waves: tuple[int, ...], first: int, oval: bool = False) -> Callable[..., Any]:
    """The normal force, of coordinates, velocities, time and parameters."""

    def normal(q: Any, v: Any, t: Any, k: Any) -> Any:
        groove = _groove(q, k, waves, first, _turned(q, t, k) if oval else None)
        _, _, rate = _growth(groove, v, k, first, bool(waves), oval)
        return _hertz(k.K, groove.touch.depth) * m.maximum(0.0, 1 + k.damping * rate)

    return normal


# -- pockets ----------------------------------------------------------------------------------------------------------
def _pocket(q: Any, k: Any) -> tuple[Touch, Any]:
    """A sphere in a sphere, and the place of the pocket's centre seen from that of the cage."""
    centre = k.circle * (k.cosine * q[12:15] + k.sine * q[15:18])
    e = q[:3] - q[6:9] - centre
    size = m.sqrt(m.dot(e, e) + _NOTHING)
    depth = m.maximum(size - k.gap, 0.0)
    u = e / size
    return Touch(u, depth, (k.D / 2 - depth / 2) * u), centre


def pocket_energy(q: Any, k: Any) -> Any:
    return k.pocket_stiffness / 2 * _pocket(q, k)[0].depth ** 2


def _pocket_rate(q: Any, v: Any, k: Any, u: Any) -> Any:
    """How fast a ball goes deeper into its pocket."""
    return m.dot(u, v[:3] - v[6:9] - k.circle * (k.cosine * v[12:15] + k.sine * v[15:18]))


def pocket_forces(q: Any, v: Any, k: Any) -> Any:
    """Damping and friction between a ball and its pocket. Forces on directors add up to that at the contact."""
    (u, depth, lever), _ = _pocket(q, k)
    elastic = k.pocket_stiffness * depth
    Q = elastic * m.maximum(0.0, 1 + k.pocket_damping * _pocket_rate(q, v, k, u))
    arm = q[:3] + lever - q[6:9]
    parts = [m.dot(arm, q[9 + 3 * i : 12 + 3 * i]) for i in range(3)]
    of_cage = v[6:9] + sum(x * v[9 + 3 * i : 12 + 3 * i] for i, x in enumerate(parts))
    friction = _pushed(Q, u, v[:3] + m.cross(v[3:6], lever) - of_cage, k.pocket_mu, k.creep)
    pushed = friction - (Q - elastic) * u
    return [*pushed, *m.cross(lever, friction), *(-pushed), *(-x * f for x in parts for f in pushed)]


def pocket_normal(q: Any, v: Any, t: Any, k: Any) -> Any:
    """The normal force."""
    (u, depth, _), _ = _pocket(q, k)
    return k.pocket_stiffness * depth * m.maximum(0.0, 1 + k.pocket_damping * _pocket_rate(q, v, k, u))
