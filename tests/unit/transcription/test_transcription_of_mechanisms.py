"""Optimal control of mechanisms with frames, and of the built-in control problems."""

from types import SimpleNamespace

import numpy as np
import pytest

import livens as lv
from livens.problems.five_bar import five_bar_mechanism
from livens.problems.hopper_gait import _foot, _ground_force
from livens.problems.six_axis_arm import _LINKS


@pytest.mark.parametrize("scheme", ["lie-em", "lie-ggl"])
def test_five_bar_is_reproduced_by_sampled_controllers(scheme):
    """The public simulation, with sampled controllers that return the inputs found, has the same motion."""
    problem = lv.problems.load("five-bar-point-to-point")
    motion = lv.optimal_control(problem, scheme=scheme)
    assert motion.converged
    assert motion.cost == pytest.approx(29.54, rel=2e-4)
    assert motion.replay().one_step_defect < 1e-12
    assert motion.energy_imbalance() < 1e-12
    mb = five_bar_mechanism()
    h = float(motion.h[0])
    torques = [motion.inputs[f"{side}_motor.u"] for side in ("left", "right")]
    for side, values in zip(("left", "right"), torques, strict=True):
        joint = mb.joints[f"{side}_hinge"]
        mb.sampled_controller(
            f"{side} law", joint, period=h, inputs=f"{side}_hinge.angle",
            law=lambda t, measured, values=values: values[min(round(t / h), len(values) - 1)],
        )  # fmt: skip
    run = mb.simulate(t_end=motion.t_end, h=h, scheme=scheme)
    np.testing.assert_allclose(run.q, motion.q, atol=1e-10)
    np.testing.assert_allclose(run["left_coupler.b"][-1], [0.18, 0.50], atol=1e-9)
    np.testing.assert_allclose(motion["left_coupler.b"][-1], [0.18, 0.50], atol=1e-9)


def test_frames_with_other_schemes():
    motion = lv.optimal_control(lv.problems.load("five-bar-point-to-point"), scheme="livens-em")
    assert motion.converged
    assert motion.cost == pytest.approx(29.54, rel=2e-4)
    assert motion.energy_imbalance() < 1e-12
    assert motion.replay().one_step_defect < 1e-12


def test_too_little_torque_is_reported():
    motion = lv.optimal_control(lv.problems.load("five-bar-point-to-point", torque=6.0), ipopt=dict(max_iter=400))
    assert not motion.converged
    assert "largest violations" in motion.message
    assert "NOT converged" in str(motion)
    with pytest.raises(lv.InputError, match="did not converge"):
        motion.refined(1e-3)


def test_path_conditions_of_joint_forces():
    problem = lv.problems.load("five-bar-point-to-point")
    free = lv.optimal_control(problem)
    force = np.linalg.norm(free["left_elbow.force"][1:], axis=1)
    bound = 0.9 * force.max()
    motion = lv.optimal_control(
        problem, guess=free, along={"elbow force": (lambda v: v[0], None, None), "left_elbow.force": (-bound, bound)}
    )
    assert motion.converged
    assert np.abs(motion["left_elbow.force"][1:]).max() <= bound * (1 + 1e-7)
    assert motion.cost >= free.cost * (1 - 1e-9)


def test_satellite_momentum_and_rest():
    """Schemes that conserve momentum maps conserve the angular momentum with bias; all end at rest."""
    problem = lv.problems.load("satellite-reorientation")
    for scheme in ("livens-variational", "livens-midpoint"):
        motion = lv.optimal_control(problem, scheme=scheme, steps=10)
        momentum = motion.observe("angular_momentum")
        assert motion.converged
        assert np.abs(momentum[0]).max() > 1.0  # bias
        assert np.abs(momentum - momentum[0]).max() < 1e-12
        assert motion.t_end == pytest.approx(6.6146, rel=4e-3)
        assert motion.replay().defect < 1e-10
    fine = lv.optimal_control(problem, scheme="livens-variational", steps=40, guess=motion)
    momentum = fine.observe("angular_momentum")
    assert np.abs(momentum - momentum[0]).max() < 1e-12
    assert fine.t_end == pytest.approx(6.6160, abs=2e-4)


def test_orbit_transfer_has_the_published_radius():
    """Bryson and Ho, section 2.5: the largest radius is 1.525."""
    motion = lv.optimal_control(lv.problems.load("low-thrust-transfer"))
    assert motion.converged
    assert -motion.cost == pytest.approx(1.52524628, abs=5e-6)
    assert motion.replay().defect < 1e-12


