"""Many trajectories at once: each is the run it would be by itself, whoever goes beside it."""

import numpy as np
import pytest

import livens as lv
from livens.engine.ensemble import lane_run, member_ordering, stepper
from livens.run.ensemble import run as run_module
from livens.run.startup import compile_and_start

CASES = {
    "constrained": ("simple-pendulum", "livens-em", 1500),
    "library functions": ("nonlinear-pendulum", "livens-em", 600),
    "stages": ("kepler", "gauss-2", 600),
    "explicit": ("kepler", "stormer-verlet", 600),
}


def members_of(problem, count, seed=0):
    """Initial speeds and the weight spread by 20 %."""
    random = np.random.default_rng(seed)
    given = problem.start_values
    name = "v0" if "v0" in given else "p0"
    start = {name: np.asarray(given[name]) * (1 + 0.2 * random.uniform(-1, 1, count))[:, None]}
    weights = 9.81 * (1 + 0.2 * random.uniform(-1, 1, count))
    return start, {"g": weights} if "g" in problem.model.parameters else {}


def ran(problem, scheme, steps, start, parameters, **options):
    return lv.ensemble(
        problem, scheme=scheme, t_end=problem.t0 + steps * problem.h, parameters=parameters, **start, **options
    )


@pytest.mark.parametrize("case", CASES)
def test_members_are_the_runs_they_would_be(case):
    """Up to round-off, with the same corrections and the same summary; the last group is not full."""
    name, scheme, steps = CASES[case]
    problem = lv.problems.load(name)
    start, parameters = members_of(problem, 19)
    many = ran(problem, scheme, steps, start, parameters, every=50)
    assert many.status == ["complete"] * 19
    for i in (0, 7, 18):
        alone = lv.simulate(
            problem,
            scheme=scheme,
            t_end=problem.t0 + steps * problem.h,
            every=50,
            parameters={key: values[i] for key, values in parameters.items()},
            **{key: values[i] for key, values in start.items()},
        )
        np.testing.assert_array_equal(many.t, alone.t)
        np.testing.assert_allclose(many.q[i], alone.q, atol=1e-11)
        assert abs(many.newton_iterations[i] - alone.statistics.newton_iterations) <= 0.05 * steps
        assert many.steps[i] == alone.statistics.steps == steps
        assert many.summary[i].max_energy_drift == pytest.approx(alone.summary.max_energy_drift, abs=1e-12)
        assert many.summary[i].max_constraint == pytest.approx(alone.summary.max_constraint, abs=1e-13)
        assert many.summary[i].momentum_drift.keys() == alone.summary.momentum_drift.keys()


@pytest.mark.parametrize("case", CASES)
def test_neither_order_nor_threads_change_a_bit(case, monkeypatch):
    # as if they were many: threads put them into their order too
    monkeypatch.setattr(stepper, "_PARALLEL_UNPERMUTE_FROM", 1)
    name, scheme, _ = CASES[case]
    problem = lv.problems.load(name)
    start, parameters = members_of(problem, 37)
    many = ran(problem, scheme, 200, start, parameters, every=10)
    order = np.random.default_rng(1).permutation(37)
    other = ran(
        problem,
        scheme,
        200,
        {key: values[order] for key, values in start.items()},
        {key: values[order] for key, values in parameters.items()},
        every=10,
        threads=3,
    )
    np.testing.assert_array_equal(other.q, many.q[order])
    assert [other.summary[i] for i in range(37)] == [many.summary[i] for i in order]


