"""Initial value problems: `livens.solve_ivp` beside the methods of SciPy, at equal tolerances."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import livens as lv
from benchmarks.case import Log
from benchmarks.ours import Minimum
from benchmarks.report import BenchReport, ComparisonRow, Goal

#: Relative and absolute tolerance, and number of calls per round.
_RTOL, _ATOL, _CALLS = 1e-8, 1e-10, 3
#: Methods of SciPy; the first one is its default.
_METHODS = ("RK45", "DOP853", "LSODA")
#: Program that prints the processor times of the first calls of all problems, with an empty code cache.
_FIRST_CALLS = """
import json, time
import livens as lv
from benchmarks.initial_value import PROBLEMS
lv.solve_ivp(lambda t, y: -y, (0.0, 1.0), [1.0])
times = []
for _, fun, end, y0 in PROBLEMS:
    start = time.process_time()
    lv.solve_ivp(fun, (0.0, end), y0)
    times.append(time.process_time() - start)
print(json.dumps(times))
"""


def _lotka_volterra(t: float, y: Any) -> Any:
    return [1.5 * y[0] - y[0] * y[1], -3 * y[1] + y[0] * y[1]]


def _pendulum(t: float, y: Any) -> Any:
    return [y[1], -0.25 * y[1] - 5 * np.sin(y[0])]


def _lorenz(t: float, y: Any) -> Any:
    return [10 * (y[1] - y[0]), y[0] * (28 - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]]


def _double_pendulum(t: float, y: Any) -> Any:
    dydt = np.zeros_like(y)
    delta = y[2] - y[0]
    s, c = np.sin(delta), np.cos(delta)
    dydt[0], dydt[2] = y[1], y[3]
    dydt[1] = (y[1] ** 2 * s * c + 9.8 * np.sin(y[2]) * c + y[3] ** 2 * s - 19.6 * np.sin(y[0])) / (2 - c**2)
    dydt[3] = (-(y[3] ** 2) * s * c + 19.6 * np.sin(y[0]) * c - 2 * y[1] ** 2 * s - 19.6 * np.sin(y[2])) / (2 - c**2)
    return dydt


def _two_body(t: float, y: Any) -> Any:
    return np.concatenate([y[3:], -398600.4418 * y[:3] / np.linalg.norm(y[:3]) ** 3])


#: Name, right-hand side, end time and initial state.
PROBLEMS: tuple[tuple[str, Callable[..., Any], float, list[float]], ...] = (
    ("Lotka-Volterra", _lotka_volterra, 15.0, [10.0, 5.0]),
    ("pendulum", _pendulum, 10.0, [3.0, 0.0]),
    ("Lorenz", _lorenz, 10.0, [1.0, 1.0, 1.0]),
    ("double pendulum", _double_pendulum, 10.0, [1.57, 0.0, 1.57, 0.0]),
    ("two bodies", _two_body, 20000.0, [7000.0, 0.0, 0.0, 0.0, 7.5, 1.0]),
)


class InitialValueProblems:
    """Time of a warm call of `solve_ivp`, beside the default method of SciPy and its fastest one."""

    name = "solve_ivp"

    def __init__(self) -> None:
        self._times = {(name, method): Minimum() for name, *_ in PROBLEMS for method in ("livens", *_METHODS)}
        self._call, self._first_calls = Minimum(), list[float]()

    def run_round(self, first: bool, log: Log) -> None:
        from scipy.integrate import solve_ivp

        for name, fun, end, y0 in PROBLEMS:
            options: dict[str, Any] = dict(rtol=_RTOL, atol=_ATOL * max(map(abs, y0)))
            if first:
                lv.solve_ivp(fun, (0.0, end), y0, **options)
            for _ in range(_CALLS):
                self._add(name, "livens", lambda: lv.solve_ivp(fun, (0.0, end), y0, **options))
                for method in _METHODS:
                    self._add(name, method, lambda: solve_ivp(fun, (0.0, end), y0, method=method, **options))

        if first:
            with tempfile.TemporaryDirectory() as cache:
                environment = {**os.environ, "LIVENS_CACHE_DIR": cache}
                command = [sys.executable, "-c", _FIRST_CALLS]
                done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
            self._first_calls = json.loads(done.stdout)
        for _ in range(10 * _CALLS):
            start = time.process_time()
            lv.solve_ivp(_pendulum, (0.0, 1e-3), [3.0, 0.0])
            self._call.add(time.process_time() - start)

    def _add(self, name: str, method: str, call: Callable[[], Any]) -> None:
        start = time.process_time()
        call()
        self._times[name, method].add(time.process_time() - start)

    def add_to_report(self, report: BenchReport) -> None:
        for name, *_ in PROBLEMS:
            ours = 1e3 * self._times[name, "livens"].value
            theirs = {method: 1e3 * self._times[name, method].value for method in _METHODS}
            fastest = min(theirs, key=lambda method: theirs[method])
            case = f"solve_ivp, {name}, rtol {_RTOL:g}"
            report.lines.append(ComparisonRow(case, ours, "ms", Goal(">=", 5), "SciPy RK45", theirs["RK45"]))
            report.lines.append(ComparisonRow(case, ours, "ms", Goal(">=", 1), f"SciPy {fastest}", theirs[fastest]))
        report.lines.append(
            ComparisonRow("solve_ivp, warm call of one step", 1e3 * self._call.value, "ms", Goal("<=", 0.4))
        )
        for name, value, limit in (
            ("median", statistics.median(self._first_calls), 0.25),
            ("worst", max(self._first_calls), 5.0),
        ):
            report.lines.append(ComparisonRow(f"solve_ivp, first call, {name}", value, "s", Goal("<=", limit)))
