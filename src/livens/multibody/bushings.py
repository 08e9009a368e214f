"""Compliant elements: bushings, cables, joint limits, and dry friction in joints."""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from livens import math as m
from livens.expressions.tracing import ModelFunction
from livens.models.element import InvariantForm, of_invariants
from livens.multibody.joint_forces import joint_coordinate, joint_invariants, joint_rate
from livens.multibody.joint_types import split_pair
from livens.multibody.parametrisation import Parametrisation
from livens.scene import shapes
from livens.types import ScalarLike, Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


# -- bushings ---------------------------------------------------------------------------------------------------------
def _axes(a: Parametrisation, q: Vector, A: Vector) -> list[Vector]:
    return [a.vector(q, A[:, i]) for i in range(3)]


def _bushing_deformation(a: Parametrisation, b: Parametrisation, q: Vector, k: ParameterNamespace) -> list[ScalarLike]:
    """Return the relative displacement in the axes of a, the axial vector ``sin(angle) n`` of the rotation, its trace.

    All components are products of directors.
    """
    qa, qb = split_pair(a, q)
    gap = b.point(qb, k.Y) - a.point(qa, k.X)
    axes_a, axes_b = _axes(a, qa, k.A), _axes(b, qb, k.B)
    displacement = [m.dot(axis, gap) for axis in axes_a]
    pairs = ((1, 2), (2, 0), (0, 1))
    rotation = [(m.dot(axes_a[j], axes_b[i]) - m.dot(axes_a[i], axes_b[j])) / 2 for i, j in pairs]
    return [*displacement, *rotation, sum(m.dot(x, y) for x, y in zip(axes_a, axes_b, strict=True))]


@functools.cache
def bushing_potential(
    a: Parametrisation, b: Parametrisation, has_stiffness: bool = True, law: ModelFunction | None = None
) -> InvariantForm:
    """Return the bushing potential ``xi.K xi/2``, xi: displacement in the axes of a and rotation ``2 tan(angle/2) n``.

    `law` is a further potential, a function of displacement, rotation and k. The potential is a function of products of
    directors, so that momenta are conserved. Rotations must stay below half a turn.
    """

    def energy(w: Vector, k: ParameterNamespace) -> Any:
        xi = m.array([*w[:3], *(4 * x / (1 + w[6]) for x in w[3:6])])
        total = 0.5 * m.dot(xi, k.stiffness @ xi) if has_stiffness else 0.0
        return total if law is None else total + law(xi[:3], xi[3:], k)

    return of_invariants(lambda q, k: _bushing_deformation(a, b, q, k), energy)


@functools.cache
def bushing_dissipation(a: Parametrisation, b: Parametrisation) -> InvariantForm:
    """Return the Rayleigh function ``xi'.C xi'/2`` of the rates of the bushing deformation."""

    def dissipation(w: Vector, u: Vector, k: ParameterNamespace) -> ScalarLike:
        size = 1 + w[6]
        rotation_rate = [4 * (u[i] * size - w[i] * u[6]) / size**2 for i in (3, 4, 5)]
        xi = m.array([*u[:3], *rotation_rate])
        return 0.5 * m.dot(xi, k.viscosity @ xi)

    return of_invariants(lambda q, k: _bushing_deformation(a, b, q, k), dissipation)


# -- cables -----------------------------------------------------------------------------------------------------------
@functools.cache
def cable_potential(
    parametrisations: tuple[Parametrisation, ...], indices: tuple[tuple[int, ...], ...]
) -> InvariantForm:
    """Return the cable potential ``stiffness/2 (length - free length)^2`` while taut; it slides over inner points."""

    def invariants(q: Vector, k: ParameterNamespace) -> list[ScalarLike]:
        points = cable_points(parametrisations, indices, q, k)
        return [m.dot(y - x, y - x) for x, y in itertools.pairwise(points)]

    def energy(w: Vector, k: ParameterNamespace) -> Any:
        stretch = sum(m.sqrt(square) for square in w) - k.length
        return 0.5 * k.stiffness * m.maximum(stretch, 0.0) ** 2

    return of_invariants(invariants, energy)


def cable_points(
    parametrisations: tuple[Parametrisation, ...],
    indices: tuple[tuple[int, ...], ...],
    q: Vector,
    k: ParameterNamespace,
) -> list[Vector]:
    """Return the points of a cable in space."""
    return [
        m.array(parametrisation.point(q[list(dofs)] if dofs else q[:0], getattr(k, f"X{i}")))
        for i, (parametrisation, dofs) in enumerate(zip(parametrisations, indices, strict=True))
    ]


