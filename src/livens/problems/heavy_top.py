"""Heavy symmetric top: cone on its tip in steady precession.

The same motion with a unit quaternion about the tip (Kinon and Betsch 2024, 5.4) and with directors at the centre of
mass (Kinon et al. 2023, 5.1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from livens import bodies
from livens import rotations as rot
from livens.models.problem import Problem
from livens.models.system import System
from livens.problems import problem
from livens.scene import shapes

_UP = np.array([0.0, 0.0, 1.0])


@dataclass(frozen=True)
class _Cone:
    """Cone of height a and radius a/2 on its tip, nutation angle theta0, in steady precession at the rate omega_p."""

    rho: float
    a: float
    g: float
    theta0: float
    omega_p: float

    @property
    def inertia(self) -> bodies.Inertia:
        """Inertia (113); the origin of the body frame is the tip."""
        r = self.a / 2
        mass = self.rho * np.pi * r**2 * self.a / 3
        across, along = 3 / 80 * mass * (4 * r**2 + self.a**2), 3 / 10 * mass * r**2
        return bodies.Inertia(mass, [across, across, along], centre=[0, 0, 3 / 4 * self.a])

    @property
    def spin(self) -> float:
        """Spin rate of steady precession (118), with the moments of inertia about the tip."""
        J1, _, J3 = np.diag(self.inertia.about([0, 0, 0]))
        gravity_torque = self.inertia.mass * self.g * self.inertia.centre[2]
        return float(gravity_torque / (J3 * self.omega_p) + (J1 - J3) / J3 * self.omega_p * np.cos(self.theta0))

    @property
    def visual(self) -> shapes.Shape:
        return shapes.cone([0, 0, 0], [0, 0, self.a], self.a / 2, np.eye(3))

    def motion(self, t: float) -> tuple[np.ndarray, np.ndarray]:
        """Return orientation and spatial angular velocity (119): precession, nutation and spin as zxz Euler angles."""
        q = rot.from_euler_angles([self.omega_p * t, self.theta0, self.spin * t], "zxz")
        return q, self.omega_p * _UP + self.spin * rot.rotate(q, _UP)


@problem(
    "heavy-top",
    summary="steady precession of a heavy top with a unit quaternion about its tip",
    source="Kinon and Betsch 2024, 5.4",
    source_run="four schemes, h = 0.01 s, until t = 2 s",
    scheme="livens-em",
)
def heavy_top(
    rho: float = 2700.0, a: float = 0.1, g: float = 9.81, theta0: float = np.pi / 3, omega_p: float = 10.0
) -> Problem:
    """Build the problem; `theta0` is the nutation angle, `omega_p` the precession rate, which determine the spin."""
    cone = _Cone(rho, a, g, theta0, omega_p)
    top = bodies.fixed_point_body("top", cone.inertia, visual=cone.visual)

    def reference(t: float) -> dict[str, np.ndarray]:
        q, omega = cone.motion(t)
        return {"q": q, "v": rot.rate_from_spatial(q, omega)}

    system = System(
        bodies.coordinates([top]),
        elements=[top, bodies.gravity(top, [0, 0, -g])],
        symmetries=dict(L3=bodies.angular_momentum([top], axis=_UP)),
        visual=lambda: shapes.ground([0, 0, 0]),
    )
    initial = reference(0.0)
    return Problem("heavy-top", system, initial["q"], initial["v"], "livens-em", 5e-4, 2.0, reference=reference)


@problem(
    "gyroscopic-top",
    summary="steady precession of a heavy top with directors: 12 coordinates, 9 constraints, constant mass matrix",
    source="Kinon et al. 2023, 5.1",
    source_run="ggl-variational, h = 0.002 s, until t = 2 s",
    scheme="ggl-variational",
)
def gyroscopic_top(
    rho: float = 2700.0, a: float = 0.1, g: float = 9.81, theta0: float = np.pi / 3, omega_p: float = 10.0
) -> Problem:
    """Build `heavy-top` with directors; a spherical joint fixes the tip (Kinon et al. 2023, eq. 64)."""
    cone = _Cone(rho, a, g, theta0, omega_p)
    top = bodies.director_body("top", cone.inertia, visual=cone.visual)

    def reference(t: float) -> dict[str, np.ndarray]:
        quaternion, omega = cone.motion(t)
        centre = rot.rotate(quaternion, cone.inertia.centre)
        q, v = top.state(centre, quaternion, np.cross(omega, centre), omega)
        return {"q": q, "v": v}

    system = System(
        bodies.coordinates([top]),
        elements=[top, bodies.gravity(top, [0, 0, -g]), bodies.spherical_joint((top, [0, 0, 0]), [0, 0, 0])],
        symmetries=dict(L3=bodies.angular_momentum([top], axis=_UP)),
    )
    initial = reference(0.0)
    return Problem(
        "gyroscopic-top", system, initial["q"], initial["v"], "ggl-variational", 1e-4, 2.0, reference=reference
    )
