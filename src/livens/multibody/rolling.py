"""Nonholonomic rolling without slip on a fixed plane (ball, thin disc), and knife-edge constraints.

With the normal n of the plane, the height z of the centre above it and the axis e of a thin disc of radius r, the disc
touches the plane if ``z^2 = r^2 (1 - (n.e)^2)``. The contact point is at ``r^2/z ((n.e) e - n)`` from its centre; its
tangential velocity is zero. The first condition is quadratic in directors, the second is a velocity constraint.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from livens import math as m
from livens.expressions.tracing import ModelFunction
from livens.models.element import Element
from livens.multibody.body import Body, frame_from_z
from livens.multibody.body_constraint import BodyConstraint, snap_to_axes
from livens.multibody.joint_forces import angular_velocity
from livens.multibody.joint_types import JointType
from livens.multibody.parametrisation import Parametrisation
from livens.types import FloatArray, ScalarLike, Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


_NO_JOINT_TYPE = JointType((), axis=False)


@functools.cache
def _touching_constraint(b: Parametrisation, is_disc: bool) -> ModelFunction:
    """Return the touching constraint of a disc or a ball on the plane."""

    def constraints(q: Vector, k: ParameterNamespace) -> Any:
        z = m.dot(k.plane[2], q[:3] - k.origin)
        if not is_disc:
            return [z - k.radius]
        tilt = m.dot(k.plane[2], b.vector(q, k.axle))
        return [(z**2 / k.radius + k.radius * (tilt**2 - 1)) / 2]

    return constraints


def contact_arm(b: Parametrisation, q: Vector, k: ParameterNamespace, is_disc: bool) -> Vector:
    """Return the vector from the centre to the contact point."""
    n = k.plane[2]
    if not is_disc:
        return -k.radius * n
    disc_axis = b.vector(q, k.axle)
    return k.radius**2 / m.dot(n, q[:3] - k.origin) * (m.dot(n, disc_axis) * disc_axis - n)


@functools.cache
def _no_slip(b: Parametrisation, is_disc: bool) -> ModelFunction:
    """Return the tangential velocity components of the contact point."""

    def rates(q: Vector, v: Vector, k: ParameterNamespace) -> list[ScalarLike]:
        slip = v[:3] + m.cross(angular_velocity(b, q, v), contact_arm(b, q, k, is_disc))
        return [m.dot(k.plane[0], slip), m.dot(k.plane[1], slip)]

    return rates


@functools.cache
def _no_lateral_velocity(b: Parametrisation) -> ModelFunction:
    def rates(q: Vector, v: Vector, k: ParameterNamespace) -> list[ScalarLike]:
        return [m.dot(b.vector(q, k.across), b.velocity(q, v, k.Y))]

    return rates


class Rolling(BodyConstraint):
    """Ball, or thin disc about its axis, rolling without slip on a plane of the ground."""

    def __init__(
        self,
        name: str,
        body_a: Body,
        body_b: Body,
        *,
        radius: float,
        at: FloatArray,
        normal: np.ndarray,
        disc_axis: Any,
    ) -> None:
        super().__init__(name, "rolling", _NO_JOINT_TYPE, body_a, body_b)
        is_disc = disc_axis is not None
        plane = snap_to_axes(frame_from_z(normal).T)  # rows: two tangents of the plane and its normal
        parameters: dict[str, Any] = dict(radius=radius, origin=at, plane=plane)
        if is_disc:
            parameters["axle"] = snap_to_axes(body_b.in_body_axes(disc_axis))
        self.element = Element(
            self.coordinates,
            constraints=_touching_constraint(self.b, is_disc),
            velocity_constraints=_no_slip(self.b, is_disc),
            parameters=parameters,
            name=name,
            constraint_names=["touches", "slip 1", "slip 2"],
        )


class KnifeEdge(BodyConstraint):
    """Knife-edge constraint: a point of the second body has no velocity along a body-fixed direction."""

    def __init__(self, name: str, body_a: Body, body_b: Body, *, at: FloatArray, lateral: np.ndarray) -> None:
        super().__init__(name, "knife edge", _NO_JOINT_TYPE, body_a, body_b)
        local_position = snap_to_axes(body_b.to_local(at))
        self.parameters["Y"] = local_position
        self.element = Element(
            self.coordinates,
            velocity_constraints=_no_lateral_velocity(self.b),
            parameters=dict(Y=local_position, across=snap_to_axes(body_b.in_body_axes(lateral))),
            name=name,
            constraint_names=["across"],
        )
