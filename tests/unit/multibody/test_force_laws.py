"""Forces by laws of users: between points, at moving markers, and on bodies, beside reduced equations."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import livens as lv
from livens import math as m


def _error(run, name, rhs, start, t_end):
    """Return the difference of a body's position from a solution of reduced equations, at the end."""
    exact = solve_ivp(rhs, (0, t_end), start, rtol=1e-11, atol=1e-12).y[:3, -1]
    return float(np.abs(np.asarray(run[f"{name}.position"])[-1] - exact).max())


def _pendulum():
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    ball = mb.particle("ball", at=[1, 0, 0], mass=2.0)
    mb.force_law(
        "string",
        ball,
        [0, 0, 0],
        lambda length, rate, t, k: k.c * rate + 0.3 * m.sin(t),
        potential=lambda length, k: 50 * (length - 1) ** 2 + k.e * (length - 1) ** 4,
        parameters=dict(c=0.5, e=200.0),
    )
    return mb


def _pendulum_rhs(t, y):
    x, v = y[:3], y[3:]
    length = np.linalg.norm(x)
    pull = 0.5 * (x @ v) / length + 0.3 * np.sin(t) + 100 * (length - 1) + 800 * (length - 1) ** 3
    return [*v, *(-pull * x / length / 2 + [0, 0, -9.81])]


def test_a_force_law_has_the_motion_of_the_reduced_equations_with_order_two():
    start = [1, 0, 0, 0, 0, 0]
    errors = [_error(_pendulum().simulate(t_end=1, h=h), "ball", _pendulum_rhs, start, 1) for h in (4e-3, 2e-3, 1e-3)]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all(abs(orders - 2) < 0.1), errors
    run = _pendulum().simulate(t_end=1, h=4e-3)
    assert run.summary.max_energy_drift < 1e-12  # of the balance with supplied and dissipated energy
    assert np.allclose(run["string.length"], np.linalg.norm(run["ball.position"], axis=1), atol=1e-14)


def test_a_one_sided_potential_conserves_the_energy():
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    ball = mb.particle("ball", at=[0, 0, 1.5], mass=1.0)
    mb.force_law("tyre", [0, 0, 0], ball, potential=lambda length: 2e3 * m.maximum(1 - length, 0) ** 2)
    run = mb.simulate(t_end=3, h=2e-3)
    heights = np.asarray(run["ball.position"])[:, 2]
    assert heights.min() < 1 and abs(heights[1000:].max() - 1.5) < 1e-3
    assert np.ptp(run["total_energy"]) < 1e-12 * 20


def test_springs_and_dampers_follow_a_moving_marker():
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    ball = mb.particle("ball", at=[0, 0, 0.5], mass=2.0)
    road = mb.marker("road", position=lambda t: [0.1 * m.cos(3 * t), 0, 0.1 * m.sin(5 * t)])
    mb.spring_damper("tyre", road, ball, stiffness=500, damping=8, free_length=0.55)

    def rhs(t, y):
        x = y[:3] - [0.1 * np.cos(3 * t), 0, 0.1 * np.sin(5 * t)]
        rate = y[3:] - [-0.3 * np.sin(3 * t), 0, 0.5 * np.cos(5 * t)]
        length = np.linalg.norm(x)
        pull = 500 * (length - 0.55) + 8 * (x @ rate) / length
        return [*y[3:], *(-pull * x / length / 2 + [0, 0, -9.81])]

    run = mb.simulate(t_end=1, h=1e-3)
    assert _error(run, "ball", rhs, [0, 0, 0.5, 0, 0, 0], 1) < 2e-5
    assert run.summary.max_energy_drift < 1e-12
    first = np.hypot(0.1, 0.5)
    assert run["tyre.length"][0] == pytest.approx(first, abs=1e-14)


