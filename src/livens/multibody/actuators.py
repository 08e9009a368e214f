"""Force elements and rheonomic constraints in joints: torsion springs and dampers, motors, drives."""

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
    """Return the torsion-spring potential ``stiffness/2 (angle - rest)^2`` of cosine and sine of the angle.

    Cosine and sine are bilinear in the directors. The angle is within half a turn of the rest angle.
    """

    def energy(w: Any, k: Any) -> Any:
        c, s = m.cos(k.rest), m.sin(k.rest)
        return 0.5 * k.stiffness * m.atan2(c * w[1] - s * w[0], c * w[0] + s * w[1]) ** 2

    return through(invariants(a, b, True), energy)


def relative_rate(a: Placement, b: Placement, q: Any, v: Any, A: Any, B: Any) -> Any:
    """Return the rate of the joint angle of b relative to a, from the rates of ``(cosine, sine)``.

    At the midpoint of a step this is ``2/h tan(Dtheta/2)``, the mean rate of the Cayley map.
    """
    cosine, sine = turn(a, b, q, A, B)
    (qa, qb), (va, vb) = split(a, q), split(a, v)
    x, y, z = a.vector(qa, A[:, 0]), a.vector(qa, A[:, 1]), b.vector(qb, B[:, 0])
    # axes of the ground do not move
    moving = [0.0, 0.0] if isinstance(a, Ground) else [m.dot(a.vector(va, A[:, i]), z) for i in (0, 1)]
    if not isinstance(b, Ground):
        w = b.vector(vb, B[:, 0])
        moving = [moving[0] + m.dot(x, w), moving[1] + m.dot(y, w)]
    return (cosine * moving[1] - sine * moving[0]) / (cosine**2 + sine**2)


def angular_velocity(placement: Placement, q: Any, v: Any) -> Any:
    """Return the angular velocity ``A^-1 sum d_i x v_i``: exact for rigid motion, also for midpoint directors."""
    if isinstance(placement, Ground):
        return 0.0 if placement.dimension == 2 else m.array([0.0, 0.0, 0.0])
    # the power of a torque is torque . omega: omega follows from the generalised forces of unit torques
    if placement.dimension == 2:
        return m.dot(placement.torque(q, [1.0]), v)
    units = ([1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0])
    return m.array([m.dot(placement.torque(q, unit), v) for unit in units])


def way(a: Placement, b: Placement, q: Any, k: Any) -> Any:
    """Return the displacement of a sliding joint along the axis of the first body: bilinear in the directors."""
    qa, qb = split(a, q)
    axis = a.vector(qa, k.A[:, a.dimension - 1 if a.dimension == 3 else 0])
    return m.dot(axis, b.point(qb, k.Y) - a.point(qa, k.X))


@functools.cache
def invariants(a: Placement, b: Placement, turns: bool) -> ModelFunction:
    """Return the invariants of a joint coordinate: cosine and sine of the angle, or the displacement."""
    if turns:
        return lambda q, k: list(turn(a, b, q, k.A, k.B))
    return lambda q, k: [way(a, b, q, k)]


def angle_and_rate(w: Any, u: Any, turns: bool) -> tuple[Any, Any]:
    """Return joint coordinate and rate from the invariants and their rates (angle, or displacement)."""
    if not turns:
        return w[0], u[0]
    return m.atan2(w[1], w[0]), (w[0] * u[1] - w[1] * u[0]) / (w[0] ** 2 + w[1] ** 2)


def on_invariants(w: Any, size: Any, turns: bool) -> list[Any]:
    """Return the forces conjugate to the invariants; their power is `size` times the rate of the joint coordinate.

    The invariants are products of axes, so that the torques on both bodies are equal and opposite. They have this size
    for any rotation during a step. A force acts on both bodies at the same point.
    """
    if not turns:
        return [size]
    share = size / (w[0] ** 2 + w[1] ** 2)
    return [-share * w[1], share * w[0]]


@functools.cache
def motor(a: Placement, b: Placement, law: Law, named: bool, turns: bool = True) -> Through:
    """Return the forces of a motor: a law of time, joint coordinate and rate; on b, and with opposite sign on a."""

    def forces(w: Any, u: Any, t: Any, k: Any) -> Any:
        given = (t, *angle_and_rate(w, u, turns))
        return on_invariants(w, law(*given, k) if named else law(*given), turns)

    return through(invariants(a, b, turns), forces)


@functools.cache
def drive(a: Placement, b: Placement, law: Law) -> ModelFunction:
    """Return the rheonomic constraint on a joint angle: ``cos(phi) sine - sin(phi) cosine = 0``."""

    def constraints(q: Any, t: Any, k: Any) -> Any:
        cosine, sine = turn(a, b, q, k.A, k.B)
        angle = law(t)
        return [m.cos(angle) * sine - m.sin(angle) * cosine]

    return constraints


@functools.cache
def shift(a: Placement, b: Placement, law: Law) -> ModelFunction:
    """Return the rheonomic constraint on a joint displacement."""

    def constraints(q: Any, t: Any, k: Any) -> Any:
        qa, qb = split(a, q)
        axis = a.vector(qa, k.A[:, a.dimension - 1 if a.dimension == 3 else 0])
        return [m.dot(axis, b.point(qb, k.Y) - a.point(qa, k.X)) - law(t)]

    return constraints


@functools.cache
def speed_drive(a: Placement, b: Placement, law: Law, angle: bool) -> Turning | ModelFunction:
    """Return the rheonomic constraint on a joint rate, imposed on the increments of the joint coordinate."""
    if not angle:
        place = a.dimension - 1 if a.dimension == 3 else 0
        return lambda q, v, t, k: [slide_rate(a, b, q, v, k.X, k.Y, k.A[:, place]) - law(t)]
    return turning(lambda q, k: list(turn(a, b, q, k.A, k.B)), lambda w, t: [w[0] - law(t)])


@functools.cache
def turning_damper(a: Placement, b: Placement) -> Through:
    """Return the Rayleigh function ``damping/2 rate^2`` of a torsion damper."""
    return through(invariants(a, b, True), lambda w, u, k: 0.5 * k.viscosity * angle_and_rate(w, u, True)[1] ** 2)
