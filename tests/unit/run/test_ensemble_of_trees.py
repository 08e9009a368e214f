"""Ensembles of mechanisms on trees: members advance in SIMD lanes, and each takes the steps of a single run."""

import numpy as np
import pytest

import livens as lv
from livens.engine.trees.stepper import TreeStepper

H, STEPS = 0.01, 30
OPTIONS = dict(scheme="lie-em", h=H)


def chain(n_links, *, velocity_constraint=False):
    """Chain of rods with hinges, a damper, and a motor whose torque is an input."""
    mb, last = lv.Multibody(gravity=[0, 0, -9.81]), None
    torque = mb.input("torque")
    for i in range(n_links):
        rod = mb.rod(f"rod{i}", a=[i, 0, 0], b=[i + 1.0, 0, 0], mass=1.0, radius=0.05)
        joint = mb.revolute(f"hinge{i}", last or mb.ground, rod, at=rod.a, axis="yz"[i % 2])
        mb.initial(joint, rate=0.5 + i)
        last = rod
    mb.torsion_damper("damper", joint, damping=0.05)
    mb.motor(mb.joints["hinge0"], torque=torque, name="motor")
    return mb


@pytest.fixture(scope="module")
def mechanism():
    mb = chain(3)
    q, v = mb.initial_state
    random = np.random.default_rng(2)
    speeds = np.asarray(v) * random.uniform(0.2, 2.0, 7)[:, None]
    masses = random.uniform(0.5, 2.0, 7)
    return mb.system, np.asarray(q), speeds, {"rod1.mass": masses, "torque": np.linspace(-1, 1, 7)}


def member_run(mechanism, i, **options):
    model, q, speeds, parameters = mechanism
    return lv.simulate(
        model, q, speeds[i], parameters={name: values[i] for name, values in parameters.items()}, **OPTIONS, **options
    )


@pytest.mark.parametrize("t_end", [STEPS * H, STEPS * H + 0.004])  # with a shorter last step
@pytest.mark.parametrize("every", [1, 7])
def test_members_are_single_runs_bit_for_bit(mechanism, t_end, every):
    model, q, speeds, parameters = mechanism
    many = lv.ensemble(model, q, speeds, parameters=parameters, t_end=t_end, every=every, tier="tree", **OPTIONS)
    assert many.info["tier"] == "tree" and many.info["width"] == 8 and not many.failures
    assert not many.n_scalar_fallbacks
    for i in (0, 3, 6):
        run = member_run(mechanism, i, t_end=t_end, every=every)
        assert run.info.tier == "tree"
        assert np.array_equal(many.t, run.t)
        for name in many.arrays:
            assert np.array_equal(many.arrays[name][i].reshape(len(run.t), -1), run[name].reshape(len(run.t), -1)), name
        assert many.steps[i] == run.statistics.steps
        assert many.newton_iterations[i] == run.statistics.newton_iterations
        assert many.summary[i] == run.summary


def test_lanes_agree_to_round_off(mechanism):
    model, q, speeds, parameters = mechanism
    on_tree, in_lanes = (
        lv.ensemble(model, q, speeds, parameters=parameters, t_end=STEPS * H, tier=tier, **OPTIONS)
        for tier in ("tree", "fused")
    )
    assert in_lanes.info["tier"] == "fused"
    np.testing.assert_allclose(on_tree.q, in_lanes.q, atol=1e-12)
    np.testing.assert_allclose(on_tree.supplied_energy, in_lanes.supplied_energy, atol=1e-11)
    assert on_tree.arrays.keys() == in_lanes.arrays.keys()
    for one, other in zip(on_tree.summary, in_lanes.summary, strict=True):
        assert one.max_energy_drift < 1e-12 and other.max_energy_drift < 1e-12
        assert one.momentum_drift.keys() == other.momentum_drift.keys()


