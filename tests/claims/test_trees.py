"""Tree tier: the trajectory of lie-em with as many unknowns as degrees of freedom, compared with the other tiers."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

import livens as lv
from livens.engine.compiled_step import compiled_step
from livens.engine.newton.step_size_control import initial_controller_state
from livens.engine.newton.time_loop import StepPolicy
from livens.engine.stepper import IntegratorState
from livens.engine.trees import stepper as tree_stepper
from livens.multibody import assembly

TYPES = ("revolute", "prismatic", "spherical", "fixed", "cylindrical", "universal", "planar", "screw")


def add_link(mb, index, joint_type, parent, start, rng, *, is_reversed=False, rates=True):
    """Add a rod from a point of its parent, with a joint of a random axis; return the body, its end and the joint."""
    direction, axis = rng.normal(size=3), rng.normal(size=3)
    end = start + 0.4 * direction / np.linalg.norm(direction)
    rod = mb.rod(f"rod{index}", a=start, b=end, mass=1 + 0.3 * rng.random(), radius=0.05)
    bodies = (rod, parent) if is_reversed else (parent, rod)
    axes = {} if joint_type in ("spherical", "fixed") else dict(axis=axis)
    if joint_type == "universal":
        axes["second_axis"] = np.cross(axis, rng.normal(size=3))
    if joint_type == "screw":
        axes["lead"] = 0.2
    joint = mb.joint(joint_type, f"joint{index}", *bodies, at=start, **axes)
    if rates and joint_type in ("revolute", "cylindrical", "screw"):
        mb.initial(joint, rate=rng.uniform(-2, 2))
    if rates and joint_type in ("prismatic", "cylindrical"):
        mb.initial(joint, velocity=rng.uniform(-1, 1))
    return rod, end, joint


def add_laws(mb, index, joint, joint_type):
    """Add a spring, a damper, friction, a limit and a motor to the coordinates of a joint."""
    if joint_type in ("revolute", "cylindrical", "screw"):
        mb.torsion_spring(f"spring{index}", joint, stiffness=30.0 + index, rest_angle=0.2)
        mb.torsion_damper(f"damper{index}", joint, damping=0.05)
        mb.motor(joint, torque=lambda t, angle, rate: 0.4 + 0.3 * angle - 0.1 * rate + lv.math.sin(3 * t))
        mb.pd(joint, kp=2.0, kd=0.1, reference=0.1)
    if joint_type in ("prismatic", "cylindrical", "screw"):
        mb.motor(joint, force=lambda t, x, v: -80 * x - 0.3 * v + lv.math.sin(t), name=f"actuator{index}")
        mb.friction(f"friction{index}", joint, force=0.3)


def tree(types, parents, seed=0, *, floating=False, laws=False, gravity=True, is_reversed=False, rates=True):
    """Return a mechanism with one rod per joint type; `parents` are indices of earlier rods, -1 for the root."""
    rng, mb = np.random.default_rng(seed), lv.Multibody(gravity=[0, 0, -9.81] if gravity else None)
    bodies, ends = [], []
    if floating:
        root = mb.box("base", at=[0, 0, 0], size=[0.3, 0.2, 0.1], mass=3.0)
        mb.initial(root, velocity=[0.3, -0.2, 0.5], omega=[1.0, 2.0, -0.5])
    else:
        root = mb.ground
    for i, (joint_type, parent) in enumerate(zip(types, parents, strict=True)):
        before, start = (root, np.zeros(3)) if parent < 0 else (bodies[parent], ends[parent])
        rod, end, joint = add_link(mb, i, joint_type, before, start, rng, is_reversed=is_reversed, rates=rates)
        bodies.append(rod)
        ends.append(end)
        if laws:
            add_laws(mb, i, joint, joint_type)
    return mb


def planar_tree(types, parents, seed=0, *, floating=False, laws=False, gravity=True, rates=True):
    """Return a mechanism in the plane with one rod per joint type."""
    rng, mb = np.random.default_rng(seed), lv.Multibody(gravity=[0, -9.81] if gravity else None, planar=True)
    bodies, ends, root = [], [], mb.ground
    if floating:
        root = mb.box("base", at=[0, 0], size=[0.3, 0.2], mass=3.0)
        mb.initial(root, velocity=[0.3, -0.2], omega=1.0)
    for i, (joint_type, parent) in enumerate(zip(types, parents, strict=True)):
        before, start = (root, np.zeros(2)) if parent < 0 else (bodies[parent], ends[parent])
        direction = rng.normal(size=2)
        ends.append(start + 0.4 * direction / np.linalg.norm(direction))
        bodies.append(mb.rod(f"rod{i}", a=start, b=ends[-1], mass=1 + 0.3 * rng.random(), radius=0.05))
        axes = dict(axis=rng.normal(size=2)) if joint_type == "prismatic" else {}
        joint = mb.joint(joint_type, f"joint{i}", before, bodies[-1], at=start, **axes)
        if rates and joint_type == "revolute":
            mb.initial(joint, rate=rng.uniform(-2, 2))
        if rates and joint_type == "prismatic":
            mb.initial(joint, velocity=rng.uniform(-1, 1))
        if laws:
            add_laws(mb, i, joint, joint_type)
    return mb


def assert_equal_runs(mb, tiers=("tree", "reference"), *, h=5e-3, n_steps=20, atol=1e-11):
    runs = [mb.simulate(t_end=n_steps * h, h=h, tier=tier) for tier in tiers]
    assert [run.info.tier for run in runs] == list(tiers)
    first, *others = runs
    for run in others:
        assert np.abs(run.q - first.q).max() < atol
        assert np.abs(run.v - first.v).max() < 100 * atol
        scale = 1 + np.abs(run.multipliers).max()
        assert np.abs(run.multipliers[1:] - first.multipliers[1:]).max() < 1e4 * atol * scale
        for name in ("supplied_energy", "dissipated_energy"):
            assert np.abs(getattr(run, name) - getattr(first, name)).max() < 100 * atol
        assert first.summary.max_velocity_constraint == pytest.approx(
            run.summary.max_velocity_constraint, rel=0.2, abs=1e-10
        )
    return first


@pytest.mark.parametrize("joint_type", TYPES)
def test_every_joint_type_between_moving_bodies(joint_type):
    """Motion, velocities, multipliers and work are those of the fused tier, with forces in the joints."""
    run = assert_equal_runs(tree(("revolute", joint_type), (-1, 0), floating=True, laws=True))
    assert run.summary.max_constraint < 1e-14 and run.statistics.reference_steps == 0


@pytest.mark.parametrize("types", [("revolute", "revolute"), ("spherical", "fixed", "revolute")])
def test_joints_that_are_defined_from_child_to_parent(types):
    assert_equal_runs(tree(types, range(-1, len(types) - 1), laws=True, is_reversed=True))


def test_all_tiers_agree_on_a_branching_tree():
    mb = tree(("revolute", "spherical", "prismatic"), (-1, 0, 0), 3)
    assert_equal_runs(mb, ("tree", "fused", "assembled"), n_steps=10)


@pytest.mark.parametrize("floating", [False, True])
def test_all_tiers_agree_in_the_plane(floating):
    """Bodies in the plane: joints of all types with forces, on the ground and on a floating body."""
    types = ("revolute", "prismatic", "revolute", "fixed", "revolute")
    mb = planar_tree(types, (-1, 0, 1, 0, 3), 2, floating=floating, laws=True)
    run = assert_equal_runs(mb, ("tree", "fused", "assembled") if floating else ("tree", "reference"))
    n_dof = 4 + 3 * floating
    assert run.info.tier_reason.endswith(f"{n_dof} degrees of freedom, which are the unknowns")
    assert run.summary.max_energy_drift < 1e-12 and run.statistics.reference_steps == 0


def test_momenta_and_single_steps_in_the_plane():
    """Momenta of a free mechanism are conserved; steps one by one are bit-equal to steps of one call."""
    mb = planar_tree(("revolute", "revolute", "prismatic"), (-1, 0, 1), 3, floating=True, gravity=False)
    mb.motor(mb.joints["joint2"], force=lambda t, x, v: -200.0 * x)
    run = mb.simulate(t_end=20.0, h=0.01, every=100, tier="tree")
    assert run.summary.max_energy_drift < 1e-12 and all(x < 1e-12 for x in run.summary.momentum_drift.values())
    assert set(run.summary.momentum_drift) == {"linear_momentum", "angular_momentum"}
    step = lv.prepare(mb.system, "lie-em", h=0.01, tier="tree")
    state = step.start(*mb.initial_state)
    for _ in range(100):
        state = step.step(state)
    assert np.array_equal(state.q, run.q[1])


def test_plane_against_the_reduced_equations():
    """Double pendulum in the plane: order two against DOP853 of the equations in two angles."""
    mb = lv.Multibody(gravity=[0, -9.81], planar=True)
    rods = [mb.rod(f"rod{i}", a=[0.5 * i, 0], b=[0.5 * i + 0.5, 0], mass=1.0, radius=0.01) for i in range(2)]
    joints = [mb.revolute(f"joint{i}", (mb.ground, *rods)[i], rods[i], at=rods[i].a) for i in range(2)]
    mb.initial(joints[0], rate=2.0)
    inertia = [mb.system.parameters[f"rod{i}.moment"] for i in range(2)]

    def derivative(t, y):
        """Rods of length L with absolute angles a and b: Lagrange's equations of second kind."""
        (a, b), (u, w), L, g = y[:2], y[2:], 0.5, 9.81
        coupling = 0.5 * L**2 * np.cos(a - b)
        M = np.array([[inertia[0] + 1.25 * L**2, coupling], [coupling, inertia[1] + 0.25 * L**2]])
        gyro = 0.5 * L**2 * np.sin(a - b)
        load = [-gyro * w**2 - 1.5 * g * L * np.cos(a), gyro * u**2 - 0.5 * g * L * np.cos(b)]
        return np.r_[u, w, np.linalg.solve(M, load)]

    end = solve_ivp(derivative, (0, 0.4), [0, 0, 2.0, 0.0], method="DOP853", rtol=1e-12, atol=1e-13).y[:2, -1]
    mb.initial(joints[1], rate=-2.0)
    sizes = (8e-3, 4e-3, 2e-3, 1e-3)
    runs = [mb.simulate(t_end=0.4, h=h, tier="tree") for h in sizes]
    errors = [np.abs(np.cumsum([run[f"joint{i}.angle"][-1] for i in range(2)]) - end).max() for run in runs]
    assert np.polyfit(np.log(sizes), np.log(errors), 1)[0] == pytest.approx(2.0, abs=0.05) and errors[-1] < 1e-4


