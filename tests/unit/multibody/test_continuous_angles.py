"""Springs, servos, limits and controllers act on the continuous angle, over any number of revolutions.

References are the reduced equations of motion of one rotor, solved by DOP853, or closed forms.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import livens as lv

INERTIA = 0.5


def _rotor(rate=0.0, angle=None, gravity=None):
    mb = lv.Multibody(gravity=gravity)
    rod = mb.body("rod", mass=1.0, inertia=np.diag([0.4, 0.4, INERTIA]))
    hinge = mb.revolute("hinge", mb.ground, rod, at=[0, 0, 0], axis="z")
    mb.initial(hinge, rate=rate, **({} if angle is None else dict(angle=angle)))
    return mb, hinge


def _exact(torque, rate, angle=0.0, t_end=3.0):
    solution = solve_ivp(
        lambda t, y: [y[1], torque(y[0], y[1]) / INERTIA], (0, t_end), [angle, rate], "DOP853", rtol=1e-12, atol=1e-12
    )
    return solution.y[:, -1]


def _order(mb, exact, steps=(0.02, 0.01, 0.005, 0.0025), t_end=3.0, **options):
    errors = [abs(mb.simulate(h=h, t_end=t_end, **options)["hinge.angle"][-1] - exact) for h in steps]
    return np.polyfit(np.log(steps), np.log(errors), 1)[0]


@pytest.mark.parametrize("tier", ["fused", "tree", "assembled"])
def test_a_torsion_spring_over_several_revolutions_oscillates_harmonically(tier):
    mb, hinge = _rotor(rate=12.0)
    mb.torsion_spring("spring", hinge, stiffness=0.4)
    omega = np.sqrt(0.4 / INERTIA)
    run = mb.simulate(h=0.005, t_end=6.0, tier=tier)
    assert np.abs(run["hinge.angle"]).max() > 4 * np.pi  # amplitude 13.4 rad
    assert np.abs(run["hinge.angle"] - 12 / omega * np.sin(omega * run.t)).max() < 300 * 0.005**2  # second order
    assert np.allclose(run["spring.torque"], -0.4 * run["hinge.angle"], atol=1e-10)
    assert run.summary.max_energy_drift < 1e-12


def test_order_of_a_spring_over_several_revolutions():
    mb, hinge = _rotor(rate=12.0)
    mb.torsion_spring("spring", hinge, stiffness=0.4)
    omega = np.sqrt(0.4 / INERTIA)
    assert _order(mb, 12 / omega * np.sin(3 * omega)) == pytest.approx(2.0, abs=0.02)


def test_the_rest_angle_may_be_more_than_half_a_turn_away():
    mb, hinge = _rotor()
    mb.torsion_spring("spring", hinge, stiffness=0.5, rest_angle=5.0)
    omega = np.sqrt(0.5 / INERTIA)
    run = mb.simulate(h=0.001, t_end=3.0)
    assert np.abs(run["hinge.angle"] - 5.0 * (1 - np.cos(omega * run.t))).max() < 1e-4


def test_initial_angles_count_revolutions():
    mb, hinge = _rotor(angle=7.0)
    mb.torsion_spring("spring", hinge, stiffness=0.5)
    run = mb.simulate(h=0.001, t_end=1.0)
    assert run["spring.torque"][0] == pytest.approx(-3.5, abs=1e-12)


def test_a_servo_turns_back_all_the_way():
    mb, hinge = _rotor(rate=15.0)
    mb.pd(hinge, kp=1.0, kd=0.1)
    exact = _exact(lambda x, v: -1.0 * x - 0.1 * v, 15.0)
    assert _order(mb, exact[0]) == pytest.approx(2.0, abs=0.05)


def test_an_integral_controller_counts_revolutions():
    mb, hinge = _rotor()
    mb.pid(hinge, kp=4.0, ki=1.0, kd=3.0, reference=8.0)
    run = mb.simulate(h=0.01, t_end=40.0)
    assert run["hinge.angle"][-1] == pytest.approx(8.0, abs=1e-4)


def test_a_limit_beyond_half_a_turn_stops_the_joint():
    mb, hinge = _rotor(rate=2.0)
    mb.limit("end", hinge, upper=7.0, stiffness=1e3)
    run = mb.simulate(h=0.002, t_end=6.0)
    assert run["hinge.angle"].max() == pytest.approx(7.0 + 2 * np.sqrt(INERTIA / 1e3), abs=1e-3)
    assert run["hinge.rate"][-1] == pytest.approx(-2.0, abs=1e-4)


def test_laws_of_motors_receive_the_continuous_angle():
    mb, hinge = _rotor(rate=12.0)
    mb.motor(hinge, torque=lambda angle, rate: -0.4 * angle - 0.01 * rate)
    exact = _exact(lambda x, v: -0.4 * x - 0.01 * v, 12.0)
    assert _order(mb, exact[0]) == pytest.approx(2.0, abs=0.02)


def test_sampled_controllers_measure_the_continuous_angle():
    mb, hinge = _rotor(rate=12.0)
    measured = []
    mb.sampled_controller(
        "servo", hinge, period=0.01, law=lambda t, y: measured.append(y[0]) or 0.0, inputs="hinge.angle"
    )
    run = mb.simulate(h=0.01, t_end=3.0)
    assert np.allclose(measured, run["hinge.angle"], atol=1e-12) and measured[-1] > 10 * np.pi


def test_single_steps_and_chunks_follow_the_same_revolutions_bit_for_bit():
    mb, hinge = _rotor(rate=12.0)
    mb.torsion_spring("spring", hinge, stiffness=0.4)
    step = lv.prepare(mb.problem("rotor", h=0.01, t_end=3.0))
    run = step.run()
    state = step.start()
    for i in range(300):
        state = step.step(state)
        assert np.array_equal(state.q, run.q[i + 1])


def test_a_run_over_several_revolutions_is_resumed_bit_for_bit(tmp_path):
    mb, hinge = _rotor(rate=12.0)
    mb.torsion_spring("spring", hinge, stiffness=0.4)
    whole = mb.simulate(h=0.01, t_end=3.0)
    mb.simulate(h=0.01, t_end=1.3, out=tmp_path / "run.h5")
    resumed = lv.resume(tmp_path / "run.h5", t_end=3.0, system=mb.system)
    assert np.array_equal(resumed.q, whole.q)
    assert np.array_equal(resumed["spring.torque"], whole["spring.torque"])


def test_events_and_revolutions_go_together():
    mb, hinge = _rotor(rate=12.0)
    mb.torsion_spring("spring", hinge, stiffness=0.4)
    omega = np.sqrt(0.4 / INERTIA)
    turned = lv.Event(lambda q: q[4], name="turn")
    run = mb.simulate(h=0.002, t_end=6.0, events=[turned])
    assert len(run.events) >= 12
    assert np.abs(run["hinge.angle"] - 12 / omega * np.sin(omega * run.t)).max() < 300 * 0.002**2


def test_ensembles_and_gradients_refuse_what_they_cannot_follow():
    mb, hinge = _rotor(rate=12.0)
    mb.torsion_spring("spring", hinge, stiffness=0.4)
    problem = mb.problem("rotor", h=0.01, t_end=3.0)
    with pytest.raises(lv.LivensError, match="revolution"):
        lv.prepare(problem).value_and_gradient(lambda q: q[0])()
    members = lv.ensemble(problem, parameters={"spring.stiffness": [0.4, 60.0]})
    assert "revolution" in members.failures[0] and 1 not in members.failures


def test_models_that_differ_in_their_axes_only():
    """Models of the same structure share compiled steps; the branches of their angles follow their own axes."""

    def pendulum(end):
        mb = lv.Multibody(gravity=None)
        rod = mb.rod("rod", a=[0, 0, 0], b=end, mass=1.0, radius=0.05)
        hinge = mb.revolute("hinge", mb.ground, rod, at=[0, 0, 0], axis=np.cross(end, [0.3, 0.5, 0.7]))
        mb.torsion_spring("spring", hinge, stiffness=30.0)
        mb.initial(hinge, rate=1.0)
        return mb

    ends = [[0.3, 0.2, 0.1], [-0.3, 0.1, -0.2], [0.1, -0.3, 0.2], [-0.2, -0.1, 0.3]]
    assert len({pendulum(end).system.fingerprint for end in ends}) == 1
    for end in ends:
        run = pendulum(end).simulate(t_end=0.2, h=0.01)
        np.testing.assert_allclose(run["potential_energy"], 15.0 * run["hinge.angle"] ** 2, rtol=0, atol=1e-12)
