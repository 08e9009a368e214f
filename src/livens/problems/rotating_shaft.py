"""Flexible shaft with an eccentric disc (Jeffcott rotor): whirl below and near the critical speed."""

from __future__ import annotations

import dataclasses

import numpy as np

from livens.errors import InputError
from livens.models.problem import Problem
from livens.multibody.multibody import Multibody
from livens.multibody.sections import Section
from livens.problems import problem

_LENGTH, _RADIUS, _DISC, _MATERIAL = 1.0, 0.01, 5.0, dict(E=2.1e11, nu=0.3, density=7850.0)


def critical_speed() -> float:
    """Return the critical speed ``sqrt(48 EI/(m l^3))`` of a massless shaft with a central disc, in rad/s."""
    EI = float(Section.circular(_RADIUS, **_MATERIAL).stiffness[4])
    return float(np.sqrt(48 * EI / (_DISC * _LENGTH**3)))


def shaft(N: int = 8, eccentricity: float = 1e-3) -> Multibody:
    """Build a shaft along x between two bearings, with a central disc whose centre is off the axis along y."""
    if N < 2 or N % 2:
        raise InputError(f"option 'N' must be an even number of at least 2, got {N}")
    mb = Multibody()
    section = Section.circular(_RADIUS, **_MATERIAL)
    beam = mb.beam(
        "shaft",
        points=[[0, 0, 0], [_LENGTH, 0, 0]],
        section=section,
        elements=N,
        stations=[_LENGTH / 2],
        section_axis="y",
    )
    disc = mb.cylinder(
        "disc", at=[_LENGTH / 2, eccentricity, 0], axis="x", length=0.02, radius=0.1, mass=_DISC
    )  # fmt: skip
    mb.fixed("hub", beam.at(_LENGTH / 2), disc, at=[_LENGTH / 2, 0, 0])
    mb.spherical("left", mb.ground, beam.a, at=[0, 0, 0])
    mb.point_on_line("right", mb.ground, beam.b, at=[_LENGTH, 0, 0], axis="x")
    return mb


@problem(
    "rotating-shaft",
    summary="flexible shaft of N elements with an eccentric disc, at a fraction of its critical speed",
    source="Jeffcott 1919",
    scheme="lie-em",
)
def rotating_shaft(N: int = 8, speed: float = 0.6, eccentricity: float = 1e-3) -> Problem:
    """Build the problem: initially straight, rotating as a rigid body; `speed` is relative to the critical speed."""
    mb = shaft(N, eccentricity)
    base = mb.problem("rotating-shaft", h=5e-4, t_end=0.5)
    rate = speed * critical_speed()
    v = np.concatenate(
        [
            np.concatenate([np.cross([rate, 0, 0], vector) for vector in body_coordinates.reshape(-1, 3)])
            for body_coordinates in np.asarray(base.q0).reshape(-1, 12)
        ]
    )
    return dataclasses.replace(base, v0=v)
