"""Sun and five outer planets (Hairer, Lubich, Wanner, I.2.4)."""

from __future__ import annotations

import numpy as np

from livens.models.point_masses import PointMasses
from livens.models.problem import Problem
from livens.problems import problem
from livens.scene import shapes
from livens.types import Vector

_G = 2.95912208286e-4
#: Masses, positions and velocities on September 5, 1994, at noon; the mass of the sun includes the inner planets.
_BODIES = {
    "sun": (1.00000597682, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)),
    "jupiter": (0.000954786104043, (-3.5023653, -3.8169847, -1.5507963), (0.00565429, -0.00412490, -0.00190589)),
    "saturn": (0.000285583733151, (9.0755314, -3.0458353, -1.6483708), (0.00168318, 0.00483525, 0.00192462)),
    "uranus": (0.0000437273164546, (8.3101420, -16.2901086, -7.2521278), (0.00354178, 0.00137102, 0.00055029)),
    "neptune": (0.0000517759138449, (11.4707666, -25.7294829, -10.8169456), (0.00288930, 0.00114527, 0.00039677)),
    "pluto": (1 / 1.3e8, (-15.5387357, -25.2225594, -3.1902382), (0.00276725, -0.00170702, -0.00136504)),
}
_SIZES = (1.2, 0.9, 0.8, 0.6, 0.6, 0.4)


def _visual(q: Vector) -> list[shapes.Shape]:
    """Return the bodies as spheres, not to scale."""
    return [
        shapes.sphere(q[3 * i : 3 * i + 3], size, name=name)
        for i, (name, size) in enumerate(zip(_BODIES, _SIZES, strict=True))
    ]


@problem(
    "outer-solar-system",
    summary="sun, four outer planets and Pluto",
    source="Hairer, Lubich, Wanner, I.2.4",
    scheme="kahan-li-8:stormer-verlet",
)
def outer_solar_system() -> Problem:
    """Build the problem in astronomical units, days and solar masses; the sun starts at rest at the origin."""
    masses, positions, velocities = zip(*_BODIES.values(), strict=True)
    system = PointMasses(list(_BODIES), masses, _G, visual=_visual)
    return Problem(
        "outer-solar-system",
        system,
        np.ravel(positions),
        np.ravel(velocities),
        "kahan-li-8:stormer-verlet",
        250.0,
        2e5,
    )