def test_screw_against_the_reduced_equation():
    """A rod on a vertical screw with a spring: order two against DOP853 of the equation of the angle."""
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    base = mb.box("base", at=[0, 0, 0], size=[0.1] * 3, mass=1.0)
    mb.fixed("weld", mb.ground, base, at=[0, 0, 0])
    rod = mb.rod("rod", a=[0, 0, 0], b=[0.6, 0, 0], mass=1.5, radius=0.02)
    screw = mb.screw("screw", base, rod, at=[0, 0, 0], axis="z", lead=0.8)
    mb.torsion_spring("spring", screw, stiffness=40.0)
    mb.initial(screw, rate=4.0)
    pitch, E = 0.8 / (2 * np.pi), np.array(mb.system.parameters["rod.euler"])
    inertia = E[0, 0] + E[1, 1] + 1.5 * (0.3**2 + pitch**2)

    def derivative(t, y):
        return [y[1], (-40.0 * y[0] - 1.5 * 9.81 * pitch) / inertia]

    end = solve_ivp(derivative, (0, 0.7), [0, 4.0], method="DOP853", rtol=1e-12, atol=1e-13).y[0, -1]
    sizes, errors = (1e-2, 5e-3, 2.5e-3, 1.25e-3), []
    for h in sizes:
        run = mb.simulate(t_end=0.7, h=h, tier="tree")
        errors.append(abs(run["screw.angle"][-1] - end))
        assert np.abs(run["screw.position"] - pitch * run["screw.angle"]).max() < 1e-14
        assert run.summary.max_energy_drift < 1e-12
    assert np.polyfit(np.log(sizes), np.log(errors), 1)[0] == pytest.approx(2.0, abs=0.05)


