"""A ball that rolls in a round bowl."""

from __future__ import annotations

import math

import numpy as np

from livens.models.problem import Problem
from livens.multibody.builder import Multibody
from livens.multibody.contacts import Friction, Hertz, Pocket
from livens.problems import problem

BOWL, RADIUS, MASS = 0.3, 0.04, 0.2


def bowl_mechanism(angle: float = 0.2, turning: float = 0.0, friction: float = 0.5) -> Multibody:
    """The ball starts at rest, `angle` up the bowl, or goes round with the rate `turning`."""
    mb = Multibody(gravity=[0, 0, -9.81])
    out = np.array([math.sin(angle), 0.0, -math.cos(angle)])
    # as deep as its weight presses it, where it starts
    depth = (MASS * 9.81 * math.cos(angle) / 1e8) ** (2 / 3)
    ball = mb.sphere("ball", at=(BOWL - RADIUS + depth) * out, radius=RADIUS, mass=MASS)
    rubbing = Friction(friction, smooth=1e-3) if friction > 0 else 0.0
    mb.contact(ball, Pocket(mb.ground, BOWL), law=Hertz(1e8), damping=2.0, friction=rubbing, name="bowl")
    round_about = turning * np.array([0.0, 1.0, 0.0]) * (BOWL - RADIUS) * math.sin(angle)
    mb.start(ball, velocity=round_about, omega=-np.cross(out, round_about) / RADIUS)
    return mb


@problem(
    "ball-in-a-bowl", summary="a ball rolls in a round bowl, with the period of rolling", source="", scheme="lie-em"
)
def ball_in_a_bowl(angle: float = 0.2, turning: float = 0.0, friction: float = 0.5) -> Problem:
    """A full ball that rolls swings with ``omega^2 = 5/7 g/(R - r)``; without friction it slides, and faster."""
    return bowl_mechanism(angle, turning, friction).problem("ball-in-a-bowl", h=5e-4, t_end=3.0)