def test_pumped_swing_closes_in_the_mirror():
    motion = lv.optimal_control(lv.problems.load("pumping-a-swing"))
    assert motion.converged
    np.testing.assert_allclose(motion.q[-1], motion.q[0] * [-1, 1], atol=1e-10)
    np.testing.assert_allclose(motion.p[-1], motion.p[0] * [-1, 1], atol=1e-10)
    assert motion.q[0, 0] == pytest.approx(2.0, abs=5e-3)
    assert motion["l"].min() >= 0.9 - 1e-8
    assert motion["l"].max() <= 1.1 + 1e-8


@pytest.mark.parametrize(("n", "amplitude"), [(20, 1.99320), (40, 1.99833), (80, 2.00131)])
def test_pumped_swing_that_starts_at_a_turning_point(n, amplitude):
    """The amplitude is an angle at rest; without this condition the turning point lies within a step.

    The first angle is then larger by the error of a coarse mesh, 2.00173 for 40 steps. Reference: an earlier
    implementation of the transcription with the same scheme.
    """
    problem = lv.problems.load("pumping-a-swing")
    resting = lv.optimal_control(problem, steps=n, start={"v_th": 0.0})
    moving = lv.optimal_control(problem, steps=n)
    assert resting.q[0, 0] == pytest.approx(amplitude, abs=6e-6)
    assert resting.v[0, 0] == pytest.approx(0.0, abs=1e-9)
    assert moving.q[0, 0] > resting.q[0, 0]
    assert abs(moving.v[0, 0]) > 1e-3


def test_swing_in_redundant_coordinates_has_the_same_amplitude():
    """A massless length as coordinate with a constraint: periodicity is reduced to the degrees of freedom."""
    system = lv.System(
        "x y l",
        kinetic=lambda v, k: 0.5 * k.m * (v[0] ** 2 + v[1] ** 2),
        potential=lambda q, k: k.m * k.g * q[1],
        constraints=lambda q: [(q[0] ** 2 + q[1] ** 2 - q[2] ** 2) / 2],
        dissipation=lambda v, k: 0.5 * k.d * (v[0] ** 2 + v[1] ** 2),
        forces=lambda k: [0, 0, k.u],
        parameters=dict(m=1.0, g=9.81, d=0.03, u=0.0),
    )
    s = np.linspace(0, 1, 61)
    angle = 0.6 * np.cos(np.pi * s)
    path = np.column_stack([np.sin(angle), -np.cos(angle), np.ones_like(s)])
    motion = lv.optimal_control(
        system, inputs={"u": (-30.0, 0.0)}, t_end=(0.7, 1.6), steps=40, along={"l": (0.9, 1.1)}, minimise=None,
        periodic=lambda q, v: ([-q[0], q[1], q[2]], [-v[0], v[1], v[2]]),
        final=lambda q: lv.math.atan2(q[0], -q[1]),
        guess=dict(q=path, u=np.full(10, -9.81), t_end=1.05),
    )  # fmt: skip
    assert motion.converged
    np.testing.assert_allclose(motion.q[-1], motion.q[0] * [-1, 1, 1], atol=1e-9)
    assert -motion.cost == pytest.approx(2.0, abs=2e-2)


def test_hopping_gait_carries_its_weight():
    """Over a period, the ground carries the weight: the mean normal force is m g, and the mean friction vanishes.

    The foot leaves the ground, and the motion is that of `livens.simulate`.
    """
    problem = lv.problems.load("hopper-gait")
    motion = lv.optimal_control(problem)
    assert motion.converged
    stride = np.array([0.5, 0, 0, 0, 0])
    np.testing.assert_allclose(motion.q[-1], motion.q[0] + stride, atol=1e-10)
    np.testing.assert_allclose(motion.p[-1], motion.p[0], atol=1e-10)
    height = motion.observe(lambda q: _foot(q)[1])
    assert height.max() > 0.1
    assert height.min() > -0.02
    assert np.count_nonzero(height < 0.0) > 10
    k = SimpleNamespace(**problem.model.parameters)
    middles, rates = (motion.q[1:] + motion.q[:-1]) / 2, np.diff(motion.q, axis=0) / motion.h[:, None]
    forces = np.array([_ground_force(q, v, k) for q, v in zip(middles, rates, strict=True)], dtype=float)
    impulse = motion.h @ forces
    assert impulse[1] == pytest.approx(5.5 * 9.81 * motion.t_end, rel=1e-8)
    assert abs(impulse[0]) < 1e-8
    assert motion.replay().defect < 1e-10
    schedule = lv.Schedule({"u": motion.u}, t=motion.t[:-1])
    h = float(motion.h[0]) / 20
    fine = lv.simulate(
        problem.model, motion.q[0], motion.v[0], scheme="gauss-2", h=h, t_end=motion.t_end, inputs=schedule
    )
    assert np.abs(fine.q[-1] - motion.q[-1]).max() < 0.05


@pytest.mark.slow
def test_arm_in_joint_angles():
    problem = lv.problems.load("arm-point-to-point")
    motion = lv.optimal_control(problem)
    assert motion.converged
    assert motion.cost == pytest.approx(0.013642, rel=2e-3)  # gauss-2 with an input per stage
    assert motion.replay().one_step_defect < 1e-13


