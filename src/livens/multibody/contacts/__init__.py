"""Compliant contact of bodies: collision shapes, normal force laws and friction; public as `livens.contacts`.

Geometry and force laws are independent. A shape defines a signed distance as a function of invariants of the
coordinates that are at most quadratic; a law defines the energy as a function of the penetration depth. Contacts
therefore conserve energy, linear and angular momentum in energy-momentum schemes, for all shapes and laws.

>>> import livens as lv
>>> mb = lv.Multibody(gravity=[0, 0, -9.81])
>>> ball = mb.sphere("ball", at=[0, 0, 0.2], radius=0.1, mass=1.0)
>>> contact = mb.contact(ball, mb.ground, stiffness=1e4)
>>> run = mb.simulate(t_end=0.5, h=1e-3)
>>> bool(run["ball-ground.normal"].max() > 100), bool(run.summary.max_energy_drift < 1e-12)
(True, True)
"""

from livens.multibody.contacts.contact import Contact
from livens.multibody.contacts.friction import Friction
from livens.multibody.contacts.geometry.surface import Axial, Local, Surface
from livens.multibody.contacts.laws import Hertz, Law, Linear, Material, Own, hertz_stiffness
from livens.multibody.contacts.shape import (
    Box,
    Capsule,
    Cylinder,
    Ellipsoid,
    Groove,
    HalfSpace,
    HeightField,
    Pocket,
    Points,
    Shape,
    Sphere,
    Torus,
    Tube,
)

__all__ = [
    "Axial",
    "Box",
    "Capsule",
    "Contact",
    "Cylinder",
    "Ellipsoid",
    "Friction",
    "Groove",
    "HalfSpace",
    "HeightField",
    "Hertz",
    "Law",
    "Linear",
    "Local",
    "Material",
    "Own",
    "Pocket",
    "Points",
    "Shape",
    "Sphere",
    "Surface",
    "Torus",
    "Tube",
    "hertz_stiffness",
]
