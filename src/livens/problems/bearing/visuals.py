"""Visual geometry of ball and roller bearings: rings are solids of revolution with grooves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from livens import math as m
from livens.expressions.tracing import ModelFunction
from livens.problems.bearing.dimensions import Bearing
from livens.problems.bearing.roller.contact import RollerBearing
from livens.scene import shapes
from livens.scene.shapes import Shape
from livens.types import ScalarLike, Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


#: Number of segments around a ring.
_N_SEGMENTS = 60
#: Segments removed from an outer ring, a third of the circumference facing the default camera.
_OPENING = range(16, 36)
#: Rotation matrix whose third axis is the axis of the bearing.
_AXIAL_FRAME = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])


def ball(q: Vector, k: ParameterNamespace) -> Shape:
    return shapes.sphere(q[:3], k.D / 2)


def ring_mesh(b: Bearing, which: str, opening: range = range(0)) -> tuple[np.ndarray, np.ndarray]:
    """Return points and triangles of the outer or inner ring, without the segments of the opening."""
    sign = 1 if which == "outer" else -1
    shoulder, rim = b.pitch / 2 + sign * 0.3 * b.diameter, b.pitch / 2 + sign * 0.85 * b.diameter
    return _grooved_ring_mesh(b, b.outer_groove_circle if sign > 0 else b.inner_groove_circle, shoulder, rim, opening)


def outer(b: Bearing) -> ModelFunction:
    """Return the visual of the outer ring, cut open so that the balls are visible."""
    vertices, faces = ring_mesh(b, "outer", _OPENING)

    def visual(q: Vector) -> Shape:
        return shapes.mesh(q[:3], vertices=vertices, faces=faces, name="outer ring", trace=None)

    return visual


def inner(b: Bearing) -> ModelFunction:
    """Return the visual of the inner ring, with a key that marks its rotation."""
    vertices, faces = ring_mesh(b, "inner")
    rim, key = b.pitch / 2 - 0.85 * b.diameter, 0.18 * b.diameter

    def visual(q: Vector, t: ScalarLike, k: ParameterNamespace) -> list[Shape]:
        angle = k.speed * t + q[3]
        c, s = m.cos(angle), m.sin(angle)
        frame = m.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])
        key_position = q[:3] + (rim + key / 2) * frame[:, 1]
        return [
            shapes.mesh(q[:3], vertices=vertices, faces=faces, frame=frame, name="inner ring", trace=None),
            shapes.box(key_position, [1.9 * b.diameter, key, 2 * key], frame, name="key", trace=None),
        ]

    return visual


def roller_outer(b: RollerBearing) -> ModelFunction:
    """Return the visual of an outer ring with a spherical race."""
    half = 0.55 * b.length + b.sphere * float(np.sin(b.angle))
    x = np.linspace(-half, half, 17)
    race = np.column_stack([x, np.sqrt(b.sphere**2 - x**2)])
    rim = b.sphere + 0.35 * b.diameter
    vertices, faces = _revolve_profile(np.vstack([[-half, rim], race, [half, rim]]), False, _OPENING)
    return lambda q: shapes.mesh(q[:3], vertices=vertices, faces=faces, name="outer ring", trace=None)


def roller_inner(b: RollerBearing) -> ModelFunction:
    """Return the visual of an inner ring with two races and a key that marks its rotation."""
    circle, shift = b.inner_circle
    middle = (b.sphere - b.diameter) * np.sin(b.angle)
    x = middle + np.linspace(-0.5, 0.5, 9) * b.length
    row = np.column_stack([x, circle - np.sqrt(b.inner_groove**2 - (x - shift) ** 2)])
    mirrored_row = np.column_stack([-row[::-1, 0], row[::-1, 1]])
    bore, half = 0.55 * b.sphere, float(x[-1])
    vertices, faces = _revolve_profile(np.vstack([[-half, bore], mirrored_row, row, [half, bore]]), True)
    key = 0.18 * b.diameter

    def visual(q: Vector, t: ScalarLike, k: ParameterNamespace) -> list[Shape]:
        angle = k.speed * t + q[3]
        c, s = m.cos(angle), m.sin(angle)
        frame = m.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])
        key_position = q[:3] + (bore + key / 2) * frame[:, 1]
        return [
            shapes.mesh(q[:3], vertices=vertices, faces=faces, frame=frame, name="inner ring", trace=None),
            shapes.box(key_position, [2.05 * half, key, 2 * key], frame, name="key", trace=None),
        ]

    return visual


def cage(b: Bearing) -> list[Shape]:
    """Return two rings on both sides of the balls, with bridges between neighbouring pockets."""
    side, radius, thick = 0.42 * b.diameter, b.pitch / 2, 0.1 * b.diameter
    parts = [shapes.ring([x, 0, 0], radius, _AXIAL_FRAME, thick, name="cage") for x in (-side, side)]
    for i in range(b.balls):
        angle = 2 * np.pi * (i + 0.5) / b.balls
        y, z = radius * np.cos(angle), radius * np.sin(angle)
        parts.append(shapes.cylinder([-side, y, z], [side, y, z], 0.6 * thick))
    return parts


def _grooved_ring_mesh(
    b: Bearing, circle: float, shoulder: float, rim: float, opening: range
) -> tuple[np.ndarray, np.ndarray]:
    """Return points and triangles of a ring between groove, shoulder and rim."""
    sign, half = np.sign(rim - circle), 0.945 * b.diameter
    half_groove_width = np.sqrt(b.groove_radius**2 - (shoulder - circle) ** 2)
    x = np.linspace(-half_groove_width, half_groove_width, 13)
    groove = np.column_stack([x, circle + sign * np.sqrt(b.groove_radius**2 - x**2)])
    profile = np.vstack([[-half, rim], [-half, shoulder], groove, [half, shoulder], [half, rim]])
    return _revolve_profile(profile, sign < 0, opening)


def _revolve_profile(profile: np.ndarray, is_inner: bool, opening: range = range(0)) -> tuple[np.ndarray, np.ndarray]:
    """Return points and triangles of the solid of revolution of a profile (x, distance from the axis).

    Segments of the opening are removed and the cut faces are closed. The profile must be star-shaped with respect to
    the midpoint of its last side, the rim.
    """
    angle = 2 * np.pi * np.arange(_N_SEGMENTS) / _N_SEGMENTS
    c, s = np.cos(angle), np.sin(angle)
    closed = np.vstack([profile, (profile[0] + profile[-1]) / 2])
    along, r = closed[:, 0], closed[:, 1]
    count, last = len(r), len(r) - 1
    grid = np.stack([np.broadcast_to(along, (_N_SEGMENTS, count)), np.outer(c, r), np.outer(s, r)], axis=-1)
    segments = [i for i in range(_N_SEGMENTS) if i not in opening]
    i, j = np.meshgrid(segments, np.arange(count), indexing="ij")
    segment_start, next_segment_start = i * count, (i + 1) % _N_SEGMENTS * count
    next_point = (j + 1) % count
    corners = [
        (segment_start + j, segment_start + next_point, next_segment_start + next_point),
        (segment_start + j, next_segment_start + next_point, next_segment_start + j),
    ]
    if opening:
        begin, end, k = opening.start % _N_SEGMENTS * count, opening.stop % _N_SEGMENTS * count, np.arange(last - 1)
        corners += [(begin + last + 0 * k, begin + k + 1, begin + k), (end + last + 0 * k, end + k, end + k + 1)]
    faces = np.vstack([np.stack(triangle, -1).reshape(-1, 3) for triangle in corners])
    return grid.reshape(-1, 3), faces if is_inner else faces[:, ::-1]
