"""Between the rows of a run: dense output and events, against exact motions; steps of controlled size."""

import re
from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest
from conftest import measured_order
from hypothesis import given, settings
from hypothesis import strategies as st

import livens as lv
from livens.results.dense_output import interpolate_rows
from livens.schemes.discretization.collocation import lagrange_basis, lagrange_integrals

OSCILLATOR = lv.FirstOrder("x v", rhs=lambda x: [x[1], -x[0]])
PENDULUM = lv.FirstOrder("angle rate", rhs=lambda x: [x[1], -lv.math.sin(x[0])])
BALL = lv.System("z", kinetic=lambda v: v[0] ** 2 / 2, potential=lambda q: 9.81 * q[0])
SPRING = lv.System("x", kinetic=lambda v: v[0] ** 2 / 2, potential=lambda q: q[0] ** 2 / 2)


def oscillation(**options):
    return lv.simulate(OSCILLATOR, x0=[1.0, 0.0], t_end=2.0, **options)


# -- dense output ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("scheme", ["gauss-1", "gauss-2", "gauss-3", "radau-iia-2", "radau-iia-3", "lobatto-iiia-3"])
def test_the_collocation_polynomial_has_order_s_plus_1(scheme):
    """Uniformly; at nodes of superconvergence it may be better. Gauss-1 and others: stages plus one."""
    s = int(scheme[-1])
    steps, errors = [0.2, 0.1, 0.05, 0.025], []
    for h in steps:
        t = np.linspace(0, 2, 977)
        found = oscillation(scheme=scheme, h=h).at(t).x
        errors.append(np.abs(found - np.stack([np.cos(t), -np.sin(t)], axis=1)).max())
    assert abs(measured_order(steps, errors) - min(s + 1, 2 * s)) < 0.15 or measured_order(steps, errors) > s + 1


def test_rows_are_met_exactly():
    run = oscillation(scheme="gauss-3", h=0.1)
    assert np.abs(run.at(run.t).x - run.x).max() < 1e-14


@pytest.mark.parametrize("scheme", ["livens-em", "livens-midpoint"])
def test_interpolation_keeps_the_order_of_the_scheme(scheme):
    steps, errors = [0.1, 0.05, 0.025, 0.0125], []
    t = np.linspace(0, 2, 333)
    for h in steps:
        run = lv.simulate(SPRING, q0=[1.0], v0=[0.0], scheme=scheme, h=h, t_end=2.0)
        moment = run.at(t)
        errors.append(max(np.abs(moment.q[:, 0] - np.cos(t)).max(), np.abs(moment.v[:, 0] + np.sin(t)).max()))
    assert abs(measured_order(steps, errors) - 2) < 0.1


@pytest.mark.parametrize(
    ("scheme", "order"),
    [("lobatto-iiia-iiib-2", 2), ("lobatto-iiia-iiib-3", 2), ("murua-1", 2), ("murua-2", 3), ("murua-3", 4)],
)
def test_polynomials_of_partitioned_schemes(scheme, order):
    """Orders of dense output at the stages; velocities of the pairs have order 2 there."""
    steps, errors, t = [0.2, 0.1, 0.05, 0.025], [], np.linspace(0, 2, 333)
    for h in steps:
        moment = lv.simulate(SPRING, q0=[1.0], v0=[0.0], scheme=scheme, h=h, t_end=2.0).at(t)
        errors.append(max(np.abs(moment.q[:, 0] - np.cos(t)).max(), np.abs(moment.v[:, 0] + np.sin(t)).max()))
    assert abs(measured_order(steps, errors) - order) < 0.1


@pytest.mark.parametrize("nodes", [[0.3], [0.2, 1.0], [0.0, 0.4, 0.7], [0.1, 0.35, 0.6, 0.8, 1.0]])
def test_weights_within_a_step(nodes):
    """Polynomials of as many coefficients as there are nodes are met exactly, and their integrals."""
    nodes, theta = np.array(nodes), ca.SX.sym("theta")
    weights = [ca.vertcat(*make(nodes, theta)) for make in (lagrange_basis, lagrange_integrals)]
    values, integrals = (ca.Function("w", [theta], [found]) for found in weights)
    for time in (0.0, 0.17, 0.5, 1.0):
        at, until = (np.array(found(time)).ravel() for found in (values, integrals))
        for k in range(len(nodes)):
            assert at @ nodes**k == pytest.approx(time**k, abs=1e-12)
            assert until @ nodes**k == pytest.approx(time ** (k + 1) / (k + 1), abs=1e-12)