@settings(max_examples=3, deadline=None, derandomize=True)
@given(data=st.data())
def test_random_trees_in_the_plane(data):
    """Random topologies of all joint types in the plane with forces, and a spring between two bodies."""
    n = data.draw(st.integers(3, 5))
    types = ["revolute", *(data.draw(st.sampled_from(("revolute", "prismatic", "fixed"))) for _ in range(n - 1))]
    parents = [data.draw(st.integers(max(-1, i - 2), i - 1)) for i in range(n)]
    mb = planar_tree(types, parents, data.draw(st.integers(0, 100)), floating=data.draw(st.booleans()), laws=True)
    mb.spring("closure", mb.bodies["rod0"], mb.bodies[f"rod{n - 1}"].b, stiffness=50.0)
    assert_equal_runs(mb, n_steps=5)


@settings(max_examples=3, deadline=None, derandomize=True)
@given(data=st.data())
def test_random_trees(data):
    """Random topologies of all joint types in the tree tier and in the reference tier, which compiles nothing."""
    n = data.draw(st.integers(2, 4))
    types = [data.draw(st.sampled_from(TYPES)) for _ in range(n)]
    parents = [data.draw(st.integers(-1, i - 1)) for i in range(n)]
    floating, seed = data.draw(st.booleans()), data.draw(st.integers(0, 100))
    if all(name == "fixed" for name in types) and not floating:
        types[-1] = "revolute"
    assert_equal_runs(tree(types, parents, seed, floating=floating), ("tree", "reference"), n_steps=5)


