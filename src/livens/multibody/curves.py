"""Constraints of a point to an implicit curve or surface of a body."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from livens import math as m
from livens.errors import InputError
from livens.expressions.read import ModelFunction
from livens.models.element import Element
from livens.multibody.connection import Connection, clean
from livens.multibody.joint_table import Kind, split
from livens.multibody.parts import Part
from livens.multibody.placement import Ground, Placement


@functools.cache
def _on(a: Placement, b: Placement, function: Callable[[Any], Any], count: int) -> ModelFunction:
    def constraints(q: Any, k: Any) -> Any:
        qa, qb = split(a, q)
        gap = b.point(qb, k.Y) - a.point(qa, k.X)
        if not isinstance(a, Ground):
            gap = m.array([m.dot(a.vector(qa, unit), gap) for unit in np.eye(a.dimension)])
        found = function(gap)
        return list(found) if isinstance(found, (list, tuple, np.ndarray)) else [found]

    return constraints


class OnCurve(Connection):
    """Point-on-implicit-curve or -surface constraint: functions of the relative position are zero."""

    def __init__(
        self,
        name: str,
        what: str,
        first: Part,
        second: Part,
        *,
        at: Any,
        origin: Any,
        function: Callable[[Any], Any],
        count: int,
    ) -> None:
        super().__init__(name, what, Kind((), axis=False), first, second)
        if not callable(function):
            raise InputError(f"{name}: a {what} needs a function of a point, got {function!r}")
        levers = clean(first.lever(origin)), clean(second.lever(at))
        self.parameters = dict(X=levers[0], Y=levers[1])
        found = np.ravel(function(np.array(second.position, dtype=float)))
        if len(found) != count:
            words = "one number" if count == 1 else f"{count} numbers"
            raise InputError(f"{name}: the function of a {what} must return {words}, got {len(found)}")
        self.element = Element(
            self.coordinates,
            constraints=_on(self.a, self.b, function, count),
            parameters=self.parameters,
            name=name,
            constraint_names=[f"on {i + 1}" for i in range(count)],
        )
