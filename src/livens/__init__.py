"""livens simulates mechanical systems so that what nature conserves, the simulation conserves.

A model is written once, as energies and constraints in plain Python::

    import livens as lv

    pendulum = lv.System(
        coordinates="x y",
        kinetic=lambda v, k: 0.5 * k.m * (v @ v),
        potential=lambda q, k: k.m * k.g * q[1],
        constraints=lambda q, k: [0.5 * (q @ q - k.l**2)],
        parameters=dict(m=1.0, l=1.0, g=9.81),
    )
    result = lv.simulate(pendulum, q0=[-1, 0], v0=[0, 0], scheme="livens-em", h=1e-3, t_end=10)
    result.observe("generalized_energy")
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from livens import (
        bodies,
        math,
        port_hamiltonian,
        problems,
        rotations,
        scaling,
        scenario,
        schemes,
        study,
        symmetry,
        tableaus,
    )
    from livens.element import Element, through
    from livens.errors import InputError, IntegrationError, Interrupted, LivensError, ModelError, WriteError
    from livens.events import Event
    from livens.first_order import FirstOrder
    from livens.hamiltonian import Force, Hamiltonian
    from livens.multibody_equations import MultibodyEquations
    from livens.nambu import Nambu
    from livens.port_hamiltonian import PortHamiltonian
    from livens.problems.problem import Problem
    from livens.result import Result
    from livens.simulation import resume, simulate
    from livens.step_control import StepControl
    from livens.storage import load
    from livens.system import System

#: Public name -> module it lives in. Imported when first used, so that ``import livens`` costs nothing.
_HOMES = {
    "Element": "element",
    "Event": "events",
    "FirstOrder": "first_order",
    "Force": "hamiltonian",
    "Hamiltonian": "hamiltonian",
    "InputError": "errors",
    "IntegrationError": "errors",
    "Interrupted": "errors",
    "LivensError": "errors",
    "ModelError": "errors",
    "MultibodyEquations": "multibody_equations",
    "Nambu": "nambu",
    "PortHamiltonian": "port_hamiltonian",
    "Problem": "problems.problem",
    "Result": "result",
    "StepControl": "step_control",
    "System": "system",
    "WriteError": "errors",
    "bodies": "",
    "load": "storage",
    "math": "",
    "port_hamiltonian": "",
    "problems": "",
    "resume": "simulation",
    "rotations": "",
    "scaling": "",
    "scenario": "",
    "schemes": "",
    "simulate": "simulation",
    "study": "",
    "symmetry": "",
    "tableaus": "",
    "through": "element",
}
__all__ = [
    "Element", "Event", "FirstOrder", "Force", "Hamiltonian", "InputError", "IntegrationError", "Interrupted",
    "LivensError", "ModelError", "MultibodyEquations", "Nambu", "PortHamiltonian", "Problem", "Result",
    "StepControl", "System", "WriteError", "bodies", "load", "math", "port_hamiltonian", "problems", "resume",
    "rotations", "scaling", "scenario", "schemes", "simulate", "study", "symmetry", "tableaus", "through",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'livens' has no attribute '{name}'")
    home = _HOMES[name]
    if not home:
        return importlib.import_module(f"livens.{name}")
    value = getattr(importlib.import_module(f"livens.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
