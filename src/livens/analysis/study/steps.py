"""Lists of schemes and step sizes of a study."""

from __future__ import annotations

import math
from collections.abc import Sequence

from livens import problems
from livens import schemes as all_schemes
from livens.errors import InputError
from livens.expressions.numbers import number, positive
from livens.models.problem import Problem
from livens.schemes.base import Scheme

#: Number of step sizes of a study, each half the previous one, and the maximum number of equations solved per scheme.
_HALVINGS, _BUDGET = 5, 10_000_000
#: Storage interval that stores the first and the last step only.
ONLY_THE_END = 2**52
#: Maximum number of halvings.
_MOST_HALVINGS = 30


def as_problem(problem: str | Problem) -> Problem:
    """Return the problem, or the built-in problem of this name."""
    if isinstance(problem, str):
        return problems.load(problem)
    if not isinstance(problem, Problem):
        raise InputError(f"a study needs a Problem or the name of one, got {problem!r}")
    return problem


def chosen_schemes(problem: Problem, names: str | Sequence[str | Scheme] | None) -> list[Scheme]:
    """Return the requested schemes without duplicates; by default all that support the problem and its scaling."""
    if names is None:
        return [
            scheme for name in all_schemes.fitting(problem.system) if _runs(problem, scheme := all_schemes.get(name))
        ]
    if not isinstance(names, (str, list, tuple)):
        raise InputError(f"schemes must be names of schemes, got {names!r}")
    listed = [part.strip() for part in names.split(",")] if isinstance(names, str) else list(names)
    found = {scheme.name: scheme for scheme in map(all_schemes.get, listed)}
    if not found:
        raise InputError("name at least one scheme")
    for scheme in found.values():
        all_schemes.require(scheme, problem.system)
    return list(found.values())


def _runs(problem: Problem, scheme: Scheme) -> bool:
    """Return True unless the scheme needs a time scaling that the problem does not provide."""
    if not scheme.fictive:
        return True
    if problem.scaling is None:
        return False
    try:
        scheme.scaled(problem.scaling).equations(problem.system)
    except InputError:
        return False
    return True


def step_sizes(text: str) -> list[float]:
    """Parse step sizes: ``"0.01,0.005"`` is a list, ``"0.01:5"`` is 0.01 and its halves, five steps in all.

    >>> step_sizes("0.01:3")
    [0.01, 0.005, 0.0025]
    """
    first, colon, count = text.partition(":")
    if not colon:
        return checked([part.strip() for part in text.split(",")])
    h = positive("h", first)
    try:
        halvings = int(count)
    except ValueError:
        halvings = 0
    if not 1 <= halvings <= _MOST_HALVINGS:
        raise InputError(f"--h {text}: after the colon, give the number of step sizes, from 1 to {_MOST_HALVINGS}")
    return [h / 2**i for i in range(halvings)]


def checked(steps: Sequence[float | str]) -> list[float]:
    """Return positive step sizes without duplicates, largest first."""
    return sorted({positive("h", h) for h in steps}, reverse=True)


def usual_steps(problem: Problem, t_end: float) -> list[float]:
    """Return the step size of the problem and its halves, enlarged if the study would take more than some seconds."""
    h, model = problem.h, problem.system
    unknowns = len(model.coordinates) + len(model.constraint_names) + len(model.algebraic)
    together = (t_end - problem.t0) / h * (2**_HALVINGS - 1) * unknowns
    if together > _BUDGET:
        h *= 2.0 ** math.ceil(math.log2(together / _BUDGET))
    return [h / 2**i for i in range(_HALVINGS)]


def end_time(problem: Problem, t_end: float | None) -> float:
    end = problem.t_end if t_end is None else number("t_end", t_end)
    if end <= problem.t0:
        raise InputError(f"t_end must lie after t0 = {problem.t0:g}, got {end:g}")
    return end
