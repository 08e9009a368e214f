"""Fixed tendons: forces on a weighted sum of joint coordinates, ``length = sum weight_i coordinate_i``."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from livens import math as m
from livens.expressions.parameters import ParameterNamespace
from livens.models.element import Element, InvariantForm, of_invariants
from livens.multibody.couplings import CouplingTerm
from livens.multibody.inputs import Law
from livens.multibody.joint_forces import (
    ZERO_BRANCH,
    conjugate_force,
    joint_coordinate,
    joint_invariants,
    joint_rate,
)
from livens.multibody.joint_types import n_angle_invariants
from livens.types import ScalarLike, Vector

if TYPE_CHECKING:
    from livens.multibody.joint import Joint

Terms = tuple[CouplingTerm, ...]


class FixedTendon:
    """Fixed tendon of joints with weights; angles are continuous over revolutions."""

    def __init__(self, terms: Sequence[tuple[Joint, float]]) -> None:
        self.joints = tuple(joint for joint, _ in terms)
        self.coordinates = list(dict.fromkeys(str(c) for joint in self.joints for c in joint.coordinates))
        index = {c: i for i, c in enumerate(self.coordinates)}
        rows: list[CouplingTerm] = []
        self.parameters: dict[str, Any] = {}
        for i, (joint, weight) in enumerate(terms):
            indices = [tuple(index[str(c)] for c in body.coordinates) for body in (joint.body_a, joint.body_b)]
            rows.append(CouplingTerm(joint.a, joint.b, indices[0], indices[1], joint.joint_type.angle))
            names = "AB" if joint.joint_type.angle else "AXY"
            self.parameters |= {f"weight{i}": float(weight)} | {f"{name}{i}": joint.parameters[name] for name in names}
            if joint.joint_type.angle:
                self.parameters[f"angle_branch{i}"] = np.array(ZERO_BRANCH)
        self.terms = tuple(rows)

    def element(
        self, name: str, parameters: dict[str, Any], extra_coordinates: Sequence[str] = (), **functions: Any
    ) -> Element:
        """Return a force element on the coordinates of all joints, followed by extra coordinates."""
        coordinates = [*self.coordinates, *extra_coordinates]
        return Element(coordinates, parameters=self.parameters | parameters, name=name, **functions)

    def branches(self, element: Element) -> list[tuple[Joint, Element, str]]:
        """Return the joints with continuous angles, and the parameters of their branches in an element."""
        return [
            (joint, element, f"angle_branch{i}")
            for i, joint in enumerate(self.joints)
            if f"angle_branch{i}" in self.parameters
        ]


@functools.cache
def tendon_spring(terms: Terms) -> InvariantForm:
    """Return the potential of a spring that acts below ``k.lower`` and above ``k.upper``."""

    def energy(w: Vector, k: ParameterNamespace) -> Any:
        length, _ = _length_and_rate(terms, w, w, k)
        return 0.5 * k.stiffness * (m.maximum(length - k.upper, 0.0) + m.maximum(k.lower - length, 0.0)) ** 2

    return of_invariants(_invariants(terms), energy)


@functools.cache
def linear_tendon_spring(terms: Terms) -> InvariantForm:
    """Return the potential ``stiffness/2 (length - rest)^2``."""

    def energy(w: Vector, k: ParameterNamespace) -> Any:
        return 0.5 * k.stiffness * (_length_and_rate(terms, w, w, k)[0] - k.rest) ** 2

    return of_invariants(_invariants(terms), energy)


@functools.cache
def tendon_damper(terms: Terms) -> InvariantForm:
    """Return the Rayleigh function ``viscosity/2 rate^2``."""
    return of_invariants(
        _invariants(terms), lambda w, u, k: 0.5 * k.viscosity * _length_and_rate(terms, w, u, k)[1] ** 2
    )


@functools.cache
def tendon_friction(terms: Terms) -> InvariantForm:
    """Return the Rayleigh function ``level sqrt(rate^2 + smooth^2)`` of regularised Coulomb friction."""
    return of_invariants(
        _invariants(terms),
        lambda w, u, k: k.level * m.sqrt(_length_and_rate(terms, w, u, k)[1] ** 2 + k.smooth**2),
    )


@functools.cache
def tendon_motor(terms: Terms, law: Law, has_state: bool = False) -> InvariantForm:
    """Return the forces of a law of ``(t, length, rate, k)``, whose power is the force times the rate of the length.

    With `has_state`, the last coordinate is a state of the actuator and the last argument of the law.
    """

    def forces(w: Vector, u: Vector, t: ScalarLike, k: ParameterNamespace) -> Any:
        magnitude = law(t, *_length_and_rate(terms, w, u, k), k, *([w[-1]] if has_state else []))
        joint_forces = [
            force
            for i, (term, part) in enumerate(zip(terms, _parts(terms, k), strict=True))
            for force in conjugate_force(w[part], getattr(k, f"weight{i}") * magnitude, term.is_angle)
        ]
        return [*joint_forces, 0.0] if has_state else joint_forces

    return of_invariants(_invariants(terms, has_state), forces)


@functools.cache
def _invariants(terms: Terms, has_state: bool = False) -> Any:
    """Return the function of the invariants of all joint coordinates, one after another, and of the last coordinate."""

    def invariants(q: Vector, k: ParameterNamespace) -> list[Any]:
        return [
            value
            for i, term in enumerate(terms)
            for value in joint_invariants(term.a, term.b, term.is_angle)(term.coordinates(q), _joint_parameters(k, i))
        ] + ([q[-1]] if has_state else [])

    return invariants


def _joint_parameters(k: ParameterNamespace, i: int) -> ParameterNamespace:
    """Return the parameters of one joint under their names in elements of a single joint."""
    names = ("A", "B", "X", "Y", "angle_branch")
    return ParameterNamespace({name: vars(k)[f"{name}{i}"] for name in names if f"{name}{i}" in vars(k)})


def _parts(terms: Terms, k: ParameterNamespace) -> list[slice]:
    """Return the slices of the invariants of every joint."""
    sizes = [n_angle_invariants(getattr(k, f"B{i}")) if term.is_angle else 1 for i, term in enumerate(terms)]
    ends = np.cumsum(sizes).tolist()
    return [slice(end - size, end) for size, end in zip(sizes, ends, strict=True)]


def _length_and_rate(terms: Terms, w: Vector, u: Vector, k: ParameterNamespace) -> tuple[Any, Any]:
    """Return length and rate of the tendon from the invariants and their rates."""
    length: Any = 0.0
    rate: Any = 0.0
    for i, (term, part) in enumerate(zip(terms, _parts(terms, k), strict=True)):
        weight = getattr(k, f"weight{i}")
        length = length + weight * joint_coordinate(w[part], _joint_parameters(k, i), term.is_angle)
        rate = rate + weight * joint_rate(w[part], u[part], term.is_angle)
    return length, rate
