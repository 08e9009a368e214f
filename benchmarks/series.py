"""Unconstrained motions to eleven digits: Taylor series compared with SciPy DOP853, CVODES and heyoka."""

from __future__ import annotations

import functools
import importlib.util
import time
from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np
from scipy.integrate import solve_ivp

from benchmarks.case import Log
from benchmarks.ours import Minimum
from benchmarks.report import BenchReport, ComparisonRow, Goal
from livens.problems import load
from livens.run.prepare import prepare
from livens.schemes.taylor import Taylor
from livens.schemes.taylor_equations import TaylorEquations

#: Problems with end time, and allowed final position error relative to the largest position.
_PROBLEMS = {
    "kepler": (20.3 * 2 * np.pi, 1e-8),
    "nonlinear-pendulum": (100.0, 1e-9),
    "pleiades": (3.0, 1e-6),
    "outer-solar-system": (1e5, 1e-8),
}
_RTOL, _REPEATS = 1e-12, 3
#: Function that returns the final state.
Code = Callable[[], np.ndarray]


class Series:
    """Wall time of whole runs, livens with all steps stored and monitored; the minimum of all rounds."""

    name = "Taylor series"

    def __init__(self) -> None:
        self._times: dict[tuple[str, str], Minimum] = {}
        self._errors: dict[str, str] = {}

    def run_round(self, first: bool, log: Log) -> None:
        for name, (t_end, allowed) in _PROBLEMS.items():
            log(name)
            codes = self._codes(name, t_end)
            exact = codes["livens"]()
            scale = np.abs(exact).max()
            for _ in range(_REPEATS):
                for code, run in codes.items():
                    start_time = time.perf_counter()
                    end = run()
                    seconds = time.perf_counter() - start_time
                    error = float(np.abs(end - exact).max() / scale)
                    if error > allowed:
                        self._errors[f"{code}, {name}"] = f"its error is {error:.0e}, more than {allowed:.0e}"
                    else:
                        self._times.setdefault((name, code), Minimum()).add(1e3 * seconds)

    @functools.cached_property
    def _codes_by_problem(self) -> dict[str, dict[str, Code]]:
        return {}

    def _codes(self, name: str, t_end: float) -> dict[str, Code]:
        """Return all installed codes, compiled; cached between rounds."""
        if name not in self._codes_by_problem:
            problem, scheme = load(name), Taylor()
            step = prepare(problem.model, scheme)
            equations = scheme.equations(problem.model)
            k = problem.model.parameter_vector()
            initial = problem.model.initial_state({"q0": problem.q0, "v0": problem.v0}, k, 0.0, False, "error").values
            x0 = np.concatenate([initial["q"], initial["p"]])
            codes: dict[str, Code] = {
                "livens": lambda: step.run(problem.q0, problem.v0, t_end=t_end, progress=False).q[-1],
                "SciPy DOP853": functools.partial(_dop853, equations, k, x0, t_end),
                "SUNDIALS CVODES": functools.partial(_cvodes, _integrator(equations, k, t_end), x0),
            }
            if importlib.util.find_spec("heyoka") is None:
                self._errors["heyoka"] = "not installed"
            else:
                codes["heyoka"] = _positions(heyoka_code(equations, k, x0, t_end), len(x0) // 2)
            self._codes_by_problem[name] = codes
        return self._codes_by_problem[name]

    def add_to_report(self, report: BenchReport) -> None:
        report.skipped |= self._errors
        for (name, code), theirs in self._times.items():
            if code == "livens":
                report.lines.append(ComparisonRow(f"{name}, taylor", theirs.value, "ms"))
                continue
            ours = self._times[name, "livens"].value
            report.lines.append(ComparisonRow(f"{name}, taylor", ours, "ms", Goal(">=", 1), code, theirs.value))


def _dop853(equations: TaylorEquations, k: np.ndarray, x0: np.ndarray, t_end: float) -> np.ndarray:
    rates = equations.vector_field
    buffer_pair: Any = rates.buffer()
    buffer, call = buffer_pair
    x, t, out = x0.copy(), np.zeros(1), np.empty(len(x0))
    inputs: list[Any] = [x, t, np.ascontiguousarray(k)]
    for i, array in enumerate(inputs):
        buffer.set_arg(i, memoryview(array))
    buffer.set_res(0, memoryview(out.data))

    def rate(time_now: float, y: np.ndarray) -> np.ndarray:
        x[:], t[0] = y, time_now
        call()
        return out.copy()

    solution = solve_ivp(rate, (0.0, t_end), x0, method="DOP853", rtol=_RTOL, atol=1e-14 * np.abs(x0).max())
    end: np.ndarray = solution.y[: len(x0) // 2, -1]
    return end


def _integrator(equations: TaylorEquations, k: np.ndarray, t_end: float) -> ca.Function:
    x, t = ca.SX.sym("x", equations.vector_field.nnz_in(0)), ca.SX.sym("t")
    problem = {"x": x, "t": t, "ode": equations.vector_field(x, t, k)}
    options = {"reltol": _RTOL, "abstol": 1e-14, "max_num_steps": 10_000_000}
    return ca.integrator("cvodes", "cvodes", problem, 0.0, t_end, options)


def _cvodes(integrator: ca.Function, x0: np.ndarray) -> np.ndarray:
    return np.array(integrator(x0=x0)["xf"]).ravel()[: len(x0) // 2]


def _positions(run: Code, n: int) -> Code:
    return lambda: run()[:n]


def heyoka_code(
    equations: TaylorEquations,
    k: np.ndarray,
    x0: np.ndarray,
    t_end: float,
    tolerance: float = 2.3e-16,
    compact: bool = False,
) -> Code:
    """Return a heyoka run with the same right-hand side, which returns the final state."""
    import heyoka as hy

    from livens.expressions.graph.interpreter import interpret

    names = hy.make_vars(*(f"x{i}" for i in range(len(x0))))
    functions = {"SQRT": hy.sqrt, "SIN": hy.sin, "COS": hy.cos, "EXP": hy.exp, "LOG": hy.log}

    def apply(name: str, a: Any, b: Any = None) -> Any:
        if name in functions:
            return functions[name](a)
        if name in ("POW", "CONSTPOW"):
            return a**b
        unary = {"NEG": lambda: -a, "SQ": lambda: a * a, "TWICE": lambda: 2.0 * a, "INV": lambda: 1.0 / a}
        binary = {"ADD": lambda: a + b, "SUB": lambda: a - b, "MUL": lambda: a * b, "DIV": lambda: a / b}
        value: Any = ({"ASSIGN": lambda: a} | unary | binary)[name]()
        return value

    inputs = [list(names), [hy.time], [hy.expression(float(value)) for value in k]]
    (rates,) = interpret(equations.vector_field, inputs, lambda c: hy.expression(float(c)), apply)
    integrator = hy.taylor_adaptive(list(zip(names, rates, strict=True)), x0, tol=tolerance, compact_mode=compact)

    def run() -> np.ndarray:
        integrator.time = 0.0
        integrator.state[:] = x0
        integrator.propagate_until(t_end)
        return np.array(integrator.state)

    return run
