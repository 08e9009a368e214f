"""The free rotation of a rigid body, as a unit quaternion (S004 5.3)."""

from __future__ import annotations

import numpy as np

from livens import bodies
from livens import rotations as rot
from livens.models.problem import Problem
from livens.models.system import System
from livens.problems import problem


@problem(
    "free-rigid-body",
    summary="free rotation of a rigid body as a unit quaternion: singular mass matrix that depends on q",
    source="S004 5.3",
    scheme="livens-em",
)
def free_rigid_body(
    J: tuple[float, float, float] = (6.0, 8.0, 3.0), Omega: tuple[float, float, float] = (10.0, 20.0, 20.0)
) -> Problem:
    """`J` are the principal moments, `Omega` is the angular velocity at the start; both in the body frame."""
    body = bodies.rotation_body("body", bodies.Inertia(1.0, J))  # the mass of a body at rest in space does not matter
    system = System(
        bodies.coordinates([body]), elements=[body], symmetries=dict(angular_momentum=bodies.angular_momentum([body]))
    )
    q0 = np.array(rot.identity)
    return Problem("free-rigid-body", system, q0, rot.rate_from_convective(q0, Omega), "livens-em", 0.002, 2.0)
