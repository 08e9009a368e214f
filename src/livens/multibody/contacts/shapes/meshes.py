"""Point clouds and convex meshes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from livens.errors import InputError, explain_call_errors
from livens.multibody.body import Body
from livens.multibody.body_constraint import snap_to_axes
from livens.multibody.contacts.geometry.polyhedron import PolyhedronDistance
from livens.multibody.contacts.shapes.base import CollisionShape
from livens.types import ArrayLike
from livens.validation import check_array, check_nonnegative

#: Largest number of vertices of a convex mesh: each touches a plane by its own contact point.
MAX_HULL_VERTICES = 200


@explain_call_errors
class PointCloud(CollisionShape):
    """Point cloud of a body, such as the vertices of a mesh.

    Parameters
    ----------
    body : Body
        Body or ground that the points belong to.
    points : array_like of shape (n_points, d)
        Points in the reference configuration, in m.
    radius : float, default 0
        Radius of a sphere about each point, in m.
    """

    label = "a set of points"

    def __init__(self, body: Body, points: ArrayLike, radius: float = 0.0) -> None:
        super().__init__(body)
        value = check_array("the points of a contact", points)
        if value.ndim != 2 or value.shape[1] != body.dimension or not len(value):
            raise InputError(f"the points of a contact must have shape (n, {body.dimension}), got {value.shape}")
        self.radius = check_nonnegative("the radius of the points of a contact", radius)
        self.local_positions = [snap_to_axes(body.to_local(point)) for point in value]

    @property
    def bounding_radius(self) -> float:
        """Bounding radius: largest distance of a point from the origin."""
        return self.radius + max(
            float(np.linalg.norm(local_position - self.local_position)) for local_position in self.local_positions
        )

    @property
    def characteristic_size(self) -> float:
        """Characteristic size: radius, or a tenth of the extent of the points."""
        return self.radius or max(float(np.ptp(np.array(self.local_positions), axis=0).max()) / 10, 1e-9)

    def sample_spheres(self) -> list[tuple[np.ndarray, float]]:
        """Return the sample spheres: the points."""
        return [(local_position, self.radius) for local_position in self.local_positions]

    def curvatures(self, other: CollisionShape) -> Sequence[float]:
        """Return the principal curvatures at the contact: those of the spheres."""
        return (1 / self.radius,) * 2 if self.radius else super().curvatures(other)


@explain_call_errors
class ConvexMesh(PointCloud):
    """Convex hull of points, such as the vertices of a mesh.

    Its vertices touch planes, boxes, hollow shapes and other meshes; spheres touch its faces, edges and vertices.

    Parameters
    ----------
    body : Body
        Body or ground that the mesh belongs to.
    points : array_like of shape (n_points, 3)
        Points in the reference configuration, in m; those inside their convex hull are left out.

    Raises
    ------
    InputError
        If the points are not in space, lie in one plane, or have more than `MAX_HULL_VERTICES` vertices.
    """

    label = "a convex mesh"

    def __init__(self, body: Body, points: ArrayLike) -> None:
        from scipy.spatial import ConvexHull, QhullError  # slow import

        super().__init__(body, points)
        if body.dimension != 3:
            raise InputError("a convex mesh belongs to a body in space")
        local = np.array(self.local_positions)
        try:
            hull = ConvexHull(local)
        except QhullError:
            raise InputError(f"the points of a convex mesh on {body.name} lie in one plane") from None
        if len(hull.vertices) > MAX_HULL_VERTICES:
            raise InputError(
                f"the convex mesh on {body.name} has {len(hull.vertices)} vertices, more than {MAX_HULL_VERTICES}: "
                "use fewer points, or another shape"
            )
        self.local_positions = [local[i] for i in hull.vertices]
        self.local_position = snap_to_axes(local[hull.vertices].mean(axis=0))
        self.axes = np.eye(3)
        triangles = []
        for corners, equation in zip(hull.simplices, hull.equations, strict=True):
            a, b, c = local[corners] - self.local_position
            is_outward = np.cross(b - a, c - a) @ equation[:3] > 0
            triangles.append(tuple(tuple(x.tolist()) for x in ((a, b, c) if is_outward else (a, c, b))))
        self.surface = PolyhedronDistance(tuple(triangles))