def test_output_of_an_adaptive_run_at_any_time_keeps_the_order_of_the_scheme():
    """Steps of equal fictive time differ by a factor of thirty in time."""
    problem, t = lv.problems.load("kepler"), np.linspace(0, 6, 211)
    exact = np.array([problem.reference(time)["q"] for time in t])
    steps, errors = [0.02, 0.01, 0.005, 0.0025], []
    for h in steps:
        run = lv.simulate(problem, scheme="sundman", h=h, t_end=6.0)
        errors.append(np.abs(run.at(t).q - exact).max())
    assert run.step_size[1:].max() > 20 * run.step_size[1:-1].min()
    assert abs(measured_order(steps, errors) - 2) < 0.1


@pytest.mark.parametrize("order", range(1, 9))
def test_rows_around_are_as_many_as_the_order_needs(order):
    """Motions that are polynomials of time are met exactly: up to a degree above the order, one more with slopes."""
    t, between = np.linspace(0.0, 1.0, 21), np.linspace(0.02, 0.97, 50)
    for degree, stored in ((order + 1, ("q",)), (order + 2, ("q", "v"))):
        motion = np.polynomial.Chebyshev.basis(degree, domain=[0, 1])
        rows = SimpleNamespace(t=t, stored=stored, q=motion(t)[:, None], v=motion.deriv()(t)[:, None])
        found = interpolate_rows(rows, ["q"], between, order)["q"].ravel()
        assert np.abs(found - motion(between)).max() < 1e-11


def test_polynomials_go_through_the_nearest_rows():
    """Three rows for order 1, from the first that is before a time on; a cubic shows which they are."""
    t = np.arange(6.0)
    rows = SimpleNamespace(t=t, stored=("t", "x"), x=(t**3)[:, None])
    for time, first in ((0.2, 0), (1.2, 1), (2.7, 2), (3.3, 3), (4.9, 3)):
        expected = np.polyval(np.polyfit(t[first : first + 3], t[first : first + 3] ** 3, 2), time)
        assert interpolate_rows(rows, ["x"], np.array([time]), 1)["x"][0, 0] == pytest.approx(expected, abs=1e-9)


def test_no_polynomial_spans_a_located_switch():
    """A kink at t = 1 between rows 1e-9 apart, with values off by 1e-8: divided differences would amplify them."""
    t = np.array([0.0, 0.25, 0.5, 0.75, 1.0, 1.0 + 1e-9, 1.25, 1.5, 1.75, 2.0])
    noise = 1e-8 * (-1.0) ** np.arange(len(t))
    rows = SimpleNamespace(t=t, stored=("t", "v"), v=(np.abs(t - 1) + noise)[:, None])
    between = np.linspace(0.0, 2.0, 41)
    assert np.abs(interpolate_rows(rows, ["v"], between, 4)["v"].ravel() - np.abs(between - 1)).max() < 1e-6


def test_values_of_all_steps():
    """A row for each of them, and no others are known."""
    run = oscillation(scheme="gauss-2", h=0.1)
    assert len(run.step_values().t) == len(run.t) - 1 == 20
    assert len(run.step_values(steps=[0, 19]).t) == 2
    with pytest.raises(lv.InputError, match="from 0 to 19"):
        run.step_values(steps=[20])


@pytest.mark.parametrize(
    ("size", "moved", "known"), [(1e-3, 5e-9, True), (1e-3, 1.5e-8, False), (1e3, 1e-6, True), (1e3, 3e-5, False)]
)
def test_between_rows_that_are_not_of_one_step_nothing_is_known(size, moved, known):
    """A step that is taken again ends at its row up to 1e-8, or up to that part of what is larger than 1."""
    run = lv.simulate(OSCILLATOR, x0=[size, 0.0], scheme="gauss-2", h=0.1, t_end=1.0)
    run.x[1] += moved
    if known:
        assert run.at(0.05).x[0] == pytest.approx(size * np.cos(0.05), rel=1e-6)
    else:
        with pytest.raises(lv.IntegrationError, match="from t = 0 could not be replayed"):
            run.at(0.05)


