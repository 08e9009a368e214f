"""Hopping gait of a one-legged robot on elastic ground."""

from __future__ import annotations

from typing import Any

import numpy as np

from livens import math as m
from livens.expressions.parameters import ParameterNamespace
from livens.models.problem import Problem
from livens.models.system import System
from livens.problems import problem
from livens.scene import shapes
from livens.types import ScalarLike, Vector

#: Bounds of the torque of the hip (N m) and of the force of the leg (N).
_BOUNDS = np.array([40.0, 400.0])


def _foot(q: Vector) -> list[Any]:
    """Return the position of the foot."""
    return [q[0] + q[4] * m.sin(q[3]), q[1] - q[4] * m.cos(q[3])]


def _foot_velocity(q: Vector, v: Vector) -> list[Any]:
    c, s = m.cos(q[3]), m.sin(q[3])
    return [v[0] + v[4] * s + q[4] * v[3] * c, v[1] - v[4] * c + q[4] * v[3] * s]


def _kinetic(q: Vector, v: Vector, k: ParameterNamespace) -> ScalarLike:
    foot = _foot_velocity(q, v)
    trunk = k.M * (v[0] ** 2 + v[1] ** 2) / 2 + k.J * v[2] ** 2 / 2
    return trunk + k.m * (foot[0] ** 2 + foot[1] ** 2) / 2 + k.I * v[3] ** 2 / 2


def _ground_force(q: Vector, v: Vector, k: ParameterNamespace) -> list[Any]:
    """Return friction and normal force on the foot: smooth functions of penetration and sliding velocity."""
    height, (slip, rate) = _foot(q)[1], _foot_velocity(q, v)
    penetration = (m.sqrt(height**2 + 4 * k.smoothing**2) - height) / 2
    normal = k.stiffness * penetration * (1 - k.ground_damping * rate)
    return [-k.friction * normal * slip / m.sqrt(slip**2 + k.slip**2), normal]


def _forces(q: Vector, v: Vector, k: ParameterNamespace) -> list[Any]:
    (x, z), c, s = _ground_force(q, v, k), m.cos(q[3]), m.sin(q[3])
    leg = k.u[1] - k.spring * (q[4] - k.rest_length) - k.leg_damping * v[4]
    return [x, z, -k.u[0], q[4] * (x * c + z * s) + k.u[0], x * s - z * c + leg]


def _visual(q: Vector) -> list[shapes.Shape]:
    hip, foot = [q[0], q[1]], _foot(q)
    nose = [q[0] + 0.2 * m.cos(q[2]), q[1] + 0.2 * m.sin(q[2])]
    tail = [q[0] - 0.2 * m.cos(q[2]), q[1] - 0.2 * m.sin(q[2])]
    ground = shapes.rod([-0.6, 0.0], [1.4, 0.0], name="ground")
    return [
        ground,
        shapes.rod(tail, nose, name="trunk"),
        shapes.rod(hip, foot, name="leg"),
        shapes.sphere(foot, name="foot"),
    ]


@problem(
    "hopper-gait",
    summary="optimal control: periodic gait of a one-legged hopper with contact and friction, with the least effort",
    source="livens",
    scheme="livens-variational",
)
def hopper_gait(stride: float = 0.5) -> Problem:
    """Build the problem; `stride` is the length of a hop (m).

    The trunk, a leg with spring and damper, and the foot move in a plane. Without control, the default run starts in
    flight, and the hopper falls over after some hops.
    """
    model = System(
        "x z pitch leg length",
        kinetic=_kinetic,
        potential=lambda q, k: k.g * (k.M * q[1] + k.m * _foot(q)[1]),
        forces=_forces,
        parameters=dict(
            M=5.0, J=0.2, m=0.5, I=0.02, g=9.81, spring=800.0, rest_length=0.6, leg_damping=15.0, stiffness=2e4,
            ground_damping=0.5, smoothing=3e-3, friction=0.8, slip=0.05, u=np.zeros(2),
        ),
        visual=_visual,
    )  # fmt: skip
    s, period = np.linspace(0, 1, 81), 0.75
    height, leg = 0.6 + 0.24 * np.cos(2 * np.pi * s), 0.17 * np.sin(2 * np.pi * s)
    path = np.column_stack([stride * s, height, 0 * s, leg, np.minimum(0.6, (height + 0.008) / np.cos(leg))])
    control = dict(
        inputs={"u": (-_BOUNDS, _BOUNDS)},
        t_end=(0.5, 0.9),
        steps=60,
        periodic=lambda q, v: ([q[0] + stride, q[1], q[2], q[3], q[4]], v),
        start={"x": 0.0, "z": (0.65, 1.2), "foot": (lambda q: _foot(q)[1], 0.05, None)},
        along={
            "foot": (lambda q: _foot(q)[1], -0.02, None),
            "z": (0.3, 1.3),
            "pitch": (-0.5, 0.5),
            "leg": (-0.8, 0.8),
            "length": (0.3, 0.75),
        },
        minimise=lambda u: (u[0] / _BOUNDS[0]) ** 2 + (u[1] / _BOUNDS[1]) ** 2,
        guess=dict(q=path, v=np.gradient(path, period * s, axis=0), t_end=period),
    )
    q0, v0 = np.array([0.0, 0.8, 0.0, 0.0, 0.6]), np.zeros(5)
    return Problem("hopper-gait", model, q0, v0, "livens-variational", 1e-3, 1.0, control=control)
