"""A model that stops being a number: the run ends there with a sentence, whatever takes the steps.

The potential ``-sqrt(1 - a)`` ends at a = 1, and the motion gets there. Next to it another coordinate goes on and on:
a maximum over both must not lose what is not a number, wherever it stands.
"""

import math

import numpy as np
import pytest

import livens as lv
from livens import math as m
from livens.engine.newton.iteration import scaled_max_norm
from livens.engine.observables.drift_monitor import accumulate_rows

START = dict(q0=[0.0, 1.0], v0=[3.0, 0.0], h=0.01, t_end=2.0)
SCHEMES = [
    *["gauss-1", "gauss-2", "livens-midpoint", "implicit-midpoint", "livens-variational", "livens-em"],
    *["livens-em:mean-value", "livens-em:itoh-abe", "hamilton-midpoint", "hamilton-em", "ggl-em", "ggl-variational"],
    *["radau-iia-2", "lobatto-iiic-2", "lobatto-iiia-iiib-2", "rattle", "shake", "murua-1", "murua-ggl-1"],
    *["stormer-verlet", "symplectic-euler", "variational:0.25", "variational-sym:0", "semi-explicit:0,0.5", "heun"],
    *["explicit-euler", "explicit-midpoint", "implicit-euler", "trapezoidal", "theta:0.7", "yoshida-4:stormer-verlet"],
]


def cliff(last=False):
    """The coordinate that ends is the first one, or the last."""
    a, b = (1, 0) if last else (0, 1)
    return lv.System(
        "a b",
        kinetic=lambda v: (v[0] ** 2 + v[1] ** 2) / 2,
        potential=lambda q: -m.sqrt(1 - q[a]) + q[b] ** 2 / 2,
    )


def ends(model, scheme, **options):
    """The run up to where it fails."""
    with pytest.raises(lv.IntegrationError) as caught:
        lv.simulate(model, scheme=scheme, **(START | options))
    run = caught.value.result
    assert run.status == "failed" and 0.2 < run.t[-1] < 0.5 and len(run) > 5
    for name in run.stored:
        rows = np.asarray(getattr(run, name), dtype=float)
        assert np.isfinite(rows).all(), name
    assert np.isfinite(run.observe("generalized_energy")).all() and np.isfinite(run.summary.max_energy_drift)
    return run


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_equal_steps(scheme, last):
    start = dict(q0=START["q0"][::-1], v0=START["v0"][::-1]) if last else {}
    run = ends(cliff(last), scheme, **start)
    assert run.q[-1, int(last)] < 1.0 + 3 * 0.02


@pytest.mark.parametrize("scheme", ["livens-em", "gauss-1", "radau-iia-2", "lobatto-iiia-iiib-2", "murua-1"])
def test_the_reference_tier(scheme):
    assert ends(cliff(), scheme, tier="reference").t[-1] == pytest.approx(ends(cliff(), scheme).t[-1], abs=0.011)


@pytest.mark.parametrize("scheme", ["gauss-1", "gauss-2", "radau-iia-2", "livens-em", "implicit-midpoint"])
def test_controlled_steps(scheme):
    """They get shorter up to the end, and no further than is allowed; none leads to where there is no energy."""
    run = ends(cliff(), scheme, control=lv.StepControl(smallest=1e-5))
    assert 1.0 - 0.01 - abs(run.v[-1, 0]) * run.step_size[-1] < run.q[-1, 0] <= 1.0


@pytest.mark.parametrize("scheme", ["gauss-2", "radau-iia-2"])
def test_steps_that_follow_an_estimate(scheme):
    run = ends(cliff(), scheme, control=lv.StepControl(tolerance=1e-6, smallest=1e-7))
    assert run.q[-1, 0] == pytest.approx(1.0, abs=1e-2)  # where the model ends


def test_in_a_file(tmp_path):
    with pytest.raises(lv.IntegrationError):
        lv.simulate(cliff(), scheme="livens-em", out=tmp_path / "run.h5", **START)
    run = lv.load(tmp_path / "run.h5", system=cliff())
    assert run.status == "failed" and all(
        np.isfinite(np.asarray(getattr(run, name), dtype=float)).all() for name in run.stored
    )


@pytest.mark.parametrize("scheme", ["gauss-1", "livens-midpoint", "stormer-verlet", "radau-iia-2", "taylor"])
def test_the_very_last_step(scheme):
    """A step may get beyond the end of the model and be solved, as its equations are about the time in between."""
    good = ends(cliff(), scheme)
    h = START["h"]
    run = ends(cliff(), scheme, t_end=good.t[-1] + h)
    assert run.t[-1] == good.t[-1]
    assert lv.simulate(cliff(), scheme=scheme, **START | dict(t_end=good.t[-1])).status == "complete"


