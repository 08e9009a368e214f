"""Radau's methods with a number of stages that follows the motion: steps, accuracy, dense output, going on."""

import functools

import numpy as np
import pytest

import livens as lv
from livens import math as m
from livens.engine.newton.step_size_control import initial_controller_state
from livens.engine.newton.time_loop import StepPolicy
from livens.run.plan import Plan
from livens.run.startup import compile_and_start, start_integration


@functools.cache
def oscillator():
    """Van der Pol's, with relaxation: slow, stiff branches and fast jumps."""
    return lv.FirstOrder(
        "x v", rhs=lambda x, k: [x[1], k.mu * (1 - x[0] ** 2) * x[1] - x[0]], parameters=dict(mu=1000.0)
    )


@functools.cache
def reactions():
    return lv.FirstOrder(
        "a b c",
        rhs=lambda x: [
            -0.04 * x[0] + 1e4 * x[1] * x[2],
            0.04 * x[0] - 1e4 * x[1] * x[2] - 3e7 * x[1] ** 2,
            3e7 * x[1] ** 2,
        ],
    )


@functools.cache
def pendulum():
    return lv.MultibodyEquations(
        "x y", kinetic=lambda v: v @ v / 2, potential=lambda q: 9.81 * q[1], constraints=lambda q: [(q @ q - 1) / 2]
    )


@functools.cache
def swung(t):
    """Return the reference in the angle from the lowest point: positions, velocities and the multiplier."""
    swing = lv.FirstOrder("angle rate", rhs=lambda x: [x[1], -9.81 * m.sin(x[0])])
    angle, rate = lv.simulate(swing, x0=[np.pi / 2, 0.0], scheme="taylor", t_end=t).x[-1]
    down = np.array([np.sin(angle), -np.cos(angle)])
    return down, rate * np.array([np.cos(angle), np.sin(angle)]), rate**2 + 9.81 * np.cos(angle)


def relaxed(tolerance, scheme="radau", t_end=2000.0, **more):
    control = lv.StepControl(tolerance=tolerance)
    return lv.simulate(oscillator(), x0=[2.0, 0.0], scheme=scheme, t_end=t_end, control=control, **more)


# -- counts of steps --------------------------------------------------------------------------------------------------
def test_few_stages_for_loose_tolerances_many_for_tight_ones():
    """Steps grow slowly in number with the digits: 26626 of `radau-iia-3` become 600 at 1e-12."""
    # the test set for IVP solvers (Mazzia and Magherini 2008), problem VDPOL in its unscaled form, at t = 2000
    exact = np.array([1.706167732170483, -0.8928097010247975e-3])
    mean, counts = [], []
    for tolerance, most in ((1e-4, 200), (1e-6, 280), (1e-8, 340), (1e-10, 400), (1e-12, 600)):
        run = relaxed(tolerance)
        assert run.statistics.steps <= most and run.statistics.unsolved < 20
        assert np.abs((run.x[-1] - exact) / exact).max() < max(100 * tolerance, 1e-11)
        assert set(np.unique(run.stages)) <= {2.0, 3.0, 4.0, 5.0, 6.0, 7.0} and run.stages[0] == 3.0
        mean.append(run.stages.mean())
        counts.append(run.statistics.steps)
    assert np.all(np.diff(mean) > 0) and mean[0] < 4.1 and mean[-1] > 6.7
    assert relaxed(1e-8, "radau-iia-3").statistics.steps > 7 * counts[2]


def test_robertson_takes_a_third_of_the_steps():
    """Over eleven orders of magnitude of time: 493 steps with three stages."""
    control = lv.StepControl(tolerance=1e-6, absolute=1e-18)
    run = lv.simulate(reactions(), x0=[1.0, 0.0, 0.0], scheme="radau", t_end=1e11, control=control)
    assert run.statistics.steps <= 230 and run.statistics.rejected < 20
    assert run.x[-1] == pytest.approx([0.2083340149701255e-7, 0.8333360770334713e-13, 0.9999999791665050], rel=1e-5)


@pytest.mark.parametrize(
    ("formulation", "tolerance", "most", "multipliers"),
    [
        pytest.param("index-1", 1e-10, 90, 1e-8, marks=pytest.mark.slow),
        ("index-2", 1e-8, 90, 1e-5),
        pytest.param("ggl", 1e-8, 90, 1e-6, marks=pytest.mark.slow),
        ("index-3", 1e-8, 130, 1e-4),
    ],
)
def test_pendulum_of_every_index(formulation, tolerance, most, multipliers):
    """At 1e-10 three stages take 1470 steps for index 1."""
    model = pendulum().formulate(formulation)
    control = lv.StepControl(tolerance=tolerance)
    run = lv.simulate(model, q0=[1.0, 0.0], v0=[0.0, 0.0], scheme="radau", t_end=2.0, control=control)
    q, v, lam = swung(2.0)
    assert run.statistics.steps <= most and run.statistics.unsolved == 0
    assert np.abs(run.x[-1] - [*q, *v]).max() < 300 * tolerance
    assert abs(run.y[-1, 0] - lam) < multipliers


def test_as_stiff_as_can_be():
    stiff = lv.FirstOrder("x", rhs=lambda x, t: [-1e15 * (x[0] - m.cos(t)) - m.sin(t)])
    run = lv.simulate(stiff, x0=[1.0], scheme="radau", t_end=10.0)
    assert run.statistics.steps <= 7 and np.abs(run.x[:, 0] - np.cos(run.t)).max() < 1e-13


