"""Reference solutions: exact solution, Taylor series, or Richardson extrapolation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from livens.analysis.study.ends import end_of
from livens.analysis.study.steps import ONLY_THE_END
from livens.errors import InputError, IntegrationError
from livens.models.problem import Problem
from livens.run.simulate import simulate
from livens.schemes import fitting, get
from livens.schemes.base import Scheme
from livens.schemes.taylor import Taylor, TaylorOfOrder

#: Number of runs of the extrapolation, with successively halved steps; the coarser runs give the uncertainty.
_LEVELS = 4
#: Order of the Taylor series used as a reference, and the largest number of coordinates for which it is compiled.
_HIGHER, _MOST_COORDINATES = 24, 40


@dataclass(frozen=True)
class Reference:
    """Solution at the final time by variable, with its uncertainty (0 for an exact solution) and description."""

    values: dict[str, np.ndarray]
    uncertainty: dict[str, float]
    words: str

    def error(self, name: str, found: np.ndarray) -> float:
        """Return the Euclidean distance of a variable from the reference."""
        return float(np.linalg.norm(found - self.values[name]))

    def scale(self, name: str) -> float:
        return float(np.linalg.norm(self.values[name])) or 1.0


def reference_at(
    problem: Problem,
    t_end: float,
    schemes: Sequence[Scheme],
    finest: float,
    tick: Callable[[], None] = lambda: None,
    members: Mapping[str, Any] | None = None,
) -> Reference:
    """Return the exact solution of a problem, or a Taylor series where applicable, or a Richardson extrapolation.

    The exact solution belongs to the initial values of the problem; members with other initial values have none.
    """
    if problem.reference is not None and members is None:
        exact = {name: np.asarray(value, dtype=float) for name, value in problem.reference(t_end).items()}
        return Reference(exact, dict.fromkeys(exact, 0.0), "the exact solution")
    series = _by_series(problem, t_end) if members is None else None
    if series is not None:
        tick()
        return series
    # the first scheme of the highest order; steps of a fictive time do not divide the time span
    equal = [scheme for scheme in schemes if not scheme.fictive]
    equal = equal or [scheme for name in fitting(problem.system) if not (scheme := get(name)).fictive]
    if not equal:
        raise InputError("no reference: the problem has no exact solution, and no scheme with equal steps fits it")
    return _extrapolated(problem, t_end, max(equal, key=lambda scheme: scheme.order), finest, tick, members)


def _by_series(problem: Problem, t_end: float) -> Reference | None:
    """Return a Taylor series solution to round-off, with the change by a lower order; None if not applicable."""
    model = problem.system
    if len(model.coordinates) > _MOST_COORDINATES or Taylor().missing(model):
        return None
    try:
        coarse, fine = (
            simulate(problem, scheme=scheme, t_end=t_end, every=ONLY_THE_END, progress=False)
            for scheme in (Taylor(), TaylorOfOrder(_HIGHER))
        )
    except IntegrationError:
        return None
    values = {name: fine.last(name) for name in model.error_variables}
    uncertainty = {name: float(np.linalg.norm(coarse.last(name) - value)) for name, value in values.items()}
    uncertain = ", ".join(f"{number:.0e} in {name}" for name, number in uncertainty.items())
    return Reference(values, uncertainty, f"Taylor series of order {_HIGHER} (uncertain by {uncertain})")


def _extrapolated(
    problem: Problem,
    t_end: float,
    scheme: Scheme,
    finest: float,
    tick: Callable[[], None],
    members: Mapping[str, Any] | None,
) -> Reference:
    """Return the Richardson extrapolation: errors in powers of h (even powers for a symmetric scheme) are eliminated.

    The steps divide the time span, because a shorter last step has another expansion.
    """
    span = t_end - problem.t0
    base = math.ceil(span / finest * (1 - 1e-12))
    names = problem.system.error_variables
    table: dict[str, list[np.ndarray]] = {name: [] for name in names}
    for level in range(_LEVELS):
        steps = base * 2**level
        try:
            end = end_of(problem, scheme, span / steps, t_end, members)
        except IntegrationError as error:
            raise InputError(
                f"no reference: the problem has no exact solution, and a run of {scheme.name} with h = "
                f"{span / steps:g} failed: {error}"
            ) from None
        for name in names:
            table[name].append(end.values[name])
        tick()
    values, uncertainty, ratios = {}, {}, {}
    stride = 2 if scheme.symmetric else 1
    for name, column in table.items():
        before, last = (float(np.linalg.norm(column[i] - column[i + 1])) for i in (-3, -2))
        ratios[name] = before / max(last, 1e-300)
        values[name], uncertainty[name] = _eliminated(column, scheme.order, stride)
    uncertain = ", ".join(f"{uncertainty[name]:.0e} in {name}" for name in names)
    words = (
        f"an extrapolation from {_LEVELS} runs of {scheme.name} down to h = {span / (base * 2 ** (_LEVELS - 1)):.3g} "
        f"(uncertain by {uncertain}; "
        f"a halving made the change in {names[0]} {ratios[names[0]]:.2f} times smaller, expected {2**scheme.order})"
    )
    return Reference(values, uncertainty, words)


def _eliminated(column: list[np.ndarray], order: int, stride: int) -> tuple[np.ndarray, float]:
    """Return the entry of the Romberg table that is closest to its neighbour, and their distance.

    Where round-off dominates, eliminating more powers only amplifies it.
    """
    best, closest = column[-1], float(np.linalg.norm(column[-1] - column[-2]))
    power = order
    while len(column) > 1:
        factor = 2.0**power - 1
        column = [fine + (fine - coarse) / factor for coarse, fine in itertools.pairwise(column)]
        if len(column) > 1:
            moved = float(np.linalg.norm(column[-1] - column[-2]))
            if moved < closest:
                best, closest = column[-1], moved
        power += stride
    return best, closest
