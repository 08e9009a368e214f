"""Spherical pendulum by a unit quaternion: the sphere as a quotient of rotations (Kinon and Betsch 2024, outlook)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from livens import rotations as rot
from livens.models.problem import Problem
from livens.models.system import System
from livens.problems import problem
from livens.scene import shapes
from livens.types import ScalarLike, Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


def _kinetic(q: Vector, v: Vector, k: ParameterNamespace) -> ScalarLike:
    Omega = rot.convective_velocity(q, v)
    return k.m * k.l**2 * (Omega[0] ** 2 + Omega[1] ** 2) / 2


def _potential(q: Vector, k: ParameterNamespace) -> ScalarLike:
    return k.m * k.g * k.l * rot.directors(q)[2][2]


def _visual(q: Vector, k: ParameterNamespace) -> list[shapes.Shape]:
    bob = [k.l * x for x in rot.directors(q)[2]]
    return [shapes.ground([0, 0, 0]), shapes.rod([0, 0, 0], bob), shapes.sphere(bob)]


@problem(
    "quaternion-pendulum",
    summary="spherical pendulum by a unit quaternion: no inertia about the rod, whose rotation is held",
    source="outlook of Kinon and Betsch 2024",
    scheme="livens-em",
)
def quaternion_pendulum(
    m: float = 1.0,
    l: float = 1.0,  # noqa: E741
    g: float = 9.81,
    theta0: float = 1.2,
    speed: float = 2.0,
) -> Problem:
    """Build the pendulum of `spherical-pendulum`: the rod is the third director, with a horizontal initial velocity.

    The mass matrix is singular in the direction of rotations about the rod, which do not move the mass. The convective
    angular velocity about the rod is zero: a constraint on the velocity.
    """
    system = System(
        "q0 q1 q2 q3",
        kinetic=_kinetic,
        potential=_potential,
        constraints=lambda q: [(q @ q - 1) / 2],
        velocity_constraints=lambda q, v: [rot.convective_velocity(q, v)[2]],
        constraint_names=["unit length", "rotation about the rod"],
        quaternions=[["q0", "q1", "q2", "q3"]],
        parameters=dict(m=m, l=l, g=g),
        visual=_visual,
    )
    rod = np.array([np.sin(theta0), 0.0, -np.cos(theta0)])
    q0 = np.asarray(rot.from_axis_angle([0.0, 1.0, 0.0], np.pi - theta0))
    v0 = np.asarray(rot.rate_from_spatial(q0, np.cross(rod, [0.0, speed / l, 0.0])))
    return Problem("quaternion-pendulum", system, q0, v0, "livens-em", 0.01, 10.0)
