"""How errors fall with the step."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from livens.analysis.study.ends import checked_members, end_of
from livens.analysis.study.order import Fit, fit_order
from livens.analysis.study.reference import Reference, reference_at
from livens.analysis.study.steps import as_problem, checked, chosen_schemes, end_time, usual_steps
from livens.analysis.verdicts import plain
from livens.errors import IntegrationError
from livens.models import html
from livens.models.problem import Problem
from livens.run.progress import Progress
from livens.schemes.base import Scheme


@dataclass(frozen=True)
class Point:
    """One run: its errors at the end and what it cost."""

    h: float
    errors: dict[str, float]  # by variable; NaN if the run failed
    wall_s: float  # the shortest of the repeats
    steps: int
    evaluations: int
    failure: str = ""


@dataclass(frozen=True)
class Curve:
    """The runs of one scheme, the largest step first, and the orders that follow."""

    scheme: str
    promised: int
    points: tuple[Point, ...]
    fits: dict[str, Fit]

    def errors(self, name: str) -> list[float]:
        return [point.errors[name] for point in self.points]

    @property
    def as_promised(self) -> bool:
        """No fitted order is clearly below the scheme's: by more than a fifth and by more than its uncertainty."""
        return all(
            not math.isfinite(fit.order) or fit.order + max(0.2, fit.uncertainty) >= self.promised
            for fit in self.fits.values()
        )


@dataclass(frozen=True)
class Convergence:
    """Errors of several schemes at the end of the same motion."""

    problem: str
    t_end: float
    reference: Reference
    curves: tuple[Curve, ...]
    variables: tuple[str, ...] = field(default=("q", "v"))

    def __getitem__(self, scheme: str) -> Curve:
        return next(curve for curve in self.curves if curve.scheme == scheme)

    def _repr_html_(self) -> str:
        rows = [
            [curve.scheme, curve.promised, name, str(fit), *(f"{error:.1e}" for error in curve.errors(name))]
            for curve in self.curves
            for name, fit in curve.fits.items()
        ]
        steps = [f"h = {point.h:g}" for point in self.curves[0].points] if self.curves else []
        head = (
            f"<p>{html.cell(self.problem)}, errors at t = {self.t_end:g} against {html.cell(self.reference.words)}</p>"
        )
        marked = [not curve.as_promised for curve in self.curves for _ in curve.fits]
        return head + html.table(["scheme", "promised", "of", "order", *steps], rows, marked=marked)

    def as_object(self) -> dict[str, Any]:
        """Plain data for JSON; what is not finite is None."""
        return {
            "problem": self.problem,
            "t_end": self.t_end,
            "reference": self.reference.words,
            "schemes": {
                curve.scheme: {
                    "promised_order": curve.promised,
                    "as_promised": curve.as_promised,
                    "order": {name: plain(fit.order) for name, fit in curve.fits.items()},
                    "uncertainty": {name: plain(fit.uncertainty) for name, fit in curve.fits.items()},
                    "points": [
                        {
                            "h": point.h,
                            "errors": {name: plain(error) for name, error in point.errors.items()},
                            "at_floor": [name for name, fit in curve.fits.items() if fit.floor[i]],
                            "wall_s": plain(point.wall_s),
                            "steps": point.steps,
                            "evaluations": point.evaluations,
                            "failure": point.failure,
                        }
                        for i, point in enumerate(curve.points)
                    ],
                }
                for curve in self.curves
            },
        }


