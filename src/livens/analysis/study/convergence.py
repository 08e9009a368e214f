"""Convergence studies: errors over step sizes, fitted orders, and work-precision data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from livens.analysis.conservation import json_value
from livens.analysis.study.final_states import check_members, final_state
from livens.analysis.study.order import Fit, fit_order
from livens.analysis.study.reference import Reference, reference_at
from livens.analysis.study.step_lists import as_problem, check_steps, chosen_schemes, default_steps, end_time
from livens.errors import IntegrationError, explain_call_errors
from livens.models.problem import Problem
from livens.run.progress import Progress
from livens.scene import html
from livens.schemes.core.scheme import Scheme


@dataclass(frozen=True)
class Point:
    """One run of a convergence study: errors at the final time and cost.

    `errors` are by variable, NaN if the run failed; `wall_s` is the shortest time of all repeats, in seconds.
    """

    h: float
    errors: dict[str, float]
    wall_s: float
    steps: int
    evaluations: int
    failure: str = ""


@dataclass(frozen=True)
class Curve:
    """Runs of one scheme, largest step first, with the fitted orders."""

    scheme: str
    declared_order: int
    points: tuple[Point, ...]
    fits: dict[str, Fit]

    def errors(self, name: str) -> list[float]:
        return [point.errors[name] for point in self.points]

    @property
    def as_guaranteed(self) -> bool:
        """True unless a fitted order is below the declared one by more than 0.2 and by more than its uncertainty."""
        return all(
            not math.isfinite(fit.order) or fit.order + max(0.2, fit.uncertainty) >= self.declared_order
            for fit in self.fits.values()
        )


@dataclass(frozen=True)
class Convergence:
    """Errors of several schemes at the final time of one motion.

    Parameters
    ----------
    problem : str
        Name of the problem.
    t_end : float
        Final time.
    reference : Reference
        Reference solution.
    curves : tuple of Curve
        Errors and fitted orders, one curve per scheme.
    variables : tuple of str, default ("q", "v")
        Variables whose errors are measured.
    """

    problem: str
    t_end: float
    reference: Reference
    curves: tuple[Curve, ...]
    variables: tuple[str, ...] = field(default=("q", "v"))

    def __getitem__(self, scheme: str) -> Curve:
        return next(curve for curve in self.curves if curve.scheme == scheme)

    def _repr_html_(self) -> str:
        rows = [
            [curve.scheme, curve.declared_order, name, str(fit), *(f"{error:.1e}" for error in curve.errors(name))]
            for curve in self.curves
            for name, fit in curve.fits.items()
        ]
        steps = [f"h = {point.h:g}" for point in self.curves[0].points] if self.curves else []
        reference = html.escape(self.reference.description)
        head = f"<p>{html.escape(self.problem)}, errors at t = {self.t_end:g} against {reference}</p>"
        marked = [not curve.as_guaranteed for curve in self.curves for _ in curve.fits]
        return head + html.table(["scheme", "declared", "of", "order", *steps], rows, highlighted=marked)

    def as_object(self) -> dict[str, Any]:
        """Return the study as a dict for JSON; values that are not finite become None.

        Returns
        -------
        dict
            Keys `problem`, `t_end`, `reference`, and orders, uncertainties and points of every scheme in `schemes`.
        """
        return {
            "problem": self.problem,
            "t_end": self.t_end,
            "reference": self.reference.description,
            "schemes": {
                curve.scheme: {
                    "promised_order": curve.declared_order,
                    "as_promised": curve.as_guaranteed,
                    "order": {name: json_value(fit.order) for name, fit in curve.fits.items()},
                    "uncertainty": {name: json_value(fit.uncertainty) for name, fit in curve.fits.items()},
                    "points": [
                        {
                            "h": point.h,
                            "errors": {name: json_value(error) for name, error in point.errors.items()},
                            "at_floor": [name for name, fit in curve.fits.items() if fit.floor[i]],
                            "wall_s": json_value(point.wall_s),
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


@explain_call_errors
def converge(
    problem: str | Problem,
    schemes: str | Sequence[str | Scheme] | None = None,
    h: Sequence[float] | None = None,
    t_end: float | None = None,
    *,
    repeats: int = 1,
    members: Mapping[str, object] | None = None,
    progress: bool | None = None,
) -> Convergence:
    """Run a problem with several schemes and step sizes, and fit the order of the errors at `t_end`.

    Errors are Euclidean distances of q and v (q and p of a Hamiltonian, x of a first-order model) from the exact
    solution of the problem. Without one, runs with much smaller steps are extrapolated. A failed run is kept with
    its reason and excluded from the fit.

    Parameters
    ----------
    problem : str or Problem
        Problem, or its name.
    schemes : str or sequence of str or Scheme, optional
        Schemes to compare, also as a comma-separated string.
    h : sequence of float, optional
        Step sizes. Default: the step size of the problem and its halves, five in all.
    t_end : float, optional
        Final time. Default: that of the problem.
    repeats : int, default 1
        Number of repetitions of every run for its timing.
    members : dict of str to array_like, optional
        Initial values and parameters, one row per member, as in `livens.ensemble`. Every scheme and step size is then
        one ensemble; errors are Euclidean distances of all members from an extrapolation; steps and times are totals.
    progress : bool, optional
        Show a progress bar.

    Returns
    -------
    Convergence
        Errors, fitted orders and costs.

    Examples
    --------

    >>> import livens as lv
    >>> study = lv.study.converge(lv.problems.load("simple-pendulum"), "livens-em", t_end=1.0)
    >>> print(f"{study['livens-em'].fits['q'].order:.2f}")
    2.00
    >>> starts = dict(v0=[[0.0, 0.1 * i] for i in range(20)])
    >>> study = lv.study.converge(lv.problems.load("simple-pendulum"), "livens-em", t_end=1.0, members=starts)
    >>> print(f"{study['livens-em'].fits['q'].order:.2f}")
    2.00
    """
    problem, member_values = as_problem(problem), check_members(members)
    chosen, end = chosen_schemes(problem, schemes), end_time(problem, t_end)
    if member_values is not None and schemes is None:  # ensembles do not support fictive time
        chosen = [scheme for scheme in chosen if not scheme.fictive]
    steps = default_steps(problem, end) if h is None else check_steps(h)
    total = sum((end - problem.t0) / step for step in steps) * len(chosen) * repeats
    done = 0.0
    with Progress(f"{problem.name}: convergence", int(total), progress) as bar:
        reference = reference_at(problem, end, chosen, steps[-1], lambda: bar.update(0), member_values)
        names = tuple(name for name in ("q", "v", "p", "x") if name in reference.values)
        curves = []
        for scheme in chosen:
            points = []
            for step in steps:
                points.append(_point(problem, scheme, step, end, reference, names, repeats, member_values))
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
    members: Mapping[str, object] | None,
) -> Point:
    wall = math.inf
    for _ in range(max(1, repeats)):
        try:
            final = final_state(problem, scheme, h, end, members)
        except IntegrationError as error:
            return Point(h, dict.fromkeys(names, math.nan), math.nan, 0, 0, str(error))
        wall = min(wall, final.wall_s)
    errors = {name: reference.error(name, final.values[name]) for name in names}
    # a Newton correction evaluates the equations with their Jacobian, and the residual once more
    evaluations = 2 * final.corrections or final.steps * scheme.evaluations_per_step
    return Point(h, errors, wall, final.steps, evaluations)


@explain_call_errors
def work_precision(
    problem: str | Problem,
    schemes: str | Sequence[str | Scheme] | None = None,
    h: Sequence[float] | None = None,
    t_end: float | None = None,
    *,
    repeats: int = 3,
    members: Mapping[str, object] | None = None,
    progress: bool | None = None,
) -> Convergence:
    """Run a convergence study with every run timed several times, for work-precision diagrams.

    `wall_s` is the shortest time of the repeats, of the steps alone, without derivation and compilation. `evaluations`
    counts evaluations of the equations of a step: two per Newton correction (the residual with its Jacobian, and the
    residual of the termination test). For explicit schemes it counts force evaluations.

    Parameters
    ----------
    problem : str or Problem
        Problem, or its name.
    schemes : str or sequence of str or Scheme, optional
        Schemes to compare.
    h : sequence of float, optional
        Step sizes.
    t_end : float, optional
        Final time.
    repeats : int, default 3
        Number of repetitions of every run for its timing.
    members : dict of str to array_like, optional
        Initial values and parameters, one row per member.
    progress : bool, optional
        Show a progress bar.

    Returns
    -------
    Convergence
        Errors, fitted orders and costs.
    """
    return converge(problem, schemes, h, t_end, repeats=repeats, members=members, progress=progress)