def test_a_load_that_depends_on_the_state_of_a_free_body():
    mb = lv.Multibody()
    body = mb.box("body", size=[1, 0.6, 0.3], at=[0, 0, 0], mass=3.0)
    mb.wrench(
        "thruster",
        body,
        force=lambda position, velocity: -4 * position - 0.5 * velocity,
        torque=lambda rotation, omega: -0.2 * omega + 0.5 * m.cross([0, 0, 1.0], rotation[:, 2]),
    )
    mb.initial(body, velocity=[1, 0, 0], omega=[0.3, 0.2, 1.0])
    run = mb.simulate(t_end=1, h=1e-3)
    J = np.diag([3 / 12 * (0.36 + 0.09), 3 / 12 * 1.09, 3 / 12 * 1.36])

    def rhs(t, y):
        R, w = y[6:15].reshape(3, 3), y[15:]
        Jw = R @ J @ R.T
        torque = -0.2 * w + 0.5 * np.cross([0, 0, 1.0], R[:, 2])
        turn = np.cross(w, R.T).T
        acceleration = np.linalg.solve(Jw, torque - np.cross(w, Jw @ w))
        return np.concatenate([y[3:6], (-4 * y[:3] - 0.5 * y[3:6]) / 3, turn.ravel(), acceleration])

    start = np.concatenate([[0, 0, 0, 1, 0, 0], np.eye(3).ravel(), [0.3, 0.2, 1.0]])
    exact = solve_ivp(rhs, (0, 1), start, rtol=1e-11, atol=1e-12).y[:, -1]
    assert np.abs(run["body.position"][-1] - exact[:3]).max() < 1e-6
    assert np.abs(run["body.omega"][-1] - exact[15:]).max() < 1e-6


@pytest.mark.parametrize(
    "law, words",
    [
        (lambda length, rate, t, k, more: 1.0, "has 5 arguments"),
        (lambda length: [length, 1.0], "must return one number"),
        (3.0, "must be a function"),
        (None, "needs a force or a potential"),
    ],
)
def test_a_wrong_law_is_refused_at_the_call(law, words):
    mb = lv.Multibody()
    ball = mb.particle("ball", at=[1, 0, 0], mass=1.0)
    with pytest.raises(lv.InputError, match=words):
        mb.force_law("law", ball, [0, 0, 0], law)
    assert "law" not in mb._force_elements


def test_wrong_loads_and_uses_of_markers_are_refused_at_the_call():
    mb = lv.Multibody()
    ball = mb.particle("ball", at=[1, 0, 0], mass=1.0)
    with pytest.raises(lv.InputError, match=r"shape \(3,\)"):
        mb.wrench("load", ball, force=lambda position: position[0])
    with pytest.raises(lv.InputError, match="has 2 arguments"):
        mb.wrench("load", ball, force=lambda t, q: [0, 0, t])
    with pytest.raises(lv.InputError, match="function of time"):
        mb.marker("road", position=[0, 0, 0])
    road = mb.marker("road", position=lambda t: [t, 0, 0])
    with pytest.raises(lv.InputError, match="moving marker"):
        mb.cable("rope", ball, road, stiffness=1.0)


def test_a_controller_of_the_wrenches_of_a_free_body_is_the_exact_recursion(tmp_path):
    def satellite():
        mb = lv.Multibody()
        body = mb.box("body", size=[1, 0.6, 0.3], at=[0, 0, 0], mass=3.0)
        thrust, wheel = mb.input("thrust", [0.0, 0, 0]), mb.input("wheel", [0.0, 0, 0])
        mb.wrench("thruster", body, force=thrust, torque=wheel)

        def law(t, measured):
            return np.concatenate([-4 * measured[:3] - 3 * measured[3:6], -0.5 * measured[6:]])

        measured = ["body.position", "body.velocity", "body.omega"]
        mb.sampled_controller("pilot", thrust, wheel, period=0.01, law=law, inputs=measured)
        mb.initial(body, velocity=[1, 0, 0], omega=[0.3, 0.2, 1.0])
        return mb

    run = satellite().simulate(t_end=2, h=0.01)
    x, v = 0.0, 1.0
    for _ in range(200):
        u = -4 * x - 3 * v
        x, v = x + 0.01 * v + 0.5e-4 * u / 3, v + 0.01 * u / 3
    assert run["body.position"][-1, 0] == pytest.approx(x, abs=1e-13)
    assert np.linalg.norm(run["body.omega"][-1]) < 0.2
    mb = satellite()
    mb.simulate(t_end=0.7, h=0.01, out=tmp_path / "run.h5")
    resumed = lv.resume(tmp_path / "run.h5", system=mb.system, t_end=2)
    assert np.array_equal(resumed.q, run.q) and np.array_equal(resumed.v, run.v)


