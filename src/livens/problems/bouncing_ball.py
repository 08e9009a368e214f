"""A rubber ball that is thrown with spin and bounces on a floor."""

from __future__ import annotations

from livens.models.problem import Problem
from livens.multibody.builder import Multibody
from livens.multibody.contacts import Friction, Hertz
from livens.problems import problem


def bouncing_ball_mechanism(
    height: float = 0.5, speed: float = 0.4, spin: float = -40.0, damping: float = 0.1, friction: float = 0.3
) -> Multibody:
    """The ball has a radius of 5 cm and weighs 100 g; its lowest point is at the `height`."""
    mb = Multibody(gravity=[0, 0, -9.81])
    ball = mb.sphere("ball", at=[0, 0, height + 0.05], radius=0.05, mass=0.1)
    rubbing = Friction(friction, smooth=0.02) if friction > 0 else 0.0
    mb.contact(ball, mb.ground, law=Hertz(3e5), damping=damping, friction=rubbing, name="floor")
    mb.start(ball, velocity=[speed, 0, 0], omega=[0, spin, 0])
    return mb


@problem(
    "bouncing-ball",
    summary="a rubber ball with spin bounces on a floor, with all that it loses",
    source="",
    scheme="lie-em",
)
def bouncing_ball(
    height: float = 0.5, speed: float = 0.4, spin: float = -40.0, damping: float = 0.1, friction: float = 0.3
) -> Problem:
    """`spin` is about the axis across its way: negative, it turns back against the way it flies.

    With Hunt and Crossley's `damping` c it leaves with a speed v1 after it came with v0, as
    ``c (v0 + v1) = ln((1 + c v0)/(1 - c v1))`` says.
    """
    return bouncing_ball_mechanism(height, speed, spin, damping, friction).problem("bouncing-ball", h=2e-4, t_end=3.0)
