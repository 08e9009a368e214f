"""Controllers of a drawing: continuous ones, with an integral or without, and sampled ones."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from livens.errors import InputError
from livens.expressions.numbers import array, not_negative, number, positive
from livens.models.element import Element
from livens.multibody.drawn_forces import DrawnForces, constant
from livens.multibody.integrals import accumulator, error, integrating, steered
from livens.multibody.joint import Joint
from livens.multibody.sampled import Sampled, acting


class DrawnControl(DrawnForces):
    """The methods of `livens.Multibody` that steer joints."""

    def pd(
        self,
        joint: Joint,
        *,
        stiffness: float,
        damping: float = 0.0,
        angle: Any = 0.0,
        rate: Any = 0.0,
        feedforward: Any = 0.0,
        name: str = "",
    ) -> Element:
        """A motor that steers a joint to an angle (position) and a rate (speed), constants or functions of time:
        ``stiffness (target - angle) + damping (target rate - rate) + feedforward``.

        The error of an angle is taken within half a turn.
        """
        name = name or self._after(joint, "controller")
        what = "angle" if isinstance(joint, Joint) and joint.kind.angle else "slide"
        self._needs(name, joint, what)
        laws = _laws(name, angle=angle, rate=rate, feedforward=feedforward)
        gains = _gains(name, stiffness=stiffness, damping=damping)
        law = _steering(*laws, what == "angle")
        key = "torque" if what == "angle" else "force"
        return self.motor(joint, parameters=gains, name=name, **{key: law})

    def pid(
        self,
        joint: Joint,
        *,
        stiffness: float,
        integral: float,
        damping: float = 0.0,
        angle: Any = 0.0,
        rate: Any = 0.0,
        feedforward: Any = 0.0,
        name: str = "",
    ) -> Element:
        """As `pd`, and `integral` times the error summed up over time, which is shown as ``name.integral``.

        It acts at every instant and needs no samples. The error of an angle is taken within half a turn.
        """
        name = name or self._after(joint, "controller")
        turns = isinstance(joint, Joint) and joint.kind.angle
        self._needs(name, joint, "angle" if turns else "slide")
        target, *others = _laws(name, angle=angle, rate=rate, feedforward=feedforward)
        gains = _gains(name, stiffness=stiffness, damping=damping, integral=integral)
        self._new(name)
        body = accumulator(f"{name} integral")
        element = joint.acting(
            name,
            gains,
            more=body.coordinates,
            forces=steered(joint.a, joint.b, _steering(target, *others, turns), turns),
            velocity_constraints=integrating(joint.a, joint.b, target, turns),
            constraint_names=["integral"],
        )
        self._act(name, element)
        self._integrals[name] = body, "rad s" if turns else "m s"
        return self._in(joint, turns, element)

    def controller(
        self,
        name: str,
        *joints: Joint,
        every: float,
        law: Callable[..., Any],
        measure: Sequence[str] | str,
        state: Any = (),
    ) -> None:
        """A Python function that looks at the motion every so often and says what motors in joints do until then.

        ``law(t, measured)`` returns one torque or force for each joint; with a `state`, ``law(t, measured, state)``
        returns these and the new state, which is kept in the run and in its file. `measure` are names of quantities,
        such as ``"hinge.angle"``. What it says is shown as ``name.command``, of several joints ``name joint.command``.
        """
        self._new(name)
        if not joints:
            raise InputError(f"{name}: a controller needs at least one joint")
        if not callable(law):
            raise InputError(f"{name}: the law must be a function of time and of what is measured, got {law!r}")
        for joint in joints:
            turns = isinstance(joint, Joint) and joint.kind.angle
            self._needs(name, joint, "angle" if turns else "slide")
        wanted = (measure,) if isinstance(measure, str) else tuple(measure)
        names = [name] if len(joints) == 1 else [f"{name} {joint.name}" for joint in joints]
        elements = tuple(acting(joint, each) for joint, each in zip(joints, names, strict=True))
        units = tuple("N m" if joint.kind.angle else "N" for joint in joints)
        begin = np.atleast_1d(array(f"{name}: state", state)).ravel() if np.size(state) else np.zeros(0)
        period = positive(f"{name}: every", every)
        for each, element in zip(names, elements, strict=True):
            self._act(each, element)
        self._sampled[f"{name} controller" if len(joints) == 1 else name] = Sampled(
            name, period, law, elements, units, wanted, begin
        )


def _laws(name: str, **given: Any) -> list[Callable[..., Any]]:
    """Functions of time, some of them constant."""
    return [x if callable(x) else constant(number(f"{name}: the {word}", x)) for word, x in given.items()]


def _gains(name: str, **given: Any) -> dict[str, float]:
    return {word: not_negative(f"{name}: the {word}", x) for word, x in given.items()}


@functools.lru_cache(maxsize=256)
def _steering(target: Any, rate: Any, feedforward: Any, angle: bool) -> Callable[..., Any]:
    """A law of time, angle and rate, with gains in k."""

    def law(t: Any, now: Any, speed: Any, k: Any) -> Any:
        return k.stiffness * error(target(t) - now, angle) + k.damping * (rate(t) - speed) + feedforward(t)

    return law
