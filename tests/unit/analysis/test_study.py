"""Studies in Python and as commands: orders, comparisons, work and precision, sweeps, and one step under the lens."""

import csv
import json
import math
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import livens as lv
from livens import math as m
from livens.analysis.study import fit_order, reversibility_defect, symplecticity_defect
from livens.analysis.study.grid import combinations, parse_values
from livens.analysis.study.step_lists import default_steps, parse_step_sizes
from livens.analysis.study.sweep_run import run_member
from livens.analysis.study.table_files import write_table
from livens.errors import InputError
from livens.plot import convergence
from terminal import livens

STEPS = [0.1 / 2**i for i in range(8)]


def pendulum():
    return lv.problems.load("simple-pendulum")


# -- orders -----------------------------------------------------------------------------------------------------------
@settings(max_examples=50, deadline=None)
@given(st.floats(0.5, 6), st.floats(1e-3, 1e3), st.integers(2, 8))
def test_an_exact_power_is_found(order, constant, count):
    errors = [constant * h**order for h in STEPS[:count]]
    fit = fit_order(STEPS[:count], errors, scale=errors[-1])
    assert not any(fit.floor) and all(fit.used)
    assert fit.order == pytest.approx(order, abs=1e-9) and fit.constant == pytest.approx(constant, rel=1e-6)
    assert math.isinf(fit.uncertainty) if count == 2 else fit.uncertainty < 1e-9


@settings(max_examples=50, deadline=None)
@given(st.floats(1.5, 4), st.integers(0, 10**6), st.floats(-11, -8))
def test_the_floor_is_left_out(order, seed, level):
    """Errors that run into noise of any level: the order is that of the others."""
    noise = 10**level * np.random.default_rng(seed).uniform(0.5, 2.0, 14)
    steps = np.array([0.1 / 2**i for i in range(14)])
    errors = steps**order + noise
    fit = fit_order(steps, errors)
    assert fit.order == pytest.approx(order, abs=0.1)
    for used, step, rough in zip(fit.used, steps, noise, strict=True):
        assert used == (not fit.floor[list(steps).index(step)])
        assert not (used and rough > 2 * step**order)  # nothing that is mostly floor is used


def test_a_plateau_of_large_errors_is_no_floor():
    """Too large steps: errors as large as the solution do not fall, but that is not round-off."""
    fit = fit_order([0.8, 0.4, 0.2, 0.1, 0.05], [1.3, 1.1, 1.2, 0.9, 1.0])
    assert not any(fit.floor) and fit.uncertainty > 0.1


def test_zeros_failures_and_a_known_floor():
    fit = fit_order([0.4, 0.2, 0.1, 0.05, 0.025], [math.nan, 4e-2, 1e-2, 2.5e-3, 0.0])
    assert fit.used == (False, True, True, True, False) and fit.floor == (False, False, False, False, True)
    assert fit.order == pytest.approx(2)
    known = fit_order([0.4, 0.2, 0.1, 0.05], [1.6e-1, 4e-2, 1e-2, 2.5e-3], floor=1e-3)
    assert known.floor == (False, False, False, True)
    nothing = fit_order([0.1, 0.05], [math.nan, math.inf])
    assert math.isnan(nothing.order) and "too few" in str(nothing)
    for bad in ([0.1], [0.1, -0.05], [[0.1, 0.05]]):
        with pytest.raises(InputError):
            fit_order(bad, [1e-2, 1e-3])


def test_the_interval_holds_the_order():
    """Errors with a scatter of ten per cent."""
    random, inside = np.random.default_rng(0), 0
    for _ in range(200):
        fit = fit_order(STEPS, [h**2 * math.exp(0.1 * random.standard_normal()) for h in STEPS])
        inside += abs(fit.order - 2) <= fit.uncertainty
    assert inside >= 180


def test_steps():
    assert parse_step_sizes("0.1, 0.4,0.2,0.1") == [0.4, 0.2, 0.1]
    assert parse_step_sizes("0.4:3") == [0.4, 0.2, 0.1]
    assert default_steps(pendulum(), 10.0) == [1e-3 / 2**i for i in range(5)]
    assert default_steps(pendulum(), 1e5)[-1] > 1e-3  # a long run is not studied with tiny steps
    for bad in ("", "fast", "0.1:", "0.1:0", "0.1:1000", "-1", "0", "nan", "0.1,,0.2", ":3"):
        with pytest.raises(InputError):
            parse_step_sizes(bad)


