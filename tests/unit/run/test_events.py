"""Events: zeros within steps, actions, several at one time, and runs that go on after them."""

import sys

import numpy as np
import pytest

import livens as lv
from livens import math as m

OSCILLATOR = lv.FirstOrder("x v", rhs=lambda x: [x[1], -x[0]])
FALL = np.sqrt(2 / 9.81)  # from a height of 1


def ball():
    return lv.System("z", kinetic=lambda v: v[0] ** 2 / 2, potential=lambda q, k: k.g * q[0], parameters=dict(g=9.81))


def drop(events, **options):
    given = dict(q0=[1.0], v0=[0.0], scheme="gauss-2", h=0.01, t_end=2.0) | options
    return lv.simulate(ball(), **given, events=events)


def bounce(e=0.8, **options):
    return lv.Event(lambda q: q[0], name="bounce", direction=-1, action=lambda v: {"v": -e * v}, **options)


SWITCH = lv.Event(lambda q: q[0] - 0.5, name="switch", direction=-1, action=lambda k: {"parameters": {"g": -k.g}})
BOUNCES = [FALL, 2.6 * FALL, 3.88 * FALL]


# -- within steps -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("level", [0.9, 0.99, 0.999])
def test_two_zeros_within_a_step(level):
    """Steps are as long as the hills that the level cuts."""
    control, peak = lv.StepControl(tolerance=1e-3), lv.Event(lambda x: x[0] - level, name="peak")
    run = lv.simulate(OSCILLATOR, x0=[0.0, 1.0], scheme="gauss-3", h=0.1, t_end=19.0, control=control, events=[peak])
    first, second = np.arcsin(level), np.pi - np.arcsin(level)
    exact = [base + 2 * np.pi * i for i in range(3) for base in (first, second)]
    assert level == 0.9 or run.step_size.max() > 3 * (second - first)
    assert [event.t for event in run.events] == pytest.approx(exact, abs=0.1)
    for event in run.events:  # where the polynomial itself is at the level
        assert event.state["x"][0] == pytest.approx(level, abs=1e-12)


def test_directions_of_zeros_within_a_step():
    for direction, number in ((1, 3), (-1, 3), (0, 6)):
        peak = lv.Event(lambda x: x[0] - 0.999, direction=direction)
        run = lv.simulate(OSCILLATOR, x0=[0.0, 1.0], scheme="gauss-4", h=1.0, t_end=20.0, events=[peak])
        assert len(run.events) == number
        for event in run.events:
            assert direction == 0 or np.sign(event.state["x"][1]) == direction


def test_a_zero_soon_after_a_minimum_at_the_end_of_a_step():
    """The minimum at the end of the first step is not a zero, and the crossing within the second is found once."""
    t, g = np.array([0.5, 0.75, 1.0, 1.25, 1.5]), np.array([1.6, 1.2, 0.95, 1.2, -1.0])
    polynomial = np.polynomial.Polynomial.fit(t, g, 4).convert()
    event = lv.Event(lambda t: sum(c * t**i for i, c in enumerate(polynomial.coef.tolist())), name="zero")
    system = lv.System("z", kinetic=lambda v: v[0] ** 2 / 2, potential=lambda q: q[0] ** 2 / 2)
    run = lv.simulate(system, q0=[0.0], v0=[1.0], scheme="livens-em", h=1.0, t_end=2.0, events=[event])
    roots = [float(x.real) for x in polynomial.roots() if abs(x.imag) < 1e-12 and 0.5 < x.real < 1.6]
    assert [e.t for e in run.events if 0.5 < e.t < 1.6] == pytest.approx(roots, abs=1e-12) and len(roots) == 1


def test_an_action_that_does_not_change_the_function_happens_once():
    """The state at an event is that of a shorter step: its function is zero there up to the local error."""
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    rod = mb.body("rod", mass=1.0, inertia=[0.1, 0.1, 0.1], position=[0.5, 0, 0])
    mb.revolute("hinge", mb.ground, rod, at=[0, 0, 0], axis="y")
    index, calls = mb.system.coordinates.index("rod.z"), []

    def events(**action):
        depths = (0.1, 0.2, 0.3, 0.4)
        return [lv.Event(lambda q, d=d: -q[index] - d, direction=1, name=f"{d}", **action) for d in depths]

    run = mb.simulate(t_end=0.5, h=0.02, events=events(action=lambda t: calls.append(t) or {}))
    assert [event.name for event in run.events] == ["0.1", "0.2", "0.3", "0.4"] and len(calls) == 4
    plain = mb.simulate(t_end=0.5, h=0.02, events=events())
    assert [event.t for event in run.events] == pytest.approx([event.t for event in plain.events], abs=5e-5)


