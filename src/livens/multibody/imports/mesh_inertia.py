"""Spatial inertia of triangle meshes: exact, legacy (as MuJoCo), of the convex hull, and of the surface."""

from __future__ import annotations

import numpy as np

from livens.errors import InputError
from livens.multibody.imports.link_inertia import LinkInertia
from livens.scene.mesh import TriangleMesh

#: Signed volume, relative to the sum of absolute volumes, below which a mesh encloses no volume.
_MIN_VOLUME_FRACTION = 1e-9


def mesh_inertia(solid: TriangleMesh, method: str = "exact") -> tuple[LinkInertia, bool]:
    """Return the inertia of a mesh of unit density, and True if it is that of the volume inside consistent faces.

    Methods are those of MuJoCo. The volume is a sum of tetrahedra from an inner point to each triangle: with signs
    ("exact"), or as absolute values ("legacy"), which overestimates concave meshes. "convex" is the convex hull, and
    "shell" a surface of unit mass per area.
    """
    corners = _convex_corners(solid) if method == "convex" else solid.vertices[solid.faces]
    centroids, products = corners.mean(axis=1), np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    areas = np.linalg.norm(products, axis=1) / 2
    if not areas.sum() > 0:
        raise InputError(f"{solid.name} has no area, so it has no mass")
    apex = areas @ centroids / areas.sum()
    if method == "shell":
        return _shell_inertia(corners, areas, apex), True
    # volumes of tetrahedra with the apex at the mean of the surface
    signed = np.einsum("ij,ij->i", centroids - apex, products) / 6
    volumes = np.abs(signed) if method == "legacy" else signed
    total = float(volumes.sum())
    if not total > _MIN_VOLUME_FRACTION * float(np.abs(signed).sum()):
        raise InputError(f"{solid.name} encloses no volume (open, flat or inverted), so it has no mass")
    centre = volumes @ (0.75 * centroids + 0.25 * apex) / total
    moved = corners - centre
    signed = np.einsum("ij,ij->i", moved.mean(axis=1), products) / 6
    volumes = np.abs(signed) if method == "legacy" else signed
    total = float(volumes.sum())
    # tetrahedron with a vertex at the origin: integral x x^T dV = V/20 (sum x_i x_i^T + s s^T), s = sum x_i
    vertices = [moved[:, 0], moved[:, 1], moved[:, 2], moved.sum(axis=1)]
    squares = sum((np.einsum("n,ni,nj->ij", volumes, x, x) for x in vertices), np.zeros((3, 3))) / 20
    is_consistent = bool(signed.sum() > 0.999 * np.abs(signed).sum()) or method == "convex"
    return LinkInertia(total, centre, np.trace(squares) * np.eye(3) - squares), is_consistent


def _shell_inertia(corners: np.ndarray, areas: np.ndarray, centre: np.ndarray) -> LinkInertia:
    """Return the inertia of a surface of unit mass per area."""
    moved = corners - centre
    # triangle: integral x x^T dA = A/12 (sum x_i x_i^T + s s^T), s = sum x_i
    vertices = [moved[:, 0], moved[:, 1], moved[:, 2], moved.sum(axis=1)]
    squares = sum((np.einsum("n,ni,nj->ij", areas, x, x) for x in vertices), np.zeros((3, 3))) / 12
    return LinkInertia(float(areas.sum()), centre, np.trace(squares) * np.eye(3) - squares)


def _convex_corners(solid: TriangleMesh) -> np.ndarray:
    """Return the corners of the triangles of the convex hull, with outward normals, (n_faces, 3, 3)."""
    from scipy.spatial import ConvexHull, QhullError

    try:
        hull = ConvexHull(solid.vertices)
    except QhullError:
        raise InputError(f"{solid.name} is flat: its convex hull has no volume") from None
    corners = solid.vertices[hull.simplices]
    inner = solid.vertices[hull.vertices].mean(axis=0)
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    inward = np.einsum("ij,ij->i", normals, corners.mean(axis=1) - inner) < 0
    corners[inward] = corners[inward][:, [0, 2, 1]]
    return np.asarray(corners)
