"""Elastic pendulum in space without gravity, in spherical and Cartesian coordinates.

See Kinon and Betsch 2023, 6.2, Kinon and Betsch 2024, 5.2.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from livens import math as m
from livens.models.element import of_invariants
from livens.models.problem import Problem
from livens.models.symmetry import rotations
from livens.models.system import System
from livens.problems import problem
from livens.scene import shapes
from livens.types import ScalarLike, Vector


def _visual(q: Sequence[ScalarLike] | Vector) -> list[shapes.Shape]:
    return [shapes.ground([0, 0, 0]), shapes.spring([0, 0, 0], q), shapes.sphere(q)]


def _spherical_visual(q: Vector) -> list[shapes.Shape]:
    r, theta, phi = q
    return _visual([r * m.sin(theta) * m.cos(phi), r * m.sin(theta) * m.sin(phi), r * m.cos(theta)])


@problem(
    "spring-pendulum-spherical",
    summary="point mass on an elastic string in spherical coordinates: configuration-dependent mass matrix",
    source="Kinon and Betsch 2023, 6.2, Kinon and Betsch 2024, 5.2",
    source_run="livens-em:gonzalez-full, h = 0.01 s, until t = 1 s",
    scheme="livens-em",
)
def spring_pendulum_spherical(mass: float = 1.0, EA: float = 300.0, l0: float = 1.0) -> Problem:
    """Build the problem in spherical coordinates; a rotation about z shifts phi, with the momentum p_phi."""
    system = System(
        "r theta phi",
        kinetic=lambda q, v, k: 0.5 * k.mass * (v[0] ** 2 + q[0] ** 2 * v[1] ** 2 + (q[0] * m.sin(q[1]) * v[2]) ** 2),
        potential=lambda q, k: 0.5 * k.EA * ((q[0] ** 2 - k.l0**2) / (2 * k.l0**2)) ** 2,
        parameters=dict(mass=mass, EA=EA, l0=l0),
        visual=_spherical_visual,
        symmetries=dict(p_phi=lambda q: [0.0, 0.0, 1.0]),
    )
    return Problem(
        "spring-pendulum-spherical",
        system,
        np.array([1.05 * l0, m.pi / 2, 0.0]),
        np.array([0.0, 1.0, 1.0]),
        "livens-em",
        0.01,
        1.0,
    )


@problem(
    "spring-pendulum",
    summary="point mass on an elastic string in Cartesian coordinates",
    source="Kinon and Betsch 2023, 6.2, Kinon and Betsch 2024, 5.2",
    scheme="livens-em",
)
def spring_pendulum(mass: float = 1.0, EA: float = 300.0, l0: float = 1.0) -> Problem:
    """Build the same motion in Cartesian coordinates: theta' = 1 at the equator is the velocity -r along z.

    The potential is a function of the squared length, so energy-momentum schemes conserve angular momentum as well.
    """
    system = System(
        "x y z",
        kinetic=lambda v, k: 0.5 * k.mass * (v @ v),
        potential=of_invariants(lambda q: [q @ q], lambda w, k: 0.5 * k.EA * ((w[0] - k.l0**2) / (2 * k.l0**2)) ** 2),
        parameters=dict(mass=mass, EA=EA, l0=l0),
        visual=_visual,
        symmetries=dict(angular_momentum=rotations([[0, 1, 2]])),
    )
    r = 1.05 * l0
    return Problem("spring-pendulum", system, np.array([r, 0.0, 0.0]), np.array([0.0, r, -r]), "livens-em", 0.01, 1.0)
