"""Points on a sphere that push each other apart, until they have come to rest (IVP test set, Bari)."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from livens import math as m
from livens.models import shapes
from livens.models.problem import Problem
from livens.models.system import System
from livens.problems import problem
from livens.problems.accurate import accurate_motion

#: Rings of points at the start: how many, by how much they are turned, and their latitude, in parts of pi.
_RINGS = ((3, 1 / 13, 3 / 8), (7, 1 / 29, 1 / 8), (6, 1 / 7, -2 / 15), (4, 1 / 17, -3 / 10))
_POINTS = sum(count for count, _, _ in _RINGS)


def _start() -> np.ndarray:
    found = []
    for ring, (count, turned, latitude) in enumerate(_RINGS):
        first = 0 if ring == len(_RINGS) - 1 else 1  # the last ring of the test set begins one place earlier
        for i in range(first, first + count):
            a, b = np.pi * (2 * i / count + turned), np.pi * latitude
            found.append([np.cos(a) * np.cos(b), np.sin(a) * np.cos(b), np.sin(b)])
    return np.array(found)


def _points(q: Any) -> list[Any]:
    return [q[3 * i : 3 * i + 3] for i in range(_POINTS)]


def _repulsion(q: Any) -> Any:
    """Minus the logarithm of the product of all distances, which Fekete's points make as large as it can be."""
    total = 0.0
    for a, b in itertools.combinations(_points(q), 2):
        total = total - 0.5 * m.log(m.dot(a - b, a - b))
    return total


def _look(q: Any) -> list[shapes.Shape]:
    """The points, and three great circles of their sphere."""
    around = np.linspace(0.0, 2 * np.pi, 37)
    circle = np.stack([np.cos(around), np.sin(around), np.zeros(37)], axis=1)
    circles = [shapes.path([list(at[list(turn)]) for at in circle]) for turn in ((0, 1, 2), (2, 0, 1), (1, 2, 0))]
    points = [shapes.sphere(at, 0.07, name=f"point {i + 1}") for i, at in enumerate(_points(q))]
    return [*circles, *points]


@problem(
    "fekete",
    summary="twenty points on a sphere that push each other apart, with friction: 60 coordinates, 20 constraints",
    source="IVP test set (Bari)",
    scheme="rattle",
)
def fekete(alpha: float = 0.5) -> Problem:
    """Unit masses with friction `alpha` and the potential ``-log`` of all distances; the constraints are ``p.p - 1``.

    Multipliers are those of the test set with the opposite sign: all of them end at 4.75.
    """
    system = System(
        [f"{axis}{i + 1}" for i in range(_POINTS) for axis in "xyz"],
        kinetic=lambda v: 0.5 * (v @ v),
        potential=_repulsion,
        dissipation=lambda v, k: 0.5 * k.alpha * (v @ v),
        constraints=lambda q: [m.dot(p, p) - 1 for p in _points(q)],
        constraint_names=[f"point {i + 1} on the sphere" for i in range(_POINTS)],
        parameters=dict(alpha=alpha),
        look=_look,
    )
    q0, v0 = _start().ravel(), np.zeros(3 * _POINTS)
    return Problem("fekete", system, q0, v0, "rattle", 0.05, 40.0, reference=accurate_motion(system, q0, v0))
