"""Random mechanisms: what lie-em and lie-ggl keep on trees and loops of bodies, joints and springs, and what not."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from conftest import measured_order
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

import livens as lv

JOINTS = {
    2: ("revolute", "prismatic", "point_on_line", "fixed"),
    3: ("revolute", "spherical", "cylindrical", "universal", "prismatic", "planar", "point_on_line", "fixed"),
}
#: What closes loops: few enough constraints that something is left to move.
LOOPS = {2: ("link", "revolute", "point_on_line"), 3: ("link", "spherical", "point_on_line", "point_on_plane")}
few = settings(
    max_examples=3, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), phases=[Phase.generate]
)
#: Bodies in space take long to compile.
DIMENSIONS = [2, pytest.param(3, marks=pytest.mark.slow)]


def mechanism(seed, dimension, free, forced=False, loop=True):
    """Two bodies in space, three in the plane, each held to an earlier one by a joint of any kind at any place; a link
    or a joint that closes a loop, for every other seed; springs; floating, or on the ground with gravity."""
    random, d = np.random.default_rng(seed), dimension
    down = np.zeros(d)
    down[-1] = -9.81
    mb = lv.Multibody(gravity=None if free else down, planar=d == 2)
    parts = [] if free else [mb.ground]
    joints = []
    for i in range(2 if d == 3 else 3):
        R = np.linalg.qr(random.standard_normal((d, d)))[0]
        R[:, 0] *= np.sign(np.linalg.det(R))
        at = 0.6 * i * np.eye(d)[0] + 0.2 * random.standard_normal(d)
        moments = 0.05 + 0.05 * random.random(3)
        body = mb.body(f"b{i}", mass=0.5 + random.random(), inertia=moments, position=at, rotation=R)
        if parts:
            before = parts[int(random.integers(len(parts)))]
            kind = str(random.choice(JOINTS[d]))
            axis, other = np.linalg.qr(random.standard_normal((d, 2)))[0].T
            more = {} if kind in ("spherical", "fixed") else dict(axis=axis)
            more |= dict(second_axis=other) if kind == "universal" else {}
            joints.append(mb.joint(kind, f"j{i}", before, body, at=at - 0.3 * random.random(d), **more))
        parts.append(body)
    first, last = parts[-2] if parts[-2] is not mb.ground else np.full(d, 0.5), parts[-1]
    tip = last.point("tip", at=last.reference_position + 0.2 * random.standard_normal(d))
    mb.spring("spring", first, tip, stiffness=20.0, free_length=0.3)
    if loop and random.random() < 0.5:
        how, base = str(random.choice(LOOPS[d])), mb.bodies["b0"]
        if how == "link":
            mb.distance("link", base.point("eye", at=base.reference_position + 0.1), tip)
        else:
            axis = random.standard_normal(d)
            more = {} if how in ("spherical", "revolute") else dict(axis=axis / np.linalg.norm(axis))
            mb.joint(how, "loop", base, last, at=tip, **more)
    if forced:
        mb.damper("damper", first, tip, damping=0.4)
        mb.wrench("push", last, force=lambda t: [lv.math.sin(3 * t), 0.3, 0.0][:d], at=tip)
        turning = [joint for joint in joints if joint.joint_type.angle]
        if turning:
            mb.motor(turning[0], torque=lambda t, angle, rate: 0.3 * lv.math.sin(2 * t) - 0.1 * rate)
    mb.initial(last, omega=[0.5, 1.0, 2.0] if d == 3 else [2.0], required=False)
    if free:
        mb.initial(mb.bodies["b0"], velocity=[0.3, 0.1, 0.2][:d], required=False)
    return mb


@pytest.mark.parametrize("dimension", DIMENSIONS)
@few
@given(seed=st.integers(0, 10**6))
def test_energy_momenta_and_both_levels(dimension, seed):
    """Floating: energy and both momenta at round-off; the hidden constraints only with lie-ggl."""
    mb = mechanism(seed, dimension, free=True)
    em, ggl = (mb.simulate(t_end=1.0, h=0.01, velocity_level=level) for level in (False, True))
    for run in (em, ggl):
        assert run.summary.max_energy_drift < 1e-11 and run.summary.max_constraint < 1e-13
        assert set(run.summary.momentum_drift) == {"linear_momentum", "angular_momentum"}
        assert max(run.summary.momentum_drift.values()) < 1e-11
    assert ggl.summary.max_velocity_constraint < 1e-9  # some are nearly singular
    if mb.check().constraints:
        assert em.summary.max_velocity_constraint > 1e-8
    assert np.abs(em.q - ggl.q).max() < 0.05  # the same motion, to the order of both
    if np.ptp(em["potential_energy"]) > 1e-3:  # a scheme that does not promise the energy does not keep it
        other = mb.simulate(t_end=1.0, h=0.02, scheme="livens-midpoint", tier="reference")
        assert other.summary.max_energy_drift > 1e-10


@pytest.mark.parametrize("level", [False, True])
@pytest.mark.parametrize("dimension", DIMENSIONS)
@few
@given(seed=st.integers(0, 10**6))
def test_balance_of_energy_with_motors_and_dampers(dimension, level, seed):
    mb = mechanism(seed, dimension, free=False, forced=True)
    run = mb.simulate(t_end=1.0, h=0.01, velocity_level=level)
    energy = run["total_energy"]
    assert np.ptp(energy - run.supplied_energy + run.dissipated_energy) < 1e-12 * max(10.0, np.abs(energy).max())
    assert run.dissipated_energy[-1] > 0 and np.diff(run.dissipated_energy).min() >= -1e-15


@pytest.mark.parametrize("dimension", DIMENSIONS)
@settings(few, max_examples=1)
@given(seed=st.integers(0, 10**6))
def test_against_the_scheme_with_all_directors(dimension, seed):
    """Both are of second order: their difference falls with the square of the step."""
    mb = mechanism(seed, dimension, free=False)
    steps, gaps = [0.02, 0.01, 0.005, 0.0025], []
    for h in steps:
        runs = [mb.simulate(t_end=0.4, h=h, scheme=scheme) for scheme in ("lie-em", "livens-em")]
        gaps.append(np.abs(runs[0].q[-1] - runs[1].q[-1]).max())
    assert gaps[-1] < 1e-11 or abs(measured_order(steps, gaps) - 2) < 0.1


@settings(few, max_examples=1)
@given(seed=st.integers(0, 10**6))
def test_compositions_are_of_fourth_order(seed):
    """Energy and momenta stay exact, as in every step of lie-em, which alone is of second order, as lie-ggl is."""
    mb, steps = mechanism(seed, 2, free=True), [0.02, 0.01, 0.005, 0.0025]
    fine = mb.simulate(t_end=0.4, h=0.00125, scheme="suzuki-4:lie-em").q[-1]
    for scheme, order in (("suzuki-4:lie-em", 4), ("lie-em", 2), ("lie-ggl", 2)):
        runs = [mb.simulate(t_end=0.4, h=h, scheme=scheme) for h in steps]
        errors = [np.abs(run.q[-1] - fine).max() for run in runs]
        assert abs(measured_order(steps, errors) - order) < 0.1, (scheme, errors)
        for run in runs:
            assert run.summary.max_energy_drift < 1e-12 and max(run.summary.momentum_drift.values()) < 1e-12


@pytest.mark.parametrize("dimension", DIMENSIONS)
@settings(few, max_examples=2)
@given(seed=st.integers(0, 10**6))
def test_against_mujoco(dimension, seed):
    """Trees of bodies, joints and springs, moved by MuJoCo in joint coordinates with steps of fourth order."""
    mujoco = pytest.importorskip("mujoco")
    mb = mechanism(seed, dimension, free=False, loop=False)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tree.xml"
        assert mb.to_mjcf(path) == []
        model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    model.opt.timestep, model.opt.integrator = 2e-4, mujoco.mjtIntegrator.mjINT_RK4
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_step(model, data, nstep=2000)
    mujoco.mj_forward(model, data)
    exact = {name: np.array(data.body(name).xipos[:dimension]) for name in mb.bodies}
    steps, gaps = [0.02, 0.01, 0.005, 0.0025], []
    for h in steps:
        run = mb.simulate(t_end=0.4, h=h)
        gaps.append(max(np.abs(run[f"{name}.position"][-1] - at).max() for name, at in exact.items()))
        assume(gaps[0] > 1e-9)  # of some nothing moves, or everything as in free fall, which is exact
    assert gaps[-1] < 1e-2 and abs(measured_order(steps, gaps) - 2) < 0.1, gaps


def bars(angle):
    """The double four-bar in space with revolute joints: 65 constraints with those of the directors, of rank 59."""
    mb = lv.Multibody(gravity=[0, -9.81, 0])
    lower = [mb.rod(f"lower{i}", a=[i, 0, 0], b=[i, 1, 0], mass=1) for i in range(3)]
    upper = [mb.rod(f"upper{i}", a=[i, 1, 0], b=[i + 1, 1, 0], mass=1) for i in range(2)]
    for i, bar in enumerate(lower):
        mb.revolute(f"ground{i}", mb.ground, bar, at=bar.a, axis="z")
    for i, bar in enumerate(upper):
        mb.revolute(f"left{i}", lower[i], bar, at=bar.a, axis="z")
        mb.revolute(f"right{i}", bar, lower[i + 1], at=bar.b, axis="z")
    for i in range(3):
        mb.initial(mb.joints[f"ground{i}"], angle=angle, rate=-3.0)
    return mb


@pytest.mark.parametrize("level", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_start_in_the_singular_position(level):
    """All bars on one line: two more constraints depend on others there than anywhere near it."""
    mb = bars(-90 * lv.deg)
    system, report = mb.system, mb.check()
    within = sum(len(frame.constraints) for frame in system.frames)
    assert (system.m, within + report.rank, within + report.rank_at_start) == (65, 59, 57)
    assert "singular configuration" in str(report) and set(report.indeterminate_reactions) == set(mb.joints)
    run = mb.simulate(t_end=2.0, h=1e-3, velocity_level=level)
    assert run.summary.max_energy_drift < 1e-13 and run.summary.max_constraint < 5e-15
    assert (run.summary.max_velocity_constraint < 1e-12) == level
    # the middle bar stays parallel to the outer ones: it went through, and not over into the other branch
    assert np.abs(run["ground0.angle"] - run["ground1.angle"]).max() < 1e-10


@pytest.mark.slow
def test_a_step_that_ends_at_a_singular_position():
    """With both levels, two of the equations of such a step depend on one another to round-off: it is solved with
    corrections of least norm, and the run goes on with everything it promises."""
    run = bars(-90 * lv.deg).simulate(t_end=30.0, h=1e-3, velocity_level=True, every=10)
    assert run.statistics.reference_steps >= 1
    assert run.summary.max_energy_drift < 1e-11 and run.summary.max_constraint < 5e-15
    assert run.summary.max_velocity_constraint < 1e-12


def test_forces_of_redundant_joints_have_the_least_norm():
    """The bars stand still upright on three equal feet: what the rigid bars leave open is shared evenly."""
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    beam = mb.box("beam", at=[0, 0, 0], size=[2, 0.1, 0.1], mass=3)
    for i, x in enumerate((-1.0, 0.0, 1.0)):
        mb.point_on_plane(f"foot{i}", mb.ground, beam, at=[x, 0, 0], axis="z")
    mb.planar("floor", mb.ground, beam, at=[0, 0, 0], axis="z")
    assert mb.check().redundant == 3
    run = mb.simulate(t_end=0.1, h=0.01)
    total = sum(run[f"{name}.force"][:, 2] for name in ("foot0", "foot1", "foot2", "floor"))
    assert total == pytest.approx(3 * 9.81)
    assert run["foot0.force"][5, 2] == pytest.approx(run["foot2.force"][5, 2])
    assert run["foot1.force"][5, 2] > 1.0 and run["floor.force"][5, 2] > 1.0


@pytest.mark.slow
@pytest.mark.parametrize(("level", "angle"), [(False, 0.0), (True, 180.0)])
def test_a_million_steps(level, angle):
    """The loop of bars stays closed, its energy stays.

    With `lie-em` it turns over and over, through its singular positions; with `lie-ggl`, whose equations for velocities
    may have no solution close to these (it says so), it swings below them.
    """
    mb = bars(angle * lv.deg)
    run = mb.simulate(t_end=1000.0, h=1e-3, every=1000, velocity_level=level)
    assert run.summary.max_energy_drift < 1e-11 and run.summary.max_constraint < 5e-15
    if level:
        assert run.summary.max_velocity_constraint < 1e-11
