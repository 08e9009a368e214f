"""Ball bearing: time per step, and time to a given accuracy compared with SciPy LSODA and SUNDIALS CVODES."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np
from scipy.integrate import solve_ivp

from benchmarks.case import Log
from benchmarks.ours import Minimum
from benchmarks.report import BenchReport, ComparisonRow, Goal
from livens.engine.codegen.step_kernels import compile_function_kernel
from livens.problems import load
from livens.reproduce.modin_2009.bearing_runs import equations_of_motion
from livens.run.prepare import prepare
from livens.schemes.discretization.quasi_velocities import quasi_velocities

_STEPS, _T_END = 5000, 6e-4
#: Allowed error of the outer contact force after a load step, relative to its maximum; settings that reach it.
_ALLOWED, _H, _LSODA, _CVODES = 1.2e-2, 3e-6, 1e-5, 3e-4


class BallBearing:
    name = "ball-bearing"

    def __init__(self) -> None:
        self._per_step, self._run_time = Minimum(), Minimum()
        self._others = {"SciPy LSODA": Minimum(), "CVODES through CasADi": Minimum()}
        self._errors: dict[str, str] = {}

    def run_round(self, first: bool, log: Log) -> None:
        problem = load("ball-bearing", case="axial-step")
        step = prepare(problem)
        initial: dict[str, Any] = dict(q0=problem.q0, v0=problem.v0)
        step.run(**initial, h=problem.h, t_end=100 * problem.h)
        for _ in range(5):
            long = step.run(**initial, h=problem.h, t_end=_STEPS * problem.h, every=50)
            self._per_step.add(long.statistics.wall_s / long.statistics.steps * 1e6)
            start_time = time.perf_counter()
            short = step.run(**initial, h=_H, t_end=_T_END)
            self._run_time.add(1e3 * (time.perf_counter() - start_time))
        times = np.linspace(0, _T_END, 101)
        codes = _codes(problem, times)
        exact = _forces(problem, codes["SciPy LSODA"](1e-9))
        ours = np.interp(times, short.t, np.asarray(short["ball1-outer.normal_force"]))
        self._check("livens", ours, exact)
        for name, tolerance in (("SciPy LSODA", _LSODA), ("CVODES through CasADi", _CVODES)):
            log(name)
            start_time = time.perf_counter()
            solution = codes[name](tolerance)
            self._others[name].add(1e3 * (time.perf_counter() - start_time))
            self._check(name, _forces(problem, solution), exact)

    def _check(self, name: str, solution: np.ndarray, exact: np.ndarray) -> None:
        error = float(np.abs(solution - exact).max() / exact.max())
        if error > _ALLOWED:
            self._errors[f"{name}, {self.name}"] = f"its error is {error:.1e}, more than {_ALLOWED:.1e}"

    def add_to_report(self, report: BenchReport) -> None:
        report.skipped.update(self._errors)
        report.lines.append(
            ComparisonRow(f"{self.name}: 67 velocities, 27 contacts", self._per_step.value, goal=Goal("<=", 4))
        )
        for name, best in self._others.items():
            line = f"{self.name}: a step of the load, contact force to 1e-2"
            report.lines.append(ComparisonRow(line, self._run_time.value, "ms", Goal(">=", 50), name, best.value))


def _codes(problem: Any, times: np.ndarray) -> dict[str, Callable[[float], np.ndarray]]:
    """Return codes that map a relative tolerance to the states at the given times, with the same forces as livens."""
    system = problem.model
    q, u, t, rate = equations_of_motion(system)
    x = ca.vertcat(q, u)
    q0, v0 = ca.DM(problem.q0), ca.DM(problem.v0)
    initial_state = np.array(ca.evalf(ca.vertcat(q0, quasi_velocities(system).from_qdot(q0, v0)))).ravel()
    native = _native(ca.Function("rate", [x], [ca.cse(ca.substitute(rate, t, ca.SX(0)))]))

    def lsoda(tolerance: float) -> np.ndarray:
        solution = solve_ivp(
            native, (0, times[-1]), initial_state, method="LSODA", t_eval=times, rtol=tolerance, atol=1e-3 * tolerance
        )
        return np.asarray(solution.y.T)

    solvers: dict[float, Any] = {}

    def cvodes(tolerance: float) -> np.ndarray:
        options = dict(reltol=tolerance, abstol=1e-3 * tolerance, max_num_steps=10**6)
        if tolerance not in solvers:
            solvers[tolerance] = ca.integrator(
                "F", "cvodes", dict(x=x, t=t, ode=rate), 0.0, times[1:].tolist(), options
            )
        return np.vstack([initial_state, np.array(solvers[tolerance](x0=initial_state)["xf"]).T])

    cvodes(_CVODES)  # derivation and preparation are not timed
    return {"SciPy LSODA": lsoda, "CVODES through CasADi": cvodes}


def _native(function: ca.Function) -> Callable[[float, np.ndarray], np.ndarray]:
    """Return a function of the state as machine code."""
    code = compile_function_kernel(function, "rate")
    pointer = ctypes.c_void_p
    native_function = ctypes.CFUNCTYPE(None, *[pointer] * 5)(code.address)
    out, initial = np.zeros(function.numel_out(0)), np.zeros(function.numel_in(0))
    pointers = [pointer(array.ctypes.data) for array in (initial, initial, initial, initial, out)]

    def rate(_: float, y: np.ndarray, keep_alive: Any = code) -> np.ndarray:
        initial[:] = y
        native_function(*pointers)
        return out.copy()

    return rate


def _forces(problem: Any, states: np.ndarray) -> np.ndarray:
    """Return the contact force between the first ball and the outer race."""
    system = problem.model
    q, u = ca.SX.sym("q", system.n), ca.SX.sym("u", states.shape[1] - system.n)
    k = ca.SX(ca.DM(system.parameter_vector()))
    normal = system.quantities["ball1-outer.normal_force"].expression(
        q, quasi_velocities(system).to_qdot(q, u), None, ca.SX(0), k
    )
    function = ca.Function("Q", [q, u], [normal])
    return np.array([float(function(z[: system.n], z[system.n :])) for z in states])
