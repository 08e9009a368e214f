"""SIMD: time loops with vectorised steps, without storage and monitoring.

Times are processor times, because loops of milliseconds are interrupted on a busy machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from livens import math as m
from livens.bench.case import Say
from livens.bench.ours import Best
from livens.bench.report import Goal, Line, Report
from livens.engine.explicit import ExplicitStepper
from livens.engine.loop import Policy
from livens.engine.step_size import flow
from livens.engine.steps import Stepper
from livens.models.hamiltonian.model import Hamiltonian
from livens.models.model import Model
from livens.models.multibody_equations import MultibodyEquations
from livens.problems import load
from livens.run.control import StepControl
from livens.run.prepare import prepare

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


class LanesInSteps:
    """Vectorised and scalar code of the same graph, run alternately; loops of Taylor series and of Gauss' method."""

    name = "lanes within a step"

    def __init__(self) -> None:
        self._loops: dict[tuple[str, str], Loop] = {}
        self._times: dict[tuple[str, str], Best] = {}

    def play(self, first: bool, say: Say) -> None:
        if first:
            for name, scheme in _EXPLICIT:
                say(f"{name}, {scheme}")
                for kind in ("vectors", "one by one"):
                    self._loops[f"{name}, {scheme}", kind] = _explicit(name, scheme, kind == "vectors")
            for name, loop in _series().items():
                say(name)
                self._loops[name, "taylor"] = loop
            self._loops["kepler", "gauss"] = _gauss()
        for _ in range(_REPEATS):
            for key, loop in self._loops.items():
                begun = time.thread_time()
                loop()
                self._times.setdefault(key, Best()).add(time.thread_time() - begun)

    def tell(self, report: Report) -> None:
        for name, scheme in _EXPLICIT:
            vectors, plain = (
                self._times[f"{name}, {scheme}", kind].value / _STEPS * 1e6 for kind in ("vectors", "one by one")
            )
            case = f"{name}, {scheme}, loop"
            report.lines.append(Line(case, vectors, "us", Goal(">=", 1.7), "the same without vectors", plain))
        for name, wanted in _SERIES.items():
            report.lines.append(
                Line(f"{name}, taylor, loop", 1e3 * self._times[name, "taylor"].value, "ms", Goal("<=", wanted))
            )
        ours = 1e3 * self._times["kepler", "gauss"].value
        case = f"kepler, e = 0.8, sundman-gauss-8, {_GAUSS_STEPS} steps, loop"
        report.lines.append(Line(case, ours, "ms", Goal("<=", _GAUSS)))


def _explicit(name: str, scheme: str, lanes: bool) -> Loop:
    problem = load(name)
    begun = prepare(problem, scheme).start(h=problem.h)
    stepper = ExplicitStepper(begun._compiled, problem.system.parameter_vector(), lanes)
    policy = Policy(False, problem.h, 0.0, 0)
    return lambda: stepper.advance(begun._carry, _STEPS, policy, flow(problem.h))


def _series() -> dict[str, Loop]:
    """Return the Taylor loops in the order of their goals."""
    pendulum = MultibodyEquations(
        "x y", kinetic=lambda v: v @ v / 2, potential=lambda q: 9.81 * q[1], constraints=lambda q: [(q @ q - 1) / 2]
    )
    made: list[tuple[Model, dict[str, Any], float]] = []
    for name, t_end in (("kepler", 100.3 * 2 * np.pi), ("nonlinear-pendulum", 1e3), ("pleiades", 3.0)):
        problem = load(name, **({"e": 0.8} if name == "kepler" else {}))
        made.append((problem.system, {"q0": problem.q0, "v0": problem.v0}, t_end))
    planets = load("outer-solar-system")
    made.append((planets.system, {"q0": planets.q0, "v0": planets.v0}, 1e6))
    made.append((pendulum.formulate("index-1"), {"q0": [1.0, 0.0], "v0": [0.0, 0.0]}, 300.0))
    return {name: _taylor(*one) for name, one in zip(_SERIES, made, strict=True)}


def _taylor(model: Model, start: dict[str, Any], t_end: float) -> Loop:
    begun = prepare(model, "taylor").start(**start, h=1.0)
    compiled = begun._compiled
    own = StepControl(tolerance=compiled.scheme.tolerance).own_steps(t_end)
    stepper: Stepper = compiled.stepper("fused", model.parameter_vector(), own=own)
    policy = Policy(True, 0.0, 0.0, 0, t_end=t_end)
    return lambda: stepper.advance(begun._carry, 10_000, policy, flow(0.0))


def _gauss() -> Loop:
    model = Hamiltonian("x y", kinetic=lambda p: p @ p / 2, potential=lambda q: -1 / m.norm(q))
    step = prepare(model, "sundman-gauss-8", scaling=lambda q: m.norm(q))
    begun = step.start(q0=[0.2, 0.0], p0=[0.0, 3.0], h=_GAUSS_H)
    entry = begun._compiled.layout["t"].start
    policy = Policy(False, _GAUSS_H, 0.0, 0, entry)
    return lambda: begun._stepper.advance(begun._carry, _GAUSS_STEPS, policy, flow(_GAUSS_H))
