"""Tippe top: a spinning ball with a low centre of mass that inverts by sliding friction."""

from __future__ import annotations

import math

import numpy as np

from livens.models.problem import Problem
from livens.multibody.contacts import Friction, Sphere
from livens.multibody.multibody import Multibody
from livens.problems import problem
from livens.scene import shapes

RADIUS, OFFSET, MASS = 0.02, 0.002, 0.02
INERTIA = (3.1e-6, 3.1e-6, 3.2e-6)


def tippe_top_mechanism(spin: float = 150.0, tilt: float = 0.1, friction: float = 0.3) -> Multibody:
    """Build the top; the centre of mass is `OFFSET` below the centre of the ball, a stem marks the opposite side."""
    mb = Multibody(gravity=[0, 0, -9.81])
    c, s = math.cos(tilt), math.sin(tilt)
    R = np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])
    visuals = (
        shapes.sphere([0, 0, OFFSET], RADIUS, np.eye(3)),
        shapes.cylinder([0, 0, OFFSET + RADIUS], [0, 0, OFFSET + 1.5 * RADIUS], RADIUS / 6, trace=1.0),
    )
    depth = MASS * 9.81 / 2e4
    ball_centre = np.array([0, 0, RADIUS - depth])
    position = ball_centre - OFFSET * R[:, 2]
    top = mb.body("top", mass=MASS, inertia=INERTIA, position=position, rotation=R, shape=("shapes", *visuals))
    ball = Sphere(top, RADIUS, at=ball_centre)
    mb.contact(
        ball, mb.ground, stiffness=2e4, dissipation=1.0, friction=Friction(friction, slip_tolerance=1e-2), name="table"
    )
    mb.initial(top, omega=spin * R[:, 2])
    return mb


@problem(
    "tippe-top",
    summary="tippe top: a spinning ball with a low centre of mass turns upside down",
    source="Cohen 1977",
    scheme="lie-em",
)
def tippe_top(spin: float = 150.0, tilt: float = 0.1, friction: float = 0.3) -> Problem:
    """Build the problem; sliding friction inverts the top.

    The Jellett integral ``-L.a``, with the vector a from the centre of mass to the contact point, is constant for any
    friction.
    """
    return tippe_top_mechanism(spin, tilt, friction).problem("tippe-top", h=2e-4, t_end=4.0)
