"""Sampled (discrete-time) controllers: actuated joints, measurement functions and command outputs."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from livens.errors import InputError, suggestion
from livens.models.controller import Controller
from livens.models.element import Element, InvariantForm
from livens.models.quantity import Quantity
from livens.models.system import System
from livens.multibody.inputs import Input
from livens.multibody.joint_forces import motor
from livens.multibody.parametrisation import Parametrisation
from livens.types import ModelFunction, ScalarLike

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace
    from livens.multibody.joint import Joint


@dataclass(frozen=True, eq=False)
class SampledController:
    """Definition of a sampled controller: its force elements, measured outputs and initial state."""

    name: str
    period: float
    law: ModelFunction
    #: Force elements of commanded joints, and commanded inputs, in the order of the commands.
    targets: tuple[Element | Input, ...]
    units: tuple[str, ...]
    inputs: tuple[str, ...]
    state: np.ndarray


@functools.cache
def held_force(a: Parametrisation, b: Parametrisation, rotational: bool) -> InvariantForm:
    """Return the force or torque that is held between samples (zero-order hold)."""
    return motor(a, b, _held_value, rotational)


def _held_value(t: ScalarLike, position: ScalarLike, speed: ScalarLike, k: ParameterNamespace) -> ScalarLike:
    return k.command


def command_element(joint: Joint, name: str) -> Element:
    """Return the force element of a sampled controller in one joint."""
    return joint.force_element(name, dict(command=0.0), forces=held_force(joint.a, joint.b, joint.joint_type.angle))


def register_controllers(system: System, definitions: Mapping[str, SampledController]) -> dict[str, Quantity]:
    """Register the command parameters and controllers of a system; return the outputs of the commands."""
    element_index = {id(element): i for i, element in enumerate(system.elements)}
    outputs: dict[str, Quantity] = {}
    controls: list[int] = []
    controllers = []
    for definition in definitions.values():
        control_indices: list[int] = []
        for target, unit in zip(definition.targets, definition.units, strict=True):
            if isinstance(target, Input):
                entries = _input_entries(system, definition, target)
                control_indices += range(len(controls), len(controls) + len(entries))
                controls += entries
                continue
            element = target
            control_indices.append(len(controls))
            controls.append(system.element_parameters[element_index[id(element)]][-1])
            description = f"command of {definition.name}"
            outputs[f"{element.name}.command"] = Quantity(
                description, unit, lambda *_: ca.SX(0), control_index=control_indices[-1]
            )
        measurement = measurement_function(system, definition)
        shapes = {name: system.quantities[name].shape for name in definition.inputs}
        measured = [name for name in definition.inputs for _ in range(int(np.prod(shapes[name], dtype=int)))]
        controllers.append(
            Controller(
                definition.name,
                definition.period,
                definition.law,
                measurement,
                tuple(control_indices),
                definition.state,
                tuple(i for i, name in enumerate(measured) if system.quantities[name].is_angle),
            )
        )
    system.control_indices, system.controllers = tuple(controls), tuple(controllers)
    return outputs


def _input_entries(system: System, definition: SampledController, target: Input) -> list[int]:
    """Return the entries of a commanded input in the parameter vector."""
    slices = system.inputs[target.name].value.slices if target.uses else ()
    if len(slices) != 1:
        raise InputError(
            f"{definition.name}: the input '{target.name}' is used by {len(slices)} force elements; a controller "
            "commands inputs of exactly one"
        )
    return list(range(slices[0].start, slices[0].stop))


def measurement_function(system: System, definition: SampledController) -> ca.Function:
    """Return the measurement function of ``(q, v, t, k)``; a run makes angles continuous over revolutions."""
    q, v, t = ca.SX.sym("q", system.n), ca.SX.sym("v", system.n), ca.SX.sym("t")
    lam, k = ca.SX.sym("lam", system.m), ca.SX.sym("k", system.parameter_count)
    components = []
    for name in definition.inputs:
        if name not in system.quantities:
            raise InputError(
                f"{definition.name}: there is no output '{name}' to measure{suggestion(name, system.quantities)}"
            )
        if system.quantities[name].from_multipliers:
            raise InputError(
                f"{definition.name}: '{name}' is a constraint force, which is unknown before the step is solved"
            )
        components.append(ca.vec(ca.densify(system.quantities[name].expression(q, v, lam, t, k))))
    return ca.Function("measured", [q, v, t, k], [ca.vertcat(*components) if components else ca.SX(0, 1)])
