"""Springs and dampers of ball joints, as MJCF files have them."""

import casadi as ca
import numpy as np
import pytest
from conftest import measured_order

import livens as lv
from livens import math as m
from livens.multibody.spherical_joint_forces import squared_angle

FILE = """<mujoco><option gravity="0 0 0"/><worldbody>
<body name="ball" pos="0 0 1"><joint name="socket" type="ball" stiffness="3" damping="{damping}"/>
<geom type="sphere" size="0.2" mass="5"/></body></worldbody></mujoco>"""
INERTIA = 0.4 * 5 * 0.2**2


def drawn(folder, damping, omega):
    (folder / "ball.xml").write_text(FILE.format(damping=damping))
    mb = lv.Multibody.from_mjcf(folder / "ball.xml")
    mb.initial(mb.bodies["ball"], omega=omega)
    return mb


def test_the_square_of_an_angle_is_smooth():
    angles = np.array([0.0, 1e-9, 1e-4, 0.3, 1.04, 1.05, 2.0, 3.1])
    found = [float(squared_angle(np.sin(angle / 2) ** 2)) for angle in angles]
    np.testing.assert_allclose(found, angles**2, rtol=1e-13)
    x = ca.SX.sym("x")
    slope = ca.Function("slope", [x], [ca.gradient(m.to_casadi(squared_angle(m.from_casadi(x)[0])), x)])
    exact = [4.0, *(4 * angle / np.sin(angle) for angle in angles[1:])]
    np.testing.assert_allclose([float(slope(np.sin(angle / 2) ** 2)) for angle in angles], exact, rtol=1e-9)


@pytest.mark.parametrize("damping", [0.0, 0.05])
def test_a_ball_on_its_spring_is_an_oscillator_at_any_angle(tmp_path, damping):
    """About any axis the whole angle obeys ``J a'' + d a' + k a = 0``; here it goes beyond a quarter of a turn."""
    axis, rate = np.array([2.0, -1.0, 2.0]) / 3, 12.0
    decay, frequency = damping / (2 * INERTIA), np.sqrt(3 / INERTIA - (damping / (2 * INERTIA)) ** 2)
    mb = drawn(tmp_path, damping, rate * axis)
    sizes, errors = [0.02, 0.01, 0.005, 0.0025], []
    for h in sizes:
        run = mb.simulate(t_end=1.0, h=h)
        turned = run["ball.rotation"]
        half = np.stack([turned[:, 2, 1] - turned[:, 1, 2], turned[:, 0, 2] - turned[:, 2, 0]], axis=1) / 2
        angle = np.arctan2(half @ axis[:2] / (axis[:2] @ axis[:2]), (np.trace(turned, axis1=1, axis2=2) - 1) / 2)
        exact = rate / frequency * np.exp(-decay * run.t) * np.sin(frequency * run.t)
        assert np.abs(exact).max() > 1.6
        errors.append(np.abs(angle - exact).max())
    assert measured_order(sizes, errors) == pytest.approx(2, abs=0.1)
    energy = run.observe("energy_balance_defect")
    assert np.abs(energy).max() < 1e-12