@pytest.mark.slow
def test_arm_in_frames_with_limits_of_angles_and_rates():
    """With limits of angles and rates, the arm in frames converges from a tracked path; no joint skips angles."""
    torques, target = (60.0, 200.0, 120.0, 15.0, 10.0, 2.0), (1.0, 0.8, -1.2, 0.6, 0.9, -0.5)
    mechanisms = lv.Multibody(gravity=[0, 0, -9.81]), lv.Multibody(gravity=[0, 0, -9.81])
    for mb, is_tracked in zip(mechanisms, (True, False), strict=True):
        previous, height = None, 0.0
        for i, (axis, length, mass) in enumerate(_LINKS, start=1):
            link = mb.rod(f"link{i}", a=[0, 0, height], b=[0, 0, height + length], mass=mass, radius=0.05)
            joint = mb.revolute(f"joint{i}", previous or mb.ground, link, at=link.a, axis=axis)
            ratio = sum(data[2] for data in _LINKS[i - 1 :]) / _LINKS[0][2]
            if is_tracked:
                mb.pd(
                    joint, kp=8000 * ratio, kd=400 * ratio, name=f"pd{i}",
                    reference=lambda t, a=target[i - 1]: a * (3 * t**2 - 2 * t**3),
                    reference_rate=lambda t, a=target[i - 1]: 6 * a * (t - t**2),
                )  # fmt: skip
            else:
                mb.motor(joint, torque=lambda t, angle, rate, k: k.u, parameters=dict(u=0.0), name=f"motor{i}")
            previous, height = link, height + length
    run = mechanisms[0].simulate(t_end=1.0, h=0.01)
    bounds = np.array(torques)
    inputs = np.clip(np.column_stack([run[f"pd{i}.torque"] for i in range(1, 7)]), -bounds, bounds)
    names = range(1, 7)
    motion = lv.optimal_control(
        mechanisms[1], inputs={f"motor{i}.u": (-torques[i - 1], torques[i - 1]) for i in names}, t_end=1.0, steps=20,
        end={f"joint{i}.angle": target[i - 1] for i in names} | {f"joint{i}.rate": 0.0 for i in names},
        along={f"joint{i}.angle": (-2.0, 2.0) for i in names} | {f"joint{i}.rate": (-4.0, 4.0) for i in names},
        minimise=lambda u: sum((u[i] / torques[i]) ** 2 for i in range(6)), guess=dict(q=run.q, v=run.v, u=inputs),
    )  # fmt: skip
    assert motion.converged
    assert motion.cost == pytest.approx(0.01178, rel=1e-3)  # an earlier implementation of the same transcription
    assert all(np.abs(np.diff(motion[f"joint{i}.angle"])).max() < 0.25 for i in names)


@pytest.mark.slow
def test_acrobot_with_and_without_energy_balance():
    """On 20 steps, schemes without an exact balance take energy from their errors; livens-em does not."""
    fine = lv.optimal_control(lv.problems.load("acrobot-swing-up"), scheme="gauss-3")
    assert fine.cost == pytest.approx(23.2196, rel=1e-4)
    place = lambda a, b: [  # noqa: E731
        0.5 * np.sin(a), -0.5 * np.cos(a), 0.5 * np.sin(a) + 0.5 * np.sin(b), -0.5 * np.cos(a) - 0.5 * np.cos(b),
    ]  # fmt: skip
    system = lv.System(
        "x1 y1 x2 y2",
        kinetic=lambda v: (v @ v) / 2,
        potential=lambda q: 9.81 * (q[1] + q[3]),
        constraints=lambda q: [
            (q[0] ** 2 + q[1] ** 2 - 0.25) / 2,
            ((q[2] - q[0]) ** 2 + (q[3] - q[1]) ** 2 - 0.25) / 2,
        ],
        forces=lambda q, k: [
            k.u / 0.25 * (q[1] + (q[3] - q[1])), -k.u / 0.25 * (q[0] + (q[2] - q[0])),
            -k.u / 0.25 * (q[3] - q[1]), k.u / 0.25 * (q[2] - q[0]),
        ],
        parameters=dict(u=0.0),
    )  # fmt: skip
    common = dict(
        inputs={"u": (-12, 12)}, t_end=3.0, steps=20, start=dict(q0=place(0, 0), v0=np.zeros(4)),
        end=dict(q=place(np.pi, np.pi), v=np.zeros(4)),
        guess=dict(q=[place(*q) for q in fine.q], u=fine.input_at("u", np.linspace(0, 3, 81))),
    )  # fmt: skip
    exact = lv.optimal_control(system, scheme="livens-em", **common)
    harvesting = lv.optimal_control(system, scheme="livens-variational", **common)
    assert exact.converged
    assert exact.energy_imbalance() < 1e-12
    assert harvesting.energy_imbalance() > 0.05
    assert "exploit" in harvesting.summary()


