"""Gap function of two boxes with crossing edges, by the separating-axis theorem."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from livens import math as m
from livens.multibody.contacts.geometry.pair_geometry import PairGeometry
from livens.multibody.joint_types import split_pair
from livens.multibody.parametrisation import Parametrisation
from livens.types import ScalarLike, Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


#: Squared sine of the angle of two edges below which they count as parallel.
_PARALLEL = 1e-8
#: Axis pairs of the edges of two boxes.
_EDGE_PAIRS = tuple(itertools.product(range(3), range(3)))


@dataclass(frozen=True)
class BoxEdgePair(PairGeometry):
    """Gap of crossing edges of two boxes, about X of a with axes A and about Y of b with axes B.

    Half edge lengths are `half` and `other`, rounded by `reach` and `radius`. With the largest gap ``g_e`` along the
    cross products of their edges and the largest gap ``g_f`` along their face normals, the gap is
    ``max(g_e, g_f - g_e)``. It is the distance of the crossing edges where their common normal is the axis of least
    penetration. It tends to zero where a face normal becomes this axis: corners on faces are other contact points.
    """

    def invariants(self, a: Parametrisation, b: Parametrisation, q: Vector, k: ParameterNamespace) -> Sequence[Any]:
        """Return the centre of a in both frames, relative to that of b, and the cosines of all axes."""
        arm, e, f = self._frames(a, b, q, k)
        return [
            *(m.dot(x, arm) for x in e),
            *(m.dot(y, arm) for y in f),
            *(m.dot(x, y) for x in e for y in f),
        ]

    @staticmethod
    def _frames(
        a: Parametrisation, b: Parametrisation, q: Vector, k: ParameterNamespace
    ) -> tuple[Vector, list[Any], list[Any]]:
        qa, qb = split_pair(a, q)
        e, f = ([p.vector(x, axes[:, i]) for i in range(3)] for p, x, axes in ((a, qa, k.A), (b, qb, k.B)))
        return a.point(qa, k.X) - b.point(qb, k.Y), e, f

    @staticmethod
    def _edge_gaps(w: Vector, k: ParameterNamespace) -> Iterator[Any]:
        """Yield the gaps along the normals of all pairs of edges; parallel edges have none."""
        cosine = [[w[6 + 3 * i + j] for j in range(3)] for i in range(3)]
        for i, j in _EDGE_PAIRS:
            (i1, i2), (j1, j2) = ((i + 1) % 3, (i + 2) % 3), ((j + 1) % 3, (j + 2) % 3)
            extent = k.half[i1] * m.abs(cosine[i2][j]) + k.half[i2] * m.abs(cosine[i1][j])
            extent = extent + k.other[j1] * m.abs(cosine[i][j2]) + k.other[j2] * m.abs(cosine[i][j1])
            square = 1 - cosine[i][j] ** 2
            gap = (m.abs(w[i2] * cosine[i1][j] - w[i1] * cosine[i2][j]) - extent) / m.sqrt(m.maximum(square, _PARALLEL))
            yield m.where(square > _PARALLEL, gap, -2 * (_size(k.half) + _size(k.other)))

    @staticmethod
    def _face_gaps(w: Vector, k: ParameterNamespace) -> Iterator[Any]:
        """Yield the gaps along the face normals of both boxes."""
        for i in range(3):
            yield m.abs(w[i]) - k.half[i] - sum(k.other[j] * m.abs(w[6 + 3 * i + j]) for j in range(3))
        for j in range(3):
            yield m.abs(w[3 + j]) - k.other[j] - sum(k.half[i] * m.abs(w[6 + 3 * i + j]) for i in range(3))

    def gap(self, w: Vector, k: ParameterNamespace) -> ScalarLike:
        edge_gap, face_gap = (_largest(gaps) for gaps in (self._edge_gaps(w, k), self._face_gaps(w, k)))
        return m.maximum(edge_gap - k.reach - k.radius, face_gap - edge_gap)

    def witness_point(
        self, a: Parametrisation, b: Parametrisation, q: Vector, k: ParameterNamespace, normal: Vector
    ) -> Vector:
        """Return the point of the edge of a that is closest to the edge of b, on the axis of the largest gap."""
        gaps = list(self._edge_gaps(m.array(list(self.invariants(a, b, q, k))), k))
        arm, e, f = self._frames(a, b, q, k)
        best, offset = gaps[0], self._edge_point(0, 0, arm, e, f, k)
        for (i, j), gap in zip(_EDGE_PAIRS[1:], gaps[1:], strict=True):
            point = self._edge_point(i, j, arm, e, f, k)
            offset = m.array([m.where(gap > best, x, y) for x, y in zip(point, offset, strict=True)])
            best = m.maximum(best, gap)
        return a.point(split_pair(a, q)[0], k.X) + offset - k.reach * normal

    @staticmethod
    def _edge_point(i: int, j: int, arm: Vector, e: list[Any], f: list[Any], k: ParameterNamespace) -> Vector:
        """Return the point of an edge of a along axis i next to the edge of b along axis j, from the centre of a."""
        common = m.cross(e[i], f[j])
        common = m.where(m.dot(common, arm) < 0, -1.0, 1.0) * common  # from b to a
        on_a = -sum(_sign(m.dot(common, e[n])) * k.half[n] * e[n] for n in range(3) if n != i)
        on_b = sum(_sign(m.dot(common, f[n])) * k.other[n] * f[n] for n in range(3) if n != j)
        difference, cosine = arm + on_a - on_b, m.dot(e[i], f[j])
        s = (cosine * m.dot(f[j], difference) - m.dot(e[i], difference)) / m.maximum(1 - cosine**2, _PARALLEL)
        return on_a + m.clip(s, -k.half[i], k.half[i]) * e[i]


def _largest(values: Iterator[Any]) -> Any:
    largest = next(values)
    for value in values:
        largest = m.maximum(largest, value)
    return largest


def _size(half: Vector) -> ScalarLike:
    return half[0] + half[1] + half[2]


def _sign(x: ScalarLike) -> ScalarLike:
    return m.where(x < 0, -1.0, 1.0)
