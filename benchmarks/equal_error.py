"""Time at equal error for unconstrained motions, planets and mechanisms: SciPy, SUNDIALS, heyoka, REBOUND.

Each code runs with decreasing tolerances; the shortest time with sufficient accuracy counts. All codes evaluate the
same generated right-hand sides. For mechanisms, accelerations and multipliers are eliminated or, for IDAS, algebraic
variables.
"""

from __future__ import annotations

import functools
import importlib.util
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
from scipy.integrate import solve_ivp

from benchmarks import crank, crank_angles
from benchmarks.case import Log
from benchmarks.ours import Minimum
from benchmarks.peers.rebound_planets import whfast
from benchmarks.report import BenchReport, ComparisonRow, Goal
from benchmarks.series import heyoka_code
from livens.models.equations_of_motion import equations_of_motion
from livens.models.multibody_equations import MultibodyEquations
from livens.models.problem import Problem
from livens.problems import load
from livens.run.prepare import prepare
from livens.run.step_control import StepControl
from livens.schemes.taylor import Taylor
from livens.schemes.taylor_equations import TaylorEquations

#: Final position errors, relative to the largest position, at which codes are compared.
ERRORS = (1e-6, 1e-9)
_TOLERANCES = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12, 1e-13)
#: Tolerances of heyoka, which compiles for each tolerance.
_HEYOKA_TOLERANCES = (1e-9, 1e-12, 2.3e-16)
#: Number of repetitions per round, and their total time limit in s.
_REPEATS, _REPEAT_TIME_S = 3, 0.1
#: Time in s after which no smaller tolerance is tried.
_MAX_TIME_S = 1.0
OURS = "taylor"
#: Function from a setting, such as a tolerance, to the final positions.
Code = Callable[[float], np.ndarray]


@dataclass(frozen=True)
class Comparison:
    """Codes with their settings, the exact final positions, and the compared schemes of livens."""

    codes: dict[str, tuple[Code, Sequence[float]]]
    exact: np.ndarray
    ours: tuple[str, ...] = (OURS,)


#: Problems with their end times, and whether they are constrained.
PROBLEMS = {
    "kepler": (20.3 * 2 * np.pi, False),
    "pleiades": (3.0, False),
    "outer-solar-system": (1e6, False),
    "andrews-squeezer": (0.03, True),
    "car-axis": (3.0, True),
    "slider-crank": (crank.T_END, True),
}


