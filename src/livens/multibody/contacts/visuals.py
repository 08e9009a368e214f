"""Visuals of static collision shapes that belong to the ground: planes, height fields, hollow spheres."""

from __future__ import annotations

import math

import casadi as ca
import numpy as np

from livens import math as m
from livens.expressions.tracing import ModelFunction
from livens.multibody.contacts.shapes import CollisionShape, HalfSpace, HeightField, HollowSphere
from livens.scene import shapes
from livens.scene.shapes import Shape as Drawn

#: Half width of a displayed plane, relative to the size of the other shape.
_EXTENT = 12.0
#: Number of lines of a displayed height field, and of points per line.
_LINES, _POINTS = 13, 61
#: Polar angles in rad from the bottom: edge of a displayed hollow sphere, and its rims.
_EDGE, _RIMS = 1.2, (0.4, 0.8, 1.2)


def static_visual(shape_a: CollisionShape, shape_b: CollisionShape) -> ModelFunction | None:
    """Return the visual of the shape that belongs to the ground, or None."""
    for static, other in ((shape_a, shape_b), (shape_b, shape_a)):
        if static.body.element is None and isinstance(static, HalfSpace):
            return _plane_visual(static, other)
        if static.body.element is None and isinstance(static, HollowSphere) and static.body.dimension == 3:
            return _bowl_visual(static)
        if static.body.element is None and isinstance(static, HeightField):
            return _height_field_visual(static, _EXTENT * other.characteristic_size)
    return None


def _plane_visual(plane: HalfSpace, other: CollisionShape) -> ModelFunction:
    """Return the visual of a plane, centred below the other shape in the reference configuration."""
    normal = plane.reference_axes[:, -1]
    below = other.reference_position - normal * (normal @ (other.reference_position - plane.reference_position))
    return lambda: [shapes.ground(below, _EXTENT * other.characteristic_size, plane.reference_axes)]


def _height_field_visual(field: HeightField, extent: float) -> ModelFunction:
    """Return the visual of a height field: a grid of lines; in the plane, one line."""
    along = np.linspace(-extent, extent, _LINES)
    fine = np.linspace(-extent, extent, _POINTS)
    grids: list[tuple[np.ndarray, ...]] = [(fine,)]
    if field.body.dimension == 3:
        grids = [(np.full(_POINTS, x), fine) for x in along] + [(fine, np.full(_POINTS, y)) for y in along]
    paths = []
    for grid in grids:
        symbols = ca.SX.sym("x", len(grid))
        height = ca.Function("height", [symbols], [ca.SX(m.to_casadi(field.height(*m.from_casadi(symbols))))])
        heights = np.array(height(np.array(grid))).ravel()
        points = field.reference_position + np.column_stack([*grid, heights]) @ field.reference_axes.T
        paths.append(shapes.path(points.tolist(), name="ground"))
    return lambda: paths


def _bowl_visual(pocket: HollowSphere) -> ModelFunction:
    """Return the visual of a hollow sphere: rims at some heights, and two sections, open upwards."""
    radius = float(pocket.sizes["radius"])

    def line(polar: np.ndarray, azimuth: np.ndarray) -> Drawn:
        out = np.stack([np.sin(polar) * np.cos(azimuth), np.sin(polar) * np.sin(azimuth), -np.cos(polar)], axis=1)
        return shapes.path((pocket.reference_position + radius * out).tolist(), name="bowl")

    turn, half = np.linspace(0, 2 * math.pi, 49), np.linspace(-_EDGE, _EDGE, 33)
    rims = [line(np.full(49, angle), turn) for angle in _RIMS]
    sections = [line(half, np.full(33, angle)) for angle in (0.0, math.pi / 2)]
    return lambda: [*rims, *sections]
