"""Runs of the ball bearing for figures of S003: semi-explicit scheme and CVODE, with evaluation counts."""

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
from livens.schemes.recipes.split_forces import split_forces
from livens.schemes.recipes.twists import twists

T_END = 6e-4
#: Times in s at which curves are compared, 5 microseconds apart.
TIMES = np.linspace(0.0, T_END, 121)
SHOWN = ("ball1-outer.normal", "ball7-cage.normal", "cage.speed")
#: Outputs of the roller bearing, which has no cage: the codes are tuned on the orbit rate.
ROLLERS = ("roller4-outer.normal", "rollers.speed")
#: Evaluations per Jacobian computed body by body, and additional ones per elastic state (paper V, 6.3).
PER_JACOBIAN, PER_ELASTIC_STATE = 12, 2


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
        return self.evaluations + self.jacobians * (PER_JACOBIAN + PER_ELASTIC_STATE * self.elastic_states)

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


def shown_by(case: str) -> tuple[str, ...]:
    return ROLLERS if case == "rollers" else SHOWN


@functools.lru_cache(maxsize=32)
def semi_explicit(case: str, h: float, scheme: str = "semi-explicit:0.5,0.8", options: Options = ()) -> Curves:
    """Return the outputs of the proposed method; h need not divide the output interval."""
    problem = bearing(case, options)
    run = simulate(problem, scheme=scheme, h=h, t_end=T_END, progress=False)
    values = {name: np.interp(TIMES, run.t, np.asarray(run[name])) for name in shown_by(case)}
    return Curves(values, run.statistics.force_evaluations, 0, run.statistics.wall_s, elastic_states(options))


@functools.lru_cache(maxsize=32)
def cvode(case: str, tolerance: float, options: Options = ()) -> Curves:
    """Return the outputs by SUNDIALS CVODES (variable-order BDF) through CasADi, with exact Jacobians.

    CasADi evaluates a Jacobian at each linear solver setup; CVODES alone reuses some of them. The evaluation count
    without Jacobians is therefore a lower bound of its cost, the count with Jacobians an upper bound.
    """
    problem, names = bearing(case, options), shown_by(case)
    system = problem.system
    q, u, t, rate = equations_of_motion(system)
    state = ca.vertcat(q, u)
    given = dict(reltol=tolerance, abstol=1e-3 * tolerance, max_num_steps=10**6)
    solver = ca.integrator("F", "cvodes", dict(x=state, t=t, ode=rate), 0.0, TIMES[1:].tolist(), given)
    assert problem.q0 is not None and problem.v0 is not None
    begun = ca.DM(problem.q0), twists(system).twist(ca.DM(problem.q0), ca.DM(problem.v0))
    start = np.array(ca.evalf(ca.vertcat(*begun))).ravel()
    clock = time.perf_counter()
    found = np.array(solver(x0=start)["xf"]).T
    seconds = time.perf_counter() - clock
    states, statistics = np.vstack([start, found]), solver.stats()
    shown = ca.Function("shown", [q, u, t], [ca.vertcat(*_shown(system, names, q, u, t))])
    values = np.array(
        [np.array(shown(z[: system.n], z[system.n :], when)).ravel() for z, when in zip(states, TIMES, strict=True)]
    ).T
    curves = dict(zip(names, values, strict=True))
    return Curves(curves, statistics["nfevals"], statistics["nlinsetups"], seconds, elastic_states(options))


def cvodes(
    problem: Problem, t_end: float, tolerance: float, more: Sequence[Callable[[Any, Any, Any], Any]] = ()
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return final coordinates and velocities by CVODES, and the integrals of `integrands`, functions of q, u and t."""
    system = problem.system
    assert isinstance(system, System) and problem.q0 is not None and problem.v0 is not None
    q, u, t, rate = equations_of_motion(system)
    extra = ca.vertcat(*(power(q, u, t) for power in more))
    x = ca.vertcat(q, u, ca.SX.sym("w", len(more)))
    options = dict(reltol=tolerance, abstol=1e-3 * tolerance, max_num_steps=10**6)
    solver = ca.integrator("F", "cvodes", dict(x=x, t=t, ode=ca.vertcat(rate, extra)), 0.0, t_end, options)
    begun = ca.DM(problem.q0), ca.DM(problem.v0)
    u0 = np.array(ca.evalf(twists(system).twist(*begun))).ravel()
    found = np.array(solver(x0=np.concatenate([np.array(begun[0]).ravel(), u0, np.zeros(len(more))]))["xf"]).ravel()
    n, last = system.n, system.n + u0.size
    v = np.array(ca.evalf(twists(system).lifted(ca.DM(found[:n]), ca.DM(found[n:last])))).ravel()
    return found[:n], v, found[last:]


def equations_of_motion(system: System) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
    """Return ``q' = v(q, u)``, ``u' = M^-1 F`` with directors in q and angular velocities in u, for other codes."""
    forces, bodies = split_forces(system), twists(system)
    q, u, t = ca.SX.sym("q", system.n), ca.SX.sym("u", bodies.size), ca.SX.sym("t")
    k = ca.DM(system.parameter_vector())
    pushed = forces.pushed((*forces.expensive, *forces.cheap), q, u, t, k)
    return q, u, t, ca.vertcat(bodies.lifted(q, u), bodies.accelerations(q, u, pushed.force, k, gyroscopic=True))


def _shown(system: System, names: Sequence[str], q: ca.SX, u: ca.SX, t: ca.SX) -> list[ca.SX]:
    v, k = twists(system).lifted(q, u), ca.DM(system.parameter_vector())
    return [system.quantities[name].expression(q, v, None, t, ca.SX(k)) for name in names]
