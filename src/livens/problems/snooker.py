"""Snooker: central collision of a rolling ball with a ball at rest, with friction on the cloth."""

from __future__ import annotations

from livens.models.problem import Problem
from livens.multibody.contacts import Friction, Hertz
from livens.multibody.multibody import Multibody
from livens.problems import problem

RADIUS, MASS = 0.02625, 0.14
#: Contact stiffness of the cloth, in N/m: static penetration of 0.1 mm.
CLOTH = 1.4e4


def snooker_mechanism(speed: float = 1.0, spin: float = 1.0, offset: float = 0.0, friction: float = 0.2) -> Multibody:
    """Build two balls; the white ball has `speed` (m/s) and `spin` relative to rolling (1: rolls, 0: slides)."""
    mb = Multibody(gravity=[0, 0, -9.81])
    height = RADIUS - MASS * 9.81 / CLOTH
    white = mb.sphere("white", at=[-0.1, 0, height], radius=RADIUS, mass=MASS)
    red = mb.sphere("red", at=[0, offset, height], radius=RADIUS, mass=MASS)
    for ball in (white, red):
        cloth = Friction(friction, slip_tolerance=2e-3)
        mb.contact(ball, mb.ground, stiffness=CLOTH, dissipation=1.0, friction=cloth, name=f"{ball.name}-cloth")
    mb.contact(white, red, law=Hertz(1e8), name="impact")
    mb.initial(white, velocity=[speed, 0, 0], omega=[0, spin * speed / RADIUS, 0])
    return mb


@problem(
    "snooker",
    summary="a rolling ball hits a ball at rest; friction on the cloth determines the final speeds",
    source="",
    scheme="lie-em",
)
def snooker(speed: float = 1.0, spin: float = 1.0, offset: float = 0.0, friction: float = 0.2) -> Problem:
    """Build the problem; the collision exchanges velocities but not spins, then both balls slide until they roll.

    After a central collision of a rolling ball, the final speeds are 2/7 (white) and 5/7 (red) of the initial speed.
    """
    return snooker_mechanism(speed, spin, offset, friction).problem("snooker", h=2e-5, t_end=0.8)