def test_company_changes_no_bit(monkeypatch):
    """Lanes that need more corrections, or leave, do not touch the others: here every lane has other neighbours."""
    problem = lv.problems.load("double-four-bar")
    start, parameters = members_of(problem, 16)
    orders = []
    monkeypatch.setattr(
        run_module, "morton_order", lambda z, k: orders.append(member_ordering.morton_order(z, k)) or orders[-1]
    )
    many = ran(problem, None, 700, start, parameters, every=100)
    monkeypatch.setattr(run_module, "morton_order", lambda z, k: np.arange(len(z)))
    first = int(orders[0][0])  # the pivot order is that of the member which comes first
    shuffled = np.concatenate([[first], np.random.default_rng(5).permutation([i for i in range(16) if i != first])])
    chosen = {key: values[shuffled] for key, values in start.items()}
    other = ran(problem, None, 700, chosen, {"g": parameters["g"][shuffled]}, every=100)
    np.testing.assert_array_equal(other.q, many.q[shuffled])


def test_neighbours_are_alike_in_all_their_numbers():
    """And their order follows from the numbers alone; columns that say the same count once."""
    random = np.random.default_rng(3)
    k, v = random.uniform(size=(4096, 1)), random.uniform(size=(4096, 1))
    z = np.hstack([v, 2 * v, np.zeros_like(v)])
    order = member_ordering.morton_order(z, k)
    assert sorted(order) == list(range(4096))
    groups = np.hstack([k, v])[order].reshape(-1, 8, 2)
    assert np.median(np.ptp(groups, axis=1).max(axis=1)) < 0.12  # the side of a square with eight of them is 0.044
    shuffled = random.permutation(4096)
    other = member_ordering.morton_order(z[shuffled], k[shuffled])
    np.testing.assert_array_equal(shuffled[other], order)
    assert shuffled[member_ordering.canonical_member(z[shuffled], k[shuffled])] == member_ordering.canonical_member(
        z, k
    )
    assert member_ordering.canonical_member(np.array([[np.nan, 2.0], [1.0, 1.0], [1.0, 0.0]]), np.zeros((3, 1))) == 2
    close = np.array([[0.0, 0.0], [1.0, 1.0], [0.5 + 1e-13, 0.2], [0.5, 0.2]])  # the last two have one code
    assert member_ordering.morton_order(close, np.zeros((4, 1))).tolist() == [0, 3, 2, 1]
    twins = np.repeat(z[:5], 3, axis=0)
    assert len(set(map(tuple, twins[member_ordering.morton_order(twins, np.zeros((15, 1)))][::3]))) == 5


def test_lanes_do_not_touch_each_other():
    """A member eight times, beside members that fail at once and beside copies of itself."""
    falling = lv.System("a", kinetic=lambda v: v[0] ** 2 / 2, potential=lambda q: -lv.math.sqrt(1.0 - q[0]))
    kind = dict(scheme="livens-midpoint", h=0.01, t_end=1.0, every=5)
    calm = lv.ensemble(falling, q0=[[-3.0]] * 8, v0=[[0.1]] * 8, **kind)
    mixed = lv.ensemble(falling, q0=[[-3.0], [0.5]] * 4, v0=[[0.1], [3.0]] * 4, **kind)
    assert calm.status == ["complete"] * 8
    assert mixed.status == ["complete", "failed"] * 4
    np.testing.assert_array_equal(mixed.q[::2], calm.q[::2])
    assert mixed.summary[0] == calm.summary[0]
    assert np.isnan(mixed.q[1, -1]).all() and np.isfinite(mixed.q[1, 0]).all()
    assert "from t = 0.1" in mixed.failures[1]
    with pytest.raises(lv.IntegrationError):
        lv.simulate(falling, q0=[0.5], v0=[3.0], **kind)
    assert mixed.steps[1] < mixed.steps[0]