def test_without_a_formula_within_the_step():
    system = lv.System("z", kinetic=lambda v: v[0] ** 2 / 2, potential=lambda q: q[0] ** 2 / 2)
    top = lv.Event(lambda q: q[0] - 0.99)
    run = lv.simulate(system, q0=[0.0], v0=[1.0], scheme="livens-em", h=0.25, t_end=10.0, events=[top])
    assert len(run.events) == 4


# -- actions ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("scheme", ["gauss-2", "livens-em", "radau-iia-3", "stormer-verlet", "lobatto-iiia-iiib-3"])
def test_a_bouncing_ball(scheme):
    run = drop([bounce()], scheme=scheme)
    assert [event.t for event in run.events] == pytest.approx(BOUNCES, abs=1e-9)
    for event in run.events:
        before, after = np.flatnonzero(run.t == event.t)
        assert after == before + 1 and run.v[after, 0] == pytest.approx(-0.8 * run.v[before, 0], rel=1e-14)
        assert event.changes["v"] == run.v[after].tolist() and run.step_size[after] == 0.0
    assert run.t[-1] == 2.0 and np.all(np.diff(run.t) >= 0)
    # what the ground takes is in the account, so the balance is closed
    assert run.summary.max_energy_drift < 1e-12 and np.abs(run.observe("energy_balance_defect")).max() < 1e-12
    times = np.linspace(FALL, 2.6 * FALL, 50)[1:-1]
    exact = 0.8 * 9.81 * FALL * (times - FALL) - 9.81 / 2 * (times - FALL) ** 2
    assert run.at(times).q[:, 0] == pytest.approx(exact, abs=1e-9)


def test_controlled_steps_bounce():
    run = drop([bounce()], scheme="radau-iia-3", control=lv.StepControl(tolerance=1e-9), h=None)
    assert [event.t for event in run.events] == pytest.approx(BOUNCES, abs=1e-9)
    assert run.statistics.steps < 60


def test_restitution_with_constraints():
    """Velocities after an action are moved to where the constraints allow them, multipliers follow."""
    pendulum = lv.problems.load("simple-pendulum").model
    wall = lv.Event(lambda q: q[0], name="wall", action=lambda v: {"v": -v + [0.0, 0.3]})
    run = lv.simulate(pendulum, q0=[-1, 0], v0=[0, 0], scheme="radau-iia-3", h=0.01, t_end=3.0, events=[wall])
    assert len(run.events) >= 2 and np.all(run.q[:, 0] < 1e-9)
    assert run.summary.max_constraint < 1e-12 and np.abs(run.observe("velocity_constraint")).max() < 1e-4


def test_algebraic_variables_follow_an_action():
    model = lv.FirstOrder("a", algebraic="y", rhs=lambda y: [-y[0]], constraints=lambda x, y: [y[0] - x[0] ** 2])
    kick = lv.Event(lambda x: x[0] - 0.5, action=lambda x: {"x": x + 1})
    run = lv.simulate(model, x0=[1.0], h=0.01, t_end=1.5, events=[kick])
    after = np.flatnonzero(run.t == run.events[0].t)[1]
    assert run.x[after, 0] == pytest.approx(1.5) and run.y[after, 0] == pytest.approx(2.25)


def test_switching_parameters():
    """Observables and dense output know the parameters of each time; energy that comes in is supplied."""
    run = drop([SWITCH], t_end=1.0)
    (event,) = run.events
    assert event.t == pytest.approx(np.sqrt(1 / 9.81)) and event.changes == {"parameters": {"g": -9.81}}
    t, speed = 0.9 - event.t, np.sqrt(9.81)
    assert run.at(0.9).q[0] == pytest.approx(0.5 - speed * t + 9.81 / 2 * t**2, abs=1e-12)
    assert run.observe("total_energy")[-1] == pytest.approx(0.0, abs=1e-12)
    assert np.abs(run.observe("energy_balance_defect")).max() < 1e-12 and run.parameter_segments[1][1][0] == -9.81
    assert run.observe(lambda k: k.g)[[0, -1]].tolist() == [9.81, -9.81]


def test_several_at_one_time_act_in_their_order():
    double = lv.Event(lambda q: q[0], name="double", direction=-1, action=lambda v: {"v": 2 * v})
    add = lv.Event(lambda q: 3 * q[0], name="add", direction=-1, action=lambda v: {"v": v + 20.0})
    speed = -9.81 * FALL
    for events, after in (([double, add], 2 * speed + 20), ([add, double], 2 * (speed + 20))):
        run = drop(events, t_end=0.5)
        assert [event.name for event in run.events] == [event.name for event in events]
        assert run.v[np.flatnonzero(run.t == run.events[0].t)[-1], 0] == pytest.approx(after)


