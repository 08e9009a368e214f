"""Elastic rings of a drawing, by modes: a rigid body, and coordinates in which it bends."""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from livens import math as m
from livens.models import shapes
from livens.models.element import Element
from livens.multibody.bodies import Body, director_body, planar_body
from livens.multibody.inertia import Inertia
from livens.multibody.parts import Marker, Part
from livens.multibody.ring_modes import RingModes, RingPlacement
from livens.multibody.sections import Section

#: Where elastic parts are taken in a step by schemes that tell forces apart: in the middle, which keeps their energy.
ELASTIC = 0.5
#: How many pieces a ring is drawn with.
_PIECES = 72


@dataclass(eq=False)
class ModalRing(Part):
    """A ring that bends in its plane: joints, springs, loads and contacts take its points, which move with it.

    `at` says where a point of it is. Its modal coordinates are called ``name.a2``, ``name.b2`` and so on.
    """

    modes: RingModes = field(kw_only=True)

    def at(self, name: str, angle: float) -> Marker:
        """A named point of the ring at an angle from its first axis, in the drawing."""
        radius, level = self.modes.radius, [0.0] * (self.dimension - 2)
        lever = radius * np.array([np.cos(angle), np.sin(angle), *level])
        return self.point(name, self.position + self.rotation @ lever)


def ring_body(name: str, modes: RingModes, section: Section, dimension: int) -> Body:
    """The ring as a rigid body, whose points move with the modes."""
    length = 2 * np.pi * modes.radius
    mass, (across, inwards, about) = section.mass * length, (section.inertia * length).tolist()
    polar = mass * modes.radius**2 + about
    # the section turns with the ring: about a diameter half of it lies along, half across
    flat = mass * modes.radius**2 / 2 + (across + inwards) / 2
    made = planar_body(name, mass, polar, look=[]) if dimension == 2 else None
    body = made or director_body(name, Inertia(mass, [flat, flat, polar]), look=[])
    body.placement = RingPlacement(dimension, dimension, modes.waves)
    body.coordinates = tuple(f"{name}.{short}" for short in body.placement.names)
    return body


def ring_elements(body: Body, modes: RingModes, section: Section, damping: float) -> list[Element]:
    """Masses of all modes, what resists them, and how the ring looks."""
    placement, found = body.placement, list[Element]()
    assert isinstance(placement, RingPlacement)
    for i, n in enumerate(modes.waves):
        own = body.coordinates[placement.rigid + 2 * i :][:2]
        found += mode_elements(own, body.name, n, modes, damping * modes.stiffness(n))
    look = _look(placement, modes.radius, section.radius)
    return [*found, Element(body.coordinates, name=f"{body.name} line", look=look)]


def mode_elements(own: Any, name: str, n: int, modes: RingModes, damping: float) -> list[Element]:
    """The mass of both modal coordinates with n waves, and the spring and damper that each has."""
    springs: dict[str, Any] = dict(potential=_spring, parameters=dict(stiffness=modes.stiffness(n)))
    if damping:
        springs |= dict(dissipation=_damper, parameters=dict(stiffness=modes.stiffness(n), damping=damping))
    mass = dict(mass=modes.mass(n))
    return [
        Element(own, kinetic=_moving, frames=[[range(2)]], parameters=mass, name=f"{name} mode{n}", look=_nothing),
        Element(own, name=f"{name} bending{n}", beta=ELASTIC, **springs),
    ]


# -- functions of the elements, made once so that elements share their code -------------------------------------------
def _moving(v: Any, k: Any) -> Any:
    return k.mass / 2 * m.dot(v, v)


def _spring(q: Any, k: Any) -> Any:
    return k.stiffness / 2 * m.dot(q, q)


def _damper(v: Any, k: Any) -> Any:
    return k.damping / 2 * m.dot(v, v)


def _nothing(q: Any) -> list[shapes.Shape]:
    """What modes look like is seen in the ring."""
    return []


@functools.cache
def _look(placement: RingPlacement, radius: float, thick: float) -> Any:
    """The bent line of the ring, as a chain of short cylinders."""
    angles = np.linspace(0, 2 * np.pi, _PIECES + 1)
    level = [0.0] * (placement.dimension - 2)

    def look(q: Any) -> list[shapes.Shape]:
        points = [placement.point(q, radius * np.array([np.cos(a), np.sin(a), *level])) for a in angles]
        draw, size = (shapes.cylinder, thick) if placement.dimension == 3 else (shapes.rod, 2 * thick)
        return [draw(a, b, size) for a, b in itertools.pairwise(points)]

    return look
