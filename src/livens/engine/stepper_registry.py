"""Registry of steppers: the stepper class of the fused tier for every type of step equations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from livens.engine.stepper import Stepper
from livens.engine.steppers.dem import DemStepper
from livens.engine.steppers.explicit import ExplicitStepper
from livens.engine.steppers.fixed_point_rk import FixedPointStepper
from livens.engine.steppers.free_bodies import FreeBodiesStepper
from livens.engine.steppers.fused import FusedStepper
from livens.engine.taylor.stepper import TaylorStepper
from livens.engine.wisdom_holman.stepper import WisdomHolmanStepper
from livens.schemes.core.step_equations import StepEquations
from livens.schemes.discretization.fixed_point_stages import FixedPointStages
from livens.schemes.discretization.granular_step import GranularEquations
from livens.schemes.discretization.independent_bodies import IndependentBodyEquations
from livens.schemes.splitting.wisdom_holman import WisdomHolmanEquations
from livens.schemes.taylor_equations import TaylorEquations

if TYPE_CHECKING:
    from livens.engine.compiled_step import CompiledStep

_STEPPERS: dict[type[StepEquations], type[Stepper]] = {
    FixedPointStages: FixedPointStepper,
    GranularEquations: DemStepper,
    IndependentBodyEquations: FreeBodiesStepper,
    TaylorEquations: TaylorStepper,
    WisdomHolmanEquations: WisdomHolmanStepper,
}


def register_stepper(equations: type[StepEquations], stepper: type[Stepper]) -> None:
    """Register the stepper class of a type of step equations and of its subclasses.

    `StepEquations.n_unknowns` of these equations must not be None. Equations of all other types are compiled as one
    graph.
    """
    _STEPPERS[equations] = stepper


def fused_stepper_type(compiled: CompiledStep) -> type[Stepper]:
    """Return the stepper class of the fused tier: the registered one, or that of equations with or without unknowns."""
    for equations in type(compiled.equations).__mro__:
        if equations in _STEPPERS:
            return _STEPPERS[equations]
    return FusedStepper if compiled.size else ExplicitStepper
