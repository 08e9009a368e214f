"""Discrete Lagrangians of the user: order, symplecticity, momenta, the discrete energy, and known schemes."""

import numpy as np
import pytest
from conftest import measured_order

import livens as lv
from livens import math as m

STEPS = [0.1 / 2**i for i in range(4)]


def potential(q):
    return -1 / m.norm(q) + 0.1 * (q @ q)


def straight(weights):
    """The action of the straight path with weights of its start, middle and end."""

    def lagrangian(q0, q1, h, k):
        v = (q1 - q0) / h
        points = (q0, (q0 + q1) / 2, q1)
        return h * (k.m * (v @ v) / 2 - sum(w * potential(q) for w, q in zip(weights, points, strict=True)))

    turns = dict(angular_momentum=lambda q: [-q[1], q[0]])
    return lv.DiscreteLagrangian("x y", lagrangian=lagrangian, parameters=dict(m=1.0), symmetries=turns)


def continuous():
    return lv.Hamiltonian("x y", kinetic=lambda p: p @ p / 2, potential=potential)


START = dict(q0=[1.0, 0.2], p0=[-0.1, 0.9])


@pytest.mark.parametrize(
    ("weights", "scheme"),
    [((1, 0, 0), "variational:0"), ((0, 1, 0), "implicit-midpoint"), ((0.5, 0, 0.5), "stormer-verlet")],
)
def test_named_schemes_are_discrete_lagrangians(weights, scheme):
    run = lv.simulate(straight(weights), **START, h=0.05, t_end=5.0)
    other = lv.simulate(continuous(), **START, scheme=scheme, h=0.05, t_end=5.0)
    assert np.abs(run.q - other.q).max() < 1e-12 and np.abs(run.p - other.p).max() < 1e-12


@pytest.mark.parametrize(("weights", "order"), [((1, 0, 0), 1), ((1 / 6, 2 / 3, 1 / 6), 2)])
def test_the_order_is_that_of_the_discrete_lagrangian(weights, order):
    end = lv.simulate(continuous(), **START, scheme="gauss-4", h=0.01, t_end=2.0)
    runs = [lv.simulate(straight(weights), **START, h=h, t_end=2.0) for h in STEPS]
    errors = [np.abs(np.r_[run.q[-1] - end.q[-1], run.p[-1] - end.p[-1]]).max() for run in runs]
    assert measured_order(STEPS, errors) == pytest.approx(order, abs=0.1)


def test_the_exact_action_gives_the_exact_motion():
    """A harmonic oscillator, whose action is known: exact for every step size, as is the discrete energy."""
    exact = lambda q0, q1, h: ((q0 @ q0 + q1 @ q1) * m.cos(h) - 2 * (q0 @ q1)) / (2 * m.sin(h))  # noqa: E731
    oscillator = lv.DiscreteLagrangian("x y", lagrangian=exact)
    run = lv.simulate(oscillator, q0=[1.0, 0.0], p0=[0.0, 0.5], h=0.3, t_end=30.0)
    assert np.abs(run.q - np.stack([np.cos(run.t), 0.5 * np.sin(run.t)], axis=1)).max() < 1e-12
    assert np.ptp(run.discrete_energy) < 1e-13 and run.discrete_energy[0] == pytest.approx(0.625)


def test_symplectic_with_momenta_and_bounded_discrete_energy():
    model = straight((1 / 6, 2 / 3, 1 / 6))
    defect = lv.study.symplecticity_defect(model, "discrete-euler-lagrange", START["q0"], p=START["p0"], h=0.1)
    assert defect < 1e-13
    amplitudes = []
    for h in (0.04, 0.02):
        run = lv.simulate(model, **START, h=h, t_end=100.0)
        assert np.ptp(run.observe("angular_momentum")) < 1e-12
        energy = run.discrete_energy
        amplitudes.append(np.ptp(energy))
        assert np.ptp(energy[len(energy) // 2 :]) < 1.1 * np.ptp(energy[: len(energy) // 2])
        v, q_m = (run.q[1:] - run.q[:-1]) / h, (run.q[1:] + run.q[:-1]) / 2
        mean = [[float(w) for w in map(potential_of_numbers, points)] for points in (run.q[:-1], q_m, run.q[1:])]
        values = (v**2).sum(axis=1) / 2 + np.array([1, 4, 1]) @ np.array(mean) / 6
        assert np.abs(energy[1:] - values).max() < 1e-12, "-dL_d/dh, derived by hand"
    assert amplitudes[0] / amplitudes[1] == pytest.approx(4, abs=0.3)


def potential_of_numbers(q):
    return -1 / np.linalg.norm(q) + 0.1 * (q @ q)


def test_files_resume_ensembles_and_gradients(tmp_path):
    problem = lv.problems.load("discrete-pendulum")
    whole = lv.simulate(problem, t_end=4.0)
    lv.simulate(problem, t_end=2.0, out=tmp_path / "part.h5")
    again = lv.resume(tmp_path / "part.h5", t_end=4.0, system=problem.model)
    assert np.array_equal(again.q, whole.q) and np.array_equal(again.discrete_energy, whole.discrete_energy)
    many = lv.ensemble(problem.model, q0=[[1.5], [1.0]], p0=[0.0], h=0.1, t_end=4.0)
    assert np.abs(many.q[0] - whole.q).max() < 1e-12
    loss, step = lv.value_and_gradient(lambda q: q[0]), lv.prepare(straight((0, 1, 0)), h=0.05)
    _, by = loss(step, **START, t_end=2.0)

    def last(mass):
        return lv.simulate(straight((0, 1, 0)), **START, h=0.05, t_end=2.0, parameters=dict(m=mass)).q[-1, 0]

    assert by.parameters["m"] == pytest.approx((last(1 + 1e-5) - last(1 - 1e-5)) / 2e-5, rel=1e-6)


def test_bad_discrete_lagrangians_are_refused():
    with pytest.raises(lv.ModelError, match="does not determine q1"):
        lv.DiscreteLagrangian("a", lagrangian=lambda q0, q1, h: h * (q0 @ q0 + q1 @ q1))
    with pytest.raises(lv.ModelError, match="argument 'v'"):
        lv.DiscreteLagrangian("a", lagrangian=lambda q0, v: q0[0] * v)
    with pytest.raises(lv.InputError, match="starts from q0 and p0"):
        lv.simulate(straight((0, 1, 0)), q0=[1.0, 0.2], v0=[0.0, 0.0], h=0.1, t_end=1.0)
    with pytest.raises(lv.InputError, match="no first step"):
        lv.simulate(straight((0, 1, 0)), q0=[0.0, 0.0], p0=[0.0, 0.0], h=0.1, t_end=1.0)
