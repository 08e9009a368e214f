"""Narrow phase: contact points of two collision shapes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from livens.errors import InputError
from livens.multibody.contacts.geometry.base import Geometry
from livens.multibody.contacts.geometry.capsules import CapsulePair
from livens.multibody.contacts.geometry.ellipsoid import EllipsoidOnPlane
from livens.multibody.contacts.geometry.surface import Probe
from livens.multibody.contacts.shape import Box, Capsule, Ellipsoid, HalfSpace, Pocket, Points, Shape, Sphere, Tube
from livens.multibody.parts import Part


@dataclass(frozen=True)
class Spot:
    """Contact point candidate of two bodies: pair geometry, the bodies in its order, and its parameters.

    `sizes` are parameters of elements. `constants` are compiled into their code, so that zeros and ones cost nothing.
    """

    geometry: Geometry
    first: Part
    second: Part
    sizes: Mapping[str, Any]
    constants: Mapping[str, Any]
    turns_first: bool = True
    turns_second: bool = True


def spots(name: str, first: Shape, second: Shape) -> list[Spot]:
    """Return all contact points of two shapes."""
    if first.part.dimension != second.part.dimension:
        raise InputError(f"{name}: one body is in the plane, the other in space")
    for one, other in ((first, second), (second, first)):
        if isinstance(one, Ellipsoid) and isinstance(other, HalfSpace):
            return [_ellipsoid(one, other)]
    if isinstance(first, Capsule) and isinstance(second, Capsule):
        return [_capsules(first, second)]
    if isinstance(first, Box) and isinstance(second, Box):
        # corners of each box against the faces of the other
        return [*_probes(first, second), *_probes(second, first)]
    for one, other in ((first, second), (second, first)):
        if _lies_on(one, other):
            return _probes(one, other)
    raise InputError(f"{name}: contact of {first.word} with {second.word} is not supported")


def _lies_on(one: Shape, other: Shape) -> bool:
    """Return whether sample spheres represent a shape well enough on another one."""
    if other.surface is None or not one.probes():
        return False
    if isinstance(one, (Sphere, Points)):
        return True
    # ends and corners touch first on flat and hollow surfaces
    return isinstance(other, (HalfSpace, Pocket, Tube)) and isinstance(one, (Box, Capsule))


def _probes(one: Shape, other: Shape) -> list[Spot]:
    surface = other.surface
    assert surface is not None
    turns = surface.turned or bool(np.any(other.lever))
    found, probes = [], one.probes()
    for lever, radius in probes:
        constants = dict(Y=other.lever, **(dict(B=other.axes) if surface.turned else {}))
        sizes = dict(reach=radius, **other.sizes)
        # corners differ only in their position: as a parameter, they share their code
        (sizes if len(probes) > 1 else constants)["X"] = lever
        found.append(Spot(Probe(surface), one.part, other.part, sizes, constants, bool(np.any(lever)), turns))
    return found


def _capsules(one: Capsule, other: Capsule) -> Spot:
    sizes = dict(
        half=one.sizes["half"], other=other.sizes["half"], reach=one.sizes["radius"], radius=other.sizes["radius"]
    )
    constants = dict(X=one.lever, Y=other.lever, E=one.along, F=other.along)
    return Spot(CapsulePair(), one.part, other.part, sizes, constants)


def _ellipsoid(one: Ellipsoid, plane: HalfSpace) -> Spot:
    constants = dict(X=one.lever, A=one.axes, Y=plane.lever, B=plane.axes)
    return Spot(EllipsoidOnPlane(), one.part, plane.part, dict(one.sizes), constants)
