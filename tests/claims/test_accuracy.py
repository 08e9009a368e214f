"""Error estimates of runs against exact errors: estimates called resolved are reliable."""

import json

import numpy as np
import pytest

import livens as lv
import truth
from livens.analysis.accuracy.estimate import (
    ACCEPTABLE,
    NOT_RESOLVED,
    ORDER_NOT_OBSERVED,
    RESOLVED,
    RESOLVED_UNTIL,
    ROUND_OFF,
    UNKNOWN,
)
from livens.analysis.report import print_report

FEW = ("nonlinear-pendulum", "simple-pendulum", "rotor", "spring-chain", "mass-spring-redundant")
SCHEMES = ("livens-em", "gauss-2", "radau-iia-2", "livens-midpoint", "stormer-verlet", "heun")
STEPS = (20, 64, 160, 500, 1600)
#: Chaotic: no step resolves all of the run.
CHAOTIC = ("double-pendulum", "dominoes", "balls-in-a-box")


def hold(values, least):
    """At least 99 % of the resolved values within a factor of 3, none below a tenth; nothing large goes unseen."""
    resolved = [value for value in values if value[4] == RESOLVED]
    assert len(resolved) >= least
    assert truth.share(resolved) >= 0.99, [value for value in resolved if not 1 / 3 <= value[-2] / value[-1] <= 3]
    assert truth.share(resolved, low=0.1, high=np.inf) == 1.0
    unseen = [value for value in values if value[4] in ACCEPTABLE and value[-1] >= 0.2]
    assert not unseen


def test_estimates_hold():
    hold(truth.table((n, s, k) for n in FEW for s in SCHEMES if s in truth.fitting(n) for k in STEPS), 50)