def test_shapes_and_bad_times():
    run = oscillation(scheme="gauss-2", h=0.1)
    assert run.at(0.37).x.shape == (2,) and run.at([0.1, 0.2, 0.3]).x.shape == (3, 2)
    assert run.at(np.zeros((2, 2))).x.shape == (2, 2, 2)
    for bad in (-0.1, 2.1, float("nan"), [0.5, 3.0]):
        with pytest.raises(lv.InputError, match="covers the times from 0 to 2"):
            run.at(bad)
    with pytest.raises(lv.InputError, match="a time is a number"):
        run.at("noon")
    with pytest.raises(AttributeError, match="no variable 'q' in this sample"):
        _ = run.at(0.5).q


def test_a_run_from_a_file_is_dense_too(tmp_path):
    run = oscillation(scheme="gauss-2", h=0.1, out=tmp_path / "run.h5")
    again = lv.load(tmp_path / "run.h5", system=OSCILLATOR)
    assert np.array_equal(again.at(0.777).x, run.at(0.777).x)


# -- events ---------------------------------------------------------------------------------------------------------
@settings(max_examples=30, deadline=None)
@given(height=st.floats(0.1, 50), h=st.floats(0.003, 0.3))
def test_a_ball_falls_exactly(height, h):
    """livens-em is exact for constant forces, and so is a cubic through its rows."""
    ground = lv.Event(lambda q: q[0], name="ground", terminal=True, direction=-1)
    run = lv.simulate(BALL, q0=[height], v0=[0.0], h=h, t_end=100.0, events=[ground])
    exact = np.sqrt(2 * height / 9.81)
    assert run.events[0].name == "ground" and abs(run.events[0].t - exact) < 1e-12 * (1 + exact)
    assert run.t[-1] == run.events[0].t and abs(run.q[-1, 0]) < 1e-12 * height
    assert "stopped by the event 'ground'" in run.message and run.status == "complete"


@pytest.mark.parametrize("terminal", [False, True])
def test_events_in_a_shortened_last_step(terminal):
    """The step from 0.4 to 0.46 has the ground in it."""
    ground = lv.Event(lambda q: q[0], name="ground", terminal=terminal)
    run = lv.simulate(BALL, q0=[1.0], v0=[0.0], h=0.2, t_end=0.46, events=[ground])
    assert [event.t for event in run.events] == pytest.approx([np.sqrt(2 / 9.81)], abs=1e-12)
    assert run.t[-1] == (run.events[0].t if terminal else 0.46) and len(run.t) == 4
    assert run.message.startswith("stopped by the event" if terminal else "the last step was shortened")


def test_fictive_time_goes_on_to_the_end():
    """Also in the last step, and in one that an event cuts short."""
    problem = lv.problems.load("kepler")
    far = lv.Event(lambda q: q[0] + 1.0, terminal=True)
    for options in ({}, {"events": [far]}):
        run = lv.simulate(problem, scheme="sundman", h=0.02, t_end=6.0, **options)
        increments = np.diff(run.fictive_time)
        assert np.allclose(increments[:-1], 0.02) and 0 < increments[-1] <= 0.02 + 1e-12
    assert abs(run.q[-1, 0] + 1.0) < 1e-6 and run.t[-1] < 3.0


@pytest.mark.parametrize("direction, expected", [(0, [0.5, 1.5, 2.5]), (1, [1.5]), (-1, [0.5, 2.5])])
def test_directions(direction, expected):
    zero = lv.Event(lambda x: x[0], direction=direction)
    run = lv.simulate(OSCILLATOR, x0=[1.0, 0.0], scheme="gauss-3", h=0.05, t_end=3 * np.pi, events=[zero])
    assert np.allclose([event.t / np.pi for event in run.events], expected, atol=1e-9)
    assert all(abs(event.state["x"][0]) < 1e-9 for event in run.events) and run.t[-1] == 3 * np.pi


