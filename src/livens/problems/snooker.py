"""A rolling ball that hits another one full: what friction with the cloth makes of it."""

from __future__ import annotations

from livens.models.problem import Problem
from livens.multibody.builder import Multibody
from livens.multibody.contacts import Friction, Hertz
from livens.problems import problem

RADIUS, MASS = 0.02625, 0.14
#: Of the cloth, in N/m: balls lie 0.1 mm deep in it.
CLOTH = 1.4e4


def snooker_mechanism(speed: float = 1.0, spin: float = 1.0, offset: float = 0.0, friction: float = 0.2) -> Multibody:
    """The white ball comes with a `speed`; its `spin` is that of rolling if it is 1, and 0 if it slides."""
    mb = Multibody(gravity=[0, 0, -9.81])
    height = RADIUS - MASS * 9.81 / CLOTH
    white = mb.sphere("white", at=[-0.1, 0, height], radius=RADIUS, mass=MASS)
    red = mb.sphere("red", at=[0, offset, height], radius=RADIUS, mass=MASS)
    for ball in (white, red):
        cloth = Friction(friction, smooth=2e-3)
        mb.contact(ball, mb.ground, stiffness=CLOTH, damping=1.0, friction=cloth, name=f"{ball.name}-cloth")
    mb.contact(white, red, law=Hertz(1e8), name="blow")
    mb.start(white, velocity=[speed, 0, 0], omega=[0, spin * speed / RADIUS, 0])
    return mb


@problem(
    "snooker",
    summary="a rolling ball hits another one full: friction with the cloth decides who rolls how fast in the end",
    source="",
    scheme="lie-em",
)
def snooker(speed: float = 1.0, spin: float = 1.0, offset: float = 0.0, friction: float = 0.2) -> Problem:
    """The balls exchange their velocities and keep their spins. Then both slide until they roll: the white one, which
    came rolling, follows with 2/7 of its speed, the red one goes with 5/7."""
    return snooker_mechanism(speed, spin, offset, friction).problem("snooker", h=2e-5, t_end=0.8)
