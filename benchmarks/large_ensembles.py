"""Large ensembles, threads, a million trajectories, and memory of a long gradient, in separate processes."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.case import Log
from benchmarks.ours import Minimum
from benchmarks.program import ProgramError, run_module
from benchmarks.report import BenchReport, ComparisonRow, Goal

_LARGE, _STEPS = 4096, 1000
_MILLION, _LONG = 1_000_000, 1_000_000


class LargeEnsembles:
    """Ensembles with speeds and gravity varied by 20 %, with reductions instead of stored rows."""

    name = "large ensembles"

    def __init__(self) -> None:
        self._linkage, self._pendulum = Minimum(), Minimum()
        self._threads, self._million, self._memory = 0.0, Minimum(), Minimum()
        self._livens, self._jax, self._diffrax, self._heyoka = Minimum(), Minimum(), Minimum(), Minimum()
        self._skipped: dict[str, str] = {}

    def run_round(self, first: bool, log: Log) -> None:
        for problem, best in (("double-four-bar", self._linkage), ("simple-pendulum", self._pendulum)):
            best.add(_run_part(part="large", problem=problem)["us"])
        self._threads = max(self._threads, _run_part(part="threads")["times"])
        if first:
            log("a million trajectories")
            self._million.add(_run_part(part="million")["s"])
            self._memory.add(_run_part(part="memory")["mb"])
        self._livens.add(_run_part(part="kepler")["ms"])
        request = json.dumps({"members": _LARGE, "steps": _STEPS})
        self._run_other_code("heyoka", "heyoka_pendulum", request, "us", self._heyoka)
        self._run_other_code("jax", "jax_kepler", "{}", "ms", self._jax)
        self._run_other_code("diffrax", "diffrax_kepler", "{}", "ms", self._diffrax)

    def _run_other_code(self, name: str, module: str, request: str, unit: str, best: Minimum) -> None:
        """Run another code, if it is installed and has not failed before."""
        if importlib.util.find_spec(name) is None:
            self._skipped[name] = "not installed"
        if name in self._skipped:
            return
        try:
            best.add(run_module(f"benchmarks.peers.{module}", request)[unit])
        except ProgramError as error:
            self._skipped[name] = f"failed ({error})"

    def add_to_report(self, report: BenchReport) -> None:
        case = f"in an ensemble of {_LARGE}, one core"
        report.lines.append(ComparisonRow(f"double-four-bar {case}", self._linkage.value, "us", Goal("<=", 0.18)))
        report.lines.append(ComparisonRow(f"simple-pendulum {case}", self._pendulum.value, "us", Goal("<=", 0.015)))
        report.lines.append(
            ComparisonRow(
                f"simple-pendulum {case}",
                self._pendulum.value,
                "us",
                None,
                "heyoka, batches",
                _finite_or_none(self._heyoka),
            )
        )
        report.lines.append(
            ComparisonRow("simple-pendulum in an ensemble: gain of two threads", self._threads, "", Goal(">=", 1.8))
        )
        case = "simple-pendulum: 1e6 trajectories of 1000 steps, reduced, two cores"
        report.lines.append(ComparisonRow(case, self._million.value, "s", Goal("<", 30)))
        case = "double-four-bar-damped: gradient over 1e6 steps, memory"
        report.lines.append(ComparisonRow(case, self._memory.value, "MB", Goal("<=", 50)))
        case = "kepler, 10,000 steps of stormer-verlet: value and gradient"
        for name, best, goal in (("JAX, lax.scan", self._jax, 1), ("diffrax", self._diffrax, 50)):
            report.lines.append(
                ComparisonRow(case, self._livens.value, "ms", Goal(">=", goal), name, _finite_or_none(best))
            )
        report.skipped.update(self._skipped)


def _finite_or_none(best: Minimum) -> float | None:
    return best.value if np.isfinite(best.value) else None


def _run_part(**request: Any) -> dict[str, Any]:
    return run_module(__name__, json.dumps(request))


def main(request: dict[str, Any]) -> dict[str, float]:
    parts: dict[str, Callable[..., dict[str, float]]] = {
        "large": _large,
        "threads": _threads,
        "million": _million,
        "memory": _memory,
        "kepler": _kepler,
    }
    return parts[request.pop("part")](**request)


def _ensemble_options(name: str, members: int) -> tuple[Any, dict[str, Any]]:
    from livens import problems

    problem, random = problems.load(name), np.random.default_rng(0)
    spread = 1 + 0.2 * random.uniform(-1, 1, (2, members))
    speed = np.asarray(problem.v0, dtype=float)
    speed = speed if speed.any() else np.array([0.0, 1.0])
    options = dict(v0=speed * spread[0][:, None], parameters={"g": 9.81 * spread[1]})
    return problem, options | dict(t_end=problem.t0 + _STEPS * problem.h, every=2**40, progress=False)


def _check_ensemble(many: Any) -> None:
    if many.failures or not max(many.summary[i].max_energy_drift for i in range(0, len(many), 97)) < 1e-10:
        raise RuntimeError("the timed ensemble is wrong")


def _large(problem: str) -> dict[str, float]:
    from livens.run.ensemble.api import ensemble

    model, options = _ensemble_options(problem, _LARGE)
    _check_ensemble(ensemble(model, **options))
    best = Minimum()
    for _ in range(3):
        start_time = time.process_time()
        ensemble(model, **options)
        best.add(time.process_time() - start_time)
    return {"us": best.value / (_LARGE * _STEPS) * 1e6}


def _all_cores() -> None:
    """Allow all cores of the machine, independent of the parent process."""
    if sys.platform == "linux":
        os.sched_setaffinity(0, range(os.cpu_count() or 1))


def _threads() -> dict[str, float]:
    from livens.run.ensemble.api import ensemble

    _all_cores()
    model, options = _ensemble_options("simple-pendulum", 8 * _LARGE)
    ensemble(model, **options, threads=2)
    best = {1: Minimum(), 2: Minimum()}
    for _ in range(3):
        for threads, minimum in best.items():
            start_time = time.perf_counter()
            ensemble(model, **options, threads=threads)
            minimum.add(time.perf_counter() - start_time)
    return {"times": best[1].value / best[2].value}


def _million() -> dict[str, float]:
    from livens.run.ensemble.api import ensemble

    _all_cores()
    model, few = _ensemble_options("simple-pendulum", 64)
    model, options = _ensemble_options("simple-pendulum", _MILLION)
    reduce = {"height": lambda q: q[1]}
    ensemble(model, **few, reduce=reduce)
    start_time = time.perf_counter()
    many = ensemble(model, **options, reduce=reduce, threads=2)
    took = time.perf_counter() - start_time
    _check_ensemble(many)
    return {"s": took}


def _memory() -> dict[str, float]:
    """Return the additional memory of a gradient over a million steps, relative to one over a thousand steps."""
    import resource

    from livens import problems
    from livens.run.derivatives.gradient import value_and_gradient
    from livens.run.prepare import prepare

    problem = problems.load("double-four-bar-damped", eta=0.02)
    step, loss = prepare(problem), value_and_gradient(lambda q: q[0], keep="checkpoints")
    loss(step, t_end=problem.t0 + 3000 * problem.h)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    value, gradient = loss(step, t_end=problem.t0 + _LONG * problem.h)
    if not np.isfinite(value + gradient.parameters["g"]):
        raise RuntimeError("the measured gradient is not finite")
    return {"mb": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024}


def _kepler() -> dict[str, float]:
    from livens import problems
    from livens.run.derivatives.gradient import value_and_gradient
    from livens.run.prepare import prepare

    problem = problems.load("kepler")
    step, loss = prepare(problem, "stormer-verlet", h=1e-3, t_end=10.0), value_and_gradient(lambda q: q[0])
    loss(step)
    best = Minimum()
    for _ in range(30):
        start_time = time.perf_counter()
        loss(step)
        best.add(time.perf_counter() - start_time)
    return {"ms": best.value * 1e3}


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
