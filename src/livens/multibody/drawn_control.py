"""Builder methods for controllers: PD, PID, and sampled controllers."""

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
    """Methods of `livens.Multibody` that add controllers of joints."""

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
        """Add a PD controller of a joint: ``kp (reference - angle) + kd (reference_rate - rate) + feedforward``.

        The error of an angle is within half a turn. The result is ``name.torque`` (N m) or ``name.force`` (N).

        Parameters
        ----------
        joint : Joint
            Controlled joint, with an angle or a displacement.
        kp : float
            Proportional gain in N m/rad or N/m.
        kd : float, default 0
            Derivative gain in N m s/rad or N s/m.
        reference : float or callable, default 0
            Reference angle in rad or displacement in m; a constant or a function of time.
        reference_rate : float or callable, default 0
            Reference rate in rad/s or m/s; a constant or a function of time.
        feedforward : float or callable, default 0
            Feedforward torque in N m or force in N; a constant or a function of time.
        name : str, optional
            Name of the controller; by default that of the joint, followed by "controller".

        Returns
        -------
        Element
            Force element.
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
        """Add a PID controller of a joint, in continuous time: that of `pd` plus `ki` times the integrated error.

        The error of an angle is within half a turn. Results: ``name.integral`` (rad s or m s), and ``name.torque``
        (N m) or ``name.force`` (N).

        Parameters
        ----------
        joint : Joint
            Controlled joint, with an angle or a displacement.
        kp : float
            Proportional gain in N m/rad or N/m.
        ki : float
            Integral gain in N m/(rad s) or N/(m s).
        kd : float, default 0
            Derivative gain in N m s/rad or N s/m.
        reference : float or callable, default 0
            Reference angle in rad or displacement in m; a constant or a function of time.
        reference_rate : float or callable, default 0
            Reference rate in rad/s or m/s; a constant or a function of time.
        feedforward : float or callable, default 0
            Feedforward torque in N m or force in N; a constant or a function of time.
        name : str, optional
            Name of the controller; by default that of the joint, followed by "controller".

        Returns
        -------
        Element
            Force element.
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
        """Add a sampled (discrete-time) controller: a Python function with zero-order hold.

        The result is ``name.command``; with several joints ``name joint.command``.

        Parameters
        ----------
        name : str
            Name of the controller.
        *joints : Joint
            Actuated joints, each with an angle or a displacement.
        period : float
            Sampling period in s.
        law : callable
            Control law ``law(t, measured)`` that returns one torque (N m) or force (N) per joint. With `state`,
            ``law(t, measured, state)`` returns the commands and the new state.
        inputs : str or sequence of str
            Names of the measured outputs, such as ``"hinge.angle"``.
        state : array_like, optional
            Initial controller state; it is stored in the run and in its file.

        Raises
        ------
        InputError
            If there is no joint, a joint has no single coordinate, or `law` is not a function.
        """
        self._new(name)
        if not joints:
            raise InputError(f"{name}: a controller needs at least one joint")
        if not callable(law):
            raise InputError(f"{name}: the law must be a function of time and of the measured values, got {law!r}")
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
    """Return functions of time; numbers become constant functions."""
    return [x if callable(x) else constant(number(f"{name}: the {word}", x)) for word, x in given.items()]


def _gains(name: str, **given: Any) -> dict[str, float]:
    return {word: not_negative(f"{name}: the {word}", x) for word, x in given.items()}


@functools.lru_cache(maxsize=256)
def _steering(target: Any, rate: Any, feedforward: Any, angle: bool) -> Callable[..., Any]:
    """Return the PD law, a function of time, joint coordinate and rate, with gains in k."""

    def law(t: Any, now: Any, speed: Any, k: Any) -> Any:
        return k.stiffness * error(target(t) - now, angle) + k.damping * (rate(t) - speed) + feedforward(t)

    return law
