"""Ensembles against sequential runs: time per trajectory and step, and equality of the results."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.case import Log
from benchmarks.ours import Minimum
from benchmarks.report import BenchReport, ComparisonRow, Goal

_MEMBERS, _STEPS, _EVERY = 64, 4000, 1000


@dataclass
class _EnsembleCase:
    """Problem with its scheme; `tolerance` bounds the final difference between members and single runs."""

    problem: str
    scheme: str
    tolerance: float
    many: Minimum = field(default_factory=Minimum)
    single: Minimum = field(default_factory=Minimum)


class Ensembles:
    """Ensembles with speeds varied by 20 %, all steps monitored; single runs are prepared."""

    name = "ensembles"

    def __init__(self) -> None:
        self._cases = [
            _EnsembleCase("double-four-bar", "livens-em", 1e-9),
            _EnsembleCase("simple-pendulum", "livens-em", 1e-10),
            _EnsembleCase("nonlinear-pendulum", "livens-em", 1e-10),
            _EnsembleCase("kepler", "gauss-2", 1e-10),
            _EnsembleCase("kepler", "stormer-verlet", 1e-10),
        ]

    def run_round(self, first: bool, log: Log) -> None:
        for case_data in self._cases:
            _timed(case_data, first)

    def add_to_report(self, report: BenchReport) -> None:
        for case_data in self._cases:
            case = f"{case_data.problem}, {case_data.scheme}, {_MEMBERS} members"
            ensemble_time, single_time = case_data.many.value, case_data.single.value
            report.lines.append(ComparisonRow(case, ensemble_time, "us", Goal(">=", 3), "one by one", single_time))


def _timed(case_data: _EnsembleCase, first: bool) -> None:
    from livens import problems
    from livens.run.ensemble.api import ensemble
    from livens.run.prepare import prepare

    problem = problems.load(case_data.problem)
    initial = problem.start_values
    name = "v0" if "v0" in initial else "p0"
    spread = 1 + 0.2 * np.random.default_rng(0).uniform(-1, 1, _MEMBERS)
    starts = np.asarray(initial[name], dtype=float) * spread[:, None]
    options: dict[str, Any] = dict(t_end=problem.t0 + _STEPS * problem.h, every=_EVERY)
    all_of_them: dict[str, Any] = {name: starts, **options}
    one_by_one: list[dict[str, Any]] = [{name: start, **options} for start in starts]
    step = prepare(problem, case_data.scheme)
    if first:  # compilation is not timed
        ensemble(problem, scheme=case_data.scheme, **all_of_them)
        step.run(progress=False, **one_by_one[0])
    start_time = time.process_time()
    many = ensemble(problem, scheme=case_data.scheme, **all_of_them)
    middle_time = time.process_time()
    final_states = [step.run(progress=False, **member).q[-1] for member in one_by_one]
    end_time = time.process_time()
    case_data.many.add((middle_time - start_time) / (_MEMBERS * _STEPS) * 1e6)
    case_data.single.add((end_time - middle_time) / (_MEMBERS * _STEPS) * 1e6)
    if many.failures or not np.abs(many.last("q") - np.array(final_states)).max() <= case_data.tolerance:
        raise RuntimeError(f"the timed ensemble of {case_data.problem} is wrong")
