"""Ensembles against sequential runs: time per trajectory and step, and equality of the results."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from livens.bench.case import Say
from livens.bench.ours import Best
from livens.bench.report import Goal, Line, Report

_MEMBERS, _STEPS, _EVERY = 64, 4000, 1000


@dataclass
class _Kind:
    """Problem with its scheme; `tolerance` bounds the final difference between members and single runs."""

    problem: str
    scheme: str
    gap: float
    many: Best = field(default_factory=Best)
    single: Best = field(default_factory=Best)


class Ensembles:
    """Ensembles with speeds varied by 20 %, all steps monitored; single runs are prepared."""

    name = "ensembles"

    def __init__(self) -> None:
        self._kinds = [
            _Kind("double-four-bar", "livens-em", 1e-9),
            _Kind("simple-pendulum", "livens-em", 1e-10),
            _Kind("nonlinear-pendulum", "livens-em", 1e-10),
            _Kind("kepler", "gauss-2", 1e-10),
            _Kind("kepler", "stormer-verlet", 1e-10),
        ]

    def play(self, first: bool, say: Say) -> None:
        for kind in self._kinds:
            _timed(kind, first)

    def tell(self, report: Report) -> None:
        for kind in self._kinds:
            case = f"{kind.problem}, {kind.scheme}, {_MEMBERS} members"
            ours, theirs = kind.many.value, kind.single.value
            report.lines.append(Line(case, ours, "us", Goal(">=", 3), "one by one", theirs))


def _timed(kind: _Kind, first: bool) -> None:
    from livens import problems
    from livens.run.ensemble import ensemble
    from livens.run.prepare import prepare

    problem = problems.load(kind.problem)
    given = problem.start_values
    name = "v0" if "v0" in given else "p0"
    spread = 1 + 0.2 * np.random.default_rng(0).uniform(-1, 1, _MEMBERS)
    starts = np.asarray(given[name], dtype=float) * spread[:, None]
    options: dict[str, Any] = dict(t_end=problem.t0 + _STEPS * problem.h, every=_EVERY)
    all_of_them: dict[str, Any] = {name: starts, **options}
    one_by_one: list[dict[str, Any]] = [{name: start, **options} for start in starts]
    step = prepare(problem, kind.scheme)
    if first:  # compilation is not timed
        ensemble(problem, scheme=kind.scheme, **all_of_them)
        step.run(progress=False, **one_by_one[0])
    begun = time.process_time()
    many = ensemble(problem, scheme=kind.scheme, **all_of_them)
    between = time.process_time()
    ends = [step.run(progress=False, **one).q[-1] for one in one_by_one]
    ended = time.process_time()
    kind.many.add((between - begun) / (_MEMBERS * _STEPS) * 1e6)
    kind.single.add((ended - between) / (_MEMBERS * _STEPS) * 1e6)
    if many.failures or not np.abs(many.last("q") - np.array(ends)).max() <= kind.gap:
        raise RuntimeError(f"the timed ensemble of {kind.problem} is wrong")
