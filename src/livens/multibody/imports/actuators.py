"""Actuators of robot descriptions as motors of joints and fixed tendons, with their controls as inputs."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from livens import math as m
from livens.models.element import Element
from livens.multibody.activations import activation_constraint
from livens.multibody.fixed_tendons import FixedTendon, tendon_motor
from livens.multibody.imports.robot_description import Actuator
from livens.multibody.imports.tendons import add_tendon_element
from livens.multibody.inputs import Input, Law, held_value
from livens.multibody.pid import ControllerState, integrator_body

if TYPE_CHECKING:
    from livens.multibody.imports.to_multibody import MultibodyBuilder


def add_actuator(builder: MultibodyBuilder, actuator: Actuator) -> None:
    """Add an actuator as a motor whose control is an input of the same name."""
    mb = builder.mb
    if not actuator.terms and actuator.joint in builder.non_scalar_joints:
        if any(actuator.bias):
            actuator.node.refuse("an actuator with a bias force is only supported on a joint with one coordinate")
        else:
            builder.robot.notes.append(f"the actuator '{actuator.name}' is not imported: its joint has several axes")
        return
    name = builder.unique_name(actuator.name, "actuator")
    control = Input(name, np.array(0.0))
    parameters: dict[str, Any] = control.parameters("command") | dict(
        gain=np.array(actuator.gain), bias=np.array(actuator.bias), gear=actuator.gear, offset=actuator.offset
    )
    if actuator.control_range is not None:
        parameters["control_range"] = np.array(actuator.control_range)
    if actuator.force_range is not None:
        parameters["force_range"] = np.array(actuator.force_range)
    has_bias, has_affine_gain = any(actuator.bias), any(actuator.gain[1:])
    force = force_law(has_bias, has_affine_gain, actuator.force_range is not None)
    command = control_law(actuator.control_range is not None)
    terms = [
        (builder.scalar_joint(joint, actuator.node, "an actuator"), weight)
        for joint, weight in actuator.terms or ((actuator.joint, 1.0),)
    ]
    if not actuator.terms and actuator.activation_type == "none":
        joint = terms[0][0]
        key = "torque" if joint.joint_type.angle else "force"
        element = mb.motor(joint, name=name, parameters=parameters, **{key: direct_law(command, force)})
    elif actuator.activation_type == "none":
        tendon = FixedTendon(terms)
        forces = tendon_motor(tendon.terms, direct_law(command, force))
        element = add_tendon_element(mb, name, tendon, parameters, forces=forces)
    else:
        element = _add_activated_motor(builder, actuator, name, FixedTendon(terms), parameters, command, force)
    control.uses.append((element, "command"))
    mb._inputs[control.name] = control
    builder.control_names[actuator.name] = control.name


def _add_activated_motor(
    builder: MultibodyBuilder,
    actuator: Actuator,
    name: str,
    tendon: FixedTendon,
    parameters: dict[str, Any],
    command: Law,
    force: Law,
) -> Element:
    """Add a force on the length of a tendon that is proportional to an activation state."""
    state = ControllerState(integrator_body(f"{name} activation"), "activation", "")
    limits = actuator.activation_range
    parameters |= {} if limits is None else {"activation_range": np.array(limits)}
    if actuator.activation_type == "filter":
        parameters["time_constant"] = actuator.time_constant
    element = add_tendon_element(
        builder.mb,
        name,
        tendon,
        parameters,
        extra_coordinates=[str(c) for c in state.body.coordinates],
        forces=tendon_motor(tendon.terms, activated_law(force), has_state=True),
        velocity_constraints=activation_constraint(actuator.activation_type, command, limits is not None),
        constraint_names=["activation"],
    )
    builder.mb._integrator_states[name] = builder.activations[actuator.name] = state
    return element


@functools.cache
def control_law(limits_control: bool) -> Law:
    """Return the control, a function of time and parameters, within its range."""
    held = held_value("command")
    if not limits_control:
        return held
    return lambda t, k: m.clip(held(t, k), k.control_range[0], k.control_range[1])


@functools.cache
def force_law(has_bias: bool, has_affine_gain: bool, limits_force: bool) -> Law:
    """Return the force of an actuator, a function of ``(control, position, rate, k)``; see `Actuator`."""

    def force(control: Any, position: Any, rate: Any, k: Any) -> Any:
        length, speed = k.gear * (position + k.offset), k.gear * rate
        gain = k.gain[0]
        if has_affine_gain:
            gain = gain + k.gain[1] * length + k.gain[2] * speed
        value = gain * control
        if has_bias:
            value = value + k.bias[0] + k.bias[1] * length + k.bias[2] * speed
        if limits_force:
            value = m.clip(value, k.force_range[0], k.force_range[1])
        return k.gear * value

    return force


@functools.cache
def direct_law(command: Law, force: Law) -> Law:
    """Return the force as a function of ``(t, position, rate, k)``, without an activation state."""
    return lambda t, position, rate, k: force(command(t, k), position, rate, k)


@functools.cache
def activated_law(force: Law) -> Law:
    """Return the force as a function of ``(t, position, rate, k, activation)``."""
    return lambda t, position, rate, k, activation: force(activation, position, rate, k)
