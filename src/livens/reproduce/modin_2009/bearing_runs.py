"""Runs of the ball bearing for figures of Modin 2009: semi-explicit scheme and CVODE, with evaluation counts."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from livens import problems
from livens.models.problem import Problem
from livens.models.system import System
from livens.run.simulate import simulate
from livens.schemes.discretization.quasi_velocities import quasi_velocities
from livens.schemes.discretization.semi_explicit_step import force_split

T_END = 6e-4
#: Times in s at which curves are compared, 5 microseconds apart.
TIMES = np.linspace(0.0, T_END, 121)
BALL_OUTPUTS = ("ball1-outer.normal_force", "ball7-cage.normal_force", "cage.speed")
#: Outputs of the roller bearing, which has no cage: the codes are tuned on the orbit rate.
ROLLER_OUTPUTS = ("roller4-outer.normal_force", "rollers.speed")
#: Evaluations per Jacobian computed body by body, and additional ones per elastic state (paper V, 6.3).
EVALUATIONS_PER_JACOBIAN, EVALUATIONS_PER_ELASTIC_STATE = 12, 2


@dataclass(frozen=True)
class Curves:
    """Outputs of a run at `TIMES`, numbers of contact-force and Jacobian evaluations, and time of the steps in s."""

    values: dict[str, np.ndarray]
    evaluations: int
    jacobians: int
    seconds: float
    elastic_states: int = 0

    @property
    def counted(self) -> int:
        """Evaluations as counted in the paper, with Jacobians converted to evaluations."""
        return self.evaluations + self.jacobians * (
            EVALUATIONS_PER_JACOBIAN + EVALUATIONS_PER_ELASTIC_STATE * self.elastic_states
        )

    def error(self, exact: Curves, name: str) -> float:
        """Return the largest difference relative to the range of the exact curve (for forces: to its maximum)."""
        curve = exact.values[name]
        size = np.ptp(curve) if name.endswith("speed") else np.abs(curve).max()
        return float(np.abs(self.values[name] - curve).max() / size)


#: Options of a bearing as pairs of name and value.
Options = tuple[tuple[str, Any], ...]


@functools.cache
def bearing(case: str, options: Options = ()) -> Problem:
    return problems.load("ball-bearing", case=case, **dict(options))


def elastic_states(options: Options) -> int:
    return sum(count for name, count in options if name.endswith("modes"))


def output_names(case: str) -> tuple[str, ...]:
    return ROLLER_OUTPUTS if case == "rollers" else BALL_OUTPUTS


@functools.lru_cache(maxsize=32)
def semi_explicit(case: str, h: float, scheme: str = "semi-explicit:0.5,0.8", options: Options = ()) -> Curves:
    """Return the outputs of the proposed method; h need not divide the output interval."""
    problem = bearing(case, options)
    run = simulate(problem, scheme=scheme, h=h, t_end=T_END, progress=False)
    values = {name: np.interp(TIMES, run.t, np.asarray(run[name])) for name in output_names(case)}
    return Curves(values, run.statistics.force_evaluations, 0, run.statistics.wall_s, elastic_states(options))


@functools.lru_cache(maxsize=32)
def cvode(case: str, tolerance: float, options: Options = ()) -> Curves:
    """Return the outputs by SUNDIALS CVODES (variable-order BDF) through CasADi, with exact Jacobians.

    CasADi evaluates a Jacobian at each linear solver setup, which CVODES alone reuses: the number of Jacobians is that
    of setups, an upper bound. `count_jacobians` returns the number with reuse.
    """
    problem, names = bearing(case, options), output_names(case)
    system = problem.model
    q, u, t, rate = equations_of_motion(system)
    state = ca.vertcat(q, u)
    solver_options = dict(reltol=tolerance, abstol=1e-3 * tolerance, max_num_steps=10**6)
    solver = ca.integrator("F", "cvodes", dict(x=state, t=t, ode=rate), 0.0, TIMES[1:].tolist(), solver_options)
    initial_state = _initial_state(problem)
    clock = time.perf_counter()
    solution = np.array(solver(x0=initial_state)["xf"]).T
    seconds = time.perf_counter() - clock
    states, statistics = np.vstack([initial_state, solution]), solver.stats()
    outputs = ca.Function("shown", [q, u, t], [ca.vertcat(*_output_expressions(system, names, q, u, t))])
    values = np.array(
        [
            np.array(outputs(z[: system.n], z[system.n :], time_point)).ravel()
            for z, time_point in zip(states, TIMES, strict=True)
        ]
    ).T
    curves = dict(zip(names, values, strict=True))
    return Curves(curves, statistics["nfevals"], statistics["nlinsetups"], seconds, elastic_states(options))


def _initial_state(problem: Problem) -> np.ndarray:
    """Return the initial coordinates and quasi-velocities."""
    assert problem.q0 is not None and problem.v0 is not None
    initial = ca.DM(problem.q0), quasi_velocities(problem.model).from_qdot(ca.DM(problem.q0), ca.DM(problem.v0))
    return np.array(ca.evalf(ca.vertcat(*initial))).ravel()


@functools.lru_cache(maxsize=32)
def count_jacobians(case: str, tolerance: float, options: Options = ()) -> tuple[int, int]:
    """Return the numbers of steps and of Jacobians of VODE, counted by the code.

    VODE is the Fortran predecessor of CVODE with the same methods, and the same rule for the reuse of a Jacobian in
    several setups of the linear solver.
    """
    from scipy.integrate import ode

    problem = bearing(case, options)
    q, u, t, rate = equations_of_motion(problem.model)
    function = ca.Function("rate", [ca.vertcat(q, u), t], [ca.densify(rate)])
    buffer_pair: Any = function.buffer()
    buffer, evaluate = buffer_pair
    state, time_point, result = np.zeros(function.numel_in(0)), np.zeros(1), np.zeros(function.numel_out(0))
    buffer.set_arg(0, state.data)
    buffer.set_arg(1, time_point.data)
    buffer.set_res(0, result.data)

    def right_hand_side(at: float, z: np.ndarray) -> np.ndarray:
        state[:], time_point[0] = z, at
        evaluate()
        return result.copy()

    solver = ode(right_hand_side)
    solver.set_integrator("vode", method="bdf", rtol=tolerance, atol=1e-3 * tolerance, nsteps=10**6, with_jacobian=True)
    solver.set_initial_value(_initial_state(problem), 0.0)
    solver.integrate(T_END)
    assert solver.successful()
    counters = solver._integrator.iwork  # IWORK(11): steps, IWORK(13): Jacobians
    return int(counters[10]), int(counters[12])


def final_state_by_cvodes(
    problem: Problem, t_end: float, tolerance: float, integrands: Sequence[Callable[[Any, Any, Any], Any]] = ()
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return final coordinates and velocities by CVODES, and the integrals of `integrands`, functions of q, u and t."""
    system = problem.model
    assert isinstance(system, System) and problem.q0 is not None and problem.v0 is not None
    q, u, t, rate = equations_of_motion(system)
    extra = ca.vertcat(*(power(q, u, t) for power in integrands))
    x = ca.vertcat(q, u, ca.SX.sym("w", len(integrands)))
    options = dict(reltol=tolerance, abstol=1e-3 * tolerance, max_num_steps=10**6)
    solver = ca.integrator("F", "cvodes", dict(x=x, t=t, ode=ca.vertcat(rate, extra)), 0.0, t_end, options)
    initial = ca.DM(problem.q0), ca.DM(problem.v0)
    u0 = np.array(ca.evalf(quasi_velocities(system).from_qdot(*initial))).ravel()
    solution = np.array(
        solver(x0=np.concatenate([np.array(initial[0]).ravel(), u0, np.zeros(len(integrands))]))["xf"]
    ).ravel()
    n, last = system.n, system.n + u0.size
    v = np.array(ca.evalf(quasi_velocities(system).to_qdot(ca.DM(solution[:n]), ca.DM(solution[n:last])))).ravel()
    return solution[:n], v, solution[last:]


def equations_of_motion(system: System) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
    """Return ``q' = v(q, u)``, ``u' = M^-1 F`` with directors in q and angular velocities in u, for other codes."""
    forces, bodies = force_split(system), quasi_velocities(system)
    q, u, t = ca.SX.sym("q", system.n), ca.SX.sym("u", bodies.size), ca.SX.sym("t")
    k = ca.DM(system.parameter_vector())
    applied = forces.evaluate((*forces.expensive, *forces.cheap), q, u, t, k)
    return q, u, t, ca.vertcat(bodies.to_qdot(q, u), bodies.accelerations(q, u, applied.force, k, gyroscopic=True))


def _output_expressions(system: System, names: Sequence[str], q: ca.SX, u: ca.SX, t: ca.SX) -> list[ca.SX]:
    v, k = quasi_velocities(system).to_qdot(q, u), ca.DM(system.parameter_vector())
    return [system.quantities[name].expression(q, v, None, t, ca.SX(k)) for name in names]
