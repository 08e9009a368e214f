"""Double pendulum of Symank 2025, 7.3 in Cartesian coordinates; with viscosity, either mass may be zero."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from livens import math as m
from livens.errors import InputError
from livens.models.problem import Problem
from livens.models.system import System
from livens.problems import problem
from livens.problems.reference_solution import Reference, reference_motion, reference_ode_solution
from livens.scene import shapes
from livens.types import ScalarLike, Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


#: Smallest ratio of the masses for the explicit reference solution; smaller ratios are too stiff.
_MIN_MASS_RATIO = 1e-3


def _rods(q: Vector, k: ParameterNamespace) -> list[ScalarLike]:
    first_rod, second_rod = q[:2], q[2:] - q[:2]
    return [0.5 * (m.dot(first_rod, first_rod) - k.l1**2), 0.5 * (m.dot(second_rod, second_rod) - k.l2**2)]


def _visual(q: Vector) -> list[shapes.Shape]:
    first_mass, second_mass = q[:2], q[2:]
    return [
        shapes.ground([0, 0]),
        shapes.rod([0, 0], first_mass),
        shapes.rod(first_mass, second_mass),
        shapes.sphere(first_mass, name="first"),
        shapes.sphere(second_mass, name="second"),
    ]


def _massless_end_reference(mass: float, l1: float, l2: float, g: float, u1: float, kappa: float) -> Reference:
    """Return the reference motion for ``m2 = 0`` in the angles of the rods.

    The tension of the second rod balances the viscous force, so its end moves along the rod: ``v2 = (v1.e2) e2``.
    """

    def rods(y: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the directions of both rods and the velocities of both ends."""
        across = np.array([-np.sin(y[0]), np.cos(y[0])])
        e1, e2, v1 = np.array([across[1], -across[0]]), np.array([np.cos(y[1]), np.sin(y[1])]), l1 * y[2] * across
        return e1, e2, v1, (v1 @ e2) * e2

    def rate(_: float, y: np.ndarray) -> np.ndarray:
        e1, e2, v1, v2 = rods(y)
        across = np.array([-e1[1], e1[0]])
        rod_rate = (v2 - v1) @ [-e2[1], e2[0]] / l2
        return np.array([y[2], rod_rate, -(mass * g * e1[0] + kappa * (v1 + v2) @ across) / (mass * l1)])

    state = reference_ode_solution(rate, np.array([0.0, 0.0, u1 / l1]))

    def reference(t: float) -> dict[str, np.ndarray]:
        y = state(t)
        e1, e2, v1, v2 = rods(y)
        second_tension = -kappa * (v2 @ e2)  # tension
        first_tension = mass * (l1 * y[2] ** 2 - g * e1[1]) + second_tension * (e1 @ e2)
        return {
            "q": np.concatenate([l1 * e1, l1 * e1 + l2 * e2]),
            "v": np.concatenate([v1, v2]),
            "multipliers": np.array([first_tension / l1, second_tension / l2]),
        }

    return reference


@problem(
    "double-pendulum",
    summary="two point masses on rigid rods, in Cartesian coordinates: 4 coordinates, 2 constraints",
    source="Symank 2025, 7.3",
    source_run="J-PRK, M-PRK and M-PRK-GGL, h = 0.01 s, until t = 240 s",
    scheme="livens-em",
)
def double_pendulum(
    m1: float = 3.0,
    m2: float = 1.0,
    l1: float = 1.0,
    l2: float = 1.0,
    g: float = 9.81,
    u1: float = 0.0,
    kappa: float = 0.0,
) -> Problem:
    """Build the problem with horizontal rods; `kappa` is the viscosity of the surrounding medium.

    `u1` is the initial speed of the first mass, upwards and normal to its rod.

    A zero mass requires viscosity. With ``m2 = 0`` the second end moves along its rod; with ``m1 = 0`` the first end is
    at rest while the rods are aligned. A massless end starts at rest.
    """
    if min(m1, m2, kappa) < 0 or max(m1, m2) == 0:
        raise InputError("masses and viscosity must not be negative, and one mass must be greater than 0")
    if min(m1, m2) == 0 and kappa == 0:
        raise InputError("a mass of zero needs viscosity (its motion is undetermined otherwise): set kappa > 0")
    if m1 == 0 and u1 != 0:
        raise InputError("with m1 = 0 the viscosity holds the first end at rest while the rods are aligned: set u1 = 0")
    system = System(
        "x1 y1 x2 y2",
        kinetic=lambda v, k: 0.5 * k.m1 * (v[:2] @ v[:2]) + 0.5 * k.m2 * (v[2:] @ v[2:]),
        potential=lambda q, k: k.g * (k.m1 * q[1] + k.m2 * q[3]),
        constraints=_rods,
        dissipation=(lambda v, k: 0.5 * k.kappa * (v @ v)) if kappa else None,
        constraint_names=["length of the first rod", "length of the second rod"],
        parameters=dict(m1=m1, m2=m2, l1=l1, l2=l2, g=g, kappa=kappa),
        visual=_visual,
    )
    q0, v0 = np.array([l1, 0.0, l1 + l2, 0.0]), np.array([0.0, u1, 0.0, 0.0])
    reference = None
    if min(m1, m2) >= _MIN_MASS_RATIO * max(m1, m2):
        reference = reference_motion(system, q0, v0)
    elif m2 == 0:
        reference = _massless_end_reference(m1, l1, l2, g, u1, kappa)
    return Problem("double-pendulum", system, q0, v0, "livens-em", 0.01, 240.0, reference=reference)