def test_conservation_and_closed_joints_in_a_long_run():
    """Energy and momenta of a free tree of all joints, and its joints, over 20000 steps."""
    types = ("revolute", "universal", "spherical", "cylindrical", "prismatic", "fixed")
    mb = tree(types, (-1, 0, 0, -1, 3, 1), 3, floating=True, gravity=False)
    mb.motor(mb.joints["joint4"], force=lambda t, x, v: -200.0 * x)
    mb.motor(mb.joints["joint3"], force=lambda t, x, v: -200.0 * x, name="centring")
    run = mb.simulate(t_end=200.0, h=0.01, every=1000)
    assert run.info.tier == "tree" and run.statistics.steps == 20000
    # the tree moves by 120 m: positions there have a resolution of 1.4e-14
    assert run.summary.max_energy_drift < 1e-11 and run.summary.max_constraint < 5e-14
    assert all(drift < 1e-10 for drift in run.summary.momentum_drift.values())
    assert set(run.summary.momentum_drift) == {"linear_momentum", "angular_momentum"}


@pytest.mark.slow
def test_equal_motions_after_a_hundred_thousand_steps():
    """Joints of all types with motors, springs and dampers: all tiers have the same states over 1e5 steps."""
    types = ("revolute", "prismatic", "spherical", "screw", "universal", "planar", "cylindrical", "fixed")
    mb = tree(types, (-1, 0, 1, 0, 3, 4, 2, 1), 3, laws=True)
    for i in range(len(types)):  # dampers to the ground: round-off does not grow
        mb.damper(f"air{i}", [0.3, 0.2, 0.1 * i], mb.bodies[f"rod{i}"].b, damping=4.0)
    runs = [mb.simulate(t_end=200.0, h=2e-3, every=10000, tier=tier) for tier in ("tree", "fused", "assembled")]
    assert all(run.statistics.steps == 100000 for run in runs) and np.abs(runs[0].v[-1]).max() > 1e-3
    assert max(np.abs(run.q - runs[0].q).max() for run in runs) < 1e-9
    for run in runs:
        assert run.summary.max_constraint < 1e-12 and run.summary.max_energy_drift < 1e-8


