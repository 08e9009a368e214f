"""Compliant elements: bushings, cables, joint limits, and dry friction in joints."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from livens import math as m
from livens.expressions.read import ModelFunction
from livens.models import shapes
from livens.models.element import Through, through
from livens.multibody.actuators import angle_and_rate, invariants
from livens.multibody.joint_table import split
from livens.multibody.placement import Placement


# -- bushings ---------------------------------------------------------------------------------------------------------
def _axes(a: Placement, q: Any, A: Any) -> list[Any]:
    return [a.vector(q, A[:, i]) for i in range(3)]


def _strains(a: Placement, b: Placement, q: Any, k: Any) -> list[Any]:
    """Return the relative displacement in the axes of a, the axial vector ``sin(angle) n`` of the rotation, its trace.

    All components are products of directors.
    """
    qa, qb = split(a, q)
    gap = b.point(qb, k.Y) - a.point(qa, k.X)
    first, second = _axes(a, qa, k.A), _axes(b, qb, k.B)
    moved = [m.dot(axis, gap) for axis in first]
    pairs = ((1, 2), (2, 0), (0, 1))
    turned = [(m.dot(first[j], second[i]) - m.dot(first[i], second[j])) / 2 for i, j in pairs]
    return [*moved, *turned, sum(m.dot(x, y) for x, y in zip(first, second, strict=True))]


@functools.cache
def bushing(a: Placement, b: Placement) -> Through:
    """Return the bushing potential ``xi.K xi/2``, xi: displacement in the axes of a and rotation ``2 tan(angle/2) n``.

    It is a function of products of directors, so that momenta are conserved. Rotations must stay below half a turn.
    """

    def energy(w: Any, k: Any) -> Any:
        xi = m.array([*w[:3], *(4 * x / (1 + w[6]) for x in w[3:6])])
        return 0.5 * m.dot(xi, k.stiffness @ xi)

    return through(lambda q, k: _strains(a, b, q, k), energy)


@functools.cache
def bushing_damping(a: Placement, b: Placement) -> Through:
    """Return the Rayleigh function ``xi'.C xi'/2`` of the rates of the bushing deformation."""

    def dissipation(w: Any, u: Any, k: Any) -> Any:
        size = 1 + w[6]
        turned = [4 * (u[i] * size - w[i] * u[6]) / size**2 for i in (3, 4, 5)]
        xi = m.array([*u[:3], *turned])
        return 0.5 * m.dot(xi, k.viscosity @ xi)

    return through(lambda q, k: _strains(a, b, q, k), dissipation)


# -- cables -----------------------------------------------------------------------------------------------------------
@functools.cache
def cable(placements: tuple[Placement, ...], places: tuple[tuple[int, ...], ...]) -> Through:
    """Return the cable potential ``stiffness/2 (length - free length)^2`` while taut; it slides over inner points."""

    def invariants(q: Any, k: Any) -> Any:
        points = cable_points(placements, places, q, k)
        return [m.dot(y - x, y - x) for x, y in itertools.pairwise(points)]

    def energy(w: Any, k: Any) -> Any:
        stretch = sum(m.sqrt(square) for square in w) - k.length
        return 0.5 * k.stiffness * m.maximum(stretch, 0.0) ** 2

    return through(invariants, energy)


def cable_points(placements: tuple[Placement, ...], places: tuple[tuple[int, ...], ...], q: Any, k: Any) -> list[Any]:
    """Return the points of a cable in space."""
    return [
        m.array(placement.point(q[list(own)] if own else q[:0], getattr(k, f"X{i}")))
        for i, (placement, own) in enumerate(zip(placements, places, strict=True))
    ]


def stretched(
    placements: tuple[Placement, ...], places: tuple[tuple[int, ...], ...], q: Any, v: Any, k: Any
) -> tuple[Any, Any]:
    """Return the length of a cable and its rate."""
    points = cable_points(placements, places, q, k)
    rates = [
        m.array(placement.velocity(q[list(own)], v[list(own)], getattr(k, f"X{i}")) if own else np.zeros(len(p)))
        for i, (placement, own, p) in enumerate(zip(placements, places, points, strict=True))
    ]
    length, rate = 0.0, 0.0
    for i in range(len(points) - 1):
        gap = points[i + 1] - points[i]
        size = m.sqrt(m.dot(gap, gap))
        length, rate = length + size, rate + m.dot(gap, rates[i + 1] - rates[i]) / size
    return length, rate


@functools.cache
def cable_damping(placements: tuple[Placement, ...], places: tuple[tuple[int, ...], ...]) -> ModelFunction:
    """Return the Rayleigh function of the rate of the length, while the cable is taut."""

    def dissipation(q: Any, v: Any, k: Any) -> Any:
        length, rate = stretched(placements, places, q, v, k)
        return m.where(length > k.length, 0.5 * k.viscosity * rate**2, 0.0)

    return dissipation


def cable_length(placements: tuple[Placement, ...], places: tuple[tuple[int, ...], ...]) -> Callable[..., Any]:
    """Return the cable length as a function of coordinates, velocities and parameters."""
    return lambda q, v, k: stretched(placements, places, q, v, k)[0]


def cable_tension(
    placements: tuple[Placement, ...], places: tuple[tuple[int, ...], ...], damped: bool
) -> Callable[..., Any]:
    """Return the cable tension as a function of coordinates, velocities and parameters."""

    def tension(q: Any, v: Any, k: Any) -> Any:
        length, rate = stretched(placements, places, q, v, k)
        pull = k.stiffness * (length - k.length) + (k.viscosity * rate if damped else 0.0)
        return m.where(length > k.length, pull, 0.0)

    return tension


@functools.cache
def cable_look(placements: tuple[Placement, ...], places: tuple[tuple[int, ...], ...]) -> ModelFunction:
    """Return the visual of a cable: a line through its points."""
    return lambda q, k: shapes.cable(cable_points(placements, places, q, k))


# -- joint limits -----------------------------------------------------------------------------------------------------
#: Names of the two joint limits. A missing limit is omitted from this tuple; a large number in its place would cause
#: round-off.
BOTH = ("lower", "upper")


def _beyond(x: Any, k: Any, ends: tuple[str, ...]) -> Any:
    """Return the penetration of a joint coordinate beyond its limits."""
    depths = [m.maximum(x - k.upper if end == "upper" else k.lower - x, 0.0) for end in ends]
    return sum(depths[1:], depths[0])


def _from_middle(w: Any, k: Any) -> Any:
    """Return the angle within half a turn of the middle of its range."""
    middle = (k.lower + k.upper) / 2
    c, s = m.cos(middle), m.sin(middle)
    return middle + m.atan2(c * w[1] - s * w[0], c * w[0] + s * w[1])


@functools.cache
def limited(a: Placement, b: Placement, angle: bool, ends: tuple[str, ...] = BOTH, touched: bool = False) -> Through:
    """Return the potential of the limit spring; if `touched`, it is multiplied by the parameter ``touching``."""

    def energy(w: Any, k: Any) -> Any:
        stiffness = k.stiffness * k.touching if touched else k.stiffness
        return 0.5 * stiffness * _beyond(_from_middle(w, k) if angle else w[0], k, ends) ** 2

    return through(invariants(a, b, angle), energy)


@functools.cache
def limit_damping(
    a: Placement, b: Placement, angle: bool, ends: tuple[str, ...] = BOTH, touched: bool = False
) -> Through:
    """Return the Hunt-Crossley dissipation of a limit: proportional to the penetration, hence continuous."""

    def dissipation(w: Any, u: Any, k: Any) -> Any:
        depth = _beyond(_from_middle(w, k) if angle else w[0], k, ends)
        rate = angle_and_rate(w, u, angle)[1]
        return 0.5 * (k.viscosity * k.touching if touched else k.viscosity) * depth * rate**2

    return through(invariants(a, b, angle), dissipation)


# -- friction ---------------------------------------------------------------------------------------------------------
@functools.cache
def friction(a: Placement, b: Placement, angle: bool) -> Through:
    """Return the Rayleigh function of Stribeck friction.

    The friction is ``(level + (static - level)/(1 + (r/stribeck)^2)) r/sqrt(r^2 + smooth^2)`` against a rate r. It is
    the derivative of a convex function of r, so it never supplies energy: with x^2 = r^2 + smooth^2 and
    b^2 = stribeck^2 - smooth^2, this is ``level x + (static - level) stribeck^2/b atan(x/b)``.
    """

    def dissipation(w: Any, u: Any, k: Any) -> Any:
        rate = angle_and_rate(w, u, angle)[1]
        x = m.sqrt(rate**2 + k.smooth**2)
        width = m.sqrt(k.stribeck**2 - k.smooth**2)
        return k.level * x + (k.static - k.level) * k.stribeck**2 / width * m.atan(x / width)

    return through(invariants(a, b, angle), dissipation)