def test_events_of_higher_order_schemes_are_as_accurate_as_their_polynomials():
    steps, errors = [0.4, 0.2, 0.1, 0.05], []
    zero = lv.Event(lambda x: x[0])
    for h in steps:
        run = lv.simulate(OSCILLATOR, x0=[1.0, 0.0], scheme="gauss-2", h=h, t_end=2.0, events=[zero])
        errors.append(abs(run.events[0].t - np.pi / 2))
    assert measured_order(steps, errors) > 2.9


def test_events_survive_in_a_file_and_in_controlled_runs(tmp_path):
    zero = lv.Event(lambda x: x[0], name="zero", terminal=True)
    control = lv.StepControl(largest=0.5, tolerance=1e-9)
    run = lv.simulate(
        OSCILLATOR, x0=[1.0, 0.0], scheme="gauss-3", h=0.01, t_end=2.0, events=[zero], control=control,
        out=tmp_path / "run.h5",
    )  # fmt: skip
    assert abs(run.t[-1] - np.pi / 2) < 1e-7
    assert lv.load(tmp_path / "run.h5").events == run.events


def test_bad_events():
    with pytest.raises(lv.InputError, match="function of the state"):
        lv.Event(3)
    with pytest.raises(lv.InputError, match="must be -1, 0 or 1"):
        lv.Event(lambda x: x[0], direction=2)
    with pytest.raises(lv.InputError, match="must return one number"):
        oscillation(scheme="gauss-1", h=0.1, events=[lv.Event(lambda x: x)])
    with pytest.raises(lv.InputError, match=r"a list of lv\.Event"):
        oscillation(scheme="gauss-1", h=0.1, events=[lambda x: x[0]])
    with pytest.raises(lv.InputError, match="has an argument 'q'"):
        oscillation(scheme="gauss-1", h=0.1, events=[lv.Event(lambda q: q[0])])


# -- control ----------------------------------------------------------------------------------------------------------
def test_the_tolerance_is_kept_and_steps_follow_the_motion():
    """A pendulum that starts near its top: slow there, fast below."""
    start, steps = [3.1, 0.0], []
    exact = lv.simulate(PENDULUM, x0=start, scheme="gauss-5", h=0.01, t_end=20.0).x[-1]
    for tolerance in (1e-3, 1e-5, 1e-7):
        control = lv.StepControl(tolerance=tolerance)
        run = lv.simulate(PENDULUM, x0=start, scheme="gauss-3", h=1e-3, t_end=20.0, control=control)
        # the pendulum multiplies errors near its top, where it starts
        assert np.abs(run.x[-1] - exact).max() < 10 * tolerance
        steps.append(run.statistics.steps)
        assert run.t[-1] == 20.0 and np.allclose(np.cumsum(run.step_size)[-1], 20.0)
        assert run.step_size[1:-1].max() > 2 * run.step_size[20:-1].min()
    assert steps[2] > 1.8 * steps[1] > 3.2 * steps[0]


@pytest.mark.parametrize(
    ("rate", "start", "first"),
    [
        (50.0, 2.0, 0.01 / 50),  # a hundredth of the time in which it changes by itself
        (1e-3, 2.0, 0.1),  # a hundredth of the time span at most
        (50.0, 0.0, 0.01 * 1e-6 / 100),  # of zero, what is tolerated is the size
        (5e-10, 0.0, 0.1),  # as good as nothing moves
    ],
)
def test_the_first_step_follows_from_state_and_rate(rate, start, first):
    """Towards 2 from zero, and else towards zero; 1e-6 is tolerated beside 1e-6 of the size."""
    aim = 0.0 if start else 2.0
    model = lv.FirstOrder("x", rhs=lambda x, k: [k.rate * (aim - x[0])], parameters={"rate": rate})
    control = lv.StepControl(tolerance=1e-6, absolute=1e-6)
    run = lv.simulate(model, x0=[start], scheme="radau-iia-3", t_end=10.0, control=control)
    assert run.t[1] == pytest.approx(first, rel=1e-6)


def test_growth_and_limits():
    control = lv.StepControl(largest=0.08, increase=2.0, patience=4)
    run = oscillation(scheme="gauss-2", h=0.01, control=control)
    sizes = run.step_size[1:]
    assert np.allclose(sizes[:12], [0.01] * 4 + [0.02] * 4 + [0.04] * 4) and sizes.max() <= 0.08 + 1e-15
    assert run.statistics.rejected == 0