def test_short_runs():
    """NaN in chunks of steps after a successful chunk."""
    for scheme in ("gauss-1", "livens-em", "livens-midpoint"):
        step = lv.prepare(cliff(), scheme=scheme, h=0.01)
        for t_end in (0.5, 0.37):
            assert step.run([0.0, 1.0], [0.1, 0.0], t_end=t_end).status == "complete"
            with pytest.raises(lv.IntegrationError) as caught:
                step.run([0.0, 1.0], [3.0, 0.0], t_end=t_end)
            run = caught.value.result
            assert 0.2 < run.t[-1] < 0.37 and np.isfinite(run.observe("generalized_energy")).all()


@pytest.mark.parametrize("scheme", ["gauss-1", "livens-em", "livens-midpoint", "stormer-verlet", "radau-iia-2"])
def test_lanes(scheme):
    """Members that get to the end of the model fail, and no other; each where it would by itself."""
    speeds = np.linspace(0.0, 3.0, 7)
    q0, v0 = np.tile([0.0, 1.0], (7, 1)), np.stack([speeds, np.zeros(7)], axis=1)
    for t_end in (0.35, 2.0):
        many = lv.ensemble(cliff(), q0, v0, scheme=scheme, h=0.01, t_end=t_end)
        for i in range(7):
            try:
                run = lv.simulate(cliff(), q0[i], v0[i], scheme=scheme, h=0.01, t_end=t_end)
            except lv.IntegrationError as error:
                run = error.result
            assert (many.status[i] == "failed") == (run.status == "failed"), (i, many.failures)
            finite = np.isfinite(many.q[i]).all(axis=1)
            if run.status == "complete":
                assert finite.all() and np.isfinite(many.summary[i].max_energy_drift)
            else:
                assert abs(int(finite.sum()) - len(run)) <= 1 and not finite[len(run) + 1 :].any()
    assert set(many.status) == {"complete", "failed"}


def test_members_that_explode():
    """As runs by themselves do; their drift is not divided by what they have become."""
    stiff = lv.System(
        "x", kinetic=lambda v: v[0] ** 2 / 2, potential=lambda q, k: k.c * q[0] ** 2 / 2, parameters=dict(c=1.0)
    )
    options = dict(scheme="stormer-verlet", h=0.1, t_end=20.0)
    many = lv.ensemble(stiff, q0=[1.0], v0=[0.0], parameters={"c": [1.0, 399.0, 401.0, 900.0]}, **options)
    assert many.status == ["complete", "complete", "failed", "failed"]
    assert "blew up: the energy has grown" in many.failures[2] and "blew up" in many.failures[3]
    assert many.summary[2].max_energy_drift > 1e6 and many.summary[0].max_energy_drift < 0.01
    rest = lv.ensemble(stiff, q0=[0.0], v0=[1.0], parameters={"c": [1.0, 2.0]}, **options)  # no energy of position
    assert rest.status == ["complete"] * 2


def test_values_that_are_no_numbers_lie_in_no_bin():
    oscillator = lv.System("x", kinetic=lambda v: v[0] ** 2 / 2, potential=lambda q: q[0] ** 2 / 2)
    found = lv.ensemble(
        oscillator, q0=[[1.0]], v0=[0.0], h=0.01, t_end=6.28, reduce={"root": lambda q: m.sqrt(q[0])},
        histograms={"root": (0.0, 1.0, 4)},
    ).reduced["root"]  # fmt: skip
    assert found.counts[0, 0] == 0 and 300 < found.counts.sum() < 330 and np.isnan(found.mean[0])


@pytest.mark.parametrize("scheme", ["sundman", "sundman-doubled", "step-density", "adaptive-variational:0,0"])
def test_fictive_time(scheme):
    """Both the motion and the scaling end there."""
    model = lv.Hamiltonian("a b", kinetic=lambda p: p @ p / 2, potential=lambda q: -m.sqrt(1 - q[0]) + q[1] ** 2 / 2)
    written = lv.scaling.user_scaling
    scalings = {"sundman": written(lambda T, V: 1 / (1 + T)), "adaptive-variational:0,0": lv.scaling.speed()}
    usual = dict(scaling=scalings.get(scheme, written(lambda q: m.sqrt(1.01 - q[0]))))
    with pytest.raises(lv.IntegrationError) as caught:
        lv.simulate(model, q0=[0.0, 1.0], p0=[3.0, 0.0], scheme=scheme, h=0.01, t_end=2.0, **usual)
    run = caught.value.result
    assert run.status == "failed" and np.isfinite(run.q).all() and np.isfinite(run.t).all()
    assert run.q[-1, 0] == pytest.approx(1.0, abs=0.05)


