"""Base class of constraints between two bodies with reaction outputs: joints, rolling, points on curves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from livens.models.element import Element
from livens.multibody.body import Body
from livens.multibody.joint_types import JointType

if TYPE_CHECKING:
    from livens.multibody.armature import JointArmature


class BodyConstraint:
    """Constraint between two bodies; reaction forces and torques act on the second body.

    Torques are about the body-fixed point ``parameters["Y"]`` of the second body.
    """

    element: Element
    #: Reflected rotor inertia of a joint, see `livens.Multibody.armature`.
    armature: JointArmature | None = None

    def __init__(self, name: str, type_name: str, joint_type: JointType, body_a: Body, body_b: Body) -> None:
        self.name, self.type_name, self.joint_type, self.body_a, self.body_b = (
            name,
            type_name,
            joint_type,
            body_a,
            body_b,
        )
        self.a, self.b = body_a.parametrisation, body_b.parametrisation
        self.coordinates = [*body_a.coordinates, *body_b.coordinates]
        self.parameters: dict[str, Any] = dict(X=np.zeros(body_a.dimension), Y=np.zeros(body_a.dimension))

    def __repr__(self) -> str:
        return f"<{self.type_name} {self.name}: {self.body_a.name}-{self.body_b.name}>"


def snap_to_axes(values: np.ndarray) -> np.ndarray:
    """Snap entries within 1e-15 of 0 and +-1 to these values."""
    size = max(1.0, float(np.abs(values).max(initial=0.0)))
    snapped = np.where(np.abs(values) < 1e-15 * size, 0.0, values)
    return np.where(np.abs(np.abs(snapped) - 1.0) < 1e-15, np.sign(snapped), snapped)
