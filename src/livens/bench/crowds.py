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

from livens.bench.case import Say
from livens.bench.ours import Best
from livens.bench.program import ProgramError, run_module
from livens.bench.report import Goal, Line, Report

_LARGE, _STEPS = 4096, 1000
_MILLION, _LONG = 1_000_000, 1_000_000


class Crowds:
    """Ensembles with speeds and gravity varied by 20 %, with reductions instead of stored rows."""

    name = "crowds"

    def __init__(self) -> None:
        self._linkage, self._pendulum = Best(), Best()
        self._threads, self._million, self._memory = 0.0, Best(), Best()
        self._ours, self._jax, self._diffrax, self._heyoka = Best(), Best(), Best(), Best()
        self._skipped: dict[str, str] = {}

    def play(self, first: bool, say: Say) -> None:
        for problem, best in (("double-four-bar", self._linkage), ("simple-pendulum", self._pendulum)):
            best.add(_asked(part="large", problem=problem)["us"])
        self._threads = max(self._threads, _asked(part="threads")["times"])
        if first:
            say("a million trajectories")
            self._million.add(_asked(part="million")["s"])
            self._memory.add(_asked(part="memory")["mb"])
        self._ours.add(_asked(part="kepler")["ms"])
        crowd = json.dumps({"members": _LARGE, "steps": _STEPS})
        self._peer("heyoka", "heyoka_pendulum", crowd, "us", self._heyoka)
        self._peer("jax", "jax_kepler", "{}", "ms", self._jax)
        self._peer("diffrax", "diffrax_kepler", "{}", "ms", self._diffrax)

    def _peer(self, name: str, module: str, asked: str, unit: str, best: Best) -> None:
        """Run another code, if it is installed and has not failed before."""
        if importlib.util.find_spec(name) is None:
            self._skipped[name] = "not installed"
        if name in self._skipped:
            return
        try:
            best.add(run_module(f"livens.bench.peers.{module}", asked)[unit])
        except ProgramError as error:
            self._skipped[name] = f"failed ({error})"

    def tell(self, report: Report) -> None:
        case = f"in an ensemble of {_LARGE}, one core"
        report.lines.append(Line(f"double-four-bar {case}", self._linkage.value, "us", Goal("<=", 0.18)))
        report.lines.append(Line(f"simple-pendulum {case}", self._pendulum.value, "us", Goal("<=", 0.015)))
        report.lines.append(
            Line(f"simple-pendulum {case}", self._pendulum.value, "us", None, "heyoka, batches", _found(self._heyoka))
        )
        report.lines.append(
            Line("simple-pendulum in an ensemble: gain of two threads", self._threads, "", Goal(">=", 1.8))
        )
        case = "simple-pendulum: 1e6 trajectories of 1000 steps, reduced, two cores"
        report.lines.append(Line(case, self._million.value, "s", Goal("<", 30)))
        case = "double-four-bar-damped: gradient over 1e6 steps, memory"
        report.lines.append(Line(case, self._memory.value, "MB", Goal("<=", 50)))
        case = "kepler, 10,000 steps of stormer-verlet: value and gradient"
        for name, best, goal in (("JAX, lax.scan", self._jax, 1), ("diffrax", self._diffrax, 50)):
            report.lines.append(Line(case, self._ours.value, "ms", Goal(">=", goal), name, _found(best)))
        report.skipped.update(self._skipped)


def _found(best: Best) -> float | None:
    return best.value if np.isfinite(best.value) else None


def _asked(**what: Any) -> dict[str, Any]:
    return run_module(__name__, json.dumps(what))


def main(asked: dict[str, Any]) -> dict[str, float]:
    parts: dict[str, Callable[..., dict[str, float]]] = {
        "large": _large,
        "threads": _threads,
        "million": _million,
        "memory": _memory,
        "kepler": _kepler,
    }
    return parts[asked.pop("part")](**asked)


def _crowd(name: str, members: int) -> tuple[Any, dict[str, Any]]:
    from livens import problems

    problem, random = problems.load(name), np.random.default_rng(0)
    spread = 1 + 0.2 * random.uniform(-1, 1, (2, members))
    speed = np.asarray(problem.v0, dtype=float)
    speed = speed if speed.any() else np.array([0.0, 1.0])
    options = dict(v0=speed * spread[0][:, None], parameters={"g": 9.81 * spread[1]})
    return problem, options | dict(t_end=problem.t0 + _STEPS * problem.h, every=2**40, progress=False)


def _checked(many: Any) -> None:
    if many.failures or not max(many.summary[i].max_energy_drift for i in range(0, len(many), 97)) < 1e-10:
        raise RuntimeError("the timed ensemble is wrong")


def _large(problem: str) -> dict[str, float]:
    from livens.run.ensemble import ensemble

    model, options = _crowd(problem, _LARGE)
    _checked(ensemble(model, **options))
    best = Best()
    for _ in range(3):
        begun = time.process_time()
        ensemble(model, **options)
        best.add(time.process_time() - begun)
    return {"us": best.value / (_LARGE * _STEPS) * 1e6}


def _all_cores() -> None:
    """Allow all cores of the machine, independent of the parent process."""
    if sys.platform == "linux":
        os.sched_setaffinity(0, range(os.cpu_count() or 1))


def _threads() -> dict[str, float]:
    from livens.run.ensemble import ensemble

    _all_cores()
    model, options = _crowd("simple-pendulum", 8 * _LARGE)
    ensemble(model, **options, threads=2)
    best = {1: Best(), 2: Best()}
    for _ in range(3):
        for threads, found in best.items():
            begun = time.perf_counter()
            ensemble(model, **options, threads=threads)
            found.add(time.perf_counter() - begun)
    return {"times": best[1].value / best[2].value}


def _million() -> dict[str, float]:
    from livens.run.ensemble import ensemble

    _all_cores()
    model, few = _crowd("simple-pendulum", 64)
    model, options = _crowd("simple-pendulum", _MILLION)
    reduce = {"height": lambda q: q[1]}
    ensemble(model, **few, reduce=reduce)
    begun = time.perf_counter()
    many = ensemble(model, **options, reduce=reduce, threads=2)
    took = time.perf_counter() - begun
    _checked(many)
    return {"s": took}


def _memory() -> dict[str, float]:
    """Return the additional memory of a gradient over a million steps, relative to one over a thousand steps."""
    import resource

    from livens import problems
    from livens.run.gradient import value_and_gradient
    from livens.run.prepare import prepare

    problem = problems.load("double-four-bar-damped", eta=0.02)
    step, loss = prepare(problem), value_and_gradient(lambda q: q[0], keep="checkpoints")
    loss(step, t_end=problem.t0 + 3000 * problem.h)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    value, by = loss(step, t_end=problem.t0 + _LONG * problem.h)
    if not np.isfinite(value + by.parameters["g"]):
        raise RuntimeError("the measured gradient is not finite")
    return {"mb": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024}


def _kepler() -> dict[str, float]:
    from livens import problems
    from livens.run.gradient import value_and_gradient
    from livens.run.prepare import prepare

    problem = problems.load("kepler")
    step, loss = prepare(problem, "stormer-verlet", h=1e-3, t_end=10.0), value_and_gradient(lambda q: q[0])
    loss(step)
    best = Best()
    for _ in range(30):
        begun = time.perf_counter()
        loss(step)
        best.add(time.perf_counter() - begun)
    return {"ms": best.value * 1e3}


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
