"""Builder methods for controllers: PD, PID, and sampled controllers."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from livens.errors import InputError
from livens.models.element import Element
from livens.multibody.builder.forces import ForceMethods
from livens.multibody.inputs import Input, Law, TimeLaw, time_law
from livens.multibody.joint import Joint
from livens.multibody.joint_forces import ZERO_BRANCH
from livens.multibody.pid import ControllerState, integrator_body, integrator_constraint, pid_force
from livens.multibody.sampled_controller import SampledController, command_element
from livens.types import ModelFunction
from livens.validation import check_arguments, check_array, check_nonnegative, check_positive

if TYPE_CHECKING:
    pass


class ControlMethods(ForceMethods):
    """Methods of `livens.Multibody` that add controllers of joints."""

    def pd(
        self,
        joint: Joint,
        *,
        kp: float,
        kd: float = 0.0,
        reference: ModelFunction | float = 0.0,
        reference_rate: ModelFunction | float = 0.0,
        feedforward: ModelFunction | float = 0.0,
        name: str = "",
    ) -> Element:
        """Add a PD controller of a joint: ``kp (reference - angle) + kd (reference_rate - rate) + feedforward``.

        Angles are continuous over revolutions. The result is ``name.torque`` (N m) or ``name.force`` (N).

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
        name = name or self._default_name(joint, "controller")
        coordinate = "angle" if isinstance(joint, Joint) and joint.joint_type.angle else "slide"
        self._require_coordinate(name, joint, coordinate)
        laws = _time_laws(name, reference=reference, reference_rate=reference_rate, feedforward=feedforward)
        gains = dict(stiffness=_gain(name, "proportional gain kp", kp), damping=_gain(name, "derivative gain kd", kd))
        law = _pd_law(*(timed.function for timed in laws))
        key = "torque" if coordinate == "angle" else "force"
        parameters = functools.reduce(operator.or_, (timed.parameters for timed in laws), gains)
        element = self.motor(joint, parameters=parameters, name=name, **{key: law})
        for timed in laws:
            self._register_inputs(element, timed.inputs)
        return element

    def pid(
        self,
        joint: Joint,
        *,
        kp: float,
        ki: float,
        kd: float = 0.0,
        reference: object = 0.0,
        reference_rate: object = 0.0,
        feedforward: object = 0.0,
        name: str = "",
    ) -> Element:
        """Add a PID controller of a joint, in continuous time: that of `pd` plus `ki` times the integrated error.

        Angles are continuous over revolutions. Results: ``name.integral`` (rad s or m s), and ``name.torque``
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
        name = name or self._default_name(joint, "controller")
        rotational = isinstance(joint, Joint) and joint.joint_type.angle
        self._require_coordinate(name, joint, "angle" if rotational else "slide")
        laws = _time_laws(name, reference=reference, reference_rate=reference_rate, feedforward=feedforward)
        functions = [timed.function for timed in laws]
        gains: dict[str, Any] = dict(
            stiffness=_gain(name, "proportional gain kp", kp),
            damping=_gain(name, "derivative gain kd", kd),
            integral=_gain(name, "integral gain ki", ki),
        )
        parameters = functools.reduce(operator.or_, (timed.parameters for timed in laws), gains)
        if rotational:
            parameters["angle_branch"] = ZERO_BRANCH
        self._claim_name(name)
        body = integrator_body(f"{name} integral")
        element = joint.force_element(
            name,
            parameters,
            extra_coordinates=body.coordinates,
            forces=pid_force(joint.a, joint.b, _pd_law(*functions), rotational),
            velocity_constraints=integrator_constraint(joint.a, joint.b, functions[0], rotational),
            constraint_names=["integral"],
        )
        self._add_force_element(name, element)
        for timed in laws:
            self._register_inputs(element, timed.inputs)
        self._integrator_states[name] = ControllerState(body, "integral", "rad s" if rotational else "m s")
        return self._register_joint_output(joint, rotational, element)

    def sampled_controller(
        self,
        name: str,
        *joints: Joint | Input,
        period: float,
        law: ModelFunction,
        inputs: Sequence[str] | str,
        state: Any = (),
    ) -> None:
        """Add a sampled (discrete-time) controller: a Python function with zero-order hold.

        The result is ``name.command``; with several joints ``name joint.command``.

        Parameters
        ----------
        name : str
            Name of the controller.
        *joints : Joint or Input
            Actuated joints, each with an angle or a displacement, or inputs: of wrenches on bodies, motors or drives.
        period : float
            Sampling period in s.
        law : callable
            Control law ``law(t, measured)`` that returns one torque (N m) or force (N) per joint, and the values of
            inputs, one after another. With `state`,
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
        self._claim_name(name)
        if not joints:
            raise InputError(f"{name}: a controller needs at least one joint")
        if not callable(law):
            raise InputError(f"{name}: the law must be a function of time and of the measured values, got {law!r}")
        arguments = ("t", "measured", "state") if np.size(state) else ("t", "measured")
        check_arguments(f"{name}: the law", law, arguments)
        for joint in joints:
            if isinstance(joint, Input):
                if self._inputs.get(joint.name) is not joint:
                    raise InputError(f"{name}: {joint!r} is not an input of this mechanism")
                continue
            rotational = isinstance(joint, Joint) and joint.joint_type.angle
            self._require_coordinate(name, joint, "angle" if rotational else "slide")
        input_names = (inputs,) if isinstance(inputs, str) else tuple(inputs)
        targets = tuple(
            joint
            if isinstance(joint, Input)
            else command_element(joint, name if len(joints) == 1 else f"{name} {joint.name}")
            for joint in joints
        )
        units = tuple("" if isinstance(j, Input) else "N m" if j.joint_type.angle else "N" for j in joints)
        initial_state = np.atleast_1d(check_array(f"{name}: state", state)).ravel() if np.size(state) else np.zeros(0)
        checked_period = check_positive(f"{name}: every", period)
        for target in targets:
            if isinstance(target, Element):
                self._add_force_element(target.name, target)
        is_element = len(joints) == 1 and isinstance(targets[0], Element)  # the element has the name of the controller
        self._sampled_controllers[f"{name} controller" if is_element else name] = SampledController(
            name, checked_period, law, targets, units, input_names, initial_state
        )


def _time_laws(name: str, **values: object) -> list[TimeLaw]:
    """Return numbers, functions of time and inputs as laws; their parameters have the names of the arguments."""
    return [time_law(f"{name}: the {argument}", value, argument) for argument, value in values.items()]


def _gain(name: str, argument: str, value: float | str) -> float:
    return check_nonnegative(f"{name}: the {argument}", value)


@functools.lru_cache(maxsize=256)
def _pd_law(reference: Law, reference_rate: Law, feedforward: Law) -> Law:
    """Return the PD law, a function of time, joint coordinate, rate and parameters, with gains in k."""

    def law(t: Any, position: Any, rate: Any, k: Any) -> Any:
        return (
            k.stiffness * (reference(t, k) - position) + k.damping * (reference_rate(t, k) - rate) + feedforward(t, k)
        )

    return law
