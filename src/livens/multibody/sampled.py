"""Sampled controllers of a drawing: which joints they drive, what they measure."""

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
    """A controller as it is drawn: the elements that act on its joints, and what it looks at."""

    name: str
    every: float
    law: Callable[..., Any]
    elements: tuple[Element, ...]
    units: tuple[str, ...]
    measure: tuple[str, ...]
    state: np.ndarray


@functools.cache
def commanded(a: Placement, b: Placement, angle: bool) -> Through:
    """The torque, or the force, that a controller says."""
    return motor(a, b, _command, True, angle)


def _command(t: Any, position: Any, speed: Any, k: Any) -> Any:
    return k.command


def acting(joint: Joint, name: str) -> Element:
    """What a controller does in one joint."""
    return joint.acting(name, dict(command=0.0), forces=commanded(joint.a, joint.b, joint.kind.angle))


def connect(system: System, drawn: Mapping[str, Sampled]) -> dict[str, Quantity]:
    """Tell the system which parameters are commands, and who gives them; quantities that show these."""
    numbers = {id(element): i for i, element in enumerate(system.elements)}
    shown: dict[str, Quantity] = {}
    controls: list[int] = []
    controllers = []
    for one in drawn.values():
        places = []
        for element, unit in zip(one.elements, one.units, strict=True):
            places.append(len(controls))
            controls.append(system.parameter_indices[numbers[id(element)]][-1])
            words = f"what {one.name} says"
            shown[f"{element.name}.command"] = Quantity(words, unit, lambda *_: ca.SX(0), command=places[-1])
        measure = measuring(system, one)
        controllers.append(Controller(one.name, one.every, one.law, measure, tuple(places), one.state))
    system.controls, system.controllers = tuple(controls), tuple(controllers)
    return shown


def measuring(system: System, one: Sampled) -> ca.Function:
    """What a controller looks at, of ``(q, v, t, k)``; angles within half a turn of the drawn pose."""
    q, v, t = ca.SX.sym("q", system.n), ca.SX.sym("v", system.n), ca.SX.sym("t")
    lam, k = ca.SX.sym("lam", system.m), ca.SX.sym("k", system.parameter_count)
    found = []
    for name in one.measure:
        if name not in system.quantities:
            raise InputError(f"{one.name}: there is no '{name}' to measure{suggestion(name, system.quantities)}")
        if system.quantities[name].force:
            raise InputError(f"{one.name}: '{name}' is a force, which is not known before the step is taken")
        found.append(ca.vec(ca.densify(system.quantities[name].expression(q, v, lam, t, k))))
    return ca.Function("measured", [q, v, t, k], [ca.vertcat(*found) if found else ca.SX(0, 1)])