# -- between the steps, and going on ----------------------------------------------------------------------------------
def test_dense_output_goes_through_steps_of_all_kinds():
    """Each step is taken again with its own number of stages; the polynomial is as good as the tolerance."""
    run = relaxed(1e-9, t_end=900.0)
    assert len(np.unique(run.stages)) >= 4
    times = np.linspace(0.0, 900.0, 301)
    fine = lv.simulate(
        oscillator(), x0=[2.0, 0.0], scheme="radau-iia-5", t_end=900.0, control=lv.StepControl(tolerance=1e-12)
    )
    assert np.abs(run.at(times).x - fine.at(times).x).max() < 1e-6
    assert np.array_equal(run.at(run.t[7]).x, run.x[7]) or np.abs(run.at(run.t[7]).x - run.x[7]).max() < 1e-12


def test_a_loose_step_is_taken_again_as_it_was_taken():
    """With another number of stages it would end elsewhere, visibly so at a loose tolerance."""
    run = relaxed(1e-4, t_end=900.0)
    assert len(np.unique(run.stages)) >= 2
    assert np.abs(run.at(run.t).x - run.x).max() < 1e-8


def test_events_are_found_in_steps_of_all_kinds():
    """The zeros of x of a relaxation, against another scheme."""
    crossing = lv.Event(lambda x: x[0], name="zero")
    own, other = (relaxed(1e-9, scheme, events=[crossing]) for scheme in ("radau", "radau-iia-5"))
    assert len(own.events) == len(other.events) == 2
    assert [a.t for a in own.events] == pytest.approx([b.t for b in other.events], rel=1e-7)


def test_an_action_begins_anew():
    """A swing that is pushed at every passage: as with a fixed number of stages."""
    swing = lv.FirstOrder("angle rate", rhs=lambda x: [x[1], -m.sin(x[0])])
    push = lv.Event(lambda x: x[0], name="push", direction=1, action=lambda x: {"x": [x[0], x[1] + 0.05]})
    ends = []
    for scheme in ("radau", "radau-iia-5"):
        control = lv.StepControl(tolerance=1e-10)
        run = lv.simulate(swing, x0=[0.5, 0.0], scheme=scheme, t_end=30.0, control=control, events=[push])
        ends.append(run.x[-1])
        assert len(run.events) == 4
    assert np.abs(ends[0] - ends[1]).max() < 1e-7


@pytest.mark.parametrize("stop", [3.0, 807.5, 1500.0])
def test_a_run_that_was_stopped_goes_on_bit_for_bit(tmp_path, stop):
    """Wherever it stops, before, in or after a jump: states, sizes and numbers of stages are those of one run."""
    whole = relaxed(1e-7)
    relaxed(1e-7, t_end=stop, out=tmp_path / "part.h5")
    again = lv.resume(tmp_path / "part.h5", t_end=2000.0, system=oscillator())
    for name in ("t", "x", "stages", "step_size", "newton_iterations"):
        assert np.array_equal(getattr(whole, name), getattr(again, name)), name
    assert again.statistics.steps == whole.statistics.steps
    kept = lv.load(tmp_path / "part.h5", system=oscillator())
    assert np.array_equal(kept.stages, whole.stages)
    assert np.array_equal(kept.at([1.0, 900.0]).x, whole.at([1.0, 900.0]).x)


def test_most_steps_end_a_run_that_can_go_on(tmp_path):
    control = lv.StepControl(tolerance=1e-7, most_steps=37)
    part = lv.simulate(oscillator(), x0=[2.0, 0.0], scheme="radau", t_end=2000.0, control=control)
    assert part.status == "interrupted" and part.statistics.steps == 37
    assert np.array_equal(part.x, relaxed(1e-7).x[:38])


# -- what it is, and what it is not -----------------------------------------------------------------------------------
def test_with_a_step_of_a_given_size_it_has_seven_stages():
    run, seven = (
        lv.simulate(oscillator(), x0=[2.0, 0.0], scheme=s, h=0.05, t_end=1.0) for s in ("radau", "radau-iia-7")
    )
    assert np.abs(run.x - seven.x).max() < 1e-13 and np.all(run.stages[1:] == 7.0)


def test_a_system_is_written_as_multibody_equations_first():
    with pytest.raises(lv.InputError, match="scheme 'radau' needs"):
        lv.simulate(lv.problems.load("double-pendulum"), scheme="radau", t_end=1.0)


def test_accuracy_of_a_run_is_measured():
    estimate = relaxed(1e-7, t_end=700.0).accuracy()
    assert estimate is not None and "x" in str(estimate)


def test_no_burst_follows_the_last_step(monkeypatch):
    """One step is one burst of steps with one number of stages."""
    model = lv.FirstOrder("x v", rhs=lambda x: [x[1], -x[0]])
    control = lv.StepControl(tolerance=1e-6)
    plan = Plan.from_arguments(model, dict(x0=[1.0, 0.0]), scheme="radau", h=0.1, t_end=1.0, control=control)
    compiled, initial = compile_and_start(plan)
    state, stepper = start_integration(plan, compiled, initial)
    calls, inner_stepper = [], stepper._stepper
    monkeypatch.setattr(stepper, "_stepper", lambda s, start: calls.append(s) or inner_stepper(s, start))
    steps = stepper.advance(state, 1, StepPolicy(True, 0.1, 0.0, 0, t_end=1.0), initial_controller_state(0.01))
    assert steps.n_steps == 1 and len(calls) == 1
    assert steps.final.z[:2] == pytest.approx([np.cos(steps.final.t), -np.sin(steps.final.t)], abs=1e-6)
    stepper.close()
