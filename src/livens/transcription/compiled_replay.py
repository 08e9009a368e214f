"""Replay of a motion by the compiled steps of the simulator, with inputs that change from step to step."""

from __future__ import annotations

import functools

import numpy as np

from livens.engine.compiled_step import CompiledStep, compiled_step
from livens.engine.newton.time_loop import StepPolicy
from livens.engine.stepper import IntegratorState, step_inputs
from livens.errors import IntegrationError
from livens.run.plan import Plan
from livens.run.startup import make_stepper
from livens.run.stepping import NO_CONTROLLER_STATE
from livens.transcription.stage import StageModel


class CompiledMap:
    """One compiled step of the simulator from any state, with any parameters: ``z -> z1``."""

    def __init__(self, stage: StageModel) -> None:
        self._stage = stage

    @functools.cached_property
    def compiled(self) -> CompiledStep:
        return compiled_step(self._stage.model, self._stage.scheme, self._stage.removed)

    def __call__(self, z: np.ndarray, t: float, h: float, k: np.ndarray, x: np.ndarray | None = None) -> np.ndarray:
        """Return the state after a step of size h from (t, z); Newton's method starts from x, if given."""
        t, h, compiled = float(t), float(h), self.compiled
        if x is None:
            x = compiled.initial_unknowns(z, step_inputs(h, t, k))
        plan = Plan(self._stage.model, self._stage.scheme, h, t + h, t, tier="fused")
        plan.__dict__["k"] = k
        state = IntegratorState.initial(t, z, x)
        stepper = make_stepper(plan, compiled, state)
        chunk = stepper.advance(state, 1, StepPolicy(False, h, t, 0), NO_CONTROLLER_STATE)
        if chunk.failure is not None:
            raise IntegrationError(f"the step from t = {t:.6g} of size {h:.3g} fails: {chunk.failure.reason}")
        return np.array(chunk.states[-1])