def test_numbers_of_stages_that_follow_the_motion():
    model = lv.FirstOrder("a b va vb", rhs=lambda x: [x[2], x[3], -0.5 / m.sqrt(1 - x[0]), -x[1]])
    for options in (dict(control=lv.StepControl(tolerance=1e-6)), dict(h=0.01)):
        with pytest.raises(lv.IntegrationError) as caught:
            lv.simulate(model, x0=[0.0, 1.0, 3.0, 0.0], scheme="radau", t_end=2.0, **options)
        run = caught.value.result
        assert run.status == "failed" and np.isfinite(run.x).all() and run.x[-1, 0] == pytest.approx(1.0, abs=0.03)


def test_taylor_series():
    for options in ({}, dict(control=lv.StepControl(tolerance=1e-10))):
        run = ends(cliff(), "taylor", **options)
        assert run.q[-1, 0] == pytest.approx(1.0, abs=0.03)


def test_what_is_not_a_number_for_a_while():
    """A variable that leads to no other: it is finite at both ends of the run, and not in between."""
    model = lv.FirstOrder(
        "x w", rhs=lambda x: [x[1], -x[0]], algebraic="y", constraints=lambda x, y: [y[0] - m.sqrt(x[0] + 0.5)]
    )
    for scheme, more in {"taylor": {}, "radau-iia-2": {}, "gauss-2": {}}.items():
        with pytest.raises(lv.IntegrationError) as caught:
            lv.simulate(model, x0=[1.0, 0.0], y0=[1.5**0.5], scheme=scheme, h=0.01, t_end=2 * np.pi, **more)
        run = caught.value.result
        assert run.status == "failed" and np.isfinite(run.y).all() and run.t[-1] == pytest.approx(2.09, abs=0.03)


def chain_with_a_cliff():
    masses = [lv.Element([i], kinetic=lambda v: v[0] ** 2 / 2, name=f"mass {i}") for i in range(9)]
    springs = [lv.Element([i, i + 1], potential=lambda q: (q[1] - q[0]) ** 2 / 2, name=f"spring {i}") for i in range(8)]
    end = lv.Element([4], potential=lambda q: -m.sqrt(1 - q[0]), name="cliff")
    return lv.System(9, elements=[*masses, *springs, end])


@pytest.mark.parametrize("scheme", ["livens-em", "livens-midpoint", "rattle", "gauss-1"])
def test_the_assembled_tier(scheme):
    start = dict(q0=np.zeros(9), v0=np.eye(9)[4] * 4.0, h=0.01, t_end=2.0, scheme=scheme)
    for control in (None, lv.StepControl(smallest=1e-6)):
        runs = []
        for tier in ("assembled", "fused"):
            with pytest.raises(lv.IntegrationError) as caught:
                lv.simulate(chain_with_a_cliff(), tier=tier, control=control, **start)
            runs.append(caught.value.result)
            assert runs[-1].status == "failed" and np.isfinite(runs[-1].q).all()
            assert np.isfinite(runs[-1].observe("generalized_energy")).all()
        assert runs[0].t[-1] == pytest.approx(runs[1].t[-1], abs=1e-4)


@pytest.mark.parametrize("scheme", ["imex", "semi-explicit:0,0.5", "semi-explicit-2:0.5", "strang"])
def test_forces_that_are_told_apart(scheme):
    cheap = lv.Element("ab", kinetic=lambda v: v @ v / 2, potential=lambda q: q[1] ** 2 / 2, name="cheap")
    field = lv.Element("ab", potential=lambda q: -m.sqrt(1 - q[0]), expensive=True, name="field")
    ends(lv.System(["a", "b"], elements=[cheap, field]), scheme)


def test_contact_with_a_law_of_ones_own():
    """A law that has an end: deeper than that, there is nothing."""
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    ball = mb.sphere("ball", at=[0, 0, 0.2], radius=0.05, mass=0.1)
    law = lv.contacts.CustomLaw(lambda depth: 1e-2 * (1 - m.sqrt(1 - (depth / 0.01) ** 2)))
    mb.contact(ball, mb.ground, law=law, name="floor")
    for scheme in ("lie-em", "livens-midpoint"):
        try:
            run = mb.simulate(t_end=0.5, h=1e-3, scheme=scheme)
        except lv.IntegrationError as error:
            run = error.result
            assert run.status == "failed" and run.t[-1] > 0.1
        assert np.isfinite(run.q).all() and np.isfinite(run.observe("generalized_energy")).all()