# -- convergence ------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def study():
    return lv.study.converge(pendulum(), "livens-em,livens-midpoint", [0.02, 0.01, 0.005, 0.0025], 1.0)


def test_convergence_against_the_exact_solution(study):
    assert study.reference.description == "the exact solution"
    for curve in study.curves:
        assert curve.as_guaranteed
        for name in ("q", "v"):
            assert curve.fits[name].order == pytest.approx(2, abs=0.02)
    # errors and costs are those of the runs
    point, run = study["livens-em"].points[1], lv.simulate(pendulum(), scheme="livens-em", h=0.01, t_end=1.0)
    assert point.errors["q"] == np.linalg.norm(run.q[-1] - pendulum().reference(1.0)["q"])
    assert point.evaluations == 2 * run.newton_iterations.sum() and point.steps == 100 and point.wall_s > 0
    with pytest.raises(StopIteration):
        study["no-such-scheme"]


def test_taylor_series_as_the_reference():
    """Without an exact solution and without constraints; as good as it says, judged by a problem that has one."""
    kepler = lv.problems.load("kepler", e=0.5)
    blind = lv.Problem("kepler", kepler.model, kepler.q0, kepler.v0, "stormer-verlet", 0.02, 3.0)
    study = lv.study.converge(blind, "stormer-verlet", [0.02, 0.01, 0.005, 0.0025], 3.0)
    assert study.reference.description.startswith("Taylor series of order 24 (uncertain by ")
    for name in ("q", "v"):
        away = np.linalg.norm(study.reference.values[name] - kepler.reference(3.0)[name])
        assert away < 1e-13 and study.reference.uncertainty[name] < 1e-13
    assert study["stormer-verlet"].fits["q"].order == pytest.approx(2, abs=0.05)


def test_a_reference_of_its_own():
    """Without an exact solution: an extrapolation, as good as it says, judged by a problem that has one."""
    exact = pendulum().reference(1.0)
    blind = lv.Problem("pendulum", pendulum().model, [-1, 0], [0, 0], "livens-em", 1e-2, 1.0)
    study = lv.study.converge(blind, "livens-midpoint,livens-em")
    assert "extrapolation" in study.reference.description and "livens-midpoint" in study.reference.description
    assert "4.00 times smaller, expected 4" in study.reference.description
    for name in ("q", "v"):
        away = np.linalg.norm(study.reference.values[name] - exact[name])
        assert away < max(100 * study.reference.uncertainty[name], 1e-11) and away < 1e-8
        for curve in study.curves:
            assert curve.fits[name].order == pytest.approx(2, abs=0.05)


def test_the_uncertainty_of_the_reference_is_a_floor():
    """Errors that are not above what the reference itself is uncertain by are marked and not fitted."""
    blind = lv.Problem("pendulum", pendulum().model, [-1, 0], [0, 0], "livens-em", 1e-2, 1.0)
    study = lv.study.converge(blind, "livens-em", [0.04, 0.02, 0.01])
    assert all(
        error > 5 * study.reference.uncertainty["q"] or floor
        for error, floor in zip(study.curves[0].errors("q"), study.curves[0].fits["q"].floor, strict=True)
    )


def test_a_failed_run_is_left_out(monkeypatch):
    def fragile(problem, **options):
        if options["h"] > 0.015:
            raise lv.IntegrationError("the first step failed")
        return lv.simulate(problem, **options)

    monkeypatch.setattr("livens.analysis.study.final_states.simulate", fragile)
    study = lv.study.converge(pendulum(), "livens-em", [0.02, 0.01, 0.005, 0.0025], 1.0)
    (curve,) = study.curves
    assert [point.failure for point in curve.points] == ["the first step failed", "", "", ""]
    assert math.isnan(curve.errors("q")[0]) and curve.fits["q"].used == (False, True, True, True)
    assert curve.fits["q"].order == pytest.approx(2, abs=0.02)
    json.loads(json.dumps(study.as_object(), allow_nan=False))
    convergence.order_diagram(study)


