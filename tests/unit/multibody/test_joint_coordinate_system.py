"""Mechanisms in joint coordinates against the same mechanisms in body coordinates."""

import numpy as np
import pytest

import livens as lv


def crane():
    """Turntable, slide and hanging rod, with a motor."""
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    table = mb.rod("table", a=[0, 0, 0], b=[0.8, 0, 0], mass=2.0, radius=0.05)
    turn = mb.revolute("turn", mb.ground, table, at=[0, 0, 0], axis="z")
    slider = mb.box("slider", at=[0.8, 0, 0], size=[0.1, 0.1, 0.1], mass=0.5)
    slide = mb.prismatic("slide", table, slider, at=[0.8, 0, 0], axis="x")
    rod = mb.rod("rod", a=[0.8, 0, 0], b=[0.8, 0, -0.5], mass=0.3, radius=0.02)
    hinge = mb.revolute("hinge", slider, rod, at=[0.8, 0, 0], axis="y")
    mb.motor(turn, torque=lambda t, angle, rate, k: k.u, parameters=dict(u=0.4), name="motor")
    mb.initial(turn, angle=0.0, rate=0.0)
    mb.initial(hinge, angle=0.3, rate=0.5)
    mb.initial(slide, position=0.05, velocity=0.2)
    return mb


def test_motion_in_joint_coordinates():
    mb = crane()
    problem = mb.to_joint_coordinates(t_end=0.5)
    assert problem.model.coordinates == ("turn.angle", "slide.position", "hinge.angle")
    assert problem.model.m == 0
    np.testing.assert_allclose(problem.q0, [0.0, 0.05, 0.3], atol=1e-12)
    np.testing.assert_allclose(problem.v0, [0.0, 0.2, 0.5], atol=1e-12)
    reduced = lv.simulate(problem, scheme="gauss-3", h=0.01)
    bodies = [mb.simulate(t_end=0.5, h=h) for h in (2e-3, 1e-3)]
    for name in ("turn.angle", "slide.position", "hinge.angle"):
        ends = [run[name][-1] for run in bodies]
        extrapolated = ends[1] + (ends[1] - ends[0]) / 3
        column = problem.model.coordinates.index(name)
        assert reduced.q[-1, column] == pytest.approx(extrapolated, abs=1e-7)
    energy = reduced.observe("total_energy")
    assert np.ptp(energy - reduced.supplied_energy) < 1e-7
    np.testing.assert_allclose(np.asarray(reduced["rod.b"])[0], np.asarray(bodies[1]["rod.b"])[0], atol=1e-12)


def test_optimal_control_in_joint_coordinates():
    motion = lv.optimal_control(
        crane().to_joint_coordinates(),
        inputs={"motor.u": (-20, 20)},
        t_end=1.0,
        steps=10,
        end={"turn.angle": 0.5, "turn.rate": 0.0},
    )
    assert motion.converged
    assert motion["turn.angle"][-1] == pytest.approx(0.5)
    assert motion.replay().one_step_defect < 1e-13


def test_closed_loops_and_other_joints_are_refused():
    with pytest.raises(lv.InputError, match="planar"):
        from livens.problems.five_bar import five_bar_mechanism

        five_bar_mechanism().to_joint_coordinates()
    mb = lv.Multibody()
    ball = mb.sphere("ball", at=[0, 0, 1], radius=0.1, mass=1.0)
    mb.spherical("socket", mb.ground, ball, at=[0, 0, 1])
    with pytest.raises(lv.InputError, match="revolute and prismatic"):
        mb.to_joint_coordinates()
