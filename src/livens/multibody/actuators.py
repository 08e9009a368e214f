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

    def energy(w: Any, k: Any) -> Any:
        c, s = m.cos(k.rest), m.sin(k.rest)
        return 0.5 * k.stiffness * m.atan2(c * w[1] - s * w[0], c * w[0] + s * w[1]) ** 2

    return through(invariants(a, b, True), energy)


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


def angular_velocity(placement: Placement, q: Any, v: Any) -> Any:
    """``A^-1 sum d_i x v_i``: right for rigid motion also where the directors are those of the middle of a step."""
    if isinstance(placement, Ground):
        return 0.0 if placement.dimension == 2 else m.array([0.0, 0.0, 0.0])
    # the power of a torque is torque . omega: so omega is what the torque's generalised force is multiplied by
    if placement.dimension == 2:
        return m.dot(placement.torque(q, [1.0]), v)
    units = ([1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0])
    return m.array([m.dot(placement.torque(q, unit), v) for unit in units])


def way(a: Placement, b: Placement, q: Any, k: Any) -> Any:
    """How far a sliding joint has moved along the axis of the first part: bilinear in the directors."""
    qa, qb = split(a, q)
    axis = a.vector(qa, k.A[:, a.dimension - 1 if a.dimension == 3 else 0])
    return m.dot(axis, b.point(qb, k.Y) - a.point(qa, k.X))


@functools.cache
def invariants(a: Placement, b: Placement, turns: bool) -> ModelFunction:
    """What the angle or the position of a joint is made of: cosine and sine, or the way itself."""
    if turns:
        return lambda q, k: list(turn(a, b, q, k.A, k.B))
    return lambda q, k: [way(a, b, q, k)]


def angle_and_rate(w: Any, u: Any, turns: bool) -> tuple[Any, Any]:
    """Angle and rate from cosine and sine and their rates; of a joint that slides, position and speed."""
    if not turns:
        return w[0], u[0]
    return m.atan2(w[1], w[0]), (w[0] * u[1] - w[1] * u[0]) / (w[0] ** 2 + w[1] ** 2)


def on_invariants(w: Any, size: Any, turns: bool) -> list[Any]:
    """A torque, or a force along the way, as forces on the invariants: its power is size times the rate.

    As these are made of products of axes alone, the torques on both bodies are equal and opposite, and they are of this
    size however far a step turns them; a force acts on both bodies at one point.
    """
    if not turns:
        return [size]
    share = size / (w[0] ** 2 + w[1] ** 2)
    return [-share * w[1], share * w[0]]


@functools.cache
def motor(a: Placement, b: Placement, law: Law, named: bool, turns: bool = True) -> Through:
    """A torque about the axis, or a force along it, on b and with the other sign on a, by a law of time, angle and
    rate (position and speed)."""

    def forces(w: Any, u: Any, t: Any, k: Any) -> Any:
        given = (t, *angle_and_rate(w, u, turns))
        return on_invariants(w, law(*given, k) if named else law(*given), turns)

    return through(invariants(a, b, turns), forces)


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
def turning_damper(a: Placement, b: Placement) -> Through:
    """Rayleigh's function ``viscosity/2 rate^2``."""
    return through(invariants(a, b, True), lambda w, u, k: 0.5 * k.viscosity * angle_and_rate(w, u, True)[1] ** 2)
