"""Constraints of a point to an implicit curve or surface of a body."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from livens import math as m
from livens.errors import InputError
from livens.expressions.tracing import ModelFunction
from livens.models.element import Element
from livens.multibody.body import Body
from livens.multibody.body_constraint import BodyConstraint, snap_to_axes
from livens.multibody.joint_types import JointType, split_pair
from livens.multibody.parametrisation import GroundParametrisation, Parametrisation
from livens.types import FloatArray, Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


@functools.cache
def _implicit_constraint(a: Parametrisation, b: Parametrisation, function: ModelFunction, count: int) -> ModelFunction:
    def constraints(q: Vector, k: ParameterNamespace) -> Any:
        qa, qb = split_pair(a, q)
        gap = b.point(qb, k.Y) - a.point(qa, k.X)
        if not isinstance(a, GroundParametrisation):
            gap = m.array([m.dot(a.vector(qa, unit), gap) for unit in np.eye(a.dimension)])
        residual = function(gap)
        return list(residual) if isinstance(residual, (list, tuple, np.ndarray)) else [residual]

    return constraints


class PointOnImplicitSurface(BodyConstraint):
    """Point-on-implicit-curve or -surface constraint: functions of the relative position are zero."""

    def __init__(
        self,
        name: str,
        type_name: str,
        body_a: Body,
        body_b: Body,
        *,
        at: FloatArray,
        origin: FloatArray,
        function: ModelFunction,
        count: int,
    ) -> None:
        super().__init__(name, type_name, JointType((), axis=False), body_a, body_b)
        if not callable(function):
            raise InputError(f"{name}: a {type_name} needs a function of a point, got {function!r}")
        local_positions = snap_to_axes(body_a.to_local(origin)), snap_to_axes(body_b.to_local(at))
        self.parameters = dict(X=local_positions[0], Y=local_positions[1])
        values = np.ravel(function(np.array(body_b.reference_position, dtype=float)))
        if len(values) != count:
            expected = "one number" if count == 1 else f"{count} numbers"
            raise InputError(f"{name}: the function of a {type_name} must return {expected}, got {len(values)}")
        self.element = Element(
            self.coordinates,
            constraints=_implicit_constraint(self.a, self.b, function, count),
            parameters=self.parameters,
            name=name,
            constraint_names=[f"on {i + 1}" for i in range(count)],
        )
