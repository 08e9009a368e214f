"""Visuals of static collision shapes that belong to the ground: planes, height fields, hollow spheres."""

from __future__ import annotations

import math

import casadi as ca
import numpy as np

from livens import math as m
from livens.expressions.read import ModelFunction
from livens.models import shapes
from livens.models.shapes import Shape as Drawn
from livens.multibody.contacts.shape import HalfSpace, HeightField, Pocket, Shape

#: Half width of a displayed plane, relative to the size of the other shape.
_EXTENT = 12.0
#: Number of lines of a displayed height field, and of points per line.
_LINES, _POINTS = 13, 61
#: Polar angles in rad from the bottom: edge of a displayed hollow sphere, and its rims.
_EDGE, _RIMS = 1.2, (0.4, 0.8, 1.2)


def surroundings(first: Shape, second: Shape) -> ModelFunction | None:
    """Return the visual of the shape that belongs to the ground, or None."""
    for still, other in ((first, second), (second, first)):
        if still.part.element is None and isinstance(still, HalfSpace):
            return _floor(still, other)
        if still.part.element is None and isinstance(still, Pocket) and still.part.dimension == 3:
            return _bowl(still)
        if still.part.element is None and isinstance(still, HeightField):
            return _hills(still, _EXTENT * other.size)
    return None


def _floor(plane: HalfSpace, other: Shape) -> ModelFunction:
    """Return the visual of a plane, centred below the other shape in the reference configuration."""
    upwards = plane.drawn_axes[:, -1]
    below = other.at - upwards * (upwards @ (other.at - plane.at))
    return lambda: [shapes.ground(below, _EXTENT * other.size, plane.drawn_axes)]


def _hills(field: HeightField, extent: float) -> ModelFunction:
    """Return the visual of a height field: a grid of lines; in the plane, one line."""
    along = np.linspace(-extent, extent, _LINES)
    fine = np.linspace(-extent, extent, _POINTS)
    grids: list[tuple[np.ndarray, ...]] = [(fine,)]
    if field.part.dimension == 3:
        grids = [(np.full(_POINTS, x), fine) for x in along] + [(fine, np.full(_POINTS, y)) for y in along]
    paths = []
    for grid in grids:
        symbols = ca.SX.sym("x", len(grid))
        height = ca.Function("height", [symbols], [ca.SX(m.expression(field.height(*m.symbols(symbols))))])
        heights = np.array(height(np.array(grid))).ravel()
        points = field.at + np.column_stack([*grid, heights]) @ field.drawn_axes.T
        paths.append(shapes.path(points.tolist(), name="ground"))
    return lambda: paths


def _bowl(pocket: Pocket) -> ModelFunction:
    """Return the visual of a hollow sphere: rims at some heights, and two sections, open upwards."""
    radius = float(pocket.sizes["radius"])

    def line(polar: np.ndarray, around: np.ndarray) -> Drawn:
        out = np.stack([np.sin(polar) * np.cos(around), np.sin(polar) * np.sin(around), -np.cos(polar)], axis=1)
        return shapes.path((pocket.at + radius * out).tolist(), name="bowl")

    turn, half = np.linspace(0, 2 * math.pi, 49), np.linspace(-_EDGE, _EDGE, 33)
    rims = [line(np.full(49, angle), turn) for angle in _RIMS]
    sections = [line(half, np.full(33, angle)) for angle in (0.0, math.pi / 2)]
    return lambda: [*rims, *sections]
