"""Newton's cradle: balls in a row, each on its wire."""

from __future__ import annotations

import itertools
import math

import numpy as np

from livens.errors import InputError
from livens.models.problem import Problem
from livens.multibody.builder import Multibody
from livens.multibody.contacts import Hertz
from livens.problems import problem

RADIUS, MASS, LENGTH = 0.02, 0.1, 0.3
STIFFNESS = 1e8


def cradle_mechanism(balls: int = 5, raised: int = 1, angle: float = 0.6, gap: float = 1e-3) -> Multibody:
    """In the plane; the first `raised` balls hang at an angle to the left."""
    if not 2 <= balls <= 12 or not 1 <= raised < balls:
        raise InputError("a cradle has two to twelve balls, of which at least one is raised and one is not")
    mb = Multibody(gravity=[0, -9.81], planar=True)
    drawn = []
    for i in range(balls):
        pivot = np.array([i * (2 * RADIUS + gap), 0.0])
        down = np.array([-math.sin(angle), -math.cos(angle)]) if i < raised else np.array([0.0, -1.0])
        drawn.append(mb.sphere(f"ball{i + 1}", at=pivot + LENGTH * down, radius=RADIUS, mass=MASS))
        mb.distance(f"wire{i + 1}", pivot, drawn[-1].centre)
    for i, (one, other) in enumerate(itertools.pairwise(drawn)):
        mb.contact(one, other, law=Hertz(STIFFNESS), name=f"blow{i + 1}")
    return mb


@problem(
    "newtons-cradle", summary="balls in a row on wires: as many fly off as were raised", source="", scheme="lie-em"
)
def newtons_cradle(balls: int = 5, raised: int = 1, angle: float = 0.6, gap: float = 1e-3) -> Problem:
    """Balls hang a `gap` apart, so that blows come one after the other and each hands on its velocity.

    Without a gap, touching balls share a blow: the last one then gets a little less.
    """
    return cradle_mechanism(balls, raised, angle, gap).problem("newtons-cradle", h=2e-5, t_end=1.2)
