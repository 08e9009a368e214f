"""Compliant contact of two shapes as elements of a system: contact potential and dissipative forces."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from livens import math as m
from livens.errors import InputError
from livens.expressions.parameters import SameAs, same_as
from livens.models.element import Element, Through, through
from livens.models.penalty import smooth_above, smooth_slope
from livens.multibody.contacts import friction as resisting
from livens.multibody.contacts.friction import Friction
from livens.multibody.contacts.geometry.base import Geometry
from livens.multibody.contacts.laws.base import Law
from livens.multibody.contacts.looks import surroundings
from livens.multibody.contacts.pairs import Spot, spots
from livens.multibody.contacts.shape import Shape
from livens.multibody.parts import Part
from livens.multibody.placement import Directors, Ground, Placement

#: Largest initial penetration depth, relative to the characteristic size of the smaller shape.
DEEPEST = 0.2


class ContactElement(Element):
    """Element of a compliant contact."""

    def __init__(self, *arguments: Any, expensive: bool = True, **functions: Any) -> None:
        super().__init__(*arguments, **functions)
        #: Contact detection is the most expensive part of models with many contacts (S003 4.1.1).
        self.expensive = expensive


class PushingElement(ContactElement):
    """Normal-force element; its stiffness can control the step size (S003 paper II)."""

    def __init__(self, *arguments: Any, touch: tuple[Geometry, Law, Placement, Placement], **functions: Any) -> None:
        super().__init__(*arguments, **functions)
        self._touch = touch

    def gaps(self, q: Any, k: Any) -> list[Any]:
        """Return the gap between the surfaces, negative in penetration."""
        geometry, _, a, b = self._touch
        return [geometry.gap_at(a, b, q, k)]

    def stiffness(self, gap: Any, k: Any, smooth: float) -> Any:
        """Return the contact stiffness, the derivative of the force by the depth, smoothed around zero (eq. 28)."""
        law, depth = self._touch[1], ca.SX.sym("depth")
        slope = ca.gradient(m.expression(law.force(m.Scalar(depth), k)), depth)
        there = m.expression(smooth_above(-gap, smooth))
        return m.Scalar(ca.substitute(slope, depth, there)) * smooth_slope(-gap, smooth) ** 2


@functools.cache
def elastic(geometry: Geometry, law: Law, a: Placement, b: Placement) -> Through:
    """Return the contact potential as a function of invariants."""

    def energy(w: Any, k: Any) -> Any:
        return law.energy(resisting.depth_of(geometry.gap(w, k)), k)

    return through(lambda q, k: list(geometry.invariants(a, b, q, k)), energy)


@dataclass(frozen=True)
class Held:
    """Contact point with its law parameters and elements."""

    spot: Spot
    parameters: Mapping[str, Any]
    elements: tuple[ContactElement, ...]

    @property
    def placements(self) -> tuple[Placement, Placement]:
        return self.spot.first.placement, self.spot.second.placement

    @property
    def coordinates(self) -> tuple[Any, ...]:
        return (*self.spot.first.coordinates, *self.spot.second.coordinates)


class Contact:
    """Compliant contact of two shapes, created by `Multibody.contact`.

    Its elements are called ``name`` (contact potential), ``name damping``, ``name sliding``, ``name pivoting`` and
    ``name rolling``; ``run.observe(..., by="element")`` returns the energy of each.

    Parameters
    ----------
    name : str
        Name of the contact.
    shape_a, shape_b : CollisionShape
        Shapes of two different bodies, or of a body and the ground.
    law : NormalLaw
        Normal force as a function of the penetration depth.
    dissipation : float, default 0
        Hunt-Crossley dissipation in s/m.
    friction : Friction, optional
        Friction parameters.
    expensive : bool, default True
        Whether IMEX schemes treat the contact as an expensive force: explicitly, evaluated once per step.

    Raises
    ------
    InputError
        If both shapes belong to the same body or to the ground, or the pair of shapes is not supported.
    """

    def __init__(
        self,
        name: str,
        first: Shape,
        second: Shape,
        law: Law,
        damping: float = 0.0,
        friction: Friction | None = None,
        expensive: bool = True,
    ) -> None:
        if first.part is second.part or (first.part.element is None and second.part.element is None):
            raise InputError(f"{name}: a contact needs two different bodies, or a body and the ground")
        self.name, self.first, self.second = name, first, second
        self.law, self.damping, self.friction, self.expensive = law, damping, friction, expensive
        self._numbers: dict[str, Any] = law.parameters(name, first, second)
        self._owner: ContactElement | None = None
        self._first: dict[str, SameAs] = {}  # owner element of each dissipation parameter
        self.spots = [self._held(spot) for spot in spots(name, first, second)]

    @property
    def elements(self) -> Iterator[ContactElement]:
        """Elements of all contact points.

        Yields
        ------
        ContactElement
            Contact potential and dissipative elements.
        """
        for held in self.spots:
            yield from held.elements

    def _held(self, spot: Spot) -> Held:
        """Build the elements of one contact point; common parameters belong to the first element and are shared:
        sizes within a contact point, law and dissipation parameters within the contact."""
        law, more, f = self.law, self._numbers, self.friction
        if self._owner is not None:
            more = {name: same_as(self._owner, name) for name in more}
        a, b = _end(spot.first, spot.turns_first), _end(spot.second, spot.turns_second)
        look = None if self._owner is not None else surroundings(self.first, self.second)
        pushing = PushingElement(
            [*a[1], *b[1]],
            parameters={**spot.sizes, **more},
            constants=spot.constants,
            name=self.name,
            expensive=self.expensive,
            potential=elastic(spot.geometry, law, a[0], b[0]),
            look=look,
            touch=(spot.geometry, law, a[0], b[0]),
        )
        self._owner = self._owner or pushing
        values = {name: x.value if isinstance(x, SameAs) else x for name, x in more.items()}
        tied = {name: same_as(pushing, name) for name in spot.sizes}
        tied |= {name: same_as(self._owner, name) for name in more}
        found: list[ContactElement] = [pushing]
        if self.damping:
            found.append(self._loses("damping", spot, a, b, tied, damping=self.damping))
        one, other = ((part.placement, part.coordinates) for part in (spot.first, spot.second))
        if f is not None and f.coefficient:
            found.append(self._loses("sliding", spot, one, other, tied, friction=f.coefficient, smooth=f.smooth))
            if f.pivoting:
                numbers = dict(friction=f.coefficient, pivoting=f.pivoting, smooth_rate=f.smooth_rate)
                found.append(self._loses("pivoting", spot, one, other, tied, **numbers))
        if f is not None and f.rolling:
            found.append(self._loses("rolling", spot, one, other, tied, rolling=f.rolling, smooth_rate=f.smooth_rate))
        return Held(spot, values, tuple(found))

    def _loses(self, word: str, spot: Spot, a: Any, b: Any, tied: Mapping[str, Any], **numbers: float) -> Any:
        loss = getattr(resisting, word)(spot.geometry, self.law, a[0], b[0])
        own: dict[str, Any] = {name: self._first.get(name, value) for name, value in numbers.items()}
        element = self._element(f"{self.name} {word}", {**tied, **own}, spot, a, b, dissipation=loss)
        self._first |= {name: same_as(element, name) for name in numbers if name not in self._first}
        return element

    def _element(self, name: str, given: Mapping[str, Any], spot: Spot, a: Any, b: Any, **functions: Any) -> Any:
        return ContactElement(
            [*a[1], *b[1]],
            parameters=given,
            constants=spot.constants,
            name=name,
            expensive=self.expensive,
            **functions,
        )

    def __repr__(self) -> str:
        return f"<contact {self.name}>"


def _end(part: Part, turns: bool) -> tuple[Placement, tuple[Any, ...]]:
    """Return parametrisation and coordinates of a body, or of its centre alone if its orientation has no effect."""
    placement = part.placement
    if isinstance(placement, Ground) or turns or not placement.turns:
        return placement, part.coordinates
    d = part.dimension
    return Directors(d, 0), part.coordinates[:d]


def reduced_mass(first: Part, second: Part) -> float:
    """Return the reduced mass of a central collision of two bodies."""
    weights = [1 / part.element.mass for part in (first, second) if part.element is not None]
    return 1 / float(np.sum(weights))
