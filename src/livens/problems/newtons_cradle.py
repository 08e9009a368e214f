"""Newton's cradle: balls on wires with Hertz contact."""

from __future__ import annotations

import itertools
import math

import numpy as np

from livens.errors import InputError
from livens.models.problem import Problem
from livens.multibody.contacts import Hertz
from livens.multibody.multibody import Multibody
from livens.problems import problem

RADIUS, MASS, LENGTH = 0.02, 0.1, 0.3
STIFFNESS = 1e8


def cradle_mechanism(balls: int = 5, raised: int = 1, angle: float = 0.6, gap: float = 1e-3) -> Multibody:
    """Build the planar cradle; the first `raised` balls are displaced to the left by `angle` (rad)."""
    if not 2 <= balls <= 12 or not 1 <= raised < balls:
        raise InputError("a cradle has 2 to 12 balls; 'raised' must be at least 1 and less than 'balls'")
    mb = Multibody(gravity=[0, -9.81], planar=True)
    hanging_balls = []
    for i in range(balls):
        pivot = np.array([i * (2 * RADIUS + gap), 0.0])
        down = np.array([-math.sin(angle), -math.cos(angle)]) if i < raised else np.array([0.0, -1.0])
        hanging_balls.append(mb.sphere(f"ball{i + 1}", at=pivot + LENGTH * down, radius=RADIUS, mass=MASS))
        mb.distance(f"wire{i + 1}", pivot, hanging_balls[-1].centre)
    for i, (ball, next_ball) in enumerate(itertools.pairwise(hanging_balls)):
        mb.contact(ball, next_ball, law=Hertz(STIFFNESS), name=f"impact{i + 1}")
    return mb


@problem("newtons-cradle", summary="Newton's cradle: balls in a row on wires", source="", scheme="lie-em")
def newtons_cradle(balls: int = 5, raised: int = 1, angle: float = 0.6, gap: float = 1e-3) -> Problem:
    """Build the cradle; the `gap` (m) between balls makes collisions successive, so that each exchanges velocities.

    Without a gap, collisions are simultaneous, and the last ball leaves with less than the incoming velocity.
    """
    return cradle_mechanism(balls, raised, angle, gap).problem("newtons-cradle", h=2e-5, t_end=1.2)
