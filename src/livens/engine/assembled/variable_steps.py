"""Steps of variable size of the assembled tier."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from livens.engine.assembled import time_loop
from livens.engine.assembled.time_loop import ITERATIONS_TAKEN, ChunkWorkspace
from livens.engine.newton.adaptive_step import MIN_ILL_CONDITIONED_ITERATIONS
from livens.engine.newton.convergence import CONVERGED
from livens.engine.newton.iteration import BOUND_REFRESH_INTERVAL, has_outgrown_group
from livens.engine.newton.predictors import N_HISTORY
from livens.engine.newton.step_size_control import StepSizeController
from livens.engine.stepper import IntegratorState, StepChunk, StepFailure
from livens.engine.variable_steps import VariableSteps

if TYPE_CHECKING:
    from livens.engine.assembled.stepper import AssembledStepper


class AssembledSteps(VariableSteps):
    """Steps of variable size in the workspace of a chunk of the assembled tier."""

    def __init__(self, stepper: AssembledStepper, initial: IntegratorState, w: ChunkWorkspace) -> None:
        self._stepper, self._initial, self._w, self.t_start = stepper, initial, w, initial.t
        self._n_substeps = stepper.n_substeps
        self._n_since_bounds = BOUND_REFRESH_INTERVAL  # substeps since the round-off bounds were evaluated
        self._double_unknowns = np.zeros(0)  # unknowns of the last double step
        self._last_attempt = -1  # number of the step of the last successful attempt

    def attempt(self, s: int, t: float, h: float) -> bool:
        is_repeated, self._last_attempt = s == self._last_attempt, -1
        for r in range(s * self._n_substeps, (s + 1) * self._n_substeps):
            self._stepper.set_substep_time(self._w, r, h, t)
            if not self._solve_substep(r, is_repeated):
                return False
        self._last_attempt = s
        return True

    def state(self, s: int) -> np.ndarray:
        return self._w.Z[s * self._n_substeps]

    def unsolved(self, s: int, h: float) -> StepFailure:
        w, r, solver = self._w, s * self._n_substeps, self._stepper.solver
        solver.history = w.M[r]
        x, reason = w.X[r + N_HISTORY * self._n_substeps], f"no step of at least {h:.3g} succeeded"
        return solver.describe_failure(x, w.Z[r], w.c, w.dx[0], reason)

    def chunk(self, t_nodes: np.ndarray, failure: StepFailure | None, reached_end: bool) -> StepChunk:
        sizes = np.diff(t_nodes)
        arguments = self._initial, self._w, len(sizes), t_nodes[1:], sizes, failure, reached_end
        return self._stepper.finished_chunk(*arguments)

    def embedded_error(self, s: int, h: float, control: StepSizeController) -> float:
        plan, w = self._stepper.plan, self._w
        if plan.error_estimate is None:
            return 0.0
        error, size = plan.error_estimate(w.X[s + N_HISTORY], w.Z[s], w.c)
        return float(np.max(np.abs(error) / (control.atol + control.rtol * size), initial=0.0))

    def has_outgrown_group(self, s: int) -> bool:
        w, stride = self._w, self._n_substeps
        x, x_last, x_last_but_one = (w.X[(s + N_HISTORY - k) * stride] for k in range(3))
        groups = self._stepper.assembly_workspace.group_sizes
        return bool(
            w.newton_iterations[s] >= MIN_ILL_CONDITIONED_ITERATIONS
            and has_outgrown_group(x, x_last, x_last_but_one, groups, groups.size)
        )

    def double_step(
        self, s: int, t: float, h: float, h_last: float, repetition: int
    ) -> tuple[np.ndarray, np.ndarray] | None:
        w, trial = self._w, self._trial
        trial.c[2:] = w.c[2:]
        x, x_last = w.X[s + N_HISTORY], w.X[s + N_HISTORY - 1]
        trial.Z[0], trial.M[0], trial.c[:2] = w.Z[s], w.M[s], (-h_last, t)
        self._finish_trial(x_last)
        z_last = trial.Z[1].copy()
        trial.Z[0], trial.M[0], trial.c[:2] = w.Z[s + 1], w.M[s + 1], (-(h + h_last), t + h)
        guess, solver = (h * x + h_last * x_last) / (h + h_last), self._stepper.solver
        if repetition:
            guess = self._double_unknowns + 0.5**repetition * (guess - self._double_unknowns)
        if self._stepper.factorization is not None:
            status, _ = self._stepper.newton_from_guess(trial, 0, guess)
            if status == CONVERGED:
                time_loop.finish_step(self._stepper.system, 0, 0, trial)
                self._double_unknowns = trial.X[N_HISTORY].copy()
                return z_last, trial.Z[1]
        solver.history = trial.M[0]
        solution, _, failure, _, _ = solver.solve(guess, trial.Z[0], trial.c)
        if failure is not None:
            return None
        self._finish_trial(solution)
        self._double_unknowns = solution.copy()
        return z_last, trial.Z[1]

    @functools.cached_property
    def _trial(self) -> ChunkWorkspace:
        """Workspace of one step for error estimates."""
        return self._stepper.allocate(1)

    def _finish_trial(self, x: np.ndarray) -> None:
        """Compute the state after the trial step from its unknowns x."""
        trial = self._trial
        self._stepper.assembly_workspace.residual(x, trial.Z[0], trial.M[0], trial.c)  # computes the impulses
        trial.X[N_HISTORY] = x
        time_loop.finish_step(self._stepper.system, 0, 0, trial)

    def _solve_substep(self, r: int, is_repeated: bool) -> bool:
        """Solve substep r with the size and time in c, from the last attempt or the prediction."""
        stepper, w = self._stepper, self._w
        x, z = w.X[r + N_HISTORY * self._n_substeps], w.Z[r]
        guess = x.copy() if is_repeated else None
        is_predicted = time_loop.predict_step(stepper.system, r, w)
        if stepper.factorization is not None:
            if guess is None and is_predicted and self._n_since_bounds < BOUND_REFRESH_INTERVAL:
                self._n_since_bounds += 1
                status = time_loop.newton_solve(stepper.system, x, z, w, r % self._n_substeps, False)
                n_iterations = int(w.counters[ITERATIONS_TAKEN])
            else:
                if guess is None:
                    guess = x.copy() if is_predicted else stepper.plan.initial_guess(
                        z, w.c, lambda y: stepper.assembly_workspace.residual(y, z, w.M[r], w.c)
                    )  # fmt: skip
                self._n_since_bounds = 0
                status, n_iterations = stepper.newton_from_guess(w, r, guess)
            if status == CONVERGED:
                time_loop.finish_step(stepper.system, r, n_iterations, w)
                return True
        return stepper.solve_with_fallback(w, r) is None
