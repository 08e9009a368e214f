"""Optimal control beside direct collocation with CasADi's Opti: cost error, iterations and processor time.

Run with ``python -m benchmarks.optimal_control [names]``. Every line is the best processor time of several interleaved
repetitions, with setting up. Both sides use IPOPT with the same tolerances, and the straight line or the path of the
problem as guess. Opti is used with ``expand``. Its ordinary differential equations are derived from the energies of the
models, but for the satellite, which has Euler's equations. Opti has no equations for the closed loops of the five-bar.
"""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

import livens as lv
from benchmarks.case import Log
from benchmarks.ours import Minimum
from benchmarks.report import BenchReport, ComparisonRow
from livens.models.equations_of_motion import equations_of_motion
from livens.problems.satellite_reorientation import _BIAS

REPETITIONS = 3
IPOPT: dict[str, Any] = {"tol": 1e-9, "constr_viol_tol": 1e-10, "max_iter": 1000, "print_level": 0, "sb": "yes"}
#: Costs on fine meshes: gauss-3 (orbit transfer: Bryson and Ho give the radius 1.525; satellite: livens-variational).
REFERENCES = {
    "cart-pole-swing-up": 58.807667,
    "acrobot-swing-up": 23.21959,
    "satellite-reorientation": 6.6146,
    "five-bar-point-to-point": 29.53,
    "arm-point-to-point": 0.013642,
    "low-thrust-transfer": -1.52524628,
    "pumping-a-swing": -2.00143,
}


@dataclass(frozen=True)
class Ode:
    """Control problem of an ordinary differential equation, for Opti."""

    rhs: ca.Function  # (x, u, t) -> x'
    start: Any  # states; None if free
    end: Callable[[Any], Any]  # expressions that are zero at the end
    inputs: tuple[Any, Any]  # bounds
    t_end: float | tuple[float, float]
    guess: Callable[[float], Any]  # relative time -> x
    guess_u: Callable[[float], Any] = lambda s: 0.0
    running: Callable[[Any], Any] = lambda u: 0.0  # of the inputs
    final: Callable[[Any, Any], Any] = lambda x, T: 0.0
    path: tuple[int, float, float] | None = None  # bounded state
    periodic: bool = False


def lagrangian_rhs(model: lv.System) -> ca.Function:
    """Return ``(q, v)' = (v, M^-1 (F - dV/dq - ...))`` of a system without constraints, by SX."""
    d = equations_of_motion(model)
    u = ca.SX.sym("u", model.parameter_table.lookup(_input_name(model)).slices[0].stop - _first(model))
    k = ca.SX(ca.DM(model.parameter_vector()))
    k[_first(model) : _first(model) + u.numel()] = u
    momentum = ca.gradient(d.T, d.v)
    mass = ca.jacobian(momentum, d.v)
    force = d.F - ca.gradient(d.R, d.v) + ca.gradient(d.T - d.V, d.q) - ca.jacobian(momentum, d.q) @ d.v
    acceleration = ca.substitute(ca.solve(mass, force), d.k, k)
    return ca.Function("f", [ca.vertcat(d.q, d.v), u, d.t], [ca.vertcat(d.v, acceleration)])


def _input_name(model: lv.System) -> str:
    return "phi" if "phi" in model.parameters else "u"


def _first(model: lv.System) -> int:
    return int(model.parameter_table.lookup(_input_name(model)).slices[0].start)


def satellite_ode() -> Ode:
    """Return Euler's equations of the satellite: quaternion, angular velocity, momenta of the wheels."""
    parameters = lv.problems.load("satellite-reorientation").model.parameters
    J, x, u = np.array(parameters["J"]), ca.SX.sym("x", 10), ca.SX.sym("u", 3)
    e0, e, w, p = x[0], x[1:4], x[4:7], x[7:10]
    rate = ca.vertcat(-ca.dot(e, w) / 2, (e0 * w + ca.cross(e, w)) / 2)
    spin = (-u - ca.cross(w, J * w + p)) / J
    rhs = ca.Function("f", [x, u, ca.SX.sym("t")], [ca.vertcat(rate, spin, u)])
    axis, angle = np.array([1.0, 2.0, 3.0]) / np.sqrt(14), 2.4
    p0, pv = np.cos(angle / 2), np.sin(angle / 2) * axis

    def guess(s: float) -> np.ndarray:
        half = s * angle / 2
        return np.concatenate([[np.cos(half)], np.sin(half) * axis, np.zeros(3), _BIAS])

    return Ode(
        rhs, guess(0.0), lambda x: ca.vertcat(p0 * x[1:4] - x[0] * pv - ca.cross(pv, x[1:4]), x[4:7]), (-1, 1),
        (3.0, 20.0), guess, final=lambda x, T: T,
    )  # fmt: skip


