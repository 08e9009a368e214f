"""Adaptive steps in the fused, assembled and tree tiers: equal steps, motion of round-off distance, reversibility."""

import numpy as np
import pytest

import livens as lv
from livens.run.plan import Plan
from livens.run.startup import compile_and_start, start_integration
from livens.run.stepping import make_stepping

GRAVITY = 9.81
TIERS = ("fused", "assembled", "tree")
SCALINGS = {
    "coordinates": lambda q: 1 / (0.1 - q[2]),
    "speed": lv.scaling.speed(1.0, exponent=1 / 3),
    "force": lv.scaling.of("shoulder.force", reference=10.0),
    "curvature": lv.scaling.curvature(0.3, 1.0),
}


def driven_arm():
    """Three rods with hinges, a motor and a spring."""
    mb = lv.Multibody(gravity=(0, 0, -GRAVITY))
    upper = mb.rod("upper", a=(0, 0, 0), b=(0.5, 0, -0.5), mass=1.0)
    lower = mb.rod("lower", a=upper.b, b=(1.0, 0, -0.2), mass=0.5)
    hand = mb.rod("hand", a=lower.b, b=(1.3, 0, -0.4), mass=0.3)
    shoulder = mb.revolute("shoulder", mb.ground, upper, at=upper.a, axis="y")
    elbow = mb.revolute("elbow", upper, lower, at=upper.b, axis="y")
    mb.revolute("wrist", lower, hand, at=lower.b, axis="y")
    mb.initial(shoulder, rate=1.5)
    mb.motor(elbow, torque=lambda t, angle, rate: 2 * lv.math.sin(3 * t) - 0.3 * rate)
    mb.spring_damper("spring", lower.b, (1, 0, 0), stiffness=50.0, damping=2.0, free_length=0.3)
    return mb


def ball_chain(n):
    """Chain of rods with ball joints, swinging in space."""
    mb = lv.Multibody(gravity=(0, 0, -GRAVITY))
    last, at = mb.ground, np.zeros(3)
    for i in range(n):
        end = at + np.array([0.3, 0.02 * i, -0.1])
        rod = mb.rod(f"rod{i}", a=at, b=end, mass=0.2, radius=0.02)
        mb.spherical(f"ball{i}", last, rod, at=at)
        last, at = rod, end
    return mb


def runs_by_tier(**options):
    mb = driven_arm()
    return [mb.simulate(**options, tier=tier) for tier in TIERS]


def assert_equal_steps(runs, atol):
    fused = runs[0]
    for run, tier in zip(runs, TIERS, strict=True):
        assert run.info.tier == tier and run.statistics.steps == fused.statistics.steps
        assert run.summary.max_energy_drift < 1e-12 and run.summary.max_constraint < 1e-12
        np.testing.assert_allclose(run.q, fused.q, rtol=0, atol=atol)
        np.testing.assert_allclose(run.step_size, fused.step_size, rtol=0, atol=atol)


def test_steps_with_a_tolerance_in_all_tiers():
    runs = runs_by_tier(t_end=0.5, tolerance=1e-5)
    assert_equal_steps(runs, 1e-7)  # estimates are differences of positions, with round-off relative to the tolerance
    for run in runs:
        np.testing.assert_allclose(run.q[-1], runs[0].q[-1], atol=1e-11)
    assert runs[0].step_size[5:-5].max() > 1.5 * runs[0].step_size[5:-5].min()


@pytest.mark.parametrize("scaling", SCALINGS)
def test_reversible_steps_in_all_tiers(scaling):
    runs = runs_by_tier(t_end=0.3, h=0.005, adaptive="reversible", scaling=SCALINGS[scaling])
    assert_equal_steps(runs, 1e-11)
    assert runs[0].step_size[1:-1].max() > 1.05 * runs[0].step_size[1:-1].min()


