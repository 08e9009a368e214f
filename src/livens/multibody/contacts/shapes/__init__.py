"""Collision shapes: each belongs to a body or to the ground, in the reference configuration.

- `base`: collision shape of a body: origin, axes, sizes; sample spheres and support ellipsoids.
- `planes`: planes and height fields.
- `round_shapes`: spheres, hollow spheres and ellipsoids.
- `boxes`: boxes.
- `cylinders`: capsules, cylinders and tubes.
- `rings`: rings and grooves.
- `meshes`: point clouds and convex meshes.
- `defaults`: default collision shapes of bodies and of the ground.
"""

from livens.multibody.contacts.shapes.base import CollisionShape
from livens.multibody.contacts.shapes.boxes import Box
from livens.multibody.contacts.shapes.cylinders import Capsule, Cylinder, HollowCylinder
from livens.multibody.contacts.shapes.defaults import default_shape
from livens.multibody.contacts.shapes.meshes import ConvexMesh, PointCloud
from livens.multibody.contacts.shapes.planes import HalfSpace, HeightField
from livens.multibody.contacts.shapes.rings import Groove, Torus
from livens.multibody.contacts.shapes.round_shapes import Ellipsoid, HollowSphere, Sphere

__all__ = [
    "Box",
    "Capsule",
    "CollisionShape",
    "ConvexMesh",
    "Cylinder",
    "Ellipsoid",
    "Groove",
    "HalfSpace",
    "HeightField",
    "HollowCylinder",
    "HollowSphere",
    "PointCloud",
    "Sphere",
    "Torus",
    "default_shape",
]