def test_an_order_below_the_promise_is_noticed(study):
    curve = study.curves[0]
    slow = fit_order(STEPS, STEPS)
    assert not type(curve)("slow", 2, curve.points, {"q": slow}).as_guaranteed
    assert type(curve)("slow", 1, curve.points, {"q": slow}).as_guaranteed


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (dict(schemes="livens-me"), "did you mean 'livens-em'"),
        (dict(schemes=[]), "at least one scheme"),
        (dict(h=[0.1, -0.1]), "greater than 0"),
        (dict(t_end=-1.0), "t_end must lie after"),
        (dict(t_end="soon"), "t_end must be a number"),
    ],
)
def test_bad_studies(arguments, words):
    for kind in (lv.study.converge, lv.study.work_precision):
        with pytest.raises(InputError, match=words):
            kind(pendulum(), **arguments)


def test_diagrams(study, tmp_path):
    order = convergence.order_diagram(study)
    assert [axes.get_ylabel() for axes in order.axes] == ["error in $q$", "error in $v$"]
    work = convergence.work_precision_diagram(study)
    assert [axes.get_xlabel() for axes in work.axes] == ["wall time (s)", "evaluations"]
    with pytest.raises(InputError, match="no errors of 'p'"):
        convergence.work_precision_diagram(study, "p")
    comparison = lv.study.compare(pendulum(), "livens-em,livens-midpoint", 0.01, 1.0)
    both = convergence.comparison_diagram(comparison.results)
    assert len(both.axes) == 2
    for name, figure in dict(order=order, work=work, both=both).items():
        figure.savefig(tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").stat().st_size > 5000
    with pytest.raises(InputError):
        convergence.comparison_diagram({})


# -- comparison -------------------------------------------------------------------------------------------------------
def test_comparison():
    study = lv.study.compare(lv.problems.load("spring-pendulum-spherical"), "livens-em,livens-midpoint", t_end=10.0)
    em, midpoint = study.entries
    assert em.as_guaranteed and midpoint.as_guaranteed
    assert em.report[0].verdict == "conserved to round-off as guaranteed"
    assert midpoint.report[0].verdict == "bounded, no trend"
    assert list(study.results) == ["livens-em", "livens-midpoint"] and study["livens-em"] is em
    found = json.loads(json.dumps(study.as_object(), allow_nan=False))
    assert found["schemes"]["livens-em"]["rows"][0]["deviation"] == em.report[0].deviation
    exact = lv.study.compare(pendulum(), "livens-em", 0.01, 1.0)
    assert 1e-6 < exact["livens-em"].errors["q"] < 1e-3


# -- one step ---------------------------------------------------------------------------------------------------------
COUPLED = lv.System(
    "x y",
    kinetic=lambda q, v, k: 0.5 * v[0] ** 2 + 0.5 * (1 + k.a * q[0] ** 2) * v[1] ** 2,
    potential=lambda q: q[0] ** 4 + q[0] * q[1] ** 2 + m.cos(q[1]),
    parameters=dict(a=0.5),
)
states = st.lists(st.floats(-1, 1, allow_nan=False), min_size=4, max_size=4)


@settings(max_examples=25, deadline=None)
@given(states)
def test_the_midpoint_rule_is_symplectic_and_reversible(state):
    q, v = state[:2], state[2:]
    assert symplecticity_defect(COUPLED, "livens-midpoint", q, v, 0.05) < 1e-13
    assert reversibility_defect(COUPLED, "livens-midpoint", q, v, 0.05) < 1e-13


@settings(max_examples=10, deadline=None)
@given(st.floats(0.5, 1), st.floats(0.5, 1), st.floats(0.5, 1), st.floats(-1, -0.5))
def test_the_energy_momentum_scheme_is_reversible_but_not_symplectic(x, y, a, b):
    q, v = [x, y], [a, b]
    assert symplecticity_defect(COUPLED, "livens-em", q, v, 0.1) > 1e-6
    assert reversibility_defect(COUPLED, "livens-em", q, v, 0.1) < 1e-12


def test_derivatives_of_a_step_against_differences():
    """The map (q, p) -> (q1, p1) of the scheme that is not symplectic, differenced by running it."""

    def after(z):
        q, p = z[:2], z[2:]
        v = p / [1.0, 1 + 0.5 * q[0] ** 2]
        run = lv.simulate(COUPLED, q, v, scheme="livens-em", h=0.1, t_end=0.1)
        return np.concatenate([run.q[-1], run.p[-1]])

    q, v = np.array([0.8, 0.6]), np.array([0.7, -0.9])
    start = np.concatenate([q, v * [1.0, 1 + 0.5 * q[0] ** 2]])
    D = np.column_stack([(after(start + 1e-6 * e) - after(start - 1e-6 * e)) / 2e-6 for e in np.eye(4)])
    J = np.block([[np.zeros((2, 2)), np.eye(2)], [-np.eye(2), np.zeros((2, 2))]])
    defect = np.linalg.norm(D.T @ J @ D - J, 2)
    assert symplecticity_defect(COUPLED, "livens-em", q, v, 0.1) == pytest.approx(defect, abs=1e-8)


def test_on_the_constraint_manifold():
    """A double pendulum: the constraints at the end of the step spoil symplecticity, RATTLE's kind keeps it."""
    system = lv.System(
        "x1 y1 x2 y2",
        kinetic=lambda v: 0.5 * (v @ v),
        potential=lambda q: 9.81 * (q[1] + q[3]),
        constraints=lambda q: [
            0.5 * (q[0] ** 2 + q[1] ** 2 - 1), 0.5 * ((q[2] - q[0]) ** 2 + (q[3] - q[1]) ** 2 - 1),
        ],
    )  # fmt: skip
    q, v = [1.0, 0.0, 1.0, -1.0], [0.0, 2.0, 1.0, 2.0]
    assert symplecticity_defect(system, "livens-midpoint", q, v, 0.05) > 1e-6
    assert symplecticity_defect(system, "livens-variational", q, v, 0.05) < 1e-12
    assert reversibility_defect(system, "livens-midpoint", q, v, 0.05) < 1e-12


def test_where_one_step_makes_no_sense():
    singular = lv.problems.load("mass-spring-redundant")
    with pytest.raises(InputError, match="singular"):
        symplecticity_defect(singular.model, "livens-em", singular.q0, singular.v0, 0.1)
    driven = lv.System("x", kinetic=lambda v: 0.5 * v[0] ** 2, potential=lambda q, t: m.sin(t) * q[0])
    with pytest.raises(InputError, match="depends on time"):
        reversibility_defect(driven, "livens-em", [0.0], [1.0], 0.1)
    with pytest.raises(InputError, match="greater than 0"):
        symplecticity_defect(COUPLED, "livens-em", [0, 0], [0, 0], 0.0)
    with pytest.raises(InputError, match="q0 must be 2 numbers"):
        symplecticity_defect(COUPLED, "livens-em", [0], [0, 0], 0.1)


# -- sweeps -----------------------------------------------------------------------------------------------------------
def test_values():
    assert parse_values("l=1,2.5") == ("l", [1.0, 2.5])
    assert parse_values("l=0:1:5") == ("l", [0.0, 0.25, 0.5, 0.75, 1.0])
    assert parse_values("l=0.1:0.4:4")[1] == [0.1, 0.2, 0.3, 0.4]
    assert parse_values("l=1e-3:1:4:log")[1] == [0.001, 0.01, 0.1, 1.0]
    assert parse_values("l=3:9:1") == ("l", [3.0])
    assert combinations(dict(a=[1, 2], b=[3, 4])) == [
        dict(a=1, b=3), dict(a=1, b=4), dict(a=2, b=3), dict(a=2, b=4),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text", ["", "l", "l=", "=1", "l=a", "l=1,", "l=1:2", "l=1:2:0", "l=1:2:x", "l=1:2:3:ln", "l=0:1:3:log", "l=nan"]
)
def test_bad_values(text):
    with pytest.raises(InputError):
        parse_values(text)


def unusual(l=1.0):  # noqa: E741
    """A problem of the user's own, at the top of a module so that processes find it."""
    if l > 5:
        raise RuntimeError("too long")
    return lv.problems.load("simple-pendulum", l=l)


@pytest.mark.parametrize("workers", [1, 2])
def test_sweep(workers):
    """Every combination, in order; the failed ones with their reason; the same in processes as here."""
    study = lv.study.sweep(
        "simple-pendulum", dict(l=[1.0, 2.0], h=[0.01, -1.0]), dict(t_end=0.5), final=True, workers=workers
    )
    assert study.column("l") == [1.0, 1.0, 2.0, 2.0] and study.column("h") == [0.01, -1.0, 0.01, -1.0]
    assert study.column("status") == ["complete", "failed"] * 2
    assert all("h must be greater than 0" in row["reason"] for row in study.failures) and len(study.failures) == 2
    run = lv.simulate(lv.problems.load("simple-pendulum", l=2.0), h=0.01, t_end=0.5)
    row = study.rows[2]
    assert [row["q.x"], row["q.y"]] == run.q[-1].tolist() and row["steps"] == 50
    assert row["max_energy_drift"] == run.summary.max_energy_drift and row["error_q"] > 0
    assert not study.interrupted and study.total == 4


def test_a_sweep_with_one_worker_takes_runs_together():
    """Rows are those of single runs up to round-off, and a row that fails says the same."""
    lengths = [0.5 + 0.1 * i for i in range(20)]
    study = lv.study.sweep("simple-pendulum", dict(l=lengths, h=[0.01, -1.0]), dict(t_end=0.505), final=True, workers=1)
    for row in study.rows[:4] + study.rows[-2:]:
        alone = run_member("simple-pendulum", dict(t_end=0.505), {"l": row["l"], "h": row["h"]}, True)
        assert list(row) == list(alone)
        assert row["status"] == alone["status"] and row["reason"] == alone["reason"]
        for name, value in alone.items():
            if isinstance(value, float) and name not in ("wall_s", "us_per_step", "newton_iterations_mean"):
                assert row[name] == pytest.approx(value, rel=1e-7, abs=1e-11), name


def fatal(l=1.0):  # noqa: E741
    """A problem whose process does not survive one of its options."""
    if l == 1.25:
        os._exit(3)
    return lv.problems.load("simple-pendulum", l=l)


def test_processes_of_a_sweep_take_runs_together(monkeypatch):
    """In blocks; of one whose process is lost, the other runs are done all the same."""
    from livens.analysis.study import sweeps

    sizes = []
    do = sweeps.ProcessPool.map_unordered
    monkeypatch.setattr(
        sweeps.ProcessPool,
        "map_unordered",
        lambda self, tasks: (sizes.append([len(t[2]) for t in tasks]), do(self, tasks))[1],
    )
    lengths = [1.0 + 0.25 * i for i in range(18)]
    study = lv.study.sweep(fatal, dict(l=lengths), dict(h=0.01, t_end=0.1), final=True, workers=2)
    assert sizes == [[8, 8, 2], [1] * 8] and study.column("l") == lengths
    assert study.column("status") == ["complete", "failed"] + ["complete"] * 16
    assert "was killed" in study.rows[1]["reason"]
    alone = lv.simulate(lv.problems.load("simple-pendulum", l=4.0), h=0.01, t_end=0.1)
    row = study.rows[lengths.index(4.0)]
    assert [row["q.x"], row["q.y"]] == pytest.approx(alone.q[-1].tolist(), abs=1e-13)


def test_studies_of_many_motions():
    """Orders over an ensemble are those of its members, and a comparison knows the worst of them."""
    problem = lv.problems.load("simple-pendulum")
    members = dict(v0=[[0.0, 0.2 * i] for i in range(9)], parameters={"g": np.linspace(9, 10, 9)})
    study = lv.study.converge(problem, "livens-em,livens-midpoint", [0.02, 0.01, 0.005, 0.0025], 0.4, members=members)
    for curve in study.curves:
        assert curve.fits["q"].order == pytest.approx(2.0, abs=0.1) and curve.as_guaranteed
        assert [point.steps for point in curve.points] == [9 * n for n in (20, 40, 80, 160)]
    fine = lv.simulate(problem, scheme="livens-em", v0=[0.0, 1.6], parameters={"g": 10.0}, h=1e-4, t_end=0.4)
    assert study.reference.values["q"].shape == (9, 2)
    np.testing.assert_allclose(study.reference.values["q"][-1], fine.q[-1], atol=1e-7)
    both = lv.study.compare(problem, "livens-em,symplectic-euler", 0.02, 0.4, members=members)
    drifts = [max(one.max_energy_drift for one in entry.ensemble.summary) for entry in both.entries]
    assert [max(entry.worst.values()) >= drift for entry, drift in zip(both.entries, drifts, strict=True)] == [True] * 2
    energy = both["livens-em"].ensemble.summary[0].energy
    assert both["livens-em"].worst[energy] == drifts[0] < 1e-12 < 1e-4 < drifts[1]
    assert both.as_object()["schemes"]["livens-em"]["members"]["count"] == 9
    for bad, words in ((3, "members must map"), ({"speed": [1]}, "cannot differ in 'speed'")):
        with pytest.raises(InputError, match=words):
            lv.study.converge(problem, "livens-em", members=bad)


def test_sweep_of_the_users_own_problem():
    study = lv.study.sweep(unusual, dict(l=[1.0, 9.0]), dict(h=0.01, t_end=0.1), workers=2)
    assert study.column("status") == ["complete", "failed"]
    assert study.rows[1]["reason"] == "RuntimeError: too long"
    lost = lv.study.sweep(lambda l: unusual(l), dict(l=[1.0, 2.0]), workers=2)  # noqa: E741
    assert study.problem == "unusual" and len(lost.failures) == 2 and "pickle" in lost.rows[0]["reason"].lower()


def test_bad_sweeps():
    for vary, words in (
        (dict(), "nothing is varied"),
        (dict(l=[]), "'l' has no values"),
        (dict(length=[1]), "has no option 'length'"),
        (dict(l=range(2000), m=range(2000)), "too many"),
    ):
        with pytest.raises(InputError, match=words):
            lv.study.sweep("simple-pendulum", vary)
    with pytest.raises(InputError, match="workers"):
        lv.study.sweep("simple-pendulum", dict(l=[1.0]), workers=0)
    with pytest.raises(InputError, match="name of a problem or a function"):
        lv.study.sweep(7, dict(l=[1.0]))


def test_tables(tmp_path, monkeypatch):
    import pyarrow.parquet

    rows = [dict(l=1.0, status="complete", steps=10), dict(l=2.0, status="failed", reason="a, b")]
    with write_table(rows, tmp_path / "t.csv").open() as file:
        assert list(csv.DictReader(file))[1] == dict(l="2.0", status="failed", steps="", reason="a, b")
    write_table(rows, tmp_path / "t.parquet")
    assert pyarrow.parquet.read_table(tmp_path / "t.parquet").to_pylist()[0] == {**rows[0], "reason": None}
    with pytest.raises(InputError, match="exists already"):
        write_table(rows, tmp_path / "t.csv")
    write_table(rows[:1], tmp_path / "t.csv", force=True)
    for name, words in (("t.xls", "cannot be written as"), ("no/t.csv", "does not exist"), ("t", "cannot be written")):
        with pytest.raises(InputError, match=words):
            write_table(rows, tmp_path / name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match=r"pip install 'livens\[study\]'"):
        write_table(rows, tmp_path / "other.parquet")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.csv", "t.parquet"]


# -- commands ---------------------------------------------------------------------------------------------------------
def test_report(tmp_path):
    lv.simulate(pendulum(), t_end=0.5, out=tmp_path / "run.h5")
    done = livens("report", "run.h5", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for words in ("generalized energy", "conserved to round-off as guaranteed", "drift per unit time", "500 steps"):
        assert words in done.stdout
    found = json.loads(livens("report", "run.h5", "--json", cwd=tmp_path).stdout)
    assert found["as_promised"] and found["rows"][0]["name"] == "generalized_energy"
    assert livens("report", "run.h5", "--quiet", cwd=tmp_path).stdout == ""


def test_report_of_a_broken_promise(tmp_path):
    """A trajectory attributed to a scheme with more guarantees: exit code 1."""
    run = lv.simulate(lv.problems.load("spring-pendulum"), scheme="livens-midpoint", t_end=2.0)
    run.info.scheme, run.summary.energy = "livens-em", "generalized_energy"
    run.save(tmp_path / "run.h5")
    for arguments in ([], ["--json"], ["--quiet"]):
        done = livens("report", "run.h5", *arguments, cwd=tmp_path)
        assert done.returncode == 1 and done.stderr == ""
    assert "NOT AS GUARANTEED" in livens("report", "run.h5", cwd=tmp_path).stdout


def test_converge_command(tmp_path):
    """The orders of the double four-bar linkage, with the steps it chooses itself."""
    arguments = ["converge", "double-four-bar", "--schemes", "livens-em,livens-midpoint"]
    done = livens(*arguments, "--out", "order.png", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    for scheme in ("livens-em", "livens-midpoint"):
        for name in ("q", "v"):
            assert abs(found["schemes"][scheme]["order"][name] - 2) < 0.1
    assert (tmp_path / "order.png").stat().st_size > 5000
    table = livens(
        "converge", "simple-pendulum", "--schemes", "livens-em", "--h", "0.1:4", "--t-end", "1", cwd=tmp_path
    )
    assert table.returncode == 0 and "the exact solution" in table.stdout and "fitted" in table.stdout


def test_compare_and_work_precision_commands(tmp_path):
    common = ["simple-pendulum", "--schemes", "livens-em,livens-midpoint", "--t-end", "1", "--set", "l=2"]
    done = livens("compare", *common, "--h", "0.01", "--out", "energy.svg", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "livens-midpoint" in done.stdout and "energy.svg" in done.stdout and (tmp_path / "energy.svg").exists()
    found = json.loads(livens("compare", *common, "--json", cwd=tmp_path).stdout)
    assert list(found["schemes"]) == ["livens-em", "livens-midpoint"] and found["h"] == 1e-3
    done = livens("work-precision", *common, "--h", "0.1,0.05,0.025", "--out", "work.pdf", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "evaluations" in done.stdout and (tmp_path / "work.pdf").exists()
    assert livens("compare", *common, "--quiet", cwd=tmp_path).stdout == ""


def test_sweep_command(tmp_path):
    done = livens(
        "sweep", "simple-pendulum", "--vary", "l=0.5:2:3:log", "--vary", "h=0.01,-1", "--t-end", "0.2", "--out",
        "table.csv", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "3 of 6 runs finished, 3 failed" in done.stdout and "h must be greater than 0" in done.stdout
    with (tmp_path / "table.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["l"]) for row in rows] == [0.5, 0.5, 1.0, 1.0, 2.0, 2.0]
    assert [row["status"] for row in rows] == ["complete", "failed"] * 3
    again = livens("sweep", "simple-pendulum", "--vary", "l=1", "--out", "table.csv", cwd=tmp_path)
    assert again.returncode == 2 and "exists already" in again.stderr
    schemes = livens(
        "sweep", "simple-pendulum", "--vary", "scheme=livens-em,livens-midpoint", "--t-end", "0.1", "--json",
        cwd=tmp_path,
    )  # fmt: skip
    assert [row["status"] for row in json.loads(schemes.stdout)["rows"]] == ["complete"] * 2
    failed = livens("sweep", "simple-pendulum", "--vary", "h=-1,-2", cwd=tmp_path)
    assert failed.returncode == 3 and "no run could be finished" in failed.stderr


#: A problem whose runs are endless from the third on; processes leave marks when they are at such a run, and when they
#: have the rows of others.
MARKING = """
import os, pathlib
import livens as lv
from livens.problems import problem
from livens.run.progress import Progress

@problem("marking", summary="leaves a mark", source="here")
def marking(number: int = 0):
    return lv.problems.load("simple-pendulum", t_end=0.1 if number < 2 else 1e6)

update = Progress.update
def told(self, done):
    update(self, done)
    if self._unit == "runs":
        pathlib.Path(f"rows{done}").touch()
    elif self._total > 1_000_000:
        pathlib.Path(f"endless{os.getpid()}").touch()
Progress.update = told
"""


def stopped(arguments, folder, endless, rows=""):
    """Start a program, send Ctrl-C to its group when so many processes are at an endless run and the rows before have
    arrived, and return exit code and output."""
    (folder / "marking.py").write_text(MARKING)
    with subprocess.Popen(
        [sys.executable, *arguments], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    ) as process:  # fmt: skip
        while process.poll() is None:
            if (folder / rows).exists() and len(list(folder.glob("endless*"))) >= endless:
                os.killpg(process.pid, signal.SIGINT)
                break
            time.sleep(0.05)
        output, errors = process.communicate(timeout=900)
    return process.returncode, output, errors


def test_ctrl_c_keeps_what_is_done(tmp_path):
    """Two short runs, then endless ones: the table holds the short ones."""
    command = "import marking; from livens.cli import main; main()"
    arguments = ["-c", command, "sweep", "marking", "--vary", "number=0:4:5", "--workers", "1", "--out", "table.csv"]
    code, _, errors = stopped(arguments, tmp_path, 1)
    assert code == 130 and "stopped by the user after 2 of 5 runs" in errors and "Traceback" not in errors, errors
    with (tmp_path / "table.csv").open() as file:
        assert [float(row["number"]) for row in csv.DictReader(file)] == [0.0, 1.0]


def test_ctrl_c_with_processes(tmp_path):
    """Both processes are at an endless run when Ctrl-C comes: they are ended, and the two short runs are kept."""
    (tmp_path / "script.py").write_text(
        "import json\nfrom marking import marking\nimport livens as lv\n"
        "if __name__ == '__main__':\n"
        "    study = lv.study.sweep(marking, dict(number=[0, 1, 2, 3, 4]), workers=2)\n"
        "    print(json.dumps([study.interrupted, study.column('number'), study.column('status')]))\n"
    )
    code, output, errors = stopped(["script.py"], tmp_path, 2, "rows2")
    assert code == 0 and "Traceback" not in errors, errors
    assert json.loads(output) == [True, [0, 1], ["complete", "complete"]]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["report", "text.h5"], "not a result file of livens"),
        (["report", "absent.h5"], "there is no file"),
        (["converge", "simple-pendulm"], "did you mean 'simple-pendulum'?"),
        (["converge", "simple-pendulum", "--schemes", "livens-me"], "did you mean 'livens-em'?"),
        (["converge", "simple-pendulum", "--schemes", ""], "unknown scheme ''"),
        (["converge", "simple-pendulum", "--h", "fast"], "h must be a number"),
        (["converge", "simple-pendulum", "--h", "0.1:0"], "after the colon"),
        (["converge", "simple-pendulum", "--t-end", "-1"], "t_end must lie after"),
        (["converge", "simple-pendulum", "--out", "order.doc"], "cannot be written as 'doc'"),
        (["converge", "simple-pendulum", "--out", "no/order.png"], "does not exist"),
        (["compare", "simple-pendulum", "--h", "-1"], "h must be greater than 0"),
        (["compare", "mass-spring-redundant", "--schemes", "ggl-classic"], "needs"),
        (["compare", "simple-pendulum", "--set", "length=1"], "has no option 'length'"),
        (["work-precision", "simple-pendulum", "--repeats", "0"], "repeats"),
        (["sweep", "simple-pendulum"], "--vary"),
        (["sweep", "simple-pendulum", "--vary", "l"], "--vary must look like"),
        (["sweep", "simple-pendulum", "--vary", "l=1:2"], "a range is first:last:count"),
        (["sweep", "simple-pendulum", "--vary", "length=1"], "has no option 'length'"),
        (["sweep", "simple-pendulum", "--vary", "l=1", "--vary", "l=2"], "the same name twice"),
        (["sweep", "simple-pendulum", "--vary", "l=1", "--set", "l=2"], "both varied and set"),
        (["sweep", "simple-pendulum", "--vary", "l=1", "--out", "table.xls"], "cannot be written as '.xls'"),
        (["sweep", "simple-pendulum", "--vary", "l=1", "--workers", "0"], "workers"),
    ],
)
def test_bad_input(tmp_path, arguments, words):
    (tmp_path / "text.h5").write_text("hello")
    done = livens(*arguments, cwd=tmp_path)
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert words in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["report", "compare", "converge", "work-precision", "sweep"])
def test_help_has_an_example(tmp_path, command):
    done = livens(command, "--help", cwd=tmp_path)
    assert done.returncode == 0 and f"livens {command} " in done.stdout and "Example" in done.stdout
