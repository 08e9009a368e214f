"""Comparison of several schemes on one problem: conservation and cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from livens.analysis.conservation import ConservationRow, conservation_rows, json_value
from livens.analysis.study.final_states import check_members, final_ensemble
from livens.analysis.study.step_lists import as_problem, chosen_schemes, end_time
from livens.errors import IntegrationError, explain_call_errors
from livens.models.problem import Problem
from livens.results.ensemble import Ensemble
from livens.results.result import Result
from livens.run.progress import Progress
from livens.run.simulate import simulate
from livens.scene import html
from livens.schemes.core.scheme import Scheme
from livens.validation import check_positive


@dataclass(frozen=True)
class SchemeRun:
    """Run of one scheme in a comparison.

    `result` of a failed run contains the steps before the failure, if any. `errors` are by variable at the final time,
    if an exact solution is known. `ensemble` contains the runs of the members, if there are any.
    """

    scheme: str
    result: Result | None
    report: tuple[ConservationRow, ...]
    errors: dict[str, float]
    failure: str = ""
    ensemble: Ensemble | None = None

    @property
    def as_guaranteed(self) -> bool:
        return all(row.holds for row in self.report)

    @property
    def worst(self) -> dict[str, float]:
        """Largest deviations of all members over all steps; for momenta relative to those of each member."""
        if self.ensemble is None:
            return {}
        worst: dict[str, float] = {}
        for summary in self.ensemble.summary:
            deviations = {"constraint": summary.max_constraint, "velocity_constraint": summary.max_velocity_constraint}
            deviations |= (
                {summary.energy: summary.max_energy_drift} if summary.energy else {}
            ) | summary.momentum_drift
            for name, value in deviations.items():
                previous = worst.get(name, 0.0)
                worst[name] = value if value > previous or math.isnan(value) else previous
        return worst


@dataclass(frozen=True)
class Comparison:
    """Runs of several schemes with the same step size.

    Parameters
    ----------
    problem : str
        Name of the problem.
    h : float
        Step size.
    t_end : float
        Final time.
    entries : tuple of SchemeRun
        Runs, one per scheme.
    """

    problem: str
    h: float
    t_end: float
    entries: tuple[SchemeRun, ...]

    def __getitem__(self, scheme: str) -> SchemeRun:
        return next(entry for entry in self.entries if entry.scheme == scheme)

    @property
    def results(self) -> dict[str, Result]:
        """Completed runs by scheme."""
        return {entry.scheme: entry.result for entry in self.entries if entry.result and not entry.failure}

    def as_object(self) -> dict[str, Any]:
        """Return the comparison as a dict for JSON; values that are not finite become None.

        Returns
        -------
        dict
            Keys `problem`, `h`, `t_end`, and the entry of every scheme in `schemes`.
        """
        return {
            "problem": self.problem,
            "h": self.h,
            "t_end": self.t_end,
            "schemes": {entry.scheme: _entry_object(entry) for entry in self.entries},
        }

    def _repr_html_(self) -> str:
        quantities = list(dict.fromkeys(row.quantity for entry in self.entries for row in entry.report))
        variables = list(dict.fromkeys(name for entry in self.entries for name in entry.errors))
        rows = []
        for entry in self.entries:
            deviations, steps = {row.quantity: f"{row.deviation:.1e}" for row in entry.report}, _entry_object(entry)
            errors = [f"{entry.errors[name]:.1e}" if name in entry.errors else "" for name in variables]
            cost = "" if steps["us_per_step"] is None else f"{steps['us_per_step']:.2f}"
            rows.append([entry.scheme, *(deviations.get(name) for name in quantities), *errors, cost, entry.failure])
        heads = ["scheme", *quantities, *(f"error in {name}" for name in variables), "us per step", ""]
        marked = [not entry.as_guaranteed for entry in self.entries]
        head = f"<p>{html.escape(self.problem)}, h = {self.h:g}, until t = {self.t_end:g}</p>"
        return head + html.table(heads, rows, highlighted=marked)


def _entry_object(entry: SchemeRun) -> dict[str, object]:
    statistics = entry.result.statistics if entry.result else None
    steps = max(statistics.steps, 1) if statistics else 1
    return {
        "failure": entry.failure,
        "as_promised": entry.as_guaranteed,
        "wall_s": statistics.wall_s if statistics else None,
        "us_per_step": statistics.wall_s / steps * 1e6 if statistics else None,
        "newton_iterations_mean": statistics.newton_iterations / steps if statistics else None,
        "errors": {name: json_value(error) for name, error in entry.errors.items()},
        "members": None if entry.ensemble is None else _members_object(entry.ensemble, entry.worst),
        "rows": [row.as_object() for row in entry.report],
    }


def _members_object(ensemble: Ensemble, worst: Mapping[str, float]) -> dict[str, object]:
    reasons = {str(member): reason for member, reason in ensemble.failures.items()}
    return {
        "count": len(ensemble),
        "failures": reasons,
        "worst": {name: json_value(value) for name, value in worst.items()},
    }


def errors_at_end(run: Result, exact: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Return Euclidean distances from an exact solution, for the stored variables."""
    return {name: float(np.linalg.norm(run.last(name) - value)) for name, value in exact.items() if name in run.stored}


@explain_call_errors
def compare(
    problem: str | Problem,
    schemes: str | Sequence[str | Scheme] | None = None,
    h: float | None = None,
    t_end: float | None = None,
    *,
    members: Mapping[str, object] | None = None,
    progress: bool | None = None,
) -> Comparison:
    """Run a problem with several schemes and report conservation and cost of each.

    Parameters
    ----------
    problem : str or Problem
        Problem, or its name.
    schemes : str or sequence of str or Scheme, optional
        Schemes to compare. Default: all that support the problem.
    h : float, optional
        Step size. Default: that of the problem.
    t_end : float, optional
        Final time. Default: that of the problem.
    members : dict of str to array_like, optional
        Initial values and parameters, one row per member, as in `livens.ensemble`. Every scheme also runs all members;
        `worst` of its entry contains their largest deviations.
    progress : bool, optional
        Show a progress bar.

    Returns
    -------
    Comparison
        Runs and reports by scheme.

    Examples
    --------

    >>> import livens as lv
    >>> study = lv.study.compare(lv.problems.load("spring-pendulum-spherical"), "livens-em,livens-midpoint")
    >>> [entry.report[0].verdict for entry in study.entries]
    ['conserved to round-off as guaranteed', 'bounded, no trend']
    """
    problem, member_values = as_problem(problem), check_members(members)
    chosen, end = chosen_schemes(problem, schemes), end_time(problem, t_end)
    step = check_positive("h", problem.h if h is None else h)
    exact = problem.reference(end) if problem.reference is not None else {}
    entries = []
    with Progress(f"{problem.name}: comparison", len(chosen), progress, unit="schemes") as bar:
        for i, scheme in enumerate(chosen):
            bar.update(i)
            try:
                run = simulate(problem, scheme=scheme, h=step, t_end=end, redundant="remove", progress=False)
            except IntegrationError as error:
                entries.append(SchemeRun(scheme.name, error.result, (), dict.fromkeys(exact, math.nan), str(error)))
                continue
            errors, members_result = errors_at_end(run, exact), None
            if member_values is not None and not scheme.fictive:  # ensembles do not support fictive time
                members_result = final_ensemble(problem, scheme, step, end, member_values)
            entries.append(SchemeRun(scheme.name, run, tuple(conservation_rows(run)), errors, ensemble=members_result))
    return Comparison(problem.name, step, end, tuple(entries))
