"""Registry of steppers: the stepper class of the fused tier for every type of step equations."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, cast

from livens.engine.stepper import Stepper
from livens.schemes.core.step_equations import StepEquations

if TYPE_CHECKING:
    from livens.engine.compiled_step import CompiledStep

#: Stepper class by type of step equations. Built-in entries are qualified names; a run imports only its own stepper.
_STEPPERS: dict[type[StepEquations] | str, type[Stepper] | str] = {
    "livens.schemes.discretization.fixed_point_stages.FixedPointStages": (
        "livens.engine.steppers.fixed_point_rk.FixedPointStepper"
    ),
    "livens.schemes.discretization.independent_bodies.IndependentBodyEquations": (
        "livens.engine.steppers.free_bodies.FreeBodiesStepper"
    ),
    "livens.schemes.taylor_equations.TaylorEquations": "livens.engine.taylor.stepper.TaylorStepper",
    "livens.schemes.splitting.wisdom_holman.WisdomHolmanEquations": (
        "livens.engine.wisdom_holman.stepper.WisdomHolmanStepper"
    ),
}
#: Steppers of all other equations, which are compiled as one graph: with unknowns, and without.
_IMPLICIT, _EXPLICIT = "livens.engine.steppers.fused.FusedStepper", "livens.engine.steppers.explicit.ExplicitStepper"


def register_stepper(equations: type[StepEquations], stepper: type[Stepper]) -> None:
    """Register the stepper class of a type of step equations and of its subclasses.

    `StepEquations.n_unknowns` of these equations must not be None. Equations of all other types are compiled as one
    graph.
    """
    _STEPPERS[equations] = stepper


def fused_stepper_type(compiled: CompiledStep) -> type[Stepper]:
    """Return the stepper class of the fused tier: the registered one, or that of equations with or without unknowns."""
    for equations in type(compiled.equations).__mro__:
        for key in (equations, f"{equations.__module__}.{equations.__qualname__}"):
            if key in _STEPPERS:
                return _stepper_class(_STEPPERS[key])
    return _stepper_class(_IMPLICIT if compiled.size else _EXPLICIT)


def _stepper_class(entry: type[Stepper] | str) -> type[Stepper]:
    """Return the class of an entry of the registry."""
    if not isinstance(entry, str):
        return entry
    module, _, name = entry.rpartition(".")
    return cast("type[Stepper]", getattr(importlib.import_module(module), name))