def test_order_two_and_symmetry():
    """The slope of the error over four step sizes is two; a motion that is reversed returns to its start."""
    mb = tree(("revolute", "prismatic", "spherical"), (-1, 0, 1), 5)
    q, v = mb.initial_state
    step = lv.prepare(mb.system, "lie-em", tier="tree")
    reference = step.run(q, v, h=2.5e-5, t_end=0.2, every=10**6).q[-1]
    sizes = np.array([8e-3, 4e-3, 2e-3, 1e-3])
    errors = [np.abs(step.run(q, v, h=h, t_end=0.2, every=10**6).q[-1] - reference).max() for h in sizes]
    assert np.polyfit(np.log(sizes), np.log(errors), 1)[0] == pytest.approx(2.0, abs=0.1)
    state = step.start(q, v, h=0.01)
    for _ in range(20):
        state = step.step(state, h=0.01)
    compiled = compiled_step(mb.system, step.scheme)
    z, layout = state._state.z.copy(), compiled.layout
    for name in ("v", "p", "body_spins"):
        z[layout[name]] *= -1
    x = compiled.initial_unknowns(z, np.concatenate([[0.01, 0.0], mb.system.parameter_vector()]), "tree")
    state = dataclasses.replace(state, _state=IntegratorState.initial(0.0, z, x), _step_index=0)
    for _ in range(20):
        state = step.step(state, h=0.01)
    assert np.abs(state.q - q).max() < 1e-13


def test_steps_that_the_tree_does_not_solve_are_taken_in_absolute_unknowns(monkeypatch):
    """A failed Newton iteration falls back to the assembled tier; the steps are counted and the motion is the same."""
    mb = tree(("revolute", "revolute", "spherical"), (-1, 0, 1), 2, laws=True)
    expected = mb.simulate(t_end=0.1, h=0.01, tier="fused")
    advance, calls = tree_stepper.advance_tree, []

    def failing(*arguments):
        """Stop the compiled loop after three steps of every call."""
        *head, done, n_steps, n_history = arguments
        calls.append(done)
        return advance(*head, done, min(n_steps, done + 3), n_history)

    monkeypatch.setattr(tree_stepper, "advance_tree", failing)
    run = mb.simulate(t_end=0.1, h=0.01, tier="tree")
    assert run.statistics.reference_steps == len(calls) - 1 > 1
    assert np.abs(run.q - expected.q).max() < 1e-12
    assert np.abs(run.multipliers[1:] - expected.multipliers[1:]).max() < 1e-7
    assert run.summary.max_energy_drift < 1e-12


def test_long_steps_of_a_chain_are_solved():
    """Joints that rotate by up to a radian in a step: the tree or its fallback solves all that lie-em solves."""
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    before = mb.ground
    for i in range(12):
        rod = mb.rod(f"rod{i}", a=[0.1 * i, 0, 0], b=[0.1 * (i + 1), 0, 0], mass=0.1, radius=0.01)
        mb.revolute(f"joint{i}", before, rod, at=rod.a, axis="yz"[i % 2])
        before = rod
    run = mb.simulate(t_end=1.5, h=0.02)
    assert run.info.tier == "tree" and run.summary.max_energy_drift < 1e-10


def test_sampled_controllers_act_without_compilation():
    def controlled():
        mb = tree(("revolute", "revolute", "revolute"), (-1, 0, 1), 2)
        joint = mb.joints["joint1"]
        measured = ["joint1.angle", "joint1.rate"]
        mb.sampled_controller("hold", joint, period=0.02, law=lambda t, x: [-4.0 * x[0] - 0.3 * x[1]], inputs=measured)
        return mb

    runs = [controlled().simulate(t_end=0.2, h=0.005, tier=tier) for tier in ("tree", "fused")]
    assert np.abs(runs[0].q - runs[1].q).max() < 1e-10
    assert np.abs(runs[0]["hold.command"] - runs[1]["hold.command"]).max() < 1e-8


def test_events_of_a_tree():
    mb = tree(("revolute", "revolute", "revolute"), (-1, 0, 1), 2)
    height = lv.Event(lambda q: q[2] + 0.05, terminal=True)
    runs = [mb.simulate(t_end=1.0, h=0.005, tier=tier, events=[height]) for tier in ("tree", "fused")]
    assert runs[0].events[0].t == pytest.approx(runs[1].events[0].t, abs=1e-10)
    assert np.abs(runs[0].q[-1] - runs[1].q[-1]).max() < 1e-10