def test_an_action_at_the_end():
    run = drop([bounce(terminal=True)])
    assert run.t[-1] == pytest.approx(FALL) and run.v[-1, 0] == pytest.approx(0.8 * 9.81 * FALL)
    last = drop([bounce()], t_end=FALL + 1e-3)  # in the shortened last step
    assert last.t[-1] == FALL + 1e-3 and last.q[-1, 0] > 0


def test_bounces_that_do_not_end():
    with pytest.raises(lv.IntegrationError, match="the event 'bounce' occurred 20 times") as caught:
        drop([bounce(0.5)], t_end=10.0)
    assert caught.value.result.t[-1] == pytest.approx(3 * FALL, abs=0.02)
    assert caught.value.result.q.min() > -1e-9


@pytest.mark.parametrize("control", [None, lv.StepControl(tolerance=1e-8)])
def test_runs_with_actions_go_on_bit_for_bit(tmp_path, control):
    lighter = lv.Event(
        lambda q: q[0] - 0.5, name="lighter", direction=-1, action=lambda k: {"parameters": {"g": 0.9 * k.g}}
    )
    events = [bounce(), lighter]
    whole = drop(events, t_end=3.0, control=control)
    assert [event.name for event in whole.events[:4]] == ["lighter", "bounce"] * 2
    for t_end in (0.2, 0.33, 1.5):
        path = tmp_path / f"{t_end}.h5"
        drop(events, t_end=t_end, control=control, out=path)
        again = lv.resume(path, t_end=3.0, system=ball(), events=events)
        assert np.array_equal(again.t, whole.t) and np.array_equal(again.q, whole.q) and again.events == whole.events
        assert again.summary == whole.summary


@pytest.mark.parametrize(
    ("action", "words"),
    [
        (lambda v: 2 * v, "must return a dictionary"),
        (lambda v: {"w": v}, "changes the unknown 'w'"),
        (lambda v: {"v": [1.0, 2.0]}, r"v after event 'bad' must be 1 numbers"),
        (lambda v: {"v": [np.nan]}, r"v after event 'bad' must be finite"),
        (lambda: {"parameters": {"G": 1.0}}, "G"),
        (lambda: {"parameters": 3.0}, "must map names to values"),
        (lambda s: {}, "'s'"),
    ],
)
def test_actions_that_make_no_sense(action, words):
    with pytest.raises((lv.InputError, lv.ModelError), match=words):
        drop([lv.Event(lambda q: q[0], name="bad", action=action)])


def test_no_actions_in_fictive_time():
    with pytest.raises(lv.InputError, match="events with actions are not supported"):
        lv.simulate(lv.problems.load("kepler"), scheme="sundman", h=0.02, t_end=1.0, events=[bounce()])
    with pytest.raises(lv.InputError, match="the action of an event must be a function"):
        lv.Event(lambda q: q[0], action=3.0)


# -- between rows -----------------------------------------------------------------------------------------------------
def test_many_times_are_as_good_as_single_ones():
    run = lv.simulate(OSCILLATOR, x0=[0.0, 1.0], scheme="gauss-2", h=0.1, t_end=20.0)
    times = np.random.default_rng(1).uniform(0.0, 20.0, 60)
    together = run.at(times).x
    assert np.array_equal(together[:5], [run.at(t).x for t in times[:5]])
    assert np.abs(together[:, 0] - np.sin(times)).max() < 2e-5


def test_actions_see_the_parameters_of_their_own_model():
    """Steps are found by their equations: what was compiled for a model with other numbers must not lend them."""

    def thrown(mass, gravity):
        ball = lv.Element(
            ["z"],
            kinetic=lambda v, k: k.mass * v[0] ** 2 / 2,
            potential=lambda q, k: k.mass * k.weight * q[0],
            parameters=dict(mass=mass, weight=gravity),
            name="ball",
        )
        model, seen = lv.System("z", elements=[ball], parameters=dict(share=mass)), []

        def bounce(v, k):
            seen.append(k.share)
            return {"v": -v}

        floor = lv.Event(lambda q: q[0], name="floor", direction=-1, action=bounce)
        run = lv.simulate(model, [1.0], [0.0], h=0.01, t_end=2.0, events=[floor])
        return run, seen

    for mass, gravity in ((1.0, 9.81), (0.25, 2.0)):  # the second finds what was compiled for the first
        run, seen = thrown(mass, gravity)
        assert seen and set(seen) == {mass} and np.ptp(run.observe("total_energy")) < 1e-12
        assert run.events[0].t == pytest.approx(np.sqrt(2 / gravity)) and run.p[-1] == pytest.approx(mass * run.v[-1])


