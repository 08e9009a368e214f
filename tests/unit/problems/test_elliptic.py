"""Jacobi's elliptic functions, against those of SciPy and against what defines them."""

import math

import numpy as np
import pytest
from scipy.special import ellipj, ellipk

from livens.problems.elliptic import jacobi, quarter_period


@pytest.mark.parametrize("m", [0.0, 1e-12, 1e-4, 0.1, 0.5, 0.9, 0.999, 1 - 1e-9])
def test_they_are_those_of_scipy(m):
    assert quarter_period(m) == pytest.approx(ellipk(m), rel=1e-15)
    for u in np.linspace(-8, 8, 101):
        found, expected = jacobi(u, m), ellipj(u, m)[:3]
        assert np.abs(np.subtract(found, expected)).max() < 2e-13


def test_the_derivative_of_sn():
    for m in (0.2, 0.7, 1 - 1e-12):  # where SciPy has an expansion that holds for small u only
        for u in np.linspace(-3 * quarter_period(m), 3 * quarter_period(m), 41):
            (before, *_), (_, cn, dn), (after, *_) = (jacobi(u + h, m) for h in (-1e-5, 0.0, 1e-5))
            assert (after - before) / 2e-5 == pytest.approx(cn * dn, abs=1e-9)


def test_other_parameters_give_no_numbers():
    assert math.isnan(quarter_period(1.0)) and math.isnan(quarter_period(-0.1))
    assert all(map(math.isnan, jacobi(0.3, 1.2))) and all(map(math.isnan, jacobi(math.inf, 0.5)))