def test_failures_shorten_steps_and_are_counted():
    """Newton's method fails for long steps across a pole that only a short step resolves."""
    stiff = lv.FirstOrder("x", rhs=lambda x, t: [-1e3 * x[0] ** 3])
    control = lv.StepControl(largest=10.0, tolerance=1e-6)
    run = lv.simulate(stiff, x0=[3.0], scheme="gauss-3", h=1.0, t_end=1.0, control=control)
    assert run.statistics.rejected > 3 and run.step_size[1] < 1e-3 and 0 < run.x[-1, 0] < 0.1


def test_no_step_that_succeeds():
    """x' = x^2 has no solution beyond t = 1."""
    explosion = lv.FirstOrder("x", rhs=lambda x: [x[0] ** 2])
    control = lv.StepControl(smallest=1e-9, tolerance=1e-8)
    with pytest.raises(lv.IntegrationError, match=r"no step of at least 1e-09 succeeded|not finite") as caught:
        lv.simulate(explosion, x0=[1.0], scheme="gauss-2", h=0.1, t_end=2.0, control=control)
    assert 0.99 < caught.value.result.t[-1] <= 1.0 + 1e-6


def test_a_run_may_be_limited_to_so_many_steps():
    control = lv.StepControl(largest=0.01, most_steps=57)
    run = oscillation(scheme="gauss-2", h=0.01, control=control)
    assert run.status == "interrupted" and len(run.t) == 58
    assert re.search(r"reached the limit of 57 steps at t = 0\.5", run.message)
    enough = lv.simulate(
        OSCILLATOR,
        x0=[1.0, 0.0],
        scheme="gauss-2",
        h=0.01,
        t_end=0.5,
        control=lv.StepControl(largest=0.01, most_steps=57),
    )
    assert enough.status == "complete"


def test_a_controlled_run_goes_on_bit_for_bit(tmp_path):
    control = lv.StepControl(tolerance=1e-8)
    whole = lv.simulate(PENDULUM, x0=[3.0, 0.0], scheme="gauss-2", h=1e-3, t_end=5.0, control=control)
    stop = lv.Event(lambda x, t: t - 2.5, terminal=True)
    lv.simulate(
        PENDULUM, x0=[3.0, 0.0], scheme="gauss-2", h=1e-3, t_end=5.0, control=control, events=[stop],
        out=tmp_path / "run.h5",
    )  # fmt: skip
    part = lv.load(tmp_path / "run.h5", system=PENDULUM)
    n = len(part) - 1  # the last row belongs to the event
    assert np.array_equal(part.x[:n], whole.x[:n]) and np.array_equal(part.t[:n], whole.t[:n])


@pytest.mark.parametrize(
    "field, value",
    [("smallest", 0.0), ("largest", 0.0), ("decrease", 1.0), ("increase", 0.5), ("patience", 0), ("tolerance", -1.0),
     ("tolerance", float("nan")), ("floor", 0.0)],
)  # fmt: skip
def test_bad_control(field, value):
    with pytest.raises(lv.InputError, match=f"{field} of the step-size control must be"):
        lv.StepControl(**{field: value})


@pytest.mark.parametrize(
    "field, value",
    [("smallest", 1e-300), ("largest", float("inf")), ("decrease", 0.99), ("increase", 1.0), ("patience", 1),
     ("most_steps", 0), ("tolerance", 0.0), ("floor", 0.5)],
)  # fmt: skip
def test_control_at_its_limits(field, value):
    assert getattr(lv.StepControl(**{field: value}), field) == value


def test_without_a_tolerance_steps_do_not_outgrow_the_first():
    assert oscillation(scheme="gauss-2", h=0.01, control=lv.StepControl()).step_size.max() == pytest.approx(0.01)


class Stopped:
    """As if Ctrl-C had been pressed."""

    requested = True

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


