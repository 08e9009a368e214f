"""Steps of variable size of the tree tier."""

from __future__ import annotations

import functools
from collections.abc import Callable
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
    from livens.engine.trees.arrays import TreeModel
    from livens.engine.trees.stepper import TreeStepper, TreeWorkspace


class TreeSteps(VariableSteps):
    """Steps of variable size on a spanning tree."""

    def __init__(self, stepper: TreeStepper, initial: IntegratorState, w: TreeWorkspace, n_history: int) -> None:
        self._stepper, self._initial, self._w, self._n_history = stepper, initial, w, n_history
        self._model, self.t_start, self._h_last = stepper.model, initial.t, 0.0
        self._double_unknowns = np.zeros(0)  # unknowns of the last double step
        self._times = np.full(w.n_steps + 1, initial.t)  # start times of the steps up to the last attempt
        self._row, self._step_number = initial.z.copy(), np.zeros(1, dtype=np.int64)  # one state and its step
        self._addresses = w.states.ctypes.data, self._step_number.ctypes.data, self._row.ctypes.data
        trees = self._model.arrays, self._model.output
        self._advance = _bind_advance(self._model, w)
        self._expand_node = expand_state.with_leading(*trees)  # type: ignore[attr-defined]
        self._expand_step = expand_rows.with_leading(*trees, w.states, w.X, w.work)  # type: ignore[attr-defined]

    def attempt(self, s: int, t: float, h: float) -> bool:
        if s:
            self._h_last = t - self._times[s - 1]
        self._times[s] = t
        is_slow = not self._h_last or abs(h - self._h_last) <= MAX_SLOW_CHANGE * self._h_last
        n_history = min(self._n_history + s, POLYNOMIAL_POINTS) if is_slow else 1
        return bool(self._advance(h, t, -s, s, s + 1, n_history) > s)

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
        if not s:
            return self._initial.z.copy()
        states, _, row = self._addresses
        self._expand_node(states + s * self._w.states.strides[0], row)
        return self._row.copy()

    def end_state(self, s: int, t: float, h: float) -> np.ndarray:
        self._step_number[0] = s
        self._expand_step(h, t, -s, self._addresses[1], 1, self._addresses[2])
        return self._row.copy()

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

    @functools.cached_property
    def _advance_trial(self) -> Callable[..., int]:
        """Function that takes a step in the workspace for error estimates."""
        return _bind_advance(self._model, self._trial)

    def _end_of_trial(self, state: np.ndarray, guess: np.ndarray, h: float, t: float) -> np.ndarray | None:
        """Return the full state after a step from a compact state, or None if it is not solved."""
        trial = self._trial
        trial.states[0], trial.X[HISTORY - 1], trial.work[0] = state, guess, 0.0
        if self._advance_trial(h, t, 0, 0, 1, 1) < 1:
            return None
        self._expand_node(trial.states[1].ctypes.data, self._addresses[2])
        return self._row.copy()


def _bind_advance(model: TreeModel, w: TreeWorkspace) -> Callable[..., int]:
    """Return `advance_tree` on the arrays of a workspace, as a function of step size, times and step numbers."""
    arrays = model.arrays, w.states, w.X, w.work, w.monitor, w.newton_iterations
    bound: Callable[..., int] = advance_tree.with_leading(*arrays)  # type: ignore[attr-defined]
    return bound
