"""Memory of many varied calls of the public functions in one process: it does not grow, and caches are bounded.

Calls are runs with other parameters, initial values and steps, prepared calls, ensembles, gradients, access to results,
and ordinary differential equations. A few calls have functions that were not seen before, so that code is compiled.
"""

from __future__ import annotations

import functools
import gc
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import livens as lv
from torture.findings import Findings

#: Megabytes by which the resident memory may grow over the second half of the calls.
_GROWTH = 20.0
#: Steps of a run at most.
_STEPS = 20
#: One call in so many has functions of its own.
_NEW_FUNCTIONS = 200


def resident_mb() -> float:
    """Return the resident memory of this process; 0 where it cannot be read."""
    path = Path("/proc/self/status")
    lines = path.read_text().splitlines() if path.exists() else []
    return next((float(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS")), 0.0)


@functools.cache
def pendulum() -> lv.Problem:
    return lv.problems.load("simple-pendulum")


@functools.cache
def linkage() -> lv.Problem:
    return lv.problems.load("double-four-bar")


@functools.cache
def arm() -> lv.Multibody:
    """Return a hinged rod with a symmetry that gravity breaks."""
    mb = lv.Multibody(planar=True)
    mb.revolute("hinge", mb.ground, mb.rod("arm", a=[0, 0], b=[1, 0], mass=1.0), at=[0, 0])
    return mb


@functools.cache
def oscillator() -> lv.System:
    return lv.System(
        "x",
        kinetic=lambda v: v[0] ** 2 / 2,
        potential=lambda q, k: k.c * q[0] ** 2 / 2 + q[0] ** 4 / 4,
        parameters={"c": 1.0},
    )


@functools.cache
def prepared(scheme: str) -> Any:
    return lv.prepare(oscillator(), scheme=scheme, h=0.01)


@functools.cache
def loss() -> Any:
    return lv.value_and_gradient(lambda q: q[0] ** 2)


def van_der_pol(t: float, x: Any, mu: float = 1.0) -> list[Any]:
    return [x[1], mu * (1 - x[0] ** 2) * x[1] - x[0]]


def run_of_a_problem(chance: random.Random) -> None:
    h = chance.uniform(0.001, 0.01)
    lv.simulate(pendulum(), h=h, t_end=h * chance.randint(1, _STEPS), parameters={"g": chance.uniform(1.0, 10.0)})


def run_of_a_linkage(chance: random.Random) -> None:
    lv.simulate(linkage(), h=1e-3, t_end=1e-3 * chance.randint(1, _STEPS))


def run_of_a_mechanism(chance: random.Random) -> None:
    arm().simulate(h=0.01, t_end=0.01 * chance.randint(1, _STEPS), parameters={"arm.mass": chance.uniform(0.5, 2.0)})


def run_of_a_system(chance: random.Random) -> None:
    """Run a system, and read its result."""
    scheme, h = chance.choice(("livens-em", "gauss-2", "stormer-verlet", "radau-iia-2")), chance.uniform(0.001, 0.02)
    run = lv.simulate(
        oscillator(), [chance.uniform(-1, 1)], [0.0], scheme=scheme, h=h, t_end=h * _STEPS, every=chance.randint(1, 3)
    )
    run.observe("generalized_energy")
    assert np.isfinite(run.q).all() and run.summary.max_energy_drift < 1.0


def controlled_run(chance: random.Random) -> None:
    control = lv.StepControl(tolerance=10.0 ** chance.uniform(-8, -4))
    lv.simulate(oscillator(), [chance.uniform(0.1, 1)], [0.0], scheme="gauss-2", h=0.01, t_end=0.5, control=control)


def failing_call(chance: random.Random) -> None:
    """Pass an argument that is refused."""
    try:
        lv.simulate(oscillator(), [chance.uniform(0.1, 1)], [0.0, 1.0], h=0.01, t_end=0.1)
    except lv.InputError:
        return
    raise AssertionError("two velocities of one coordinate are accepted")


def prepared_call(chance: random.Random) -> None:
    step = prepared(chance.choice(("livens-em", "gauss-2")))
    step.run([chance.uniform(-1, 1)], [0.0], t_end=0.2, parameters={"c": chance.uniform(0.5, 2.0)})


def gradient(chance: random.Random) -> None:
    loss()(prepared("livens-em"), [chance.uniform(0.1, 1)], [0.0], t_end=0.1, parameters={"c": chance.uniform(0.5, 2)})


def ensemble(chance: random.Random) -> None:
    parameters = {"g": [chance.uniform(1.0, 10.0) for _ in range(chance.randint(2, 9))]}
    lv.ensemble(pendulum(), h=0.01, t_end=0.05, parameters=parameters).arrays["q"].sum()


def known_equation(chance: random.Random) -> None:
    lv.solve_ivp(van_der_pol, (0.0, chance.uniform(0.1, 1.0)), [chance.uniform(-2, 2), 0.0])


def known_equation_with_arguments(chance: random.Random) -> None:
    found = lv.solve_ivp(van_der_pol, (0.0, 0.5), [1.0, 0.0], args=(chance.choice((0.5, 1.0, 2.0)),), dense_output=True)
    found.sol(chance.uniform(0.0, 0.5))


def new_equation(chance: random.Random) -> None:
    """Solve an equation whose function is a new closure with a new number."""
    stiffness = chance.uniform(0.5, 2.0)
    lv.solve_ivp(lambda t, x: [x[1], -stiffness * x[0]], (0.0, 0.5), [1.0, 0.0])


def new_system(chance: random.Random) -> None:
    stiffness = chance.uniform(0.5, 2.0)
    system = lv.System("x", kinetic=lambda v: v[0] ** 2 / 2, potential=lambda q: stiffness * q[0] ** 2 / 2)
    lv.simulate(system, [1.0], [0.0], h=0.01, t_end=0.1)


def new_mechanism(chance: random.Random) -> None:
    mb = lv.Multibody(planar=True)
    arm = mb.rod("arm", a=[0, 0], b=[chance.uniform(0.5, 1.0), 0], mass=chance.uniform(0.5, 2.0))
    mb.revolute("hinge", mb.ground, arm, at=[0, 0])
    mb.simulate(h=0.01, t_end=0.1)


def report(chance: random.Random) -> None:
    """Report on a run, with an estimate of its errors by further runs."""
    lv.simulate(linkage(), h=1e-3, t_end=1e-3 * chance.randint(1, _STEPS)).report()


CALLS: tuple[Callable[[random.Random], None], ...] = (
    run_of_a_problem,
    run_of_a_linkage,
    run_of_a_mechanism,
    run_of_a_system,
    controlled_run,
    failing_call,
    prepared_call,
    gradient,
    ensemble,
    known_equation,
    known_equation_with_arguments,
)
CALLS_WITH_NEW_FUNCTIONS: tuple[Callable[[random.Random], None], ...] = (
    new_equation,
    new_system,
    new_mechanism,
    report,
)


def run(seed: int, first: int, count: int) -> Findings:
    """Make `count` varied calls, and compare the resident memory after half of them with that at the end."""
    findings, chance = Findings(), random.Random(f"varied calls {seed} {first}")
    halfway = 0.0
    for i in range(count):
        new = i % _NEW_FUNCTIONS == 0
        call = chance.choice(CALLS_WITH_NEW_FUNCTIONS if new else CALLS)
        call(chance)
        findings.counts[call.__name__.replace("_", " ")] += 1
        if i == count // 2:
            gc.collect()
            halfway = resident_mb()
    gc.collect()
    grown = resident_mb() - halfway
    findings.counts["calls"] = count
    findings.measure("growth of memory in MB", grown)
    if grown > _GROWTH:
        findings.fault(first, f"memory has grown by {grown:.0f} MB over {count - count // 2} calls")
    return findings
