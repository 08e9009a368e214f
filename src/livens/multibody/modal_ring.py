"""Elastic rings by modes: a rigid-body frame and modal coordinates."""

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

#: Fraction of the step at which IMEX schemes evaluate elastic forces: the midpoint, which conserves their energy.
ELASTIC = 0.5
#: Number of segments of the visual geometry of a ring.
_PIECES = 72


@dataclass(eq=False)
class ModalRing(Part):
    """Ring with in-plane bending modes; joints, springs, loads and contacts take its points, which move with it.

    `at` adds a point. Its modal coordinates are called ``name.a2``, ``name.b2`` and so on.
    """

    modes: RingModes = field(kw_only=True)

    def at(self, name: str, angle: float) -> Marker:
        """Add a named point of the ring at an angle from its first axis, in the reference configuration."""
        radius, level = self.modes.radius, [0.0] * (self.dimension - 2)
        lever = radius * np.array([np.cos(angle), np.sin(angle), *level])
        return self.point(name, self.position + self.rotation @ lever)


def ring_body(name: str, modes: RingModes, section: Section, dimension: int) -> Body:
    """Return the rigid-body part of the ring, with modal coordinates in its parametrisation."""
    length = 2 * np.pi * modes.radius
    mass, (across, inwards, about) = section.mass * length, (section.inertia * length).tolist()
    polar = mass * modes.radius**2 + about
    # about a diameter: the section moments are averaged around the ring
    flat = mass * modes.radius**2 / 2 + (across + inwards) / 2
    made = planar_body(name, mass, polar, look=[]) if dimension == 2 else None
    body = made or director_body(name, Inertia(mass, [flat, flat, polar]), look=[])
    body.placement = RingPlacement(dimension, dimension, modes.waves)
    body.coordinates = tuple(f"{name}.{short}" for short in body.placement.names)
    return body


def ring_elements(body: Body, modes: RingModes, section: Section, damping: float) -> list[Element]:
    """Return the elements of a ring: modal masses, stiffnesses and dampers, and its visual."""
    placement, found = body.placement, list[Element]()
    assert isinstance(placement, RingPlacement)
    for i, n in enumerate(modes.waves):
        own = body.coordinates[placement.rigid + 2 * i :][:2]
        found += mode_elements(own, body.name, n, modes, damping * modes.stiffness(n))
    look = _look(placement, modes.radius, section.radius)
    return [*found, Element(body.coordinates, name=f"{body.name} line", look=look)]


def mode_elements(own: Any, name: str, n: int, modes: RingModes, damping: float) -> list[Element]:
    """Return the modal mass of both coordinates with n waves, and their spring and damper."""
    springs: dict[str, Any] = dict(potential=_spring, parameters=dict(stiffness=modes.stiffness(n)))
    if damping:
        springs |= dict(dissipation=_damper, parameters=dict(stiffness=modes.stiffness(n), damping=damping))
    mass = dict(mass=modes.mass(n))
    return [
        Element(own, kinetic=_moving, frames=[[range(2)]], parameters=mass, name=f"{name} mode{n}", look=_nothing),
        Element(own, name=f"{name} bending{n}", beta=ELASTIC, **springs),
    ]


# -- functions of the elements, defined once so that elements share their code ----------------------------------------
def _moving(v: Any, k: Any) -> Any:
    return k.mass / 2 * m.dot(v, v)


def _spring(q: Any, k: Any) -> Any:
    return k.stiffness / 2 * m.dot(q, q)


def _damper(v: Any, k: Any) -> Any:
    return k.damping / 2 * m.dot(v, v)


def _nothing(q: Any) -> list[shapes.Shape]:
    """Return no shapes: the visual of the ring shows its modes."""
    return []


@functools.cache
def _look(placement: RingPlacement, radius: float, thick: float) -> Any:
    """Return the visual of the deformed ring, as a chain of short cylinders."""
    angles = np.linspace(0, 2 * np.pi, _PIECES + 1)
    level = [0.0] * (placement.dimension - 2)

    def look(q: Any) -> list[shapes.Shape]:
        points = [placement.point(q, radius * np.array([np.cos(a), np.sin(a), *level])) for a in angles]
        draw, size = (shapes.cylinder, thick) if placement.dimension == 3 else (shapes.rod, 2 * thick)
        return [draw(a, b, size) for a, b in itertools.pairwise(points)]

    return look
