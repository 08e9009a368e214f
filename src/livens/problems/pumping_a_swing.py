"""Pumping of a swing: periodic motion of largest amplitude by changes of its length."""

from __future__ import annotations

from typing import Any

import numpy as np

from livens import math as m
from livens.models.problem import Problem
from livens.models.system import System
from livens.problems import problem
from livens.scene import shapes
from livens.types import Vector


def _mirrored(q: Vector, v: Vector) -> tuple[list[Any], list[Any]]:
    """Return the mirror image: half a period later the motion is the same on the other side."""
    return [-q[0], q[1]], [-v[0], v[1]]


def _visual(q: Vector) -> list[shapes.Shape]:
    mass_point = [q[1] * m.sin(q[0]), -q[1] * m.cos(q[0])]
    return [shapes.rod([0.0, 0.0], mass_point, name="rope"), shapes.sphere(mass_point, name="seat")]


@problem(
    "pumping-a-swing",
    summary="optimal control: periodic motion of largest amplitude of a damped swing that is pumped",
    source="livens",
    scheme="livens-variational",
)
def pumping_a_swing(damping: float = 0.03) -> Problem:
    """Build the problem; `damping` is the viscous damping of the mass (kg/s)."""
    model = System(
        "th l",
        kinetic=lambda q, v, k: 0.5 * k.m * (v[1] ** 2 + q[1] ** 2 * v[0] ** 2),
        potential=lambda q, k: -k.m * k.g * q[1] * m.cos(q[0]),
        dissipation=lambda q, v, k: 0.5 * k.d * (v[1] ** 2 + q[1] ** 2 * v[0] ** 2),
        forces=lambda k: [0, k.u],
        parameters=dict(m=1.0, g=9.81, d=damping, u=0.0),
        visual=_visual,
    )
    s = np.linspace(0, 1, 61)
    control = dict(
        inputs={"u": (-30.0, 0.0)},
        t_end=(0.7, 1.6),
        steps=40,
        periodic=_mirrored,
        along={"l": (0.9, 1.1)},
        minimise=None,
        final=lambda q: q[0],
        guess=dict(q=np.column_stack([0.6 * np.cos(np.pi * s), np.ones_like(s)]), u=np.full(10, -9.81), t_end=1.05),
    )
    q0, v0 = np.array([0.6, 1.0]), np.zeros(2)
    return Problem("pumping-a-swing", model, q0, v0, "livens-variational", 1e-3, 1.0, control=control)
