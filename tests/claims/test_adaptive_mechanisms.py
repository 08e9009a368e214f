"""Adaptive steps of schemes of order 2 for mechanical systems: error estimate, tolerance, conservation."""

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

import livens as lv
from livens.engine.newton.step_size_control import CONTROLLER_STATE, initial_controller_state
from livens.engine.newton.time_loop import StepPolicy
from livens.run.plan import Plan
from livens.run.startup import compile_and_start, start_integration
from livens.run.stepping import make_stepping

SCHEMES = ("livens-em", "livens-midpoint", "ggl-em", "livens-variational", "rattle")
GRAVITY = 9.81
few = settings(max_examples=2, deadline=None, suppress_health_check=[HealthCheck.too_slow])
one = settings(few, max_examples=1)
many = settings(few, max_examples=20)


class PointChain:
    """Random chain of point masses in space on rigid massless rods, and its equations of motion of index 1."""

    def __init__(self, seed, n):
        rng = np.random.default_rng(seed)
        self.n, self.mass, self.length = n, rng.uniform(0.5, 2.0, n), rng.uniform(0.5, 1.5, n)
        direction = rng.normal(size=(n, 3))
        direction /= np.linalg.norm(direction, axis=1)[:, None]
        rate = 2 * rng.normal(size=(n, 3))
        rate -= direction * (rate * direction).sum(axis=1)[:, None]
        self.q0 = np.cumsum(direction * self.length[:, None], axis=0).ravel()
        self.v0 = np.cumsum(rate, axis=0).ravel()
        m, length = self.mass, self.length
        names = [f"{axis}{i}" for i in range(n) for axis in "xyz"]

        def constraints(q):
            rods = [[q[3 * i + j] - (q[3 * i - 3 + j] if i else 0) for j in range(3)] for i in range(n)]
            return [(d[0] ** 2 + d[1] ** 2 + d[2] ** 2 - length[i] ** 2) / 2 for i, d in enumerate(rods)]

        self.system = lv.System(
            names,
            kinetic=lambda v: sum(m[i // 3] * v[i] ** 2 / 2 for i in range(3 * n)),
            potential=lambda q: sum(GRAVITY * m[i] * q[3 * i + 2] for i in range(n)),
            constraints=constraints,
        )

    def rate(self, t, y):
        n = self.n
        q, v = y[: 3 * n].reshape(n, 3), y[3 * n :].reshape(n, 3)
        rods, rates = np.diff(q, axis=0, prepend=np.zeros((1, 3))), np.diff(v, axis=0, prepend=np.zeros((1, 3)))
        G = np.zeros((n, n, 3))
        for i in range(n):
            G[i, i] = rods[i]
            if i:
                G[i, i - 1] = -rods[i]
        G, inverse_mass = G.reshape(n, 3 * n), 1 / np.repeat(self.mass, 3)
        free = np.tile([0.0, 0.0, -GRAVITY], n)
        multipliers = np.linalg.solve(G * inverse_mass @ G.T, G @ free + (rates**2).sum(axis=1))
        return np.concatenate([v.ravel(), free - inverse_mass * (G.T @ multipliers)])

    def exact(self, y, t):
        return solve_ivp(self.rate, (0, t), y, method="DOP853", rtol=1e-13, atol=1e-13).y[:, -1]


def second_step(model, q, v, scheme, h, tier="auto"):
    """Return the estimated error of the second step relative to the scale, its size, and its start time."""
    span, tolerance = 100.0, 1e3
    control = lv.StepControl(tolerance=tolerance, largest=h)
    plan = Plan.from_arguments(
        model, dict(q0=q, v0=v), scheme=scheme, h=h, t_end=span, control=control, project=True, tier=tier
    )
    compiled, initial = compile_and_start(plan)
    state, stepper = start_integration(plan, compiled, initial)
    stepping = make_stepping(plan, compiled.layout)
    steps = stepping.advance(stepper, state, 2)
    controller = stepping.checkpoint()["flow"]
    h_last, error = (controller[CONTROLLER_STATE.names.index(name)] for name in ("last", "local_error"))
    assert steps.n_steps == 2
    return error * tolerance / span * h_last, h_last, steps.t_nodes[1]


def chain_error_ratio(seed, scheme):
    """Return the estimated local error of a step of a random chain, relative to the true one (DOP853)."""
    chain = PointChain(seed, 1 + seed % 3)
    n = 3 * chain.n
    estimated, h, t1 = second_step(chain.system, chain.q0, chain.v0, scheme, 2e-3, ("auto", "assembled")[seed % 2])
    start = chain.exact(np.concatenate([chain.q0, chain.v0]), t1)
    end = chain.exact(start, h)[:n]
    step = lv.simulate(chain.system, start[:n], start[n:], scheme=scheme, h=h, t_end=h, project=True)
    return estimated / np.max(np.abs(step.q[-1] - end)) * (np.max(np.abs(start[:n])) + 1e-3)


@pytest.mark.parametrize("scheme", SCHEMES)
@few
@given(seed=st.integers(0, 2**31))
def test_estimates_are_the_local_errors_of_random_chains(scheme, seed):
    assert 0.5 < chain_error_ratio(seed, scheme) < 2


def spatial_arm(seed, n=3):
    """Random chain of rods in space with ball joints, and random angular velocities."""
    rng = np.random.default_rng(seed)
    mb = lv.Multibody()
    last, at = mb.ground, np.zeros(3)
    for i in range(n):
        direction = rng.normal(size=3)
        end = at + rng.uniform(0.3, 1.0) * direction / np.linalg.norm(direction)
        body = mb.rod(f"rod{i}", a=at, b=end, mass=rng.uniform(0.5, 2.0), radius=0.1)
        mb.spherical(f"ball{i}", last, body, at=at)
        mb.initial(body, omega=3 * rng.normal(size=3))
        last, at = body, end
    return mb


def arm_error_ratio(seed, scheme):
    """Return the estimated local error of a step of a random arm, relative to the true one.

    The reference is extrapolated from steps of another scheme with constraints of both levels.
    """
    mb = spatial_arm(seed, 1 + seed % 2)
    q, v = mb.initial_state
    estimated, h, t1 = second_step(mb.system, q, v, scheme, 1e-3)
    start = refined(mb.system, q, v, t1)
    end = refined(mb.system, *start, h)[0]
    step = lv.simulate(mb.system, *start, scheme=scheme, h=h, t_end=h, project=True)
    groups = np.array([i for frame in mb.system.frames for i in frame.position])
    is_position = np.isin(np.arange(mb.system.n), groups)
    scale = np.where(is_position, np.max(np.abs(q[is_position])), np.max(np.abs(q[~is_position]))) + 1e-3
    return estimated / np.max(np.abs(step.q[-1] - end) / scale)


@pytest.mark.parametrize("scheme", ["lie-em", "lie-ggl", "livens-em"])
@one
@given(seed=st.integers(0, 2**31))
def test_estimates_are_the_local_errors_of_random_rigid_bodies(scheme, seed):
    assert 0.5 < arm_error_ratio(seed, scheme) < 2


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["lie-em", "lie-ggl", *SCHEMES])
@many
@given(seed=st.integers(0, 2**31))
def test_estimates_of_many_random_mechanisms(scheme, seed):
    assert 0.5 < (arm_error_ratio if scheme.startswith("lie") else chain_error_ratio)(seed, scheme) < 2


def refined(system, q, v, t):
    run = lv.simulate(system, q, v, scheme="lobatto-iiia-iiib-3", h=t / 4, t_end=t, project=True)
    return run.q[-1], run.v[-1]


def test_errors_are_proportional_to_the_tolerance():
    chain = PointChain(1, 2)
    exact = chain.exact(np.concatenate([chain.q0, chain.v0]), 1.0)[:6]
    ratios = []
    for tolerance in (1e-2, 1e-4, 1e-6, 1e-8):
        run = lv.simulate(chain.system, chain.q0, chain.v0, t_end=1.0, tolerance=tolerance, project=True)
        ratios.append(np.max(np.abs(run.q[-1] - exact)) / tolerance)
        assert run.summary.max_energy_drift < 1e-12 and run.t[-1] == 1.0
    assert max(ratios) < 10 * min(ratios)


@pytest.mark.parametrize("controller", ["H211b", "H0321", "predictive"])
def test_controllers_reject_few_steps(controller):
    mb = spatial_arm(7)
    run = mb.simulate(t_end=2.0, control=lv.StepControl(tolerance=1e-5, controller=controller))
    assert run.statistics.rejected < 0.05 * run.statistics.steps
    sizes = run.step_size[2:-3]
    assert np.all(sizes[5:] / sizes[:-5] < 1.1**5 + 1e-9)  # growth by at most 10 % per step, at every fifth step
    assert run.summary.max_energy_drift < 1e-12


def test_steps_without_a_pivot_order_are_solved_by_the_reference_solver():
    h, start = 0.01, dict(q0=[1.0, 0.0], v0=[0.0, 0.5])
    plan = Plan.from_arguments(PENDULUM, start, t_end=1.0, h=h, control=lv.StepControl(tolerance=1e-3), project=True)
    compiled, initial = compile_and_start(plan)
    state, stepper = start_integration(plan, compiled, initial)
    policy, controller_state = StepPolicy(True, h, 0.0, 0, t_end=1.0), initial_controller_state(h)
    expected = stepper.advance(state, 1, policy, controller_state.copy())
    w = stepper._workspaces.prepare(state, 1)
    w.c[:2] = h, 0.0
    assert stepper._take_reference_step(w, 0, policy, controller_state)
    assert w.t[1] == h == controller_state[0]["last"] and stepper.statistics.fallback_steps == 1
    np.testing.assert_allclose(w.Z[1], expected.final.z, rtol=1e-12, atol=1e-14)


def test_tiers_take_the_same_steps():
    mb = spatial_arm(3)
    fused, assembled = (mb.simulate(t_end=1.0, tolerance=1e-5, tier=tier) for tier in ("fused", "assembled"))
    assert fused.statistics.steps == assembled.statistics.steps
    np.testing.assert_allclose(fused.q[-1], assembled.q[-1], atol=1e-9)


def test_a_mechanical_system_without_a_step_size_has_a_tolerance():
    mb = spatial_arm(2, 1)
    run = lv.simulate(mb.system, *mb.initial_state, t_end=1.0)
    given = lv.simulate(mb.system, *mb.initial_state, t_end=1.0, tolerance=1e-4)
    assert run.info.control["tolerance"] == 1e-4 and np.array_equal(run.q, given.q)
    assert mb.simulate(t_end=0.1).statistics.steps == 100


def test_a_run_in_parts_is_the_run_as_a_whole(tmp_path):
    mb = spatial_arm(5, 2)
    whole = mb.simulate(t_end=1.0, tolerance=1e-5, out=tmp_path / "whole.h5")
    control = lv.StepControl(tolerance=1e-5, most_steps=whole.statistics.steps // 2)
    part = mb.simulate(t_end=1.0, control=control, out=tmp_path / "part.h5")
    assert part.t[-1] < 1.0
    rest = lv.resume(tmp_path / "part.h5", system=mb.system)
    n = min(len(rest.t), len(whole.t))
    assert n > whole.statistics.steps // 2 or part.statistics.steps == whole.statistics.steps // 2
    np.testing.assert_array_equal(rest.q[: n - 3], whole.q[: n - 3])


def test_events_restart_the_estimate():
    """A mass on a spring that rebounds from a wall: exact between impacts, and as many steps after as before."""
    spring = lv.System("x", kinetic=lambda v: v[0] ** 2 / 2, potential=lambda q: 2 * q[0] ** 2)
    wall = lv.Event(lambda q: q[0], "wall", direction=-1, action=lambda v: {"v": -v})
    run = lv.simulate(spring, q0=[1.0], v0=[0.0], t_end=3.0, tolerance=1e-6, events=[wall])
    np.testing.assert_allclose(run.q[:, 0], np.abs(np.cos(2 * run.t)), atol=2e-6)
    assert len(run.events) == 2 and run.statistics.rejected < 20


def error_constant(problem, exact, **options):
    """Return steps^2 times the error at the end."""
    run = lv.simulate(problem, progress=False, **options)
    return run.statistics.steps**2 * np.max(np.abs(run.q[-1] - exact))


@pytest.mark.parametrize(
    ("name", "h", "ratio"), [("andrews-squeezer", 1e-5, 1.0), ("double-four-bar-multibody", 1e-3, 0.7)]
)
def test_steps_at_equal_error(name, h, ratio):
    """Steps that follow the motion, at equal error, beside equal steps; the order is 2 for both."""
    problem = lv.problems.load(name)
    t_end = problem.t_end if problem.reference else 3.0
    exact = problem.reference(t_end)["q"] if problem.reference else refined_end(problem, h, t_end)
    equal = error_constant(problem, exact, h=h, t_end=t_end)
    for tolerance in (1e-3, 1e-4, 1e-5):
        adaptive = error_constant(problem, exact, tolerance=tolerance, t_end=t_end)
        assert np.sqrt(adaptive / equal) < ratio, tolerance


def refined_end(problem, h, t_end):
    """Return the positions at the end of equal steps, extrapolated to steps of size zero."""
    coarse, fine = (lv.simulate(problem, h=h / n, t_end=t_end, progress=False).q[-1] for n in (4, 8))
    return fine + (fine - coarse) / 3


def test_step_sizes_follow_the_motion():
    """A pendulum that nearly stops at the top: short steps at the bottom, where it is fast."""
    mb = lv.Multibody(gravity=(0, 0, -GRAVITY))
    rod = mb.rod("rod", a=(0, 0, 0), b=(0, 0, -1), mass=1.0)
    hinge = mb.revolute("hinge", mb.ground, rod, at=(0, 0, 0), axis="y")
    mb.initial(hinge, angle=3.1, rate=0.0)
    run = mb.simulate(t_end=10.0, tolerance=1e-5)
    sizes, height = run.step_size[5:-5], run.q[5:-5, 2]
    assert sizes[height > 0.45].mean() > 1.5 * sizes[height < -0.45].mean()
    assert sizes.max() > 4 * sizes.min()


def test_a_smallest_step_above_the_tolerance_names_the_variable():
    with pytest.raises(lv.IntegrationError, match=r"at least 0\.01 succeeded.* error of [xy] exceeds the tolerance"):
        control = lv.StepControl(tolerance=1e-9, smallest=1e-2)
        lv.simulate(PENDULUM, **UPRIGHT, h=1e-2, t_end=1.0, control=control)


def test_unequal_steps_do_not_disturb_each_other():
    """The double-step factor is exact for errors proportional to h^3."""
    from livens.engine.newton.error_estimate import double_step_factor

    for h, last in itertools.product((0.5, 1.0, 2.0), repeat=2):
        assert double_step_factor(2, h, last) * ((h + last) ** 3 - h**3 - last**3) == pytest.approx(h**3)


# -- reversible steps --------------------------------------------------------------------------------------------------
PENDULUM = lv.System(
    "x y",
    kinetic=lambda v: (v[0] ** 2 + v[1] ** 2) / 2,
    potential=lambda q: GRAVITY * q[1],
    constraints=lambda q: [(q[0] ** 2 + q[1] ** 2 - 1) / 2],
)
UPRIGHT = dict(q0=[0.1, np.sqrt(0.99)], v0=[0.0, 0.0], project=True)


def height_scaling(q):
    return 1 / (1.3 - q[1])


def swing(angle=3.0):
    mb = lv.Multibody(gravity=(0, 0, -GRAVITY))
    rod = mb.rod("rod", a=(0, 0, 0), b=(0, 0, -1), mass=1.0)
    mb.initial(mb.revolute("hinge", mb.ground, rod, at=(0, 0, 0), axis="y"), angle=angle, rate=0.0)
    return mb


@pytest.mark.parametrize("scheme", ["livens-em", "ggl-em", "livens-midpoint", "livens-variational", "rattle"])
def test_reversible_steps_with_constraints(scheme):
    run = lv.simulate(
        PENDULUM, **UPRIGHT, scheme=scheme, adaptive="reversible", h=0.02, t_end=40.0, scaling=height_scaling
    )
    assert run.info.scheme == f"step-density:{scheme}" and run.t[-1] == 40.0
    assert run.step_size[1:-1].max() > 5 * run.step_size[1:-1].min()
    assert run.summary.max_constraint < 1e-12
    if scheme.endswith("em"):
        assert run.summary.max_energy_drift < 1e-12


SWING_SCALINGS = {
    "coordinates": lambda q: 1 / (1.3 - 2 * q[2]),
    "velocities": lambda v: 1 / (0.3 + v @ v) ** 0.5,
    "force": lv.scaling.of("hinge.force", reference=0.5, exponent=1.0),
    "speed": lv.scaling.speed(1.0),
    "curvature": lv.scaling.curvature(0.1, 0.3),
}


@pytest.mark.parametrize("scaling", SWING_SCALINGS)
@pytest.mark.parametrize("scheme", ["lie-em", "lie-ggl", "livens-em"])
def test_reversible_steps_of_mechanisms(scheme, scaling):
    run = swing().simulate(t_end=20.0, h=0.02, scheme=scheme, adaptive="reversible", scaling=SWING_SCALINGS[scaling])
    assert run.summary.max_energy_drift < 1e-12 and run.summary.max_constraint < 1e-12
    ratio = 3 if scaling == "curvature" else 4
    assert run.step_size[1:-1].max() > ratio * run.step_size[1:-1].min()


def test_steps_follow_the_curvature_of_the_motion():
    """The step size is h times the scaling of the exact acceleration of a pendulum of points, and of its speed."""
    scaling = lv.scaling.curvature(0.5, 0.3, exponent=1.0)
    run = lv.simulate(PENDULUM, **UPRIGHT, h=0.002, t_end=5.0, adaptive="reversible", scaling=scaling)
    angle = np.unwrap(np.arctan2(run.q[:, 0], run.q[:, 1]))
    rate2 = 2 * GRAVITY * (np.sqrt(0.99) - np.cos(angle))  # by conservation of energy
    acceleration2 = (GRAVITY * np.sin(angle)) ** 2 + rate2**2
    expected = 0.002 / np.sqrt(acceleration2 / (rate2 + 0.25) + 0.09)
    middle = (expected[1:-2] + expected[2:-1]) / 2
    np.testing.assert_allclose(run.step_size[2:-1], middle, rtol=1e-3)


def test_curvature_of_a_hamiltonian():
    """On a circular orbit of radius r and unit gravity parameter, |a|/|v| is the angular velocity r^(-3/2)."""
    kepler = lv.Hamiltonian("x y", kinetic=lambda p: p @ p / 2, potential=lambda q: -1 / lv.math.norm(q))
    scaling = lv.scaling.curvature(1e-6, 1e-6, exponent=1.0)
    value = scaling.evaluate_checked(kepler, q=[0.25, 0.0], p=[0.0, 2.0])
    assert value == pytest.approx(0.25**1.5, rel=1e-9)
    run = lv.simulate(kepler, q0=[0.4, 0], p0=[0, 2.0], scheme="step-density", scaling=scaling, h=0.02, t_end=5.0)
    # eccentricity 0.6: |a|/|v| is (1/0.16)/2 at distance 0.4, and (1/2.56)/0.5 at distance 1.6
    assert run.step_size[1:-1].min() == pytest.approx(0.02 / 3.125, rel=0.03)
    assert run.step_size[1:-1].max() == pytest.approx(0.02 / 0.78125, rel=0.03)
    with pytest.raises(lv.InputError, match="needs a mechanical system with constraints or forces"):
        force = lv.scaling.of("pin.force", reference=1.0)
        lv.simulate(kepler, q0=[0.4, 0], p0=[0, 2.0], scheme="step-density", scaling=force, h=0.02, t_end=5.0)


@pytest.mark.parametrize("omega", [0.5, 2.0, 10.0])
@pytest.mark.parametrize("scheme", ["implicit-midpoint", "livens-em", "livens-midpoint"])
def test_curvature_is_the_local_error_of_a_circular_motion(omega, scheme):
    """The delay of a step is ``h^3 (|a|/|v|)^2/12``; with steps of the scaling it does not depend on the rate."""
    scaling = lv.scaling.curvature(1e-6, 1e-6)
    spring = lv.System("x y", kinetic=lambda v: v @ v / 2, potential=lambda q: omega**2 * (q @ q) / 2)
    h, start = 0.02 * omega ** (-2 / 3), dict(q0=[1.0, 0.0], v0=[0.0, omega])
    run = lv.simulate(spring, **start, scheme=scheme, h=h, t_end=h)
    delay = abs(h - np.arctan2(run.q[-1, 1], run.q[-1, 0]) / omega)
    assert delay == pytest.approx(0.02**3 / 12, rel=1e-3)
    phase = lv.Hamiltonian("x y", kinetic=lambda p: p @ p / 2, potential=lambda q: omega**2 * (q @ q) / 2)
    assert scaling.evaluate_checked(phase, q=[1.0, 0.0], p=[0.0, omega]) == pytest.approx(omega ** (-2 / 3), rel=1e-6)


def test_curvature_of_redundant_constraints():
    """A slider-crank with a redundant constraint: energy and constraints exact, accelerations unique."""
    problem = lv.problems.load("slider-crank", torque=0.0, friction=0.0, rate=20.0)
    run = lv.simulate(problem, adaptive="reversible", h=0.02, t_end=1.0, scaling=lv.scaling.curvature(0.5, 1.0))
    assert run.summary.max_energy_drift < 1e-12 and run.summary.max_constraint < 1e-12
    assert run.step_size[1:-1].max() > 1.3 * run.step_size[1:-1].min()


def test_steps_follow_a_result_by_name():
    """The step size is h times the scaling of the force in the middle of the step."""
    run = swing().simulate(t_end=3.0, h=0.005, adaptive="reversible", scaling=SWING_SCALINGS["force"])
    force = np.linalg.norm(run["hinge.force"], axis=1)[1:-1]
    np.testing.assert_allclose(run.step_size[1:-1], 0.005 / np.sqrt(1 + (force / 0.5) ** 2), rtol=1e-2)


def test_steps_follow_the_stiffness_of_contacts():
    """A ball on an elastic floor: short steps in contact, long steps in flight, energy exact."""
    mb = lv.Multibody(gravity=(0, 0, -GRAVITY))
    ball = mb.sphere("ball", radius=0.1, at=(0, 0, 0.5), mass=1.0)
    mb.contact(ball, mb.ground, stiffness=1e5)
    run = mb.simulate(
        t_end=3.0, h=0.02, adaptive="reversible", scaling=lv.scaling.stiffness(1.0, smoothing_length=0.02)
    )
    assert run.summary.max_energy_drift < 1e-11
    gap = run.q[1:-1, 2] - 0.1
    assert run.step_size[1:-1][gap > 0.3].min() > 5 * run.step_size[1:-1][gap < 0.005].max()


@pytest.mark.parametrize(
    ("model", "start", "scheme", "scaling"),
    [
        *((PENDULUM, UPRIGHT, name, height_scaling) for name in SCHEMES),
        *((swing(), {}, name, SWING_SCALINGS["coordinates"]) for name in ("lie-em", "lie-ggl")),
        *((swing(), {}, "lie-em", SWING_SCALINGS[name]) for name in ("velocities", "force", "speed", "curvature")),
    ],
)
def test_there_and_back(model, start, scheme, scaling):
    """Reverse the velocities after 2000 steps: the steps, and with them the states, are traversed backwards."""
    n_steps, h = 2000, 0.02
    values = dict(start) or dict(zip(("q0", "v0"), model.initial_state, strict=True))
    system, project = (model if isinstance(model, lv.System) else model.system), values.pop("project", False)
    plan = Plan.from_arguments(
        system, values, scheme=scheme, adaptive="reversible", h=h, t_end=1e6, scaling=scaling, project=project
    )
    compiled, initial = compile_and_start(plan)
    state, stepper = start_integration(plan, compiled, initial)
    layout, begin = compiled.layout, state.z.copy()
    odd = [layout[name] for name in ("v", "p", "body_spins") if name in layout]
    sizes = []
    for _ in range(2):
        steps = make_stepping(plan, layout).advance(stepper, state, n_steps)
        state = steps.final
        sizes.append(np.diff(steps.states[:, layout["t"].start]))
        for part in odd:
            state.z[part] *= -1
        state.unknown_history[:] = compiled.initial_unknowns(state.z, np.concatenate([[h, 0.0], plan.k]), plan.tier)
    np.testing.assert_allclose(state.z[layout["q"]], begin[layout["q"]], atol=1e-11)
    round_off = 1e-10 if scaling is SWING_SCALINGS["force"] else 1e-11  # forces are residuals divided by h
    np.testing.assert_allclose(sizes[1], sizes[0][::-1], rtol=0, atol=round_off)


@pytest.mark.parametrize(
    "scaling", [lambda q: 1 / (2 + q[2] / 4), lambda v: 1 / (1 + v @ v) ** 0.5, lv.scaling.curvature(1.0, 1.0)]
)
def test_reversible_steps_have_order_two(scaling):
    chain = PointChain(4, 2)
    exact = chain.exact(np.concatenate([chain.q0, chain.v0]), 1.0)
    errors, sizes = [], []
    for h in (0.004, 0.002, 0.001, 0.0005):
        run = lv.simulate(
            chain.system, chain.q0, chain.v0, adaptive="reversible", h=h, t_end=1.0, project=True,
            scaling=scaling,
        )  # fmt: skip
        errors.append(np.max(np.abs(run.q[-1] - exact[:6])))
        sizes.append(1.0 / run.statistics.steps)
    order = np.log(errors[0] / errors[-1]) / np.log(sizes[0] / sizes[-1])
    assert 1.9 < order < 2.1


def test_energy_drifts_with_classical_control_and_not_with_reversible_steps():
    """A symplectic scheme on a pendulum: its energy error has no trend with reversible steps."""

    def trend(run):
        energy = run.observe("total_energy")
        return abs(np.polyfit(run.t / run.t[-1], energy, 1)[0]), np.ptp(energy)

    options = dict(UPRIGHT, scheme="livens-variational", t_end=1000.0)
    drift, swing = trend(lv.simulate(PENDULUM, **options, adaptive="reversible", h=0.1, scaling=height_scaling))
    assert drift < 0.05 * swing
    drift, swing = trend(lv.simulate(PENDULUM, **options, tolerance=3.0))
    assert drift > 0.3 * swing


def test_wrong_use_of_reversible_steps():
    def run(**options):
        lv.simulate(PENDULUM, **UPRIGHT, **{"h": 0.1, "t_end": 1.0, "adaptive": "reversible", **options})

    with pytest.raises(lv.InputError, match="livens-em:itoh-abe' is not symmetric"):
        run(scheme="livens-em:itoh-abe", scaling=height_scaling)
    with pytest.raises(lv.InputError, match=r"is -0\.99.* in the initial state; it must be finite and greater than 0"):
        run(scaling=lambda q: -q[1])
    with pytest.raises(lv.InputError, match="is 0 in the initial state"):
        run(scaling=lambda q: 0 * q[1])
    with pytest.raises(lv.InputError, match="a scaling function may have the arguments"):
        run(scaling=lambda q, p: 1 / (1 + p[0] ** 2))
    with pytest.raises(lv.InputError, match="made for models in coordinates and momenta"):
        run(scaling=lv.scaling.kinetic())
    with pytest.raises(lv.InputError, match="infinite at rest; give an offset"):
        run(scaling=lv.scaling.speed())
    with pytest.raises(lv.InputError, match=r"unknown output .pin\.force."):
        run(scaling=lv.scaling.of("pin.force", reference=1.0))
    with pytest.raises(lv.InputError, match="needs a scaling function"):
        run()
    with pytest.raises(lv.InputError, match="remove tolerance= and control="):
        run(tolerance=1e-3, scaling=height_scaling)
    with pytest.raises(lv.InputError, match="adaptive"):
        run(adaptive="classical")


# -- reversible steps with forces, drives and both levels --------------------------------------------------------------
def two_rods():
    mb = lv.Multibody(gravity=(0, 0, -GRAVITY))
    upper = mb.rod("upper", a=(0, 0, 0), b=(0.5, 0, -0.5), mass=1.0)
    lower = mb.rod("lower", a=upper.b, b=(1.0, 0, -0.2), mass=0.5)
    shoulder = mb.revolute("shoulder", mb.ground, upper, at=upper.a, axis="y")
    elbow = mb.revolute("elbow", upper, lower, at=upper.b, axis="y")
    mb.initial(shoulder, rate=1.5)
    return mb, lower, elbow


def with_spring(mb, lower, elbow):
    mb.spring_damper("spring", lower.b, (1, 0, 0), stiffness=50.0, damping=2.0, free_length=0.3)


def with_motor(mb, lower, elbow):
    mb.motor(elbow, torque=lambda t, angle, rate: 2 * lv.math.sin(3 * t) - 0.3 * rate)


def with_drive(mb, lower, elbow):
    mb.drive(elbow, angle=lambda t: 0.5 * lv.math.sin(2 * t))


ARM_SCALINGS = {
    "coordinates": lambda q: 1 / (1.5 - q[2]),
    "speed": lv.scaling.speed(1.0, exponent=1 / 3),
    "force": lv.scaling.of("shoulder.force", reference=10.0),
    "curvature": lv.scaling.curvature(0.3, 1.0),
}


ARM_CASES = list(itertools.product(ARM_SCALINGS, [None, with_spring, with_motor, with_drive], [False, True]))
QUICK_CASES = [("curvature", with_spring, False), ("force", with_motor, False), ("speed", with_drive, True)]


@pytest.mark.parametrize(
    ("scaling", "element", "velocity_level"),
    [pytest.param(*case, marks=() if case in QUICK_CASES else pytest.mark.slow) for case in ARM_CASES],
)
def test_reversible_steps_with_forces_and_drives(scaling, element, velocity_level):
    """Energy balance and constraints are those of equal steps, and both runs agree to the order of the scheme."""
    mb, lower, elbow = two_rods()
    if element is not None:
        element(mb, lower, elbow)
    options = dict(t_end=1.0, velocity_level=velocity_level)
    run = mb.simulate(h=0.005, adaptive="reversible", scaling=ARM_SCALINGS[scaling], **options)
    assert run.summary.max_energy_drift < 1e-12 and run.summary.max_constraint < 1e-11
    assert run.step_size[1:-1].max() > 1.05 * run.step_size[1:-1].min()
    fine = mb.simulate(h=2e-4, **options)
    np.testing.assert_allclose(run.q[-1], fine.q[-1], atol=2e-3)


def driven_oscillator(damping):
    return lv.PortHamiltonian(
        "q p",
        H=lambda x: x[1] ** 2 / 2 + x[0] ** 4,
        J=[[0, 1], [-1, 0]],
        R=lambda k: [[0, 0], [0, k.d]],
        B=[[0], [1]],
        u=lambda t: [0.3 * lv.math.sin(t)],
        parameters=dict(d=damping),
    )


@pytest.mark.parametrize("scaling", [lambda x: (1 + 12 * x[0] ** 2) ** -0.5, lv.scaling.speed(1.0)])
@pytest.mark.parametrize("damping", [0.0, 0.1])
def test_reversible_steps_of_port_hamiltonian_systems(scaling, damping):
    """The power balance is exact, and the order that of the discrete gradient; the reference is DOP853."""

    def rate(t, x):
        return [x[1], -4 * x[0] ** 3 - damping * x[1] + 0.3 * np.sin(t)]

    exact = solve_ivp(rate, (0, 5), [1.5, 0.0], method="DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    errors, sizes = [], []
    for h in (0.04, 0.02, 0.01, 0.005):
        options = dict(scheme="discrete-gradient-pair", adaptive="reversible", scaling=scaling, h=h, t_end=5.0)
        run = lv.simulate(driven_oscillator(damping), x0=[1.5, 0.0], **options)
        assert run.summary.max_energy_drift < 1e-12 and run.step_size[1:-1].max() > 2 * run.step_size[1:-1].min()
        errors.append(np.max(np.abs(run.x[-1] - exact)))
        sizes.append(5.0 / run.statistics.steps)
    assert np.polyfit(np.log(sizes), np.log(errors), 1)[0] == pytest.approx(2, abs=0.1)


@pytest.mark.parametrize("options", [{"tolerance": 1e-4}, {"adaptive": "reversible"}, {"control": lv.StepControl()}])
def test_ensembles_take_equal_steps(options):
    with pytest.raises(lv.errors.CallError, match="share their step size; simulate them one by one"):
        lv.ensemble(PENDULUM, [UPRIGHT["q0"]] * 2, [UPRIGHT["v0"]] * 2, h=0.01, t_end=1.0, **options)