@pytest.mark.slow
def test_estimates_hold_for_many_problems_and_schemes():
    values = []
    for name in truth.SPANS:
        chosen = truth.fitting(name)
        chosen = chosen[:: max(1, len(chosen) // 5)]
        values += truth.table((name, scheme, steps) for scheme in chosen for steps in (*STEPS, 4000))
    assert {value[0] for value in values} == set(truth.SPANS)
    hold(values, 900)


@pytest.mark.slow
@pytest.mark.parametrize("name", [entry.name for entry in lv.problems.all()])
def test_ready_problems_are_resolved_at_their_own_steps(name):
    found = lv.simulate(lv.problems.load(name), progress=False).accuracy(seconds=60.0)
    assert found.verdict == RESOLVED_UNTIL if name in CHAOTIC else found.resolved, str(found)


@pytest.mark.parametrize("name", ["free-rigid-body", "heavy-top", "viscous-pendulum", "euler-top"])
def test_some_ready_problems_are_resolved_at_their_own_steps(name):
    found = lv.simulate(lv.problems.load(name)).accuracy(seconds=60.0)
    assert found.resolved, str(found)


# -- verdicts ---------------------------------------------------------------------------------------------------------
def test_steps_longer_than_the_period_are_not_resolved():
    run = lv.simulate(lv.problems.load("simple-pendulum"), h=5.0, t_end=100.0)
    found = run.accuracy()
    assert found.verdict == NOT_RESOLVED and found.resolved is False
    assert "NOT RESOLVED" in str(found) and "steps per oscillation" in str(found)


def test_the_error_at_the_end_and_over_time():
    problem = lv.problems.load("nonlinear-pendulum")
    run = lv.simulate(problem, h=0.05, t_end=13.0)
    found = run.accuracy()
    exact = np.array([problem.reference(t)["q"] for t in found.t])
    rows = np.searchsorted(run.t, found.t - 1e-9)
    true = np.linalg.norm(run.q[rows] - exact, axis=1) / found.size["q"]
    assert found.at_end["q"] == pytest.approx(true[-1], rel=0.2)
    assert found.error["q"] == pytest.approx(true.max(), rel=0.2)
    assert np.abs(found.over_time["q"] - true).max() < 0.2 * true.max()


def test_round_off():
    free = lv.System("x", kinetic=lambda v: v @ v / 2)
    found = lv.simulate(free, [0.0], [1.0], scheme="livens-em", h=0.1, t_end=10.0).accuracy()
    assert found.verdict == ROUND_OFF and found.worst < 1e-12


def test_accurate_for_a_while():
    found = lv.simulate(lv.problems.load("double-pendulum"), t_end=30.0).accuracy()
    assert found.verdict == RESOLVED_UNTIL and found.resolved is False
    assert 3 < found.until["q"] < 10 and "until t = " in str(found)


def test_multipliers_of_low_order_are_seen():
    """Gauss' method with two stages takes multipliers from its stages, where they are of first order."""
    problem = lv.problems.load("viscous-pendulum")
    found = lv.simulate(problem, scheme="gauss-2", h=0.005, t_end=2.0).accuracy()
    reference = lv.simulate(problem, scheme="radau-iia-3", h=0.0005, t_end=2.0)
    run = lv.simulate(problem, scheme="gauss-2", h=0.005, t_end=2.0)
    true = np.abs(run.x - reference.x[::10])[1:].max() / np.ptp(reference.x, axis=0).max()
    assert found.verdict == ORDER_NOT_OBSERVED and 1 < found.error["x"] / true < 3


def test_wrong_multipliers_are_seen():
    """A multiplier that is three times what it ought to be."""
    run = lv.simulate(lv.problems.load("viscous-pendulum"), scheme="radau-iia-3", h=0.005, t_end=2.0)
    run._arrays = {**run._arrays, "x": run.x * np.where(np.arange(run.x.shape[1]) == run.x.shape[1] - 1, 3.0, 1.0)}
    assert run.accuracy().verdict == NOT_RESOLVED


def test_runs_with_event_actions_are_refined_with_their_events():
    """A ball that bounces, compared with its parabolas: the refined runs bounce as well."""
    ball = lv.System("z", kinetic=lambda v: v @ v / 2, potential=lambda q: 9.81 * q[0])
    floor = lv.Event(lambda q: q[0], name="floor", direction=-1, action=lambda v: {"v": -0.8 * v})
    run = lv.simulate(ball, [1.0], [0.0], h=0.01, t_end=1.0, events=[floor])
    fall = np.sqrt(2 / 9.81)
    up = run.t > fall
    exact = np.where(up, 0.8 * 9.81 * fall * (run.t - fall) - 9.81 / 2 * (run.t - fall) ** 2, 1 - 9.81 / 2 * run.t**2)
    assert len(run.events) == 1 and np.abs(run.q[:, 0] - exact).max() < 1e-13
    assert run.accuracy().verdict == ROUND_OFF
    before = lv.simulate(ball, [1.0], [0.0], h=0.01, t_end=0.4, events=[floor])
    assert not before.events and before.accuracy().verdict in (*ACCEPTABLE, ROUND_OFF)


def test_algebraic_variables_by_their_defect():
    """x' = y with 0 = y + x - sin t: y is as right as the equations are fulfilled."""
    model = lv.FirstOrder("x", rhs=lambda y: [y[0]], algebraic="y", constraints=lambda x, y, t: [y[0] + x[0] - t**2])
    found = lv.simulate(model, x0=[1.0], scheme="radau-iia-2", h=0.05, t_end=2.0).accuracy()
    assert found.verdicts["y"] in ACCEPTABLE and found.error["y"] < 1e-3
    wrong = lv.simulate(model, x0=[1.0], scheme="gauss-2", h=0.05, t_end=2.0).accuracy()
    assert wrong.verdicts["x"] in ACCEPTABLE


def test_controlled_steps():
    pendulum = lv.FirstOrder("angle rate", rhs=lambda x: [x[1], -lv.math.sin(x[0])])
    control = lv.StepControl(tolerance=1e-6)
    run = lv.simulate(pendulum, x0=[2.0, 0.0], scheme="gauss-3", h=0.01, t_end=10.0, control=control)
    exact = lv.simulate(pendulum, x0=[2.0, 0.0], scheme="gauss-6", h=0.01, t_end=10.0)
    found = run.accuracy()
    true = np.abs((run.x - exact.at(run.t).x) / found.size["x"]).max()
    assert found.verdict in (RESOLVED, ORDER_NOT_OBSERVED) and 1 / 3 < found.error["x"] / true < 3


def test_fictive_time_and_a_scaling_of_ones_own():
    """The scaling of a run in memory is known; that of a run in a file must be given."""
    kepler = lv.Hamiltonian("x y", kinetic=lambda p: p @ p / 2, potential=lambda q: -1 / lv.math.sqrt(q @ q))
    scaling = lv.scaling.potential(1.5)
    run = lv.simulate(kepler, q0=[0.5, 0], p0=[0, 1.7], scheme="sundman", h=0.02, t_end=5.0, scaling=scaling)
    found = run.accuracy()
    assert found.resolved and found.order == 2
    run._scheme = None
    assert run.accuracy(scaling=scaling).error == found.error


def test_rows_left_out_and_few_steps(tmp_path):
    whole = lv.simulate(lv.problems.load("simple-pendulum"), h=0.01, out=tmp_path / "a.h5")
    some = lv.simulate(lv.problems.load("simple-pendulum"), h=0.01, every=10)
    assert some.accuracy().error["q"] == pytest.approx(whole.accuracy().error["q"], rel=0.1)
    assert lv.load(tmp_path / "a.h5").accuracy().error == whole.accuracy().error
    few = lv.simulate(lv.problems.load("simple-pendulum"), h=0.05, t_end=0.5).accuracy()
    assert few.level == 2 and few.resolved


def test_long_runs_have_coarser_companions_or_a_window():
    run = lv.simulate(lv.problems.load("nonlinear-pendulum"), h=0.005)
    usual = run.accuracy(seconds=1e6)
    run.statistics.wall_s = 10.0
    coarse = run.accuracy(seconds=1.0, fraction=0.75)
    assert (usual.level, coarse.level) == (1, 0)
    assert coarse.error["q"] == pytest.approx(usual.error["q"], rel=0.3)
    window = run.accuracy(seconds=5.0, fraction=0.0)
    assert window.window is not None and "at most about" in str(window)
    assert usual.error["q"] / 1.5 < window.error["q"] < 10 * usual.error["q"]
    run.statistics.wall_s = 1e6
    nothing = run.accuracy(seconds=1e-3, fraction=0.0)
    assert nothing.verdict in (UNKNOWN, RESOLVED, ORDER_NOT_OBSERVED)


def test_what_cannot_be_known(tmp_path):
    own = lv.System("x", kinetic=lambda v: v @ v / 2, potential=lambda q: q @ q / 2)
    run = lv.simulate(own, [1.0], [0.0], scheme="livens-em", h=0.1, t_end=10.0, out=tmp_path / "own.h5")
    assert run.accuracy().resolved
    without = lv.load(tmp_path / "own.h5").accuracy()
    assert without.verdict == UNKNOWN and without.resolved is None and "pass the system" in str(without)
    assert lv.load(tmp_path / "own.h5", system=own).accuracy().resolved
    other = lv.System("x", kinetic=lambda v: v @ v, potential=lambda q: q @ q / 2)
    assert "other equations" in str(lv.load(tmp_path / "own.h5", system=other).accuracy())
    places = lv.simulate(own, [1.0], [0.0], scheme="livens-em", h=0.1, t_end=10.0, store="q")
    assert "the initial value of v was not stored" in str(places.accuracy())


# -- reports ----------------------------------------------------------------------------------------------------------
def test_the_line_in_reports(capsys):
    run = lv.simulate(lv.problems.load("simple-pendulum"), h=5.0, t_end=100.0)
    print_report(run)
    assert "accuracy: q NOT RESOLVED" in capsys.readouterr().out
    print_report(run, accuracy=False)
    assert "accuracy" not in capsys.readouterr().out


def test_the_command_line(tmp_path, monkeypatch, capsys):
    from typer.testing import CliRunner

    from livens.cli import app

    monkeypatch.chdir(tmp_path)
    call = CliRunner().invoke
    assert "NOT RESOLVED" in call(app, ["run", "simple-pendulum", "--h", "5", "--t-end", "100"]).stdout
    found = json.loads(call(app, ["run", "simple-pendulum", "--t-end", "1", "--json"]).stdout)
    assert found["resolved"] is True and set(found["estimated_error"]) == {"q", "v"}
    assert "resolved" not in json.loads(
        call(app, ["run", "simple-pendulum", "--t-end", "1", "--json", "--no-accuracy"]).stdout
    )
    assert "NOT RESOLVED" in call(app, ["report", "simple-pendulum.h5"]).stdout
    assert "accuracy" not in call(app, ["report", "simple-pendulum.h5", "--no-accuracy"]).stdout
    assert json.loads(call(app, ["report", "simple-pendulum.h5", "--json"]).stdout)["resolved"] is False