@pytest.mark.parametrize("name", ["cart-pole-swing-up", "five-bar-point-to-point", "satellite-reorientation"])
def test_simulate_with_the_inputs_of_a_motion(name):
    """`livens.simulate` with the inputs found, one row per step, has the same motion to round-off."""
    problem = lv.problems.load(name)
    motion = lv.optimal_control(problem)
    start = problem.control.get("start", problem.start_values)
    run = lv.simulate(
        problem.model, start["q0"], start["v0"], scheme=motion.transcription.problem.scheme, h=float(motion.h[0]),
        t_end=motion.t_end, inputs=motion.inputs,
    )  # fmt: skip
    np.testing.assert_allclose(run.q, motion.q, atol=1e-9)
    np.testing.assert_allclose(run.t, motion.t, atol=1e-12)
    replayed = motion.replay().result
    for (row, k), (other_row, other) in zip(run.parameter_segments, replayed.parameter_segments, strict=True):
        assert row == other_row
        np.testing.assert_array_equal(k, other)


def test_declared_inputs_of_a_mechanism():
    """An input that is declared with `mb.input` is optimised by its name."""
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    arm = mb.rod("arm", a=[0, 0, 0], b=[0, 0, -1], mass=1.0)
    hinge = mb.revolute("hinge", mb.ground, arm, at=arm.a, axis="y")
    mb.motor(hinge, torque=mb.input("torque"), name="motor")
    motion = lv.optimal_control(
        mb, inputs={"torque": (-30, 30)}, t_end=1.0, steps=10, end={"hinge.angle": 1.0, "hinge.rate": 0.0}
    )
    assert motion.converged
    run = mb.simulate(t_end=1.0, h=0.1, inputs=motion.inputs)
    np.testing.assert_allclose(run.q, motion.q, atol=1e-10)
    assert run["hinge.angle"][-1] == pytest.approx(1.0)


def test_ensembles_take_the_inputs_of_a_motion():
    """Every member has the motion of `livens.simulate` with the inputs; the undisturbed one is the optimal motion."""
    problem = lv.problems.load("cart-pole-swing-up")
    motion = lv.optimal_control(problem, steps=20)
    q0 = np.vstack([np.zeros(2), np.random.default_rng(0).normal(0, 0.05, (9, 2))])
    options = dict(scheme="livens-variational", h=0.1, t_end=2.0, inputs=motion.inputs)
    many = lv.ensemble(problem.model, q0, np.zeros(2), **options)
    np.testing.assert_allclose(many.q[0], motion.q, atol=1e-9)
    for member in (3, 9):
        run = lv.simulate(problem.model, q0[member], np.zeros(2), **options)
        np.testing.assert_allclose(many.q[member], run.q, atol=1e-12)
        drift = many.summary[member].max_energy_drift
        assert drift == pytest.approx(run.summary.max_energy_drift, rel=1e-9)


def test_the_optimal_inputs_are_stationary_for_gradients_of_runs():
    """Single shooting from the optimum: the gradient of the effort is a combination of the gradients of the end state.

    Gradients by the samples of the inputs come from the discrete adjoint of the run; the weights are the duals.
    """
    problem = lv.problems.load("cart-pole-swing-up")
    motion = lv.optimal_control(problem, steps=20)
    inner = np.abs(motion.u[:, 0]) < 20 * (1 - 1e-6)
    step = lv.prepare(problem.model, scheme="livens-variational", h=0.1)
    columns = []
    for loss in (lambda q: q[0], lambda q: q[1], lambda p: p[0], lambda p: p[1]):
        _, gradient = lv.value_and_gradient(loss)(step, [0, 0], [0, 0], t_end=2.0, inputs=motion.inputs)
        assert "u" not in gradient.parameters
        columns.append(gradient.inputs["u"])
    end_gradients, effort_gradient = np.array(columns).T, 2 * 0.1 * motion.u[:, 0]
    weights, *_ = np.linalg.lstsq(end_gradients[inner], effort_gradient[inner], rcond=None)
    np.testing.assert_allclose(end_gradients[inner] @ weights, effort_gradient[inner], atol=1e-6)
    duals = np.concatenate([motion.duals["end: q"], motion.duals["end: v"]])
    np.testing.assert_allclose(np.abs(weights), np.abs(duals), rtol=1e-5)


def test_derivatives_of_finished_runs_need_constant_parameters():
    problem = lv.problems.load("cart-pole-swing-up")
    motion = lv.optimal_control(problem, steps=20)
    for result in (motion.replay().result, motion.to_result()):
        with pytest.raises(lv.InputError, match=r"value_and_gradient"):
            result.jvp("q0")
