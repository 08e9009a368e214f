"""Ball rolling in a spherical bowl, with Hertz contact and Coulomb friction."""

from __future__ import annotations

import math

import numpy as np

from livens.models.problem import Problem
from livens.multibody.builder import Multibody
from livens.multibody.contacts import Friction, Hertz, Pocket
from livens.problems import problem

BOWL, RADIUS, MASS = 0.3, 0.04, 0.2


def bowl_mechanism(angle: float = 0.2, turning: float = 0.0, friction: float = 0.5) -> Multibody:
    """Build a ball at `angle` (rad) from the lowest point, at rest or circling with `orbit_rate` (rad/s)."""
    mb = Multibody(gravity=[0, 0, -9.81])
    out = np.array([math.sin(angle), 0.0, -math.cos(angle)])
    # static penetration under the normal component of the weight
    depth = (MASS * 9.81 * math.cos(angle) / 1e8) ** (2 / 3)
    ball = mb.sphere("ball", at=(BOWL - RADIUS + depth) * out, radius=RADIUS, mass=MASS)
    rubbing = Friction(friction, smooth=1e-3) if friction > 0 else 0.0
    mb.contact(ball, Pocket(mb.ground, BOWL), law=Hertz(1e8), damping=2.0, friction=rubbing, name="bowl")
    round_about = turning * np.array([0.0, 1.0, 0.0]) * (BOWL - RADIUS) * math.sin(angle)
    mb.start(ball, velocity=round_about, omega=-np.cross(out, round_about) / RADIUS)
    return mb


@problem(
    "ball-in-a-bowl", summary="ball rolling in a spherical bowl: period of pure rolling", source="", scheme="lie-em"
)
def ball_in_a_bowl(angle: float = 0.2, turning: float = 0.0, friction: float = 0.5) -> Problem:
    """Build the problem: a rolling solid ball oscillates with ``omega^2 = 5/7 g/(R - r)``, a sliding ball faster."""
    return bowl_mechanism(angle, turning, friction).problem("ball-in-a-bowl", h=5e-4, t_end=3.0)