def test_order_threads_and_files_change_no_bit(mechanism, tmp_path):
    model, q, speeds, parameters = mechanism
    options = dict(t_end=STEPS * H, every=10, tier="tree", **OPTIONS)
    many = lv.ensemble(model, q, speeds, parameters=parameters, **options)
    order = np.random.default_rng(0).permutation(7)
    changed = {name: values[order] for name, values in parameters.items()}
    for name in ("members.h5", "members.zarr"):
        shuffled = lv.ensemble(
            model, q, speeds[order], parameters=changed, threads=2, out=tmp_path / name, store=["q", "v"], **options
        )
        assert np.array_equal(shuffled.q, many.q[order]) and np.array_equal(shuffled.v, many.v[order])
        stored = lv.Ensemble.load(tmp_path / name)
        assert np.array_equal(stored.q, shuffled.q)


@pytest.mark.parametrize("hold", ["constant", "linear"])
def test_members_have_inputs_of_their_own(mechanism, hold):
    model, q, speeds, _ = mechanism
    inputs = [lv.Schedule({"torque": [0.0, f, -f]}, t=[0.0, 0.1, 0.25], hold=hold) for f in (0.5, 1.0, 2.0)]
    many = lv.ensemble(model, q, speeds[:3], inputs=inputs, t_end=0.305, tier="tree", **OPTIONS)
    for i, schedule in enumerate(inputs):
        run = lv.simulate(model, q, speeds[i], inputs=schedule, t_end=0.305, **OPTIONS)
        assert np.array_equal(many.q[i], run.q) and np.array_equal(many.multipliers[i], run.multipliers)
        assert many.summary[i].max_energy_drift == run.summary.max_energy_drift


def test_a_failed_member_leaves_the_others_alone(mechanism):
    """One member starts off its constraints, and the energy of another one overflows."""
    model, q, speeds, parameters = mechanism
    wrong, forced = np.repeat(q[None], 7, axis=0), {name: values.copy() for name, values in parameters.items()}
    wrong[2, 0] += 0.1
    forced["torque"][4] = 1e200
    many = lv.ensemble(model, wrong, speeds, parameters=forced, t_end=STEPS * H, tier="tree", **OPTIONS)
    assert sorted(many.failures) == [2, 4]
    assert "constraint" in many.failures[2] and "the step from t = 0 failed" in many.failures[4]
    assert np.isnan(many.q[4, 1:]).all() and np.array_equal(many.q[4, 0], q)
    assert np.array_equal(many.q[6], member_run(mechanism, 6, t_end=STEPS * H).q)


def _fail_in_lanes(monkeypatch, *failing_lanes):
    """Let the steps of some lanes fail."""
    from livens.engine.trees import lanes

    advance = lanes.advance_in_lanes

    def advance_with_failures(steps, *arguments):
        advance(steps, *arguments)
        steps.failed[list(failing_lanes)] = 1
        return len(steps.failed) - len(failing_lanes)

    monkeypatch.setattr(lanes, "advance_in_lanes", advance_with_failures)


def test_members_whose_lanes_fail_run_by_themselves(mechanism, monkeypatch):
    _fail_in_lanes(monkeypatch, 0, 4)
    model, q, speeds, parameters = mechanism
    many = lv.ensemble(model, q, speeds, parameters=parameters, t_end=STEPS * H, every=4, tier="tree", **OPTIONS)
    assert many.n_scalar_fallbacks == 2 and not many.failures
    for i in range(7):
        run = member_run(mechanism, i, t_end=STEPS * H, every=4)
        assert np.array_equal(many.q[i], run.q) and many.summary[i] == run.summary
        assert many.steps[i] == STEPS and many.newton_iterations[i] == run.statistics.newton_iterations


def test_a_lane_whose_iteration_fails_does_not_change_the_others():
    """One member moves so fast that joints would turn by more than half a turn in a step."""
    mb = chain(5)
    q, v = mb.initial_state
    speeds = np.multiply.outer([0.1, 40.0, 1.0], np.asarray(v))
    many = lv.ensemble(mb.system, q, speeds, t_end=STEPS * H, tier="tree", **OPTIONS)
    assert many.n_scalar_fallbacks
    for i in (0, 1, 2):
        run = lv.simulate(mb.system, q, speeds[i], t_end=STEPS * H, tier="tree", **OPTIONS)
        assert np.array_equal(many.q[i], run.q) and many.newton_iterations[i] == run.statistics.newton_iterations


