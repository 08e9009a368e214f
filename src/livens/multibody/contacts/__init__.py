"""Compliant contact of bodies: collision shapes, normal force laws and friction; public as `livens.contacts`.

Geometry and force laws are independent. A shape defines a signed distance as a function of invariants of the
coordinates that are at most quadratic; a law defines the energy as a function of the penetration depth. Contacts
therefore conserve energy, linear and angular momentum in energy-momentum schemes, for all shapes and laws.

>>> import livens as lv
>>> mb = lv.Multibody(gravity=[0, 0, -9.81])
>>> ball = mb.sphere("ball", at=[0, 0, 0.2], radius=0.1, mass=1.0)
>>> contact = mb.contact(ball, mb.ground, stiffness=1e4)
>>> run = mb.simulate(t_end=0.5, h=1e-3)
>>> bool(run["ball-ground.normal_force"].max() > 100), bool(run.summary.max_energy_drift < 1e-12)
(True, True)
"""

from livens.multibody.contacts.dissipation import Friction
from livens.multibody.contacts.geometry.signed_distance import AxisymmetricDistance, LocalDistance, SignedDistance
from livens.multibody.contacts.normal_laws import CustomLaw, ElasticMaterial, Hertz, Linear, NormalLaw, hertz_stiffness
from livens.multibody.contacts.pair_contact import PairContact
from livens.multibody.contacts.shapes import (
    Box,
    Capsule,
    CollisionShape,
    ConvexMesh,
    Cylinder,
    Ellipsoid,
    Groove,
    HalfSpace,
    HeightField,
    HollowCylinder,
    HollowSphere,
    PointCloud,
    Sphere,
    Torus,
)

__all__ = [
    "AxisymmetricDistance",
    "Box",
    "Capsule",
    "CollisionShape",
    "ConvexMesh",
    "CustomLaw",
    "Cylinder",
    "ElasticMaterial",
    "Ellipsoid",
    "Friction",
    "Groove",
    "HalfSpace",
    "HeightField",
    "Hertz",
    "HollowCylinder",
    "HollowSphere",
    "Linear",
    "LocalDistance",
    "NormalLaw",
    "PairContact",
    "PointCloud",
    "SignedDistance",
    "Sphere",
    "Torus",
    "hertz_stiffness",
]
