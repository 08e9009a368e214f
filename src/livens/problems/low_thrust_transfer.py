"""Low-thrust transfer from a circular orbit to the largest circular orbit in a given time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from livens import math as m
from livens.models.problem import Problem
from livens.models.system import System
from livens.problems import problem
from livens.scene import shapes
from livens.types import Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


def _forces(q: Vector, t: object, k: ParameterNamespace) -> list[Any]:
    """Return the thrust on the decreasing mass, at the angle phi from the tangential direction."""
    acceleration, r = k.thrust / (1 - k.flow * t), m.norm(q)
    tangential, radial = m.cos(k.phi), m.sin(k.phi)
    return [
        acceleration * (radial * q[0] - tangential * q[1]) / r,
        acceleration * (radial * q[1] + tangential * q[0]) / r,
    ]


def _visual(q: Vector) -> list[shapes.Shape]:
    return [shapes.sphere([0.0, 0.0], radius=0.1, name="sun"), shapes.sphere([q[0], q[1]], radius=0.04, name="vessel")]


@problem(
    "low-thrust-transfer",
    summary="optimal control: largest circular orbit that a low thrust reaches in a given time (Earth to Mars)",
    source="A. E. Bryson, Y.-C. Ho, Applied Optimal Control (1975), sect. 2.5",
    scheme="gauss-3",
)
def low_thrust_transfer(duration: float = 3.32) -> Problem:
    """Build the problem in units of the initial orbit; `duration` is the time of the transfer."""
    model = System(
        "x y",
        kinetic=lambda v: v @ v / 2,
        potential=lambda q: -1 / m.norm(q),
        forces=_forces,
        parameters=dict(thrust=0.1405, flow=0.07487, phi=0.0),
        visual=_visual,
    )
    s = np.linspace(0, 1, 201)
    r, angle = 1 + 0.5 * s, 2.4 * s
    control = dict(
        inputs={"phi": (-4.0, 8.0)},
        t_end=duration,
        steps=20,
        scheme="gauss-3",
        minimise=None,
        end={
            "radial velocity": (lambda q, v: q @ v, 0, 0),
            "circular velocity": (lambda q, v: v @ v * m.norm(q) - 1, 0, 0),
        },
        final=lambda q: -m.norm(q),
        guess=dict(q=np.column_stack([r * np.cos(angle), r * np.sin(angle)]), u=np.linspace(0.5, 5.5, 20)),
    )
    q0, v0 = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    return Problem("low-thrust-transfer", model, q0, v0, "gauss-3", 0.01, duration, control=control)
