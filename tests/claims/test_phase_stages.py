"""Runge-Kutta methods and the symplectic pair on Hamiltonians: orders, symplecticity, the same motion as elsewhere."""

import functools

import numpy as np
import pytest
from conftest import measured_order

import livens as lv
from livens import math as m

START = dict(q0=[0.7, 0.4], p0=[0.3, -0.5])


@functools.cache
def mixed():
    """An energy that is no sum: its mass depends on the coordinates, and momenta occur linearly."""
    return lv.Hamiltonian(
        "x y",
        hamiltonian=lambda q, p: (
            (p @ p) / 2 * (1 + 0.3 * m.sin(q[0]) * q[1])
            + 0.2 * p[0] * q[1]
            - m.cos(q[0])
            + q[1] ** 4 / 4
            + q[1] ** 2 / 2
        ),
    )


@functools.cache
def exact():
    return lv.simulate(mixed(), **START, scheme="taylor", t_end=2.0)


@pytest.mark.parametrize(
    "name", ["gauss-1", "gauss-2", "gauss-3", "radau-iia-2", "lobatto-iiia-iiib-2", "lobatto-iiia-iiib-3"]
)
def test_order_and_symplecticity(name):
    scheme, steps, errors = lv.schemes.get(name), (0.1, 0.08, 0.05, 0.04), []
    for h in steps:
        run = lv.simulate(mixed(), **START, scheme=name, h=h, t_end=2.0)
        errors.append(np.abs(np.hstack([run.q[-1] - exact().q[-1], run.p[-1] - exact().p[-1]])).max())
    assert abs(measured_order(steps, errors) - scheme.order) < 0.1
    defect = lv.study.symplecticity_defect(mixed(), scheme, q=START["q0"], p=START["p0"], h=0.1)
    assert defect < 1e-14 if scheme.symplectic else defect > 1e-7


@pytest.mark.parametrize("name", ["gauss-2", "lobatto-iiic-3", "lobatto-iiia-3"])
def test_the_same_steps_as_on_equations_of_first_order(name):
    """A Hamiltonian and the same field as x' = f(x): the same method, so the same trajectory."""
    model = mixed()
    field = lv.FirstOrder(
        "x y px py",
        rhs=lambda x: [
            x[2] * (1 + 0.3 * m.sin(x[0]) * x[1]) + 0.2 * x[1],
            x[3] * (1 + 0.3 * m.sin(x[0]) * x[1]),
            -(x[2] ** 2 + x[3] ** 2) / 2 * 0.3 * m.cos(x[0]) * x[1] - m.sin(x[0]),
            -(x[2] ** 2 + x[3] ** 2) / 2 * 0.3 * m.sin(x[0]) - 0.2 * x[2] - x[1] ** 3 - x[1],
        ],
    )
    a = lv.simulate(model, **START, scheme=name, h=0.1, t_end=5.0)
    b = lv.simulate(field, x0=[*START["q0"], *START["p0"]], scheme=name, h=0.1, t_end=5.0)
    assert np.abs(np.hstack([a.q, a.p]) - b.x).max() < 1e-12


@pytest.mark.parametrize("name", ["gauss-2", "lobatto-iiia-iiib-3", "radau-iia-3"])
def test_the_same_steps_as_in_livens_form(name):
    """Compare a system with its Hamiltonian, including forces, friction and their work."""
    system = lv.System(
        "x y",
        kinetic=lambda q, v: (1 + q[1] ** 2) * v[0] ** 2 / 2 + v[1] ** 2,
        potential=lambda q: q[0] ** 4 / 4 + m.cos(q[1]),
        forces=lambda t: [0.2 * m.cos(t), 0.0],
        dissipation=lambda v: 0.05 * (v @ v),
    )
    start = dict(q0=[0.5, 0.3], v0=[0.2, -0.4], scheme=name, h=0.05, t_end=2.0)
    a, b = (lv.simulate(model, **start) for model in (system, lv.Hamiltonian.from_system(system)))
    for part in ("q", "v", "p", "supplied_energy", "dissipated_energy"):
        assert np.abs(getattr(a, part) - getattr(b, part)).max() < 1e-12, part


def test_quadratic_invariants_without_drift_of_rounding():
    """A Kepler ellipse with gauss-2: its angular momentum at round-off over ten thousand steps."""
    kepler = lv.Hamiltonian(
        "x y",
        kinetic=lambda p: p @ p / 2,
        potential=lambda q: -1 / m.norm(q),
        symmetries={"rotation": lambda q: [-q[1], q[0]]},
    )
    run = lv.simulate(kepler, q0=[0.5, 0.0], p0=[0.0, np.sqrt(3)], scheme="gauss-2", h=0.02, t_end=200.0, every=100)
    assert run.summary.momentum_drift["rotation"] < 1e-13
    assert run.report(accuracy=False) is not None


@pytest.mark.parametrize(("name", "most"), [("gauss-3", 60), ("radau-iia-3", 75), ("lobatto-iiia-iiib-4", 30)])
def test_steps_with_a_tolerance_and_between_them(name, most):
    run = lv.simulate(mixed(), **START, scheme=name, t_end=2.0, control=lv.StepControl(tolerance=1e-7))
    assert run.statistics.steps <= most and run.statistics.unsolved == 0
    assert np.abs(run.q[-1] - exact().q[-1]).max() < 1e-8
    times = np.linspace(0.1, 1.9, 13)
    here, there = run.at(times), exact().at(times)
    assert np.abs(here.q - there.q).max() < 1e-6 and np.abs(here.p - there.p).max() < 1e-6
    assert np.abs(here.v - there.v).max() < 1e-6
