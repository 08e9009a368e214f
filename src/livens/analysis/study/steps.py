"""Which schemes and steps a study takes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from livens import problems
from livens import schemes as all_schemes
from livens.errors import InputError
from livens.expressions.numbers import number, positive
from livens.models.problem import Problem
from livens.schemes.base import Scheme

#: A study takes this many step sizes, each half the one before; the runs of one scheme solve at most this many
#: equations together.
_HALVINGS, _BUDGET = 5, 10_000_000
#: Store nothing but the first and the last step.
ONLY_THE_END = 2**52
#: More halvings than this are a slip of the pen.
_MOST_HALVINGS = 30


def as_problem(problem: str | Problem) -> Problem:
    """A problem, or the ready one of this name."""
    if isinstance(problem, str):
        return problems.load(problem)
    if not isinstance(problem, Problem):
        raise InputError(f"a study needs a Problem or the name of one, got {problem!r}")
    return problem


def chosen_schemes(problem: Problem, names: str | Sequence[str | Scheme] | None) -> list[Scheme]:
    """The schemes asked for, each once; without names all that fit the problem and its scaling."""
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
    """Whether a scheme that adapts its steps can do so with the scaling of the problem."""
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
    """``"0.01,0.005"`` are these steps, ``"0.01:5"`` is 0.01 and its halves, five steps in all.

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
        raise InputError(f"--h {text}: after the colon stands how many steps, from 1 to {_MOST_HALVINGS}")
    return [h / 2**i for i in range(halvings)]


def checked(steps: Sequence[float | str]) -> list[float]:
    """Positive numbers, the largest first, each once."""
    return sorted({positive("h", h) for h in steps}, reverse=True)


def usual_steps(problem: Problem, t_end: float) -> list[float]:
    """The problem's own step and its halves; larger ones if that would take more than some seconds."""
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
