"""Linear couplings of joint coordinates: gears, racks, belts, differentials and screws.

The constraint ``sum weight_i rate_i = 0`` is imposed on the exact increments of angles and displacements, so that the
coupling does not drift over any number of turns. The phase is that of the initial configuration.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from livens import math as m
from livens.expressions.tracing import ModelFunction
from livens.models.element import Element
from livens.models.velocity_constraints import AngleRateConstraint, angle_rate_constraint
from livens.multibody.joint_types import angle_invariants, split_pair
from livens.multibody.parametrisation import Parametrisation
from livens.types import ScalarLike, Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace
    from livens.multibody.joint import Joint


def displacement_rate(
    a: Parametrisation, b: Parametrisation, q: Vector, v: Vector, X: Vector, Y: Vector, axis: Vector
) -> ScalarLike:
    """Return the rate of ``axis . (x_b - x_a)``, which is bilinear: at the midpoint of a step, its increment."""
    (qa, qb), (va, vb) = split_pair(a, q), split_pair(a, v)
    gap = b.point(qb, Y) - a.point(qa, X)
    rate = b.velocity(qb, vb, Y) - a.velocity(qa, va, X)
    rotation_rate = 0.0 if not len(qa) else m.dot(a.vector(va, axis), gap)
    return m.dot(a.vector(qa, axis), rate) + rotation_rate


@functools.cache
def screw(a: Parametrisation, b: Parametrisation) -> AngleRateConstraint:
    """Return the screw constraint: displacement rate equals pitch times angular rate."""

    def angles(q: Vector, k: ParameterNamespace) -> Any:
        return [angle_invariants(a, b, q, k.A, k.B)]

    def rates(w: Vector, q: Vector, v: Vector, k: ParameterNamespace) -> list[ScalarLike]:
        return [displacement_rate(a, b, q, v, k.X, k.Y, k.A[:, 2]) - k.pitch * w[0]]

    return angle_rate_constraint(angles, rates)


@dataclass(frozen=True)
class CouplingTerm:
    """Joint coordinate in a coupling: parametrisations of its bodies and indices of their coordinates."""

    a: Parametrisation
    b: Parametrisation
    indices_a: tuple[int, ...]
    indices_b: tuple[int, ...]
    is_angle: bool

    def coordinates(self, q: Vector) -> Vector:
        """Return the coordinates of both bodies."""
        return q[[*self.indices_a, *self.indices_b]]


@functools.cache
def coupling_constraint(terms: tuple[CouplingTerm, ...]) -> AngleRateConstraint | ModelFunction:
    """Return the coupling constraint; k has ``weight1, A1, B1`` of angles, ``weight1, X1, Y1, axis1`` of slides."""
    rotational_terms = [i for i, term in enumerate(terms) if term.is_angle]

    def angles(q: Vector, k: ParameterNamespace) -> Any:
        return [
            angle_invariants(terms[i].a, terms[i].b, terms[i].coordinates(q), getattr(k, f"A{i}"), getattr(k, f"B{i}"))
            for i in rotational_terms
        ]

    def slides(q: Vector, v: Vector, k: ParameterNamespace) -> ScalarLike:
        total: Any = 0.0
        for i, term in enumerate(terms):
            if not term.is_angle:
                geometry = [getattr(k, f"{name}{i}") for name in ("X", "Y", "axis")]
                rate = displacement_rate(term.a, term.b, term.coordinates(q), term.coordinates(v), *geometry)
                total = total + getattr(k, f"weight{i}") * rate
        return total

    def rates(w: Vector, q: Vector, v: Vector, k: ParameterNamespace) -> list[ScalarLike]:
        return [slides(q, v, k) + sum(getattr(k, f"weight{i}") * w[j] for j, i in enumerate(rotational_terms))]

    return angle_rate_constraint(angles, rates) if rotational_terms else lambda q, v, k: [slides(q, v, k)]


class Coupling:
    """Linear coupling of joint coordinates, with terms ``(joint, "angle" or "position", coefficient)``."""

    def __init__(self, name: str, coupling_type: str, terms: Sequence[tuple[Joint, str, float]]) -> None:
        self.name, self.coupling_type, self.terms = name, coupling_type, tuple(terms)
        self.coordinates = list(dict.fromkeys(str(c) for joint, _, _ in terms for c in joint.coordinates))
        index = {c: i for i, c in enumerate(self.coordinates)}
        constraint_terms: list[CouplingTerm] = []
        parameters: dict[str, Any] = {}
        for i, (joint, quantity, coefficient) in enumerate(terms):
            is_angle = quantity == "angle"
            indices_a = tuple(index[str(c)] for c in joint.body_a.coordinates)
            constraint_terms.append(
                CouplingTerm(
                    joint.a, joint.b, indices_a, tuple(index[str(c)] for c in joint.body_b.coordinates), is_angle
                )
            )
            parameters[f"weight{i}"] = float(coefficient)
            if is_angle:
                parameters |= {f"A{i}": joint.parameters["A"], f"B{i}": joint.parameters["B"]}
            else:
                parameters |= {f"X{i}": joint.parameters["X"], f"Y{i}": joint.parameters["Y"], f"axis{i}": joint.axis}
        self.element = Element(
            self.coordinates,
            velocity_constraints=coupling_constraint(tuple(constraint_terms)),
            parameters=parameters,
            name=name,
            constraint_names=[coupling_type],
        )
        self.element.joint = self

    def values(self, q: Vector) -> Any:
        """Return the joint coordinates of the terms.

        Parameters
        ----------
        q : array
            Coordinates of the coupling.

        Returns
        -------
        list of symbols
            Angles in (-pi, pi], in rad, and displacements in m.
        """
        index = {c: i for i, c in enumerate(self.coordinates)}
        values = []
        for joint, quantity, _ in self.terms:
            joint_coordinates = q[[index[str(c)] for c in joint.coordinates]]
            values.append(
                joint.angle(joint_coordinates) if quantity == "angle" else joint.displacement(joint_coordinates)
            )
        return values

    def violation(self, values: np.ndarray) -> np.ndarray:
        """Return the drift of the weighted sum since the initial time.

        Parameters
        ----------
        values : ndarray of shape (n_rows, n_terms)
            Joint coordinates over time, from `values`.

        Returns
        -------
        ndarray of shape (n_rows,)
            Weighted sum minus its initial value.
        """
        columns = [
            coefficient * (np.unwrap(column) if quantity == "angle" else column)
            for column, (_, quantity, coefficient) in zip(values.T, self.terms, strict=True)
        ]
        total = np.sum(columns, axis=0)
        return np.asarray(total - total[0])

    def __repr__(self) -> str:
        return f"<{self.coupling_type} {self.name}: {', '.join(joint.name for joint, _, _ in self.terms)}>"
