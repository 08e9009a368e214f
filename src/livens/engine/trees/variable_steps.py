"""Steps of variable size of the tree tier."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from livens.engine.newton.iteration import HISTORY
from livens.engine.newton.predictors import POLYNOMIAL_POINTS
from livens.engine.newton.step_size_control import MAX_SLOW_CHANGE, StepSizeController
from livens.engine.newton.time_loop import StepPolicy
from livens.engine.stepper import IntegratorState, StepChunk, StepFailure
from livens.engine.trees.output import advance_between_estimates, expand_rows, expand_state
from livens.engine.trees.time_loop import advance_tree
from livens.engine.variable_steps import VariableSteps

if TYPE_CHECKING:
    from livens.engine.trees.stepper import TreeStepper, TreeWorkspace


class TreeSteps(VariableSteps):
    """Steps of variable size on a spanning tree."""

    def __init__(self, stepper: TreeStepper, initial: IntegratorState, w: TreeWorkspace, n_history: int) -> None:
        self._stepper, self._initial, self._w, self._n_history = stepper, initial, w, n_history
        self._model, self.t_start, self._h_last = stepper.model, initial.t, 0.0
        self._double_unknowns = np.zeros(0)  # unknowns of the last double step
        self._times = np.full(w.n_steps + 1, initial.t)  # start times of the steps up to the last attempt

    def attempt(self, s: int, t: float, h: float) -> bool:
        w = self._w
        if s:
            self._h_last = t - self._times[s - 1]
        self._times[s] = t
        is_slow = not self._h_last or abs(h - self._h_last) <= MAX_SLOW_CHANGE * self._h_last
        n_history = min(self._n_history + s, POLYNOMIAL_POINTS) if is_slow else 1
        arrays = w.states, w.X, w.work, w.monitor, w.newton_iterations
        return bool(advance_tree(self._model.arrays, *arrays, h, t, -s, s, s + 1, n_history) > s)

    def take_between_estimates(
        self,
        times: np.ndarray,
        s: int,
        n_steps: int,
        policy: StepPolicy,
        control: StepSizeController,
        controller_values: np.ndarray,
    ) -> int:
        w, end = self._w, (policy.t_end, policy.land_on_end)
        arrays = w.states, w.X, w.work, w.monitor, w.newton_iterations, times
        self._times = times  # start times of the steps
        return advance_between_estimates(
            self._model.arrays, *arrays, control, controller_values, *end, s, n_steps, self._n_history
        )

    def state(self, s: int) -> np.ndarray:
        z = self._initial.z.copy()
        if s:
            expand_state(self._model.arrays, self._model.output, self._w.states[s], z)
        return z

    def end_state(self, s: int, t: float, h: float) -> np.ndarray:
        w, rows = self._w, self._initial.z[None, :].copy()
        step = np.array([s], dtype=np.int64)
        expand_rows(self._model.arrays, self._model.output, w.states, w.X, w.work, h, t, -s, step, 1, rows)
        return rows[0]

    def unsolved(self, s: int, h: float) -> StepFailure:
        reason = f"no step of at least {h:.3g} succeeded: its equations could not be solved"
        return StepFailure(np.inf, 0.0, "joint equations", reason, h)

    def chunk(self, t_nodes: np.ndarray, failure: StepFailure | None, reached_end: bool) -> StepChunk:
        n_history = min(self._n_history + len(t_nodes) - 1, POLYNOMIAL_POINTS)
        return self._stepper.finished_chunk(
            self._w, self._initial, t_nodes, None, failure, {}, n_history, reached_end=reached_end
        )

    def double_step(
        self, s: int, t: float, h: float, h_last: float, repetition: int
    ) -> tuple[np.ndarray, np.ndarray] | None:
        w, row = self._w, s + HISTORY
        x, x_last = w.X[row], w.X[row - 1]
        z_last = self._end_of_trial(w.states[s], x_last, -h_last, t)
        if z_last is None:
            return None
        guess = (h * x + h_last * x_last) / (h + h_last)
        if repetition:
            guess = self._double_unknowns + 0.5**repetition * (guess - self._double_unknowns)
        z_double = self._end_of_trial(w.states[s + 1], guess, -(h + h_last), t + h)
        self._double_unknowns = self._trial.X[HISTORY].copy()
        return None if z_double is None else (z_last, z_double)

    @functools.cached_property
    def _trial(self) -> TreeWorkspace:
        """Workspace of one step for error estimates."""
        return self._stepper.new_workspace(1)

    def _end_of_trial(self, state: np.ndarray, guess: np.ndarray, h: float, t: float) -> np.ndarray | None:
        """Return the full state after a step from a compact state, or None if it is not solved."""
        trial, model = self._trial, self._model
        trial.states[0], trial.X[HISTORY - 1], trial.work[0] = state, guess, 0.0
        arrays = trial.states, trial.X, trial.work, trial.monitor, trial.newton_iterations
        if advance_tree(model.arrays, *arrays, h, t, 0, 0, 1, 1) < 1:
            return None
        z = self._initial.z.copy()
        expand_state(model.arrays, model.output, trial.states[1], z)
        return z
