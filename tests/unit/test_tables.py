"""Interpolation of tables: the functions of NumPy and SciPy for numbers and symbols, and exact energies."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from scipy.interpolate import CubicSpline, PchipInterpolator, RectBivariateSpline, RegularGridInterpolator

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
        (lambda: m.spline(m.Scalar(ca.SX.sym("x")), np.geomspace(1e-9, 1, 999), np.arange(999)), "resample"),
        (lambda: m.spline_2d(0.5, 0.5, [0, 1], [0, 1, 2], np.zeros((3, 2))), "as many abscissae"),
        (lambda: m.spline_2d(0.5, 0.5, [0, 1], [0, 1], np.zeros((2, 2)), method="nearest"), "'cubic' or 'linear'"),
    ],
)
def test_tables_that_are_none_are_refused(call, words):
    with pytest.raises(lv.InputError, match=words):
        call()


# -- long tables, which are looked up ---------------------------------------------------------------------------------
def _long_table(n):
    rng = np.random.default_rng(n)
    x = np.linspace(-1.3, 1.3, n)
    return x + 0.4 * (x[1] - x[0]) * rng.uniform(-1, 1, n)


@pytest.mark.parametrize("derivative", [-1, 0, 1, 2])
def test_long_tables_of_symbols_have_the_values_of_numbers(derivative):
    xp = _long_table(1000)
    at = np.concatenate([np.linspace(-1.6, 1.6, 401), xp, np.nextafter(xp, -9)])
    x = ca.SX.sym("x")
    value = m.to_casadi(m.spline(m.Scalar(x), xp, np.sin(3 * xp), derivative=derivative))
    f = ca.Function("f", [x], [value, ca.gradient(value, x)])
    exact = m.spline(at, xp, np.sin(3 * xp), derivative=derivative)
    values, slopes = (np.array(result).ravel() for result in f(at[None, :]))
    assert np.allclose(values, exact, rtol=1e-12, atol=1e-11)
    if derivative < 2:
        assert np.allclose(slopes, m.spline(at, xp, np.sin(3 * xp), derivative=derivative + 1), rtol=1e-9, atol=1e-8)


@pytest.mark.parametrize("scheme", ["livens-em", "gauss-3"])
def test_a_long_table_conserves_the_energy_and_has_the_motion_of_its_formula(scheme):
    x = _long_table(20_000)
    tables, formula = (
        lv.System("x", kinetic=lambda v: 0.5 * v[0] ** 2, potential=potential)
        for potential in (
            lambda q: m.spline(q[0], x, 3 * x + 5 * x**3, derivative=-1),
            lambda q: 1.5 * q[0] ** 2 + 1.25 * q[0] ** 4,
        )
    )
    run, exact = (lv.simulate(model, [0.8], [0.0], h=0.01, t_end=10.0, scheme=scheme) for model in (tables, formula))
    assert np.ptp(run["total_energy"]) < (1e-13 if scheme == "livens-em" else 1e-9)
    assert np.abs(run.q - exact.q).max() < 1e-9


def test_long_tables_act_in_lanes_of_an_ensemble():
    x = _long_table(2000)
    model = lv.System("x", kinetic=lambda v: 0.5 * v[0] ** 2, potential=lambda q: m.spline(q[0], x, np.sin(x)))
    starts = np.linspace(-1.5, 1.5, 16)[:, None]
    together = lv.ensemble(model, q0=starts, v0=[0.0], h=0.01, t_end=1.0)
    for start, q in zip(starts, together.q, strict=True):
        assert np.allclose(lv.simulate(model, start, [0.0], h=0.01, t_end=1.0).q, q, atol=1e-12)


def test_a_table_of_two_variables_is_that_of_scipy_and_conserves_the_energy():
    x, y = np.sort(np.random.default_rng(3).uniform(-1.5, 1.5, 30)), np.linspace(-2, 2, 41)
    grid = x[:, None] ** 2 + y**2 + 0.3 * np.sin(3 * x[:, None] * y)
    a, b = np.linspace(-1.3, 1.3, 50), np.linspace(-1.8, 1.9, 50)
    peer = RectBivariateSpline(x, y, grid)
    for dx, dy in ((0, 0), (1, 0), (0, 1), (1, 1), (2, 0)):
        values = m.spline_2d(a, b, x, y, grid, derivative=(dx, dy))
        assert np.allclose(values, peer.ev(a, b, dx=dx, dy=dy), rtol=1e-10, atol=1e-10)
    linear = RegularGridInterpolator((x, y), grid)(np.column_stack([a, b]))
    assert np.allclose(m.spline_2d(a, b, x, y, grid, method="linear"), linear, atol=1e-13)
    assert m.spline_2d(9.0, 0.3, x, y, grid) == pytest.approx(m.spline_2d(x[-1], 0.3, x, y, grid), abs=1e-15)
    q = ca.SX.sym("q", 2)
    value = m.to_casadi(m.spline_2d(m.Scalar(q[0]), m.Scalar(q[1]), x, y, grid))
    f = ca.Function("f", [q], [value, ca.gradient(value, q)])
    values, slopes = f(np.array([a, b]))
    assert np.allclose(np.array(values).ravel(), peer.ev(a, b), atol=1e-12)
    assert np.allclose(np.array(slopes)[1], peer.ev(a, b, dy=1), atol=1e-10)
    hill = lv.System("x y", kinetic=lambda v: 0.5 * (v @ v), potential=lambda q: m.spline_2d(*q, x, y, grid))
    run = lv.simulate(hill, [0.8, 0.2], [0.0, 0.3], h=0.01, t_end=20.0)
    assert np.ptp(run["total_energy"]) < 1e-12 and np.ptp(run.q[:, 0]) > 0.5


def test_a_road_of_a_long_table_is_driven_on_and_drawn(tmp_path):
    way = np.linspace(0, 20, 2001)
    exact, table = ({}, {})
    for result, height in ((exact, lambda s: 0.02 * m.sin(s)), (table, lambda s: m.spline(s, way, 0.02 * np.sin(way)))):
        car = lv.Multibody(gravity=[0, 0, -9.81])
        wheel = car.particle("wheel", at=[0, 0, 0.3], mass=20.0)
        road = car.marker("road", position=lambda t, height=height: [0, 0, height(10 * t)])
        car.spring("tyre", road, wheel, stiffness=1e4, free_length=0.3)
        result["run"] = car.simulate(t_end=0.5, h=1e-3)
    assert np.abs(table["run"]["wheel.position"] - exact["run"]["wheel.position"]).max() < 1e-8
    table["run"].animate(tmp_path / "road.html")
    assert (tmp_path / "road.html").stat().st_size > 1000
