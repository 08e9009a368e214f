"""Joints between two bodies: constraint element and joint coordinates."""

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
    """Joint between two bodies; `lead` is the displacement of a screw per turn, in metres."""

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
        if lead is not None:  # screw: translation coupled to rotation
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
        """Return a force element on the coordinates of both bodies and `more`, with the joint geometry as parameters.

        Joint axes that are body axes, and local positions of zero, are constants: products by zero and one are not
        evaluated.
        """
        plain = {key: value for key, value in self.parameters.items() if np.isin(value, (-1.0, 0.0, 1.0)).all()}
        given = {key: value for key, value in self.parameters.items() if key not in plain} | parameters
        return Element((*self.coordinates, *more), parameters=given, constants=plain, name=name, **functions)

    # -- joint coordinates, functions of the coordinates of both bodies -----------------------------------------------
    def angle(self, q: Any) -> Any:
        """Return the joint angle relative to the reference configuration, in (-pi, pi]."""
        cosine, sine = turn(self.a, self.b, q, self.parameters["A"], self.parameters["B"])
        return m.atan2(sine, cosine)

    def rate(self, q: Any, v: Any) -> Any:
        return actuators.relative_rate(self.a, self.b, q, v, self.parameters["A"], self.parameters["B"])

    def position(self, q: Any) -> Any:
        """Return the joint displacement along the axis of the first body, from the reference configuration."""
        qa, qb = split(self.a, q)
        gap = self.b.point(qb, self.parameters["Y"]) - self.a.point(qa, self.parameters["X"])
        return m.dot(self.a.vector(qa, self.axis), gap)

    def speed(self, q: Any, v: Any) -> Any:
        """Return the rate of the displacement, for a point that stays on the joint axis."""
        (qa, qb), (va, vb) = split(self.a, q), split(self.a, v)
        gap = self.b.point(qb, self.parameters["Y"]) - self.a.point(qa, self.parameters["X"])
        rate = self.b.velocity(qb, vb, self.parameters["Y"]) - self.a.velocity(qa, va, self.parameters["X"])
        turning = 0.0 if not len(qa) else m.dot(self.a.vector(va, self.axis), gap)
        return m.dot(self.a.vector(qa, self.axis), rate) + turning

    @property
    def axis(self) -> np.ndarray:
        """Direction of sliding, in the axes of the first body."""
        return np.asarray(self.parameters["A"][:, 2 if self.a.dimension == 3 else 0])