def test_a_thousand_times_are_no_more_work_than_ten():
    """Over 10,000 steps, what Python is called for does not grow with the number of times."""
    run = lv.simulate(OSCILLATOR, x0=[0.0, 1.0], scheme="gauss-2", h=0.01, t_end=100.0)
    assert run.statistics.steps == 10_000
    calls = []
    for count in (10, 10, 1000):  # the first brings code
        seen, times = [0], np.linspace(0.5, 99.5, count)
        sys.setprofile(lambda frame, event, argument, seen=seen: seen.__setitem__(0, seen[0] + 1))
        try:
            found = run.at(times).x
        finally:
            sys.setprofile(None)
        assert np.abs(found[:, 0] - np.sin(times)).max() < 1e-8
        calls.append(seen[0])
    assert calls[2] < 1.5 * calls[1] + 100


@pytest.mark.parametrize(("rods", "mass"), [(1, 2.0), (2, 2.0), (2, 2e-15), (60, 2.0)])
def test_joints_answer_to_a_kick(rods, mass):
    """A rod that hangs is kicked at its centre: as a rod about its hinge, not as its coordinates would have it.

    Of a chain, all rods begin to move; the momentum that was given is that of the motion, seen along what joints allow.
    """
    mb = lv.Multibody(gravity=[0, -9.81], planar=True)
    last, bodies = mb.ground, []
    for i in range(rods):
        rod = mb.rod(f"rod {i}", a=[0, -i], b=[0, -i - 1], mass=mass)
        mb.revolute(f"hinge {i}", last, rod, at=[0, -i])
        last, bodies = rod, [*bodies, rod]

    def action(v):
        v = v.copy()
        v[0] += 3.0
        return {"v": v}

    events = [lv.Event(lambda t: t - 0.05, name="kick", action=action)]
    run = mb.simulate(t_end=0.1, h=0.01, events=events)
    behind = np.flatnonzero(run.t == 0.05)[-1]
    turning = np.array([run[f"{rod.name}.omega"][behind] for rod in bodies]).ravel()
    # in the angles of a chain that hangs: mass matrix and momentum at half the length of the first rod
    n = np.arange(rods)
    below = rods - 1 - np.maximum.outer(n, n)
    moment = float(bodies[0].element.parameters.values["moment"])  # a little more than that of a line, it is not thin
    M = mass * (below + 0.5 - 0.25 * np.eye(rods)) + moment * np.eye(rods)
    assert turning == pytest.approx(np.linalg.solve(M, mass * 3.0 * 0.5 * (n == 0)), rel=1e-9, abs=1e-12)
    assert mb.system.uses_sparse_path == (rods == 60)
    assert np.abs(run["velocity_constraint"][behind]).max() < 1e-12


@pytest.mark.parametrize("options", [dict(h=0.1), dict(tolerance=1e-8)], ids=["equal", "adaptive"])
def test_a_step_that_ends_at_an_event_begins_at_its_own_time(options):
    """The last step of a run of ``x' = cos t`` that ends at x = 0.5 takes the rates of its own times."""
    stop = lv.Event(lambda x: x[0] - 0.5, name="stop", terminal=True)
    model = lv.FirstOrder("x", rhs=lambda x, t: [m.cos(t)])
    run = lv.simulate(model, x0=[0.0], scheme="radau-iia-5", t_end=1.0, events=[stop], **options)
    assert run.t[-1] == pytest.approx(np.arcsin(0.5), abs=1e-7) and run.x[-1, 0] == pytest.approx(0.5, abs=1e-7)


def test_velocities_after_a_kick_do_not_depend_on_the_units_of_constraints():
    """A point on a line in space, given by two planes: the kick keeps what is along the line."""
    for scale in (1e-4, 1.0, 1e4):
        line = lv.System(
            "x y z",
            kinetic=lambda v: v @ v,
            constraints=lambda q, scale=scale: [scale * (q[0] - q[1]), (q[1] - q[2]) / scale],
        )
        kick = lv.Event(lambda t: t - 0.05, name="kick", action=lambda v: {"v": v + np.array([3.0, 0.0, 0.0])})
        run = lv.simulate(line, [0.0] * 3, [0.0] * 3, h=0.01, t_end=0.1, events=[kick])
        assert run.v[-1] == pytest.approx([1.0, 1.0, 1.0], rel=1e-9)
