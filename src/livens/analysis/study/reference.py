"""Reference solutions: exact solution, Taylor series, or Richardson extrapolation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from livens.analysis.study.final_states import final_state
from livens.analysis.study.step_lists import FINAL_STATE_ONLY
from livens.errors import InputError, IntegrationError
from livens.models.problem import Problem
from livens.run.simulate import simulate
from livens.schemes import compatible, get
from livens.schemes.core.scheme import Scheme
from livens.schemes.taylor import Taylor, TaylorOfOrder

#: Number of runs of the extrapolation, with successively halved steps; the coarser runs give the uncertainty.
_LEVELS = 4
#: Order of the Taylor series used as a reference, and the largest number of coordinates for which it is compiled.
_REFERENCE_ORDER, _MAX_COORDINATES = 24, 40


@dataclass(frozen=True)
class Reference:
    """Solution at the final time by variable, with its uncertainty (0 for an exact solution) and description."""

    values: dict[str, np.ndarray]
    uncertainty: dict[str, float]
    description: str

    def error(self, name: str, value: np.ndarray) -> float:
        """Return the Euclidean distance of a variable from the reference."""
        return float(np.linalg.norm(value - self.values[name]))

    def scale(self, name: str) -> float:
        return float(np.linalg.norm(self.values[name])) or 1.0


def reference_at(
    problem: Problem,
    t_end: float,
    schemes: Sequence[Scheme],
    finest: float,
    tick: Callable[[], None] = lambda: None,
    members: Mapping[str, object] | None = None,
) -> Reference:
    """Return the exact solution of a problem, or a Taylor series where applicable, or a Richardson extrapolation.

    The exact solution belongs to the initial values of the problem; members with other initial values have none.
    """
    if problem.reference is not None and members is None:
        exact = {name: np.asarray(value, dtype=float) for name, value in problem.reference(t_end).items()}
        return Reference(exact, dict.fromkeys(exact, 0.0), "the exact solution")
    series = _taylor_reference(problem, t_end) if members is None else None
    if series is not None:
        tick()
        return series
    # the first scheme of the highest order; steps of a fictive time do not divide the time span
    equal_step_schemes = [scheme for scheme in schemes if not scheme.fictive]
    equal_step_schemes = equal_step_schemes or [
        scheme for name in compatible(problem.model) if not (scheme := get(name)).fictive
    ]
    if not equal_step_schemes:
        raise InputError("no reference: the problem has no exact solution, and no scheme with equal steps fits it")
    return _richardson_reference(
        problem, t_end, max(equal_step_schemes, key=lambda scheme: scheme.order), finest, tick, members
    )


def _taylor_reference(problem: Problem, t_end: float) -> Reference | None:
    """Return a Taylor series solution to round-off, with the change by a lower order; None if not applicable."""
    model = problem.model
    if len(model.coordinates) > _MAX_COORDINATES or Taylor().unmet_requirements(model):
        return None
    try:
        coarse, fine = (
            simulate(problem, scheme=scheme, t_end=t_end, every=FINAL_STATE_ONLY, progress=False)
            for scheme in (Taylor(), TaylorOfOrder(_REFERENCE_ORDER))
        )
    except IntegrationError:
        return None
    values = {name: fine.last(name) for name in model.error_norm_variables}
    uncertainty = {name: float(np.linalg.norm(coarse.last(name) - value)) for name, value in values.items()}
    uncertain = ", ".join(f"{number:.0e} in {name}" for name, number in uncertainty.items())
    return Reference(values, uncertainty, f"Taylor series of order {_REFERENCE_ORDER} (uncertain by {uncertain})")


def _richardson_reference(
    problem: Problem,
    t_end: float,
    scheme: Scheme,
    finest: float,
    tick: Callable[[], None],
    members: Mapping[str, object] | None,
) -> Reference:
    """Return the Richardson extrapolation: errors in powers of h (even powers for a symmetric scheme) are eliminated.

    The steps divide the time span, because a shorter last step has another expansion.
    """
    span = t_end - problem.t0
    base = math.ceil(span / finest * (1 - 1e-12))
    names = problem.model.error_norm_variables
    table: dict[str, list[np.ndarray]] = {name: [] for name in names}
    for level in range(_LEVELS):
        steps = base * 2**level
        try:
            end = final_state(problem, scheme, span / steps, t_end, members)
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
        values[name], uncertainty[name] = _romberg(column, scheme.order, stride)
    uncertain = ", ".join(f"{uncertainty[name]:.0e} in {name}" for name in names)
    description = (
        f"an extrapolation from {_LEVELS} runs of {scheme.name} down to h = {span / (base * 2 ** (_LEVELS - 1)):.3g} "
        f"(uncertain by {uncertain}; "
        f"a halving made the change in {names[0]} {ratios[names[0]]:.2f} times smaller, expected {2**scheme.order})"
    )
    return Reference(values, uncertainty, description)


def _romberg(column: list[np.ndarray], order: int, stride: int) -> tuple[np.ndarray, float]:
    """Return the entry of the Romberg table that is closest to its neighbour, and their distance.

    Where round-off dominates, eliminating more powers only amplifies it.
    """
    best, closest = column[-1], float(np.linalg.norm(column[-1] - column[-2]))
    power = order
    while len(column) > 1:
        factor = 2.0**power - 1
        column = [fine + (fine - coarse) / factor for coarse, fine in itertools.pairwise(column)]
        if len(column) > 1:
            change = float(np.linalg.norm(column[-1] - column[-2]))
            if change < closest:
                best, closest = column[-1], change
        power += stride
    return best, closest
