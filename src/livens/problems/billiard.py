"""Four elastic balls in a box (S003 paper II, example 3.3)."""

from __future__ import annotations

from typing import Any

import numpy as np

from livens import math as m
from livens.element import Element
from livens.problems import problem
from livens.problems.problem import Problem
from livens.system import System

_RADIUS, _STIFFNESS = 0.1, 1e4
#: Where the balls are on the path of the first one, as the time it would take to get there if it were alone.
_PLACES = np.array([0.02, 1.1, 1.26, 1.42])


def _kinetic(v: Any) -> Any:
    return 0.5 * m.dot(v, v)


def _walls(q: Any, k: Any) -> Any:
    """Of the unit square."""
    depths = [m.maximum(0, k.r - x) for x in q] + [m.maximum(0, x + k.r - 1) for x in q]
    return 0.5 * k.K * m.dot(depths, depths)


def _contact(q: Any, k: Any) -> Any:
    return 0.5 * k.K * m.maximum(0, 2 * k.r - m.norm(q[2:] - q[:2])) ** 2


@problem("billiard", summary="four elastic balls in a box, one of which moves", source="S003 paper II, 3.3")
def billiard() -> Problem:
    """The first ball has the velocity (1, 1), the others rest in its way.

    Alone it would go round on a rectangle. A wall throws a ball of unit mass and velocity (1, 1) back after the time
    ``pi/sqrt(K)``, as if it were rigid and deeper by half of that: this gives the rectangle. The first ball goes round
    two of its corners and hits the second, third and fourth in a row: each hands on its velocity and stops, the last
    goes on the same way. At t = 2 the others are at rest: the sum of their speeds is the error.
    """
    balls = [[f"x{i}", f"y{i}"] for i in (1, 2, 3, 4)]
    system = System(
        [c for ball in balls for c in ball],
        elements=[
            *(Element(ball, kinetic=_kinetic, potential=_walls, name=f"ball {i + 1}") for i, ball in enumerate(balls)),
            *(
                Element(balls[i] + balls[j], potential=_contact, name=f"contact {i + 1}-{j + 1}")
                for i in range(4)
                for j in range(i + 1, 4)
            ),
        ],
        parameters=dict(K=_STIFFNESS, r=_RADIUS),
    )
    depth = np.pi / (2 * np.sqrt(_STIFFNESS))
    side = 1 - 2 * _RADIUS + 2 * depth
    waves = [side - np.abs((_PLACES + shift) % (2 * side) - side) for shift in (side / 4, 0.0)]
    q0 = (_RADIUS - depth + np.array(waves)).T.ravel()
    return Problem("billiard", system, q0, np.array([1.0, 1, 0, 0, 0, 0, 0, 0]), "livens-em", 1e-3, 2.0)
