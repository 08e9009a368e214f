"""Swing-up of a cart-pole and of an acrobot: optimal control problems of underactuated systems."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from livens import math as m
from livens.models.problem import Problem
from livens.models.system import System
from livens.problems import problem
from livens.scene import shapes
from livens.types import Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


def _cart_visual(q: Vector, k: ParameterNamespace) -> list[shapes.Shape]:
    cart, tip = [q[0], 0.0], [q[0] + k.l * m.sin(q[1]), -k.l * m.cos(q[1])]
    return [
        shapes.path([[-2.0, 0.0], [2.0, 0.0]], name="rail"),
        shapes.box(cart, [0.3, 0.15], name="cart"),
        shapes.rod(cart, tip),
        shapes.sphere(tip, name="end of the pole"),
    ]


@problem(
    "cart-pole-swing-up",
    summary="optimal control: swing-up of a pole by the force on its cart, with the least effort",
    source="M. Kelly, SIAM Review 59 (2017), sect. 6",
    scheme="livens-variational",
)
def cart_pole_swing_up(bound: float = 20.0, duration: float = 2.0, distance: float = 1.0) -> Problem:
    """Build the problem; `bound` is the largest force (N), the cart ends at `distance` (m) after `duration` (s).

    Without control, the default run starts with a raised pole.
    """
    model = System(
        "x th",
        kinetic=lambda q, v, k: (
            (k.M + k.m) * v[0] ** 2 / 2 + k.m * k.l * v[0] * v[1] * m.cos(q[1]) + k.m * (k.l * v[1]) ** 2 / 2
        ),
        potential=lambda q, k: -k.m * k.g * k.l * m.cos(q[1]),
        forces=lambda k: [k.u, 0],
        parameters=dict(M=1.0, m=0.3, l=0.5, g=9.81, u=0.0),
        visual=_cart_visual,
    )
    control = dict(
        inputs={"u": (-bound, bound)},
        t_end=duration,
        steps=40,
        start=dict(q0=[0.0, 0.0], v0=[0.0, 0.0]),
        end=dict(q=[distance, np.pi], v=[0.0, 0.0]),
        along={"x": (-2.0, 2.0)},
    )
    q0 = np.array([0.0, 2.5])
    return Problem("cart-pole-swing-up", model, q0, np.zeros(2), "livens-variational", 0.01, duration, control=control)


def _acrobot_visual(q: Vector, k: ParameterNamespace) -> list[shapes.Shape]:
    elbow = [k.l1 * m.sin(q[0]), -k.l1 * m.cos(q[0])]
    tip = [elbow[0] + k.l2 * m.sin(q[1]), elbow[1] - k.l2 * m.cos(q[1])]
    return [
        shapes.rod([0.0, 0.0], elbow, name="upper rod"),
        shapes.rod(elbow, tip, name="lower rod"),
        shapes.sphere(elbow, name="elbow"),
        shapes.sphere(tip, name="tip"),
    ]


@problem(
    "acrobot-swing-up",
    summary="optimal control: swing-up of a double pendulum by the torque in its elbow, with the least effort",
    source="M. W. Spong, IEEE Control Systems 15 (1995)",
    scheme="livens-variational",
)
def acrobot_swing_up(bound: float = 12.0, duration: float = 3.0) -> Problem:
    """Build the problem in absolute angles; `bound` is the largest torque (N m), `duration` the time (s).

    Without control, the default run starts with raised rods.
    """
    model = System(
        "a b",
        kinetic=lambda q, v, k: (
            (k.m1 + k.m2) * (k.l1 * v[0]) ** 2 / 2
            + k.m2 * (k.l2 * v[1]) ** 2 / 2
            + k.m2 * k.l1 * k.l2 * v[0] * v[1] * m.cos(q[0] - q[1])
        ),
        potential=lambda q, k: -k.g * ((k.m1 + k.m2) * k.l1 * m.cos(q[0]) + k.m2 * k.l2 * m.cos(q[1])),
        forces=lambda k: [-k.u, k.u],
        parameters=dict(m1=1.0, m2=1.0, l1=0.5, l2=0.5, g=9.81, u=0.0),
        visual=_acrobot_visual,
    )
    control = dict(
        inputs={"u": (-bound, bound)},
        t_end=duration,
        steps=80,
        start=dict(q0=[0.0, 0.0], v0=[0.0, 0.0]),
        end=dict(q=[np.pi, np.pi], v=[0.0, 0.0]),
    )
    q0 = np.array([1.5, 1.0])
    return Problem("acrobot-swing-up", model, q0, np.zeros(2), "livens-variational", 0.01, duration, control=control)
