"""Optimal control beside direct collocation with CasADi's Opti: cost error, iterations and processor time.

Run with ``python benchmarks/optimal_control.py``. Every line is the best processor time of several interleaved
repetitions, with setting up. Both sides use IPOPT with the same tolerances and the straight line as guess. Opti is used
with ``expand``.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

import livens as lv

#: Cost of the cart-pole swing-up with gauss-3 on 240 steps, and largest radius of the orbit transfer.
CART_POLE_COST, ORBIT_RADIUS = 58.807667, 1.52524628
REPETITIONS = 5
IPOPT: dict[str, Any] = {"tol": 1e-9, "constr_viol_tol": 1e-10, "max_iter": 1000, "print_level": 0, "sb": "yes"}


def cart_pole_rhs(x: ca.SX, u: ca.SX, t: ca.SX) -> ca.SX:
    """Return the vector field of the cart-pole."""
    M, m, length, g = 1.0, 0.3, 0.5, 9.81
    c, s = ca.cos(x[1]), ca.sin(x[1])
    mass = ca.blockcat([[M + m, m * length * c], [m * length * c, m * length**2]])
    return ca.vertcat(x[2:], ca.solve(mass, ca.vertcat(u + m * length * s * x[3] ** 2, -m * g * length * s)))


def orbit_rhs(x: ca.SX, u: ca.SX, t: ca.SX) -> ca.SX:
    """Return the vector field of the orbit transfer: radius, radial and tangential velocity."""
    a = 0.1405 / (1 - 0.07487 * t)
    return ca.vertcat(x[1], x[2] ** 2 / x[0] - 1 / x[0] ** 2 + a * ca.sin(u), -x[1] * x[2] / x[0] + a * ca.cos(u))


def collocation(case: str, n_steps: int, method: str) -> tuple[float, int]:
    """Solve a case by collocation in Opti; return cost and iterations."""
    is_cart = case == "cart-pole"
    n, t_end, bounds = (4, 2.0, (-20, 20)) if is_cart else (3, 3.32, (-4, 8))
    x_, u_, t_ = ca.SX.sym("x", n), ca.SX.sym("u"), ca.SX.sym("t")
    f = ca.Function("f", [x_, u_, t_], [(cart_pole_rhs if is_cart else orbit_rhs)(x_, u_, t_)])

    def path(s: float) -> list[float]:
        return [s, np.pi * s, 0.5, np.pi / 2] if is_cart else [1 + 0.5 * s, 0.2, 1 - 0.2 * s]

    opti, h = ca.Opti(), t_end / n_steps
    X = opti.variable(n, n_steps + 1)
    opti.subject_to(X[:, 0] == (np.zeros(4) if is_cart else [1, 0, 1]))
    cost: Any = 0
    for i in range(n_steps + 1):
        opti.set_initial(X[:, i], path(i / n_steps))
    if method == "trapezoid":
        U = opti.variable(1, n_steps + 1)
        slopes = [f(X[:, i], U[i], h * i) for i in range(n_steps + 1)]
        for i in range(n_steps):
            opti.subject_to(X[:, i + 1] == X[:, i] + h / 2 * (slopes[i] + slopes[i + 1]))
            cost += h / 2 * (U[i] ** 2 + U[i + 1] ** 2)
    else:
        d = 3
        tau = ca.collocation_points(d, method)
        C, D, B = ca.collocation_coeff(tau)
        U, S = opti.variable(1, d * n_steps), opti.variable(n, d * n_steps)
        for i in range(n_steps):
            stages = S[:, i * d : (i + 1) * d]
            Z = ca.horzcat(X[:, i], stages)
            slope = ca.horzcat(*(f(stages[:, j], U[i * d + j], h * (i + tau[j])) for j in range(d)))
            opti.subject_to(ca.vec(Z @ C) == ca.vec(h * slope))
            opti.subject_to(X[:, i + 1] == Z @ D)
            cost += h * sum(B[j] * U[i * d + j] ** 2 for j in range(d))
            for j in range(d):
                opti.set_initial(stages[:, j], path((i + tau[j]) / n_steps))
    opti.subject_to(opti.bounded(bounds[0], U, bounds[1]))
    if is_cart:
        opti.subject_to(opti.bounded(-2, X[0, 1:], 2))
        opti.subject_to(X[:, -1] == [1, np.pi, 0, 0])
        opti.minimize(cost)
    else:
        opti.set_initial(U, np.linspace(0.5, 5.5, U.shape[1]))
        opti.subject_to(X[1, -1] == 0)
        opti.subject_to(X[2, -1] ** 2 * X[0, -1] == 1)
        opti.minimize(-X[0, -1])
    opti.solver("ipopt", {"print_time": False, "expand": True}, IPOPT)
    solution = opti.solve()
    return float(solution.value(opti.f)), int(solution.stats()["iter_count"])


def transcription(problem: str, n_steps: int, scheme: str) -> tuple[float, int]:
    """Solve a built-in problem with livens; return cost and iterations."""
    motion = lv.optimal_control(lv.problems.load(problem), steps=n_steps, scheme=scheme)
    if not motion.converged:
        raise RuntimeError(motion.message)
    return motion.cost, motion.statistics["iterations"]


def main() -> None:
    """Print the table."""
    cases: list[tuple[str, str, float, Callable[[], tuple[float, int]]]] = []
    for n in (20, 40, 80):
        for scheme in ("livens-variational", "livens-em", "gauss-3"):
            cases.append(
                (
                    f"cart-pole {n}",
                    scheme,
                    CART_POLE_COST,
                    functools.partial(transcription, "cart-pole-swing-up", n, scheme),
                )
            )
        for method in ("trapezoid", "radau", "legendre"):
            cases.append(
                (
                    f"cart-pole {n}",
                    f"Opti {method}",
                    CART_POLE_COST,
                    functools.partial(collocation, "cart-pole", n, method),
                )
            )
    for scheme in ("livens-variational", "gauss-3"):
        cases.append(
            ("orbit 20", scheme, -ORBIT_RADIUS, functools.partial(transcription, "low-thrust-transfer", 20, scheme))
        )
    for method in ("radau", "legendre"):
        cases.append(("orbit 20", f"Opti {method}", -ORBIT_RADIUS, functools.partial(collocation, "orbit", 20, method)))
    best = [np.inf] * len(cases)
    results: list[tuple[float, int]] = [(np.nan, 0)] * len(cases)
    for _ in range(REPETITIONS):
        for i, (_, _, _, run) in enumerate(cases):
            begin = time.process_time()
            results[i] = run()
            best[i] = min(best[i], time.process_time() - begin)
    print(f"{'problem':14s} {'method':20s} {'cost error':>11s} {'iterations':>11s} {'total, s':>9s}")
    for (name, method, reference, _), (cost, iterations), seconds in zip(cases, results, best, strict=True):
        print(f"{name:14s} {method:20s} {cost / reference - 1:+11.1e} {iterations:11d} {seconds:9.3f}")


if __name__ == "__main__":
    main()
