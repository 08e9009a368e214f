"""Rattleback: a stone that reverses its spin when spun in the unstable direction."""

from __future__ import annotations

import numpy as np

from livens.models.problem import Problem
from livens.multibody.contacts import Ellipsoid, Friction
from livens.multibody.multibody import Multibody
from livens.problems import problem
from livens.scene import shapes
from livens.scene.mesh import TriangleMesh

SEMI_AXES = (0.2, 0.03, 0.02)
CENTRE_OFFSET = 0.01


def rattleback_mechanism(spin: float = -5.0, tilt: float = 0.01, skew: float = -2e-5) -> Multibody:
    """Build half of an ellipsoid with its centre of mass below the centre of the ellipsoid.

    `skew` is the product of inertia that rotates the principal axes of inertia against the axes of the surface.
    """
    mb = Multibody(gravity=[0, 0, -9.81])
    inertia = np.array([[2e-4, skew, 0], [skew, 1.6e-3, 0], [0, 0, 1.7e-3]])
    R = _tilt_rotation(tilt)
    stone = mb.body(
        "stone",
        mass=1.0,
        inertia=inertia,
        rotation=R,
        position=[0, 0, 0],
        shape=("shapes", shapes.mesh([0, 0, CENTRE_OFFSET], _lower_half(), frame=np.eye(3))),
    )
    centre = np.array(R @ [0, 0, CENTRE_OFFSET])
    # static penetration under the weight
    support_height = float(np.sqrt(np.sum((np.array(SEMI_AXES) * R[2]) ** 2)))
    depth = 9.81 / 1e5
    stone.reference_position[:] = [0, 0, support_height - depth - centre[2]]
    surface = Ellipsoid(stone, SEMI_AXES, at=stone.reference_position + centre)
    mb.contact(
        surface, mb.ground, stiffness=1e5, dissipation=2.0, friction=Friction(1.0, slip_tolerance=2e-3), name="table"
    )
    mb.initial(stone, omega=[0, 0, spin])
    return mb


def _tilt_rotation(angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])


def _lower_half(n_around: int = 24, n_down: int = 6) -> TriangleMesh:
    """Return the triangulated surface of the lower half of the ellipsoid with its flat top."""
    rows = [
        [SEMI_AXES[0] * np.sin(p) * np.cos(t), SEMI_AXES[1] * np.sin(p) * np.sin(t), -SEMI_AXES[2] * np.cos(p)]
        for p in np.linspace(0, np.pi / 2, n_down + 1)[1:]
        for t in np.linspace(0, 2 * np.pi, n_around, endpoint=False)
    ]
    points = np.array([*rows, [0, 0, -SEMI_AXES[2]], [0, 0, 0]])
    bottom, top = len(rows), len(rows) + 1
    faces = []
    for j in range(n_around):
        k = (j + 1) % n_around
        faces.append([bottom, k, j])
        for i in range(n_down - 1):
            a, b = i * n_around, (i + 1) * n_around
            faces += [[a + j, a + k, b + k], [a + j, b + k, b + j]]
        last = (n_down - 1) * n_around
        faces.append([last + j, last + k, top])
    return TriangleMesh(points, np.array(faces), "stone")


@problem(
    "rattleback",
    summary="rattleback: a spinning stone that reverses its direction of rotation",
    source="Kane and Levinson 1982",
    scheme="lie-em",
)
def rattleback(spin: float = -5.0, tilt: float = 0.01, skew: float = -2e-5) -> Problem:
    """Build the problem with the data of Kane and Levinson, with friction instead of the no-slip condition."""
    return rattleback_mechanism(spin, tilt, skew).problem("rattleback", h=2.5e-4, t_end=8.0)
