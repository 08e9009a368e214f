"""Wheels as gyrostats, compared with reduced equations and between tiers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from test_trees import assert_equal_runs

import livens as lv

INERTIA, WHEEL_INERTIA, AXIS = np.diag([20.0, 25.0, 30.0]), 0.05, np.array([0.0, 0.6, 0.8])
OMEGA, RATE = np.array([0.02, -0.01, 0.03]), 3000 * 2 * np.pi / 60


def satellite(torque=0.0):
    """Return a satellite with a wheel at 3000 revolutions per minute."""
    mb = lv.Multibody(gravity=None)
    bus = mb.body("bus", mass=100.0, inertia=np.diag(INERTIA))
    mb.initial(bus, omega=OMEGA, velocity=[0, 0, 0])
    mb.wheel("wheel", bus, AXIS, WHEEL_INERTIA, rate=RATE, torque=torque)
    return mb


def reference(torque, t_end):
    """Return angular velocity in body axes and spin momentum of the reduced equations, by DOP853."""

    def derivative(t, y):
        omega, momentum = y[:3], y[3]
        rate = np.linalg.solve(INERTIA, -np.cross(omega, INERTIA @ omega + momentum * AXIS) - torque(t) * AXIS)
        return np.r_[rate, torque(t)]

    start = np.r_[OMEGA, WHEEL_INERTIA * (RATE + OMEGA @ AXIS)]
    return solve_ivp(derivative, (0, t_end), start, method="DOP853", rtol=1e-13, atol=1e-14, dense_output=True).sol


def body_rates(run):
    return np.einsum("tij,ti->tj", run["bus.rotation"], run["bus.omega"])


def assert_conserved(run):
    """Energy and the angular momentum of bus and wheel are conserved."""
    momentum = body_rates(run) @ INERTIA + run["wheel.momentum"][:, None] * AXIS
    total = np.einsum("tij,tj->ti", run["bus.rotation"], momentum)
    assert np.abs(total - total[0]).max() < 1e-11 * np.linalg.norm(total[0])
    assert run.summary.max_energy_drift < 1e-11


@pytest.mark.parametrize("torque", [0.0, lambda t: 0.05 * lv.math.sin(2 * t)])
def test_satellite_with_a_fast_wheel(torque):
    """The bus rate converges with order two although the wheel turns by pi in a step."""
    exact = reference(torque if callable(torque) else lambda t: torque, 20.0)
    mb, errors = satellite(torque), []
    for h in (0.02, 0.01):
        run = mb.simulate(t_end=20.0, h=h)
        errors.append(np.abs(body_rates(run) - exact(run.t)[:3].T).max())
        assert_conserved(run)
    assert errors[1] < 5e-6 and errors[0] / errors[1] == pytest.approx(4.0, rel=0.05)
    assert run["wheel.rate"][0] == pytest.approx(RATE, rel=1e-14)


def test_fourth_order_by_composition():
    exact = reference(lambda t: 0.02, 10.0)
    run = satellite(0.02).simulate(t_end=10.0, h=0.01, scheme="suzuki-4:lie-em")
    assert np.abs(body_rates(run) - exact(run.t)[:3].T).max() < 1e-11
    assert_conserved(run)


def test_wheel_and_wheel_body():
    """At a slow rate the wheel moves its carrier as a symmetric body in a bearing does."""
    runs = []
    for as_body in (False, True):
        mb = lv.Multibody(gravity=[0, 0, -9.81])
        across = 0.0 if as_body else 1.0  # the inertia of the wheel across its axis
        frame = mb.body("frame", mass=5.0, inertia=[2.0 + across, 3.0 + across, 3.5])
        mb.spherical("pivot", mb.ground, frame, at=[0, 0, -0.4])
        mb.initial(frame, omega=[0.2, -0.1, 0.3])
        if as_body:
            wheel = mb.body("wheel", mass=1e-9, inertia=[1.0, 1.0, 0.5])
            bearing = mb.revolute("bearing", frame, wheel, at=[0, 0, 0], axis="z")
            mb.initial(bearing, rate=5.0)
        else:
            mb.wheel("wheel", frame, "z", 0.5, rate=5.0)
        runs.append(mb.simulate(t_end=0.5, h=2e-3)["frame.omega"])
    assert np.abs(runs[0][-1] - runs[0][0]).max() > 0.1
    assert np.abs(runs[0] - runs[1]).max() < 2e-4  # both have errors of second order


def carrier(pid):
    """Return a floating arm with two wheels, and PID controllers of its joints."""
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    base = before = mb.box("base", at=[0, 0, 0], size=[0.5, 0.3, 0.1], mass=5.0)
    mb.initial(base, omega=[0.1, 0.2, 0.3], velocity=[0, 0, 0])
    for i in range(2):
        rod = mb.rod(f"rod{i}", a=[0.3 * i, 0, 0], b=[0.3 * (i + 1), 0, 0], mass=1.0, radius=0.03)
        joint = mb.revolute(f"joint{i}", before, rod, at=rod.a, axis="zy"[i])
        mb.initial(joint, rate=1.0)
        if pid:
            mb.pid(joint, kp=5.0, ki=3.0, kd=0.2, reference=0.2)
        before = rod
    mb.wheel("wheel", base, AXIS, 0.01, rate=300.0, torque=lambda t: 0.3 * lv.math.sin(5 * t))
    mb.wheel("small wheel", before, "x", 0.001, rate=-200.0)
    return mb


@pytest.mark.parametrize("pid", [False, True])
def test_wheels_and_integrators_on_trees(pid):
    """Additional coordinates are bodies of the tree: motion as in the reference tier."""
    run = assert_equal_runs(carrier(pid), n_steps=10)
    assert run.summary.max_energy_drift < 1e-12


def test_wheels_in_the_assembled_tier():
    runs = [satellite(0.02).simulate(t_end=0.5, h=0.01, tier=tier) for tier in ("fused", "assembled")]
    assert np.abs(runs[0].q - runs[1].q).max() < 1e-10


def test_wheel_torque_as_input():
    mb = lv.Multibody(gravity=None)
    bus = mb.body("bus", mass=1.0, inertia=[2.0, 2.0, 3.0])
    mb.wheel("wheel", bus, "z", 0.05, torque=mb.input("u"))
    q, v = mb.initial_state
    step = lv.prepare(mb.system, "lie-em", h=0.01)
    drive = step.drive(["u"], ["wheel.momentum", "wheel.rate"], q0=q, v0=v)
    drive.inputs[:] = 0.5
    momentum, rate = drive.advance(10)
    assert momentum == pytest.approx(0.05, rel=1e-12) and rate == pytest.approx(0.05 / 0.05 + 0.05 / 3.0, rel=1e-9)


@pytest.mark.parametrize("planar", [False, True])
def test_wheels_that_nothing_carries(planar):
    mb = lv.Multibody(planar=planar)
    carrier = mb.body("disc", mass=1.0, inertia=1.0) if planar else mb.ground
    with pytest.raises(lv.InputError, match="wheel"):
        mb.wheel("wheel", carrier, "z", 0.05)
