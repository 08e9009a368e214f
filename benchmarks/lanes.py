"""SIMD: time loops with vectorised steps, without storage and monitoring.

Times are processor times, because loops of milliseconds are interrupted on a busy machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.case import Log
from benchmarks.ours import Minimum
from benchmarks.report import BenchReport, ComparisonRow, Goal
from livens import math as m
from livens.engine.newton.step_size_control import initial_controller_state
from livens.engine.newton.time_loop import StepPolicy
from livens.engine.stepper import Stepper
from livens.engine.steppers.explicit import ExplicitStepper
from livens.models.base import Model
from livens.models.hamiltonian.model import Hamiltonian
from livens.models.multibody_equations import MultibodyEquations
from livens.problems import load
from livens.run.prepare import prepare
from livens.run.step_control import StepControl

_STEPS, _REPEATS = 1000, 20
#: Explicit schemes and problems whose equal expressions are vectorised.
_EXPLICIT = tuple(
    (name, scheme)
    for name in ("outer-solar-system", "pleiades")
    for scheme in ("stormer-verlet", "kahan-li-8:position-verlet")
)
#: Goals in ms for a whole loop of Taylor series at round-off accuracy.
_SERIES = {
    "kepler, e = 0.8, 100.3 periods": 1.2,
    "pendulum, t = 1000": 0.74,
    "pleiades, t = 3": 0.38,
    "outer-solar-system, 1e6 days": 4.6,
    "pendulum with constraint of index 1, t = 300": 1.9,
}
#: Goal in ms, number of steps and step of Gauss collocation in fictive time, for the Kepler problem.
_GAUSS, _GAUSS_STEPS, _GAUSS_H = 0.65, 1261, 0.5

Loop = Callable[[], object]


class SimdSteps:
    """Vectorised and scalar code of the same graph, run alternately; loops of Taylor series and of Gauss' method."""

    name = "lanes within a step"

    def __init__(self) -> None:
        self._loops: dict[tuple[str, str], Loop] = {}
        self._times: dict[tuple[str, str], Minimum] = {}

    def run_round(self, first: bool, log: Log) -> None:
        if first:
            for name, scheme in _EXPLICIT:
                log(f"{name}, {scheme}")
                for variant in ("vectors", "one by one"):
                    self._loops[f"{name}, {scheme}", variant] = _explicit(name, scheme, variant == "vectors")
            for name, loop in _series().items():
                log(name)
                self._loops[name, "taylor"] = loop
            self._loops["kepler", "gauss"] = _gauss()
        for _ in range(_REPEATS):
            for key, loop in self._loops.items():
                session = time.thread_time()
                loop()
                self._times.setdefault(key, Minimum()).add(time.thread_time() - session)

    def add_to_report(self, report: BenchReport) -> None:
        for name, scheme in _EXPLICIT:
            vectors, plain = (
                self._times[f"{name}, {scheme}", variant].value / _STEPS * 1e6 for variant in ("vectors", "one by one")
            )
            case = f"{name}, {scheme}, loop"
            report.lines.append(ComparisonRow(case, vectors, "us", Goal(">=", 1.7), "the same without vectors", plain))
        for name, goal in _SERIES.items():
            report.lines.append(
                ComparisonRow(f"{name}, taylor, loop", 1e3 * self._times[name, "taylor"].value, "ms", Goal("<=", goal))
            )
        ours = 1e3 * self._times["kepler", "gauss"].value
        case = f"kepler, e = 0.8, sundman-gauss-8, {_GAUSS_STEPS} steps, loop"
        report.lines.append(ComparisonRow(case, ours, "ms", Goal("<=", _GAUSS)))


def _explicit(name: str, scheme: str, lanes: bool) -> Loop:
    problem = load(name)
    session = prepare(problem, scheme).start(h=problem.h)
    stepper = ExplicitStepper(session._session.compiled, problem.model.parameter_vector(), lanes)
    policy = StepPolicy(False, problem.h, 0.0, 0)
    return lambda: stepper.advance(session._state, _STEPS, policy, initial_controller_state(problem.h))


def _series() -> dict[str, Loop]:
    """Return the Taylor loops in the order of their goals."""
    pendulum = MultibodyEquations(
        "x y", kinetic=lambda v: v @ v / 2, potential=lambda q: 9.81 * q[1], constraints=lambda q: [(q @ q - 1) / 2]
    )
    models: list[tuple[Model, dict[str, Any], float]] = []
    for name, t_end in (("kepler", 100.3 * 2 * np.pi), ("nonlinear-pendulum", 1e3), ("pleiades", 3.0)):
        problem = load(name, **({"e": 0.8} if name == "kepler" else {}))
        models.append((problem.model, {"q0": problem.q0, "v0": problem.v0}, t_end))
    planets = load("outer-solar-system")
    models.append((planets.model, {"q0": planets.q0, "v0": planets.v0}, 1e6))
    models.append((pendulum.formulate("index-1"), {"q0": [1.0, 0.0], "v0": [0.0, 0.0]}, 300.0))
    return {name: _taylor(*model_data) for name, model_data in zip(_SERIES, models, strict=True)}


def _taylor(model: Model, start: dict[str, Any], t_end: float) -> Loop:
    session = prepare(model, "taylor").start(**start, h=1.0)
    compiled = session._session.compiled
    step_control = StepControl(tolerance=compiled.scheme.tolerance).taylor_control(t_end)
    stepper: Stepper = compiled.make_stepper("fused", model.parameter_vector(), control=step_control)
    policy = StepPolicy(True, 0.0, 0.0, 0, t_end=t_end)
    return lambda: stepper.advance(session._state, 10_000, policy, initial_controller_state(0.0))


def _gauss() -> Loop:
    model = Hamiltonian("x y", kinetic=lambda p: p @ p / 2, potential=lambda q: -1 / m.norm(q))
    step = prepare(model, "sundman-gauss-8", scaling=lambda q: m.norm(q))
    session = step.start(q0=[0.2, 0.0], p0=[0.0, 3.0], h=_GAUSS_H)
    entry = session._session.compiled.layout["t"].start
    policy = StepPolicy(False, _GAUSS_H, 0.0, 0, entry)
    return lambda: session._session._stepper.advance(
        session._state, _GAUSS_STEPS, policy, initial_controller_state(_GAUSS_H)
    )
