"""Fekete points: points on a sphere with logarithmic repulsion and friction (IVP test set, Bari)."""

from __future__ import annotations

import itertools

import numpy as np

from livens import math as m
from livens.models.problem import Problem
from livens.models.system import System
from livens.problems import problem
from livens.problems.reference_solution import reference_motion
from livens.scene import shapes
from livens.types import ScalarLike, Vector

#: Initial rings of points: number of points, angular offset and latitude, angles in units of pi.
_RINGS = ((3, 1 / 13, 3 / 8), (7, 1 / 29, 1 / 8), (6, 1 / 7, -2 / 15), (4, 1 / 17, -3 / 10))
_POINTS = sum(count for count, _, _ in _RINGS)


def _initial_points() -> np.ndarray:
    points = []
    for ring, (count, offset, latitude) in enumerate(_RINGS):
        first_index = 0 if ring == len(_RINGS) - 1 else 1  # as in the test set, where the last ring starts at index 0
        for i in range(first_index, first_index + count):
            a, b = np.pi * (2 * i / count + offset), np.pi * latitude
            points.append([np.cos(a) * np.cos(b), np.sin(a) * np.cos(b), np.sin(b)])
    return np.array(points)


def _points(q: Vector) -> list[Vector]:
    return [q[3 * i : 3 * i + 3] for i in range(_POINTS)]


def _repulsion(q: Vector) -> ScalarLike:
    """Return the potential energy: minus the logarithm of the product of all distances, minimal at Fekete points."""
    total = 0.0
    for a, b in itertools.combinations(_points(q), 2):
        total = total - 0.5 * m.log(m.dot(a - b, a - b))
    return total


def _visual(q: Vector) -> list[shapes.Shape]:
    """Return the points and three great circles of the sphere."""
    angles = np.linspace(0.0, 2 * np.pi, 37)
    circle = np.stack([np.cos(angles), np.sin(angles), np.zeros(37)], axis=1)
    circles = [
        shapes.path([list(point[list(permutation)]) for point in circle])
        for permutation in ((0, 1, 2), (2, 0, 1), (1, 2, 0))
    ]
    points = [shapes.sphere(point, 0.07, name=f"point {i + 1}") for i, point in enumerate(_points(q))]
    return [*circles, *points]


@problem(
    "fekete",
    summary="twenty points on a sphere with repulsion and friction: 60 coordinates, 20 constraints",
    source="IVP test set (Bari)",
    scheme="rattle",
)
def fekete(alpha: float = 0.5) -> Problem:
    """Build unit masses with friction `alpha`, potential ``-log`` of all distances and constraints ``p.p - 1``.

    The multipliers have the opposite sign of those of the test set; all converge to 4.75.
    """
    system = System(
        [f"{axis}{i + 1}" for i in range(_POINTS) for axis in "xyz"],
        kinetic=lambda v: 0.5 * (v @ v),
        potential=_repulsion,
        dissipation=lambda v, k: 0.5 * k.alpha * (v @ v),
        constraints=lambda q: [m.dot(p, p) - 1 for p in _points(q)],
        constraint_names=[f"point {i + 1} on the sphere" for i in range(_POINTS)],
        parameters=dict(alpha=alpha),
        visual=_visual,
    )
    q0, v0 = _initial_points().ravel(), np.zeros(3 * _POINTS)
    return Problem("fekete", system, q0, v0, "rattle", 0.05, 40.0, reference=reference_motion(system, q0, v0))
