"""Car axis on a bumpy road: time-dependent constraints (IVP test set, Bari)."""

from __future__ import annotations

from typing import TYPE_CHECKING

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


def _right_wheel(t: ScalarLike, k: ParameterNamespace) -> Vector:
    """Return the position of the right wheel, at distance L from the left wheel (origin) and on the road profile."""
    height = k.r * m.sin(k.omega * t)
    return m.array([m.sqrt(k.L**2 - height**2), height])


def _springs(q: Vector, t: ScalarLike, k: ParameterNamespace) -> ScalarLike:
    """Return the potential energy of gravity and of both springs; the stiffness is 1 in the scaling of the test set."""
    left, right = m.norm(q[:2]), m.norm(q[2:] - _right_wheel(t, k))
    weight = k.M * k.eps**2 / 2 * k.g * (q[1] + q[3])
    return 0.5 * (left - k.L0) ** 2 + 0.5 * (right - k.L0) ** 2 + weight


def _guides(q: Vector, t: ScalarLike, k: ParameterNamespace) -> list[ScalarLike]:
    """Return the constraints: left spring normal to the line between the wheels, axis of constant length."""
    axis = q[2:] - q[:2]
    return [m.dot(q[:2], _right_wheel(t, k)), m.dot(axis, axis) - k.L**2]


def _visual(q: Vector, t: ScalarLike, k: ParameterNamespace) -> list[shapes.Shape]:
    """Return wheels, springs and axis."""
    left, right, wheel, road = q[:2], q[2:], [0.0, 0.0], _right_wheel(t, k)
    return [
        shapes.ring(wheel, 0.12 * k.L, name="left wheel"),
        shapes.ring(road, 0.12 * k.L, name="right wheel"),
        shapes.path([wheel, road], name="line of the wheels"),
        shapes.spring(wheel, left),
        shapes.spring(road, right),
        shapes.rod(left, right, name="axis"),
        shapes.sphere(left, 0.035 * k.L, name="left end"),
        shapes.sphere(right, 0.035 * k.L, name="right end"),
    ]


@problem(
    "car-axis",
    summary="car axis on two springs and a bumpy road: time-dependent constraints",
    source="IVP test set (Bari)",
    scheme="livens-em",
)
def car_axis(
    M: float = 10.0,
    eps: float = 0.01,
    L: float = 1.0,
    L0: float = 0.5,
    r: float = 0.1,
    omega: float = 10.0,
    g: float = 1.0,
) -> Problem:
    """Build two masses ``eps^2 M/2``; `r`, `omega`: amplitude and frequency of the road, `L0`: free spring length.

    The multipliers are those of the test set with the opposite sign.
    """
    system = System(
        "xl yl xr yr",
        kinetic=lambda v, k: 0.5 * k.M * k.eps**2 / 2 * (v @ v),
        potential=_springs,
        constraints=_guides,
        constraint_names=["left spring across the wheels", "length of the axis"],
        parameters=dict(M=M, eps=eps, L=L, L0=L0, r=r, omega=omega, g=g),
        visual=_visual,
    )
    speed = -L0 * r * omega / L
    q0, v0 = np.array([0.0, L0, L, L0]), np.array([speed, 0.0, speed, 0.0])
    return Problem("car-axis", system, q0, v0, "livens-em", 1e-3, 3.0, reference=reference_motion(system, q0, v0))
