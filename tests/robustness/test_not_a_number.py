"""A model that stops being a number: the run ends there with a sentence, whatever takes the steps.

The potential ``-sqrt(1 - a)`` ends at a = 1, and the motion gets there. Next to it another coordinate goes on and on:
a maximum over both must not lose what is not a number, wherever it stands.
"""

import math

import numpy as np
import pytest

import livens as lv
from livens import math as m
from livens.engine.fold import fold
from livens.engine.newton import scaled

START = dict(q0=[0.0, 1.0], v0=[3.0, 0.0], h=0.01, t_end=2.0)
SCHEMES = [
    *["gauss-1", "gauss-2", "livens-midpoint", "implicit-midpoint", "livens-variational", "livens-em"],
    *["livens-em:mean-value", "livens-em:itoh-abe", "hamilton-midpoint", "hamilton-em", "ggl-em", "ggl-variational"],
    *["radau-iia-2", "lobatto-iiic-2", "lobatto-iiia-iiib-2", "rattle", "shake", "murua-1", "murua-ggl-1"],
    *["stormer-verlet", "symplectic-euler", "variational:0.25", "variational-sym:0", "semi-explicit:0,0.5", "heun"],
    *["explicit-euler", "explicit-midpoint", "implicit-euler", "trapezoidal", "theta:0.7", "yoshida-4:stormer-verlet"],
]


def cliff(last=False):
    """The coordinate that ends is the first one, or the last."""
    a, b = (1, 0) if last else (0, 1)
    return lv.System(
        "a b",
        kinetic=lambda v: (v[0] ** 2 + v[1] ** 2) / 2,
        potential=lambda q: -m.sqrt(1 - q[a]) + q[b] ** 2 / 2,
    )


def ends(model, scheme, **options):
    """The run up to where it fails."""
    with pytest.raises(lv.IntegrationError) as caught:
        lv.simulate(model, scheme=scheme, **(START | options))
    run = caught.value.result
    assert run.status == "failed" and 0.2 < run.t[-1] < 0.5 and len(run) > 5
    for name in run.stored:
        rows = np.asarray(getattr(run, name), dtype=float)
        assert np.isfinite(rows).all(), name
    return run


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_equal_steps(scheme, last):
    start = dict(q0=START["q0"][::-1], v0=START["v0"][::-1]) if last else {}
    run = ends(cliff(last), scheme, **start)
    assert run.q[-1, int(last)] < 1.0 + 3 * 0.02


@pytest.mark.parametrize("scheme", ["livens-em", "gauss-1", "radau-iia-2", "lobatto-iiia-iiib-2", "murua-1"])
def test_the_reference_tier(scheme):
    assert ends(cliff(), scheme, tier="reference").t[-1] == pytest.approx(ends(cliff(), scheme).t[-1], abs=0.011)


@pytest.mark.parametrize("scheme", ["gauss-1", "gauss-2", "radau-iia-2", "livens-em", "implicit-midpoint"])
def test_controlled_steps(scheme):
    """They get shorter up to the end, and no further than is allowed."""
    run = ends(cliff(), scheme, control=lv.StepControl(smallest=1e-5))
    assert run.q[-1, 0] == pytest.approx(1.0, abs=1e-2)


@pytest.mark.parametrize("scheme", ["gauss-2", "radau-iia-2"])
def test_steps_that_follow_an_estimate(scheme):
    run = ends(cliff(), scheme, control=lv.StepControl(tolerance=1e-6, smallest=1e-7))
    assert run.q[-1, 0] == pytest.approx(1.0, abs=1e-2)  # where the model ends


def test_in_a_file(tmp_path):
    with pytest.raises(lv.IntegrationError):
        lv.simulate(cliff(), scheme="livens-em", out=tmp_path / "run.h5", **START)
    run = lv.load(tmp_path / "run.h5", system=cliff())
    assert run.status == "failed" and all(
        np.isfinite(np.asarray(getattr(run, name), dtype=float)).all() for name in run.stored
    )


# -- the parts --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_the_largest_residual_is_none_if_one_is_none(size):
    ones = np.ones(size)
    assert scaled(np.arange(size, dtype=float), ones, size) == size - 1
    for place in range(size):
        for value in (np.nan, -np.nan):
            r = np.arange(size, dtype=float)
            r[place] = value
            assert math.isnan(scaled(r, ones, size))
        r = np.arange(size, dtype=float)
        r[place] = -np.inf
        assert scaled(r, ones, size) == np.inf
        scale = ones.copy()
        scale[place] = np.nan
        assert math.isnan(scaled(np.arange(size, dtype=float), scale, size))


@pytest.mark.parametrize("row", [0, 1, 2])
@pytest.mark.parametrize("column", [0, 2, 3, 4, 6])
def test_extremes_keep_what_is_not_a_number(row, column):
    """Energy, both levels of constraints, and momenta: once lost, a deviation is not forgotten in later rows."""
    table = np.ones((3, 7))
    table[row, column] = np.nan
    last, largest = np.ones(1), np.zeros(5 + 2)
    fold(table, np.zeros(3), np.ones(7), last, largest, np.array([3]), np.zeros(1))
    assert np.isnan(largest).any()
    before = largest.copy()
    fold(np.ones((3, 7)), np.zeros(3), np.ones(7), np.ones(1), largest, np.array([3]), np.zeros(1))
    assert np.array_equal(np.isnan(largest), np.isnan(before))
