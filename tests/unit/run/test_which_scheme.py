"""The table of `docs/howto/step-size-control.md` is measured here; ``UPDATE_TABLES=1`` writes it."""

import functools
import os
import re
from pathlib import Path

import numpy as np
import pytest

import livens as lv
from livens import math as m

PAGE = Path(__file__).parents[3] / "docs" / "howto" / "step-size-control.md"
BEGIN, END = "<!-- measured: begin -->\n", "<!-- measured: end -->"
Q0, V0 = np.array([0.6, -0.8]), np.array([1.6, 1.2])


@functools.cache
def pendulum(formulation):
    equations = lv.MultibodyEquations(
        "x y", kinetic=lambda v: v @ v / 2, potential=lambda q: 9.81 * q[1], constraints=lambda q: [(q @ q - 1) / 2]
    )
    return equations.formulate(formulation)


@functools.cache
def exact_pendulum():
    return lv.simulate(pendulum("ggl"), q0=Q0, v0=V0, scheme="radau-iia-6", h=0.02, t_end=2.0)


def swing(formulation, scheme):
    control = lv.StepControl(tolerance=1e-8)
    run = lv.simulate(pendulum(formulation), q0=Q0, v0=V0, scheme=scheme, t_end=2.0, control=control)
    exact = exact_pendulum()
    return run, np.abs(run.x[-1] - exact.x[-1]).max(), abs(run.y[-1, 0] - exact.y[-1, 0])


def stiff(scheme):
    """Prothero and Robinson's equation, whose solution is cos t."""
    model = lv.FirstOrder("x", rhs=lambda x, t: [-1e6 * (x[0] - m.cos(t)) - m.sin(t)])
    run = lv.simulate(model, x0=[1.0], scheme=scheme, t_end=10.0, control=lv.StepControl(tolerance=1e-8))
    return run, np.abs(run.x[:, 0] - np.cos(run.t)).max(), None


def implicit(scheme):
    """``a' = -y``, ``y + y^3 = a + a^3``, so y = a = exp(-t)."""
    model = lv.FirstOrder(
        "a", algebraic="y", rhs=lambda y: [-y[0]], constraints=lambda x, y: [y[0] + y[0] ** 3 - x[0] - x[0] ** 3]
    )
    run = lv.simulate(model, x0=[1.0], scheme=scheme, t_end=3.0, control=lv.StepControl(tolerance=1e-8))
    return run, np.abs(run.x[:, 0] - np.exp(-run.t)).max(), np.abs(run.y[:, 0] - np.exp(-run.t)).max()


def orbit(scheme):
    """Three turns about the sun, of eccentricity 0.5."""
    model = lv.FirstOrder("x y u v", rhs=lambda x: [x[2], x[3], *(-x[:2] / (x[:2] @ x[:2]) ** 1.5)])
    exact = lv.problems.load("kepler", e=0.5).reference
    x0 = np.concatenate([exact(0.0)["q"], exact(0.0)["v"]])
    run = lv.simulate(model, x0=x0, scheme=scheme, t_end=20.0, control=lv.StepControl(tolerance=1e-8))
    return run, np.abs(run.x[-1, :2] - exact(20.0)["q"]).max(), None


def hamiltonian_orbit(scheme):
    problem = lv.problems.load("kepler", e=0.5)
    model = lv.Hamiltonian("x y", kinetic=lambda p: p @ p / 2, potential=lambda q: -1 / m.norm(q))
    start, end = problem.reference(0.0), problem.reference(20.0)
    control = lv.StepControl(tolerance=1e-8)
    run = lv.simulate(model, q0=start["q"], p0=start["v"], scheme=scheme, t_end=20.0, control=control)
    return run, np.abs(run.q[-1] - end["q"]).max(), None


def orbit_in_parts(scheme):
    model = lv.FirstOrder("x y u v", rhs=lambda x: [x[2], x[3], *(-x[:2] / (x[:2] @ x[:2]) ** 1.5)], partition="u v")
    exact = lv.problems.load("kepler", e=0.5).reference
    x0 = np.concatenate([exact(0.0)["q"], exact(0.0)["v"]])
    run = lv.simulate(model, x0=x0, scheme=scheme, t_end=20.0, control=lv.StepControl(tolerance=1e-8))
    return run, np.abs(run.x[-1, :2] - exact(20.0)["q"]).max(), None


def expensive_orbit(scheme):
    """The explicit force is evaluated once in every step and never differentiated."""
    problem = lv.problems.load("kepler", e=0.5)
    force = lv.Force(lambda q: -q / (q @ q) ** 1.5, expensive=True)
    model = lv.Hamiltonian("x y", kinetic=lambda p: p @ p / 2, forces=force)
    start, end = problem.reference(0.0), problem.reference(20.0)
    control = lv.StepControl(tolerance=1e-8)
    run = lv.simulate(model, q0=start["q"], p0=start["v"], scheme=scheme, t_end=20.0, control=control)
    return run, np.abs(run.q[-1] - end["q"]).max(), None


def constrained_energy(scheme):
    model = lv.ConstrainedHamiltonian(
        "x y", hamiltonian=lambda q, p: p @ p / 2 + 9.81 * q[1], constraints=lambda q: [(q @ q - 1) / 2]
    )
    run = lv.simulate(model, q0=Q0, p0=V0, scheme=scheme, t_end=2.0, control=lv.StepControl(tolerance=1e-8))
    exact = exact_pendulum()
    return run, np.abs(run.x[-1] - exact.x[-1]).max(), abs(run.y[-1, 0] - exact.y[-1, 0])


