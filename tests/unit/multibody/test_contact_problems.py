"""Ready problems with contact: what is known of each, and that nothing is lost that is not on an account."""

import numpy as np
import pytest
from scipy.optimize import brentq

import livens as lv
from livens.problems import newtons_cradle as cradle
from livens.problems import snooker, tippe_top
from livens.problems.ball_in_a_bowl import BOWL, RADIUS, bowl_mechanism
from livens.problems.bouncing_ball import bouncing_ball_mechanism
from livens.problems.box_stack import stack_mechanism


def closed(run, tolerance=1e-12):
    """The balance of energy holds, and nothing is gained."""
    assert run.summary.max_energy_drift < tolerance
    assert np.diff(run.dissipated_energy).min(initial=0.0) >= 0


def test_a_bouncing_ball_leaves_every_time_as_hunt_and_crossley_say():
    damping = 0.1
    run = bouncing_ball_mechanism(height=0.3, damping=damping, friction=0.0, speed=0.0).simulate(t_end=1.2, h=2e-4)
    closed(run)
    touching, speed = run["floor.normal_force"] > 0, run["ball.velocity"][:, 2]
    begins = np.flatnonzero(touching[1:] & ~touching[:-1])
    ends = np.flatnonzero(~touching[1:] & touching[:-1]) + 1
    assert len(begins) >= 3
    for before, after in zip(begins[:3], ends[:3], strict=False):
        came = -speed[before]
        goes = brentq(lambda v: damping * (came + v) - np.log((1 + damping * came) / (1 - damping * v)), 0.1, came)
        # gravity acts as well while it touches
        assert speed[after] == pytest.approx(goes, abs=0.03)


def test_as_many_balls_of_the_cradle_fly_off_as_came():
    run = lv.simulate(lv.problems.load("newtons-cradle", raised=2), t_end=0.6)
    closed(run)
    first = [float(run.t[np.argmax(run[f"impact{i}.normal_force"] > 0)]) for i in (2, 3, 4)]
    assert first == sorted(first) and first[0] > 0.2  # one after the other, from the left
    heights = [run[f"ball{i}.position"][:, 1] + cradle.LENGTH for i in range(1, 6)]
    top = cradle.LENGTH * (1 - np.cos(0.6))
    after = run.t > first[-1] + 0.01
    assert [float(height[after].max() / top) for height in heights[3:]] == pytest.approx([1, 1], abs=2e-2)
    assert max(float(height[after].max()) for height in heights[:2]) < 1e-3 * top + 1e-4


def test_the_period_of_a_ball_that_rolls_in_a_bowl():
    run = bowl_mechanism(angle=0.05).simulate(t_end=1.6, h=5e-4)
    closed(run)
    x, t = run["ball.position"][:, 0], run.t
    i = np.flatnonzero(x[1:] * x[:-1] < 0)
    zeros = t[i] - x[i] * (t[i + 1] - t[i]) / (x[i + 1] - x[i])
    period = 2 * np.pi * np.sqrt(7 * (BOWL - RADIUS) / (5 * 9.81))
    assert 2 * np.diff(zeros) == pytest.approx(period * (1 + 0.05**2 / 16), rel=1e-3)


def test_snooker_balls_end_with_two_and_five_sevenths():
    run = snooker.snooker_mechanism(speed=1.0).simulate(t_end=0.5, h=4e-5)
    closed(run)
    white, red = run["white.velocity"][-1, 0], run["red.velocity"][-1, 0]
    assert (white, red) == pytest.approx((2 / 7, 5 / 7), rel=2e-3)
    # sliding until both roll loses this, with 7/10 m v^2 for a ball that rolls
    lost = 0.7 * snooker.MASS * (1 - (2 / 7) ** 2 - (5 / 7) ** 2)
    accounts = run.observe("dissipated_energy", by="element")
    assert accounts["white-cloth sliding"][-1] + accounts["red-cloth sliding"][-1] == pytest.approx(lost, rel=1e-2)


@pytest.mark.slow
def test_a_stack_of_boxes_comes_to_rest_and_every_level_carries_what_is_above():
    run = stack_mechanism(count=2).simulate(t_end=1.0, h=5e-4)
    closed(run)
    weights = [9.81 * 100 * (0.2 * 0.85**i) ** 2 for i in range(2)]
    assert run["floor.normal_force"][-1] == pytest.approx(sum(weights), rel=1e-4)
    assert run["level1.normal_force"][-1] == pytest.approx(weights[1], rel=1e-4)
    assert np.abs(run["box2.velocity"][-1]).max() < 2e-3  # below this, friction is smooth


@pytest.mark.slow
def test_dominoes_fall_one_after_the_other():
    run = lv.simulate(lv.problems.load("dominoes"))
    closed(run)
    hits = [float(run.t[np.argmax(run[f"hit{i}.normal_force"] > 0)]) for i in (1, 2, 3)]
    assert 0.1 < hits[0] < hits[1] < hits[2]
    for i in range(1, 5):
        assert run[f"domino{i}.rotation"][-1, 1, 1] < 0.5, "it lies, or leans on the next"
    assert run["domino4.rotation"][-1, 1, 1] == pytest.approx(0.0, abs=0.01)


def test_a_rattleback_turns_round_if_it_is_spun_the_wrong_way():
    wrong = lv.simulate(lv.problems.load("rattleback"))
    closed(wrong)
    spin = wrong["stone.omega"][:, 2]
    assert spin[0] == pytest.approx(-5.0) and spin[-1] > 0.2
    plain = lv.simulate(lv.problems.load("rattleback", skew=0.0))
    assert plain["stone.omega"][-1, 2] < -1.0  # with its axes where its surface has them, it does not
    right = lv.simulate(lv.problems.load("rattleback", spin=5.0), t_end=4.0)
    closed(right)
    assert right["stone.omega"][-1, 2] > 2.5  # it goes on, a little slower


def test_a_tippe_top_stands_on_its_head_and_keeps_jelletts_number():
    run = lv.simulate(lv.problems.load("tippe-top"), t_end=3.6)
    closed(run)
    upright = run["top.rotation"][:, 2, 2]
    assert upright[0] > 0.99 and upright[-1] < -0.95
    R, omega = run["top.rotation"], run["top.omega"]
    L = np.einsum("tij,j,tkj,tk->ti", R, np.array(tippe_top.INERTIA), R, omega)
    arm = tippe_top.OFFSET * R[:, :, 2] - [0, 0, tippe_top.RADIUS]
    jellett = -np.einsum("ti,ti->t", L, arm)
    # the depth of the contact, which the arm leaves out, is a thousandth of the radius
    assert np.abs(jellett / jellett[0] - 1).max() < 5e-3
    # it lifts its weight by what it loses in spin
    assert run["top.position"][-1, 2] - run["top.position"][0, 2] > 1.8 * tippe_top.OFFSET