def test_lanes_have_small_and_large_angle_increments():
    """The increments of joints with armatures are sums of a series or arc tangents, depending on their size."""
    mb = chain(2)
    mb.armature(mb.joints["hinge1"], inertia=0.3)
    q, v = mb.initial_state
    speeds = np.multiply.outer([0.1, 20.0], np.asarray(v))
    many = lv.ensemble(mb.system, q, speeds, t_end=STEPS * H, tier="tree", **OPTIONS)
    assert not many.n_scalar_fallbacks
    for i in (0, 1):
        run = lv.simulate(mb.system, q, speeds[i], t_end=STEPS * H, tier="tree", **OPTIONS)
        assert np.array_equal(many.q[i], run.q) and many.summary[i] == run.summary


def _with_all_joints(*, has_springs):
    """Floating tree with joints of all kinds, a damper and an armature; with springs in a joint and to the ground."""
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    bodies = [
        mb.rod(f"rod{i}", a=[0.5 * i, 0, 1.0], b=[0.5 * (i + 1), 0, 1.0], mass=1.0 + 0.1 * i, radius=0.05)
        for i in range(8)
    ]
    joints = [mb.revolute("r", *bodies[:2], at=bodies[1].a, axis="y")]
    joints.append(mb.prismatic("p", *bodies[1:3], at=bodies[2].a, axis="x"))
    mb.spherical("s", *bodies[2:4], at=bodies[3].a)
    joints.append(mb.cylindrical("c", *bodies[3:5], at=bodies[4].a, axis="x"))
    mb.fixed("f", *bodies[4:6], at=bodies[5].a)
    mb.universal("u", *bodies[5:7], at=bodies[6].a, axis="y", second_axis="z")
    joints.append(mb.revolute("last", *bodies[6:8], at=bodies[7].a, axis="z"))
    mb.torsion_damper("damper", joints[-1], damping=0.1)
    mb.armature(joints[-1], inertia=0.05)
    if has_springs:
        mb.torsion_spring("torsion", joints[0], stiffness=20.0)
        mb.spring("anchor", bodies[7].b, [4.0, 0, 2.0], stiffness=50.0, free_length=0.5)
    return mb


def test_members_with_springs_are_single_runs_to_round_off():
    """The compiler contracts products of force laws in lanes in another way than in single runs."""
    mb = _with_all_joints(has_springs=True)
    q, v = mb.initial_state
    masses = np.linspace(0.5, 2.0, 10)
    options = dict(t_end=20 * H, tier="tree", **OPTIONS)
    many = lv.ensemble(mb.system, q, v, parameters={"rod3.mass": masses}, **options)
    assert many.info["width"] == 8 and not many.n_scalar_fallbacks and not many.failures
    for i in (0, 7, 9):
        run = lv.simulate(mb.system, q, v, parameters={"rod3.mass": masses[i]}, **options)
        np.testing.assert_allclose(many.q[i], run.q, atol=1e-13)
        np.testing.assert_allclose(many.p[i], run.p, atol=1e-12)
        assert many.summary[i].max_energy_drift < 1e-12


def test_members_with_joints_of_all_kinds_are_single_runs_bit_for_bit():
    mb = _with_all_joints(has_springs=False)
    q, v = mb.initial_state
    masses = np.linspace(0.5, 2.0, 10)
    options = dict(t_end=20 * H, tier="tree", every=5, **OPTIONS)
    many = lv.ensemble(mb.system, q, v, parameters={"rod3.mass": masses}, **options)
    assert many.info["width"] == 8 and not many.n_scalar_fallbacks and not many.failures
    for i in (0, 7, 9):
        run = lv.simulate(mb.system, q, v, parameters={"rod3.mass": masses[i]}, **options)
        for name in many.arrays:
            assert np.array_equal(many.arrays[name][i].reshape(len(run.t), -1), run[name].reshape(len(run.t), -1)), name
        assert many.summary[i] == run.summary


