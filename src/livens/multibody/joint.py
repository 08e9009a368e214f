"""A joint of a mechanism: its constraints, and what it can be asked for by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from livens import math as m
from livens.models.element import Element
from livens.multibody import actuators, looks
from livens.multibody.connection import Connection, clean
from livens.multibody.couplings import screw
from livens.multibody.joint_table import Kind, Side, locked, split, turn
from livens.multibody.parts import Part


class Joint(Connection):
    """Two parts and a kind of joint between them; of a screw, `lead` is how far it goes in one turn."""

    def __init__(
        self,
        name: str,
        what: str,
        kind: Kind,
        first: Part,
        second: Part,
        places: tuple[Any, Any],
        axes: np.ndarray,
        lead: float | None = None,
    ) -> None:
        super().__init__(name, what, kind, first, second)
        levers = clean(first.lever(places[0])), clean(second.lever(places[1]))
        frames = clean(first.inwards(axes)), clean(second.inwards(axes))
        self.parameters = dict(X=levers[0], Y=levers[1], A=frames[0], B=frames[1])
        sides = Side.of(self.a, levers[0], frames[0]), Side.of(self.b, levers[1], frames[1])
        of_a = bool(kind.pairs) or len(kind.directions) < self.a.dimension
        given = sides[0].parameters(levers[0], frames[0], "XA", of_a)
        given |= sides[1].parameters(levers[1], frames[1], "YB", bool(kind.pairs))
        names, more = kind.names, dict[str, Any]()
        if lead is not None:  # turning moves it along
            given = self.parameters | given | dict(pitch=lead / (2 * np.pi))
            names, more = (*names, "screw"), dict(velocity_constraints=screw(self.a, self.b))
        self.element = Element(
            self.coordinates,
            constraints=locked(*sides, kind),
            parameters=given,
            name=name,
            constraint_names=names,
            look=looks.hinge(self.a, self.b, levers),
            **more,
        )

    def acting(self, name: str, parameters: dict[str, Any], more: Sequence[Any] = (), **functions: Any) -> Element:
        """An element on the coordinates of both parts (and `more` of them), which knows levers and axes.

        Axes of the joint that are axes of the body, and levers of length zero, are constants: what is multiplied by
        zeros and ones need not be computed.
        """
        plain = {key: value for key, value in self.parameters.items() if np.isin(value, (-1.0, 0.0, 1.0)).all()}
        given = {key: value for key, value in self.parameters.items() if key not in plain} | parameters
        return Element((*self.coordinates, *more), parameters=given, constants=plain, name=name, **functions)

    # -- what can be measured, from the coordinates of both parts -----------------------------------------------------
    def angle(self, q: Any) -> Any:
        """How far the second part is turned against the first from the drawn pose, within a turn."""
        cosine, sine = turn(self.a, self.b, q, self.parameters["A"], self.parameters["B"])
        return m.atan2(sine, cosine)

    def rate(self, q: Any, v: Any) -> Any:
        return actuators.relative_rate(self.a, self.b, q, v, self.parameters["A"], self.parameters["B"])

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
