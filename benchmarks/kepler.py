"""Kepler problem with Stoermer-Verlet: explicit step compared with a plain loop and with SciPy."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from benchmarks.case import Log
from benchmarks.ours import Minimum
from benchmarks.report import BenchReport, ComparisonRow, Goal
from livens import schemes
from livens.engine.compiled_step import compiled_step
from livens.engine.newton.step_size_control import initial_controller_state
from livens.engine.newton.time_loop import StepPolicy
from livens.engine.stepper import IntegratorState
from livens.problems import load

_STEPS, _STEP, _REPEATS = 4096, 1e-3, 200


def plain_loop(q: np.ndarray, p: np.ndarray, h: float, steps: int, out: np.ndarray) -> None:
    """Integrate with a hand-written loop of the same scheme, all steps stored."""
    x, y, u, v = q[0], q[1], p[0], p[1]
    r3 = (x * x + y * y) ** 1.5
    fx, fy = -x / r3, -y / r3
    for i in range(steps):
        u += 0.5 * h * fx
        v += 0.5 * h * fy
        x += h * u
        y += h * v
        r3 = (x * x + y * y) ** 1.5
        fx = -x / r3
        fy = -y / r3
        u += 0.5 * h * fx
        v += 0.5 * h * fy
        out[i, 0], out[i, 1], out[i, 2], out[i, 3] = x, y, u, v


def by_numba(function: Callable[..., Any]) -> Callable[..., Any] | None:
    """Return the function compiled by Numba, or None if Numba is not installed."""
    try:
        import numba
    except ImportError:
        return None
    compiled_function: Callable[..., Any] = numba.njit(nogil=True, error_model="numpy")(function)
    return compiled_function


class Kepler:
    """Bare time loops without storage and monitoring, run alternately."""

    name = "kepler, stormer-verlet"

    def __init__(self) -> None:
        problem, scheme = load("kepler"), schemes.get("stormer-verlet")
        system, k = problem.model, problem.model.parameter_vector()
        compiled = compiled_step(system, scheme)
        initial = system.initial_state({"q0": problem.q0, "v0": problem.v0}, k, 0.0, False, "error").values
        self._initial = initial
        z = compiled.layout.pack({**initial, **scheme.initial_scheme_state(system, initial, k, 0.0, _STEP)})
        self._integrator_state, self._stepper = (
            IntegratorState.initial(0.0, z, np.zeros(0)),
            compiled.make_stepper("fused", k),
        )
        self._out, self._end = np.empty((_STEPS, 4)), z
        self._livens, self._plain, self._scipy = Minimum(), Minimum(), Minimum()
        self._numba = by_numba(plain_loop)

    def run_round(self, first: bool, log: Log) -> None:
        for repeat in range(_REPEATS):
            ours, plain = self._livens_loop(), self._plain_loop() if self._numba else None
            if repeat:  # the first run warms the caches
                self._livens.add(ours)
                if plain is not None:
                    self._plain.add(plain)
        self._scipy.add(self._dop853())

    def _livens_loop(self) -> float:
        policy = StepPolicy(False, _STEP, 0.0, 0)
        start_time = time.perf_counter()
        self._end = self._stepper.advance(
            self._integrator_state, _STEPS, policy, initial_controller_state(_STEP)
        ).final.z
        return (time.perf_counter() - start_time) / _STEPS * 1e6

    def _plain_loop(self) -> float:
        start_time = time.perf_counter()
        (self._numba or plain_loop)(self._initial["q"], self._initial["p"], _STEP, _STEPS, self._out)
        return (time.perf_counter() - start_time) / _STEPS * 1e6

    def _dop853(self) -> float:
        """Run DOP853 over the same time with the energy accuracy of the scheme; return its time per step of livens."""

        def rate(t: float, z: np.ndarray) -> np.ndarray:
            r3 = (z[0] ** 2 + z[1] ** 2) ** 1.5
            return np.array([z[2], z[3], -z[0] / r3, -z[1] / r3])

        initial = np.concatenate([self._initial["q"], self._initial["p"]])
        start_time = time.perf_counter()
        solve_ivp(rate, (0, _STEPS * _STEP), initial, method="DOP853", rtol=1e-6, atol=1e-9)
        return (time.perf_counter() - start_time) / _STEPS * 1e6

    def add_to_report(self, report: BenchReport) -> None:
        ours = self._livens.value
        report.lines.append(ComparisonRow(self.name, ours, goal=Goal("<", 0.05)))
        plain = self._plain.value if self._numba else None
        if plain is None:
            report.skipped["a Numba loop"] = "Numba is not installed"
        report.lines.append(ComparisonRow(self.name, ours, goal=Goal(">=", 1), peer="a Numba loop", theirs=plain))
        report.lines.append(ComparisonRow(self.name, ours, peer="SciPy DOP853", theirs=self._scipy.value))