def ode_of(name: str) -> Ode | None:
    """Return the control problem of a built-in problem as an ordinary differential equation."""
    if name == "satellite-reorientation":
        return satellite_ode()
    problem = lv.problems.load(name)
    if name == "five-bar-point-to-point":
        return None
    control, rhs = problem.control, lagrangian_rhs(problem.model)
    n = rhs.size1_in(0) // 2
    if name == "low-thrust-transfer":

        def radius(x: Any) -> Any:
            return ca.norm_2(x[:2])

        def orbit(s: float) -> np.ndarray:
            r, angle = 1 + 0.5 * s, 2.4 * s
            return np.array([r * np.cos(angle), r * np.sin(angle), -np.sin(angle), np.cos(angle)])

        return Ode(
            rhs, orbit(0.0), lambda x: ca.vertcat(ca.dot(x[:2], x[2:]), ca.dot(x[2:], x[2:]) * radius(x) - 1), (-4, 8),
            control["t_end"], orbit, guess_u=lambda s: 0.5 + 5 * s, final=lambda x, T: -radius(x),
        )  # fmt: skip
    if name == "pumping-a-swing":
        return Ode(
            rhs, None, lambda x: x, (-30, 0), (0.7, 1.6),
            lambda s: [0.6 * np.cos(np.pi * s), 1.0, -0.6 * 3 * np.sin(np.pi * s), 0.0], guess_u=lambda s: -9.81,
            final=lambda x, T: x[0], path=(1, 0.9, 1.1), periodic=True,
        )  # fmt: skip
    start = np.concatenate([control["start"]["q0"], np.zeros(n)])
    end = np.concatenate([control["end"]["q"], np.zeros(n)])
    low, high = control["inputs"]["u"]
    weights = 1 / np.asarray(high) ** 2 if name.startswith("arm") else 1.0
    return Ode(
        rhs, start, lambda x: x - end, (low, high), control["t_end"],
        lambda s: start + (end - start) * (3 * s**2 - 2 * s**3 if name.startswith("arm") else s),
        running=lambda u: ca.sum1(weights * u**2), path=(0, -2.0, 2.0) if name.startswith("cart") else None,
    )  # fmt: skip


def collocation(ode: Ode, n_steps: int, method: str) -> tuple[float, int]:
    """Solve a problem in Opti by the trapezoidal rule or by collocation of degree 3; return cost and iterations."""
    n, n_inputs = ode.rhs.size1_in(0), ode.rhs.size1_in(1)
    opti, is_free = ca.Opti(), isinstance(ode.t_end, tuple)
    T: Any = opti.variable() if is_free else ode.t_end
    if isinstance(ode.t_end, tuple):
        opti.subject_to(opti.bounded(ode.t_end[0], T, ode.t_end[1]))
        opti.set_initial(T, np.sqrt(ode.t_end[0] * ode.t_end[1]))
    h, X = T / n_steps, opti.variable(n, n_steps + 1)
    for i in range(n_steps + 1):
        opti.set_initial(X[:, i], ode.guess(i / n_steps))
    if ode.start is not None:
        opti.subject_to(X[:, 0] == ode.start)
    if ode.path is not None:
        opti.subject_to(opti.bounded(ode.path[1], X[ode.path[0], 1:], ode.path[2]))
    cost: Any = 0
    if method == "trapezoid":
        U = opti.variable(n_inputs, n_steps + 1)
        slopes = [ode.rhs(X[:, i], U[:, i], h * i) for i in range(n_steps + 1)]
        for i in range(n_steps):
            opti.subject_to(X[:, i + 1] == X[:, i] + h / 2 * (slopes[i] + slopes[i + 1]))
            cost += h / 2 * (ode.running(U[:, i]) + ode.running(U[:, i + 1]))
    else:
        degree = 3
        tau = ca.collocation_points(degree, method)
        C, D, B = ca.collocation_coeff(tau)
        U, S = opti.variable(n_inputs, degree * n_steps), opti.variable(n, degree * n_steps)
        for i in range(n_steps):
            stages = S[:, i * degree : (i + 1) * degree]
            columns = [U[:, i * degree + j] for j in range(degree)]
            slope = ca.horzcat(*(ode.rhs(stages[:, j], columns[j], h * (i + tau[j])) for j in range(degree)))
            Z = ca.horzcat(X[:, i], stages)
            opti.subject_to(ca.vec(Z @ C) == ca.vec(h * slope))
            opti.subject_to(X[:, i + 1] == Z @ D)
            cost += h * sum(B[j] * ode.running(columns[j]) for j in range(degree))
            for j in range(degree):
                opti.set_initial(stages[:, j], ode.guess((i + tau[j]) / n_steps))
    for i in range(U.shape[1]):
        opti.set_initial(U[:, i], ode.guess_u(i / U.shape[1]))
    for i in range(n_inputs):
        low, high = (np.broadcast_to(bound, n_inputs)[i] for bound in ode.inputs)
        opti.subject_to(opti.bounded(low, U[i, :], high))
    if ode.periodic:
        opti.subject_to(X[:, -1] == X[:, 0] * np.array([-1, 1, -1, 1]))
    else:
        opti.subject_to(ode.end(X[:, -1]) == 0)
    opti.minimize(cost + ode.final(X[:, -1], T))
    opti.solver("ipopt", {"print_time": False, "expand": True}, IPOPT)
    solution = opti.solve()
    return float(solution.value(opti.f)), int(solution.stats()["iter_count"])