CASES = {
    ("Kepler's ellipse, three turns", "-"): (orbit, ["taylor", "gauss-3", "radau-iia-5", "radau"]),
    ("the same as a Hamiltonian", "-"): (hamiltonian_orbit, ["gauss-3", "lobatto-iiia-iiib-4"]),
    ("the same in two parts", "-"): (orbit_in_parts, ["lobatto-iiia-iiib-4"]),
    ("the same, its force expensive", "-"): (expensive_orbit, ["semi-explicit:0.5,0.5"]),
    ("stiff, `x' = -1e6 (x - cos t) - sin t`", "-"): (stiff, ["radau-iia-3", "radau", "gauss-3", "lobatto-iiic-3"]),
    ("`a' = -y`, y implicit", "1"): (implicit, ["radau-iia-3", "radau", "gauss-3", "lobatto-iiic-3"]),
    ("pendulum, accelerations constrained", "1"): (functools.partial(swing, "index-1"), ["radau-iia-3", "gauss-3"]),
    ("pendulum, velocities constrained", "2"): (
        functools.partial(swing, "index-2"),
        ["radau-iia-3", "radau-iia-5", "radau", "murua-3", "gauss-3"],
    ),
    ("pendulum, positions and velocities constrained", "2"): (
        functools.partial(swing, "ggl"),
        ["radau-iia-3", "murua-3"],
    ),
    ("pendulum, positions constrained", "3"): (
        functools.partial(swing, "index-3"),
        ["radau-iia-3", "radau-iia-5"],
    ),
    ("the same as H(q, p) with a constraint", "3"): (constrained_energy, ["lobatto-iiia-iiib-4", "radau-iia-3"]),
}
#: Rows whose steps and errors depend on rounding, with the bounds of both that the page shows. Gauss methods damp no
#: stiff component: 224 tolerances within 5 % of 1e-8 lead to 246 to 332 steps, and to errors from 7.8e-9 to 3.3e-8.
ROUNDING_DEPENDENT = {("stiff, `x' = -1e6 (x - cos t) - sin t`", "-", "gauss-3"): ("230 to 350", "5e-09 to 5e-08")}
ROWS = [(problem, index, scheme) for (problem, index), (_, schemes) in CASES.items() for scheme in schemes]


@functools.cache
def row(problem, index, scheme):
    """Steps, Newton corrections, and the errors of differential and algebraic variables."""
    run, error, algebraic = CASES[problem, index][0](scheme)
    return run.statistics.steps, run.statistics.newton_iterations, float(error), algebraic


def line(problem, index, scheme):
    steps, newton, error, algebraic = row(problem, index, scheme)
    if (problem, index, scheme) in ROUNDING_DEPENDENT:
        step_range, error_range = ROUNDING_DEPENDENT[problem, index, scheme]
        return f"| {problem} | {index} | `{scheme}` | {step_range} | - | {error_range} | - |"
    shown = "-" if algebraic is None else f"{algebraic:.0e}"
    return f"| {problem} | {index} | `{scheme}` | {steps} | {newton} | {error:.0e} | {shown} |"


def table():
    names = ("problem", "index", "scheme", "steps", "corrections", "error of x", "error of y")
    head = f"| {' | '.join(names)} |\n{'|---' * len(names)}|\n"
    return head + "\n".join(line(*key) for key in ROWS) + "\n"


@pytest.mark.skipif("UPDATE_TABLES" not in os.environ, reason="the table is only written if that is asked for")
def test_write_the_table():
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    PAGE.write_text(before + BEGIN + table() + END + rest.split(END)[1], encoding="utf-8")


def test_the_table_has_these_rows():
    shown = PAGE.read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0].splitlines()[2:]
    assert [tuple(re.split(r"\s*\|\s*", text)[1:4]) for text in shown] == [(p, i, f"`{s}`") for p, i, s in ROWS]


@pytest.mark.parametrize("key", ROWS, ids=lambda key: f"{key[2]} on index {key[1]}")
def test_what_the_table_says(key):
    """Counts to a twentieth, as the last digits of machines differ; errors to a factor of 3."""
    text = PAGE.read_text(encoding="utf-8").split(BEGIN)[1]
    problem, index, scheme = key
    shown = next(one for one in text.splitlines() if one.startswith(f"| {problem} | {index} | `{scheme}` |"))
    *_, steps, newton, error, algebraic = (part.strip() for part in shown.strip("| ").split("|"))
    found = row(*key)
    if key in ROUNDING_DEPENDENT:
        (fewest, most), (smallest, largest) = ([float(x) for x in cell.split(" to ")] for cell in (steps, error))
        assert fewest <= found[0] <= most and smallest <= found[2] <= largest
        return
    assert abs(found[0] - int(steps)) <= 1 + 0.05 * int(steps) and abs(found[1] - int(newton)) <= 2 + 0.1 * int(newton)
    assert 1 / 3 < found[2] / float(error) < 3 or max(found[2], float(error)) < 1e-12
    if algebraic != "-":
        assert 1 / 3 < found[3] / float(algebraic) < 3 or max(found[3], float(algebraic)) < 1e-12
