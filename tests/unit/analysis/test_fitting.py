"""Fits and searches find what is known, and say how well."""

import numpy as np
import pytest

import livens as lv

PENDULUM = lv.problems.load("simple-pendulum")


def measured(noise=1e-3, seed=0, count=60, **changed):
    """Places of a pendulum at times between steps, of another step and scheme than those of the fit."""
    random = np.random.default_rng(seed)
    t = np.sort(random.uniform(0.0, 2.0, count))
    truth = lv.simulate(PENDULUM, scheme="lobatto-iiia-iiib-3", h=2e-3, t_end=2.0, **changed)
    return t, truth.at(t).q + noise * random.standard_normal((count, 2))


def test_a_fit_recovers_parameters_and_initial_values_within_its_errors():
    t, data = measured(parameters={"g": 9.5}, v0=[0.0, 0.7])
    found = lv.study.fit(
        PENDULUM, lambda q: q, data, {"g": 9.0, "v0[1]": 0.2}, t=t, sigma=1e-3, scheme="lobatto-iiia-iiib-3", h=0.01
    )
    assert found.converged and not found.undetermined
    assert abs(found.values["g"] - 9.5) < 4 * found.errors["g"] < 0.02
    assert abs(found.values["v0[1]"] - 0.7) < 4 * found.errors["v0[1]"] < 0.02
    assert 0.6 < found.chi_squared / found.degrees_of_freedom < 1.5
    assert "g     = 9.5" in str(found)


def test_errors_are_those_of_repeated_measurements():
    """The standard error of one fit is the spread of fits of other noise."""
    values, errors = [], []
    for seed in range(12):
        t, data = measured(noise=0.01, seed=seed, count=25)
        found = lv.study.fit(PENDULUM, lambda q: q, data, "g", t=t, scheme="lobatto-iiia-iiib-3", h=0.02)
        values.append(found.values["g"])
        errors.append(found.errors["g"])
    assert 0.5 < np.std(values, ddof=1) / np.mean(errors) < 1.7
    assert abs(np.mean(values) - 9.81) < 4 * np.mean(errors) / np.sqrt(12)


def test_what_the_data_do_not_determine_is_said():
    """The mass of a pendulum has no influence on its motion, and v0 along the rod is none."""
    t, data = measured(parameters={"g": 9.5})
    found = lv.study.fit(PENDULUM, lambda q: q, data, {"g": 9.0, "m": 1.0}, t=t, scheme="lobatto-iiia-iiib-3", h=0.01)
    assert found.undetermined == ("m",) and found.errors["m"] == np.inf
    assert abs(found.values["g"] - 9.5) < 4 * found.errors["g"]
    assert "do not determine: m" in str(found)


def test_rows_without_a_number_are_left_out():
    t, data = measured()
    data[3] = np.nan
    found = lv.study.fit(PENDULUM, lambda q: q, data, {"g": 9.6}, t=t, scheme="lobatto-iiia-iiib-3", h=0.01)
    assert len(found.t) == len(t) - 1 and found.values["g"] == pytest.approx(9.81, abs=0.01)


def test_a_search_ends_at_bounds():
    found = lv.study.optimise(
        PENDULUM, lambda q: (q[0] - 0.9) ** 2, {"g": 6.0}, bounds={"g": (5, 7)}, h=0.01, t_end=1.0
    )
    assert found.converged and found.values["g"] == pytest.approx(7.0) and found.gradient["g"] < 0
    assert len(found.history) == found.evaluations


@pytest.mark.parametrize("method", ["SLSQP", "ipopt"])
def test_a_throw_that_has_to_end_somewhere(method):
    """Parabola through two points in a given time; the loss is the same for all that fulfil the constraints."""
    ball = lv.System("x z", kinetic=lambda v: v @ v / 2, potential=lambda q, k: k.g * q[1], parameters=dict(g=9.81))
    found = lv.study.optimise(
        ball,
        lambda v: v @ v,
        {"v0": [5.0, 5.0]},
        q0=[0, 0],
        h=0.1,
        t_end=1.5,
        constraints={"x": (lambda q: q[0], 20, 20), "z": (lambda q: q[1], 0, 0)},
        method=method,
    )
    assert found.converged
    assert list(found.values.values()) == pytest.approx([20 / 1.5, 9.81 * 0.75], abs=1e-6)
    assert found.constraints["x"] == pytest.approx(20)


