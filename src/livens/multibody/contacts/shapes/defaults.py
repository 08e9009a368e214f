"""Default collision shapes of bodies and of the ground."""

from __future__ import annotations

from typing import Any

from livens.errors import InputError
from livens.multibody.body import Body
from livens.multibody.contacts.shapes.base import CollisionShape
from livens.multibody.contacts.shapes.boxes import Box
from livens.multibody.contacts.shapes.cylinders import Capsule, Cylinder
from livens.multibody.contacts.shapes.meshes import PointCloud
from livens.multibody.contacts.shapes.planes import HalfSpace
from livens.multibody.contacts.shapes.rings import Torus
from livens.multibody.contacts.shapes.round_shapes import Sphere


def default_shape(value: Any) -> CollisionShape:
    """Return the collision shape of an argument: a shape, the solid of a body, or a plane for the ground."""
    if isinstance(value, CollisionShape):
        return value
    if not isinstance(value, Body):
        raise InputError(f"a contact needs shapes, bodies or the ground, got {value!r}")
    if value.element is None:
        return HalfSpace(value)
    shape_types = {"sphere": Sphere, "box": Box, "rod": Capsule, "cylinder": Cylinder, "ring": Torus}
    shape_type = value.shape[0] if value.shape else ""
    if shape_type == "particle":
        return PointCloud(value, [value.reference_position])
    if shape_type not in shape_types:
        raise InputError(f"'{value.name}' has no shape for contacts: pass one, such as contacts.Sphere")
    shape: CollisionShape = shape_types[shape_type](value)
    return shape