class EqualError:
    """Wall time of whole runs, livens with all steps stored and monitored; the minimum of all rounds."""

    name = "time at equal error"

    def __init__(self) -> None:
        self._times: dict[tuple[str, str, float], Minimum] = {}
        self._errors: dict[str, str] = {}
        self._comparisons: dict[str, Comparison] = {}

    def run_round(self, first: bool, log: Log) -> None:
        for name, (t_end, constrained) in PROBLEMS.items():
            log(name)
            if name not in self._comparisons:
                self._comparisons[name] = self._mechanism(name, t_end) if constrained else self._motion(name, t_end)
            compared = self._comparisons[name]
            for code, (run, settings) in compared.codes.items():
                log(f"{name}, {code}")
                self._measure(first, name, code, run, settings, compared.exact)

    def _measure(
        self, first: bool, name: str, code: str, run: Code, settings: Sequence[float], exact: np.ndarray
    ) -> None:
        """Run with decreasing tolerances until the smallest target error is reached."""
        scale = np.abs(exact).max()
        for setting in settings:
            try:
                if first:
                    run(setting)  # compilation
                times, error = list[float](), np.inf
                while len(times) < _REPEATS and sum(times) < _REPEAT_TIME_S:
                    start_time = time.perf_counter()
                    end = run(setting)
                    times.append(time.perf_counter() - start_time)
                    error = float(np.abs(end - exact).max() / scale)
            except (RuntimeError, ValueError, KeyError) as failure:
                self._errors[f"{code}, {name} at {setting:g}"] = str(failure).split("\n")[0][:80]
                continue
            for target in ERRORS:
                if error <= target:
                    self._times.setdefault((name, code, target), Minimum()).add(1e3 * min(times))
            if error <= min(ERRORS) or min(times) > _MAX_TIME_S:
                return

    def add_to_report(self, report: BenchReport) -> None:
        report.skipped |= self._errors
        for name, compared in self._comparisons.items():
            for target in ERRORS:
                for scheme in compared.ours:
                    ours = self._times.get((name, scheme, target), Minimum()).value
                    if not np.isfinite(ours):
                        report.skipped[f"{scheme}, {name} to {target:g}"] = "not that accurate"
                        continue
                    for code in compared.codes:
                        if code in compared.ours:
                            continue
                        theirs = self._times.get((name, code, target), Minimum()).value
                        case = f"{name} to {target:g}, {scheme}"
                        report.lines.append(ComparisonRow(case, ours, "ms", Goal(">=", 1), code, theirs))

    # -- problems -----------------------------------------------------------------------------------------------------
    def _motion(self, name: str, t_end: float) -> Comparison:
        """Return the codes for an unconstrained problem.

        Without an exact solution, the reference is that of `taylor` at round-off, which the tests compare with
        published final states.
        """
        problem = load(name)
        step = prepare(problem.model, OURS)
        start: dict[str, Any] = {"q0": problem.q0, "v0": problem.v0}
        k = problem.model.parameter_vector()
        initial_values = problem.model.initial_state(start, k, 0.0, False, "error").values
        exact = (
            step.run(**start, t_end=t_end, progress=False).q[-1]
            if problem.reference is None
            else problem.reference(t_end)["q"]
        )
        x0 = np.concatenate([initial_values["q"], initial_values["p"]])
        n, equations = len(exact), Taylor().equations(problem.model)
        codes = self._same_rates(equations, k, x0, t_end, n)
        codes[OURS] = functools.partial(_livens, step, start, t_end, n), (*_TOLERANCES, 1e-15)
        ours: tuple[str, ...] = (OURS,)
        if problem.model.is_nbody and problem.model.dimension == 3:
            ours += ("wisdom-holman",)
            counts = (2.5e3, 5e3, 1e4, 2e4, 4e4, 8e4, 3.2e5)
            codes["wisdom-holman"] = functools.partial(_wisdom_holman, problem, t_end), counts
            if importlib.util.find_spec("rebound") is None:
                self._errors["REBOUND"] = "not installed"
            else:
                codes["REBOUND WHFast"] = functools.partial(whfast, problem, t_end), counts
        return Comparison(codes, np.asarray(exact), ours)

    def _mechanism(self, name: str, t_end: float) -> Comparison:
        """Return the codes for a constrained problem in its index-1 form."""
        problem = crank_angles.problem() if name == "slider-crank" else load(name)
        model = MultibodyEquations.from_system(problem.model).formulate("index-1")
        step = prepare(model, OURS)
        start: dict[str, Any] = {"q0": problem.q0, "v0": problem.v0}
        k, n = model.parameter_vector(), problem.model.n
        x0 = np.concatenate([np.asarray(problem.q0, dtype=float), np.asarray(problem.v0, dtype=float)])
        assert problem.reference is not None
        codes = self._same_rates(Taylor().equations(model), k, x0, t_end, n)
        codes["SUNDIALS IDAS"] = _idas(problem, x0, t_end), _TOLERANCES
        codes[OURS] = functools.partial(_livens, step, start, t_end, n), (*_TOLERANCES, 1e-15)
        return Comparison(codes, np.asarray(problem.reference(t_end)["q"]))

    def _same_rates(
        self, equations: TaylorEquations, k: np.ndarray, x0: np.ndarray, t_end: float, n: int
    ) -> dict[str, tuple[Code, Sequence[float]]]:
        """Return codes for ``x' = f(x, t)``, where the first n entries of x are positions."""
        rates = equations.vector_field
        extra = np.zeros(rates.nnz_in(0) - len(x0))  # state of the supplied energy
        start = np.concatenate([x0, extra])
        scale = float(np.abs(x0).max())
        codes: dict[str, tuple[Code, Sequence[float]]] = {
            "SciPy DOP853": (functools.partial(_scipy, rates, k, start, t_end, n, scale), _TOLERANCES),
            "SUNDIALS CVODES": (functools.partial(_cvodes, rates, k, start, t_end, n, scale), _TOLERANCES),
        }
        if importlib.util.find_spec("heyoka") is None:
            self._errors["heyoka"] = "not installed"
            return codes
        # the right-hand sides of mechanisms are long: without compact mode, heyoka compiles for minutes
        compact = n < len(x0) and equations.algebraic is not None
        heyoka_run = functools.cache(functools.partial(heyoka_code, equations, k, start, t_end, compact=compact))
        codes["heyoka"] = lambda tolerance: heyoka_run(tolerance=tolerance)()[:n], _HEYOKA_TOLERANCES
        return codes


