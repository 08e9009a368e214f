"""Row of planar dominoes with contact and friction."""

from __future__ import annotations

import itertools

import numpy as np

from livens.errors import InputError
from livens.models.problem import Problem
from livens.multibody.contacts import Friction, HalfSpace, PointCloud
from livens.multibody.multibody import Multibody
from livens.problems import problem

WIDTH, HEIGHT, MASS = 0.0075, 0.048, 0.01


def dominoes_mechanism(count: int = 4, spacing: float = 0.02, push: float = 3.0) -> Multibody:
    """Build the planar dominoes; each has two corners on the floor and one that hits the next domino."""
    if not 2 <= count <= 8:
        raise InputError("option 'count' must be between 2 and 8")
    if not WIDTH < spacing < HEIGHT:
        raise InputError(f"option 'spacing' must be between {WIDTH:g} and {HEIGHT:g}, got {spacing:g}")
    mb = Multibody(gravity=[0, -9.81], planar=True)
    floor, friction_law = HalfSpace(mb.ground), Friction(0.3, slip_tolerance=5e-3)
    tiles = []
    for i in range(count):
        centre = np.array([i * spacing, HEIGHT / 2])
        tile = mb.box(f"domino{i + 1}", at=centre, size=[WIDTH, HEIGHT], mass=MASS)
        corners = centre + np.array([[-1, -1], [1, -1], [1, 1]]) * [WIDTH / 2, HEIGHT / 2]
        mb.contact(
            PointCloud(tile, corners),
            floor,
            stiffness=3e3,
            dissipation=5.0,
            friction=friction_law,
            name=f"floor{i + 1}",
        )
        tiles.append((tile, corners[2]))
    for i, ((tile, corner), (next_tile, _)) in enumerate(itertools.pairwise(tiles)):
        # the corner stays on the face that it hits, so a half-space replaces the box
        tip, face = (
            PointCloud(tile, [corner]),
            HalfSpace(next_tile, at=next_tile.reference_position - [WIDTH / 2, 0.0], normal=[-1, 0]),
        )
        mb.contact(
            tip, face, stiffness=3e3, dissipation=1.0, friction=Friction(0.1, slip_tolerance=5e-3), name=f"hit{i + 1}"
        )
    first_tile = tiles[0][0]
    # rotation about the lower corner
    arm = first_tile.reference_position - [WIDTH / 2, 0.0]
    mb.initial(first_tile, omega=-push, velocity=-push * np.array([-arm[1], arm[0]]))
    return mb


@problem("dominoes", summary="row of falling dominoes, each hits the next", source="", scheme="lie-em")
def dominoes(count: int = 4, spacing: float = 0.02, push: float = 3.0) -> Problem:
    """Build the problem; the first domino starts with the rate `push` (rad/s) about its lower corner."""
    return dominoes_mechanism(count, spacing, push).problem("dominoes", h=2.5e-5, t_end=0.6)
