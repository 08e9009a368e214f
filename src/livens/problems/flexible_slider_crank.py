"""Slider-crank mechanism with a flexible connecting rod (Simeon 1996; IVP test set, Bari)."""

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


#: Data of the test set in kg and m, with its value of pi.
_ROD, _SLIDER = 0.151104, 0.075552
_L1, _L2 = 0.15, 0.30
_CRANK_INERTIA, _ROD_INERTIA = 0.002727, 0.0045339259
_E, _SIDE, _DENSITY = 2e11, 0.008, 7870.0
_PI = 3.1415927
#: Initial deflections and their rates of the test set, chosen for a motion without fast vibrations.
_DEFLECTION = (0.0, 0.0, 1.03339863e-5, 1.69327969e-5)
_RATE = (0.444896105, 0.00463434311, -1.78591076e-6, -2.68938672e-6)


_VOLUME = _SIDE**2 * _L2


def _matrix(*entries: tuple[int, int, float]) -> np.ndarray:
    matrix = np.zeros((4, 4))
    for i, j, value in entries:
        matrix[i, j] = value
    return matrix


#: Mass, stiffness and coupling matrices of the rod: two sine modes for bending, a quadratic element for extension.
#: The axial mass has the entries 8, 1, 2 without the factor 1/15 of a finite element, as in the test set.
_MASS = _DENSITY * _VOLUME * _matrix((0, 0, 0.5), (1, 1, 0.5), (2, 2, 8), (2, 3, 1), (3, 2, 1), (3, 3, 2))
_BENDING = _E * _SIDE**4 / 24 * _PI**4 / _L2**3
_STRETCH = _E * _SIDE**2 / (3 * _L2)
_STIFFNESS = _BENDING * _matrix((0, 0, 1), (1, 1, 16)) + _STRETCH * _matrix(
    (2, 2, 16), (2, 3, -8), (3, 2, -8), (3, 3, 7)
)
_UPPER = _VOLUME * _matrix((0, 2, -16 / _PI**3), (0, 3, 8 / _PI**3 - 1 / _PI), (1, 3, 0.5 / _PI))
_COUPLING = _UPPER - _UPPER.T
_C1, _C2 = _VOLUME * np.array([0, 0, 2 / 3, 1 / 6]), _VOLUME * np.array([2 / _PI, 0, 0, 0])
_C12, _C21 = _VOLUME * _L2 * np.array([0, 0, 1 / 3, 1 / 6]), _VOLUME * _L2 * np.array([1, -0.5, 0, 0]) / _PI


def _kinetic(q: Vector, v: Vector) -> ScalarLike:
    """Return the kinetic energy; the rod is described in a floating frame through its joints."""
    d, rate = q[3:], v[3:]
    angle_difference = q[0] - q[1]
    sine, cosine = m.sin(angle_difference), m.cos(angle_difference)
    crank = _CRANK_INERTIA + _ROD * _L1**2
    crank_rod_inertia = _L1 * _L2 * _ROD / 2 * cosine + _DENSITY * _L1 * (sine * (_C2 @ d) + cosine * (_C1 @ d))
    rod = _ROD_INERTIA + d @ _MASS @ d + 2 * _DENSITY * (_C12 @ d)
    with_crank = _DENSITY * _L1 * ((cosine * _C2 - sine * _C1) @ rate)
    with_rod = _DENSITY * (_C21 @ rate + d @ _COUPLING @ rate)
    energy = 0.5 * (crank * v[0] ** 2 + rod * v[1] ** 2 + _SLIDER * v[2] ** 2 + rate @ _MASS @ rate)
    return energy + crank_rod_inertia * v[0] * v[1] + with_crank * v[0] + with_rod * v[1]


def _joints(q: Vector, t: ScalarLike, k: ParameterNamespace) -> list[ScalarLike]:
    length = _L2 + q[6]
    return [
        _L1 * m.sin(q[0]) + length * m.sin(q[1]),
        q[2] - _L1 * m.cos(q[0]) - length * m.cos(q[1]),
        q[0] - k.omega * t,
    ]


def _visual(q: Vector) -> list[shapes.Shape]:
    """Return the mechanism with the bending deflection magnified 50 times."""
    joint = m.array([_L1 * m.cos(q[0]), _L1 * m.sin(q[0])])
    along, across = m.array([m.cos(q[1]), m.sin(q[1])]), m.array([-m.sin(q[1]), m.cos(q[1])])
    line = []
    for s in np.linspace(0.0, 1.0, 13):
        deflection = 50 * (np.sin(np.pi * s) * q[3] + np.sin(2 * np.pi * s) * q[4])
        line.append(joint + s * (_L2 + q[6]) * along + deflection * across)
    return [
        shapes.ground([0.0, 0.0]),
        shapes.rod([0.0, 0.0], joint, 0.012, name="crank"),
        shapes.cable(line, name="connecting rod"),
        shapes.box([q[2], 0.0], [0.05, 0.03], name="slider"),
    ]


@problem(
    "flexible-slider-crank",
    summary="slider-crank with a flexible rod at constant crank speed: stiff, time-dependent constraints",
    source="Simeon 1996; IVP test set (Bari)",
    scheme="livens-em",
)
def flexible_slider_crank(omega: float = 150.0) -> Problem:
    """Build the problem: angles of crank and rod, position of the slider, four deflection coordinates.

    The crank rotates with `omega` (rad/s). The initial values of the test set hold for 150 rad/s, where they avoid fast
    vibrations.
    """
    system = System(
        "phi1 phi2 x3 q1 q2 q3 q4",
        kinetic=_kinetic,
        potential=lambda q: 0.5 * (q[3:] @ _STIFFNESS @ q[3:]),
        constraints=_joints,
        constraint_names=["slider: y", "slider: x", "speed of the crank"],
        parameters=dict(omega=omega),
        visual=_visual,
    )
    length = _L2 + _DEFLECTION[3]
    q0 = np.array([0.0, 0.0, _L1 + length, *_DEFLECTION])
    v0 = np.array([omega, -_L1 * omega / length, _RATE[3], *_RATE])
    reference = reference_motion(system, q0, v0)
    return Problem("flexible-slider-crank", system, q0, v0, "livens-em", 5e-5, 0.1, reference=reference)
