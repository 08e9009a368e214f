"""Observables against values computed by hand, in pieces and as a whole; reports and their verdicts."""

import json
import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import livens as lv
from livens import observe
from livens.analysis import conservation as conserved
from livens.analysis.trend import BinnedSeries, fit_line
from livens.results.record import RunInfo, RunRecord, Statistics, Summary
from livens.results.result import Result
from livens.schemes import get

numbers = st.floats(-10, 10, allow_nan=False)
vectors = st.lists(numbers, min_size=3, max_size=3)

#: A mass that depends on q, a quartic potential, a sphere, a rotation: everything an observable can be made of.
SYSTEM = lv.System(
    "x y z",
    kinetic=lambda q, v, k: 0.5 * k.m * (v @ v) + 0.5 * k.a * q[0] ** 2 * v[2] ** 2,
    potential=lambda q, t, k: k.m * k.g * q[2] + 0.25 * (q @ q) ** 2 + t * q[0],
    constraints=lambda q, k: [0.5 * (q @ q - k.l**2)],
    parameters=dict(m=2.0, g=9.81, l=1.5, a=0.5),
    symmetries=dict(
        angular_momentum=lv.symmetry.rotations([[0, 1, 2]]), linear_momentum=lv.symmetry.translations([[0, 1, 2]]),
        twist=lambda q: [q[1], 0.0, 1.0],
    ),
)  # fmt: skip
PARTICLE = lv.System(
    "x y", kinetic=lambda v: 0.5 * (v @ v), symmetries=dict(linear_momentum=lv.symmetry.translations([[0, 1]]))
)


def made_up(system, t, q, v, p=None, *, scheme="livens-em", **arrays):
    """A Result from arrays, as if a run had left it."""
    t, q, v = (np.asarray(a, dtype=float) for a in (t, q, v))
    rows = len(t)
    whole = {
        "t": t, "q": q, "v": v, "p": np.asarray(v if p is None else p, dtype=float),
        "multipliers": np.zeros((rows, system.m)), "step_size": np.full(rows, 0.1),
        "newton_iterations": np.ones(rows, dtype=np.int64), "supplied_energy": np.zeros(rows),
        "dissipated_energy": np.zeros(rows), **arrays,
    }  # fmt: skip
    facts = RunInfo(
        scheme=scheme, h=0.1, t0=float(t[0]), t_end=float(t[-1]), every=1, coordinates=system.coordinates,
        constraint_names=system.constraint_names, parameters=system.parameters,
    )  # fmt: skip
    energy = next((e for e in ("generalized_energy", "hamiltonian") if e in get(scheme).conserves), "total_energy")
    summary = Summary(energy=energy, momentum_drift=dict.fromkeys(system.symmetries, 0.0))
    return Result(whole, RunRecord(facts, summary, Statistics(steps=rows - 1), "complete"), system=system)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(vectors, vectors, vectors, numbers, numbers)
def test_by_hand(q, v, p, t, lam):
    """Every observable at a random state, against the formula written out."""
    run = made_up(SYSTEM, [t], [q], [v], [p], multipliers=np.array([[lam]]), supplied_energy=np.array([3.0]),
                  dissipated_energy=np.array([1.0]))  # fmt: skip
    q, v, p = np.array(q), np.array(v), np.array(p)
    M = np.diag([2.0, 2.0, 2.0 + 0.5 * q[0] ** 2])
    T, V = 0.5 * v @ M @ v, 2.0 * 9.81 * q[2] + 0.25 * (q @ q) ** 2 + t * q[0]
    expected = {
        "kinetic_energy": T,
        "potential_energy": V,
        "total_energy": T + V,
        "generalized_energy": p @ v - T + V,
        "hamiltonian": 0.5 * p @ np.linalg.solve(M, p) + V,
        "constraint": [0.5 * (q @ q - 2.25)],
        "velocity_constraint": [q @ v],
        "linear_momentum": p,
        "angular_momentum": np.cross(q, p),
        "twist": q[1] * p[0] + p[2],
        "multipliers": [lam],
        "constraint_forces": q * lam,
        "step_size": 0.1,
        "newton_iterations": 1,
        "supplied_energy": 3.0,
        "dissipated_energy": 1.0,
        "energy_balance_defect": -2.0,
    }
    assert set(observe.NAMES) | {"twist"} == set(expected)
    size = 1 + np.abs(np.concatenate([q, v, p, [t, lam]])).max() ** 4
    for name, value in expected.items():
        found = run.observe(name)
        assert found.shape == (1, *np.shape(value)), name
        assert np.allclose(found[0], value, rtol=1e-12, atol=1e-14 * size), name


