"""Chunk of steps whose sizes are chosen one at a time, by a step-size controller or by a step density."""

from __future__ import annotations

import abc
import math

import numpy as np

from livens.engine.newton.convergence import CONVERGED, DIVERGED, END_REACHED, ERROR_TOO_LARGE
from livens.engine.newton.error_estimate import (
    MAX_STEPS_WITHOUT_ESTIMATE,
    N_REPETITIONS,
    argmax_scaled_error,
    compare_double_step,
    is_round_off,
)
from livens.engine.newton.step_size_control import (
    END_IS_NEAR,
    LOCAL_ERROR,
    NO_SIZE_LEFT,
    NOT_ESTIMATED,
    ROUND_OFF,
    StepSizeController,
    is_accepted,
    is_estimate_due,
    may_move_middle,
    move_middle,
    next_attempt_size,
    on_accept,
    on_reject,
)
from livens.engine.newton.time_loop import StepPolicy
from livens.engine.stepper import StepChunk, StepFailure, error_failure


class VariableSteps(abc.ABC):
    """Chunk of steps of variable size, one call per attempt of a step, for the assembled and the tree tier.

    Step s leads from node s to node s + 1. A further attempt of a step replaces the last one.
    """

    #: Start time of the chunk.
    t_start: float

    @abc.abstractmethod
    def attempt(self, s: int, t: float, h: float) -> bool:
        """Solve step s of size h from time t; return True if it succeeded."""

    @abc.abstractmethod
    def state(self, s: int) -> np.ndarray:
        """Return the state at node s; multipliers may be those of an earlier node."""

    def end_state(self, s: int, t: float, h: float) -> np.ndarray:
        """Return the full state after step s, with its multipliers."""
        return self.state(s + 1)

    @abc.abstractmethod
    def unsolved(self, s: int, h: float) -> StepFailure:
        """Return the failure of step s whose last attempt had the size h."""

    @abc.abstractmethod
    def chunk(self, t_nodes: np.ndarray, failure: StepFailure | None, reached_end: bool) -> StepChunk:
        """Return the chunk of the accepted steps with these times of the nodes."""

    @abc.abstractmethod
    def double_step(
        self, s: int, t: float, h: float, h_last: float, repetition: int
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the state before step s - 1, and that to which a double step leads back from node s + 1.

        The initial guess is the weighted mean of the unknowns of both steps; a `repetition` from number 1 on starts
        nearer to the solution. Returns None if a step is not solved.
        """

    def has_outgrown_group(self, s: int) -> bool:
        """Return True if the unknowns of step s are ill-conditioned: those of a group outgrow those of step s - 1."""
        return False

    def embedded_error(self, s: int, h: float, control: StepSizeController) -> float:
        """Return the error of step s by an embedded formula, relative to its tolerance; 0 without a formula."""
        return 0.0

    def take_between_estimates(
        self,
        times: np.ndarray,
        s: int,
        n_steps: int,
        policy: StepPolicy,
        control: StepSizeController,
        controller_values: np.ndarray,
    ) -> int:
        """Take steps from step s on in one call, as far as they need neither an estimate nor a second attempt.

        Returns the number of the next step; `times` are those of the nodes.
        """
        return s

    def take(
        self,
        n_steps: int,
        policy: StepPolicy,
        control: StepSizeController,
        controller_state: np.ndarray,
        names: tuple[str, ...],
    ) -> StepChunk:
        """Take steps with the sizes of a step-size controller; `names` are the variables with a tolerance."""
        values, estimate = controller_state.view(np.float64), np.zeros(2 * control.n_variables)
        times, status, h_tried, s = np.empty(n_steps + 1), int(CONVERGED), math.inf, 0
        times[0] = self.t_start
        while status == CONVERGED and s < n_steps:
            s = self.take_between_estimates(times, s, n_steps, policy, control, values)
            if times[s] >= policy.t_end or s == n_steps:
                status = int(END_REACHED) if times[s] >= policy.t_end else status
                break
            t, failure_status, is_first_attempt = float(times[s]), int(DIVERGED), True
            while True:
                h = next_attempt_size(control, values, t, policy.t_end, policy.land_on_end, is_first_attempt)
                is_first_attempt = False
                if h in (NO_SIZE_LEFT, END_IS_NEAR):
                    status = failure_status if h == NO_SIZE_LEFT else int(END_REACHED)
                    break
                h_tried, is_solved = h, self.attempt(s, t, h)
                if is_solved and may_move_middle(control, values) and self.has_outgrown_group(s):
                    move_middle(control, values, h)
                    continue
                norm = self._scaled_error(s, t, h, control, controller_state, estimate) if is_solved else math.inf
                if is_solved and is_accepted(control, values, h, norm):
                    is_last = h >= policy.t_end - t
                    on_accept(control, values, h, norm, is_last)
                    s += 1
                    times[s] = policy.t_end if is_last else t + h
                    status = int(END_REACHED) if is_last else status
                    break
                failure_status = int(ERROR_TOO_LARGE) if is_solved else int(DIVERGED)
                on_reject(control, values, h, is_solved, norm if is_solved else 0.0)
        failure = None
        if status == ERROR_TOO_LARGE and names:
            failure = error_failure(names[argmax_scaled_error(control, estimate, h_tried)], h_tried)
        elif status not in (CONVERGED, END_REACHED):
            failure = self.unsolved(s, h_tried)
        return self.chunk(times[: s + 1], failure, status == END_REACHED)

    def _scaled_error(
        self,
        s: int,
        t: float,
        h: float,
        control: StepSizeController,
        controller_state: np.ndarray,
        estimate: np.ndarray,
    ) -> float:
        """Return the error of a solved step relative to its tolerance; `NOT_ESTIMATED` if no estimate is due."""
        values, n, h_last = controller_state.view(np.float64), control.n_variables, float(controller_state[0]["last"])
        if not n:
            return 0.0
        if not is_estimate_due(control, values):
            return NOT_ESTIMATED
        if not control.doubling_order:
            return self.embedded_error(s, h, control)
        if h_last <= 0.0 or controller_state[0]["steps"] <= 0.0:
            return NOT_ESTIMATED
        norm, local_errors = math.inf, list[float]()
        for repetition in range(N_REPETITIONS + 1):
            states = self.double_step(s, t, h, h_last, repetition)
            if states is None and not repetition:  # the next step has another double step
                return NOT_ESTIMATED if controller_state[0]["since_estimate"] < MAX_STEPS_WITHOUT_ESTIMATE else math.nan
            if states is None:
                break
            estimate[:n], z_double = states[0][:n], states[1].copy()
            repeated = compare_double_step(control, values, estimate, z_double, self.state(s), self.state(s + 1), h)
            norm = min(norm, repeated) if repetition else repeated
            local_errors.append(float(values[LOCAL_ERROR]))
            if not norm > 1.0:
                break
        values[LOCAL_ERROR] = min(local_errors)
        is_dominated = norm > 1.0 and is_round_off(control, values, min(local_errors), max(local_errors), h)
        return ROUND_OFF if is_dominated else norm
