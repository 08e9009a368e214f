"""Rubber ball thrown with spin onto a floor: Hertz contact with dissipation and Coulomb friction."""

from __future__ import annotations

from livens.models.problem import Problem
from livens.multibody.contacts import Friction, Hertz
from livens.multibody.multibody import Multibody
from livens.problems import problem


def bouncing_ball_mechanism(
    height: float = 0.5, speed: float = 0.4, spin: float = -40.0, damping: float = 0.1, friction: float = 0.3
) -> Multibody:
    """Build a ball of radius 5 cm and mass 100 g; its lowest point is at `height` (m)."""
    mb = Multibody(gravity=[0, 0, -9.81])
    ball = mb.sphere("ball", at=[0, 0, height + 0.05], radius=0.05, mass=0.1)
    friction_law = Friction(friction, slip_tolerance=0.02) if friction > 0 else 0.0
    mb.contact(ball, mb.ground, law=Hertz(3e5), dissipation=damping, friction=friction_law, name="floor")
    mb.initial(ball, velocity=[speed, 0, 0], omega=[0, spin, 0])
    return mb


@problem(
    "bouncing-ball",
    summary="rubber ball with spin bounces on a floor, with contact dissipation and friction",
    source="",
    scheme="lie-em",
)
def bouncing_ball(
    height: float = 0.5, speed: float = 0.4, spin: float = -40.0, damping: float = 0.1, friction: float = 0.3
) -> Problem:
    """Build the problem; `spin` (rad/s) is about the horizontal axis normal to the path, negative for backspin.

    With Hunt-Crossley `damping` c, approach speed v0 and rebound speed v1 satisfy
    ``c (v0 + v1) = ln((1 + c v0)/(1 - c v1))``.
    """
    return bouncing_ball_mechanism(height, speed, spin, damping, friction).problem("bouncing-ball", h=2e-4, t_end=3.0)