@settings(max_examples=30, deadline=None)
@given(vectors, vectors, numbers)
def test_functions_of_the_user(q, v, t):
    run = made_up(SYSTEM, [t], [q], [v])
    assert run.observe(lambda q: q[0] * q[1])[0] == pytest.approx(q[0] * q[1])
    assert np.array_equal(run.observe(lambda v, t, k: [k.m * v[0], t])[0], [2.0 * v[0], t])
    table = run.observe(lambda q, p, scale=3.0: [[q[0], p[1]], [scale, 0.0]])
    assert table.shape == (1, 2, 2) and np.array_equal(table[0], [[q[0], v[1]], [3.0, 0.0]])
    assert np.array_equal(run.observe(lambda: 1.0), [1.0])


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (lambda x: x, "has an argument 'x'; it may have the arguments q, v, p, t, k"),
        (lambda q, lam: q, "has an argument 'lam'"),
        (lambda *everything: 1.0, "has an argument 'everything'"),
        (lambda q: None, "must return a number or an array"),
        (lambda q: "fast", "must return a number or an array"),
        (lambda q: [[q[0], q[1]], [q[0]]], "must return a number or an array"),
        (lambda q: [], "must return a number or an array"),
        (lambda q: [q[0], "fast"], "must return a number or an array"),
        (lambda q: q[7], "IndexError"),
        (lambda k: k.mm, "did you mean 'k.m'?"),
        (lambda q: [1.0][int(q[0])], "TypeError"),
        (lambda q: 1 / 0, "ZeroDivisionError"),
        (7, "a name or a function"),
        (None, "a name or a function"),
        ("kinetc_energy", "did you mean 'kinetic_energy'?"),
    ],
)
def test_bad_observables(bad, words):
    run = made_up(SYSTEM, [0.0], [[1, 2, 3]], [[0, 0, 1]])
    with pytest.raises(lv.InputError, match=words.replace("?", r"\?").replace("(", r"\(")):
        run.observe(bad)


def test_what_a_function_closes_over_may_change():
    run, factor = made_up(SYSTEM, [0.0], [[1, 2, 3]], [[0, 0, 1]]), [2.0]

    def scaled(q):
        return factor[0] * q[0]

    assert run.observe(scaled)[0] == 2.0
    factor[0] = 5.0
    assert run.observe(scaled)[0] == 5.0


@pytest.fixture(scope="module")
def pendulum(tmp_path_factory):
    """A run in memory, and the same in a file."""
    path = tmp_path_factory.mktemp("runs") / "pendulum.h5"
    run = lv.simulate(lv.problems.load("simple-pendulum"), t_end=0.1)
    return run, run.save(path)


@pytest.mark.parametrize("what", ["total_energy", "constraint", "constraint_forces", "energy_balance_defect",
                                  "multipliers", lambda q, v: q[0] * v])  # fmt: skip
@pytest.mark.parametrize("rows", [1, 7, 100, 101, 500])
def test_in_blocks_as_a_whole(pendulum, what, rows):
    run, path = pendulum
    whole = run.observe(what)
    for result in (run, lv.load(path)):
        blocks = [values[0] for _, values in observe.iterate_blocks(result, [what], rows)]
        assert max(map(len, blocks)) <= rows
        assert np.array_equal(np.concatenate(blocks), whole)
        for how, expected in {
            "largest": np.abs(whole).max(axis=0), "max": whole.max(axis=0), "min": whole.min(axis=0),
            "first": whole[0], "last": whole[-1],
        }.items():  # fmt: skip
            assert np.array_equal(observe.reduce(result, what, how, rows=rows), expected), how
        assert np.allclose(observe.reduce(result, what, "mean", rows=rows), whole.mean(axis=0), rtol=1e-13, atol=1e-15)


def test_a_reduction_keeps_nothing_of_a_file(pendulum):
    result = lv.load(pendulum[1])
    observe.reduce(result, "total_energy", "largest", rows=10)
    conserved.conservation_rows(result)
    assert result._arrays._cache == {}
    with pytest.raises(lv.InputError, match="did you mean 'largest'"):
        observe.reduce(result, "total_energy", "larges")