def test_members_go_on_as_themselves_beside_one_that_failed(monkeypatch):
    """Different ones, for many chunks of steps after the one in which another failed, and in a shorter last step."""
    monkeypatch.setattr(lane_run, "_L2_CHUNK_BYTES", 5_000)
    falling = lv.System(
        "a",
        kinetic=lambda v: v[0] ** 2 / 2,
        potential=lambda q: -lv.math.sqrt(1.0 - q[0]),
        forces=lambda t: [0.1 * lv.math.sin(2 * t)],
    )
    kind = dict(scheme="livens-midpoint", h=0.01, t_end=2.006, every=5)
    starts, speeds = [[-3.0], [-2.5], [0.5], [-2.0]], [[0.1], [0.2], [3.0], [-0.3]]
    mixed = lv.ensemble(falling, q0=starts, v0=speeds, **kind)
    assert mixed.status == ["complete", "complete", "failed", "complete"]
    for i in (0, 1, 3):
        alone = lv.simulate(falling, q0=starts[i], v0=speeds[i], **kind)
        np.testing.assert_allclose(mixed.q[i], alone.q, atol=1e-12)


def test_explicit_members_that_explode_are_named():
    wild = lv.System("a", kinetic=lambda v: v[0] ** 2 / 2, potential=lambda q: -lv.math.exp(q[0]))
    many = lv.ensemble(wild, q0=[[-3.0], [3.0]], v0=[[0.0], [9.0]], scheme="stormer-verlet", h=0.01, t_end=1.0)
    assert many.status == ["complete", "failed"]
    assert "not finite" in many.failures[1]
    assert np.isfinite(many.q[0]).all()
    known = np.isfinite(many.q[1]).all(axis=1) & np.isfinite(many.v[1]).all(axis=1)
    last = np.flatnonzero(known)[-1]  # as far as it got, and that is what is said
    assert many.steps[1] == last < 100 and f"from t = {many.t[last]:.9g}" in many.failures[1]


@pytest.mark.parametrize("pushed", [False, True])
def test_members_whose_energy_explodes_have_failed(pushed):
    """As runs by themselves do: where nothing is supplied, and where it is known how much."""
    more = dict(forces=lambda t: [lv.math.sin(t)]) if pushed else {}
    spring = lv.System(
        "x",
        kinetic=lambda v: v[0] ** 2 / 2,
        potential=lambda q, k: k.c * q[0] ** 2 / 2,
        parameters={"c": 1.0},
        **more,
    )
    kind = dict(q0=[1.0], v0=[0.0], scheme="stormer-verlet", h=0.1, t_end=5.0)
    many = lv.ensemble(spring, parameters={"c": [1.0, 600.0]}, **kind)
    assert many.status == ["complete", "failed"] and "the run blew up" in many.failures[1]
    with pytest.raises(lv.IntegrationError, match="blew up"):
        lv.simulate(spring, parameters={"c": 600.0}, **kind)


def test_lanes_that_leave_come_back(monkeypatch):
    """In small chunks, so that trajectories leave and join again; the motion is the same."""
    problem = lv.problems.load("double-four-bar")
    start, parameters = members_of(problem, 8, seed=2)
    usual = ran(problem, None, 2500, start, parameters, every=500)
    monkeypatch.setattr(lane_run, "_L2_CHUNK_BYTES", 60_000)
    other = ran(problem, None, 2500, start, parameters, every=500)
    np.testing.assert_allclose(other.q, usual.q, atol=1e-9)
    assert max(one.max_energy_drift for one in other.summary) < 1e-12


def test_the_last_step_is_shortened():
    problem = lv.problems.load("simple-pendulum")
    many = lv.ensemble(problem, parameters={"g": [9.0, 10.0]}, h=0.01, t_end=0.333, every=10)
    alone = lv.simulate(problem, parameters={"g": 10.0}, h=0.01, t_end=0.333, every=10)
    np.testing.assert_allclose(many.t, alone.t, rtol=1e-15)
    np.testing.assert_allclose(many.q[1], alone.q, atol=1e-14)


