"""Thin disc rolling without slip on a plane (Routh): nonholonomic constraints."""

from __future__ import annotations

import math

import numpy as np

from livens.models.problem import Problem
from livens.multibody.multibody import Multibody
from livens.problems import problem


def rolling_disc_mechanism(
    tilt: float = math.radians(70),
    nutation_rate: float = 0.2,
    precession_rate: float = 1.0,
    spin: float = -12.0,
    radius: float = 0.2,
    mass: float = 5.0,
) -> Multibody:
    """Build a disc that touches the plane z = 0 at the origin; `tilt` (rad) is between its axis and the vertical."""
    mb = Multibody(gravity=[0, 0, -9.81])
    axis = np.array([0.0, -math.sin(tilt), math.cos(tilt)])
    centre = radius * np.array([0.0, math.cos(tilt), math.sin(tilt)])
    node = np.array([1.0, 0.0, 0.0])
    across = mass * radius**2 / 4
    R = np.column_stack([node, np.cross(axis, node), axis])
    disc = mb.body(
        "disc",
        mass=mass,
        inertia=[across, across, 2 * across],
        position=centre,
        rotation=R,
        shape=("cylinder", 0.02 * radius, radius),
    )
    mb.rolling("contact", mb.ground, disc, radius=radius, axis=axis)
    mb.initial(disc, omega=nutation_rate * node + precession_rate * math.sin(tilt) * R[:, 1] + spin * axis)
    return mb


@problem(
    "rolling-disc",
    summary="thin disc rolling on a plane without slip: nonholonomic constraints, energy conserved exactly",
    source="Routh",
    scheme="lie-em",
)
def rolling_disc(
    tilt: float = math.radians(70),
    nutation_rate: float = 0.2,
    precession_rate: float = 1.0,
    spin: float = -12.0,
    radius: float = 0.2,
    mass: float = 5.0,
) -> Problem:
    """Build the problem with the initial rates of nutation, precession and spin about the axis (rad/s)."""
    mechanism = rolling_disc_mechanism(tilt, nutation_rate, precession_rate, spin, radius, mass)
    return mechanism.problem("rolling-disc", h=1e-3, t_end=2.0)
