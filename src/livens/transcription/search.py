"""Search from several initial guesses, each by homotopy in input bounds and end time, in one or several processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from livens.analysis.study.process_pool import ProcessPool
from livens.errors import InputError
from livens.run.progress import Progress
from livens.transcription.fatrop_solver import solve_by_fatrop
from livens.transcription.ipopt_solver import Solution, interrupted, solve
from livens.transcription.nlp_blocks import BoundedProgram
from livens.transcription.transcription import Transcription
from livens.validation import check_positive

#: Bounds that a homotopy relaxes.
_RELAXED = ("inputs", "t_end")


def relaxation_factors(relaxation: object) -> list[tuple[float, float]]:
    """Return the factors of input bounds and end time of every program of a homotopy before the last.

    Parameters
    ----------
    relaxation : sequence of float or mapping
        Factors of the input bounds, or sequences of factors of ``inputs`` and ``t_end``, of equal lengths.
    """
    requested = relaxation if isinstance(relaxation, Mapping) else {"inputs": relaxation}
    sequences: dict[str, list[float]] = {}
    for name, factors in requested.items():
        if name not in _RELAXED:
            raise InputError(f"relaxation applies to {' and '.join(_RELAXED)}, got '{name}'")
        values = factors.tolist() if isinstance(factors, np.ndarray) else factors
        if isinstance(values, str) or not isinstance(values, Sequence):
            raise InputError(f"relaxation of {name} must be a sequence of factors, got {factors!r}")
        sequences[name] = [check_positive("a factor in relaxation", value) for value in values]
    count = max(map(len, sequences.values()), default=0)
    if any(len(factors) != count for factors in sequences.values()):
        raise InputError(f"relaxation of inputs and t_end needs as many factors of each, got {relaxation!r}")
    columns = [sequences.get(name, [1.0] * count) for name in _RELAXED]
    return list(zip(*columns, strict=True))


def homotopy(
    programs: Sequence[BoundedProgram],
    w: np.ndarray,
    ipopt: Mapping[str, object] | None,
    progress: bool | None,
    solver: str = "ipopt",
) -> Solution:
    """Solve the programs in turn, each from the solution of the one before, and return the last solution."""
    for program in programs:
        guess = np.clip(w, program.lower, program.upper)
        if solver == "fatrop":
            solution = solve_by_fatrop(program, guess, ipopt)
        else:
            solution = solve(program, guess, ipopt, progress)
        w = solution.w
        if solution.status == "Interrupted":
            break
    return solution


def search(
    transcription: Transcription,
    guesses: Sequence[np.ndarray],
    factors: Sequence[tuple[float, float]],
    n_workers: int,
    ipopt: Mapping[str, object] | None,
    progress: bool | None,
    solver: str,
) -> list[Solution]:
    """Return the solutions from all guesses, in the order of the guesses; after Ctrl-C, those that are available.

    Every solution depends on its guess alone, so that the number of processes does not change the result.
    """
    programs = [*(transcription.relaxed_program(*pair) for pair in factors), transcription.program]
    if n_workers > 1 and len(guesses) > 1:
        return _parallel_search(programs, guesses, n_workers, ipopt, progress, solver)
    solutions: list[Solution] = []
    for guess in guesses:
        solutions.append(homotopy(programs, guess, ipopt, progress, solver))
        if solutions[-1].status == "Interrupted":
            break
    return solutions


def _parallel_search(
    programs: Sequence[BoundedProgram],
    guesses: Sequence[np.ndarray],
    n_workers: int,
    ipopt: Mapping[str, object] | None,
    progress: bool | None,
    solver: str,
) -> list[Solution]:
    solutions: dict[int, Solution] = {}
    tasks = [(programs, guess, ipopt, False, solver) for guess in guesses]
    title = f"{programs[-1].title}: multi-start"
    try:
        with (
            Progress(title, len(guesses), progress, "starts") as bar,
            ProcessPool(min(n_workers, len(guesses)), homotopy) as pool,
        ):
            for done in pool.map_unordered(tasks):
                for number, outcome in done:
                    # a lost process or an error: the search from this guess is repeated here, where its error is raised
                    solutions[number] = outcome if isinstance(outcome, Solution) else homotopy(*tasks[number])
                bar.update(len(solutions))
    except KeyboardInterrupt:
        if not solutions:
            solutions[0] = interrupted(programs[-1], guesses[0])
    return [solutions[number] for number in sorted(solutions)]