def test_forces_on_single_bodies():
    """Springs and dampers to the ground, and applied forces and torques."""
    mb = tree(("revolute", "spherical", "revolute"), (-1, 0, 1), 2, laws=True)
    mb.spring("spring", [1.0, 0.2, 0.3], mb.bodies["rod2"].b, stiffness=50.0)
    mb.damper("damper", [1.0, 0.2, -0.3], mb.bodies["rod1"].b, damping=2.0)
    mb.wrench("load", mb.bodies["rod0"], force=lambda t: [lv.math.sin(9 * t), 0, 1.0], torque=[0.1, 0.2, 0.3])
    assert assert_equal_runs(mb).summary.max_energy_drift < 1e-12


def legged_robot():
    """Return a floating box with four legs on springs that falls on the ground."""
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    base = mb.box("base", at=[0, 0, 0.5], size=[0.4, 0.3, 0.1], mass=3.0)
    for i, (x, y) in enumerate(((0.2, 0.15), (-0.2, 0.15), (0.2, -0.15), (-0.2, -0.15))):
        leg = mb.rod(f"leg{i}", a=[x, y, 0.5], b=[x, y, 0.06], mass=0.4, radius=0.02)
        hip = mb.revolute(f"hip{i}", base, leg, at=leg.a, axis="y")
        mb.pd(hip, kp=30.0, kd=0.2, reference=0.05 * i)
        foot = mb.sphere(f"foot{i}", at=[x, y, 0.06], radius=0.05, mass=0.1)
        mb.fixed(f"ankle{i}", leg, foot, at=[x, y, 0.06])
        mb.contact(foot, mb.ground, stiffness=2e4, dissipation=0.5, friction=0.6)
    return mb


def test_contact_with_the_ground():
    """Feet with friction and damping: energy balance and motion as in the reference tier."""
    runs = [legged_robot().simulate(t_end=0.12, h=2e-3, tier=tier) for tier in ("tree", "reference")]
    assert runs[0].summary.max_energy_drift < 1e-10 and runs[0].dissipated_energy[-1] > 0.1
    assert np.abs(runs[0].q - runs[1].q).max() < 1e-9  # contact amplifies round-off
    assert runs[0].dissipated_energy[-1] == pytest.approx(runs[1].dissipated_energy[-1], rel=1e-8)
    force = sum(runs[0][f"foot{i}-ground.normal_force"] for i in range(4))
    assert force.max() > 50.0


def feet_at_impact():
    """Return a box in the plane with two legs, whose stiff feet land."""
    mb = lv.Multibody(gravity=[0, -9.81], planar=True)
    base = mb.box("base", at=[0, 0.5], size=[0.4, 0.1], mass=3.0)
    for i, x in enumerate((-0.2, 0.2)):
        leg = mb.rod(f"leg{i}", a=[x, 0.5], b=[x, 0.06], mass=0.4, radius=0.02)
        mb.pd(mb.revolute(f"hip{i}", base, leg, at=leg.a), kp=30.0, kd=0.2, reference=0.05 * i)
        foot = mb.sphere(f"foot{i}", at=[x, 0.06], radius=0.05, mass=0.1)
        mb.fixed(f"ankle{i}", leg, foot, at=[x, 0.06])
        mb.contact(foot, mb.ground, stiffness=2e4, dissipation=0.5, friction=0.6)
    return mb


def test_steps_of_feet_at_impact_fall_back():
    """Steps that the tree does not solve are taken in absolute unknowns."""
    mb = feet_at_impact()
    runs = [mb.simulate(t_end=0.12, h=2e-3, tier=tier) for tier in ("tree", "assembled")]
    assert runs[0].statistics.reference_steps > 0 and runs[0].summary.max_energy_drift < 1e-11
    assert np.abs(runs[0].q - runs[1].q).max() < 1e-10
    step = lv.prepare(mb.system, "lie-em", h=2e-3, tier="tree")
    state = step.start(*mb.initial_state)
    for _ in range(60):
        state = step.step(state)
    assert np.abs(state.q - runs[0].q[-1]).max() < 1e-10


