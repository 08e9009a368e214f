"""Nonholonomic rolling without slip on a fixed plane (ball, thin disc), and knife-edge constraints.

With the normal n of the plane, the height z of the centre above it and the axis e of a thin disc of radius r, the disc
touches the plane if ``z^2 = r^2 (1 - (n.e)^2)``. The contact point is at ``r^2/z ((n.e) e - n)`` from its centre; its
tangential velocity is zero. The first condition is quadratic in directors, the second is a velocity constraint.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from livens import math as m
from livens.expressions.read import ModelFunction
from livens.models.element import Element
from livens.multibody.actuators import angular_velocity
from livens.multibody.connection import Connection, clean
from livens.multibody.joint_table import Kind
from livens.multibody.parts import Part, axes_about
from livens.multibody.placement import Placement

_ROLLING = Kind((), axis=False)


@functools.cache
def _height(b: Placement, thin: bool) -> ModelFunction:
    """Return the touching constraint of a disc or a ball on the plane."""

    def constraints(q: Any, k: Any) -> Any:
        z = m.dot(k.plane[2], q[:3] - k.origin)
        if not thin:
            return [z - k.radius]
        tilt = m.dot(k.plane[2], b.vector(q, k.axle))
        return [(z**2 / k.radius + k.radius * (tilt**2 - 1)) / 2]

    return constraints


def contact_arm(b: Placement, q: Any, k: Any, thin: bool) -> Any:
    """Return the vector from the centre to the contact point."""
    n = k.plane[2]
    if not thin:
        return -k.radius * n
    axle = b.vector(q, k.axle)
    return k.radius**2 / m.dot(n, q[:3] - k.origin) * (m.dot(n, axle) * axle - n)


@functools.cache
def _no_slip(b: Placement, thin: bool) -> ModelFunction:
    """Return the tangential velocity components of the contact point."""

    def rates(q: Any, v: Any, k: Any) -> Any:
        slip = v[:3] + m.cross(angular_velocity(b, q, v), contact_arm(b, q, k, thin))
        return [m.dot(k.plane[0], slip), m.dot(k.plane[1], slip)]

    return rates


@functools.cache
def _blade(b: Placement) -> ModelFunction:
    def rates(q: Any, v: Any, k: Any) -> Any:
        return [m.dot(b.vector(q, k.across), b.velocity(q, v, k.Y))]

    return rates


class Rolling(Connection):
    """Ball, or thin disc about its axis, rolling without slip on a plane of the ground."""

    def __init__(
        self, name: str, first: Part, second: Part, *, radius: float, at: Any, normal: np.ndarray, axle: Any
    ) -> None:
        super().__init__(name, "rolling", _ROLLING, first, second)
        thin = axle is not None
        plane = clean(axes_about(normal).T)  # rows: two tangents of the plane and its normal
        given: dict[str, Any] = dict(radius=radius, origin=at, plane=plane)
        if thin:
            given["axle"] = clean(second.inwards(axle))
        self.element = Element(
            self.coordinates,
            constraints=_height(self.b, thin),
            velocity_constraints=_no_slip(self.b, thin),
            parameters=given,
            name=name,
            constraint_names=["touches", "slip 1", "slip 2"],
        )


class KnifeEdge(Connection):
    """Knife-edge constraint: a point of the second body has no velocity along a body-fixed direction."""

    def __init__(self, name: str, first: Part, second: Part, *, at: Any, across: np.ndarray) -> None:
        super().__init__(name, "knife edge", _ROLLING, first, second)
        lever = clean(second.lever(at))
        self.parameters["Y"] = lever
        self.element = Element(
            self.coordinates,
            velocity_constraints=_blade(self.b),
            parameters=dict(Y=lever, across=clean(second.inwards(across))),
            name=name,
            constraint_names=["across"],
        )
