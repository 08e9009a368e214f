"""Interpolation of tables: the functions of NumPy and SciPy for numbers and symbols, and exact energies."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from scipy.interpolate import CubicSpline, PchipInterpolator

import livens as lv
from livens import math as m

XP = np.array([-1.0, -0.7, -0.1, 0.4, 1.0, 1.3])
FP = np.array([2.0, 0.5, -1.0, 0.0, 3.0, 3.5])
X = np.concatenate([np.linspace(-1.5, 1.8, 34), XP])


def _of_symbols(function):
    x = ca.SX.sym("x")
    return ca.Function("f", [x], [m.to_casadi(function(m.Scalar(x)))])(X).full().ravel()


def test_linear_interpolation_is_that_of_numpy():
    assert np.allclose(m.interp(X, XP, FP), np.interp(X, XP, FP), atol=1e-14)
    assert np.allclose(_of_symbols(lambda x: m.interp(x, XP, FP)), np.interp(X, XP, FP), atol=1e-14)
    assert np.allclose(_of_symbols(lambda x: np.interp(x, XP, FP)), np.interp(X, XP, FP), atol=1e-14)
    ends = np.interp(X, XP, FP, left=7.0, right=-7.0)
    assert np.allclose(_of_symbols(lambda x: m.interp(x, XP, FP, 7.0, -7.0)), ends, atol=1e-14)


@pytest.mark.parametrize("method, peer", [("cubic", CubicSpline), ("monotone", PchipInterpolator)])
@pytest.mark.parametrize("derivative", [-1, 0, 1, 2])
def test_splines_are_those_of_scipy(method, peer, derivative):
    inside = X[(XP[0] <= X) & (XP[-1] > X)]
    spline = peer(XP, FP)
    exact = spline.antiderivative() if derivative < 0 else spline.derivative(derivative) if derivative else spline
    values = m.spline(inside, XP, FP, method=method, derivative=derivative)
    assert np.allclose(values, exact(inside), rtol=1e-12, atol=1e-12)
    symbols = _of_symbols(lambda x: m.spline(x, XP, FP, method=method, derivative=derivative))
    assert np.allclose(symbols, m.spline(X, XP, FP, method=method, derivative=derivative), atol=1e-12)


@pytest.mark.parametrize("method", ["cubic", "monotone", "linear"])
def test_splines_continue_as_straight_lines_with_their_integral(method):
    for outside in (np.linspace(-3, -1, 9), np.linspace(1.3, 3, 9)):
        values, area = m.spline(outside, XP, FP, method=method), m.spline(outside, XP, FP, method=method, derivative=-1)
        assert np.allclose(np.diff(values, 2), 0, atol=1e-12)
        assert np.allclose(np.diff(area), (values[1:] + values[:-1]) / 2 * np.diff(outside), atol=1e-12)


def test_a_measured_spring_conserves_the_energy_and_has_the_motion_of_its_formula():
    x = np.linspace(-1.2, 1.2, 25)
    force = 3 * x + 5 * x**3  # a cubic, which a not-a-knot spline interpolates exactly
    tables = lv.System(
        "x", kinetic=lambda v: 0.5 * v[0] ** 2, potential=lambda q: m.spline(q[0], x, force, derivative=-1)
    )
    formula = lv.System("x", kinetic=lambda v: 0.5 * v[0] ** 2, potential=lambda q: 1.5 * q[0] ** 2 + 1.25 * q[0] ** 4)
    run, exact = (lv.simulate(model, [0.8], [0.0], h=0.01, t_end=10.0) for model in (tables, formula))
    assert np.ptp(run["total_energy"]) < 1e-13
    assert np.abs(run.q - exact.q).max() < 1e-11


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: m.interp(0.5, [0, 1], [1, 2, 3]), "as many abscissae"),
        (lambda: m.interp(0.5, [0, 0, 1], [1, 2, 3]), "increasing"),
        (lambda: m.spline(0.5, [0, 1, 2], [1, np.nan, 3]), "finite"),
        (lambda: m.spline(0.5, [0, 1], [1, 2], method="quintic"), "method must be"),
        (lambda: m.interp(m.Scalar(ca.SX.sym("x")), np.arange(1000), np.arange(1000)), "lv.Schedule"),
    ],
)
def test_tables_that_are_none_are_refused(call, words):
    with pytest.raises(lv.InputError, match=words):
        call()
