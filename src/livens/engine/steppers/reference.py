"""Stepper of the reference tier: damped Newton iteration in Python with SuperLU. Slow, simple, and the fallback."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from livens.engine.codegen.step_kernels import inv_roundoff_function
from livens.engine.newton.convergence import (
    CONVERGED,
    MAX_CURVATURE_RESIDUAL,
    MAX_NEWTON_ITERATIONS,
    explained_by_curvature,
    newton_decision,
    stagnates,
)
from livens.engine.newton.iteration import HISTORY, Workspace, within_rounding_of_all_equations
from livens.engine.newton.predictors import predict_unknowns
from livens.engine.newton.time_loop import StepPolicy
from livens.engine.stepper import (
    IntegratorState,
    StepChunk,
    StepFailure,
    Stepper,
    StepperOptions,
    WorkspaceManager,
    chunk_from_workspace,
    truncate_at_nonfinite,
)
from livens.schemes.core.step_equations import StepGraph

if TYPE_CHECKING:
    from livens.engine.compiled_step import CompiledStep

#: Maximum number of Newton iterations.
_MAX_ITERATIONS = 50
#: Maximum number of halvings of a Newton update in the line search.
_MAX_HALVINGS = 8


#: Relative rank tolerance of the minimum-norm solution of dependent equations, its largest dense size, and the residual
#: tolerance relative to the magnitude of the terms of an equation.
_RANK_RTOL, _MAX_DENSE, _RESIDUAL_RTOL = 1e-12, 400, 1e-12
#: Largest relative change of the velocities in a minimum-norm solution, which keeps it on the same branch.
_BRANCH_RTOL = 0.1


class ReferenceSolver:
    """Damped Newton iteration for one step, with pivoting."""

    def __init__(self, equations: StepGraph) -> None:
        self.equations = equations
        self._inv_roundoff = inv_roundoff_function(equations)

    # -- equations ----------------------------------------------------------------------------------------------------
    def residual(self, x: np.ndarray, z: np.ndarray, c: np.ndarray) -> np.ndarray:
        """Return the residual at x."""
        return np.asarray(
            self.equations.residual_function(x, z, self.equations.complete_inputs(x, z, c)).full().ravel()
        )

    def inv_roundoff_after(self, x: np.ndarray, z: np.ndarray, c: np.ndarray, dx: np.ndarray) -> np.ndarray:
        """Return the reciprocal round-off bounds of the residual at x after the Newton update dx."""
        inputs = self.equations.complete_inputs(x, z, c)
        return np.asarray(self._inv_roundoff(x, z, inputs, dx).full().ravel())

    def linearize(
        self, x: np.ndarray, z: np.ndarray, c: np.ndarray
    ) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray, np.ndarray], Callable[[np.ndarray], np.ndarray]]:
        """Return residual, Jacobian as (values, rows, columns), and the map from its solution to an increment."""
        e = self.equations
        residual, jacobian, *update_matrix = (
            value.full().ravel() for value in e.newton_function(x, z, e.complete_inputs(x, z, c))
        )

        def to_increment(solution: np.ndarray) -> np.ndarray:
            if not update_matrix:
                return solution
            _, rows, columns = e.update_matrix
            correction = solution.copy()
            correction[list(set(rows))] = 0.0
            np.add.at(correction, rows, update_matrix[0] * solution[list(columns)])
            return correction

        return residual, (jacobian, e.jac_rows, e.jac_cols), to_increment

    @property
    def group_sizes(self) -> tuple[int, ...]:
        """Sizes of the consecutive groups of unknowns, velocities first."""
        return self.equations.block_sizes

    def row_name(self, i: int) -> str:
        """Return the name of an equation."""
        return self.equations.equation_labels[i]

    # -- Newton iteration ---------------------------------------------------------------------------------------------
    @np.errstate(over="ignore", invalid="ignore")  # an update that overflows is a failed update
    def solve(
        self, initial_guess: np.ndarray, z: np.ndarray, c: np.ndarray
    ) -> tuple[np.ndarray, int, StepFailure | None, np.ndarray, np.ndarray]:
        """Solve one step: (unknowns, Newton iterations, failure or None, last update, reciprocal round-off bounds)."""
        if not initial_guess.size:
            return initial_guess, 0, None, initial_guess, initial_guess
        x, norm_prev, norm_prev2, dx = initial_guess.copy(), np.inf, np.inf, np.zeros(initial_guess.size)
        reason = f"the Newton iteration did not converge to round-off level in {_MAX_ITERATIONS} iterations"
        norm_guess, inv_roundoff = self._scaled_norm(x, z, c, dx)
        n_iterations = n_stalls = 0
        visited = set[tuple[bytes, float]]()
        for n_iterations in range(1, _MAX_ITERATIONS + 1):
            try:
                dx = self.newton_update(x, z, c)
            except RuntimeError:
                reason = "the Jacobian is singular"
                break
            if not np.all(np.isfinite(dx)):
                reason = "the residual or the Newton update is not finite"
                break
            x, norm, inv_roundoff = self._line_search(x, dx, z, c, norm_prev)
            if not np.isfinite(norm):
                reason = "the residual or the Newton update is not finite"
                break
            if n_iterations == 2:
                norm_prev2 = norm_guess
            status = newton_decision(
                norm, norm_prev, norm_prev2, n_iterations, False, 0, 0, 0.0, MAX_NEWTON_ITERATIONS + 1
            )
            if status == CONVERGED:
                return x, n_iterations, None, dx, inv_roundoff
            n_stalls += stagnates(norm, norm_prev)
            if n_stalls > 1 and (
                (norm <= MAX_CURVATURE_RESIDUAL and self._within_curvature_bound(x, z, c, dx, inv_roundoff))
                or within_rounding_of_all_equations(self.residual(x, z, c), inv_roundoff, x.size)
            ):
                return x, n_iterations, None, dx, inv_roundoff
            if n_stalls > 1 and (x.tobytes(), norm_prev) in visited:
                reason = "the Newton iteration is periodic, as at a jump of a force"
                break
            visited.add((x.tobytes(), norm_prev))
            norm_prev2, norm_prev = norm_prev, norm
        solution = self._minimum_norm_newton(initial_guess, z, c)
        if solution is not None:
            x, n_further, dx = solution
            return x, n_iterations + n_further, None, dx, self.inv_roundoff_after(x, z, c, dx)
        return x, n_iterations, self.describe_failure(x, z, c, dx, reason), dx, inv_roundoff

    def take_step(self, initial_guess: np.ndarray, w: Workspace, s: int) -> StepFailure | None:
        """Solve step s of a workspace and write its unknowns and final state; return the failure, if any."""
        x, n_iterations, failure, dx, inv_roundoff = self.solve(initial_guess, w.Z[s], w.c)
        if failure is None:
            w.X[s + HISTORY], w.Z[s + 1] = x, self.equations.evaluate_final_state(x, w.Z[s], w.c)
            w.newton_iterations[s], w.newton_update[:], w.inv_roundoff[:] = n_iterations, dx, inv_roundoff
        return failure

    def _minimum_norm_newton(
        self, initial_guess: np.ndarray, z: np.ndarray, c: np.ndarray
    ) -> tuple[np.ndarray, int, np.ndarray] | None:
        """Solve by Newton iteration with minimum-norm updates, for dependent equations at singular configurations.

        The residual of dependent equations cannot be eliminated. It is accepted if it is negligible relative to the
        terms of the equations, and rejected otherwise.
        """
        if initial_guess.size > _MAX_DENSE:
            return None
        x, smallest, dx = initial_guess.copy(), np.inf, np.zeros(initial_guess.size)
        groups = np.split(np.arange(initial_guess.size), np.cumsum(self.group_sizes)[:-1])
        visited = set[bytes]()
        for iteration in range(1, _MAX_ITERATIONS + 1):
            residual, (values, rows, columns), to_increment = self.linearize(x, z, c)
            if not all(np.isfinite(part).all() for part in (x, residual, values)):
                return None
            matrix = np.zeros((initial_guess.size, initial_guess.size))
            np.add.at(matrix, (rows, columns), values)
            magnitudes = np.abs(matrix) @ np.abs(x)
            relative_residual = max(
                float(np.abs(residual[group]).max() / max(float(magnitudes[group].max()), 1e-300))
                for group in groups
                if group.size
            )
            if relative_residual <= _RESIDUAL_RTOL and relative_residual >= 0.5 * smallest:
                # velocities far from the initial guess belong to another solution branch
                change, size = (np.linalg.norm(part[groups[0]]) for part in (x - initial_guess, initial_guess))
                return (x, iteration - 1, dx) if change <= _BRANCH_RTOL * size else None
            if relative_residual >= smallest and x.tobytes() in visited:
                return None
            visited.add(x.tobytes())
            smallest = min(smallest, relative_residual)
            dx = to_increment(np.linalg.lstsq(matrix, residual, rcond=_RANK_RTOL)[0])
            x = x - dx
        return None

    def inv_roundoff(self, x: np.ndarray, z: np.ndarray, c: np.ndarray) -> np.ndarray:
        """Return the reciprocal round-off bounds of the residual at x."""
        return self.inv_roundoff_after(x, z, c, np.zeros(x.size))

    def newton_update(self, x: np.ndarray, z: np.ndarray, c: np.ndarray) -> np.ndarray:
        """Return the Newton update at x, to be subtracted; NaN if the Jacobian is not finite."""
        residual, (jacobian, rows, columns), to_increment = self.linearize(x, z, c)
        if not np.all(np.isfinite(jacobian)):
            return np.full(x.size, np.nan)
        return to_increment(self._sparse_solve(jacobian, rows, columns, residual))

    def _sparse_solve(self, values: np.ndarray, rows: np.ndarray, columns: np.ndarray, r: np.ndarray) -> np.ndarray:
        """Solve sparse linear equations by SuperLU."""
        import scipy.sparse as sp  # slow to import, and most runs never need it
        import scipy.sparse.linalg as spl

        matrix = sp.csc_matrix((values, (rows, columns)), shape=(r.size, r.size))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", spl.MatrixRankWarning)
            return np.asarray(spl.splu(matrix).solve(r))

    def _line_search(
        self, x: np.ndarray, dx: np.ndarray, z: np.ndarray, c: np.ndarray, norm_prev: float
    ) -> tuple[np.ndarray, float, np.ndarray]:
        """Return the full Newton update, or a shorter one if only that reduces the residual (line search)."""
        full = x - dx
        norm, inv_roundoff = self._scaled_norm(full, z, c, dx)
        if norm <= norm_prev:
            return full, norm, inv_roundoff
        for halving in range(1, _MAX_HALVINGS + 1):
            x_trial = x - 0.5**halving * dx
            norm_trial, inv_roundoff_trial = self._scaled_norm(x_trial, z, c, dx)
            if norm_trial < norm_prev:
                return x_trial, norm_trial, inv_roundoff_trial
        return full if np.isfinite(full).all() else x, norm, inv_roundoff

    def _scaled_norm(self, x: np.ndarray, z: np.ndarray, c: np.ndarray, dx: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the scaled residual norm and the reciprocal round-off bounds.

        The norm is NaN if x is not finite, although the equations may hold at infinity, and if a bound is infinite:
        its reciprocal, zero, would accept any residual.
        """
        if not np.isfinite(x).all():
            return np.nan, np.zeros(x.size)
        inv_roundoff, residual = self.inv_roundoff_after(x, z, c, dx), self.residual(x, z, c)
        if not inv_roundoff.all():
            return np.nan, inv_roundoff
        return float(np.abs(residual * inv_roundoff).max(initial=0.0)), inv_roundoff

    def _within_curvature_bound(
        self, x: np.ndarray, z: np.ndarray, c: np.ndarray, dx: np.ndarray, inv_roundoff: np.ndarray
    ) -> bool:
        """Return True if the second-order term of the last Newton update explains a stagnating residual."""
        r, r_plus, r_minus = (self.residual(y, z, c) for y in (x, x + dx, x - dx))
        return explained_by_curvature(r, r_plus, r_minus, inv_roundoff, x.size)

    def describe_failure(self, x: np.ndarray, z: np.ndarray, c: np.ndarray, dx: np.ndarray, reason: str) -> StepFailure:
        """Return the failure with the worst equation at x."""
        residual, inv_roundoff = np.abs(self.residual(x, z, c)), self.inv_roundoff_after(x, z, c, dx)
        with np.errstate(invalid="ignore", over="ignore"):
            scaled = residual * inv_roundoff
        index = int(np.argmax(np.where(np.isnan(scaled), np.inf, scaled)))
        roundoff_bound = float(1.0 / inv_roundoff[index]) if inv_roundoff[index] else np.inf
        return StepFailure(float(residual[index]), roundoff_bound, self.row_name(index), reason, float(c[0]))


