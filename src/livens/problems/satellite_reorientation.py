"""Time-optimal reorientation of a satellite by three reaction wheels with bias momentum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from livens.models.problem import Problem
from livens.models.system import System
from livens.problems import problem
from livens.scene import shapes
from livens.types import ScalarLike, Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


#: Moment of inertia of a wheel about its axis (kg m^2).
_WHEEL_INERTIA = 1.0
#: Initial momenta of the wheels (N m s).
_BIAS = np.array([1.5, -1.0, 0.8])


def _omega(q: Vector, v: Vector) -> list[Any]:
    """Return the angular velocity in the body frame from a unit quaternion and its rate."""
    return [
        2 * (q[0] * v[1] - q[1] * v[0] - q[2] * v[3] + q[3] * v[2]),
        2 * (q[0] * v[2] - q[2] * v[0] - q[3] * v[1] + q[1] * v[3]),
        2 * (q[0] * v[3] - q[3] * v[0] - q[1] * v[2] + q[2] * v[1]),
    ]


def _kinetic(q: Vector, v: Vector, k: ParameterNamespace) -> ScalarLike:
    w = _omega(q, v)
    return sum(0.5 * k.J[i] * w[i] ** 2 + 0.5 * k.I * (w[i] + v[4 + i]) ** 2 for i in range(3))


def _rotations(q: Vector) -> list[list[Any]]:
    """Return the generators of rotations in space, which multiply the quaternion from the left."""
    rows = []
    for i in range(3):
        e = [0.5 * (j == i) for j in range(3)]
        vector = [
            e[0] * q[0] + e[1] * q[3] - e[2] * q[2],
            e[1] * q[0] + e[2] * q[1] - e[0] * q[3],
            e[2] * q[0] + e[0] * q[2] - e[1] * q[1],
        ]
        rows.append([-e[0] * q[1] - e[1] * q[2] - e[2] * q[3], *vector, 0, 0, 0])
    return rows


def _visual(q: Vector) -> list[shapes.Shape]:
    w, x, y, z = q[0], q[1], q[2], q[3]
    axes = [
        [1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)],
        [2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)],
        [2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)],
    ]
    rods = [shapes.rod([-0.6 * a for a in axis], axis, name=f"axis {n}") for n, axis in zip("xyz", axes, strict=True)]
    return [*rods, shapes.sphere(axes[0], radius=0.08, name="antenna")]


@problem(
    "satellite-reorientation",
    summary="optimal control: rest-to-rest rotation of a satellite by three reaction wheels in the shortest time",
    source="livens",
    scheme="livens-variational",
)
def satellite_reorientation(torque: float = 1.0, angle: float = 2.4) -> Problem:
    """Build the problem; `torque` is the bound of every wheel (N m), `angle` the rotation about (1, 2, 3) (rad).

    Without control, the default run starts with a tumbling hull.
    """
    hull = np.array([4.0, 5.0, 6.5])
    across = 10.0 * (3 * 2 * _WHEEL_INERTIA / 10.0 + 0.02**2) / 12  # of a wheel of 10 kg and 2 cm about a diameter
    axis = np.array([1.0, 2.0, 3.0]) / np.sqrt(14.0)
    target = np.concatenate([[np.cos(angle / 2)], np.sin(angle / 2) * axis])

    def rotation_error(q: Vector) -> list[Any]:
        """Return the vector part of ``target^-1 q``."""
        p = target
        return [
            p[0] * q[1] - q[0] * p[1] - (p[2] * q[3] - p[3] * q[2]),
            p[0] * q[2] - q[0] * p[2] - (p[3] * q[1] - p[1] * q[3]),
            p[0] * q[3] - q[0] * p[3] - (p[1] * q[2] - p[2] * q[1]),
        ]

    model = System(
        "e0 e1 e2 e3 x y z",
        kinetic=_kinetic,
        constraints=lambda q: [(q[0] ** 2 + q[1] ** 2 + q[2] ** 2 + q[3] ** 2 - 1) / 2],
        forces=lambda k: [0, 0, 0, 0, k.u[0], k.u[1], k.u[2]],
        parameters=dict(J=hull + 2 * across, I=_WHEEL_INERTIA, u=np.zeros(3)),
        symmetries=dict(angular_momentum=_rotations),
        visual=_visual,
    )
    q0 = np.array([1.0, 0, 0, 0, 0, 0, 0])
    v0 = np.concatenate([np.zeros(4), _BIAS / _WHEEL_INERTIA])
    tumbling = np.array([0.0, 0.1, 0.15, 0.05, 0.0, 0.0, 0.0])  # half the angular velocity of the hull
    path = [
        np.concatenate([[np.cos(s * angle / 2)], np.sin(s * angle / 2) * axis, np.zeros(3)])
        for s in np.linspace(0, 1, 101)
    ]
    control = dict(
        inputs={"u": (-torque, torque)},
        t_end=(3.0, 20.0),
        steps=20,
        minimise="time",
        start=dict(q0=q0, v0=v0),
        end={"rotation": (rotation_error, 0, 0), "angular velocity": (_omega, 0, 0)},
        guess=dict(q=path, t_end=8.0),
    )
    return Problem(
        "satellite-reorientation", model, q0, v0 + tumbling, "livens-variational", 0.01, 8.0, control=control
    )
