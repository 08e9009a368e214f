"""Andrews' squeezing mechanism: seven planar bodies, driven by a motor and supported by a spring.

A benchmark of the test set for initial value problems (Bari) and of the IFToMM library; after Hairer and Wanner,
Solving Ordinary Differential Equations II, VII.7. All links end in one point, which the crank moves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from livens import math as m
from livens.models.problem import Problem
from livens.models.system import System
from livens.problems import problem
from livens.problems.reference_solution import reference_motion
from livens.scene import shapes
from livens.types import ScalarLike, Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


#: Masses (kg), moments of inertia (kg m^2) and lengths (m), by their names in the literature.
_DATA: dict[str, Any] = dict(
    m=(0.04325, 0.00365, 0.02373, 0.00706, 0.0705, 0.00706, 0.05498),
    I=(2.194e-6, 4.41e-7, 5.255e-6, 5.667e-7, 1.169e-5, 5.667e-7, 1.912e-5),
    A=(-0.06934, -0.00227), B=(-0.03635, 0.03273), C=(0.014, 0.072),
    d=0.028, da=0.0115, e=0.02, ea=0.01421, rr=0.007, ra=0.00092, ss=0.035, sa=0.01874, sb=0.01043, sc=0.018,
    sd=0.02, ta=0.02308, tb=0.00916, u=0.04, ua=0.01228, ub=0.00449, zf=0.02, zt=0.04, fa=0.01421,
)  # fmt: skip
_INITIAL_ANGLES = (
    -0.0617138900142764496, 0.0, 0.4552798191630703803, 0.2226683901658858847, 0.4873649795438425502,
    -0.2226683901658858847, 1.2305474445498211925,
)  # fmt: skip


def _unit_vector(angle: ScalarLike) -> Vector:
    return m.array([m.cos(angle), m.sin(angle)])


def _perpendicular_vector(angle: ScalarLike) -> Vector:
    return m.array([-m.sin(angle), m.cos(angle)])


def _kinetic(q: Vector, v: Vector, k: ParameterNamespace) -> ScalarLike:
    """Return the kinetic energy: bodies 1, 3, 5, 7 rotate about fixed points, and 1, 5, 7 carry 2, 4, 6.

    Angles of bodies 2, 4, 6 are relative to their carriers. A point at distances a and b along two arms that enclose
    the angle x and rotate with w and s has the squared velocity ``(a w)^2 + (b s)^2 + 2 a b w s cos(x)``.
    """
    _, theta, _, phi, _, omega, _ = q
    angular_rates = m.array([v[0], v[0] + v[1], v[2], v[3] + v[4], v[4], v[5] + v[6], v[6]])
    fixed_axis_bodies = (0, k.ra**2), (2, k.sa**2 + k.sb**2), (4, k.ta**2 + k.tb**2), (6, k.ua**2 + k.ub**2)
    carried_bodies = (
        (1, 0, k.rr, -k.da, m.cos(theta)), (3, 4, k.zt, k.e - k.ea, m.sin(phi)),
        (5, 6, k.u, k.zf - k.fa, -m.sin(omega)),
    )  # fmt: skip
    energy = m.dot(k.I, angular_rates**2)
    for body, square in fixed_axis_bodies:
        energy += k.m[body] * square * angular_rates[body] ** 2
    for body, carrier, a, b, cosine in carried_bodies:
        w, s = angular_rates[carrier], angular_rates[body]
        energy += k.m[body] * ((a * w) ** 2 + (b * s) ** 2 + 2 * a * b * w * s * cosine)
    return energy / 2


def _spring(q: Vector, k: ParameterNamespace) -> ScalarLike:
    """Return the potential energy of the spring between C and the point D of body 3."""
    common_point = k.B + k.sd * _unit_vector(q[2]) - k.sc * _perpendicular_vector(q[2])
    return 0.5 * k.c0 * (m.norm(common_point - k.C) - k.l0) ** 2


def _loops(q: Vector, k: ParameterNamespace) -> list[Vector]:
    """Return the loop-closure constraints: three links end in the common point, the end of the coupler (body 2)."""
    beta, theta, gamma, phi, delta, omega, epsilon = q
    common_point = k.rr * _unit_vector(beta) - k.d * _unit_vector(beta + theta)
    return [
        common_point + k.ss * _perpendicular_vector(gamma) - k.B,
        common_point + k.e * _perpendicular_vector(phi + delta) - k.zt * _unit_vector(delta) - k.A,
        common_point - k.zf * _unit_vector(omega + epsilon) + k.u * _perpendicular_vector(epsilon) - k.A,
    ]


def _visual(q: Vector, k: ParameterNamespace) -> list[shapes.Shape]:
    """Return the crank at O, the coupler, the plate at B with the spring, and two pairs of links at A."""
    beta, theta, gamma, _, delta, _, epsilon = q
    crank = k.rr * _unit_vector(beta)
    common_point = crank - k.d * _unit_vector(beta + theta)
    knee, elbow = k.A + k.zt * _unit_vector(delta), k.A - k.u * _perpendicular_vector(epsilon)
    corner = k.B + k.sd * _unit_vector(gamma) - k.sc * _perpendicular_vector(gamma)
    thickness = 0.1 * k.d
    return [
        shapes.ground([0, 0], name="O"),
        shapes.ground(k.A, name="A"),
        shapes.ground(k.B, name="B"),
        shapes.ground(k.C, name="C"),
        shapes.rod([0, 0], crank, thickness, name="K1, crank"),
        shapes.rod(crank, common_point, thickness, name="K2, coupler"),
        shapes.polygon([k.B, corner, common_point], name="K3, plate"),
        shapes.rod(knee, common_point, thickness, name="K4"),
        shapes.rod(k.A, knee, thickness, name="K5"),
        shapes.rod(elbow, common_point, thickness, name="K6"),
        shapes.rod(k.A, elbow, thickness, name="K7"),
        shapes.spring(k.C, corner, name="spring"),
        shapes.sphere(common_point, 0.0025, name="common point"),
    ]


@problem(
    "andrews-squeezer",
    summary="seven-body mechanism with a spring and a motor: 7 angles, 6 constraints, M depends on q",
    source="IVP test set (Bari), IFToMM",
    scheme="livens-em",
)
def andrews_squeezer(mom: float = 0.033, c0: float = 4530.0, l0: float = 0.07785) -> Problem:
    """Build the mechanism: motor torque `mom` (N m), spring stiffness `c0` (N/m), free length `l0` (m)."""
    system = System(
        "beta theta gamma phi delta omega epsilon",
        kinetic=_kinetic,
        potential=_spring,
        constraints=_loops,
        forces=lambda k: [k.mom, 0, 0, 0, 0, 0, 0],
        constraint_names=[f"{link}: {axis}" for link in ("link 3", "link 4", "link 6") for axis in "xy"],
        parameters=_DATA | dict(mom=mom, c0=c0, l0=l0),
        visual=_visual,
    )
    q0, v0 = np.array(_INITIAL_ANGLES), np.zeros(7)
    return Problem(
        "andrews-squeezer", system, q0, v0, "livens-em", 1e-5, 0.03, reference=reference_motion(system, q0, v0)
    )