@pytest.mark.parametrize(
    ("types", "options"),
    [
        (("revolute", "prismatic", "revolute"), {}),
        (("revolute", "revolute"), dict(is_reversed=True)),
        (("cylindrical", "planar", "universal", "prismatic"), dict(floating=True)),
    ],
)
def test_armature_as_a_number_of_the_joint(types, options):
    """Armatures have no unknowns; motion, multipliers and energy are those of the other tiers."""
    mb = tree(types, range(-1, len(types) - 1), 4, laws=True, **options)
    n_dof = mb.simulate(t_end=0.005, h=0.005, tier="tree").info.tier_reason.split("with ")[1]
    driven = [joint for joint in mb.joints.values() if joint.joint_type.angle or joint.joint_type.slide]
    for joint in driven:
        mb.armature(joint, inertia=0.3)
    run = assert_equal_runs(mb)
    assert run.info.tier_reason.endswith(n_dof) and run.summary.max_energy_drift < 1e-12
    for joint in driven:
        quantity = "torque" if joint.joint_type.angle else "force"
        assert np.abs(run[f"{joint.name} armature.{quantity}"]).max() > 1e-3


def test_armature_against_rotor_bodies():
    """The motion with armatures and that with rotors on the ground differ by terms of order two."""

    def end(as_body, h):
        mb = tree(("revolute",) * 3, (-1, 0, 1), 4)
        for joint in list(mb.joints.values()):
            if not as_body:
                mb.armature(joint, inertia=0.2)
                continue
            rotor = mb.body(f"{joint.name} rotor", mass=0.2, inertia=[0.2] * 3, position=[0, 0, 0])
            bearing = mb.revolute(f"{joint.name} bearing", mb.ground, rotor, at=[0, 0, 0], axis="x")
            mb.couple(f"{joint.name} coupling", (joint, 1.0), (bearing, -1.0))
        return mb.simulate(t_end=0.32, h=h).q[-1, :36]

    differences = [np.abs(end(True, h) - end(False, h)).max() for h in (0.02, 0.01, 0.005, 0.0025)]
    slope = np.polyfit(np.log([0.02, 0.01, 0.005, 0.0025]), np.log(differences), 1)[0]
    assert differences[0] > 1e-7 and slope == pytest.approx(2.0, abs=0.1)


def test_parameters_of_a_prepared_step():
    """Masses, inertias, joint positions and stiffnesses are parameters of the tree as well."""
    mb = tree(("revolute", "revolute", "prismatic"), (-1, 0, 1), 2, laws=True)
    q, v = mb.initial_state
    changes = {"rod1.mass": 2.5, "spring0.stiffness": 80.0, "gravity": [0.0, 1.0, -3.0]}
    runs = [
        lv.prepare(mb.system, "lie-em", h=0.005, tier=tier).run(q, v, t_end=0.1, parameters=changes)
        for tier in ("tree", "fused")
    ]
    assert np.abs(runs[0].q - runs[1].q).max() < 1e-12


@pytest.mark.parametrize(
    ("types", "options"),
    [
        (TYPES, {}),
        (TYPES, dict(floating=True)),
        (("revolute", "spherical", "fixed", "revolute"), dict(is_reversed=True)),
    ],
)
def test_initial_velocities_from_joint_rates(monkeypatch, types, options):
    """Least kinetic energy in joint coordinates is that in all coordinates with constraints."""
    parents = range(-1, len(types) - 1)
    q, v = tree(types, parents, 3, **options).initial_state
    monkeypatch.setattr(assembly, "tree_of", lambda system: None)
    dense_q, dense_v = tree(types, parents, 3, **options).initial_state
    assert np.abs(v).max() > 0.5 and np.array_equal(q, dense_q) and np.abs(v - dense_v).max() < 1e-11


