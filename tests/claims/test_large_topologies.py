"""Trees, nets and threads in the assembled tier: tiers agree, what is conserved is, threads change nothing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import livens as lv
from livens import schemes
from livens.engine.assembled.thread_team import MIN_PARALLEL_BLOCKS
from livens.engine.compiled_step import compiled_step

#: The same for all runs of a test, so that equations are derived once.
NET, TREE = lv.problems.load("net", N=14), lv.problems.load("chain", N=250, tree=3)


def elimination(problem):
    return compiled_step(problem.model, schemes.get(problem.scheme)).elimination


def disc(v):
    return 0.5 * (v @ v)


def weight(q):
    return 9.81 * q[1]


def rod(q):
    return [0.5 * ((q[2:] - q[:2]) @ (q[2:] - q[:2]) - 1)]


def run(problem, steps, **options):
    return lv.simulate(problem, t_end=problem.t0 + steps * problem.h, **options)


def test_a_net_has_dense_fronts_and_its_energy():
    """Flat at the start, where rods of a knot are parallel: pivots are found among those of a front."""
    result = run(NET, 60)
    assert result.info.tier == "assembled"
    assert elimination(NET).root.plan.first_pivot.size > 5
    assert result.statistics.reference_steps == 0
    assert result.summary.max_constraint < 1e-14
    energy = result.observe("total_energy")
    assert np.abs(energy - energy[0]).max() < 1e-14 * np.abs(result.observe("kinetic_energy")).max() + 1e-15


def test_a_small_net_agrees_with_the_reference():
    """It is narrow, but its fronts all differ: dense fronts have no code to be compiled."""
    small = lv.problems.load("net", N=3)
    runs = [run(small, 20, tier=tier) for tier in ("assembled", "reference")]
    assert elimination(small).root.plan is not None
    assert np.abs(runs[0].q - runs[1].q).max() < 1e-13
    assert np.abs(runs[0].v - runs[1].v).max() < 1e-11


@given(tree=st.integers(1, 10**6), N=st.integers(2, 5))
@settings(max_examples=3, deadline=None)
def test_random_trees_agree_with_the_reference(tree, N):
    problem = lv.problems.load("chain", N=N, tree=tree)
    runs = [run(problem, 25, tier=tier) for tier in ("assembled", "reference")]
    assert np.abs(runs[0].q - runs[1].q).max() < 1e-13
    assert runs[0].statistics.reference_steps == 0


def test_a_joint_of_a_tree_goes_after_its_body():
    """No elimination factor is large, and one correction is enough for most steps."""
    result = run(TREE, 60)
    found = elimination(TREE)
    assert found.root.plan is None and found.root.unknowns.size <= 24
    assert result.statistics.reference_steps == 0
    assert result.statistics.newton_iterations < 1.5 * result.statistics.steps
    assert result.summary.max_energy_drift < 1e-14 and result.summary.max_constraint < 1e-12


def test_bodies_of_a_tree_look_alike():
    """Leaves go first, those that hang on one body one after the other: what hangs on a body does not count."""
    found = elimination(TREE)
    twice = elimination(lv.problems.load("chain", N=500, tree=3))
    assert len(found.classes) <= 25 and len(twice.classes) <= len(found.classes) + 6
    assert max(made.n_contributions for made in twice.classes) <= 6
    star = lv.System(
        122,
        elements=[
            *(lv.Element([2 * i, 2 * i + 1], kinetic=disc, potential=weight, name=f"disc{i}") for i in range(61)),
            *(lv.Element([0, 1, 2 * i, 2 * i + 1], constraints=rod, name=f"rod{i}") for i in range(1, 61)),
        ],
    )
    angle = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    q0 = np.concatenate([[0.0, 0.0], np.stack([np.cos(angle), np.sin(angle)], axis=1).ravel()])
    options = dict(scheme="livens-em", h=1e-3, t_end=0.02)
    runs = [lv.simulate(star, q0, np.zeros(122), tier=tier, **options) for tier in ("assembled", "reference")]
    assert np.abs(runs[0].q - runs[1].q).max() < 1e-14 and runs[0].statistics.reference_steps == 0


@pytest.mark.parametrize("problem", [NET, TREE], ids=["net", "tree"])
def test_threads_do_not_change_a_bit(problem):
    whole = run(problem, 30)
    if problem is TREE:  # otherwise nothing would have been shared
        sizes = {}
        for batch in elimination(problem).batches:
            sizes[batch.level] = sizes.get(batch.level, 0) + batch.stop_block - batch.first_block
        assert max(sizes.values()) >= MIN_PARALLEL_BLOCKS
    for threads in (2, 4):
        again = run(problem, 30, threads=threads)
        for name in ("q", "v", "multipliers"):
            assert np.array_equal(getattr(whole, name), getattr(again, name)), name
        assert whole.statistics.newton_iterations == again.statistics.newton_iterations


def test_threads_end_with_a_run_that_cannot_go_on():
    """The others are told to stop whatever happens; then the next run has its own."""
    import threading

    before = threading.active_count()
    with pytest.raises(lv.LivensError):
        run(NET, 3, threads=2, parameters={"m": float("nan")})
    wild = lv.problems.load("net", N=14, speed=1e9)
    with pytest.raises(lv.LivensError):
        run(wild, 20, threads=2)
    assert threading.active_count() == before


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "two", 10**6, None])
def test_threads_are_counted_in_whole_numbers(threads):
    with pytest.raises(lv.InputError, match="threads must be a whole number"):
        lv.simulate(NET, t_end=0.01, threads=threads)


def test_a_scenario_says_tier_and_threads():
    text = "problem: simple-pendulum\nt_end: 0.02\ntier: {tier}\nthreads: {threads}\n"
    result = lv.scenario.parse(text.format(tier="assembled", threads=2)).run()
    assert result.info.tier == "assembled"
    with pytest.raises(lv.InputError, match="tier"):
        lv.scenario.parse(text.format(tier="asembled", threads=2))
    with pytest.raises(lv.InputError, match=r"threads.*whole number"):
        lv.scenario.parse(text.format(tier="fused", threads=0))


def gaps_of_sums(result, l):  # noqa: E741
    """Return the violation of joints and directors of a chain at rounded positions."""
    q = result.q[-1].astype(np.longdouble)
    q = (q + result.record.checkpoint["carry"]["memory"][: q.size]).reshape(-1, 4, 3)
    ends = [q[:, 0] + sign * np.longdouble(l) / 2 * q[:, 1] for sign in (-1, 1)]
    off = np.einsum("nij,nkj->nik", q[:, 1:], q[:, 1:]) - np.eye(3)
    return max(np.abs(ends[0][0]).max(), np.abs(ends[1][:-1] - ends[0][1:]).max()), np.abs(off).max()


@pytest.mark.parametrize("fold", [1.2, 0.0, np.pi / 2], ids=["folded", "straight", "hanging"])
def test_constraints_hold_beyond_the_digits_of_coordinates(fold):
    """Constraint residuals are corrected in the next step, also for large, coarsely rounded positions."""
    result = run(lv.problems.load("chain", N=60, fold=fold), 100, every=100)
    joints, directors = gaps_of_sums(result, 1.0)
    assert joints < 2e-15 and directors < 1e-15
    assert result.summary.max_constraint < 1e-13


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [dict(fold=1.2), dict(fold=0.0), dict(fold=np.pi / 2), dict(tree=1)],
    ids=["folded", "straight", "hanging", "tree"],
)
def test_ten_thousand_bodies_for_a_thousand_steps(options):
    """Energy to the last digits, constraints at round-off: that of the coordinates, where these are large."""
    problem = lv.problems.load("chain", N=10_000, **options)
    result = run(problem, 1000, every=1000, store="q")
    assert result.summary.max_energy_drift < 1e-14
    # coordinates of 1e4 are rounded by 1e-12 where they are written down; what is carried on is not
    assert result.summary.max_constraint < max(1e-12, 2.0**-52 * np.abs(result.q).max())
    if "tree" not in options:
        assert max(gaps_of_sums(result, 1.0)) < 1e-12
    assert result.statistics.reference_steps == 0