OSCILLATOR = lv.System("x", kinetic=lambda v: v[0] ** 2 / 2, potential=lambda q: q[0] ** 2 / 2)
#: x is cos t: below zero the first is no number; nor is the second, but only within two short times.
HALF = lv.Event(lambda q: m.sqrt(q[0]) - 0.5, name="half")
GAP = lv.Event(lambda q: m.sqrt((q[0] - 0.5) ** 2 - 1e-4), name="gap")


@pytest.mark.parametrize("every", [1, 7])
@pytest.mark.parametrize(
    ("scheme", "control"), [("livens-em", None), ("gauss-2", lv.StepControl(tolerance=1e-8)), ("taylor", None)]
)
def test_events_that_are_no_numbers(scheme, control, every, tmp_path):
    """Event functions that become NaN end the run, which keeps earlier events and continues without them."""
    start = dict(q0=[1.0], v0=[0.0], scheme=scheme, h=0.01, control=control, every=every)
    words = r"the function of event 'half' is NaN between t = 1\.5\d* and 1\."
    with pytest.raises(lv.IntegrationError, match=words) as caught:
        lv.simulate(OSCILLATOR, t_end=3.0, events=[HALF], out=tmp_path / "run.h5", **start)
    run = lv.load(tmp_path / "run.h5", system=OSCILLATOR)
    assert run.status == caught.value.result.status == "failed" and np.isfinite(run.q).all()
    assert 0 <= run.last("q")[0] < 0.15 and [round(event.t, 4) for event in run.events] == [1.3181]
    on = lv.resume(tmp_path / "run.h5", system=OSCILLATOR, events=())
    whole = lv.simulate(OSCILLATOR, t_end=3.0, **start)
    assert on.status == "complete" and on.last("q") == pytest.approx(whole.last("q"), abs=1e-6 if control else 0.0)
    assert control or np.array_equal(on.q, whole.q)


def test_an_event_that_is_no_number_within_a_step():
    with pytest.raises(lv.IntegrationError, match=r"the function of event 'gap' is NaN between t = 1 and 1\.1"):
        lv.simulate(OSCILLATOR, [1.0], [0.0], scheme="livens-em", h=0.1, t_end=3.0, events=[GAP])
    with pytest.raises(lv.IntegrationError, match="the function of event 'half' is NaN between t = 0 and"):
        lv.simulate(OSCILLATOR, [-1.0], [0.0], scheme="livens-em", h=0.1, t_end=3.0, events=[HALF])


def test_events_in_fictive_time_that_are_no_numbers():
    kepler = lv.Hamiltonian("x y", kinetic=lambda p: p @ p / 2, potential=lambda q: -1 / m.sqrt(q @ q))
    start = dict(q0=[1.0, 0.0], p0=[0.0, 1.0], scheme="sundman", h=0.01, scaling=lv.scaling.potential(1.5))
    with pytest.raises(lv.IntegrationError, match="the function of event 'half' is NaN") as caught:
        lv.simulate(kepler, t_end=3.0, events=[HALF], **start)
    assert caught.value.result.t[-1] == pytest.approx(np.pi / 2, abs=0.02)


# -- the parts --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_the_largest_residual_is_none_if_one_is_none(size):
    ones = np.ones(size)
    assert scaled_max_norm(np.arange(size, dtype=float), ones, size) == size - 1
    for place in range(size):
        for value in (np.nan, -np.nan):
            r = np.arange(size, dtype=float)
            r[place] = value
            assert math.isnan(scaled_max_norm(r, ones, size))
        r = np.arange(size, dtype=float)
        r[place] = -np.inf
        assert scaled_max_norm(r, ones, size) == np.inf
        scale = ones.copy()
        scale[place] = np.nan
        assert math.isnan(scaled_max_norm(np.arange(size, dtype=float), scale, size))


@pytest.mark.parametrize("row", [0, 1, 2])
@pytest.mark.parametrize("column", [0, 2, 3, 4, 6])
def test_extremes_keep_what_is_not_a_number(row, column):
    """Energy, both levels of constraints, and momenta: once lost, a deviation is not forgotten in later rows."""
    table = np.ones((3, 7))
    table[row, column] = np.nan
    last, largest = np.ones(1), np.zeros(5 + 2)
    accumulate_rows(table, np.zeros(3), np.ones(7), last, largest, np.array([3]), np.zeros(1))
    assert np.isnan(largest).any()
    before = largest.copy()
    accumulate_rows(np.ones((3, 7)), np.zeros(3), np.ones(7), np.ones(1), largest, np.array([3]), np.zeros(1))
    assert np.array_equal(np.isnan(largest), np.isnan(before))
