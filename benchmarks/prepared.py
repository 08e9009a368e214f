"""Overhead of prepared runs, sweep of a thousand runs, and memory over many models."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from benchmarks.case import Log
from benchmarks.ours import Minimum
from benchmarks.program import run_module
from benchmarks.report import BenchReport, ComparisonRow, Goal

_STEPS, _CALLS = 100, 200
_MEMBERS, _MODELS, _FIRST = 1000, 2000, 500


class Prepared:
    """Each part runs in a separate process, because memory and compiled code are measured."""

    name = "prepared runs"

    def __init__(self) -> None:
        self._overhead, self._sweep, self._stepping = Minimum(), Minimum(), Minimum()
        self._compiled, self._memory_growth = 0.0, 0.0

    def run_round(self, first: bool, log: Log) -> None:
        called = run_module(__name__, json.dumps({"part": "call"}))
        self._overhead.add(called["beside_us"])
        swept = run_module(__name__, json.dumps({"part": "sweep"}))
        self._sweep.add(swept["beside_s"])
        self._stepping.add(swept["steps_s"])
        self._compiled = max(self._compiled, swept["compiled"])
        if first:
            self._memory_growth = run_module(__name__, json.dumps({"part": "models"}))["grown_mb"]

    def add_to_report(self, report: BenchReport) -> None:
        case = f"simple-pendulum, a prepared run of {_STEPS} steps"
        report.lines.append(ComparisonRow(f"{case}: overhead", self._overhead.value, "us", Goal("<", 100)))
        case = f"sweep of {_MEMBERS} runs of simple-pendulum"
        report.lines.append(ComparisonRow(f"{case}: overhead", self._sweep.value, "s", Goal("<", 1)))
        report.lines.append(ComparisonRow(f"{case}: their steps", self._stepping.value, "s"))
        report.lines.append(ComparisonRow(f"{case}: compiled after the first", self._compiled, "", Goal("<", 1)))
        case = f"{_MODELS} models: memory grown over the last {_MODELS - _FIRST}"
        report.lines.append(ComparisonRow(case, self._memory_growth, "MB", Goal("<", 60)))


def main(request: dict[str, Any]) -> dict[str, float]:
    return {"call": _call, "sweep": _swept, "models": _models}[request["part"]]()


def _call() -> dict[str, float]:
    import livens as lv

    step = lv.prepare(lv.problems.load("simple-pendulum"), h=1e-3)
    best = {steps: float("inf") for steps in (_STEPS, 10 * _STEPS)}
    for _ in range(_CALLS):
        for steps in best:
            start_time = time.perf_counter()
            run = step.run(t_end=steps * 1e-3)
            best[steps] = min(best[steps], time.perf_counter() - start_time)
    if run.summary.max_energy_drift > 1e-12 or run.statistics.steps != 10 * _STEPS:
        raise RuntimeError("the timed runs are wrong")
    few, many = best.values()
    per_step = (many - few) / (9 * _STEPS)
    return {"beside_us": (few - _STEPS * per_step) * 1e6}


def _swept() -> dict[str, float]:
    import livens as lv
    from livens.analysis.study.grid import parse_values
    from livens.engine.codegen import jit

    name, lengths = parse_values(f"l=0.5:2:{_MEMBERS}")
    lv.study.sweep("simple-pendulum", {name: lengths[:20]}, workers=1)
    before, start_time = jit.compilations, time.perf_counter()
    study = lv.study.sweep("simple-pendulum", {name: lengths}, workers=1)
    took = time.perf_counter() - start_time
    if study.failures or max(study.column("max_energy_drift")) > 1e-12:
        raise RuntimeError("the timed runs are wrong")
    steps = sum(study.column("wall_s"))
    return {"beside_s": took - steps, "steps_s": steps, "compiled": jit.compilations - before}


def _models() -> dict[str, float]:
    import resource
    from pathlib import Path

    import livens as lv

    def held_mb() -> float:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6

    before = 0.0
    for i in range(_MODELS):
        if i == _FIRST:
            before = held_mb()
        model = lv.System("x", kinetic=lambda v: v[0] ** 2 / 2, potential=lambda q, i=i: (1 + i) * q[0] ** 2 / 2)
        lv.simulate(model, [1.0], [0.0], h=0.1, t_end=1.0)
    return {"grown_mb": held_mb() - before}


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
