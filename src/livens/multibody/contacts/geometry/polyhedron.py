"""Signed distance of a convex polyhedron."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from livens import math as m
from livens.multibody.contacts.geometry.pair_geometry import SQRT_EPS
from livens.multibody.contacts.geometry.signed_distance import LocalDistance
from livens.types import ScalarLike, Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


@dataclass(frozen=True)
class PolyhedronDistance(LocalDistance):
    """Signed distance of a convex polyhedron given by triangles, whose corners are counter-clockwise from outside.

    Outside it is the least distance from a triangle; inside, the distance from the nearest face.
    """

    triangles: tuple[tuple[tuple[float, float, float], ...], ...]

    def distance(self, w: Vector, k: ParameterNamespace) -> Any:
        point = m.array([w[0], w[1], w[2]])
        planes, squares = [], []
        for corners in self.triangles:
            a, b, c = (np.array(corner) for corner in corners)
            normal = np.cross(b - a, c - a)
            normal /= np.linalg.norm(normal)
            height = m.dot(m.array(normal), point) - float(normal @ a)
            planes.append(height)
            squares.append(_squared_distance(point, height, normal, (a, b, c)))
        deepest, nearest = planes[0], squares[0]
        for height, square in zip(planes[1:], squares[1:], strict=True):
            deepest, nearest = m.maximum(deepest, height), m.minimum(nearest, square)
        return m.where(deepest > 0, m.sqrt(nearest + SQRT_EPS), deepest)


def _squared_distance(point: Vector, height: ScalarLike, normal: np.ndarray, corners: tuple[np.ndarray, ...]) -> Any:
    """Return the squared distance of a point from a triangle: from its plane, or from its edges."""
    edge_excess: Any = -1.0
    from_edges: Any = None
    for start, end in zip(corners, (*corners[1:], corners[0]), strict=True):
        edge, arm = end - start, point - m.array(start)
        edge_excess = m.maximum(edge_excess, m.dot(m.array(np.cross(edge, normal)), arm))
        s = m.clip(m.dot(m.array(edge), arm) / float(edge @ edge), 0.0, 1.0)
        offset = arm - s * m.array(edge)
        square = m.dot(offset, offset)
        from_edges = square if from_edges is None else m.minimum(from_edges, square)
    return m.where(edge_excess > 0, from_edges, height**2)
