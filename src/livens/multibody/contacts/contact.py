"""A contact of two shapes as elements of a system: what is stored, and what is lost in which way."""

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

#: A start whose depth is more than this part of the smaller shape is a mistake in the drawing.
DEEPEST = 0.2


class ContactElement(Element):
    """An element of a contact."""

    def __init__(self, *arguments: Any, expensive: bool = True, **functions: Any) -> None:
        super().__init__(*arguments, **functions)
        #: Finding out which surfaces meet is what costs most in models with many contacts (S003 4.1.1).
        self.expensive = expensive


class PushingElement(ContactElement):
    """The elastic part of a contact, which says how stiff it is: steps may follow that (S003 paper II)."""

    def __init__(self, *arguments: Any, touch: tuple[Geometry, Law, Placement, Placement], **functions: Any) -> None:
        super().__init__(*arguments, **functions)
        self._touch = touch

    def gaps(self, q: Any, k: Any) -> list[Any]:
        """The distance between the surfaces, negative where they overlap."""
        geometry, _, a, b = self._touch
        return [geometry.gap_at(a, b, q, k)]

    def stiffness(self, gap: Any, k: Any, smooth: float) -> Any:
        """How fast the force grows with the depth, made smooth over a length around the first touch (eq. 28)."""
        law, depth = self._touch[1], ca.SX.sym("depth")
        slope = ca.gradient(m.expression(law.force(m.Scalar(depth), k)), depth)
        there = m.expression(smooth_above(-gap, smooth))
        return m.Scalar(ca.substitute(slope, depth, there)) * smooth_slope(-gap, smooth) ** 2


@functools.cache
def elastic(geometry: Geometry, law: Law, a: Placement, b: Placement) -> Through:
    """The energy of the depth, through invariants."""

    def energy(w: Any, k: Any) -> Any:
        return law.energy(resisting.depth_of(geometry.gap(w, k)), k)

    return through(lambda q, k: list(geometry.invariants(a, b, q, k)), energy)


@dataclass(frozen=True)
class Held:
    """A spot with its bodies, as the elements of it see them."""

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
    """Two shapes that push each other apart where they overlap.

    Its elements are called by its name (what is stored), ``name damping``, ``name sliding``, ``name pivoting`` and
    ``name rolling``, so that ``run.observe(..., by="element")`` has an account of each.
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
            raise InputError(f"{name}: a contact is between two different bodies, or a body and the ground")
        self.name, self.first, self.second = name, first, second
        self.law, self.damping, self.friction, self.expensive = law, damping, friction, expensive
        self._numbers: dict[str, Any] = law.parameters(name, first, second)
        self._owner: ContactElement | None = None
        self._first: dict[str, SameAs] = {}  # where each number of losses stands
        self.spots = [self._held(spot) for spot in spots(name, first, second)]

    @property
    def elements(self) -> Iterator[ContactElement]:
        for held in self.spots:
            yield from held.elements

    def _held(self, spot: Spot) -> Held:
        """The elements of one spot. What is the same in several of them is a parameter of the first, and changes with
        that: sizes within a spot, numbers of the law and of losses within the contact."""
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
    """A body, or its centre alone where only that counts."""
    placement = part.placement
    if isinstance(placement, Ground) or turns or not placement.turns:
        return placement, part.coordinates
    d = part.dimension
    return Directors(d, 0), part.coordinates[:d]


def reduced_mass(first: Part, second: Part) -> float:
    """The mass that a blow between the centres of two bodies has."""
    weights = [1 / part.element.mass for part in (first, second) if part.element is not None]
    return 1 / float(np.sum(weights))
