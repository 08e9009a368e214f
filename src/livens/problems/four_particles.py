"""Four particles in space with two rigid links, two springs and two dampers: a free system.

Springs and dampers act along the lines between particles, so linear and angular momentum are conserved in spite of
dissipation.
"""

from __future__ import annotations

import numpy as np

from livens import bodies
from livens.models.problem import Problem
from livens.models.system import System
from livens.problems import problem

_CORNERS = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], dtype=float)
#: Initial velocities; relative velocities of the links 1-2 and 3-4 are perpendicular to the links.
_SPEEDS = np.array([[0, 0, 2], [0, 1, -1], [1, 0, 0], [1, -1, 0.5]], dtype=float)


@problem(
    "four-particles",
    summary="four particles with rigid links, springs and dampers, free in space",
    source="a common test of energy-momentum schemes; data chosen here",
    scheme="livens-em",
)
def four_particles(
    m: tuple[float, float, float, float] = (1.0, 3.0, 2.0, 1.5),
    stiffness: float = 50.0,
    l: float = 1.0,  # noqa: E741
    viscosity: float = 0.2,
) -> Problem:
    """Build links 1-2 and 3-4 of length `l` as opposite sides of a square, springs and dampers as the other two.

    With ``viscosity=0`` energy is conserved as well.
    """
    particles = [bodies.particle(f"m{i + 1}", mass) for i, mass in enumerate(m)]
    a, b, c, d = [(particle, np.zeros(3)) for particle in particles]
    system = System(
        bodies.coordinates(particles),
        elements=[
            *particles,
            bodies.rigid_link(a, b, l),
            bodies.rigid_link(c, d, l),
            bodies.spring(a, c, stiffness, 0.9 * l),
            bodies.spring(b, d, stiffness, 0.9 * l),
            bodies.damper(a, c, viscosity),
            bodies.damper(b, d, viscosity),
        ],
        symmetries=dict(
            linear_momentum=bodies.linear_momentum(particles), angular_momentum=bodies.angular_momentum(particles)
        ),
    )
    return Problem("four-particles", system, l * _CORNERS.ravel(), l * _SPEEDS.ravel(), "livens-em", 0.002, 10.0)