def cable_length_and_rate(
    parametrisations: tuple[Parametrisation, ...],
    indices: tuple[tuple[int, ...], ...],
    q: Vector,
    v: Vector,
    k: ParameterNamespace,
) -> tuple[ScalarLike, ScalarLike]:
    """Return the length of a cable and its rate."""
    points = cable_points(parametrisations, indices, q, k)
    rates = [
        m.array(
            parametrisation.velocity(q[list(dofs)], v[list(dofs)], getattr(k, f"X{i}")) if dofs else np.zeros(len(p))
        )
        for i, (parametrisation, dofs, p) in enumerate(zip(parametrisations, indices, points, strict=True))
    ]
    length, rate = 0.0, 0.0
    for i in range(len(points) - 1):
        gap = points[i + 1] - points[i]
        size = m.sqrt(m.dot(gap, gap))
        length, rate = length + size, rate + m.dot(gap, rates[i + 1] - rates[i]) / size
    return length, rate


@functools.cache
def cable_dissipation(
    parametrisations: tuple[Parametrisation, ...], indices: tuple[tuple[int, ...], ...]
) -> ModelFunction:
    """Return the Rayleigh function of the rate of the length, while the cable is taut."""

    def dissipation(q: Vector, v: Vector, k: ParameterNamespace) -> ScalarLike:
        length, rate = cable_length_and_rate(parametrisations, indices, q, v, k)
        return m.where(length > k.length, 0.5 * k.viscosity * rate**2, 0.0)

    return dissipation


def cable_length(parametrisations: tuple[Parametrisation, ...], indices: tuple[tuple[int, ...], ...]) -> ModelFunction:
    """Return the cable length as a function of coordinates, velocities and parameters."""
    return lambda q, v, k: cable_length_and_rate(parametrisations, indices, q, v, k)[0]


def cable_tension(
    parametrisations: tuple[Parametrisation, ...], indices: tuple[tuple[int, ...], ...], damped: bool
) -> ModelFunction:
    """Return the cable tension as a function of coordinates, velocities and parameters."""

    def tension(q: Vector, v: Vector, k: ParameterNamespace) -> ScalarLike:
        length, rate = cable_length_and_rate(parametrisations, indices, q, v, k)
        pull = k.stiffness * (length - k.length) + (k.viscosity * rate if damped else 0.0)
        return m.where(length > k.length, pull, 0.0)

    return tension


@functools.cache
def cable_visual(parametrisations: tuple[Parametrisation, ...], indices: tuple[tuple[int, ...], ...]) -> ModelFunction:
    """Return the visual of a cable: a line through its points."""
    return lambda q, k: shapes.cable(cable_points(parametrisations, indices, q, k))


# -- joint limits -----------------------------------------------------------------------------------------------------
#: Names of the two joint limits. A missing limit is omitted from this tuple; a large number in its place would cause
#: round-off.
BOTH_LIMITS = ("lower", "upper")


def _limit_penetration(x: ScalarLike, k: ParameterNamespace, limits: tuple[str, ...]) -> ScalarLike:
    """Return the penetration of a joint coordinate beyond its limits."""
    depths = [m.maximum(x - k.upper if end == "upper" else k.lower - x, 0.0) for end in limits]
    return sum(depths[1:], depths[0])


@functools.cache
def limit_potential(
    a: Parametrisation, b: Parametrisation, rotational: bool, limits: tuple[str, ...] = BOTH_LIMITS
) -> InvariantForm:
    """Return the potential of the limit spring."""

    def energy(w: Vector, k: ParameterNamespace) -> Any:
        return 0.5 * k.stiffness * _limit_penetration(joint_coordinate(w, k, rotational), k, limits) ** 2

    return of_invariants(joint_invariants(a, b, rotational), energy)


@functools.cache
def limit_dissipation(
    a: Parametrisation, b: Parametrisation, rotational: bool, limits: tuple[str, ...] = BOTH_LIMITS
) -> InvariantForm:
    """Return the Hunt-Crossley dissipation of a limit: proportional to the penetration, hence continuous."""

    def dissipation(w: Vector, u: Vector, k: ParameterNamespace) -> Any:
        depth = _limit_penetration(joint_coordinate(w, k, rotational), k, limits)
        rate = joint_rate(w, u, rotational)
        return 0.5 * k.viscosity * depth * rate**2

    return of_invariants(joint_invariants(a, b, rotational), dissipation)


# -- friction ---------------------------------------------------------------------------------------------------------
@functools.cache
def stribeck_friction(a: Parametrisation, b: Parametrisation, rotational: bool) -> InvariantForm:
    """Return the Rayleigh function of Stribeck friction.

    The friction is ``(level + (static - level)/(1 + (r/stribeck)^2)) r/sqrt(r^2 + smooth^2)`` against a rate r. It is
    the derivative of a convex function of r, so it never supplies energy: with x^2 = r^2 + smooth^2 and
    b^2 = stribeck^2 - smooth^2, this is ``level x + (static - level) stribeck^2/b atan(x/b)``.
    """

    def dissipation(w: Vector, u: Vector, k: ParameterNamespace) -> Any:
        rate = joint_rate(w, u, rotational)
        x = m.sqrt(rate**2 + k.smooth**2)
        width = m.sqrt(k.stribeck**2 - k.smooth**2)
        return k.level * x + (k.static - k.level) * k.stribeck**2 / width * m.atan(x / width)

    return of_invariants(joint_invariants(a, b, rotational), dissipation)
