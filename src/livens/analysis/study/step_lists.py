"""Lists of schemes and step sizes of a study."""

from __future__ import annotations

import math
from collections.abc import Sequence

from livens import problems
from livens import schemes as all_schemes
from livens.errors import InputError
from livens.models.problem import Problem
from livens.schemes.core.registry import PREFERRED
from livens.schemes.core.scheme import Scheme
from livens.validation import check_number, check_positive

#: Number of step sizes of a study, each half the previous one, and the maximum number of equations solved per scheme.
_HALVINGS, _BUDGET = 5, 10_000_000
#: Storage interval that stores the first and the last step only.
FINAL_STATE_ONLY = 2**52
#: Maximum number of halvings.
_MAX_HALVINGS = 30


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
            scheme
            for name in all_schemes.compatible(problem.model)
            if _is_applicable(problem, scheme := all_schemes.get(name))
        ]
    if not isinstance(names, (str, list, tuple)):
        raise InputError(f"schemes must be names of schemes, got {names!r}")
    listed = [part.strip() for part in names.split(",")] if isinstance(names, str) else list(names)
    unique = {scheme.name: scheme for scheme in map(all_schemes.get, listed)}
    if not unique:
        raise InputError("name at least one scheme")
    for scheme in unique.values():
        all_schemes.check_compatible(scheme, problem.model)
    return list(unique.values())


def representative_schemes(problem: Problem, count: int = 5) -> list[Scheme]:
    """Return at most `count` schemes of different families: the default scheme of the problem, then by preference.

    Schemes of the group "Methods for comparison" are left out.
    """
    applicable = {scheme.name: scheme for scheme in chosen_schemes(problem, None)}
    families: dict[str, Scheme] = {}
    for name in dict.fromkeys([problem.scheme, *PREFERRED, *applicable]):
        scheme = applicable.get(name) or (all_schemes.get(name) if name == problem.scheme else None)
        if scheme is not None and scheme.group != "Methods for comparison":
            families.setdefault(scheme.traits.family or scheme.name, scheme)
    return list(families.values())[:count]


def _is_applicable(problem: Problem, scheme: Scheme) -> bool:
    """Return True unless the scheme needs a time scaling that the problem does not provide."""
    if not scheme.fictive:
        return True
    if problem.scaling is None:
        return False
    try:
        scheme.with_scaling(problem.scaling).equations(problem.model)
    except InputError:
        return False
    return True


def parse_step_sizes(text: str) -> list[float]:
    """Parse step sizes: ``"0.01,0.005"`` is a list, ``"0.01:5"`` is 0.01 and its halves, five steps in all.

    >>> parse_step_sizes("0.01:3")
    [0.01, 0.005, 0.0025]
    """
    largest, colon, count = text.partition(":")
    if not colon:
        return check_steps([part.strip() for part in text.split(",")])
    h = check_positive("h", largest)
    try:
        halvings = int(count)
    except ValueError:
        halvings = 0
    if not 1 <= halvings <= _MAX_HALVINGS:
        raise InputError(f"--h {text}: after the colon, give the number of step sizes, from 1 to {_MAX_HALVINGS}")
    return [h / 2**i for i in range(halvings)]


def check_steps(steps: Sequence[float | str]) -> list[float]:
    """Return positive step sizes without duplicates, largest first."""
    return sorted({check_positive("h", h) for h in steps}, reverse=True)


def default_steps(problem: Problem, t_end: float) -> list[float]:
    """Return the step size of the problem and its halves, enlarged if the study would take more than some seconds."""
    h, model = problem.h, problem.model
    unknowns = len(model.coordinates) + len(model.constraint_names) + len(model.algebraic_names)
    total_work = (t_end - problem.t0) / h * (2**_HALVINGS - 1) * unknowns
    if total_work > _BUDGET:
        h *= 2.0 ** math.ceil(math.log2(total_work / _BUDGET))
    return [h / 2**i for i in range(_HALVINGS)]


def end_time(problem: Problem, t_end: float | None) -> float:
    end = problem.t_end if t_end is None else check_number("t_end", t_end)
    if end <= problem.t0:
        raise InputError(f"t_end must lie after t0 = {problem.t0:g}, got {end:g}")
    return end
