"""Armature of joints: reflected rotor inertia as a number of the joint.

The rotor has one coordinate s, the continuous angle or displacement of the joint, and the inertia of the armature. The
constraint ``joint rate - s' = 0`` holds for exact increments, so that the kinetic energy is that of the joint rate.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from livens.models.element import Element
from livens.models.velocity_constraints import AngleRateConstraint, angle_rate_constraint
from livens.multibody.couplings import displacement_rate
from livens.multibody.joint_types import angle_invariants
from livens.multibody.parametrisation import Parametrisation
from livens.multibody.wheel import spin_body
from livens.types import ModelFunction, ScalarLike, Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace
    from livens.multibody.joint import Joint


@functools.cache
def armature_constraint(a: Parametrisation, b: Parametrisation, is_angle: bool) -> AngleRateConstraint | ModelFunction:
    """Return the constraint between the rate of a joint and that of its rotor, the last coordinate."""

    def angles(q: Vector, k: ParameterNamespace) -> Any:
        return [angle_invariants(a, b, q[:-1], k.A, k.B)]

    def angular_rates(w: Vector, v: Vector) -> list[ScalarLike]:
        return [w[0] - v[-1]]

    def sliding_rates(q: Vector, v: Vector, k: ParameterNamespace) -> list[ScalarLike]:
        return [displacement_rate(a, b, q[:-1], v[:-1], k.X, k.Y, k.axis) - v[-1]]

    return angle_rate_constraint(angles, angular_rates) if is_angle else sliding_rates


class JointArmature:
    """Armature of a joint: the rotor with one coordinate, and the constraint to the joint rate."""

    def __init__(self, name: str, joint: Joint, inertia: float) -> None:
        self.name, self.driving_joint, self.inertia = name, joint, inertia
        self.is_angle = bool(joint.joint_type.angle)
        self.rotor = spin_body(f"{name} rotor", inertia)
        geometry: dict[str, Any] = {key: joint.parameters[key] for key in ("AB" if self.is_angle else "XY")}
        if not self.is_angle:
            geometry["axis"] = joint.axis
        self.element = Element(
            [*joint.coordinates, *self.rotor.coordinates],
            velocity_constraints=armature_constraint(joint.a, joint.b, self.is_angle),
            parameters=geometry,
            name=name,
            constraint_names=["armature"],
        )
        self.element.joint = self

    def __repr__(self) -> str:
        return f"<armature {self.name}: {self.driving_joint.name}>"
