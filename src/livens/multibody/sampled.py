"""Sampled (discrete-time) controllers: actuated joints, measurement functions and command outputs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from livens.errors import InputError, suggestion
from livens.models.controller import Controller
from livens.models.element import Element, Through
from livens.models.quantity import Quantity
from livens.models.system import System
from livens.multibody.actuators import motor
from livens.multibody.placement import Placement

if TYPE_CHECKING:
    from livens.multibody.joint import Joint


@dataclass(frozen=True, eq=False)
class Sampled:
    """Definition of a sampled controller: its force elements, measured outputs and initial state."""

    name: str
    every: float
    law: Callable[..., Any]
    elements: tuple[Element, ...]
    units: tuple[str, ...]
    measure: tuple[str, ...]
    state: np.ndarray


@functools.cache
def commanded(a: Placement, b: Placement, angle: bool) -> Through:
    """Return the force or torque that is held between samples (zero-order hold)."""
    return motor(a, b, _command, True, angle)


def _command(t: Any, position: Any, speed: Any, k: Any) -> Any:
    return k.command


def acting(joint: Joint, name: str) -> Element:
    """Return the force element of a sampled controller in one joint."""
    return joint.acting(name, dict(command=0.0), forces=commanded(joint.a, joint.b, joint.kind.angle))


def connect(system: System, drawn: Mapping[str, Sampled]) -> dict[str, Quantity]:
    """Register the command parameters and controllers of a system; return the outputs of the commands."""
    numbers = {id(element): i for i, element in enumerate(system.elements)}
    shown: dict[str, Quantity] = {}
    controls: list[int] = []
    controllers = []
    for one in drawn.values():
        places = []
        for element, unit in zip(one.elements, one.units, strict=True):
            places.append(len(controls))
            controls.append(system.parameter_indices[numbers[id(element)]][-1])
            words = f"command of {one.name}"
            shown[f"{element.name}.command"] = Quantity(words, unit, lambda *_: ca.SX(0), command=places[-1])
        measure = measuring(system, one)
        controllers.append(Controller(one.name, one.every, one.law, measure, tuple(places), one.state))
    system.controls, system.controllers = tuple(controls), tuple(controllers)
    return shown


def measuring(system: System, one: Sampled) -> ca.Function:
    """Return the measurement function of ``(q, v, t, k)``; angles are within half a turn of the reference."""
    q, v, t = ca.SX.sym("q", system.n), ca.SX.sym("v", system.n), ca.SX.sym("t")
    lam, k = ca.SX.sym("lam", system.m), ca.SX.sym("k", system.parameter_count)
    found = []
    for name in one.measure:
        if name not in system.quantities:
            raise InputError(f"{one.name}: there is no output '{name}' to measure{suggestion(name, system.quantities)}")
        if system.quantities[name].force:
            raise InputError(f"{one.name}: '{name}' is a constraint force, which is unknown before the step is solved")
        found.append(ca.vec(ca.densify(system.quantities[name].expression(q, v, lam, t, k))))
    return ca.Function("measured", [q, v, t, k], [ca.vertcat(*found) if found else ca.SX(0, 1)])
