"""Forces of a drawing: springs, dampers, motors, drives, loads."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from livens import math as m
from livens.errors import InputError
from livens.expressions.numbers import array, not_negative, number
from livens.models.element import Element
from livens.multibody import actuators, forces, loads
from livens.multibody.drawing import Drawing
from livens.multibody.joint import Joint
from livens.multibody.parts import Part, point_in_space


class DrawnForces(Drawing):
    """The methods of `livens.Multibody` that let forces act."""

    def spring(self, name: str, first: Any, second: Any, *, stiffness: float, length: float | None = None) -> Element:
        """A spring between two points; relaxed as it is drawn, unless a length is given."""
        ends = self._end(name, first), self._end(name, second)
        return self._act(name, forces.spring(*ends, stiffness, self._drawn_length(first, second, length)))

    def damper(self, name: str, first: Any, second: Any, *, viscosity: float) -> Element:
        """A damper between two points, along the line through both."""
        return self._act(name, forces.damper(self._end(name, first), self._end(name, second), viscosity))

    def spring_damper(
        self, name: str, first: Any, second: Any, *, stiffness: float, viscosity: float, length: float | None = None
    ) -> tuple[Element, Element]:
        """Both between the same two points; the damper is called ``name damper``."""
        spring = self.spring(name, first, second, stiffness=stiffness, length=length)
        return spring, self.damper(f"{name} damper", first, second, viscosity=viscosity)

    def torsion_spring(self, name: str, joint: Joint, *, stiffness: float, rest: float = 0.0) -> Element:
        """A spring against the angle of a joint, within half a turn of its rest."""
        given = dict(stiffness=not_negative(f"{name}: the stiffness", stiffness), rest=number(f"{name}: rest", rest))
        self._needs(name, joint, "angle")
        return self._act(name, joint.acting(name, given, potential=actuators.torsion(joint.a, joint.b)))

    def torsion_damper(self, name: str, joint: Joint, *, viscosity: float) -> Element:
        """A damper against the rate of a joint."""
        given = dict(viscosity=not_negative(f"{name}: the viscosity", viscosity))
        self._needs(name, joint, "angle")
        return self._act(name, joint.acting(name, given, dissipation=actuators.turning_damper(joint.a, joint.b)))

    def motor(
        self,
        joint: Joint,
        *,
        torque: Any = None,
        force: Any = None,
        parameters: Mapping[str, Any] | None = None,
        name: str = "",
    ) -> Element:
        """A torque in a joint that turns, or a force in one that slides, on both bodies.

        It is a number or a law of time, angle and rate (position and speed), ``law(t, angle, rate)``, and of `k` if
        there are parameters. The angle is that within half a turn of the drawn pose.
        """
        if (torque is None) == (force is None):
            raise InputError("a motor has either a torque or a force")
        name = name or f"{joint.name} motor"
        self._needs(name, joint, "angle" if torque is not None else "slide")
        given = torque if torque is not None else force
        law = given if callable(given) else _constant(number(f"{name}: the law", given))
        make = actuators.motor if torque is not None else actuators.pusher
        acting = make(joint.a, joint.b, law, bool(parameters))
        return self._act(name, joint.acting(name, dict(parameters or {}), forces=acting))

    def drive(self, joint: Joint, *, angle: Callable[[Any], Any], name: str = "") -> Element:
        """The angle of a joint is a function of time."""
        name = name or f"{joint.name} drive"
        self._needs(name, joint, "angle")
        law = actuators.drive(joint.a, joint.b, angle)
        return self._act(name, joint.acting(name, {}, constraints=law, constraint_names=["angle"]))

    def wrench(
        self, name: str, body: Part, *, force: Any = None, torque: Any = None, at: Any = None, frame: str = "space"
    ) -> None:
        """A force at a point (by default the centre) and a torque on a body: constant, or functions of time."""
        self._known(name, body)
        if body.element is None or (force is None and torque is None):
            raise InputError(f"{name}: a wrench is a force or a torque on a body")
        if force is not None:
            law = force if callable(force) else _constant(array(f"{name}: force", force, (self.dimension,)))
            place = None if at is None else body.lever(point_in_space(name, at, self.dimension))
            self._act(name, loads.force(body.element, law, at=place, frame=frame))
        if torque is not None:
            law = torque if callable(torque) else _constant(np.atleast_1d(array(f"{name}: torque", torque)))
            self._act(name if force is None else f"{name} torque", loads.torque(body.element, law))

    def observe(self, name: str, expression: Callable[..., Any]) -> None:
        """A quantity of your own: a function of q and v of the whole system, shown as ``run[name]``."""
        self._observed[name] = expression


@functools.lru_cache(maxsize=256)
def _same(values: tuple[float, ...], scalar: bool) -> Callable[..., Any]:
    return lambda *_: values[0] if scalar else m.array(list(values))


def _constant(value: Any) -> Callable[..., Any]:
    """A law that always says the same; equal ones are one function, so that elements share their code."""
    return _same(tuple(np.atleast_1d(value).tolist()), np.ndim(value) == 0)