def test_increments(pendulum):
    run, path = pendulum
    for name in ("total_energy", "constraint", "kinetic_energy"):
        expected = np.diff(run.observe(name), axis=0)
        assert np.array_equal(run.observe(name, increments=True), expected)
        assert np.array_equal(lv.load(path).observe(name, increments=True), expected)
    assert run.observe(lambda t: t, increments=True) == pytest.approx(np.full(100, 1e-3))


# -- trends -----------------------------------------------------------------------------------------------------------
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 700), st.lists(st.integers(1, 300), min_size=1, max_size=6))
def test_bins_do_not_depend_on_how_a_series_is_cut(rows, sizes):
    t = np.linspace(0, 3, rows) if rows else np.zeros(0)
    y = np.column_stack([np.sin(5 * t), t**2])
    whole, cut = BinnedSeries(), BinnedSeries()
    whole.add(t, y)
    first = 0
    while first < rows:
        for size in sizes:
            cut.add(t[first : first + size], y[first : first + size])
            first += size
    for a, b in zip(whole.trends(), cut.trends(), strict=False):
        assert (a is None) == (b is None)
        if a is not None:
            assert a.rate == pytest.approx(b.rate, rel=1e-9, abs=1e-12)
            assert a.uncertainty == pytest.approx(b.uncertainty, rel=1e-6, abs=1e-12)


def test_a_line_is_found():
    t = np.linspace(0, 10, 1000)
    series = BinnedSeries()
    series.add(t, (1.0 + 0.25 * t + 1e-3 * np.sin(40 * t))[:, None])
    (trend,) = series.trends()
    assert trend.rate == pytest.approx(0.25, rel=1e-3) and trend.significant
    assert abs(trend.rate - 0.25) < trend.uncertainty < 0.01


def test_the_interval_covers_the_truth_as_often_as_it_says():
    """White noise, and noise with a memory of fifty values: 95 % within a few per cent, never far below."""
    random = np.random.default_rng(5)
    for memory in (0.0, 0.98):
        covered = 0
        for _ in range(100):
            noise = random.standard_normal(2000)
            for i in range(1, len(noise) if memory else 0):
                noise[i] += memory * noise[i - 1]
            series = BinnedSeries()
            series.add(np.linspace(0, 1, len(noise)), noise[:, None])
            (trend,) = series.trends()
            covered += abs(trend.rate) <= trend.uncertainty
        assert covered >= 90


@pytest.mark.parametrize("rows", range(8))
def test_too_short_for_a_trend(rows):
    series = BinnedSeries()
    series.add(np.arange(float(rows)), np.arange(float(rows))[:, None])
    assert all(trend is None for trend in series.trends())


def test_no_line_through_what_is_not_finite():
    t = np.arange(20.0)
    assert fit_line(t, np.where(t == 3, np.nan, t)) is None and fit_line(np.ones(20), t) is None
    assert fit_line(t, np.zeros(20)).rate == 0.0


# -- reports ----------------------------------------------------------------------------------------------------------
def test_a_conserving_run():
    rows = conserved.conservation_rows(lv.simulate(lv.problems.load("double-four-bar"), t_end=2.0))
    found = {(row.name, row.initial is None): row for row in rows}
    assert found["generalized_energy", False].verdict == conserved.AS_GUARANTEED
    assert found["generalized_energy", True].verdict == conserved.AS_GUARANTEED
    assert found["constraint", False].verdict == conserved.AS_GUARANTEED
    hidden = found["velocity_constraint", False]
    assert hidden.verdict == conserved.BOUNDED and not hidden.guaranteed and hidden.relative
    assert found["generalized_energy", False].initial == pytest.approx(35.835)
    assert all(row.holds for row in rows)


def test_a_bounded_run():
    """The midpoint rule's energy swings without a trend; its momenta are exact."""
    rows = conserved.conservation_rows(
        lv.simulate(lv.problems.load("spring-pendulum"), scheme="livens-midpoint", t_end=20.0)
    )
    energy, step, momentum = rows
    assert energy.verdict == conserved.BOUNDED and 1e-6 < energy.deviation < 1e-2
    assert step.verdict == conserved.NOT_CONSERVED and step.drift is None
    assert momentum.verdict == conserved.AS_GUARANTEED
    assert abs(energy.drift) <= 2 * energy.drift_uncertainty


