"""Truncated Newton iteration: runs whose step equations are solved up to a residual tolerance.

The engine solves the equations of a step to round-off. Published results are often computed with a tolerance of the
residual, whose effects, such as a drift of the energy, this study shows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from livens import schemes
from livens.engine.newton.predictors import predict_unknowns
from livens.engine.steppers.reference import ReferenceSolver
from livens.errors import InputError, IntegrationError, explain_call_errors
from livens.models.problem import Problem
from livens.run.plan import Plan
from livens.schemes.core.scheme import Scheme
from livens.validation import check_choice, check_positive

#: Maximum number of Newton iterations of a step.
_MAX_ITERATIONS = 50
#: Number of preceding steps that the extrapolation uses.
_HISTORY = 5
#: Initial guess of the unknowns of a step from its state by name, its size and the time.
InitialGuess = Callable[[Mapping[str, np.ndarray], float, float], np.ndarray]


@dataclass(frozen=True)
class TruncatedNewtonRun:
    """Run of a truncated Newton iteration: states and the residual norms that were tested.

    Parameters
    ----------
    t : ndarray of shape (n_steps + 1,)
        Times in seconds.
    states : dict of str to ndarray
        State variables by name, such as ``q``, ``v`` and ``p``, one row per time.
    residual_norms : ndarray of shape (n_steps,)
        Euclidean norms of the residual at the solution of each step.
    initial_norms : ndarray of shape (n_steps,)
        Euclidean norms of the residual at the initial guess of each step.
    newton_iterations : ndarray of shape (n_steps,)
        Newton iterations of each step.
    """

    t: np.ndarray
    states: dict[str, np.ndarray]
    residual_norms: np.ndarray
    initial_norms: np.ndarray
    newton_iterations: np.ndarray

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self.states:
            raise InputError(f"the run has no '{name}', only {', '.join(self.states)}")
        return self.states[name]


@explain_call_errors
def truncated_newton(
    problem: Problem,
    residual_tolerance: float,
    *,
    scheme: str | Scheme | None = None,
    h: float | None = None,
    t_end: float | None = None,
    initial_guess: str | InitialGuess = "start",
) -> TruncatedNewtonRun:
    """Run a problem with Newton iterations that end at a residual tolerance, with fixed steps, in Python.

    Parameters
    ----------
    problem : Problem
        Problem to run, such as ``livens.problems.load("pendulum")``.
    residual_tolerance : float
        Largest Euclidean norm of the residual of the step equations, relative to 1 plus the norm of the state.
    scheme : str or Scheme, optional
        Integration scheme. Default: the scheme of the problem.
    h : float, optional
        Step size in seconds. Default: the step size of the problem.
    t_end : float, optional
        End time in seconds. Default: the end time of the problem.
    initial_guess : {"start", "extrapolated"} or callable, default "start"
        Initial guess of the unknowns of a step: the values at its start, their extrapolation from the last five steps,
        or a function of the state by name, the step size and the time.

    Returns
    -------
    TruncatedNewtonRun
        States, residual norms and Newton iterations.

    Raises
    ------
    InputError
        If an argument is not allowed, or if the scheme cannot run the problem.
    IntegrationError
        If the iteration of a step does not reach the tolerance.

    Examples
    --------
    >>> import livens as lv
    >>> pendulum = lv.problems.load("pendulum")
    >>> run = lv.study.truncated_newton(pendulum, 1e-8, scheme="M-PRK", h=0.01, t_end=0.1)
    >>> bool(run.residual_norms.max() < 2e-8), int(run.newton_iterations.max())
    (True, 2)
    """
    if not isinstance(problem, Problem):
        raise InputError(f"truncated_newton needs a Problem, such as livens.problems.load('pendulum'), got {problem!r}")
    check_positive("residual_tolerance", residual_tolerance)
    if not callable(initial_guess):
        check_choice("initial_guess", initial_guess, ("start", "extrapolated"))
    plan = Plan.from_arguments(
        problem, scheme=schemes.get(scheme or problem.scheme), h=h, t_end=t_end, tier="reference"
    )
    if not plan.has_fixed_steps or plan.scheme.selects_step_size:
        raise InputError(f"truncated_newton takes fixed steps in time, which '{plan.scheme.name}' does not have")
    equations = plan.scheme.equations(plan.model).to_single_graph()
    if equations.external_force is not None:
        raise InputError("truncated_newton does not evaluate external (compiled) forces: write them as expressions")
    if not equations.initial_guess_function.numel_out(0):
        raise InputError(f"'{plan.scheme.name}' is explicit on this problem: its steps have no equations to solve")
    k = plan.k
    initial = plan.model.initial_state(dict(plan.start), k, plan.t0, plan.project, plan.redundant)
    iteration = _Iteration(equations, float(residual_tolerance), initial_guess)
    n_steps = round((plan.t_end - plan.t0) / plan.h)
    for n in range(n_steps):
        iteration.step(np.concatenate([[plan.h, plan.t0 + n * plan.h], k]), equations.layout.pack(initial.values))
    rows = np.array(iteration.rows)
    states = {name: rows[:, equations.layout[name]] for name in equations.layout.sizes}
    counters = (np.array(values) for values in zip(*iteration.counters, strict=True))
    return TruncatedNewtonRun(plan.t0 + plan.h * np.arange(n_steps + 1), states, *counters)


class _Iteration:
    """Newton iteration of consecutive steps up to a tolerance."""

    def __init__(self, equations: Any, tolerance: float, initial_guess: str | InitialGuess) -> None:
        self._equations, self._tolerance, self._initial_guess = equations, tolerance, initial_guess
        self._solver = ReferenceSolver(equations)
        self._unknowns: list[np.ndarray] = []
        self.rows: list[np.ndarray] = []
        #: Norm at the solution, norm at the initial guess and number of iterations of each step.
        self.counters: list[tuple[float, float, int]] = []

    def step(self, c: np.ndarray, initial_state: np.ndarray) -> None:
        """Append the state after a step with the inputs c."""
        if not self.rows:
            self.rows.append(initial_state)
        z = self.rows[-1]
        scale = 1 + float(np.linalg.norm(z))
        x = self._guess(z, c)
        norms = [float(np.linalg.norm(self._solver.residual(x, z, c)))]
        while not norms[-1] <= self._tolerance * scale:
            if len(norms) > _MAX_ITERATIONS or not np.isfinite(norms[-1]):
                raise IntegrationError(
                    f"the step from t = {c[1]:g} did not reach the residual tolerance {self._tolerance:g}: the norm of "
                    f"the residual is {norms[-1]:.3g} after {len(norms) - 1} Newton iterations; use a larger tolerance"
                )
            x = x - self._solver.newton_update(x, z, c)
            norms.append(float(np.linalg.norm(self._solver.residual(x, z, c))))
        self._unknowns = [*self._unknowns[1 - _HISTORY :], x]
        self.rows.append(self._equations.final_state_function(x, z, c).full().ravel())
        self.counters.append((norms[-1], norms[0], len(norms) - 1))

    def _guess(self, z: np.ndarray, c: np.ndarray) -> np.ndarray:
        if callable(self._initial_guess):
            layout = self._equations.layout
            return np.array(self._initial_guess({name: z[layout[name]] for name in layout.sizes}, c[0], c[1]), float)
        if self._initial_guess == "extrapolated" and len(self._unknowns) == _HISTORY:
            guess = np.empty_like(self._unknowns[0])
            sizes = self._equations.block_size_array
            if predict_unknowns(np.array(self._unknowns), guess, guess.size, sizes, len(sizes)):
                return guess
        return np.asarray(self._equations.initial_guess_function(z, c).full().ravel())