def test_a_controller_commands_inputs_of_one_element_only():
    mb = lv.Multibody()
    ball = mb.particle("ball", at=[0, 0, 0], mass=1.0)
    push = mb.input("push", [0.0, 0, 0])
    mb.sampled_controller("c", push, period=0.1, law=lambda t, y: [0, 0, 0], inputs="ball.position")
    with pytest.raises(lv.InputError, match="is not used"):
        mb.simulate(t_end=1, h=0.1)
    mb.wrench("a", ball, force=push)
    assert mb.simulate(t_end=0.2, h=0.1).status == "complete"


@pytest.mark.parametrize("law, state", [(lambda t: 0, ()), (lambda t, y: 0, [0.0]), (lambda t, y, s: 0, ())])
def test_laws_of_controllers_with_other_arguments_are_refused_at_the_call(law, state):
    mb = lv.Multibody()
    wheel = mb.cylinder("wheel", at=[0, 0, 0], length=0.1, radius=0.5, mass=2)
    axle = mb.revolute("axle", mb.ground, wheel, axis="z")
    with pytest.raises(lv.InputError, match="the law is called with"):
        mb.sampled_controller("c", axle, period=0.1, law=law, inputs="axle.angle", state=state)


# -- nonlinear bushings -----------------------------------------------------------------------------------------------
def _mounted(**bushing):
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    block = mb.box("block", size=[0.2, 0.1, 0.1], at=[0, 0, 0], mass=2.0)
    mb.bushing("rubber", mb.ground, block, **bushing)
    mb.initial(block, velocity=[1.0, 0.2, 0], omega=[1, 2, 3])
    return mb.simulate(h=1e-3, t_end=0.5)


def test_a_nonlinear_bushing_by_formula_parameters_and_table():
    stretch = np.linspace(-0.2, 0.2, 401)
    table = 500 * stretch + 4e4 * stretch**3  # a cubic, which the spline interpolates exactly
    runs = (
        _mounted(stiffness=[500] * 3 + [5] * 3, potential=lambda displacement: sum(1e4 * x**4 for x in displacement)),
        _mounted(
            stiffness=[500] * 3 + [5] * 3,
            potential=lambda displacement, k: k.c * sum(x**4 for x in displacement),
            parameters=dict(c=1e4),
        ),
        _mounted(
            potential=lambda displacement, rotation: (
                sum(m.spline(x, stretch, table, derivative=-1) for x in displacement) + 2.5 * rotation @ rotation
            )
        ),
    )
    for run in runs:
        assert run.summary.max_energy_drift < 1e-12
        x = run["block.position"]
        assert run["rubber.force"] == pytest.approx(-500 * x - 4e4 * x**3, abs=1e-8)
        assert x == pytest.approx(runs[0]["block.position"], abs=1e-9)


@pytest.mark.parametrize(
    "bushing, words",
    [
        (dict(), "needs a stiffness, a potential, or both"),
        (dict(potential=lambda displacement, rotation, k: 0), "3 arguments"),
        (dict(potential=lambda displacement: displacement), "must return one number"),
        (dict(potential=lambda displacement: None), "returns None"),
        (dict(potential=lambda displacement, k: k.X, parameters=dict(X=1.0)), "reserved"),
    ],
)
def test_wrong_potentials_of_bushings_are_refused_at_the_call(bushing, words):
    with pytest.raises(lv.InputError, match=words):
        _mounted(**bushing)
