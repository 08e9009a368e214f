"""Stiff equations at equal error: `radau` compared with SciPy Radau and SUNDIALS CVODES, each at its best tolerance."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
from scipy.integrate import solve_ivp

from benchmarks.case import Log
from benchmarks.ours import Minimum
from benchmarks.report import BenchReport, ComparisonRow, Goal
from livens.models.first_order import FirstOrder
from livens.run.prepare import prepare
from livens.run.step_control import StepControl

#: Final errors, relative in the worst variable, at which codes are compared.
_ERRORS = (1e-5, 1e-8)
#: Tolerances of all codes; the fastest sufficient one counts.
_TOLERANCES = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11)


@dataclass(frozen=True)
class Stiff:
    """Problem with its exact final state, and the absolute tolerance relative to the tolerance."""

    model: FirstOrder
    x0: tuple[float, ...]
    t_end: float
    exact: tuple[float, ...]
    absolute: float


def problems() -> dict[str, Stiff]:
    """Return the problems with final states of the IVP test set (Mazzia and Magherini 2008)."""
    oscillator = FirstOrder("x v", rhs=lambda x: [x[1], 1000 * (1 - x[0] ** 2) * x[1] - x[0]])
    reactions = FirstOrder(
        "a b c",
        rhs=lambda x: [
            -0.04 * x[0] + 1e4 * x[1] * x[2],
            0.04 * x[0] - 1e4 * x[1] * x[2] - 3e7 * x[1] ** 2,
            3e7 * x[1] ** 2,
        ],
    )
    end = (0.2083340149701255e-7, 0.8333360770334713e-13, 0.9999999791665050)
    return {
        "Van der Pol, mu = 1000": Stiff(
            oscillator, (2.0, 0.0), 2000.0, (1.706167732170483, -0.8928097010247975e-3), 1e-3
        ),
        "Robertson, t = 1e11": Stiff(reactions, (1.0, 0.0, 0.0), 1e11, end, 1e-12),
    }


#: Function from a tolerance to the final state.
Code = Callable[[float], np.ndarray]


class StiffEquations:
    """Wall time of whole runs, livens with all steps stored and monitored."""

    name = "stiff equations"

    def __init__(self) -> None:
        self._times: dict[tuple[str, str, float], Minimum] = {}
        self._errors: dict[str, str] = {}

    @functools.cached_property
    def _codes(self) -> dict[str, dict[str, Code]]:
        return {name: codes(problem) for name, problem in problems().items()}

    def run_round(self, first: bool, log: Log) -> None:
        for name, problem in problems().items():
            exact = np.array(problem.exact)
            for code, run in self._codes[name].items():
                for tolerance in _TOLERANCES:
                    log(f"{name}, {code} at {tolerance:g}")
                    if first and code == "radau":
                        run(tolerance)  # compilation
                    start_time = time.perf_counter()
                    try:
                        end = run(tolerance)
                    except RuntimeError as failure:
                        self._errors[f"{code}, {name} at {tolerance:g}"] = str(failure).split("\n")[0][:80]
                        continue
                    seconds = time.perf_counter() - start_time
                    error = float(np.abs(end / exact - 1).max())
                    for target in _ERRORS:
                        if error <= target:
                            self._times.setdefault((name, code, target), Minimum()).add(1e3 * seconds)
                    if error <= min(_ERRORS):
                        break  # smaller tolerances only take longer

    def add_to_report(self, report: BenchReport) -> None:
        report.skipped |= self._errors
        for name in problems():
            for target in _ERRORS:
                ours = self._times.get((name, "radau", target), Minimum()).value
                for code in ("SciPy Radau", "SUNDIALS CVODES"):
                    theirs = self._times.get((name, code, target), Minimum()).value
                    case = f"{name} to {target:g}, radau"
                    report.lines.append(ComparisonRow(case, ours, "ms", Goal(">=", 1), code, theirs))


def codes(problem: Stiff) -> dict[str, Code]:
    """Return all codes, prepared."""
    step = prepare(problem.model, "radau")
    d = problem.model.descriptor
    field = problem.model.vector_field
    rates = ca.Function("rates", [d.x, d.t], [field])
    jacobian = ca.Function("slopes", [d.x, d.t], [ca.densify(ca.jacobian(field, d.x))])

    def ours(tolerance: float) -> np.ndarray:
        control = StepControl(tolerance=tolerance, absolute=tolerance * problem.absolute)
        end: np.ndarray = step.run(x0=problem.x0, t_end=problem.t_end, control=control, progress=False).x[-1]
        return end

    return {
        "radau": ours,
        "SciPy Radau": functools.partial(_scipy, problem, rates, jacobian),
        "SUNDIALS CVODES": functools.partial(_cvodes, problem, {"x": d.x, "t": d.t, "ode": field}),
    }


def _scipy(problem: Stiff, rates: ca.Function, jacobian: ca.Function, tolerance: float) -> np.ndarray:
    solution = solve_ivp(
        lambda t, x: np.array(rates(x, t)).ravel(),
        (0.0, problem.t_end),
        problem.x0,
        method="Radau",
        jac=lambda t, x: np.array(jacobian(x, t)),
        rtol=tolerance,
        atol=tolerance * problem.absolute,
    )
    end: np.ndarray = solution.y[:, -1]
    return end


def _cvodes(problem: Stiff, equations: dict[str, Any], tolerance: float) -> np.ndarray:
    options = {"reltol": tolerance, "abstol": tolerance * problem.absolute, "max_num_steps": 10_000_000}
    solver = ca.integrator("cvodes", "cvodes", equations, 0.0, problem.t_end, options)
    return np.array(solver(x0=problem.x0)["xf"]).ravel()
