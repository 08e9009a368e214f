"""Errors of adaptive runs in proportion to the tolerance over six decades."""

import numpy as np
import pytest
from test_adaptive_mechanisms import SCHEMES, PointChain

import livens as lv

#: Mechanisms with end times in s; those of the short version first. Positions at the end are compared with equal steps,
#: extrapolated to size zero.
MECHANISMS = {
    "double-pendulum": 1.5,
    "car-axis": 0.5,
    "spherical-pendulum": 1.0,
    "double-four-bar-multibody": 0.7,
    "andrews-squeezer": 0.02,
    "flyball-governor": 0.5,
    "bricard": 1.0,
    "spatial-slider-crank": 0.5,
    "mass-spring-redundant": 1.0,
    "heavy-top": 0.3,
    "lie-heavy-top": 0.3,
    "rssr": 0.5,
    "closed-loop-bars": 0.5,
    "n-four-bar": 0.6,
    "spring-four-bar": 1.0,
    "chain": 0.4,
}
SHORT = 3
DECADES = tuple(10.0**-k for k in range(3, 10))


def ratios(model, q, v, exact, t_end, tolerances, **options):
    """Return the errors of the positions at the end, relative to the largest position and to the tolerance."""
    found = []
    for tolerance in tolerances:
        run = lv.simulate(model, q, v, t_end=t_end, tolerance=tolerance, project=True, progress=False, **options)
        found.append(np.max(np.abs(run.q[-1] - exact)) / np.max(np.abs(exact)) / tolerance)
    return np.array(found)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if i < SHORT else pytest.mark.slow) for i, name in enumerate(MECHANISMS)]
)
def test_errors_of_mechanisms_are_proportional_to_the_tolerance(name):
    problem, t_end = lv.problems.load(name), MECHANISMS[name]
    scheme = problem.model.default_scheme
    coarse, fine = (
        lv.simulate(problem, scheme=scheme, h=t_end / n, t_end=t_end, progress=False, project=True).q[-1]
        for n in (20_000, 40_000)
    )
    exact = fine + (fine - coarse) / 3
    found = ratios(
        problem.model, problem.q0, problem.v0, exact, t_end, DECADES, parameters=problem.parameters, scheme=scheme
    )
    assert found.max() < 10 * found.min()


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3, 4, 5))])
def test_errors_of_random_chains_are_proportional_to_the_tolerance(seed):
    chain = PointChain(seed, 1 + seed % 4)
    exact = chain.exact(np.concatenate([chain.q0, chain.v0]), 1.0)[: 3 * chain.n]
    found = ratios(chain.system, chain.q0, chain.v0, exact, 1.0, DECADES)
    assert found.max() < 10 * found.min()


def test_tolerance_below_round_off():
    """Weights of an arm at rest make errors relative to a slow motion: round-off exceeds the tolerance."""
    problem = lv.problems.load("double-wishbone")
    with pytest.raises(lv.InputError, match=r"no first step meets the tolerance 1e-11.*round-off.*larger tolerance"):
        lv.simulate(problem, t_end=0.2, tolerance=1e-11)
    with pytest.raises(lv.InputError, match="the tolerance 1e-13 is below the round-off"):
        lv.simulate(problem, t_end=0.2, tolerance=1e-13)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_order_by_mean_step_size(scheme):
    """Errors against DOP853 over the mean step size of runs with a tolerance: order 2."""
    chain = PointChain(3, 2)
    exact = chain.exact(np.concatenate([chain.q0, chain.v0]), 1.0)[:6]
    errors, sizes = [], []
    for tolerance in (1e-5, 1e-6, 1e-7, 1e-8, 1e-9):
        options = dict(scheme=scheme, t_end=1.0, tolerance=tolerance, project=True)
        run = lv.simulate(chain.system, chain.q0, chain.v0, **options)
        errors.append(np.max(np.abs(run.q[-1] - exact)))
        sizes.append(1.0 / run.statistics.steps)
    assert np.polyfit(np.log(sizes), np.log(errors), 1)[0] == pytest.approx(2, abs=0.15)


