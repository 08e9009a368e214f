"""Forces that are switched by time or by a contact: controlled steps find the switch, verdicts know of it."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import livens as lv
from livens import math as m
from livens.models.switch_times import switch_times

FLOORS = {
    "where": lambda x: [x[1], -9.81 + m.where(x[0] < 0, -1e4 * x[0] - 5 * x[1], 0.0)],
    "maximum": lambda x: [x[1], -9.81 + 1e4 * m.maximum(-x[0], 0.0)],
}
PLAIN = {
    "where": lambda t, x: [x[1], -9.81 + (-1e4 * x[0] - 5 * x[1] if x[0] < 0 else 0.0)],
    "maximum": lambda t, x: [x[1], -9.81 + 1e4 * max(-x[0], 0.0)],
}


@pytest.mark.parametrize("floor", FLOORS)
@pytest.mark.parametrize("scheme", ["radau-iia-3", "radau-iia-5", "gauss-3", "radau"])
@pytest.mark.parametrize("h", [None, 1e-3])
def test_steps_with_a_tolerance_bounce_on_a_penalty_floor(floor, scheme, h):
    """The pivots of flight and contact differ; nothing is solved with the pivots of the other."""
    control = lv.StepControl(tolerance=1e-6, absolute=1e-8)
    ball = lv.FirstOrder("y v", rhs=FLOORS[floor])
    run = lv.simulate(ball, x0=[1.0, 0.0], scheme=scheme, t_end=2.0, h=h, control=control)
    exact = solve_ivp(PLAIN[floor], (0, 2), [1, 0], method="DOP853", rtol=1e-11, atol=1e-12, max_step=2e-3).y[:, -1]
    assert run.x[-1] == pytest.approx(exact, abs=1e-3)


def pushed():
    """A unit oscillator, pushed by 5 N until t = c."""
    return lv.System(
        "x",
        kinetic=lambda v: v[0] ** 2 / 2,
        potential=lambda q: q[0] ** 2 / 2,
        forces=lambda t, k: [m.where(t < k.c, 5.0, 0.0)],
        parameters=dict(c=1.2345),
    )


def motion(t, c):
    x, v = 5 - 4 * np.cos(c), 4 * np.sin(c)
    return np.where(t < c, 5 - 4 * np.cos(t), x * np.cos(t - c) + v * np.sin(t - c))


@pytest.mark.parametrize("scheme", ["gauss-2", "gauss-3", "radau-iia-2", "radau-iia-3", "lobatto-iiic-3"])
def test_steps_with_a_tolerance_end_at_a_switch_time(scheme):
    for c in np.random.default_rng(3).uniform(1, 2, 5):
        control = lv.StepControl(tolerance=1e-8)
        run = lv.simulate(pushed(), q0=[1.0], v0=[0.0], scheme=scheme, t_end=3.0, parameters=dict(c=c), control=control)
        i = np.searchsorted(run.t, c)
        assert run.t[i] - run.t[i - 1] < 1e-13
        assert np.abs(run.q[:, 0] - motion(run.t, c)).max() < 50e-8
    estimate = run.accuracy()
    assert estimate.resolved and estimate.error["q"] < 1e-6


def test_pulses_are_not_stepped_over():
    """A pulse train of 200 periods: every edge is a breakpoint, against the closed form between edges."""
    circuit = lv.FirstOrder("i", rhs=lambda x, t: [m.where((20 * t) % 1.0 < 0.4, 30.0, 0.0) - x[0]])
    run = lv.simulate(circuit, x0=[0.0], scheme="radau-iia-3", t_end=10.0, control=lv.StepControl(tolerance=1e-8))
    value = 0.0
    for _ in range(200):
        value = 30 + (value - 30) * np.exp(-0.02)
        value *= np.exp(-0.03)
    assert run.x[-1, 0] == pytest.approx(value, rel=1e-6)
    times = switch_times(circuit, circuit.parameter_vector(), 0.0, 1.0)
    assert times == pytest.approx(np.sort([*np.arange(1, 20) / 20, *(np.arange(20) / 20 + 0.02)]), abs=1e-14)


def test_a_run_over_breakpoints_is_resumed_bit_for_bit(tmp_path):
    given = dict(q0=[1.0], v0=[0.0], scheme="radau-iia-3", control=lv.StepControl(tolerance=1e-8))
    whole = lv.simulate(pushed(), t_end=3.0, **given)
    limited = lv.StepControl(tolerance=1e-8, most_steps=int(np.searchsorted(whole.t, 1.2345)))
    part = lv.simulate(pushed(), t_end=3.0, out=tmp_path / "part.h5", **given | dict(control=limited))
    assert part.t[-1] == pytest.approx(1.2345, abs=1e-12)
    assert part.q[-1] == whole.q[len(part.t) - 1]


def test_what_is_called_resolved_is_within_ten_times_of_the_truth_where_a_force_is_switched():
    ratios = []
    for scheme in ("livens-em", "gauss-2", "gauss-3", "livens-midpoint"):
        for c in np.random.default_rng(0).uniform(1, 2, 10):
            run = lv.simulate(pushed(), q0=[1.0], v0=[0.0], scheme=scheme, h=0.005, t_end=10.0, parameters=dict(c=c))
            x = motion(run.t, c)
            error, estimate = np.abs(run.q[:, 0] - x).max() / (np.ptp(x) / 2), run.accuracy()
            ratios.append(error / estimate.error["q"])
            assert estimate.verdict == "order not seen" and "not smooth" in str(estimate.notes)
    assert min(ratios) > 0.5 and max(ratios) < 2


def test_a_switch_on_a_node_keeps_the_order():
    run = lv.simulate(pushed(), q0=[1.0], v0=[0.0], scheme="gauss-2", h=0.01, t_end=10.0, parameters=dict(c=1.25))
    assert run.accuracy().verdict in ("resolved", "round-off")
    assert np.abs(run.q[:, 0] - motion(run.t, 1.25)).max() < 1e-9


def test_a_single_step_longer_than_the_run_is_not_round_off():
    pendulum = lv.problems.load("simple-pendulum")
    for h in (25.0, 5.0, 2.0):
        estimate = lv.simulate(pendulum, scheme="livens-em", h=h, t_end=2.0).accuracy()
        assert not estimate.resolved


@pytest.mark.parametrize("offset", [1e3, 1e6])
def test_errors_are_relative_to_the_motion_on_a_large_offset(offset):
    model = lv.System(
        "x",
        kinetic=lambda v: v[0] ** 2 / 2,
        potential=lambda q, k: (q[0] - k.o) ** 2 / 2,
        parameters=dict(o=offset),
    )
    run = lv.simulate(model, q0=[offset + 1e-3], v0=[0.0], scheme="livens-em", h=0.05, t_end=20.0)
    true = np.abs(run.q[:, 0] - offset - 1e-3 * np.cos(run.t)).max() / 1e-3
    assert run.accuracy().error["q"] == pytest.approx(true, rel=0.5)


# -- switches of the state --------------------------------------------------------------------------------------------
def thrown(t):
    """Motion from rest at 1 under a force of 1 towards the origin: parabolas."""
    quarter = np.sqrt(2.0)
    phase = (t + quarter) % (2 * quarter) - quarter
    return np.where(((t + quarter) // (2 * quarter)) % 2 == 0, 1.0, -1.0) * (1 - phase**2 / 2)


TOWARDS = dict(kinetic=lambda v: v[0] ** 2 / 2, forces=lambda q: [m.where(q[0] < 0, 1.0, -1.0)])


@pytest.mark.parametrize("scheme", ["gauss-2", "gauss-3", "radau-iia-2", "radau-iia-3", "lobatto-iiic-3"])
@pytest.mark.parametrize("tolerance", [1e-6, 1e-10])
def test_steps_with_a_tolerance_end_at_a_switch_of_the_state(scheme, tolerance):
    """A jump of the force between two long steps without an error; steps over two switches are seen as well."""
    control = lv.StepControl(tolerance=tolerance)
    run = lv.simulate(lv.System("x", **TOWARDS), q0=[1.0], v0=[0.0], scheme=scheme, control=control, t_end=10.0)
    assert np.abs(run.q[:, 0] - thrown(run.t)).max() < 1e-12
    crossings = np.sqrt(2) * np.array([1, 3, 5, 7])
    after = np.searchsorted(run.t, crossings + 1e-12)
    assert np.all(run.t[after - 1] - run.t[after - 2] < 1e-13)
    assert run.accuracy().resolved


def test_the_assembled_tier_ends_steps_at_a_switch_of_the_state():
    start = dict(q0=[1.0], v0=[0.0], scheme="gauss-3", control=lv.StepControl(tolerance=1e-8), t_end=10.0)
    run = lv.simulate(lv.System("x", **TOWARDS), **start, tier="assembled")
    assert np.abs(run.q[:, 0] - thrown(run.t)).max() < 1e-12


@pytest.mark.parametrize("scheme", ["gauss-3", "radau-iia-3"])
def test_a_ball_on_a_stiff_penalty_floor_keeps_its_energy(scheme):
    ball = lv.System(
        "z", kinetic=lambda v: v[0] ** 2 / 2, forces=lambda q: [-9.81 + m.where(q[0] < 0, -1e4 * q[0], 0.0)]
    )
    run = lv.simulate(ball, q0=[1.0], v0=[0.0], scheme=scheme, control=lv.StepControl(tolerance=1e-10), t_end=5.0)
    height, speed = run.q[:, 0], run.v[:, 0]
    energy = speed**2 / 2 + 9.81 * height + 5e3 * np.minimum(height, 0) ** 2
    assert np.abs(energy - 9.81).max() < 1e-9


@pytest.mark.parametrize("scheme", ["radau-iia-3", "radau"])
def test_switches_of_first_order_equations_are_located(scheme):
    """A heater that is on below 20 degrees, with a rate on each side: exponentials meet at 20."""
    heater = lv.FirstOrder("u", rhs=lambda x: [m.where(x[0] < 20, 30.0, 21.0) - x[0]])
    run = lv.simulate(heater, x0=[0.0], scheme=scheme, control=lv.StepControl(tolerance=1e-10), t_end=4.0)
    t = np.log(30 / 10)
    exact = np.where(run.t < t, 30 - 30 * np.exp(-run.t), 21 - np.exp(-(run.t - t)))
    assert np.abs(run.x[:, 0] - exact).max() < 1e-8


@pytest.mark.parametrize("end", [1.0, 1.4, 1.5, 4.2, 5.0, 7.1])
def test_a_run_over_switches_of_the_state_is_resumed_bit_for_bit(tmp_path, end):
    given = dict(q0=[1.0], v0=[0.0], scheme="radau-iia-3", h=0.01, control=lv.StepControl(tolerance=1e-6))
    model = lv.System("x", potential=lambda q: q[0] ** 4 / 4, **TOWARDS)
    whole = lv.simulate(model, **given, t_end=8.0)
    assert np.sum(np.diff(whole.t) < 1e-12) >= 3
    lv.simulate(model, **given, t_end=end, out=tmp_path / "part.h5")
    resumed = lv.resume(tmp_path / "part.h5", system=model, t_end=8.0)
    assert np.array_equal(resumed.t, whole.t) and np.array_equal(resumed.q, whole.q)


def test_switches_are_located_with_the_parameters_that_an_action_has_set():
    """The place of the switch is moved from 0 to -1 at t = 0.5."""
    model = lv.System(
        "x",
        kinetic=lambda v: v[0] ** 2 / 2,
        forces=lambda q, k: [m.where(q[0] < k.place, 1.0, 0.0)],
        parameters=dict(place=0.0),
    )
    moved = lv.Event(lambda t: t - 0.5, name="moved", action=lambda: {"parameters": {"place": -1.0}})
    run = lv.simulate(
        model, q0=[1.0], v0=[-1.0], scheme="gauss-2", control=lv.StepControl(tolerance=1e-8), t_end=3.0, events=[moved]
    )
    exact = np.where(run.t < 2, 1 - run.t, -1 - (run.t - 2) + (run.t - 2) ** 2 / 2)
    assert np.abs(run.q[:, 0] - exact).max() < 1e-12


def test_a_motion_that_slides_along_a_switch_goes_on():
    """A velocity that is driven to zero from both sides by a regularised friction: the last switch is not passed."""
    model = lv.FirstOrder("x", rhs=lambda x: [-m.minimum(m.maximum(1e6 * x[0], -1.0), 1.0)])
    run = lv.simulate(model, x0=[1.0], scheme="radau-iia-3", control=lv.StepControl(tolerance=1e-6), t_end=3.0)
    assert run.status == "complete" and abs(run.x[-1, 0]) < 1e-6


@pytest.mark.parametrize("condition", [lambda x: x < 1, lambda x: x**3 < 1], ids=["linear", "cubic"])
def test_only_jumps_of_rates_are_located_in_first_order_equations(condition):
    """Growth that begins at x = 1: the rate x continues the rate 1 before; the rate 2 x jumps."""
    control, smallest = lv.StepControl(tolerance=1e-10), []
    for factor in (1.0, 2.0):
        model = lv.FirstOrder("x", rhs=lambda x, f=factor: [m.where(condition(x[0]), 1.0, f * x[0])])
        run = lv.simulate(model, x0=[0.0], scheme="radau-iia-3", control=control, t_end=2.0)
        exact = np.where(run.t < 1, run.t, np.exp(factor * (run.t - 1)))
        assert np.abs(run.x[:, 0] - exact).max() < 1e-8
        smallest.append(np.diff(run.t[run.t > 0.5]).min())
    assert smallest[0] > 1e-9 and smallest[1] < 1e-13


def test_a_rate_that_stops_at_a_switch_leaves_the_state_there():
    """A tank is drained at 7 kg/s down to 300 kg: no implicit step over the switch exists."""
    tank = lv.FirstOrder("m", rhs=lambda x: [m.where(x[0] > 300, -7.0, 0.0)])
    run = lv.simulate(tank, x0=[1000.0], scheme="radau-iia-5", control=lv.StepControl(tolerance=1e-10), t_end=200.0)
    assert run.status == "complete"
    assert np.abs(run.x[:, 0] - np.maximum(1000 - 7 * run.t, 300)).max() < 1e-6


@pytest.mark.parametrize("scheme", ["radau-iia-3", "radau", "gauss-3"])
def test_a_stage_that_burns_out_ends_its_thrust_and_its_flow(scheme):
    """The flow of 7 kg/s ends with 300 kg at t = 100 s, where no implicit step exists: closed form of both phases."""
    rocket = lv.FirstOrder(
        "v m", rhs=lambda x: [m.where(x[1] > 300, 21000.0 / x[1], 0.0) - 9.81, m.where(x[1] > 300, -7.0, 0.0)]
    )
    control = lv.StepControl(tolerance=1e-8)
    run = lv.simulate(rocket, x0=[0.0, 1000.0], scheme=scheme, control=control, t_end=200.0)
    mass = np.maximum(1000 - 7 * run.t, 300.0)
    assert run.status == "complete" and np.abs(run.x[:, 1] - mass).max() < 1e-5
    assert np.abs(run.x[:, 0] - (3000 * np.log(1000 / mass) - 9.81 * run.t)).max() < 1e-4
    assert np.allclose(run.at([99.0, 150.0]).x[:, 1], [307.0, 300.0]) and run.accuracy().resolved