def converge(
    problem: str | Problem,
    schemes: str | Sequence[str | Scheme] | None = None,
    h: Sequence[float] | None = None,
    t_end: float | None = None,
    *,
    repeats: int = 1,
    members: Mapping[str, Any] | None = None,
    progress: bool | None = None,
) -> Convergence:
    """Run a problem with several schemes and steps, and fit the order of the errors at `t_end`.

    Errors are Euclidean distances of q and of v (of a Hamiltonian q and p, of a model of first order x) from the
    problem's exact solution, or else from an extrapolation of runs with much smaller steps. Without `h`, the problem's
    own step and its halves are taken, five in all. A run that fails is kept with its reason and left out of the fit.
    Every run is repeated `repeats` times for its time.

    :param members: rows of initial values and parameters, as `livens.ensemble` takes them: then every scheme and step
        is one ensemble, errors are Euclidean distances of all members together from an extrapolation, and steps and
        times are those of all members.

    >>> import livens as lv
    >>> study = lv.study.converge(lv.problems.load("simple-pendulum"), "livens-em", t_end=1.0)
    >>> print(f"{study['livens-em'].fits['q'].order:.2f}")
    2.00
    >>> starts = dict(v0=[[0.0, 0.1 * i] for i in range(20)])
    >>> study = lv.study.converge(lv.problems.load("simple-pendulum"), "livens-em", t_end=1.0, members=starts)
    >>> print(f"{study['livens-em'].fits['q'].order:.2f}")
    2.00
    """
    problem, starts = as_problem(problem), checked_members(members)
    chosen, end = chosen_schemes(problem, schemes), end_time(problem, t_end)
    if starts is not None and schemes is None:  # steps of a fictive time are not taken together
        chosen = [scheme for scheme in chosen if not scheme.fictive]
    steps = usual_steps(problem, end) if h is None else checked(h)
    total = sum((end - problem.t0) / step for step in steps) * len(chosen) * repeats
    done = 0.0
    with Progress(f"{problem.name}: convergence", int(total), progress) as bar:
        reference = reference_at(problem, end, chosen, steps[-1], lambda: bar.update(0), starts)
        names = tuple(name for name in ("q", "v", "p", "x") if name in reference.values)
        curves = []
        for scheme in chosen:
            points = []
            for step in steps:
                points.append(_point(problem, scheme, step, end, reference, names, repeats, starts))
                done += (end - problem.t0) / step * repeats
                bar.update(int(done))
            fits: dict[str, Fit] = {
                name: fit_order(
                    steps,
                    [point.errors[name] for point in points],
                    scale=reference.scale(name),
                    floor=reference.uncertainty[name],
                )
                for name in names
            }
            curves.append(Curve(scheme.name, scheme.order, tuple(points), fits))
    return Convergence(problem.name, end, reference, tuple(curves), names)


def _point(
    problem: Problem,
    scheme: Scheme,
    h: float,
    end: float,
    reference: Reference,
    names: Sequence[str],
    repeats: int,
    members: Mapping[str, Any] | None,
) -> Point:
    wall = math.inf
    for _ in range(max(1, repeats)):
        try:
            found = end_of(problem, scheme, h, end, members)
        except IntegrationError as error:
            return Point(h, dict.fromkeys(names, math.nan), math.nan, 0, 0, str(error))
        wall = min(wall, found.wall_s)
    errors = {name: reference.error(name, found.values[name]) for name in names}
    # a correction evaluates the equations with their derivatives; after it the residual is looked at once more
    evaluations = 2 * found.corrections or found.steps * scheme.evaluations
    return Point(h, errors, wall, found.steps, evaluations)


def work_precision(
    problem: str | Problem,
    schemes: str | Sequence[str | Scheme] | None = None,
    h: Sequence[float] | None = None,
    t_end: float | None = None,
    *,
    repeats: int = 3,
    members: Mapping[str, Any] | None = None,
    progress: bool | None = None,
) -> Convergence:
    """As `converge`, with every run timed several times.

    `wall_s` is the shortest of them, of the steps alone, without deriving and compiling. `evaluations` counts how often
    the equations of a step are evaluated: every Newton correction takes two, the residual with its derivatives and
    the residual after it, which decides whether the step is solved. Of a scheme with nothing to solve, it counts
    evaluations of the forces.
    """
    return converge(problem, schemes, h, t_end, repeats=repeats, members=members, progress=progress)
