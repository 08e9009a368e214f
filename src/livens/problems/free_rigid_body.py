"""Free rotation of a rigid body with a unit quaternion (Kinon and Betsch 2024, 5.3)."""

from __future__ import annotations

import numpy as np

from livens import bodies
from livens import rotations as rot
from livens.models.problem import Problem
from livens.models.system import System
from livens.problems import problem


@problem(
    "free-rigid-body",
    summary="free rotation of a rigid body with a unit quaternion: singular, configuration-dependent mass matrix",
    source="Kinon and Betsch 2024, 5.3",
    source_run="livens-em, h = 0.05 s, until t = 2 s",
    scheme="livens-em",
)
def free_rigid_body(
    J: tuple[float, float, float] = (6.0, 8.0, 3.0), Omega: tuple[float, float, float] = (10.0, 20.0, 20.0)
) -> Problem:
    """Build the body with principal moments `J` and initial angular velocity `Omega`, both in the body frame."""
    body = bodies.fixed_point_body("body", bodies.Inertia(1.0, J))  # the mass has no effect on the rotation
    system = System(
        bodies.coordinates([body]), elements=[body], symmetries=dict(angular_momentum=bodies.angular_momentum([body]))
    )
    q0 = np.array(rot.identity)
    return Problem("free-rigid-body", system, q0, rot.rate_from_convective(q0, Omega), "livens-em", 0.002, 2.0)