class ReferenceStepper(Stepper):
    """Stepper in Python, one step at a time."""

    def __init__(self, equations: StepGraph, k: np.ndarray) -> None:
        super().__init__(equations.layout, WorkspaceManager(k, equations.block_size_array))
        self.equations, self._solver = equations, ReferenceSolver(equations)

    @classmethod
    def create(cls, compiled: CompiledStep, k: np.ndarray, options: StepperOptions) -> ReferenceStepper:
        return cls(compiled.flat_equations, k)

    def advance(
        self, state: IntegratorState, n_steps: int, policy: StepPolicy, controller_state: np.ndarray
    ) -> StepChunk:
        assert not policy.adaptive, "the reference tier takes fixed steps"
        w = self._workspaces.prepare(state, n_steps)
        w.c[0] = policy.h
        for s in range(n_steps):
            w.c[1] = policy.t_origin + (policy.step0 + s) * policy.h
            failure: StepFailure | None = None
            n, group_sizes = w.n_unknowns, self.equations.block_size_array
            predictor_ok = predict_unknowns(w.X[s : s + HISTORY], w.X[s + HISTORY], n, group_sizes, len(group_sizes))
            scheme_guess = self.equations.initial_guess_function(w.Z[s], w.c).full().ravel()
            for initial_guess in (
                (w.X[s + HISTORY].copy(), scheme_guess) if predictor_ok else (scheme_guess, w.X[s + HISTORY - 1])
            ):
                failure = self._solver.take_step(initial_guess, w, s)
                if failure is None:
                    break
            if failure is not None:
                return truncate_at_nonfinite(chunk_from_workspace(w, state, s, policy, failure), self._layout)
            if policy.stop_entry >= 0 and w.Z[s + 1, policy.stop_entry] > policy.stop_value:
                return truncate_at_nonfinite(chunk_from_workspace(w, state, s, policy, reached_end=True), self._layout)
        return truncate_at_nonfinite(chunk_from_workspace(w, state, n_steps, policy), self._layout)
