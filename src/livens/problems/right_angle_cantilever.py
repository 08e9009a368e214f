"""Right-angle cantilever (Simo and Vu-Quoc): two beams with a common node, loaded at the elbow."""

from __future__ import annotations

from livens import math as m
from livens.errors import InputError
from livens.models.problem import Problem
from livens.multibody.multibody import Multibody
from livens.multibody.sections import Section
from livens.problems import problem
from livens.types import ScalarLike


def _push(t: ScalarLike) -> list[ScalarLike]:
    """Return the triangular force: 50 at t = 1, 0 from t = 2 on."""
    return [0.0, 0.0, m.where(t < 1.0, 50.0 * t, m.where(t < 2.0, 100.0 - 50.0 * t, 0.0))]


def right_angle_mechanism(N: int = 10, axial: float = 20.0) -> Multibody:
    """Build two legs of length 10 with N elements each, clamped at (0, 10, 0), elbow at (10, 10, 0)."""
    if N < 1:
        raise InputError(f"option 'N' must be at least 1, got {N}")
    section = Section.general(EA=1e6, GA=1e6, GJ=1e3, EI=1e3, mass=1.0, inertia=[axial, 10.0, 10.0], radius=0.2)
    mb = Multibody()
    points = [[0, 10, 0], [10, 10, 0], [10, 0, 0]]
    arm = mb.beam("arm", points=points[:2], section=section, elements=N, clamp_first=mb.ground, section_axis="z")
    mb.beam("leg", points=points[1:], section=section, elements=N, clamp_first=arm.b, section_axis="z")
    mb.wrench("push", arm.b, force=_push)
    return mb


@problem(
    "right-angle-cantilever",
    summary="two beams of N elements at a right angle, loaded at the elbow for 2 s: bending and torsion",
    source="Simo and Vu-Quoc 1988",
    scheme="lie-em",
)
def right_angle_cantilever(N: int = 10, axial: float = 20.0) -> Problem:
    """Build the problem; `axial` is the axial moment of inertia per length (20 and 10 are used in the literature)."""
    return right_angle_mechanism(N, axial).problem("right-angle-cantilever", h=0.05, t_end=30.0)
