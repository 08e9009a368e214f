"""Accuracy and trends, from numbers that are made up: what is concluded from them, and how it is said."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from livens.analysis import trend
from livens.analysis.accuracy.estimate import (
    NOT_RESOLVED,
    ORDER_NOT_OBSERVED,
    RESOLVED,
    RESOLVED_UNTIL,
    ROUND_OFF,
    UNKNOWN,
    Estimate,
)
from livens.analysis.accuracy.indicators import steps_per_oscillation
from livens.analysis.accuracy.refined_runs import RunDifference, difference
from livens.analysis.accuracy.richardson import error_growth, richardson_estimate


# -- three runs ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("fine", "coarse", "place", "error", "factor", "verdict"),
    [
        # halving the step shrinks the difference by 2^2: what is left of the series is a third of it
        (0.01, 0.04, 0, 0.01 / 3, 1 / 3, RESOLVED),
        (0.01, 0.04, 1, 0.04 / 3, 4 / 3, RESOLVED),
        (0.01, 0.04, 2, 0.16 / 3, 4 / 3, RESOLVED),
        (0.01, 0.09, 1, 0.04 / 3, 4 / 3, RESOLVED),  # more than the order says is not believed
        (0.001, 0.00265, 1, 0.00265 / 1.65, 2.65 / 1.65, RESOLVED),  # 2^1.4 = 2.639
        (0.001, 0.00263, 1, 0.00263 / 1.63, 2.63 / 1.63, ORDER_NOT_OBSERVED),
        (0.001, 0.00151, 1, 0.00151 / 0.51, 1.51 / 0.51, ORDER_NOT_OBSERVED),
        (0.001, 0.00149, 1, 0.00149, 1.49, NOT_RESOLVED),  # nothing is gained
        (1e-13, 1e-13, 1, 1e-13, 1.0, ROUND_OFF),  # and near the floor
        (0.9e-11, 1.0e-10, 2, 4 / 3e10, 4 / 3, RESOLVED),
        (1e-15, 1e-12, 1, 1e-14, 1.0, ROUND_OFF),  # below the floor
        (0.08, 0.32, 1, 0.32 / 3, 4 / 3, NOT_RESOLVED),  # more than a tenth of the motion
        (0.074, 0.296, 1, 0.296 / 3, 4 / 3, RESOLVED),
        (0.29, 1.2, 0, 0.29 / 3, 1 / 3, RESOLVED),  # the coarser ones may differ by more, but not by anything
        (0.301, 1.2, 0, 0.301 / 2.987, 0.3348, NOT_RESOLVED),
        (0.01, None, 1, 0.02, 2.0, UNKNOWN),
        (0.049, None, 1, 0.098, 2.0, UNKNOWN),
        (0.051, None, 1, 0.102, 2.0, NOT_RESOLVED),
        (None, 0.01, 2, 0.02, 2.0, UNKNOWN),
        (None, 0.01, 1, math.nan, math.nan, UNKNOWN),
    ],
)
def test_three_runs(fine, coarse, place, error, factor, verdict):
    curves = [None if last is None else last * np.linspace(0.1, 1.0, 5) for last in (fine, coarse)]
    found = richardson_estimate(*curves, order=2, level=place, round_off=1e-14)
    assert found.verdict == verdict
    assert [found.error, found.factor] == pytest.approx([error, factor], rel=1e-3, nan_ok=True)
    if fine is not None and coarse is not None and found.verdict != ROUND_OFF:
        assert found.ratio == pytest.approx(coarse / fine)


def test_what_holds_early_must_hold_at_the_end():
    """The coarser pair is apart long before the end; until then, the order is seen."""
    coarse = np.array([0.001, 0.01, 0.09, 0.3, 0.4])
    early, late = np.array([0.00025, 0.0025, 0.02, 0.03, 0.06]), np.array([0.00025, 0.0025, 0.02, 0.02, 0.02])
    assert richardson_estimate(early, coarse, 2, 1, 1e-14).ratio == pytest.approx(4.5)
    assert richardson_estimate(late, coarse, 3, 1, 1e-14).ratio == pytest.approx(4.5)
    assert (
        richardson_estimate(
            np.array([0.001, 0.002, 0.03, 0.05]), np.array([0.004, 0.008, 0.09, 0.09]), 2, 1, 1e-14
        ).ratio
        < 2
    )


@pytest.mark.parametrize(
    ("curve", "word", "power", "rate"),
    [
        (lambda t: 1e-9 * np.exp(1.5 * t), "exponential", None, 1.5),
        (lambda t: 1e-4 * t, "linear", 1.0, None),
        (lambda t: 1e-4 * t**2, "quadratic", 2.0, None),
        (lambda t: 1e-4 * t**3, "quadratic", 2.0, None),  # as if it were one
        (lambda t: 1e-4 * t**0.3, "bounded", 0.3, None),
        (lambda t: 1e-4 * np.sin(t) ** 2, "bounded", 0.0, None),
        (lambda t: 1e-14 * t, "bounded", 0.0, None),  # round-off
        (lambda t: 1e-4 * np.where(t < 5, t, 5 + 2 * (t - 5)), "linear", math.log(6, 4), None),  # from a quarter on
    ],
)
def test_how_differences_grow(curve, word, power, rate):
    t = np.linspace(0.0, 10.0, 401)
    found = error_growth(RunDifference(t + 3.0, {"q": curve(t)}), {"q": 1e-14})
    assert found.law == word
    if power is not None:
        assert found.power == pytest.approx(power, abs=0.02)
    assert found.rate == (None if rate is None else pytest.approx(rate, rel=0.02))


def test_growth_of_what_grows_fastest():
    t = np.linspace(0.0, 10.0, 401)
    both = RunDifference(t, {"q": 1e-4 * t**0.2, "v": 1e-4 * t})
    assert error_growth(both, {"q": 1e-14, "v": 1e-14}).law == "linear"
    assert error_growth(both, {"q": 1e-14}).law == "bounded" and error_growth(None, {"q": 1e-14}).power == 0.0


# -- and how it is said ----------------------------------------------------------------------------------------------
def estimate(verdict, **more):
    return Estimate(verdict, {"q": verdict}, **{"error": {"q": 0.0123}, "ratio": {"q": 4.0}, "order": 2, **more})


WORDS = [
    (estimate(RESOLVED), "q to 1.2e-02 of its motion (from runs with h/2 and 2h; order 2.0 observed, 2 declared)"),
    (
        estimate(RESOLVED, level=0),
        "q to 1.2e-02 of its motion (from runs with 2h and 4h; order 2.0 observed, 2 declared)",
    ),
    (estimate(RESOLVED, level=2, ratio={}), "q to 1.2e-02 of its motion (from runs with h/2 and h/4)"),
    (
        estimate(RESOLVED, window=3.0, ratio={}),
        "q to at most about 1e-02 of its motion (from runs with h/2 and 2h until t = 3, extrapolated)",
    ),
    (estimate(ORDER_NOT_OBSERVED, ratio={}), "q to roughly 1e-02 of its motion (from runs with h/2 and 2h)"),
    (estimate(ROUND_OFF, error={"q": 1e-14}), "q to round-off (1e-14) (from runs with h/2 and 2h)"),
    (
        estimate(RESOLVED_UNTIL, until={"q": 2.5}, error={"q": 0.4}, ratio={}),
        "q to a tenth of its motion until t = 2.5, wrong by 40% at worst (from runs with h/2 and 2h)",
    ),
    (
        estimate(RESOLVED_UNTIL, error={"q": 7.0}, ratio={}, rate=0.5),
        "q to a tenth of its motion not to the end, wrong by 100% at worst (from runs with h/2 and 2h); "
        "neighbouring motions diverge by a factor e in 2",
    ),
    (
        estimate(NOT_RESOLVED, ratio={}),
        "q NOT CONFIRMED (other steps change it by 1e-02) (from runs with h/2 and 2h)",
    ),
    (
        estimate(NOT_RESOLVED, error={"q": 0.5}, ratio={}),
        "q NOT RESOLVED (wrong by 50%) (from runs with h/2 and 2h)",
    ),
    (estimate(NOT_RESOLVED, error={"q": 2.0}, ratio={}), "q NOT RESOLVED (from runs with h/2 and 2h)"),
    (estimate(RESOLVED, ratio={}, rate=0.5), "q to 1.2e-02 of its motion (from runs with h/2 and 2h)"),
    (
        estimate(RESOLVED, ratio={}, steps_per_oscillation=7.9),
        "q to 1.2e-02 of its motion (from runs with h/2 and 2h); 7.9 steps per oscillation",
    ),
    (
        estimate(RESOLVED, ratio={}, steps_per_oscillation=8.0, notes=["a note"]),
        "q to 1.2e-02 of its motion (from runs with h/2 and 2h); a note",
    ),
    (estimate(UNKNOWN, ratio={"q": 4.0}), "q not known (from runs with h/2 and 2h)"),
    (estimate(UNKNOWN, error={}, notes=["too long"]), "not known; too long"),
]


@pytest.mark.parametrize("case", range(len(WORDS)))
def test_words(case):
    given, words = WORDS[case]
    assert str(given) == f"accuracy: {words}"
    assert given.resolved is {UNKNOWN: None, RESOLVED_UNTIL: False, NOT_RESOLVED: False}.get(given.verdict, True)
    assert given.as_object()["accuracy"]["words"] == given.summary_line()


# -- trends ------------------------------------------------------------------------------------------------------------
def test_a_line_through_noise():
    """White noise: the interval of a textbook, and the slope within it in 95 of 100 cases."""
    t, random = np.linspace(0.0, 50.0, 200), np.random.default_rng(1)
    inside = 0
    for _ in range(300):
        found = trend.fit_line(t, 1.0 + 0.02 * t + 0.1 * random.standard_normal(200))
        usual = 1.96 * 0.1 / np.sqrt(200 * np.var(t))
        assert 0.75 * usual < found.uncertainty < 2.0 * usual
        inside += abs(found.rate - 0.02) < found.uncertainty
    assert 0.93 * 300 < inside < 300


def test_neighbours_that_are_alike_count_as_fewer():
    """A walk that forgets slowly: with correlations rho^k, (1 + rho)/(1 - rho) values count as one."""
    t, random = np.arange(4000.0), np.random.default_rng(2)
    noise = random.standard_normal(4000)
    walk = np.zeros(4000)
    for i in range(1, 4000):
        walk[i] = 0.9 * walk[i - 1] + noise[i]
    alike, free = trend.fit_line(t, walk), trend.fit_line(t, random.permutation(walk))
    assert alike.uncertainty / free.uncertainty == pytest.approx(np.sqrt(1.9 / 0.1), rel=0.15)
    short = trend._correlation_time(np.array([1.0, 1.0, -1.0, -1.0, 1.0, 1.0, -1.0, -1.0]))
    first = 1 / 8 + (2 + 4 / 8) / 8  # rho_1 = 1/8, and what the line has taken is given back
    assert short == pytest.approx((1 + first) / (1 - first))
    assert trend._correlation_time(np.zeros(5)) == 1.0


@pytest.mark.parametrize("parts", [[2500], [1, 2, 3, 700, 1, 1793], [50] * 50])
def test_averages_of_a_series_that_comes_in_parts(parts):
    """Bins of equally many values, however they come: their means have the slope of the series."""
    assert sum(parts) == 2500
    t = np.linspace(0.0, 1.0, 2500)
    y = np.column_stack([3.0 * t, np.cos(400 * t), t**0])
    series = trend.BinnedSeries()
    for now in np.split(np.arange(2500), np.cumsum(parts)[:-1]):
        series.add(t[now], y[now])
    used = len(series._bins) * series._width
    assert 2500 - used == series._open_count < series._width
    np.testing.assert_allclose(
        series._bins[:, 1:], y[:used].reshape(len(series._bins), series._width, 3).sum(axis=1), atol=1e-9
    )
    np.testing.assert_allclose(series._bins[:, 0], t[:used].reshape(len(series._bins), -1).sum(axis=1), atol=1e-9)
    np.testing.assert_allclose(series._open_bin[1:], y[used:].sum(axis=0), atol=1e-9)
    slopes = series.trends()
    assert slopes[0].rate == pytest.approx(3.0) and slopes[0].significant
    assert not slopes[1].significant and slopes[2].rate == pytest.approx(0.0, abs=1e-12)
    assert trend.BinnedSeries().trends() == []


@pytest.mark.parametrize("turn", [3.0, 8.0, 50.0, 1000.0])
def test_steps_of_an_oscillation_are_counted(turn):
    """From velocities alone, whatever their size; rows that are not of every step say nothing."""
    v = 1e3 * np.cos(2 * np.pi * np.arange(5001)[:, None] / turn)
    rows = SimpleNamespace(v=v, spacing=1, size=lambda name: 1e3)
    assert steps_per_oscillation(rows, "v") == pytest.approx(turn, rel=1e-3)
    assert steps_per_oscillation(SimpleNamespace(v=v, spacing=2, size=lambda name: 1e3), "v") is None
    assert steps_per_oscillation(SimpleNamespace(v=0 * v, spacing=1, size=lambda name: 1e3), "v") == math.inf


def test_runs_are_compared_row_by_row_where_their_times_meet():
    """Up to rounding, which is much where there were many steps: no polynomial goes between such rows."""
    t = np.arange(1001.0)
    fine = SimpleNamespace(t=np.arange(0.0, 1000.5, 0.5) * (1 + 1e-11), equal_steps=True)
    fine.q = np.random.default_rng(5).standard_normal((2001, 1))  # which no polynomial would meet
    coarse = SimpleNamespace(t=t, q=fine.q[::2] + np.linspace(0, 1e-3, 1001)[:, None])
    found = difference(fine, coarse, {"q": 2.0}, 2)
    assert np.array_equal(found.t, t) and found.norms["q"] == pytest.approx(np.linspace(0, 5e-4, 1001), abs=1e-12)