def transcription(problem: str, n_steps: int, scheme: str) -> tuple[float, int]:
    """Solve a built-in problem with livens; return cost and iterations."""
    motion = lv.optimal_control(lv.problems.load(problem), steps=n_steps, scheme=scheme)
    if not motion.converged:
        raise RuntimeError(motion.message)
    return motion.cost, motion.statistics["iterations"]


#: Problems with their numbers of steps, schemes and methods of Opti.
CASES: dict[str, tuple[tuple[int, ...], tuple[str, ...], tuple[str, ...]]] = {
    "cart-pole-swing-up": (
        (20, 40),
        ("livens-variational", "livens-em", "gauss-3"),
        ("trapezoid", "radau", "legendre"),
    ),
    "acrobot-swing-up": ((80,), ("livens-variational", "gauss-3"), ("trapezoid", "legendre")),
    "satellite-reorientation": ((10, 40), ("livens-variational",), ("trapezoid", "legendre")),
    "five-bar-point-to-point": ((20,), ("lie-em", "lie-ggl"), ()),
    "arm-point-to-point": ((20,), ("livens-variational", "gauss-2"), ("trapezoid", "legendre")),
    "low-thrust-transfer": ((20,), ("livens-variational", "gauss-3"), ("trapezoid", "radau", "legendre")),
    "pumping-a-swing": ((40,), ("livens-variational", "gauss-3"), ("trapezoid", "legendre")),
}


#: Number of rounds of the benchmark in which problems are solved; a solution by Opti takes up to 20 seconds.
_MAX_ROUNDS = 2


class ControlProblems:
    """Solution of built-in control problems from a given guess, beside collocation of degree 3 in CasADi's Opti.

    Both costs are compared with the refined reference before times are reported.
    """

    name = "optimal-control"
    #: Problems with their numbers of steps and schemes, and the largest relative error of the cost.
    _PROBLEMS = (
        ("cart-pole-swing-up", 40, "gauss-3", 1e-5),
        ("low-thrust-transfer", 20, "gauss-3", 1e-5),
        ("arm-point-to-point", 20, "gauss-2", 1e-3),
    )

    def __init__(self) -> None:
        self._best = {problem: (Minimum(), Minimum()) for problem, *_ in self._PROBLEMS}
        self._n_rounds = 0

    def run_round(self, first: bool, log: Log) -> None:
        self._n_rounds += 1
        if self._n_rounds > _MAX_ROUNDS:
            return
        for problem, n, scheme, allowed in self._PROBLEMS:
            ode = ode_of(problem)
            assert ode is not None
            ours = functools.partial(transcription, problem, n, scheme)
            theirs = functools.partial(collocation, ode, n, "legendre")
            for best, solve in zip(self._best[problem], (ours, theirs), strict=True):
                begin = time.process_time()
                cost, _ = solve()
                best.add(time.process_time() - begin)
                if abs(cost / REFERENCES[problem] - 1) > allowed:
                    raise RuntimeError(f"{problem}: the cost {cost:.9g} is not that of the reference")

    def add_to_report(self, report: BenchReport) -> None:
        for problem, n, scheme, _ in self._PROBLEMS:
            ours, theirs = (best.value for best in self._best[problem])
            case = f"{problem}, {n} steps, {scheme}"
            report.lines.append(ComparisonRow(case, ours, "s", None, "Opti, Legendre", theirs))


def main(names: Sequence[str] = ()) -> None:
    """Print the table of all problems, or of those whose names contain one of the names."""
    lines: list[tuple[str, int, str, Callable[[], tuple[float, int]]]] = []
    for problem, (sizes, schemes, methods) in CASES.items():
        if names and not any(name in problem for name in names):
            continue
        ode = ode_of(problem)
        for n in sizes:
            lines += [(problem, n, scheme, functools.partial(transcription, problem, n, scheme)) for scheme in schemes]
            if ode is not None:
                lines += [(problem, n, f"Opti {m}", functools.partial(collocation, ode, n, m)) for m in methods]
    best, results = [np.inf] * len(lines), [(np.nan, -1)] * len(lines)
    for _ in range(REPETITIONS):
        for i, (_, _, _, run) in enumerate(lines):
            begin = time.process_time()
            try:
                results[i] = run()
            except RuntimeError as error:
                results[i] = (np.nan, -1)
                print(f"{lines[i][0]} {lines[i][2]}: {str(error).splitlines()[0][:90]}", file=sys.stderr)
            best[i] = min(best[i], time.process_time() - begin)
    print(f"{'problem':24s} {'steps':>5s} {'method':20s} {'cost error':>11s} {'iterations':>11s} {'total, s':>9s}")
    for (name, n, method, _), (cost, iterations), seconds in zip(lines, results, best, strict=True):
        deviation = cost / REFERENCES[name] - 1
        print(f"{name:24s} {n:5d} {method:20s} {deviation:+11.1e} {iterations:11d} {seconds:9.3f}")


if __name__ == "__main__":
    main(sys.argv[1:])