# -- codes ------------------------------------------------------------------------------------------------------------
def _livens(step: Any, start: dict[str, Any], t_end: float, n: int, tolerance: float) -> np.ndarray:
    run = step.run(**start, t_end=t_end, control=StepControl(tolerance=tolerance), progress=False)
    end: np.ndarray = (run.q if "q" in run.stored else run.x)[-1, :n]
    return end


def _wisdom_holman(problem: Problem, t_end: float, count: float) -> np.ndarray:
    """Return the final positions of one step with `count` substeps and the symplectic corrector at its ends."""
    step = _prepared(problem, f"wisdom-holman:{count:.0f}")
    end: np.ndarray = step.run(problem.q0, problem.v0, h=t_end, t_end=t_end, progress=False).q[-1]
    return end


@functools.lru_cache(maxsize=32)
def _prepared(problem: Problem, scheme: str) -> Any:
    return prepare(problem.model, scheme)


def _scipy(
    rates: ca.Function, k: np.ndarray, x0: np.ndarray, t_end: float, n: int, scale: float, rtol: float
) -> np.ndarray:
    """Return the final positions by DOP853, with rates evaluated through a CasADi buffer."""
    heyoka_run: Any = rates.buffer()
    buffer, call = heyoka_run
    x, t, out = x0.copy(), np.zeros(1), np.empty(len(x0))
    inputs: list[Any] = [x, t, np.ascontiguousarray(k)]
    for i, array in enumerate(inputs):
        buffer.set_arg(i, memoryview(array))
    buffer.set_res(0, memoryview(out.data))

    def rate(now: float, y: np.ndarray) -> np.ndarray:
        x[:], t[0] = y, now
        call()
        return out.copy()

    solution = solve_ivp(rate, (0.0, t_end), x0, method="DOP853", rtol=max(rtol, 3e-14), atol=rtol * 1e-2 * scale)
    end: np.ndarray = solution.y[:n, -1]
    return end


def _cvodes(
    rates: ca.Function, k: np.ndarray, x0: np.ndarray, t_end: float, n: int, scale: float, rtol: float
) -> np.ndarray:
    solver = _cvodes_solver(rates, tuple(k), len(x0), t_end, rtol, rtol * 1e-2 * scale)
    return np.array(solver(x0=x0)["xf"]).ravel()[:n]


@functools.lru_cache(maxsize=64)
def _cvodes_solver(
    rates: ca.Function, k: tuple[float, ...], size: int, t_end: float, rtol: float, atol: float
) -> ca.Function:
    x, t = ca.SX.sym("x", size), ca.SX.sym("t")
    options: dict[str, Any] = {"reltol": rtol, "abstol": atol, "max_num_steps": 10_000_000}
    options["linear_multistep_method"] = "adams"
    equations = {"x": x, "t": t, "ode": rates(x, t, np.array(k))}
    return ca.integrator("cvodes", "cvodes", equations, 0.0, t_end, options)


def _idas(problem: Problem, x0: np.ndarray, t_end: float) -> Code:
    """Return IDAS for the index-1 form, with accelerations and multipliers as algebraic variables."""
    system = problem.model
    d, n, k = equations_of_motion(system), system.n, system.parameter_vector()
    matrix, right = d.kkt_system
    unknown = ca.SX.sym("unknown", matrix.shape[0])
    x, t = ca.SX.sym("x", 2 * n), ca.SX.sym("t")
    residual = ca.substitute([ca.densify(matrix @ unknown - right)], [d.q, d.v, d.t, d.k], [x[:n], x[n:], t, ca.DM(k)])[
        0
    ]
    equations = {"x": x, "z": unknown, "t": t, "ode": ca.vertcat(x[n:], unknown[:n]), "alg": residual}
    coefficients = ca.Function("s", [d.q, d.v, d.t, d.k], [ca.densify(matrix), ca.densify(right)])
    A, b = (np.array(part) for part in coefficients(x0[:n], x0[n:], 0.0, k))
    z0 = np.linalg.solve(A, b).ravel()

    @functools.cache
    def solver(rtol: float) -> ca.Function:
        options = {"reltol": rtol, "abstol": rtol * 1e-2, "max_num_steps": 10_000_000}
        return ca.integrator("idas", "idas", equations, 0.0, t_end, options)

    return lambda rtol: np.array(solver(rtol)(x0=x0, z0=z0)["xf"]).ravel()[:n]