def test_reductions_are_those_of_every_state():
    problem = lv.problems.load("simple-pendulum")
    reduce = {"height": lambda q: q[1], "both": lambda q, v: [q[0], v[0]], "kinetic": "kinetic_energy"}
    many = lv.ensemble(problem, parameters={"g": [9.0, 10.0, 11.0]}, t_end=0.7, every=10**6, reduce=reduce)
    run = lv.simulate(problem, parameters={"g": 10.0}, t_end=0.7)
    heights = run.q[:, 1]
    assert many.q.shape[1] == 2
    for found, expected in (("mean", heights.mean()), ("lowest", heights.min()), ("highest", heights.max())):
        assert getattr(many.reduced["height"], found)[1] == pytest.approx(expected, abs=1e-13)
    assert many.reduced["both"].mean.shape == (3, 2)
    assert many.reduced["kinetic"].highest[1] == pytest.approx(run.observe("kinetic_energy").max(), abs=1e-12)


def test_reduced_energies_are_those_of_their_time():
    """The potential depends on time: its value in every state belongs to the time of the state."""
    model = lv.System(
        "x",
        kinetic=lambda v: v[0] ** 2 / 2,
        potential=lambda q, t, k: k.c * (1 + 0.5 * lv.math.sin(3 * t)) * q[0] ** 2,
        parameters={"c": 1.0},
    )
    kind = dict(q0=[1.0], v0=[0.2], scheme="livens-midpoint", h=0.01, t_end=2.0)
    many = lv.ensemble(model, parameters={"c": [1.0, 2.0, 3.0]}, reduce={"energy": "total_energy"}, **kind)
    for i, c in enumerate((1.0, 2.0, 3.0)):
        energy = lv.simulate(model, parameters={"c": c}, **kind).observe("total_energy")
        found = [getattr(many.reduced["energy"], name)[i] for name in ("lowest", "highest")]
        assert found == pytest.approx([energy.min(), energy.max()], abs=1e-12)


def test_a_member_that_cannot_start_is_a_failed_member():
    problem = lv.problems.load("simple-pendulum")
    many = lv.ensemble(problem, q0=[[-1.0, 0.0], [-2.0, 0.0]], t_end=0.1, every=50)
    assert many.status == ["complete", "failed"]
    assert "inconsistent initial values" in many.failures[1]
    assert np.isnan(many.q[1]).all()


def test_an_ensemble_is_kept_in_one_file(tmp_path):
    problem = lv.problems.load("simple-pendulum")
    reduce = {"height": lambda q: q[1]}
    many = lv.ensemble(problem, parameters={"g": [9.0, 10.0]}, t_end=0.1, every=20, reduce=reduce)
    path = many.save(tmp_path / "many.h5")
    again = lv.Ensemble.load(path)
    for name in many.arrays:
        np.testing.assert_array_equal(again.arrays[name], many.arrays[name])
    assert again.summary == many.summary and again.info == many.info and again.status == many.status
    np.testing.assert_array_equal(again.parameters["g"], [9.0, 10.0])
    np.testing.assert_array_equal(again.reduced["height"].mean, many.reduced["height"].mean)
    with pytest.raises(lv.InputError, match="exists already"):
        many.save(path)
    with pytest.raises(lv.InputError, match="there is no file"):
        lv.Ensemble.load(tmp_path / "other.h5")


def test_what_does_not_fit_is_said():
    problem = lv.problems.load("simple-pendulum")
    with pytest.raises(lv.InputError, match="inputs must have the same number of rows"):
        lv.ensemble(problem, q0=[[-1, 0]] * 3, parameters={"g": [1.0, 2.0]})
    with pytest.raises(lv.InputError, match="unknown parameter"):
        lv.ensemble(problem, parameters={"gg": [1.0, 2.0]})
    with pytest.raises(lv.InputError, match="unknown observable"):
        lv.ensemble(problem, parameters={"g": [1.0, 2.0]}, reduce={"a": "nothing"})


