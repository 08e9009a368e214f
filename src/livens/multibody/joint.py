"""A joint of a mechanism: its constraints, and what it can be asked for by name."""

from __future__ import annotations

from typing import Any

import numpy as np

from livens import math as m
from livens.models.element import Element
from livens.multibody import actuators
from livens.multibody.joint_table import Kind, Side, locked, split, turn
from livens.multibody.parts import Part


def clean(values: np.ndarray) -> np.ndarray:
    """Numbers that rounding left beside zero and one are zero and one."""
    size = max(1.0, float(np.abs(values).max(initial=0.0)))
    found = np.where(np.abs(values) < 1e-15 * size, 0.0, values)
    return np.where(np.abs(np.abs(found) - 1.0) < 1e-15, np.sign(found), found)


class Joint:
    """Two parts and a kind of joint between them; forces and torques are those on the second part."""

    def __init__(
        self, name: str, what: str, kind: Kind, first: Part, second: Part, places: tuple[Any, Any], axes: np.ndarray
    ) -> None:
        self.name, self.what, self.kind, self.first, self.second = name, what, kind, first, second
        self.a, self.b = first.placement, second.placement
        self.coordinates = [*first.coordinates, *second.coordinates]
        levers = clean(first.lever(places[0])), clean(second.lever(places[1]))
        frames = clean(first.inwards(axes)), clean(second.inwards(axes))
        self.parameters = dict(X=levers[0], Y=levers[1], A=frames[0], B=frames[1])
        sides = Side.of(self.a, levers[0], frames[0]), Side.of(self.b, levers[1], frames[1])
        of_a = bool(kind.pairs) or len(kind.directions) < self.a.dimension
        given = sides[0].parameters(levers[0], frames[0], "XA", of_a)
        given |= sides[1].parameters(levers[1], frames[1], "YB", bool(kind.pairs))
        self.element = Element(
            self.coordinates,
            constraints=locked(*sides, kind),
            parameters=given,
            name=name,
            constraint_names=kind.names,
        )

    def acting(self, name: str, parameters: dict[str, Any], **functions: Any) -> Element:
        """An element on the coordinates of both parts, which knows levers and axes."""
        return Element(self.coordinates, parameters=self.parameters | parameters, name=name, **functions)

    # -- what can be measured, from the coordinates of both parts -----------------------------------------------------
    def angle(self, q: Any) -> Any:
        """How far the second part is turned against the first from the drawn pose, within a turn."""
        cosine, sine = turn(self.a, self.b, q, self.parameters["A"], self.parameters["B"])
        return m.atan2(sine, cosine)

    def rate(self, q: Any, v: Any) -> Any:
        return actuators.relative_rate(self.a, self.b, q, v, self.parameters["A"])

    def position(self, q: Any) -> Any:
        """How far the second part has moved along the axis of the first from the drawn pose."""
        qa, qb = split(self.a, q)
        gap = self.b.point(qb, self.parameters["Y"]) - self.a.point(qa, self.parameters["X"])
        return m.dot(self.a.vector(qa, self.axis), gap)

    def speed(self, q: Any, v: Any) -> Any:
        """The rate of `position`, for a joint whose axis the point stays on."""
        (qa, qb), (va, vb) = split(self.a, q), split(self.a, v)
        gap = self.b.point(qb, self.parameters["Y"]) - self.a.point(qa, self.parameters["X"])
        rate = self.b.velocity(qb, vb, self.parameters["Y"]) - self.a.velocity(qa, va, self.parameters["X"])
        turning = 0.0 if not len(qa) else m.dot(self.a.vector(va, self.axis), gap)
        return m.dot(self.a.vector(qa, self.axis), rate) + turning

    @property
    def axis(self) -> np.ndarray:
        """The direction of sliding, in the axes of the first part."""
        return np.asarray(self.parameters["A"][:, 2 if self.a.dimension == 3 else 0])

    def __repr__(self) -> str:
        return f"<{self.what} {self.name}: {self.first.name}-{self.second.name}>"
