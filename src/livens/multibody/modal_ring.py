"""Elastic rings by modes: a rigid-body frame and modal coordinates."""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from livens import math as m
from livens.models.element import Element
from livens.multibody.body import Body, Marker
from livens.multibody.body_elements import BodyElement, director_body, planar_body
from livens.multibody.inertia import Inertia
from livens.multibody.ring_modes import ModalRingParametrisation, RingModes
from livens.multibody.sections import Section
from livens.scene import shapes
from livens.types import ModelFunction, ScalarLike, Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


#: Fraction of the step at which IMEX schemes evaluate elastic forces: the midpoint, which conserves their energy.
ELASTIC_BETA = 0.5
#: Number of segments of the visual geometry of a ring.
_SEGMENTS = 72


@dataclass(eq=False)
class ModalRing(Body):
    """Ring with in-plane bending modes; joints, springs, loads and contacts take its points, which move with it.

    `at` adds a point. Its modal coordinates are called ``name.a2``, ``name.b2`` and so on.
    """

    modes: RingModes = field(kw_only=True)

    def at(self, name: str, angle: float) -> Marker:
        """Add a named point of the ring at an angle from its first axis, in the reference configuration."""
        radius, level = self.modes.radius, [0.0] * (self.dimension - 2)
        local_position = radius * np.array([np.cos(angle), np.sin(angle), *level])
        return self.point(name, self.reference_position + self.reference_rotation @ local_position)


def ring_body(name: str, modes: RingModes, section: Section, dimension: int) -> BodyElement:
    """Return the rigid-body part of the ring, with modal coordinates in its parametrisation."""
    length = 2 * np.pi * modes.radius
    mass, (across, inwards, polar_section) = section.mass * length, (section.inertia * length).tolist()
    polar = mass * modes.radius**2 + polar_section
    # about a diameter: the section moments are averaged around the ring
    flat = mass * modes.radius**2 / 2 + (across + inwards) / 2
    planar = planar_body(name, mass, polar, visual=[]) if dimension == 2 else None
    body = planar or director_body(name, Inertia(mass, [flat, flat, polar]), visual=[])
    body.parametrisation = ModalRingParametrisation(dimension, dimension, modes.wave_numbers)
    body.coordinates = tuple(f"{name}.{short}" for short in body.parametrisation.names)
    return body


def ring_elements(body: BodyElement, modes: RingModes, section: Section, damping: float) -> list[Element]:
    """Return the elements of a ring: modal masses, stiffnesses and dampers, and its visual."""
    parametrisation, elements = body.parametrisation, list[Element]()
    assert isinstance(parametrisation, ModalRingParametrisation)
    for i, n in enumerate(modes.wave_numbers):
        modal_coordinates = body.coordinates[parametrisation.frame_size + 2 * i :][:2]
        elements += mode_elements(modal_coordinates, body.name, n, modes, damping * modes.stiffness(n))
    visual = _ring_visual(parametrisation, modes.radius, section.radius)
    return [*elements, Element(body.coordinates, name=f"{body.name} line", visual=visual)]


def mode_elements(modal_coordinates: Any, name: str, n: int, modes: RingModes, damping: float) -> list[Element]:
    """Return the modal mass of both coordinates with n waves, and their spring and damper."""
    springs: dict[str, Any] = dict(potential=_modal_potential, parameters=dict(stiffness=modes.stiffness(n)))
    if damping:
        springs |= dict(dissipation=_modal_dissipation, parameters=dict(stiffness=modes.stiffness(n), damping=damping))
    mass = dict(mass=modes.mass(n))
    return [
        Element(
            modal_coordinates,
            kinetic=_modal_kinetic_energy,
            frames=[[range(2)]],
            parameters=mass,
            name=f"{name} mode{n}",
            visual=_no_visual,
        ),
        Element(modal_coordinates, name=f"{name} bending{n}", beta=ELASTIC_BETA, **springs),
    ]


# -- functions of the elements, defined once so that elements share their code ----------------------------------------
def _modal_kinetic_energy(v: Vector, k: ParameterNamespace) -> ScalarLike:
    return k.mass / 2 * m.dot(v, v)


def _modal_potential(q: Vector, k: ParameterNamespace) -> ScalarLike:
    return k.stiffness / 2 * m.dot(q, q)


def _modal_dissipation(v: Vector, k: ParameterNamespace) -> ScalarLike:
    return k.damping / 2 * m.dot(v, v)


def _no_visual(q: Vector) -> list[shapes.Shape]:
    """Return no shapes: the visual of the ring shows its modes."""
    return []


@functools.cache
def _ring_visual(parametrisation: ModalRingParametrisation, radius: float, thick: float) -> ModelFunction:
    """Return the visual of the deformed ring, as a chain of short cylinders."""
    angles = np.linspace(0, 2 * np.pi, _SEGMENTS + 1)
    level = [0.0] * (parametrisation.dimension - 2)

    def visual(q: Vector) -> list[shapes.Shape]:
        points = [parametrisation.point(q, radius * np.array([np.cos(a), np.sin(a), *level])) for a in angles]
        draw, size = (shapes.cylinder, thick) if parametrisation.dimension == 3 else (shapes.rod, 2 * thick)
        return [draw(a, b, size) for a, b in itertools.pairwise(points)]

    return visual