@pytest.mark.parametrize(
    "options",
    [dict(scheme="gauss-2", h=1e-3, control=lv.StepControl(tolerance=1e-9)), dict(scheme="sundman", h=0.02),
     dict(scheme="stormer-verlet", h=0.01)],
    ids=["controlled", "fictive", "explicit"],
)  # fmt: skip
def test_a_stopped_run_goes_on_bit_for_bit_in_any_pace(tmp_path, monkeypatch, options):
    problem = lv.problems.load("kepler")
    whole = lv.simulate(problem, t_end=5.0, **options)
    with monkeypatch.context() as patch:
        patch.setattr("livens.run.startup._CHUNK_STEPS", 40)
        patch.setattr("livens.run.driver.Interrupt", Stopped)
        with pytest.raises(lv.Interrupted):
            lv.simulate(problem, t_end=5.0, out=tmp_path / "run.h5", **options)
    assert len(lv.load(tmp_path / "run.h5")) == 41
    again = lv.resume(tmp_path / "run.h5")
    for name in ("t", "q", "p", "step_size"):
        assert np.array_equal(getattr(again, name), getattr(whole, name)), name


def test_control_that_does_not_fit():
    with pytest.raises(lv.InputError, match=r"control must be a livens\.StepControl"):
        oscillation(scheme="gauss-2", h=0.1, control=1e-6)
    with pytest.raises(lv.InputError, match="needs the fused tier"):
        oscillation(scheme="gauss-2", h=0.1, control=lv.StepControl(), tier="reference")
    with pytest.raises(lv.InputError, match="does not estimate its error"):
        lv.simulate(SPRING, q0=[1], v0=[0], scheme="suzuki-4:livens-em", h=0.1, t_end=1, tolerance=1e-3)
    with pytest.raises(lv.InputError, match="does not estimate its error"):
        lv.simulate(SPRING, q0=[1], v0=[0], scheme="livens-em:itoh-abe", h=0.1, t_end=1, tolerance=1e-3)
    with pytest.raises(lv.InputError, match=r"1e-13 is below the round-off .* use at least 1e-12"):
        lv.simulate(SPRING, q0=[1], v0=[0], scheme="livens-em", t_end=1, tolerance=1e-13)
    with pytest.raises(lv.InputError, match="give the tolerance once"):
        lv.simulate(SPRING, q0=[1], v0=[0], t_end=1, tolerance=1e-3, control=lv.StepControl(tolerance=1e-3))
    with pytest.raises(lv.InputError, match="controller of the step-size control"):
        lv.StepControl(tolerance=1e-3, controller="H211")


# -- the last step, files, and steps over switches --------------------------------------------------------------------
def test_the_last_step_of_a_series_is_its_own():
    """Between the last two rows the Taylor polynomial of the last step is evaluated, not that of the step before."""
    run = lv.simulate(OSCILLATOR, x0=[1.0, 0.0], scheme="taylor", h=2.0, t_end=4.0)
    t = np.array([2.6, 3.3, 3.99])
    assert np.abs(run.at(t).x[:, 0] - np.cos(t)).max() < 1e-11


def test_unknowns_of_steps_are_computed_for_a_run_from_a_file(tmp_path):
    run = oscillation(scheme="gauss-2", h=0.1, out=tmp_path / "run.h5")
    again = lv.load(tmp_path / "run.h5", system=OSCILLATOR).step_values()
    assert np.array_equal(again.t, run.step_values().t)


def test_a_step_of_round_off_size_is_linear():
    """Such a step leads over a switch: between its rows, which may be far apart in relative size, values are linear."""
    from livens.results.dense_output import StepReplay

    run = lv.simulate(OSCILLATOR, x0=[1.0, 0.0], scheme="gauss-2", h=0.5, t_end=2.0)
    before = run.at(np.array([0.3, 1.7])).x
    replay = StepReplay.create(run, lv.schemes.get("gauss-2"))
    width = 2.0**-44  # of the times from one to two, exact in doubles
    t = np.concatenate([run.t[:3], [1.0 + width], run.t[3:]])
    x = np.vstack([run.x[:3], [[5.0, -7.0]], run.x[3:]])
    replay._result = type("Rows", (), dict(t=t, x=x))()
    replay._evaluate_steps = lambda times: {"x": before}
    found = replay.evaluate(np.array([0.3, 1.0 + width / 4, 1.7]))["x"]
    assert found[1] == pytest.approx(run.x[2] + (np.array([5.0, -7.0]) - run.x[2]) / 4, rel=1e-12)
    assert np.array_equal(found[[0, 2]], before)
