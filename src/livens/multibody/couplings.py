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
from livens.expressions.read import ModelFunction
from livens.models.element import Element
from livens.models.rates import Turning, turning
from livens.multibody.joint_table import split, turn
from livens.multibody.placement import Placement

if TYPE_CHECKING:
    from livens.multibody.joint import Joint


def slide_rate(a: Placement, b: Placement, q: Any, v: Any, X: Any, Y: Any, axis: Any) -> Any:
    """Return the rate of ``axis . (x_b - x_a)``, which is bilinear: at the midpoint of a step, its increment."""
    (qa, qb), (va, vb) = split(a, q), split(a, v)
    gap = b.point(qb, Y) - a.point(qa, X)
    rate = b.velocity(qb, vb, Y) - a.velocity(qa, va, X)
    turned = 0.0 if not len(qa) else m.dot(a.vector(va, axis), gap)
    return m.dot(a.vector(qa, axis), rate) + turned


@functools.cache
def screw(a: Placement, b: Placement) -> Turning:
    """Return the screw constraint: displacement rate equals pitch times angular rate."""

    def angles(q: Any, k: Any) -> Any:
        return list(turn(a, b, q, k.A, k.B))

    def rates(w: Any, q: Any, v: Any, k: Any) -> Any:
        return [slide_rate(a, b, q, v, k.X, k.Y, k.A[:, 2]) - k.pitch * w[0]]

    return turning(angles, rates)


@dataclass(frozen=True)
class Term:
    """Joint coordinate in a coupling: parametrisations of its bodies and indices of their coordinates."""

    a: Placement
    b: Placement
    first: tuple[int, ...]
    second: tuple[int, ...]
    angle: bool

    def of(self, q: Any) -> Any:
        """Return the coordinates of both bodies."""
        return q[[*self.first, *self.second]]


@functools.cache
def coupled(terms: tuple[Term, ...]) -> Turning | ModelFunction:
    """Return the coupling constraint; k has ``weight1, A1, B1`` of angles, ``weight1, X1, Y1, axis1`` of slides."""
    turns = [i for i, term in enumerate(terms) if term.angle]

    def angles(q: Any, k: Any) -> Any:
        return [
            value
            for i in turns
            for value in turn(terms[i].a, terms[i].b, terms[i].of(q), getattr(k, f"A{i}"), getattr(k, f"B{i}"))
        ]

    def slides(q: Any, v: Any, k: Any) -> Any:
        total: Any = 0.0
        for i, term in enumerate(terms):
            if not term.angle:
                where = [getattr(k, f"{name}{i}") for name in ("X", "Y", "axis")]
                rate = slide_rate(term.a, term.b, term.of(q), term.of(v), *where)
                total = total + getattr(k, f"weight{i}") * rate
        return total

    def rates(w: Any, q: Any, v: Any, k: Any) -> Any:
        return [slides(q, v, k) + sum(getattr(k, f"weight{i}") * w[j] for j, i in enumerate(turns))]

    return turning(angles, rates) if turns else lambda q, v, k: [slides(q, v, k)]


class Coupling:
    """Linear coupling of joint coordinates, with terms ``(joint, "angle" or "position", coefficient)``."""

    def __init__(self, name: str, what: str, members: Sequence[tuple[Joint, str, float]]) -> None:
        self.name, self.what, self.members = name, what, tuple(members)
        self.coordinates = list(dict.fromkeys(str(c) for joint, _, _ in members for c in joint.coordinates))
        place = {c: i for i, c in enumerate(self.coordinates)}
        terms: list[Term] = []
        given: dict[str, Any] = {}
        for i, (joint, quantity, weight) in enumerate(members):
            angle = quantity == "angle"
            first = tuple(place[str(c)] for c in joint.first.coordinates)
            terms.append(Term(joint.a, joint.b, first, tuple(place[str(c)] for c in joint.second.coordinates), angle))
            given[f"weight{i}"] = float(weight)
            if angle:
                given |= {f"A{i}": joint.parameters["A"], f"B{i}": joint.parameters["B"]}
            else:
                given |= {f"X{i}": joint.parameters["X"], f"Y{i}": joint.parameters["Y"], f"axis{i}": joint.axis}
        self.element = Element(
            self.coordinates,
            velocity_constraints=coupled(tuple(terms)),
            parameters=given,
            name=name,
            constraint_names=[what],
        )

    def values(self, q: Any) -> Any:
        """Return the angles, in (-pi, pi], and displacements of the joints from the coordinates of the coupling."""
        place = {c: i for i, c in enumerate(self.coordinates)}
        found = []
        for joint, quantity, _ in self.members:
            own = q[[place[str(c)] for c in joint.coordinates]]
            found.append(joint.angle(own) if quantity == "angle" else joint.position(own))
        return found

    def violation(self, values: np.ndarray) -> np.ndarray:
        """Return the drift of the weighted sum since the initial time, from a table of `values` over time."""
        columns = [
            weight * (np.unwrap(column) if quantity == "angle" else column)
            for column, (_, quantity, weight) in zip(values.T, self.members, strict=True)
        ]
        total = np.sum(columns, axis=0)
        return np.asarray(total - total[0])

    def __repr__(self) -> str:
        return f"<{self.what} {self.name}: {', '.join(joint.name for joint, _, _ in self.members)}>"
