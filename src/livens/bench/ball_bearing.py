"""Ball bearing: time per step, and time to a given accuracy compared with SciPy LSODA and SUNDIALS CVODES."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np
from scipy.integrate import solve_ivp

from livens.bench.case import Say
from livens.bench.ours import Best
from livens.bench.report import Goal, Line, Report
from livens.engine.kernels import simple_kernel
from livens.problems import load
from livens.reproduce.s003.bearing_runs import equations_of_motion
from livens.run.prepare import prepare
from livens.schemes.recipes.twists import twists

_STEPS, _T_END = 5000, 6e-4
#: Allowed error of the outer contact force after a load step, relative to its maximum; settings that reach it.
_ALLOWED, _H, _LSODA, _CVODES = 1.2e-2, 3e-6, 1e-5, 3e-4


class BallBearing:
    name = "ball-bearing"

    def __init__(self) -> None:
        self._per_step, self._whole = Best(), Best()
        self._others = {"SciPy LSODA": Best(), "CVODES through CasADi": Best()}
        self._trouble: dict[str, str] = {}

    def play(self, first: bool, say: Say) -> None:
        problem = load("ball-bearing", case="axial-step")
        step = prepare(problem)
        given: dict[str, Any] = dict(q0=problem.q0, v0=problem.v0)
        step.run(**given, h=problem.h, t_end=100 * problem.h)
        for _ in range(5):
            long = step.run(**given, h=problem.h, t_end=_STEPS * problem.h, every=50)
            self._per_step.add(long.statistics.wall_s / long.statistics.steps * 1e6)
            begun = time.perf_counter()
            short = step.run(**given, h=_H, t_end=_T_END)
            self._whole.add(1e3 * (time.perf_counter() - begun))
        times = np.linspace(0, _T_END, 101)
        codes = _codes(problem, times)
        exact = _forces(problem, codes["SciPy LSODA"](1e-9))
        ours = np.interp(times, short.t, np.asarray(short["ball1-outer.normal"]))
        self._check("livens", ours, exact)
        for name, tolerance in (("SciPy LSODA", _LSODA), ("CVODES through CasADi", _CVODES)):
            say(name)
            begun = time.perf_counter()
            found = codes[name](tolerance)
            self._others[name].add(1e3 * (time.perf_counter() - begun))
            self._check(name, _forces(problem, found), exact)

    def _check(self, name: str, found: np.ndarray, exact: np.ndarray) -> None:
        error = float(np.abs(found - exact).max() / exact.max())
        if error > _ALLOWED:
            self._trouble[f"{name}, {self.name}"] = f"its error is {error:.1e}, more than {_ALLOWED:.1e}"

    def tell(self, report: Report) -> None:
        report.skipped.update(self._trouble)
        report.lines.append(Line(f"{self.name}: 67 velocities, 27 contacts", self._per_step.value, goal=Goal("<=", 4)))
        for name, best in self._others.items():
            line = f"{self.name}: a step of the load, contact force to 1e-2"
            report.lines.append(Line(line, self._whole.value, "ms", Goal(">=", 50), name, best.value))


def _codes(problem: Any, times: np.ndarray) -> dict[str, Callable[[float], np.ndarray]]:
    """Return codes that map a relative tolerance to the states at the given times, with the same forces as livens."""
    system = problem.system
    q, u, t, rate = equations_of_motion(system)
    x = ca.vertcat(q, u)
    q0, v0 = ca.DM(problem.q0), ca.DM(problem.v0)
    start = np.array(ca.evalf(ca.vertcat(q0, twists(system).twist(q0, v0)))).ravel()
    native = _native(ca.Function("rate", [x], [ca.cse(ca.substitute(rate, t, ca.SX(0)))]))

    def lsoda(tolerance: float) -> np.ndarray:
        found = solve_ivp(
            native, (0, times[-1]), start, method="LSODA", t_eval=times, rtol=tolerance, atol=1e-3 * tolerance
        )
        return np.asarray(found.y.T)

    solvers: dict[float, Any] = {}

    def cvodes(tolerance: float) -> np.ndarray:
        options = dict(reltol=tolerance, abstol=1e-3 * tolerance, max_num_steps=10**6)
        if tolerance not in solvers:
            solvers[tolerance] = ca.integrator(
                "F", "cvodes", dict(x=x, t=t, ode=rate), 0.0, times[1:].tolist(), options
            )
        return np.vstack([start, np.array(solvers[tolerance](x0=start)["xf"]).T])

    cvodes(_CVODES)  # derivation and preparation are not timed
    return {"SciPy LSODA": lsoda, "CVODES through CasADi": cvodes}


def _native(function: ca.Function) -> Callable[[float, np.ndarray], np.ndarray]:
    """Return a function of the state as machine code."""
    code = simple_kernel(function, "rate")
    pointer = ctypes.c_void_p
    called = ctypes.CFUNCTYPE(None, *[pointer] * 5)(code.address)
    out, given = np.zeros(function.numel_out(0)), np.zeros(function.numel_in(0))
    places = [pointer(array.ctypes.data) for array in (given, given, given, given, out)]

    def rate(_: float, y: np.ndarray, kept: Any = code) -> np.ndarray:
        given[:] = y
        called(*places)
        return out.copy()

    return rate


def _forces(problem: Any, states: np.ndarray) -> np.ndarray:
    """Return the contact force between the first ball and the outer race."""
    system = problem.system
    q, u = ca.SX.sym("q", system.n), ca.SX.sym("u", states.shape[1] - system.n)
    k = ca.SX(ca.DM(system.parameter_vector()))
    normal = system.quantities["ball1-outer.normal"].expression(q, twists(system).lifted(q, u), None, ca.SX(0), k)
    function = ca.Function("Q", [q, u], [normal])
    return np.array([float(function(z[: system.n], z[system.n :])) for z in states])