def test_histograms_count_every_state():
    problem = lv.problems.load("simple-pendulum")
    reduce = {"height": lambda q: q[1], "x": lambda q: q[0]}
    options = dict(parameters={"g": [9.0, 10.0, 11.0]}, t_end=0.7, every=10**6)
    many = lv.ensemble(problem, **options, reduce=reduce, histograms={"height": (-0.5, -0.1, 8)})
    heights = lv.simulate(problem, parameters={"g": 10.0}, t_end=0.7).q[:, 1]
    found = many.reduced["height"]
    np.testing.assert_allclose(found.edges, np.linspace(-0.5, -0.1, 9))
    expected = np.histogram(heights, [-np.inf, *np.linspace(-0.5, -0.1, 9), np.inf])[0]
    assert np.abs(found.counts[1] - expected).max() <= 1  # one that lies at an edge
    assert found.counts.sum(axis=1).tolist() == [len(heights)] * 3 and many.reduced["x"].counts is None
    for bad in ({"other": (0, 1, 3)}, {"height": (1, 0, 3)}, {"height": 3}, {"height": (0, 1, 0)}):
        with pytest.raises(lv.InputError):
            lv.ensemble(problem, **options, reduce=reduce, histograms=bad)


def test_a_member_that_fails_is_counted_until_then():
    falling = lv.System("a", kinetic=lambda v: v[0] ** 2 / 2, potential=lambda q: -lv.math.sqrt(1.0 - q[0]))
    many = lv.ensemble(
        falling,
        q0=[[-3.0], [0.5]],
        v0=[[0.1], [3.0]],
        scheme="livens-midpoint",
        h=0.01,
        t_end=1.0,
        every=100,
        reduce={"a": lambda q: q[0]},
        histograms={"a": (-4.0, 1.0, 5)},
    )
    assert many.status == ["complete", "failed"]
    assert many.reduced["a"].counts.sum(axis=1).tolist() == [101, many.steps[1] + 1]


def test_files_of_earlier_versions_are_read(tmp_path):
    """They had all summaries as text."""
    import dataclasses
    import json

    import h5py

    problem = lv.problems.load("kepler")
    many = lv.ensemble(problem, v0=np.asarray(problem.v0) * np.array([[1.0], [1.1]]), t_end=0.1, every=20)
    path = many.save(tmp_path / "many.h5")
    assert lv.Ensemble.load(path).summary == many.summary and many.summary[0].momentum_drift
    with h5py.File(path, "r+") as file:
        told = json.loads(file["record"][()].tobytes()[8:])  # behind its checksum
        file.attrs["format"] = "livens-ensemble-1"
        told["summary"] = [dataclasses.asdict(one) for one in many.summary]
        del file["summary"], file["record"]
        file.create_dataset("record", data=np.frombuffer(json.dumps(told).encode(), dtype=np.uint8))
    assert lv.Ensemble.load(path).summary == many.summary


def test_several_numbers_are_reduced_and_no_corrections_wasted():
    """Numbers and vectors side by side, against all rows of runs by themselves, which need as many corrections."""
    problem = lv.problems.load("simple-pendulum")
    reduce = {"x": lambda q: q[0], "both": lambda q, v: [q[1], v[0]], "speed": lambda v: v @ v}
    gs = [5.0, 9.81, 20.0]
    many = lv.ensemble(problem, parameters={"g": gs}, h=0.01, t_end=2.0, every=50, reduce=reduce)
    for i, g in enumerate(gs):
        run = lv.simulate(problem, parameters={"g": g}, h=0.01, t_end=2.0)
        rows = {
            "x": run.q[:, 0],
            "both": np.stack([run.q[:, 1], run.v[:, 0]], axis=1),
            "speed": (run.v**2).sum(axis=1),
        }
        for name, values in rows.items():
            found = many.reduced[name]
            np.testing.assert_allclose(found.mean[i], values.mean(axis=0), atol=1e-12)
            np.testing.assert_allclose(found.lowest[i], values.min(axis=0), atol=1e-12)
            np.testing.assert_allclose(found.highest[i], values.max(axis=0), atol=1e-12)
        assert many.newton_iterations[i] <= 1.1 * run.statistics.newton_iterations


