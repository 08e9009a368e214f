"""Steps of controlled size look ahead: the last ones are about as long as those before, wherever a run ends."""

import functools

import numpy as np
import pytest

import livens as lv

ENDS = np.linspace(0.7, 1.3, 13)


@functools.cache
def pendulum(formulation):
    equations = lv.MultibodyEquations(
        "x y", kinetic=lambda v: v @ v / 2, potential=lambda q: 9.81 * q[1], constraints=lambda q: [(q @ q - 1) / 2]
    )
    return equations.formulate(formulation)


def swing(t_end, scheme="radau-iia-3", tolerance=1e-6, formulation="index-3", **options):
    control = lv.StepControl(tolerance=tolerance, **options)
    start = dict(q0=[0.6, -0.8], v0=[1.6, 1.2])
    return lv.simulate(pendulum(formulation), **start, scheme=scheme, t_end=t_end, control=control)


@functools.cache
def exact():
    """Its multiplier is that of a formulation of index 2, in which rounding is not divided by h^2."""
    start = dict(q0=[0.6, -0.8], v0=[1.6, 1.2])
    return lv.simulate(pendulum("ggl"), **start, scheme="radau-iia-6", h=0.02, t_end=1.4)


@pytest.mark.parametrize("scheme", ["radau-iia-3", "radau-iia-5", "radau"])
def test_multipliers_of_index_3_at_the_end(scheme):
    """Whatever is left for the last step: multipliers there are as good as those of all other steps."""
    for t_end in ENDS:
        run = swing(t_end, scheme)
        sizes, errors = np.diff(run.t), np.abs(run.y - exact().at(run.t).y)[1:, 0]
        assert run.t[-1] == t_end and sizes[-1] > 0.45 * sizes[-2]
        assert errors[-1] < 1.2 * errors[:-1].max() and errors[-1] < 0.02


def test_two_equal_steps_or_one_that_is_a_little_longer():
    """Between one and two steps are halved; what is hardly more than one is one."""
    ends = []
    for t_end in ENDS:
        sizes = np.diff(swing(t_end, formulation="index-2").t)
        halved = sizes[-1] == pytest.approx(sizes[-2], rel=1e-12)
        ends.append(halved)
        assert halved or 0.25 < sizes[-1] / sizes[-2] < 2.2
    assert any(ends)


def test_the_steps_before_are_those_of_a_longer_run(tmp_path):
    """A run that goes on takes the same steps, bit for bit, as if it had never stopped."""
    whole = swing(1.3, formulation="index-2")
    control = lv.StepControl(tolerance=1e-6)
    start = dict(q0=[0.6, -0.8], v0=[1.6, 1.2], scheme="radau-iia-3", control=control)
    lv.simulate(pendulum("index-2"), **start, t_end=0.77, out=tmp_path / "part.h5")
    rest = lv.resume(tmp_path / "part.h5", system=pendulum("index-2"), t_end=1.3)
    assert np.array_equal(rest.t, whole.t) and np.array_equal(rest.x, whole.x)


def test_no_step_is_longer_than_the_largest():
    """A slightly longer last step would exceed the largest step; two halves do not."""
    for t_end in (1.01, 1.05, 1.09, 1.1):
        run = swing(t_end, formulation="index-1", largest=0.01, tolerance=1e-4)
        sizes = np.diff(run.t)
        assert sizes.max() <= 0.01 * (1 + 1e-9) and sizes[-1] > 0.0049


def test_steps_that_fit_are_all_equal():
    """Without a tolerance, h that divides the time span is honoured to the end."""
    model = lv.FirstOrder("a", rhs=lambda x: [-x[0]])
    run = lv.simulate(model, x0=[1.0], scheme="radau-iia-2", h=0.1, t_end=1.0, control=lv.StepControl())
    assert len(run.t) == 11 and np.allclose(np.diff(run.t), 0.1, rtol=1e-12, atol=0)
    run = lv.simulate(model, x0=[1.0], scheme="radau-iia-2", h=0.1, t_end=1.04, control=lv.StepControl())
    assert np.diff(run.t)[-2:] == pytest.approx([0.07, 0.07], rel=1e-12)


def test_in_both_tiers():
    """The assembled tier, which takes one step at a time, ends alike."""
    spring = lv.System("x y", kinetic=lambda v: v @ v / 2, potential=lambda q: 5 * q[0] ** 2 + q[1] ** 4 + q[0] * q[1])
    runs = [
        lv.simulate(
            spring, [1.0, 0.3], [0.0, 0.5], scheme="livens-em", h=0.05, t_end=1.04, tier=tier, control=lv.StepControl()
        )
        for tier in ("fused", "assembled")
    ]
    for run in runs:
        assert np.diff(run.t)[-2:] == pytest.approx([0.045, 0.045], rel=1e-9)
    assert np.allclose(runs[0].q, runs[1].q, rtol=0, atol=1e-12)
