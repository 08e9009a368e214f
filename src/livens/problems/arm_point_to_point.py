"""Point-to-point motion of a six-axis arm in the angles of its joints."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from livens import math as m
from livens.models.problem import Problem
from livens.models.system import System
from livens.problems import problem
from livens.problems.six_axis_arm import _LINKS
from livens.scene import shapes
from livens.types import Vector

#: Angles of the end (rad), torque bounds (N m), and radius of the links (m).
_TARGET = np.array([1.0, 0.8, -1.2, 0.6, 0.9, -0.5])
_TORQUES = np.array([60.0, 200.0, 120.0, 15.0, 10.0, 2.0])
_RADIUS = 0.05


def _cross(a: list[Any], b: list[Any]) -> list[Any]:
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def _chain(q: Any, v: Any) -> tuple[Any, Any, list[list[Any]]]:
    """Return kinetic and potential energy and the ends of the links, by forward recursion along the chain."""
    R: list[list[Any]] = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    omega: list[Any] = [0.0] * 3
    end: list[Any] = [0.0] * 3
    end_velocity: list[Any] = [0.0] * 3
    T: Any = 0.0
    V: Any = 0.0
    points = [end]
    for i, (axis, length, mass) in enumerate(_LINKS):
        c, s = m.cos(q[i]), m.sin(q[i])
        turn = [[c, -s, 0], [s, c, 0], [0, 0, 1]] if axis == "z" else [[c, 0, s], [0, 1, 0], [-s, 0, c]]
        column = 2 if axis == "z" else 1
        omega = [omega[a] + R[a][column] * v[i] for a in range(3)]
        R = [[sum(R[a][j] * turn[j][b] for j in range(3)) for b in range(3)] for a in range(3)]
        half = [length / 2 * R[a][2] for a in range(3)]
        half_velocity = _cross(omega, half)
        centre_velocity = [x + y for x, y in zip(end_velocity, half_velocity, strict=True)]
        local = [sum(R[a][b] * omega[a] for a in range(3)) for b in range(3)]
        inertia = [mass * (3 * _RADIUS**2 + length**2) / 12] * 2 + [mass * _RADIUS**2 / 2]
        T = T + mass / 2 * sum(x * x for x in centre_velocity)
        T = T + sum(inertia[b] / 2 * local[b] ** 2 for b in range(3))
        V = V + mass * 9.81 * (end[2] + half[2])
        end_velocity = [x + 2 * y for x, y in zip(end_velocity, half_velocity, strict=True)]
        end = [x + 2 * y for x, y in zip(end, half, strict=True)]
        points.append(end)
    return T, V, points


def _visual(q: Vector) -> list[shapes.Shape]:
    points = _chain(q, [0.0] * len(_LINKS))[2]
    links = [shapes.rod(a, b, name=f"link {i + 1}") for i, (a, b) in enumerate(itertools.pairwise(points))]
    return [*links, shapes.sphere(points[-1], radius=0.04, name="hand")]


@problem(
    "arm-point-to-point",
    summary="optimal control: point-to-point motion of a six-axis arm in joint angles, with the least weighted effort",
    source="livens",
    scheme="livens-variational",
)
def arm_point_to_point(duration: float = 1.0) -> Problem:
    """Build the problem; `duration` is the time of the motion (s).

    Without control, the default run starts slightly bent, and the arm falls.
    """
    n = len(_LINKS)
    model = System(
        " ".join(f"joint{i + 1}" for i in range(n)),
        kinetic=lambda q, v: _chain(q, v)[0],
        potential=lambda q: _chain(q, [0.0] * n)[1],
        forces=lambda k: [k.u[i] for i in range(n)],
        parameters=dict(u=np.zeros(n)),
        visual=_visual,
    )
    control = dict(
        inputs={"u": (-_TORQUES, _TORQUES)},
        t_end=duration,
        steps=20,
        start=dict(q0=np.zeros(n), v0=np.zeros(n)),
        end=dict(q=_TARGET, v=np.zeros(n)),
        minimise=lambda u: sum((u[i] / _TORQUES[i]) ** 2 for i in range(n)),
        guess=dict(q=[_TARGET * (3 * s * s - 2 * s**3) for s in np.linspace(0, 1, 41)]),
    )
    q0 = np.full(n, 0.2)
    return Problem("arm-point-to-point", model, q0, np.zeros(n), "livens-variational", 1e-3, duration, control=control)
