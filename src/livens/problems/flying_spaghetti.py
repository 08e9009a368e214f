"""Flying spaghetti (Simo and Vu-Quoc): free, very flexible beam, loaded by a force and a torque at one end."""

from __future__ import annotations

from livens import math as m
from livens.errors import InputError
from livens.models.problem import Problem
from livens.multibody.multibody import Multibody
from livens.multibody.sections import Section
from livens.problems import problem
from livens.types import ScalarLike


def _triangle(t: ScalarLike) -> ScalarLike:
    """Return the triangular load: 0 at t = 0, 200 at t = 2.5, 0 from t = 5 on."""
    return m.where(t < 2.5, 80.0 * t, m.where(t < 5.0, 400.0 - 80.0 * t, 0.0))


def _force_in_space(t: ScalarLike) -> list[ScalarLike]:
    return [_triangle(t) / 10, 0.0, 0.0]


def _torque_in_space(t: ScalarLike) -> list[ScalarLike]:
    return [0.0, _triangle(t), _triangle(t) / 2]


def _step(t: ScalarLike) -> ScalarLike:
    """Return 1 while the planar load acts (t < 2.5), then 0."""
    return m.where(t < 2.5, 1.0, 0.0)


def _force_in_plane(t: ScalarLike) -> list[ScalarLike]:
    return [8.0 * _step(t), 0.0]


def _torque_in_plane(t: ScalarLike) -> list[ScalarLike]:
    # the torque of the paper is about y in the plane x, z: the opposite of the normal of x, y
    return [-80.0 * _step(t)]


def spaghetti_in_space(N: int = 20, EI: float = 500.0, loaded: bool = True, damping: float = 0.0) -> Multibody:
    """Build a straight beam from (0, 0, 8) to (6, 0, 0), where the loads act."""
    mb = Multibody()
    section = Section.general(EA=1e4, GA=1e4, GJ=EI, EI=EI, mass=1.0, inertia=[20.0, 10.0, 10.0], radius=0.15)
    ends = [[0, 0, 8], [6, 0, 0]]
    beam = mb.beam("spaghetti", points=ends, section=section, elements=N, section_axis="y", damping_time=damping)
    if loaded:
        mb.wrench("load", beam.b, force=_force_in_space, torque=_torque_in_space)
    return mb


def spaghetti_in_plane(N: int = 20, EI: float = 100.0) -> Multibody:
    """Build a straight planar beam from (0, 8) to (6, 0), where the loads act."""
    mb = Multibody(planar=True)
    section = Section.general(EA=1e4, GA=1e4, GJ=EI, EI=EI, mass=1.0, inertia=[10.0, 10.0, 10.0], radius=0.15)
    beam = mb.beam("spaghetti", points=[[0, 8], [6, 0]], section=section, elements=N)
    mb.wrench("load", beam.b, force=_force_in_plane, torque=_torque_in_plane)
    return mb


@problem(
    "flying-spaghetti-3d",
    summary="free flexible beam of N elements in space, loaded at one end for 5 s",
    source="Simo and Vu-Quoc 1988",
    scheme="lie-em",
)
def flying_spaghetti_3d(N: int = 10, EI: float = 500.0) -> Problem:
    """Build the spatial problem; energy and momenta are conserved exactly after the load."""
    return spaghetti_in_space(_checked_element_count(N), EI).problem("flying-spaghetti-3d", h=0.02, t_end=10.0)


@problem(
    "flying-spaghetti-2d",
    summary="free flexible beam of N elements in the plane, loaded at one end for 2.5 s",
    source="Simo and Vu-Quoc 1986",
    scheme="lie-em",
)
def flying_spaghetti_2d(N: int = 10, EI: float = 100.0) -> Problem:
    """Build the planar problem; the beam folds with the bending stiffness 100 and undulates with 500."""
    return spaghetti_in_plane(_checked_element_count(N), EI).problem("flying-spaghetti-2d", h=0.02, t_end=10.0)


def _checked_element_count(N: int) -> int:
    if N < 1:
        raise InputError(f"option 'N' must be at least 1, got {N}")
    return N
