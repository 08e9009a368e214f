"""Railway wheelset on a straight track: rolling contact with creep forces (Simeon, Fuehrer, Rentrop 1991).

Coordinates are the position of the centre (x lateral, y vertical, z longitudinal, relative to motion at constant
speed), the yaw angle theta and the roll angle phi; beta' is the rotation rate in excess of pure rolling. Each conical
wheel touches its circular rail profile in one point, with the surface parameters psi and xi on the wheel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from livens import math as m
from livens.models.first_order import FirstOrder
from livens.models.problem import Problem
from livens.problems import problem
from livens.scene import shapes
from livens.types import ScalarLike, Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


_PARAMETERS: dict[str, float] = dict(
    mass=16.08, g=9.81, V=30.0, r0=0.1, I1=0.0605, I2=0.366, mu=0.12, arm=0.19, cx=6400.0, cz=6400.0,
    cone=0.0262, half=0.1506, rail=0.06, modulus=7.92e10, poisson=0.28, C11=4.72772197, C22=4.27526987,
    C23=1.97203505,
)  # fmt: skip
#: Elliptic integrals of the contact ellipse in Kalker's theory, and the value of pi used there by the test set.
_E, _G, _PI = 1.3537956, 0.7115218, 3.1415926
#: Scaling factor of the multipliers: the algebraic variables are the multipliers divided by this value.
_SCALE = 1e4
_INITIAL_STATE = (0.0014941, 4.0089e-7, 1.1241e-6, -2.8573e-4, 2.6459e-4, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
#: Initial multipliers, psi and xi of the left wheel (x > 0), psi and xi of the right wheel (x < 0). The test set gives
#: five digits of the multipliers; the other digits follow from the time derivative of the constraints.
_INITIAL_ALGEBRAIC = (
    -8.3591840189592634e-03, -7.4145528406821710e-03, 7.563440639517294e-6, 0.1490635714733819,
    -7.412238035766714e-6, -0.1521364296121248,
)  # fmt: skip


class _Arm(NamedTuple):
    """Vector from the centre to a point of a wheel, with derivatives by yaw, roll and wheel angle."""

    position: Any
    by_yaw: Any
    by_roll: Any
    by_wheel_angle: Any


def _arm(theta: ScalarLike, phi: ScalarLike, psi: ScalarLike, xi: ScalarLike, r: ScalarLike) -> _Arm:
    st, ct, sp, cp, ss, cs = m.sin(theta), m.cos(theta), m.sin(phi), m.cos(phi), m.sin(psi), m.cos(psi)
    x, z = xi * ct * cp + r * (ct * sp * cs - st * ss), -xi * st * cp - r * (st * sp * cs + ct * ss)
    lift = xi * sp - r * cp * cs
    return _Arm(
        m.array([x, lift, z]),
        m.array([z, 0.0, -x]),
        m.array([-ct * lift, xi * cp + r * sp * cs, st * lift]),
        r * m.array([-st * cs - ct * sp * ss, cp * ss, st * sp * ss - ct * cs]),
    )


class _Contact:
    """Contact of one wheel with its rail, at x > 0 (side 1) or x < 0 (side -1)."""

    def __init__(self, side: float, x: Vector, psi: ScalarLike, xi: ScalarLike, k: ParameterNamespace) -> None:
        self.x, self.psi, self.xi, self.k = x, psi, xi, k
        theta, phi = x[3], x[4]
        conicity = m.tan(k.cone)
        self.r, self.dr = k.r0 + conicity * (k.half - side * xi), -side * conicity  # conical wheel profile
        self.arm = _arm(theta, phi, psi, xi, self.r)
        rail_offset = k.half + m.sin(k.cone) * k.rail - side * (x[0] + self.arm.position[0])  # circular rail profile
        depth = m.sqrt(k.rail**2 - rail_offset**2)
        self.rail_gradient, self.curvature = side * rail_offset / depth, -(k.rail**2) / depth**3
        sp, cp, cs, ss = m.sin(phi), m.cos(phi), m.cos(psi), m.sin(psi)
        tilted, upright = self.dr * cp - sp * cs, self.dr * sp + cp * cs
        w = tilted * m.cos(theta) + ss * m.sin(theta)
        #: Conditions for parallel normals of wheel and rail.
        self.conditions = [self.rail_gradient * upright + w, tilted * m.sin(theta) - ss * m.cos(theta)]
        #: Gradient of the gap between wheel and rail by the five coordinates, at fixed psi and xi.
        by_yaw, by_roll = self.arm.by_yaw, self.arm.by_roll
        self.G = m.array([
            self.rail_gradient, -1.0, 0.0,
            self.rail_gradient * by_yaw[0] - by_yaw[1], self.rail_gradient * by_roll[0] - by_roll[1],
        ])  # fmt: skip
        self.angle = m.atan(w / upright)

    def creep(self, N: ScalarLike) -> Vector:
        """Return the creep force by Jaschinski's smooth form of Kalker's law, for the normal force N."""
        k, x = self.k, self.x
        sd, cd = m.sin(self.angle), m.cos(self.angle)
        yaw = x[3] / cd
        arm = _arm(yaw, x[4], self.psi, self.xi, self.r)
        spin, travel = k.V / k.r0 + x[10], m.array([x[5], x[6], x[7] + k.V])
        slip = travel + x[8] * arm.by_yaw + x[9] * arm.by_roll + spin * arm.by_wheel_angle
        rolling = slip - 2 * travel
        speed = 0.5 * m.sqrt(rolling @ rolling)
        along, across = m.array([m.sin(yaw), 0.0, m.cos(yaw)]), m.array([m.cos(yaw) * cd, -sd, -m.sin(yaw) * cd])
        curvature_sum = (
            0.5 / (self.r * m.sqrt(1 + self.dr**2)) - 0.5 * self.curvature / (1 + self.rail_gradient**2) ** 1.5
        )
        load_term = 3 * m.abs(N) * (1 - k.poisson) * _E
        ellipse_size = (load_term / (2 * _PI * curvature_sum * k.modulus * m.sqrt(_G))) ** (1 / 3)
        friction_limit, spin_creepage = k.mu * N, (sd * spin + cd * x[8]) / speed
        creep_stiffness = k.modulus * ellipse_size**2 / friction_limit
        tx = -friction_limit * m.tanh(creep_stiffness * k.C11 * (slip @ along) / speed)
        ty = -friction_limit * m.tanh(
            creep_stiffness * (k.C22 * (slip @ across) / speed + ellipse_size * k.C23 * spin_creepage)
        )
        # limit the resultant to the friction force
        saturation = m.minimum(1.0, m.abs(friction_limit) / m.sqrt(tx**2 + ty**2))
        return saturation * (tx * along + ty * across)


def _contacts(x: Vector, y: Vector, k: ParameterNamespace) -> tuple[_Contact, _Contact]:
    return _Contact(1.0, x, y[2], y[3], k), _Contact(-1.0, x, y[4], y[5], k)


def _rates(x: Vector, y: Vector, k: ParameterNamespace) -> list[ScalarLike]:
    """Return the right-hand side of the Newton-Euler equations, multiplied by the mass matrix of `_mass`."""
    left, right = _contacts(x, y, k)
    constraint_force = _SCALE * (left.G * y[0] + right.G * y[1])
    sin_angle_difference = m.sin(left.angle - right.angle)
    normal = (
        (m.cos(right.angle) * constraint_force[0] - m.sin(right.angle) * constraint_force[1]) / sin_angle_difference,
        (m.sin(left.angle) * constraint_force[1] - m.cos(left.angle) * constraint_force[0]) / sin_angle_difference,
    )
    creep = [contact.creep(N) for contact, N in zip((left, right), normal, strict=True)]
    force = creep[0] + creep[1] + m.array([-2 * k.cx * x[0], -k.mass * k.g, -2 * k.cz * x[2]])
    moment = m.cross(left.arm.position, creep[0]) + m.cross(right.arm.position, creep[1])
    moment = moment + m.array([0.0, -2 * k.arm**2 * k.cz * x[3], 0.0])
    theta, phi, yaw, roll = x[3], x[4], x[8], x[9]
    st, ct, sp, cp = m.sin(theta), m.cos(theta), m.sin(phi), m.cos(phi)
    axle, forward, up = m.array([ct * cp, sp, -st * cp]), m.array([st, 0.0, ct]), m.array([-ct * sp, cp, st * sp])
    spin = k.V / k.r0 + x[10]
    gyro = k.I1 * spin + (k.I1 - k.I2) * yaw * sp
    return [
        *(x[5 + i] for i in range(5)),
        *(force[i] + constraint_force[i] for i in range(3)),
        k.I2 * yaw * roll * sp - gyro * roll + up @ moment + constraint_force[3],
        gyro * yaw * cp + forward @ moment + constraint_force[4],
        -k.I1 * yaw * roll * cp + axle @ moment,
    ]


def _mass(x: Vector, k: ParameterNamespace) -> Vector:
    mass = np.zeros((11, 11), dtype=object)
    for i in range(11):
        mass[i, i] = 1.0
    for i in range(5, 8):
        mass[i, i] = k.mass
    mass[8, 8], mass[9, 9] = k.I2 * m.cos(x[4]), k.I2
    mass[10, 8], mass[10, 10] = k.I1 * m.sin(x[4]), k.I1
    return mass


def _conditions(x: Vector, y: Vector, k: ParameterNamespace) -> list[ScalarLike]:
    """Return the velocity-level gap constraints and the conditions for parallel normals at the contact points."""
    left, right = _contacts(x, y, k)
    return [left.G @ x[5:10], right.G @ x[5:10], *left.conditions, *right.conditions]


def _visual(x: Vector, k: ParameterNamespace) -> list[shapes.Shape]:
    """Return wheels, axle and rails, with displacements and angles magnified 10 times."""
    st, ct, sp, cp = m.sin(10 * x[3]), m.cos(10 * x[3]), m.sin(10 * x[4]), m.cos(10 * x[4])
    axle = m.array([ct * cp, -st * cp, sp])  # x across, y along, z up
    centre = m.array([10 * x[0], 10 * x[2], 0.1])
    parts = [shapes.cylinder(centre - 0.2 * axle, centre + 0.2 * axle, 0.012, name="axle", trace=0.5)]
    for side, name in ((1.0, "left"), (-1.0, "right")):
        wheel_centre = centre + side * k.half * axle
        parts.append(
            shapes.cylinder(wheel_centre - 0.02 * axle, wheel_centre + 0.02 * axle, k.r0, name=f"{name} wheel")
        )
        rail = [[side * 0.1506, along, -0.015] for along in (-0.4, 0.4)]
        parts.append(shapes.cylinder(rail[0], rail[1], 0.015, name=f"{name} rail"))
    return parts


@problem(
    "wheelset",
    summary="railway wheelset on a straight track with creep forces: index 2, 17 unknowns",
    source="Simeon, Fuehrer, Rentrop 1991; IVP test set (Bari)",
    scheme="radau-iia-2",
)
def wheelset(V: float = 30.0) -> Problem:
    """Build the problem at the speed `V` (m/s); gap constraints at velocity level, multipliers of index 2."""
    model = FirstOrder(
        "x y z theta phi x' y' z' theta' phi' beta'",
        rhs=_rates,
        algebraic="lambda_left lambda_right psi_left xi_left psi_right xi_right",
        constraints=_conditions,
        mass=_mass,
        parameters=_PARAMETERS | dict(V=V),
        visual=_visual,
    )
    initial = {"x0": np.array(_INITIAL_STATE), "y0": np.array(_INITIAL_ALGEBRAIC)}
    return Problem("wheelset", model, None, None, "radau-iia-2", 1e-3, 10.0, initial_values=initial)
