"""Simulation of mechanical systems with structure-preserving integrators.

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

__version__ = "0.3.0"

if TYPE_CHECKING:
    from livens import bodies as bodies
    from livens import bridges as bridges
    from livens import gym as gym
    from livens import math as math
    from livens import observe as observe
    from livens import plot as plot
    from livens import problems as problems
    from livens import reproduce as reproduce
    from livens import rotations as rotations
    from livens import scenario as scenario
    from livens import schemes as schemes
    from livens.analysis import study as study
    from livens.analysis.linearise import linearise as linearise
    from livens.errors import InputError as InputError
    from livens.errors import IntegrationError as IntegrationError
    from livens.errors import Interrupted as Interrupted
    from livens.errors import LivensError as LivensError
    from livens.errors import LivensWarning as LivensWarning
    from livens.errors import ModelError as ModelError
    from livens.errors import WriteError as WriteError
    from livens.expressions.parameters import shared as shared
    from livens.models import port_hamiltonian as port_hamiltonian
    from livens.models import symmetry as symmetry
    from livens.models.constrained_hamiltonian import ConstrainedHamiltonian as ConstrainedHamiltonian
    from livens.models.discrete_lagrangian import DiscreteLagrangian as DiscreteLagrangian
    from livens.models.element import Element as Element
    from livens.models.element import of_invariants as of_invariants
    from livens.models.external_force import ExternalForce as ExternalForce
    from livens.models.first_order import FirstOrder as FirstOrder
    from livens.models.hamiltonian.model import Force as Force
    from livens.models.hamiltonian.model import Hamiltonian as Hamiltonian
    from livens.models.multibody_equations import MultibodyEquations as MultibodyEquations
    from livens.models.nambu import Nambu as Nambu
    from livens.models.point_masses import PointMasses as PointMasses
    from livens.models.poisson.isospectral import IsospectralFlow as IsospectralFlow
    from livens.models.poisson.model import Poisson as Poisson
    from livens.models.poisson.spins import Spins as Spins
    from livens.models.port_hamiltonian import PortHamiltonian as PortHamiltonian
    from livens.models.problem import Problem as Problem
    from livens.models.sympy_models import from_sympy as from_sympy
    from livens.models.system import System as System
    from livens.multibody import contacts as contacts
    from livens.multibody.multibody import Multibody as Multibody
    from livens.multibody.sections import Section as Section
    from livens.multibody.units import deg as deg
    from livens.multibody.units import mm as mm
    from livens.multibody.units import rpm as rpm
    from livens.results.ensemble import Ensemble as Ensemble
    from livens.results.result import Result as Result
    from livens.results.storage.hdf5_reader import load as load
    from livens.run.bridges.fmu.export import fmu as fmu
    from livens.run.bridges.solve_ivp import solve_ivp as solve_ivp
    from livens.run.derivatives.ensemble_jvp import jvp as jvp
    from livens.run.derivatives.gradient import value_and_gradient as value_and_gradient
    from livens.run.derivatives.hessian import hessian as hessian
    from livens.run.ensemble.api import ensemble as ensemble
    from livens.run.events.event import Event as Event
    from livens.run.prepare import prepare as prepare
    from livens.run.schedule import Feedback as Feedback
    from livens.run.schedule import Schedule as Schedule
    from livens.run.simulate import resume as resume
    from livens.run.simulate import simulate as simulate
    from livens.run.step_control import StepControl as StepControl
    from livens.scene import shapes as shapes
    from livens.schemes import scaling as scaling
    from livens.schemes import tableaus as tableaus
    from livens.transcription.api import optimal_control as optimal_control
    from livens.transcription.motion import OptimalMotion as OptimalMotion
    from livens.transcription.pareto import ParetoFront as ParetoFront
    from livens.transcription.pareto import pareto_front as pareto_front

#: Modules of the public names, imported on first use, so that ``import livens`` is fast.
_HOMES = {
    "ExternalForce": "models.external_force",
    "ConstrainedHamiltonian": "models.constrained_hamiltonian",
    "DiscreteLagrangian": "models.discrete_lagrangian",
    "Element": "models.element",
    "Ensemble": "results.ensemble",
    "Event": "run.events.event",
    "FirstOrder": "models.first_order",
    "Force": "models.hamiltonian.model",
    "Hamiltonian": "models.hamiltonian.model",
    "InputError": "errors",
    "IntegrationError": "errors",
    "Interrupted": "errors",
    "LivensError": "errors",
    "LivensWarning": "errors",
    "ModelError": "errors",
    "IsospectralFlow": "models.poisson.isospectral",
    "Multibody": "multibody.multibody",
    "MultibodyEquations": "models.multibody_equations",
    "Nambu": "models.nambu",
    "OptimalMotion": "transcription.motion",
    "ParetoFront": "transcription.pareto",
    "PointMasses": "models.point_masses",
    "Poisson": "models.poisson.model",
    "PortHamiltonian": "models.port_hamiltonian",
    "Problem": "models.problem",
    "Result": "results.result",
    "Section": "multibody.sections",
    "Feedback": "run.schedule",
    "Schedule": "run.schedule",
    "Spins": "models.poisson.spins",
    "StepControl": "run.step_control",
    "System": "models.system",
    "WriteError": "errors",
    "deg": "multibody.units",
    "ensemble": "run.ensemble.api",
    "fmu": "run.bridges.fmu.export",
    "from_sympy": "models.sympy_models",
    "hessian": "run.derivatives.hessian",
    "linearise": "analysis.linearise",
    "load": "results.storage.hdf5_reader",
    "mm": "multibody.units",
    "optimal_control": "transcription.api",
    "pareto_front": "transcription.pareto",
    "prepare": "run.prepare",
    "resume": "run.simulate",
    "rpm": "multibody.units",
    "shared": "expressions.parameters",
    "simulate": "run.simulate",
    "solve_ivp": "run.bridges.solve_ivp",
    "jvp": "run.derivatives.ensemble_jvp",
    "of_invariants": "models.element",
    "value_and_gradient": "run.derivatives.gradient",
}
#: Public modules, imported on first use.
_MODULES = (
    "bodies",
    "bridges",
    "contacts",
    "gym",
    "math",
    "observe",
    "plot",
    "port_hamiltonian",
    "problems",
    "reproduce",
    "rotations",
    "scaling",
    "scenario",
    "schemes",
    "shapes",
    "study",
    "symmetry",
    "tableaus",
)
#: Modules of the methods and properties of a `Result` that are attached on first use.
ACCESSORS = {
    "_repr_html_": "plot.notebook",
    "accuracy": "analysis.accuracy",
    "named": "analysis.signals",
    "names": "analysis.signals",
    "animate": "viewer",
    "jvp": "run.derivatives.sensitivity",
    "observe": "analysis.observables",
    "plot": "plot",
    "problem": "scenario.restore",
    "report": "analysis.report",
    "scene": "scenario.restore",
    "singular_positions": "analysis.singular_configurations",
    "system": "scenario.restore",
    "view": "viewer",
    "vjp": "run.derivatives.sensitivity",
}

#: Modules of the methods of a `Multibody` that are attached on first use.
MULTIBODY_ACCESSORS = {
    "_contact_events": "run.contact.rigid_contact",
    "rigid_contact": "run.contact.rigid_contact",
    "simulate": "run.mechanism",
}

__all__ = sorted([*_HOMES, *_MODULES])


def __getattr__(name: str) -> Any:
    """Import a public name on first use (Scientific Python SPEC 1)."""
    if name in _MODULES:
        return importlib.import_module(f"livens.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'livens' has no attribute '{name}'")
    globals()[name] = value = getattr(importlib.import_module(f"livens.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