def test_where_no_lane_can_be_extrapolated_the_guess_of_the_scheme_is_taken():
    """Long steps, from which nothing can be told: members need as many corrections as by themselves."""
    problem = lv.problems.load("kepler")
    many = lv.ensemble(problem, q0=[problem.q0] * 8, scheme="livens-em", h=0.5, t_end=50.0)
    alone = lv.simulate(problem, scheme="livens-em", h=0.5, t_end=50.0)
    assert many.newton_iterations == pytest.approx(alone.statistics.newton_iterations, rel=0.02)
    np.testing.assert_allclose(many.q[0], alone.q, atol=1e-9)


def test_parameters_of_members_are_shared_ones_and_those_that_differ():
    system = lv.System(
        "x y",
        elements=[
            lv.Element("x", kinetic=lambda v, k: k.m * v @ v / 2, parameters={"m": 1.0}, name="left"),
            lv.Element("y", kinetic=lambda v, k: k.m * v @ v / 2, parameters={"m": 2.0}, name="right"),
            lv.Element(["x", "y"], potential=lambda q, k: k.g * (q[0] - q[1]) ** 2, name="spring"),
        ],
        parameters={"g": 3.0},
    )
    found = lv.ensemble(
        system, scheme="livens-em", q0=[1.0, 0.0], v0=[0.0, 0.0], parameters={"left.m": [1.0, 4.0]}, h=0.01, t_end=0.1
    )
    assert set(found.parameters) == {"g", "left.m"} and found.parameters["left.m"].tolist() == [1.0, 4.0]


def test_feedback_laws_are_refused_by_ensembles_and_gradients():
    cart = lv.System("x", kinetic=lambda v: v[0] ** 2 / 2, forces=lambda k: [k.u], parameters=dict(u=0.0))
    law = lv.Feedback(lambda t, y: -y[0], 0.1, [lambda q: q[0]], "u")
    start = dict(q0=[1.0], v0=[0.0], h=0.1, t_end=1.0, inputs=law)
    with pytest.raises(lv.InputError, match="an ensemble needs the samples of its inputs before the run"):
        lv.ensemble(cart, **start)
    with pytest.raises(lv.InputError, match="a derivative needs the samples of its inputs before the run"):
        lv.prepare(cart, h=0.1, t_end=1.0).value_and_gradient(lambda q: q[0])(q0=[1.0], v0=[0.0], inputs=law)


def test_a_repeated_run_in_lanes_reads_states_anew_and_marks_rows_after_a_failure():
    collapse = lv.FirstOrder("x", rhs=lambda x, k: [k.a * x[0] ** 2], parameters=dict(a=1.0))  # infinite at 1 / (a x)
    plan = lv.prepare(collapse, "gauss-2", x0=[0.1], h=0.05, t_end=2.0)._make_plan({})
    compiled, _ = compile_and_start(plan)
    z, k = np.full((11, 1), 0.1), np.ones((11, 1))
    stepper = run_module.lane_stepper(compiled, plan, z[:1], k[:1])
    grid = lane_run.TimeGrid(0.05, 0.0, 40, 0.0, 20, np.arange(1))
    run = lane_run.EnsembleRun(stepper, z, k, grid)
    for _ in range(2):
        states = run.run().states[:, :, 0]
        np.testing.assert_allclose(states, np.tile(1 / (10 - grid.times), (11, 1)), rtol=1e-7)
    z[3] = 0.8  # infinite at t = 1.25
    result = run.run()
    assert list(result.failures) == [3] and np.isnan(result.states[3, 2:]).all()
    np.testing.assert_allclose(result.states[3, :2, 0], [0.8, 1 / (1.25 - 1.0)], rtol=1e-4)
    others = np.delete(np.arange(11), 3)
    np.testing.assert_array_equal(result.states[others, :, 0], states[others])