@pytest.mark.parametrize("scheme", ["livens-midpoint", "livens-em"])
def test_a_drifting_run(scheme):
    """A free particle that gets faster: the energy grows along a line. Promised or not, that is seen."""
    t = np.linspace(0, 10, 500)
    speed = np.sqrt(1 + 0.02 * t + 1e-3 * np.sin(30 * t))
    run = made_up(PARTICLE, t, np.zeros((500, 2)), np.column_stack([speed, 0 * t]), scheme=scheme)
    energy, _, momentum = conserved.conservation_rows(run)
    assert energy.verdict == (conserved.DRIFTS if scheme == "livens-midpoint" else conserved.NOT_AS_GUARANTEED)
    assert energy.drift == pytest.approx(0.02, rel=0.05) and energy.drift_uncertainty < 0.002
    assert energy.deviation == pytest.approx(0.2, rel=0.02) and energy.relative and energy.initial == pytest.approx(0.5)
    # translations are linear in q: the midpoint rule promises their momentum
    assert momentum.guaranteed == (scheme == "livens-midpoint")
    assert momentum.verdict == (conserved.NOT_AS_GUARANTEED if momentum.guaranteed else conserved.DRIFTS)


def test_work_is_not_drift():
    """Energy that came in through forces, and left through dissipation, is balanced."""
    t = np.linspace(0, 10, 200)
    run = made_up(
        PARTICLE, t, np.zeros((200, 2)), np.column_stack([np.sqrt(1 + t), 0 * t]), supplied_energy=t / 2 + 0.1 * t,
        dissipated_energy=0.1 * t,
    )  # fmt: skip
    assert conserved.conservation_rows(run)[0].verdict == conserved.AS_GUARANTEED
    assert np.abs(run.observe("energy_balance_defect")).max() < 1e-14


def test_what_no_row_shows_is_still_reported():
    """Deviations between the stored rows are known from the run itself."""
    run = made_up(PARTICLE, np.arange(20.0), np.zeros((20, 2)), np.ones((20, 2)))
    run.summary.max_energy_drift = 1e-3
    assert conserved.conservation_rows(run)[0].verdict == conserved.NOT_AS_GUARANTEED
    assert conserved.conservation_rows(run)[0].deviation == 1e-3


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 20), st.sampled_from([0.0, 1e-300, 1e-8, 1.0, 1e8, math.nan, math.inf]), st.booleans())
def test_any_run_has_a_report(rows, size, noisy):
    """One row or more, zeros, huge and not finite values: always a verdict, and always valid JSON."""
    random = np.random.default_rng(rows)
    v = size * (random.standard_normal((rows, 2)) if noisy else np.ones((rows, 2)))
    run = made_up(PARTICLE, np.arange(float(rows)), np.zeros((rows, 2)), v)
    with np.errstate(all="ignore"):
        found = conserved.as_object(run)
    json.loads(json.dumps(found, allow_nan=False))
    verdicts = {row["verdict"] for row in found["rows"]}
    known = {
        conserved.AS_GUARANTEED, conserved.NOT_AS_GUARANTEED, conserved.ROUND_OFF, conserved.BOUNDED, conserved.DRIFTS,
        conserved.NOT_CONSERVED, conserved.TOO_SHORT, conserved.NO_STEPS, conserved.NOT_FINITE,
    }  # fmt: skip
    assert verdicts <= known
    if not math.isfinite(size):
        assert conserved.NOT_AS_GUARANTEED in verdicts
    elif rows == 1:
        assert verdicts == {conserved.NO_STEPS}
    elif not noisy or size == 0:
        assert verdicts <= {conserved.AS_GUARANTEED, conserved.ROUND_OFF}


def test_a_momentum_that_is_zero():
    """Round-off around zero is not a relative deviation of one."""
    t = np.linspace(0, 1, 50)
    noise = 1e-16 * np.random.default_rng(0).standard_normal(50)
    system = lv.System(
        "x y", kinetic=lambda v: 0.5 * (v @ v), symmetries=dict(angular_momentum=lv.symmetry.rotations([[0, 1]]))
    )
    run = made_up(system, t, np.column_stack([1 + t, 1 + t + noise]), np.ones((50, 2)))
    momentum = conserved.conservation_rows(run)[2]
    assert momentum.verdict == conserved.ROUND_OFF and momentum.deviation < 1e-14


def test_a_file_without_its_model(tmp_path):
    """The file of a user-defined system contains the quantities recorded during the run."""
    lv.simulate(SYSTEM, q0=[1.5, 0, 0], v0=[0, 1, 0], h=0.01, t_end=0.1, out=tmp_path / "own.h5")
    rows = conserved.conservation_rows(lv.load(tmp_path / "own.h5"))
    assert [row.initial for row in rows] == [None] * len(rows)
    assert rows[0].verdict == conserved.AS_GUARANTEED