def test_bad_questions_get_a_sentence():
    t, data = measured(count=5)
    for match, change in (
        ("one row for each", dict(data=data[:3])),
        ("no parameter or initial value 'gg'", dict(by="gg")),
        ("lies outside its bounds", dict(by={"g": 3.0}, bounds={"g": (5, 6)})),
        ("which is not a design variable", dict(bounds={"m": (5, 6)})),
        ("2 columns", dict(observe=lambda q: q[0])),
        ("sigma must be greater than 0", dict(sigma=-1.0)),
        ("not before t0", dict(t=t - 5)),
        ("there is no 'v0\\[7\\]'", dict(by="v0[7]")),
    ):
        arguments = {**dict(observe=lambda q: q, data=data, by="g", t=t, h=0.01), **change}
        with pytest.raises(lv.InputError, match=match):
            lv.study.fit(PENDULUM, **arguments)
    with pytest.raises(lv.InputError, match="does not support constraints"):
        lv.study.optimise(PENDULUM, lambda q: q[0], "g", constraints={"x": (lambda q: q[0], 0, 1)}, method="TNC")


def test_uncertainty_is_that_of_the_derivatives_where_it_is_small():
    names = {"g": (9.81, 0.02), "v0[1]": (0.0, 0.01)}
    found = lv.study.uncertainty(PENDULUM, names, {"x": lambda q: q[0]}, members=600, h=0.01, t_end=0.5, seed=3)
    run = lv.prepare(PENDULUM, h=0.01, t_end=0.5).run()
    slopes = run.jvp(parameters={"g": 1.0})["q"][-1, 0], run.jvp(v0=[0.0, 1.0])["q"][-1, 0]
    expected = np.hypot(0.02 * slopes[0], 0.01 * slopes[1])
    assert found.deviation("x")[-1] == pytest.approx(expected, rel=0.1)
    assert found.mean("x")[-1] == pytest.approx(run.q[-1, 0], abs=4 * expected / np.sqrt(600))
    strong = found.rank_correlation("x")
    assert abs(strong["v0[1]"]) > abs(strong["g"]) > 0.1
    again = lv.study.uncertainty(PENDULUM, names, {"x": lambda q: q[0]}, members=600, h=0.01, t_end=0.5, seed=3)
    np.testing.assert_array_equal(again.samples("x"), found.samples("x"))


def test_members_that_fail_are_left_out_of_the_statistics():
    falling = lv.System("a", kinetic=lambda v: v[0] ** 2 / 2, potential=lambda q: -lv.math.sqrt(1.0 - q[0]))
    found = lv.study.uncertainty(
        falling,
        {"q0": np.array([[-3.0], [0.5], [-2.0], [-2.5]])},
        {"a": lambda q: q[0]},
        members=4,
        v0=[3.0],
        scheme="livens-midpoint",
        h=0.01,
        t_end=0.6,
    )
    assert list(found.failures) == [1] and len(found.samples("a")) == 3 and np.isfinite(found.mean("a")).all()


@pytest.mark.parametrize("guess", [{"d": 0.2, "J": 1.0, "mgl": 9.81}, {"d": 0.5, "J": 0.8, "mgl": 9.0}])
def test_all_variables_of_an_undetermined_combination_have_no_error(guess):
    """Free oscillations determine d/J and mgl/J only: all three are undetermined, and J stays near its guess."""
    pendulum = lv.System(
        "phi",
        kinetic=lambda v, k: k.J * v[0] ** 2 / 2,
        potential=lambda q, k: -k.mgl * lv.math.cos(q[0]),
        dissipation=lambda v, k: k.d * v[0] ** 2 / 2,
        parameters=dict(J=1.0, mgl=9.81, d=0.15),
    )
    truth = lv.simulate(pendulum, q0=[1.0], v0=[0.0], h=5e-3, t_end=10.0, every=10)
    data = truth.q[:, 0] + 0.02 * np.random.default_rng(3).standard_normal(len(truth))
    given = dict(t=truth.t, sigma=0.02, h=5e-3, q0=[1.0], v0=[0.0])
    found = lv.study.fit(pendulum, lambda q: q[0], data, guess, **given)
    assert set(found.undetermined) == {"d", "J", "mgl"}
    assert not np.isfinite(list(found.errors.values())).any()
    assert found.values["mgl"] / found.values["J"] == pytest.approx(9.81, rel=2e-3)
    assert found.values["d"] / found.values["J"] == pytest.approx(0.15, rel=0.05)
    assert 0.4 < found.values["J"] / guess["J"] < 2.5
    fixed = lv.study.fit(pendulum, lambda q: q[0], data, {"d": 0.3, "mgl": 9.0}, **given)
    assert fixed.undetermined == () and abs(fixed.values["d"] - 0.15) < 4 * fixed.errors["d"] < 0.02
