"""Spatial slider-crank of the IFToMM benchmarks: loop of revolute, spherical, universal and prismatic joints."""

from __future__ import annotations

import numpy as np

from livens.models.problem import Problem
from livens.multibody.body import frame_from_x
from livens.multibody.multibody import Multibody
from livens.problems import problem


def spatial_slider_crank_mechanism(speed: float = 6.0, g: float = 9.81) -> Multibody:
    """Build the mechanism; the crank rotates about x at (0, 0.1, 0.12), the slider moves along x."""
    mb = Multibody(gravity=[0, 0, -g])
    A, B, C = np.array([0, 0.1, 0.12]), np.array([0, 0.1, 0.2]), np.array([0.2, 0, 0])
    along = (B - C) / 0.3
    points = dict(a=A, b=B)
    inertia = [1e-5, 1e-4, 1e-4]
    # moments of inertia as given by the benchmark, independent of the visual geometry
    crank = mb.body(
        "crank",
        mass=0.12,
        inertia=inertia,
        position=(A + B) / 2,
        rotation=frame_from_x((B - A) / 0.08),
        points=points,
        shape=("rod", 0.08, 0.006),
    )
    rod = mb.body(
        "rod",
        mass=0.5,
        inertia=[4e-4, 4e-3, 4e-3],
        position=(B + C) / 2,
        rotation=frame_from_x(along),
        shape=("rod", 0.3, 0.006),
    )
    slider = mb.body("slider", mass=2.0, inertia=[1e-4] * 3, position=C, shape=("box", 0.05, 0.03, 0.03))
    hinge = mb.revolute("hinge", mb.ground, crank, at=A, axis="x")
    mb.spherical("ball", crank, rod, at=B)
    # axis on the slider: its direction of motion; axis on the rod: normal to the slider axis and to the rod
    mb.universal("cross", slider, rod, at=C, axis="x", second_axis=np.cross(along, [1, 0, 0]))
    mb.prismatic("guide", mb.ground, slider, axis="x")
    mb.initial(hinge, rate=speed)
    return mb


@problem(
    "spatial-slider-crank",
    summary="spatial slider-crank with four joint types: 36 coordinates, one degree of freedom",
    source="IFToMM, Masarati's submission",
    scheme="lie-em",
)
def spatial_slider_crank(speed: float = 6.0, g: float = 9.81) -> Problem:
    """Build the problem; `speed` is the initial crank rate, which varies between 5.5 and 24.3 rad/s."""
    return spatial_slider_crank_mechanism(speed, g).problem("spatial-slider-crank", h=1e-3, t_end=5.0)
