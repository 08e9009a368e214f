"""Four elastic balls in a box (Modin 2009, paper II, example 3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from livens import math as m
from livens import scaling
from livens.errors import InputError
from livens.models.element import Element
from livens.models.problem import Problem
from livens.models.system import System
from livens.multibody.contacts.pair_contact import gap_contact
from livens.problems import problem
from livens.scene import shapes
from livens.types import ScalarLike, Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


_RADIUS, _STIFFNESS = 0.1, 1e4
#: Initial positions of the balls on the path of the first ball: travel times along the path without collisions.
_PATH_TIMES = np.array([0.02, 1.1, 1.26, 1.42])


def _kinetic(v: Vector) -> ScalarLike:
    return 0.5 * m.dot(v, v)


def _ball(q: Vector, k: ParameterNamespace) -> shapes.Shape:
    return shapes.sphere(q, k.r)


def _position(q: Vector, k: ParameterNamespace) -> Vector:
    return q


def _walls(w: Vector, k: ParameterNamespace) -> list[ScalarLike]:
    """Return the signed distances between a ball and the four walls of the unit square."""
    return [*(w - k.r), *(1 - k.r - w)]


def _distance(q: Vector, k: ParameterNamespace) -> list[ScalarLike]:
    return [m.dot(q[2:] - q[:2], q[2:] - q[:2])]


def _gap(w: Sequence[ScalarLike] | Vector, k: ParameterNamespace) -> list[ScalarLike]:
    return [m.sqrt(w[0]) - 2 * k.r]


@problem(
    "billiard",
    summary="four elastic balls in a box, one of which moves",
    source="Modin 2009, paper II, 3.3",
    source_run="met1 and met2: adaptive-variational:0.5,0.5 and adaptive-variational:0,0, until t = 2 s",
    scheme="livens-em",
)
def billiard(smooth: float = 1e-4) -> Problem:
    """Build four balls of unit mass; the first moves with velocity (1, 1), the others are at rest on its path.

    Without the other balls, the path of the first ball is a closed rectangle. A wall reflects a ball of unit mass and
    velocity (1, 1) after the time ``pi/sqrt(K)``, like a rigid wall that lies deeper by half of this time.

    The first ball passes two corners and hits the second, third and fourth ball in sequence: each collision exchanges
    the velocities. At t = 2 the last ball moves with velocity (1, 1), and the sum of the other speeds is the error.

    The adaptive step size follows the stiffness; contacts are smoothed over a length `smooth`.
    """
    if not smooth > 0:
        raise InputError(f"option 'smooth' must be greater than 0, got {smooth:g}")
    balls = [[f"x{i}", f"y{i}"] for i in (1, 2, 3, 4)]
    system = System(
        [c for ball in balls for c in ball],
        elements=[
            *(Element(ball, kinetic=_kinetic, name=f"ball {i + 1}", visual=_ball) for i, ball in enumerate(balls)),
            *(
                gap_contact(ball, _position, _walls, stiffness=_STIFFNESS, name=f"walls {i + 1}")
                for i, ball in enumerate(balls)
            ),
            *(
                gap_contact(balls[i] + balls[j], _distance, _gap, stiffness=_STIFFNESS, name=f"contact {i + 1}-{j + 1}")
                for i in range(4)
                for j in range(i + 1, 4)
            ),
        ],
        parameters=dict(r=_RADIUS),
        visual=lambda: shapes.path([[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]], name="box"),
    )
    depth = np.pi / (2 * np.sqrt(_STIFFNESS))
    side = 1 - 2 * _RADIUS + 2 * depth
    waves = [side - np.abs((_PATH_TIMES + shift) % (2 * side) - side) for shift in (side / 4, 0.0)]
    q0 = (_RADIUS - depth + np.array(waves)).T.ravel()
    return Problem(
        "billiard",
        system,
        q0,
        np.array([1.0, 1, 0, 0, 0, 0, 0, 0]),
        "livens-em",
        1e-4,
        2.0,
        scaling=scaling.stiffness(0.0, smooth, diagonal=True),
    )