@pytest.mark.parametrize("tier", ["assembled", "tree"])
@pytest.mark.parametrize("scaling", [lambda q: 1 / (0.5 - q[2]), lv.scaling.speed(1.0)])
def test_there_and_back(tier, scaling):
    """Reverse the velocities: states and sizes of the steps are traversed backwards."""
    mb, n_steps, h = ball_chain(3), 300, 0.01
    start = dict(zip(("q0", "v0"), mb.initial_state, strict=True))
    options = dict(scheme="lie-em", adaptive="reversible", h=h, t_end=1e6, scaling=scaling, tier=tier)
    plan = Plan.from_arguments(mb.system, start, **options)
    compiled, initial = compile_and_start(plan)
    state, stepper = start_integration(plan, compiled, initial)
    layout, begin, sizes = compiled.layout, state.z.copy(), []
    for _ in range(2):
        steps = make_stepping(plan, layout).advance(stepper, state, n_steps)
        sizes.append(np.diff(steps.t_nodes))
        state = type(state).initial(steps.final.t, steps.final.z, steps.final.unknown_history[-1])
        for name in ("v", "p", "body_spins"):
            state.z[layout[name]] *= -1
        inputs = np.concatenate([[h, 0.0], plan.k])
        state.unknown_history[:] = compiled.initial_unknowns(state.z, inputs, tier)
    np.testing.assert_allclose(state.z[layout["q"]], begin[layout["q"]], atol=1e-11)
    np.testing.assert_allclose(sizes[1], sizes[0][::-1], rtol=0, atol=1e-11)
    assert sizes[0].max() > 1.2 * sizes[0].min()


ADAPTIVE = {
    "tolerance": dict(tolerance=1e-3),
    "reversible": dict(adaptive="reversible", h=0.01, scaling=lv.scaling.speed(3.0, exponent=1 / 3)),
}


@pytest.mark.parametrize("control", ADAPTIVE)
def test_long_chains_step_on_the_tree(control, tmp_path):
    """Energy and constraints are exact, and a continued run is the whole run, bit for bit."""
    mb, options = ball_chain(20), ADAPTIVE[control]
    whole = mb.simulate(t_end=0.4, **options)
    assert whole.info.tier == "tree"
    assert whole.summary.max_energy_drift < 1e-12 and whole.summary.max_constraint < 1e-12
    mb.simulate(t_end=0.2, **options, out=tmp_path / "part.h5")
    rest = lv.resume(tmp_path / "part.h5", t_end=0.4, system=mb.system, scaling=options.get("scaling"))
    assert rest.t[-1] == whole.t[-1] == 0.4
    if control == "reversible":  # tolerances are relative to the time span of the run
        np.testing.assert_array_equal(rest.q, whole.q)
    else:
        np.testing.assert_allclose(rest.q[-1], whole.q[-1], atol=2e-3)


def test_a_scaling_that_becomes_negative_ends_the_run():
    mb = driven_arm()
    for tier in ("assembled", "tree"):
        with pytest.raises(lv.IntegrationError, match="scaling function is no longer positive"):
            mb.simulate(t_end=2.0, h=0.01, adaptive="reversible", scaling=lambda q: q[2] + 0.3, tier=tier)


@pytest.mark.parametrize("tier", TIERS)
def test_events_of_reversible_steps(tier):
    mb = ball_chain(3)
    low = lv.Event(lambda q: q[2] + 0.1, "low", direction=-1, terminal=True)
    run = mb.simulate(t_end=0.6, tier=tier, events=[low], **{**ADAPTIVE["reversible"], "h": 0.02})
    fine = mb.simulate(t_end=0.6, h=1e-3, events=[low])
    assert run.t[-1] == pytest.approx(fine.t[-1], abs=5e-4) and run.q[-1, 2] == pytest.approx(-0.1, abs=1e-6)


def test_prepared_steps_are_adaptive():
    mb = ball_chain(3)
    start = dict(zip(("q0", "v0"), mb.initial_state, strict=True))
    for options in ADAPTIVE.values():
        run = lv.prepare(mb.system, t_end=0.1, **start, **options).run()
        np.testing.assert_array_equal(run.q, mb.simulate(t_end=0.1, **options).q)
    with pytest.raises(lv.InputError, match="derivatives of adaptive runs are not available"):
        lv.value_and_gradient(lambda q: q[0])(lv.prepare(mb.system, t_end=0.1, **start, tolerance=1e-3))
    with pytest.raises(lv.InputError, match="adaptive must be 'reversible'"):
        lv.prepare(mb.system, t_end=0.1, h=0.1, adaptive="classical")
