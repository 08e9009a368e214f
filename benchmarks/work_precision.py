"""Work-precision of the double four-bar linkage: error at t = 10 against wall time, for several codes."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable

import casadi as ca
import numpy as np
from scipy.integrate import solve_ivp

from benchmarks.case import Log
from benchmarks.report import BenchReport, ComparisonRow, Goal, WorkPrecisionPoint
from livens.errors import IntegrationError
from livens.problems import load
from livens.run.simulate import simulate

_END = 10.0
#: Compared schemes with their target errors.
_FINE, _COARSE = ("lobatto-iiia-iiib-4", 1e-8), ("livens-em", 1e-5)
_LIVENS_STEPS = {
    "livens-em": (0.02, 0.01, 0.005, 0.002, 0.0009, 0.0005),
    "lobatto-iiia-iiib-2": (0.02, 0.01, 0.005, 0.002),
    "lobatto-iiia-iiib-3": (0.1, 0.05, 0.025, 0.0125),
    "lobatto-iiia-iiib-4": (0.1, 0.06, 0.04, 0.03, 0.02),
}
_TOLERANCES = (1e-4, 1e-6, 1e-8, 1e-10)


class WorkPrecision:
    name = "double-four-bar, work and precision"

    def __init__(self) -> None:
        self._problem = load("double-four-bar")
        assert self._problem.reference is not None
        self._exact = self._problem.reference(_END)["q"]
        self._points: dict[tuple[str, str], tuple[float, float]] = {}
        self._failed: dict[str, str] = {}

    def run_round(self, first: bool, log: Log) -> None:
        for scheme, steps in _LIVENS_STEPS.items():
            for h in steps:
                log(f"{scheme}, h = {h:g}")
                self._add(scheme, f"h = {h:g}", functools.partial(self._livens, scheme, h))
        for tolerance in _TOLERANCES:
            self._add("SciPy Radau, reduced", f"rtol = {tolerance:g}", functools.partial(_radau, tolerance))
            self._add("IDAS, reduced", f"rtol = {tolerance:g}", functools.partial(_idas, tolerance))

    def _add(self, code: str, setting: str, run: Callable[[], tuple[float, float]]) -> None:
        """Store the error and the shortest time."""
        try:
            error, seconds = run()
        except (IntegrationError, RuntimeError) as failure:
            self._failed[f"{code}, {setting}"] = str(failure).split("\n")[0][:80]
            return
        previous = self._points.get((code, setting), (error, np.inf))
        self._points[code, setting] = error, min(seconds, previous[1])

    def _livens(self, scheme: str, h: float) -> tuple[float, float]:
        run = simulate(self._problem, scheme=scheme, h=h, t_end=_END, progress=False)
        return _error(run.q[-1], self._exact), run.statistics.wall_s

    def add_to_report(self, report: BenchReport) -> None:
        report.works += [WorkPrecisionPoint(*key, *point) for key, point in self._points.items()]
        for setting_name, reason in self._failed.items():
            report.skipped[setting_name] = reason
        fine, coarse = (self._shortest(*target) for target in (_FINE, _COARSE))
        report.lines.append(
            ComparisonRow(
                f"double-four-bar: {_FINE[0]} to {_FINE[1]:g}",
                fine,
                "s",
                Goal(">=", 1),
                f"{_COARSE[0]} to {_COARSE[1]:g}",
                coarse,
            )
        )

    def _shortest(self, scheme: str, error: float) -> float:
        times = [seconds for (code, _), (e, seconds) in self._points.items() if code == scheme and e <= error]
        return min(times, default=np.inf)


def _error(q: np.ndarray, exact: np.ndarray) -> float:
    """Return the position error of P4, the top of the first bar."""
    return float(np.linalg.norm((q[:2] + 0.5 * q[2:4]) - (exact[:2] + 0.5 * exact[2:4])))


# -- same motion with one degree of freedom, for solvers that fail at singular configurations -------------------------
def _reduced() -> tuple[float, np.ndarray, np.ndarray]:
    """Return a of ``phi'' = -a cos(phi)``, the initial (phi, phi') and the exact final P4."""
    problem = load("double-four-bar")
    assert problem.reference is not None and problem.v0 is not None
    exact = problem.reference(_END)["q"]
    g = float(problem.model.parameters["g"])
    # three bars about their ends and two translating bars: T = 3/2 phi'^2, V = 7/2 g sin(phi)
    return 3.5 * g / 3, np.array([np.pi / 2, -1.0]), exact[:2] + 0.5 * exact[2:4]


def _radau(rtol: float) -> tuple[float, float]:
    a, start, exact = _reduced()
    start_time = time.perf_counter()
    run = solve_ivp(
        lambda t, y: [y[1], -a * np.cos(y[0])], (0, _END), start, method="Radau", rtol=rtol, atol=rtol * 1e-2
    )
    seconds = time.perf_counter() - start_time
    phi = run.y[0, -1]
    return float(np.linalg.norm(np.array([np.cos(phi), np.sin(phi)]) - exact)), seconds


def _idas(rtol: float) -> tuple[float, float]:
    """Run IDAS on a pendulum in Cartesian coordinates at index 1, the highest index that IDAS supports."""
    a, start, exact = _reduced()
    x, lam = ca.SX.sym("x", 4), ca.SX.sym("lam")
    rhs = ca.vertcat(x[2], x[3], -lam * x[0], -a - lam * x[1])
    hidden = x[2] ** 2 + x[3] ** 2 - a * x[1] - lam * (x[0] ** 2 + x[1] ** 2)
    options = {"reltol": rtol, "abstol": rtol * 1e-2, "max_num_steps": 1_000_000}
    solver = ca.integrator("idas", "idas", {"x": x, "z": lam, "ode": rhs, "alg": hidden}, 0, _END, options)
    phi, rate = start
    x0 = [np.cos(phi), np.sin(phi), -rate * np.sin(phi), rate * np.cos(phi)]
    z0 = x0[2] ** 2 + x0[3] ** 2 - a * x0[1]
    start_time = time.perf_counter()
    end = np.array(solver(x0=x0, z0=z0)["xf"]).ravel()
    return float(np.linalg.norm(end[:2] - exact)), time.perf_counter() - start_time