@pytest.mark.parametrize("tier, n, t_end", [("fused", 16, 6.0), ("assembled", 2, 0.8)])
def test_random_tolerances_through_singular_positions(tier, n, t_end):
    """Random tolerances through singular positions, some of them known to end steps or to centre them there."""
    problem, rng = lv.problems.load("double-four-bar-multibody"), np.random.default_rng(2)
    known = (5.5474651318454115e-09, 9.05822729403248e-09, 1.3173505124153216e-08)
    tolerances = (*known[: 3 if tier == "fused" else 0], *10 ** rng.uniform(-7.5, -6, n))
    ends = {}
    for tolerance in tolerances:
        run = lv.simulate(problem, t_end=t_end, tolerance=tolerance, every=10_000, tier=tier, progress=False)
        assert run.summary.max_energy_drift < 1e-11 and run.summary.max_constraint < 1e-12, tolerance
        ends[tolerance] = run.q[-1]
    best = ends[min(ends)]
    for tolerance, end in ends.items():
        np.testing.assert_allclose(end, best, atol=10 * (tolerance + min(ends)))


@pytest.mark.parametrize("bars, speed, mass", [(1, 1.7, 0.2), (2, 2.5, 0.15), (3, 0.6, 5.0)])
def test_four_bar_rows_through_singular_positions(bars, speed, mass):
    problem = lv.problems.load("double-four-bar-multibody", N=bars, speed=speed, m=mass)
    for tolerance in 10 ** np.random.default_rng(bars).uniform(-7.5, -6, 4):
        run = lv.simulate(problem, t_end=3.0, tolerance=tolerance, every=10_000, progress=False)
        assert run.summary.max_energy_drift < 1e-11 and run.summary.max_constraint < 1e-12, tolerance


def test_slider_crank_of_equal_lengths_through_singular_positions():
    """Where the crank is upright, rod and crank coincide, and the rod may turn about the pin of the crank instead."""
    mb = lv.Multibody(gravity=[0, -9.81], planar=True)
    x, y = np.cos(0.5), np.sin(0.5)
    bar = dict(mass=1.0, inertia=1 / 12)
    crank = mb.body("crank", position=[x / 2, y / 2], rotation=[[x, -y], [y, x]], **bar)
    rod = mb.body("rod", position=[1.5 * x, y / 2], rotation=[[x, y], [-y, x]], **bar)
    slider = mb.body("slider", position=[2 * x, 0], **bar)
    hinge = mb.revolute("base", mb.ground, crank, at=[0, 0])
    mb.revolute("crank pin", crank, rod, at=[x, y])
    mb.revolute("wrist pin", rod, slider, at=[2 * x, 0])
    mb.prismatic("slide", mb.ground, slider, at=[0, 0], axis=[1, 0])
    mb.initial(hinge, rate=6.0)
    for tolerance in 10 ** np.random.default_rng(0).uniform(-7, -5, 6):
        run = mb.simulate(t_end=2.0, tolerance=tolerance, every=10_000, progress=False)
        assert run.summary.max_energy_drift < 1e-11 and run.summary.max_constraint < 1e-12, tolerance


def test_steps_do_not_depend_on_earlier_runs():
    """Steps through singular positions depend on rounding, and with it on the pivot orders of the run."""
    problem = lv.problems.load("double-four-bar-multibody")

    def times(tolerance):
        return lv.simulate(problem, t_end=1.5, tolerance=tolerance, progress=False).t

    first = times(2e-8)
    for tolerance in (3e-8, 1e-6, 5e-7):
        times(tolerance)
    lv.simulate(problem, h=1e-4, t_end=1.0, progress=False)
    np.testing.assert_array_equal(times(2e-8), first)
