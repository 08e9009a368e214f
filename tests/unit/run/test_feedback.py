"""Feedback laws: sampled Python functions that set the inputs of any model."""

from __future__ import annotations

import numpy as np
import pytest

import livens as lv

LAW = lv.Feedback(lambda t, y: -y[0] - 2 * y[1], 0.1, [lambda q: q[0], lambda v: v[0]], "u")


def _cart():
    return lv.System("x", kinetic=lambda v: 0.5 * v[0] ** 2, forces=lambda q, v, k: [k.u], parameters=dict(u=0.0))


def _exact(n_samples):
    """Return the recursion of a unit mass under a force that is held for 0.1 s."""
    x, v = 1.0, 0.0
    for _ in range(n_samples):
        u = -x - 2 * v
        x, v = x + 0.1 * v + 0.005 * u, v + 0.1 * u
    return x


@pytest.mark.parametrize("scheme", ["livens-em", "gauss-2"])
def test_a_system_under_feedback_is_the_exact_recursion(scheme):
    run = lv.simulate(_cart(), [1.0], [0.0], h=0.05, t_end=2.0, scheme=scheme, inputs=LAW)
    assert run.q[-1, 0] == pytest.approx(_exact(20), abs=1e-13)


def test_feedback_is_resumed_and_not_altered_by_events(tmp_path):
    run = lv.simulate(_cart(), [1.0], [0.0], h=0.05, t_end=4.0, inputs=LAW)
    lv.simulate(_cart(), [1.0], [0.0], h=0.05, t_end=1.55, inputs=LAW, out=tmp_path / "run.h5")
    resumed = lv.resume(tmp_path / "run.h5", system=_cart(), t_end=4.0, inputs=LAW)
    assert np.array_equal(resumed.q, run.q)
    half = lv.Event(lambda q: q[0] - 0.5, name="half")
    with_event = lv.simulate(_cart(), [1.0], [0.0], h=0.05, t_end=4.0, inputs=LAW, events=[half])
    assert np.array_equal(with_event.q, run.q) and len(with_event.events) == 1


def test_a_mechanism_under_feedback_measures_outputs_by_name():
    mb = lv.Multibody()
    wheel = mb.cylinder("wheel", at=[0, 0, 0], length=0.1, radius=0.5, mass=2)
    axle = mb.revolute("axle", mb.ground, wheel, axis="z")
    mb.motor(axle, torque=mb.input("torque"))
    mb.initial(axle, rate=30)
    seen = []

    def law(t, y):
        seen.append(y[0])
        return -0.1 * y[1]

    feedback = lv.Feedback(law, 0.02, ["axle.angle", "axle.rate"], "torque")
    run = mb.simulate(t_end=2, h=0.01, inputs=feedback)
    rate = 30 * (1 - 0.02 * 0.1 / 0.25) ** 100
    assert run["axle.rate"][-1] == pytest.approx(rate, rel=1e-12)
    assert np.allclose(seen, np.asarray(run["axle.angle"])[::2], atol=1e-12) and seen[-1] > 4 * np.pi


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: lv.Feedback(3, 0.1, "x", "u"), "must be a function"),
        (lambda: lv.Feedback(lambda t, y: 0, 0.1, [], "u"), "needs the names"),
        (lambda: lv.Feedback(lambda t, y: 0, -1, "x", "u"), "period"),
        (lambda: lv.Feedback(lambda t, y: 0, 0.07, "x", "u"), "integer multiple"),
        (lambda: lv.Feedback(lambda t, y: [0, 0], 0.1, "x", "u"), "must return 1 finite"),
        (lambda: lv.Feedback(lambda t, y: 0, 0.1, "y", "u"), "no output 'y'"),
        (lambda: lv.Feedback(lambda t, y: 0, 0.1, "x", "w"), "'w'"),
    ],
)
def test_wrong_feedback_gets_a_sentence(make, words):
    with pytest.raises(lv.InputError, match=words):
        lv.simulate(_cart(), [1.0], [0.0], h=0.05, t_end=1.0, inputs=make())
