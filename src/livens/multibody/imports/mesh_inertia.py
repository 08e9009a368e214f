"""Spatial inertia of closed triangle meshes."""

from __future__ import annotations

import numpy as np

from livens.errors import InputError
from livens.multibody.imports.link_inertia import LinkInertia
from livens.scene.mesh import TriangleMesh


def mesh_inertia(solid: TriangleMesh) -> tuple[LinkInertia, bool]:
    """Return the inertia of a closed mesh of unit density, and True if it is star-shaped about its mean vertex.

    The volume is the sum of signed tetrahedra from the mean vertex to each triangle.
    """
    middle = solid.vertices.mean(axis=0)
    a, b, c = (solid.vertices[solid.faces[:, i]] - middle for i in range(3))
    volumes = np.einsum("ij,ij->i", a, np.cross(b, c)) / 6
    volume = float(volumes.sum())
    if not volume > 1e-9 * float(np.abs(volumes).sum()):
        raise InputError(f"{solid.name} encloses no volume (open, flat or inverted), so it has no mass")
    total = a + b + c
    centre = volumes @ total / 4 / volume
    # tetrahedron with a vertex at the origin: integral x x^T dV = V/20 (sum x_i x_i^T + s s^T), s = sum x_i
    squares = sum(np.einsum("n,ni,nj->ij", volumes, x, x) for x in (a, b, c, total)) / 20
    euler = squares - volume * np.outer(centre, centre)
    is_star_shaped = bool(volumes.min() >= -1e-9 * volume)
    return LinkInertia(volume, middle + centre, np.trace(euler) * np.eye(3) - euler), is_star_shaped