def test_steps_that_the_tree_does_not_solve_are_taken_as_in_single_runs(mechanism, monkeypatch):
    """The assembled tier takes these steps, which are counted; other members are not affected."""
    from livens.engine.trees import stepper

    _fail_in_lanes(monkeypatch, *range(8))

    advance = stepper.advance_tree

    def advance_up_to_step_five(*arguments):
        done, n_steps = arguments[-3:-1]
        return (
            advance(*arguments[:-2], min(n_steps, 5), arguments[-1])
            if done < 5
            else done
            if done == 5
            else advance(*arguments)
        )

    monkeypatch.setattr(stepper, "advance_tree", advance_up_to_step_five)
    assert TreeStepper.advance.__globals__["advance_tree"] is advance_up_to_step_five
    model, q, speeds, parameters = mechanism
    many = lv.ensemble(model, q, speeds, parameters=parameters, t_end=STEPS * H, tier="tree", **OPTIONS)
    assert many.n_scalar_fallbacks == 14 and not many.failures
    for i in (1, 5):
        run = member_run(mechanism, i, t_end=STEPS * H)
        assert run.statistics.reference_steps == 1
        assert np.array_equal(many.q[i], run.q)


def test_the_tier_depends_on_the_equations():
    """Small mechanisms, and runs with functions to reduce, advance in lanes of fused code."""
    for n_links, tier in ((15, "tree"), (5, "tree"), (3, "fused")):
        mb = chain(n_links)
        q, v = mb.initial_state
        many = lv.ensemble(mb.system, q, [v, 0.5 * np.asarray(v)], t_end=3 * H, **OPTIONS)
        assert many.info["tier"] == tier and not many.failures
    assert "40 unknowns" in many.info["tier_reason"]
    mb = chain(5)
    q, v = mb.initial_state
    inputs = lv.Schedule({"torque": [0.0, 1.0]}, t=[0.0, 0.02])  # on trees, one member after another
    many = lv.ensemble(mb.system, q, [v, 0.5 * np.asarray(v)], inputs=inputs, t_end=3 * H, **OPTIONS)
    assert many.info["tier"] == "fused" and "150 unknowns" in many.info["tier_reason"]
    options = dict(t_end=3 * H, tier="tree", **OPTIONS)
    with pytest.raises(lv.InputError, match=r"functions of the state .* remove tier='tree'"):
        lv.ensemble(mb.system, q, v, reduce={"height": lambda q: q[2]}, **options)
    with pytest.raises(lv.InputError, match="cannot be stepped on a tree"):
        lv.ensemble(lv.problems.load("simple-pendulum"), tier="tree")
    with pytest.raises(lv.InputError, match=r"tier must be .auto., .tree., .assembled. or .fused., got .reference."):
        lv.ensemble(mb.system, q, v, **{**options, "tier": "reference"})


def test_members_with_a_loop_are_single_runs():
    """Four-bar linkage with parallel hinges, whose constraints are redundant."""
    mb, points = lv.Multibody(gravity=[0, 0, -9.81]), ([0, 0, 0], [0, 0, 1], [1.5, 0, 1.2], [1.5, 0, 0])
    bars = [mb.rod(f"bar{i}", a=points[i], b=points[i + 1], mass=1.0, radius=0.03) for i in range(3)]
    for i, (first, second) in enumerate(zip([mb.ground, *bars], [*bars, mb.ground], strict=True)):
        mb.revolute(f"hinge{i}", first, second, at=points[i], axis="y")
    mb.initial(mb.joints["hinge0"], rate=1.0)
    q, v = mb.initial_state
    options = dict(t_end=0.2, tier="tree", redundant="remove", **OPTIONS)
    many = lv.ensemble(mb.system, q, np.multiply.outer([0.5, 1.0, 2.0], v), **options)
    run = lv.simulate(mb.system, q, 2.0 * np.asarray(v), **options)
    assert many.info["tier"] == run.info.tier == "tree"
    assert np.array_equal(many.q[2], run.q) and many.summary[2] == run.summary
