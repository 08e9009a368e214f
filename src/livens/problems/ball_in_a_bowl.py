"""Ball rolling in a spherical bowl, with Hertz contact and Coulomb friction."""

from __future__ import annotations

import math

import numpy as np

from livens.models.problem import Problem
from livens.multibody.contacts import Friction, Hertz, HollowSphere
from livens.multibody.multibody import Multibody
from livens.problems import problem

BOWL, RADIUS, MASS = 0.3, 0.04, 0.2


def bowl_mechanism(angle: float = 0.2, orbit_rate: float = 0.0, friction: float = 0.5) -> Multibody:
    """Build a ball at `angle` (rad) from the lowest point, at rest or circling with `orbit_rate` (rad/s)."""
    mb = Multibody(gravity=[0, 0, -9.81])
    outward = np.array([math.sin(angle), 0.0, -math.cos(angle)])
    # static penetration under the normal component of the weight
    depth = (MASS * 9.81 * math.cos(angle) / 1e8) ** (2 / 3)
    ball = mb.sphere("ball", at=(BOWL - RADIUS + depth) * outward, radius=RADIUS, mass=MASS)
    friction_law = Friction(friction, slip_tolerance=1e-3) if friction > 0 else 0.0
    mb.contact(ball, HollowSphere(mb.ground, BOWL), law=Hertz(1e8), dissipation=2.0, friction=friction_law, name="bowl")
    tangential_velocity = orbit_rate * np.array([0.0, 1.0, 0.0]) * (BOWL - RADIUS) * math.sin(angle)
    mb.initial(ball, velocity=tangential_velocity, omega=-np.cross(outward, tangential_velocity) / RADIUS)
    return mb


@problem(
    "ball-in-a-bowl", summary="ball rolling in a spherical bowl: period of pure rolling", source="", scheme="lie-em"
)
def ball_in_a_bowl(angle: float = 0.2, orbit_rate: float = 0.0, friction: float = 0.5) -> Problem:
    """Build the problem: a rolling solid ball oscillates with ``omega^2 = 5/7 g/(R - r)``, a sliding ball faster."""
    return bowl_mechanism(angle, orbit_rate, friction).problem("ball-in-a-bowl", h=5e-4, t_end=3.0)
