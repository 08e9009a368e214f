"""What acts in joints: torsion springs and dampers, motors, drives."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from livens import math as m
from livens.expressions.read import ModelFunction
from livens.models.element import Through, through
from livens.models.rates import Turning, turning
from livens.multibody.couplings import slide_rate
from livens.multibody.joint_table import split, turn
from livens.multibody.placement import Ground, Placement

Law = Callable[..., Any]


@functools.cache
def torsion(a: Placement, b: Placement) -> Through:
    """``stiffness/2 (angle - rest)^2`` through cosine and sine of the angle, which are bilinear in the directors.

    The angle is taken within half a turn of the rest position.
    """

    def invariants(q: Any, k: Any) -> Any:
        return list(turn(a, b, q, k.A, k.B))

    def energy(w: Any, k: Any) -> Any:
        c, s = m.cos(k.rest), m.sin(k.rest)
        return 0.5 * k.stiffness * m.atan2(c * w[1] - s * w[0], c * w[0] + s * w[1]) ** 2

    return through(invariants, energy)


def relative_rate(a: Placement, b: Placement, q: Any, v: Any, A: Any, B: Any) -> Any:
    """How fast b turns against a about the axis of their joint: the rate of the angle of ``(cosine, sine)``.

    In the middle of a step this is ``2/h tan(Dtheta/2)``, the mean rate of the turning map itself.
    """
    cosine, sine = turn(a, b, q, A, B)
    (qa, qb), (va, vb) = split(a, q), split(a, v)
    x, y, z = a.vector(qa, A[:, 0]), a.vector(qa, A[:, 1]), b.vector(qb, B[:, 0])
    # of the ground, axes do not move
    moving = [0.0, 0.0] if isinstance(a, Ground) else [m.dot(a.vector(va, A[:, i]), z) for i in (0, 1)]
    if not isinstance(b, Ground):
        w = b.vector(vb, B[:, 0])
        moving = [moving[0] + m.dot(x, w), moving[1] + m.dot(y, w)]
    return (cosine * moving[1] - sine * moving[0]) / (cosine**2 + sine**2)


def turning_force(a: Placement, b: Placement, q: Any, A: Any, B: Any, size: Any) -> Any:
    """The generalised force of a torque about the axis of a joint, on b and with the other sign on a.

    Its power is size times `relative_rate`; as that is made of products of axes alone, the torques on both bodies are
    equal and opposite, and they are of this size however far a step turns them.
    """
    cosine, sine = turn(a, b, q, A, B)
    qa, qb = split(a, q)
    x, y, z = a.vector(qa, A[:, 0]), a.vector(qa, A[:, 1]), b.vector(qb, B[:, 0])
    share = size / (cosine**2 + sine**2)
    on_a = a.pull(A[:, 1], m.array(share * cosine * z)) - a.pull(A[:, 0], m.array(share * sine * z))
    on_b = b.pull(B[:, 0], m.array(share * (cosine * y - sine * x)))
    return m.array([*on_a, *on_b])


def angular_velocity(placement: Placement, q: Any, v: Any) -> Any:
    """``A^-1 sum d_i x v_i``: right for rigid motion also where the directors are those of the middle of a step."""
    if isinstance(placement, Ground):
        return 0.0 if placement.dimension == 2 else m.array([0.0, 0.0, 0.0])
    # the power of a torque is torque . omega: so omega is what the torque's generalised force is multiplied by
    if placement.dimension == 2:
        return m.dot(placement.torque(q, [1.0]), v)
    units = ([1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0])
    return m.array([m.dot(placement.torque(q, unit), v) for unit in units])


@functools.cache
def motor(a: Placement, b: Placement, law: Law, named: bool) -> ModelFunction:
    """A torque about the axis, on b and with the other sign on a, by a law of time, angle and rate."""

    def forces(q: Any, v: Any, t: Any, k: Any) -> Any:
        given = (t, *measured(a, b, q, v, k, True))
        return turning_force(a, b, q, k.A, k.B, law(*given, k) if named else law(*given))

    return forces


@functools.cache
def pusher(a: Placement, b: Placement, law: Law, named: bool) -> ModelFunction:
    """A force along the axis of a sliding joint, at the point of b and with the other sign at that of a."""

    def forces(q: Any, v: Any, t: Any, k: Any) -> Any:
        given = (t, *measured(a, b, q, v, k, False))
        return pushing_force(a, b, q, k, law(*given, k) if named else law(*given))

    return forces


def pushing_force(a: Placement, b: Placement, q: Any, k: Any, size: Any) -> Any:
    """The generalised force of a force along the axis of a sliding joint."""
    qa, qb = split(a, q)
    axis, gap = _way(a, b, qa, qb, k)
    force = size * axis
    on_b = [] if isinstance(b, Ground) else b.force(qb, k.Y, force)
    # the force acts on a where it acts on b, or its moment would be lost
    inside = k.X if isinstance(a, Ground) else k.X + _slid(a, qa, gap)
    on_a = [] if isinstance(a, Ground) else a.force(qa, inside, -force)
    return m.array([*on_a, *on_b])


def measured(a: Placement, b: Placement, q: Any, v: Any, k: Any, turns: bool) -> tuple[Any, Any]:
    """Angle and rate of a joint that turns, position and speed of one that slides."""
    if turns:
        cosine, sine = turn(a, b, q, k.A, k.B)
        return m.atan2(sine, cosine), relative_rate(a, b, q, v, k.A, k.B)
    (qa, qb), (va, vb) = split(a, q), split(a, v)
    axis, gap = _way(a, b, qa, qb, k)
    return m.dot(axis, gap), m.dot(axis, b.velocity(qb, vb, k.Y) - a.velocity(qa, va, k.X))


def _way(a: Placement, b: Placement, qa: Any, qb: Any, k: Any) -> tuple[Any, Any]:
    """The axis of a sliding joint, and the vector between its points."""
    axis = a.vector(qa, k.A[:, a.dimension - 1 if a.dimension == 3 else 0])
    return axis, b.point(qb, k.Y) - a.point(qa, k.X)


def _slid(a: Placement, qa: Any, gap: Any) -> Any:
    """A vector of space in the axes of a, which may be a little short in the middle of a step."""
    columns = [a.vector(qa, unit) for unit in ([1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0])][: a.dimension]
    return m.array([m.dot(d, gap) / m.dot(d, d) for d in columns])


@functools.cache
def drive(a: Placement, b: Placement, law: Law) -> ModelFunction:
    """The angle of a joint is a function of time: ``cos(phi) sine - sin(phi) cosine = 0``."""

    def constraints(q: Any, t: Any, k: Any) -> Any:
        cosine, sine = turn(a, b, q, k.A, k.B)
        angle = law(t)
        return [m.cos(angle) * sine - m.sin(angle) * cosine]

    return constraints


@functools.cache
def shift(a: Placement, b: Placement, law: Law) -> ModelFunction:
    """The position of a joint is a function of time."""

    def constraints(q: Any, t: Any, k: Any) -> Any:
        qa, qb = split(a, q)
        axis = a.vector(qa, k.A[:, a.dimension - 1 if a.dimension == 3 else 0])
        return [m.dot(axis, b.point(qb, k.Y) - a.point(qa, k.X)) - law(t)]

    return constraints


@functools.cache
def speed_drive(a: Placement, b: Placement, law: Law, angle: bool) -> Turning | ModelFunction:
    """The rate of a joint is a function of time: held for the increments of its angle or position."""
    if not angle:
        place = a.dimension - 1 if a.dimension == 3 else 0
        return lambda q, v, t, k: [slide_rate(a, b, q, v, k.X, k.Y, k.A[:, place]) - law(t)]
    return turning(lambda q, k: list(turn(a, b, q, k.A, k.B)), lambda w, t: [w[0] - law(t)])


@functools.cache
def turning_damper(a: Placement, b: Placement) -> ModelFunction:
    """Rayleigh's function ``viscosity/2 rate^2``."""

    def dissipation(q: Any, v: Any, k: Any) -> Any:
        return 0.5 * k.viscosity * relative_rate(a, b, q, v, k.A, k.B) ** 2

    return dissipation
