"""`optimal_control`: inputs of a motion by direct transcription with the step equations of a scheme."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from livens.errors import InputError, explain_call_errors
from livens.models.base import Model
from livens.models.problem import Problem
from livens.multibody.multibody import Multibody
from livens.run.progress import show_preparation
from livens.schemes.core.scheme import Scheme
from livens.transcription.control_problem import control_problem, mesh_fractions
from livens.transcription.fatrop_solver import fatrop_options
from livens.transcription.guess import initial_guess
from livens.transcription.ipopt_solver import ipopt_options
from livens.transcription.motion import OptimalMotion
from livens.transcription.multistart import random_guess
from livens.transcription.problem_checks import check_end_conditions, check_problem
from livens.transcription.search import relaxation_factors, search
from livens.transcription.stage import StageModel
from livens.transcription.transcription import Transcription
from livens.types import ModelFunction
from livens.validation import check_choice, check_integer

#: Largest number of initial guesses of a multi-start.
MAX_STARTS = 10_000
#: Largest number of processes of a multi-start.
MAX_WORKERS = 1024
#: Solvers of the nonlinear program.
SOLVERS = ("ipopt", "fatrop")


@explain_call_errors
def optimal_control(
    model: Model | Multibody | Problem,
    *,
    inputs: Mapping[str, object] | None = None,
    t_end: float | tuple[float, float] | None = None,
    steps: int | None = None,
    scheme: str | Scheme | None = None,
    mesh: Sequence[float] | None = None,
    start: Mapping[str, object] | None = None,
    end: Mapping[str, object] | None = None,
    along: Mapping[str, object] | None = None,
    periodic: bool | ModelFunction | None = None,
    minimise: object = "effort",
    final: ModelFunction | None = None,
    free: Mapping[str, object] | None = None,
    parameters: Mapping[str, object] | None = None,
    shape: str | None = None,
    guess: object = None,
    starts: int = 1,
    n_workers: int = 1,
    relaxation: Sequence[float] | Mapping[str, Sequence[float]] = (),
    t0: float = 0.0,
    solver: str = "ipopt",
    ipopt: Mapping[str, object] | None = None,
    progress: bool | None = None,
) -> OptimalMotion:
    """Solve an optimal control problem by direct transcription with the step equations of a scheme.

    The equations of every step are constraints of a nonlinear program, which IPOPT solves. The solution is a motion of
    the simulator: `OptimalMotion.replay` reproduces it to round-off.

    Parameters
    ----------
    model : System, Multibody, PortHamiltonian, FirstOrder or Problem
        Model. The control problem of a built-in Problem, `Problem.control`, has the default values of all arguments.
    inputs : mapping of str to (float, float) or None
        Parameters of the model that are found for every step, with bounds ``(low, high)``; None is unbounded.
    t_end : float or (float, float)
        End time in seconds, or the earliest and the latest end time.
    steps : int, default 50
        Number of steps.
    scheme : str or Scheme, optional
        Scheme with fixed steps. Default: ``livens-variational`` for a System, ``lie-em`` for bodies with frames
        (``lie-ggl`` if periodic), ``gauss-2`` or ``radau-iia-3`` for models of first order.
    mesh : sequence of float, optional
        Relative lengths of the steps, instead of `steps`.
    start : mapping, optional
        ``q0`` and ``v0`` (``x0``), or conditions as for `end`; values that remain open are found. Default: the initial
        state of a Multibody or Problem.
    end : mapping, optional
        Conditions at the end. Names of coordinates (``x``, ``v_x``, ``p_x``), outputs (``hinge.angle``) or observables
        with numbers or pairs ``(low, high)``; any name with ``(function, low, high)``; whole vectors ``q``, ``v``,
        ``x``. A function depends on some of ``q v p t u k`` (``x y t u k``).
    along : mapping, optional
        Conditions at the end of every step, as for `end`. Forces are those of the step that ends there.
    periodic : bool or callable, optional
        True if the end equals the start, or a function ``(q, v) -> (q, v)`` from the start to the end.
    minimise : str, callable or mapping, default "effort"
        Objective: "effort" (integral of the squared inputs), "time", "supplied" (work of the forces), a function to be
        integrated over time, or a mapping of these to weights. None: no running cost.
    final : callable, optional
        Function of the last state that is added to the cost.
    free : mapping of str to (float, float), optional
        Other parameters that are found, one value for the whole motion, with bounds.
    parameters : mapping, optional
        Parameter values that differ from those of the model.
    shape : {"constant", "linear", "stages"}, optional
        Inputs within a step: constant, linear and continuous, or one value per stage. Default: the shape with which the
        scheme has its full order.
    guess : OptimalMotion, Result, mapping or "energy", optional
        Initial guess: a motion, a run, or rows ``q``, ``v``, ``x`` and ``u`` over time, with ``t_end``. "energy": a
        simulation with energy-shaping control, for swing-ups of a System without constraints.
    starts : int, default 1
        Number of initial guesses: the guess, then random perturbations. The best converged motion is returned, with all
        motions in `OptimalMotion.alternatives`.
    n_workers : int, default 1
        Number of processes that solve from the initial guesses of a multi-start. It does not change the result. In a
        script, call `optimal_control` below ``if __name__ == "__main__":`` if `n_workers` exceeds 1.
    relaxation : sequence of float or mapping, default ()
        Homotopy: the problem is first solved with bounds relaxed by each factor in turn. A sequence has factors of the
        input bounds. A mapping has factors of ``inputs`` and of ``t_end``: a fixed duration is multiplied by the
        factor, and of a pair the longest duration is.
    t0 : float, default 0.0
        Start time in seconds.
    solver : {"ipopt", "fatrop"}, default "ipopt"
        Solver of the nonlinear program. fatrop needs fixed end time, start and parameters, and inputs that are not
        continuous from step to step. It shows no progress, and Ctrl-C does not keep its iterate.
        `OptimalMotion.refined` uses IPOPT.
    ipopt : mapping, optional
        Options of IPOPT, such as ``max_iter``; of fatrop, ``max_iter`` and ``tol``.
    progress : bool, optional
        Show iterations. Default: on a terminal or in a notebook, after two seconds.

    Returns
    -------
    OptimalMotion
        Motion, inputs, cost and duals. `OptimalMotion.converged` is False if the search failed or was interrupted by
        Ctrl-C; the motion is then the best iterate, and `OptimalMotion.message` names the violated conditions.

    Raises
    ------
    InputError
        If an argument is invalid, or the scheme cannot be transcribed.

    Examples
    --------
    Move a mass of 1 kg by 1 m in 1 s with the least integral of the squared force, which is 12:

    >>> import livens as lv
    >>> cart = lv.System("x", kinetic=lambda v: v[0] ** 2 / 2, forces=lambda k: [k.u], parameters=dict(u=0.0))
    >>> motion = lv.optimal_control(
    ...     cart, inputs={"u": (-20, 20)}, t_end=1.0, steps=20, start=dict(q0=[0], v0=[0]), end=dict(q=[1], v=[0])
    ... )
    >>> motion.converged, round(motion.cost, 3), bool(motion.replay().defect < 1e-12)
    (True, 12.03, True)
    """
    arguments: dict[str, Any] = dict(
        inputs=inputs, t_end=t_end, steps=steps, scheme=scheme, mesh=mesh, start=start, end=end, along=along,
        periodic=periodic, final=final, free=free, parameters=parameters, shape=shape, guess=guess,
    )  # fmt: skip
    if isinstance(model, Problem):
        arguments = _with_problem_defaults(model, arguments)
        minimise = model.control.get("minimise", minimise) if minimise == "effort" else minimise
    if arguments["t_end"] is None:
        raise InputError("t_end is missing: give the end time, or a pair (earliest, latest)")
    steps, mesh, guess = arguments.pop("steps"), arguments.pop("mesh"), arguments.pop("guess")
    arguments["inputs"] = {} if arguments["inputs"] is None else arguments["inputs"]
    check_integer("starts", starts, 1, MAX_STARTS)
    check_integer("n_workers", n_workers, 1, MAX_WORKERS)
    factors = relaxation_factors(relaxation)
    check_choice("solver", solver, SOLVERS)
    (fatrop_options if solver == "fatrop" else ipopt_options)(ipopt)
    fractions, t_begin = mesh_fractions(50 if steps is None else steps, mesh), time.perf_counter()
    with show_preparation("optimal control", progress):
        problem = control_problem(model, minimise=minimise, guess=guess, t0=t0, **arguments)
        transcription = Transcription(StageModel(problem), fractions)
        check_problem(transcription)
        w = initial_guess(transcription, _same_program(transcription, guess))
        check_end_conditions(transcription, w)
    setup = time.perf_counter() - t_begin
    guesses = [w, *(random_guess(transcription, w, number) for number in range(1, starts))]
    solutions = search(transcription, guesses, factors, n_workers, ipopt, progress, solver)
    solutions[0].statistics["setup_s"] += setup
    motions = [OptimalMotion(transcription, solution, ipopt, progress) for solution in solutions]
    motions.sort(key=lambda motion: (not motion.converged, motion.cost if motion.converged else _violation(motion)))
    motions[0].alternatives = tuple(motions)
    return motions[0]


def _violation(motion: OptimalMotion) -> float:
    return float(motion.statistics["violation"])


def _with_problem_defaults(problem: Problem, arguments: Mapping[str, object]) -> dict[str, Any]:
    """Return the arguments, with those of the control problem of a built-in problem where none are given."""
    if not problem.control and arguments["inputs"] is None:
        raise InputError(f"problem '{problem.name}' has no control problem: give inputs and conditions")
    return {name: problem.control.get(name) if value is None else value for name, value in arguments.items()}


def _same_program(transcription: Transcription, guess: object) -> object:
    """Return the variables of a motion of the same program, which continue its search; other guesses unchanged."""
    if not isinstance(guess, OptimalMotion):
        return guess
    other, stage = guess.transcription, transcription.stage
    same = (
        other.size == transcription.size
        and np.array_equal(other.fractions, transcription.fractions)
        and other.problem.scheme == transcription.problem.scheme
        and other.stage.active == stage.active
        and other.problem.shape.name == transcription.problem.shape.name
        and other.stage.n_start == stage.n_start
    )
    return guess.solution.w if same else guess