def test_inputs_between_single_steps():
    """Parameters of laws and of bodies that change between steps act in the tree tier as in the fused tier."""
    mb = tree(("revolute", "revolute", "prismatic"), (-1, 0, 1), 2, laws=True)
    q, v = mb.initial_state
    ends = []
    for tier in ("tree", "fused"):
        step = lv.prepare(mb.system, "lie-em", h=0.005, tier=tier)
        state = step.start(q, v)
        for i in range(20):
            state = step.step(state, inputs={"spring0.stiffness": 30.0 + 20.0 * (i % 3), "rod2.mass": 1.0 + 0.01 * i})
        ends.append(state.q)
    assert np.abs(ends[0] - ends[1]).max() < 1e-11


def test_motions_with_inputs_in_place():
    """A drive of the tree tier takes the same steps as single steps with inputs, and can be reset."""
    mb = tree(("revolute", "revolute", "prismatic"), (-1, 0, 1), 2, laws=True)
    q, v = mb.initial_state
    step = lv.prepare(mb.system, "lie-em", h=0.005, tier="tree")
    drive, state = step.drive(["spring0.stiffness"], ["joint0.angle"], q0=q, v0=v), step.start(q, v)
    for i in range(10):
        drive.inputs[:] = 30.0 + 20.0 * (i % 3)
        drive.advance()
        state = step.step(state, inputs={"spring0.stiffness": 30.0 + 20.0 * (i % 3)})
    assert np.array_equal(drive.state().z, state._state.z) and drive.t == pytest.approx(0.05)
    angle = drive.outputs.copy()
    assert drive.reset() != angle and drive.t == 0.0


def test_step_sizes_that_change_between_steps():
    """A step size is an argument of the native step: no code is compiled when it changes, and both tiers agree."""
    mb = tree(("revolute", "revolute", "prismatic", "spherical"), (-1, 0, 1, 1), 4, laws=True)
    q, v = mb.initial_state
    ends = []
    for tier in ("tree", "assembled"):
        state = lv.prepare(mb.system, "lie-em", h=0.005, tier=tier).start(q, v)
        stepper, integrator = state._session._stepper, state._state
        for h in (0.005, 0.003, 0.008, 0.001, 0.006) * 3:
            policy = StepPolicy(False, h, integrator.t, 0)
            chunk = stepper.advance(integrator, 1, policy, initial_controller_state(h))
            assert chunk.failure is None
            integrator = chunk.final
        ends.append(integrator)
    assert ends[0].t == pytest.approx(ends[1].t, abs=1e-15)
    assert np.abs(ends[0].z - ends[1].z)[: 2 * q.size].max() < 1e-9


def test_choice_of_the_tier_is_explained():
    mb = tree(("spherical",) * 4, (-1, 0, 1, 2))
    info = mb.simulate(t_end=0.01, h=0.005).info
    assert info.tier == "tree" and "12 degrees of freedom" in info.tier_reason
    mb.spherical("closure", mb.ground, mb.bodies["rod3"], at=mb.bodies["rod3"].b)
    info = mb.simulate(t_end=0.01, h=0.005).info
    assert info.tier == "fused" and "1 element that connects bodies across the tree" in info.tier_reason
    info = mb.simulate(t_end=0.01, h=0.005, tier="tree").info
    assert info.tier == "tree" and "12 joint coordinates" in info.tier_reason and "3 multipliers" in info.tier_reason


def test_joint_forces_against_newton_and_euler():
    """The force in the first joint of a floating-free chain carries the weight and the acceleration of all bodies."""
    mb = tree(("revolute", "revolute", "spherical"), (-1, 0, 1), 7)
    h = 1e-4
    run = mb.simulate(t_end=20 * h, h=h, tier="tree")
    masses = np.array([mb.system.parameters[f"rod{i}.mass"] for i in range(3)])
    momentum = np.array([run.p[:, list(frame.position)] for frame in mb.system.frames]).sum(axis=0)
    weight = np.array([0, 0, -9.81]) * masses.sum()
    rows = [i for i, name in enumerate(mb.system.constraint_names) if name.startswith("joint0: along")]
    force = -run.multipliers[1:, rows]
    assert np.abs(np.diff(momentum, axis=0) / h - weight - force).max() < 1e-6 * np.abs(force).max()
