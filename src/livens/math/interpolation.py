"""Interpolation of tables: piecewise linear functions, splines, and bicubic surfaces."""

from __future__ import annotations

import functools
from typing import Any

import casadi as ca
import numpy as np

from livens.errors import InputError
from livens.lookup_tables import interval_index, lookup
from livens.math.scalar import Scalar, clip, scalar_to_sx

#: Largest number of points of a table of a symbol that is a tree of conditions; longer tables are looked up.
_MAX_TREE_POINTS = 256


def interp(x: object, xp: object, fp: object, left: object = None, right: object = None) -> Any:
    """Return the linear interpolation of a table; `numpy.interp` of Scalars is this function.

    Parameters
    ----------
    x : float, Scalar or array_like
        Values to interpolate at.
    xp, fp : array_like of shape (n,)
        Increasing abscissae and ordinates of the table.
    left, right : float, optional
        Values before the first and after the last abscissa; by default the first and the last ordinate.

    Returns
    -------
    float, Scalar or numpy.ndarray
        Interpolated values.

    Examples
    --------
    >>> interp([0.5, 3.0], [0, 1, 2], [0.0, 10.0, 40.0])
    array([ 5., 40.])
    """
    abscissae, ordinates = _table(xp, fp, 2)
    ends = (ordinates[0] if left is None else left, ordinates[-1] if right is None else right)
    gradients = np.diff(ordinates) / np.diff(abscissae)
    pieces = np.vstack([gradients, ordinates[:-1]])
    return _piecewise_polynomial(x, abscissae, pieces, *([[value] for value in ends]))


def spline(x: object, xp: object, fp: object, *, method: str = "cubic", derivative: int = 0) -> Any:
    """Return the spline interpolation of a table, its derivatives or its antiderivative.

    Before the first and after the last point the spline is a straight line. As a potential, the antiderivative of a
    measured force conserves the energy exactly.

    Parameters
    ----------
    x : float, Scalar or array_like
        Values to interpolate at.
    xp, fp : array_like of shape (n,)
        Increasing abscissae and ordinates of the table.
    method : {"cubic", "monotone", "linear"}, default "cubic"
        Not-a-knot cubic spline, monotone cubic interpolation (PCHIP), or linear interpolation.
    derivative : int, default 0
        Order of the derivative from 0 to 2; -1 is the antiderivative that vanishes at the first point.

    Returns
    -------
    float, Scalar or numpy.ndarray
        Interpolated values.

    Raises
    ------
    InputError
        If the table is no table of increasing abscissae, or an option is unknown.

    Examples
    --------
    >>> round(float(spline(1.5, [0, 1, 2, 3], [0.0, 1.0, 8.0, 27.0])), 12)
    3.375
    >>> float(spline(2.0, [0, 1, 2, 3], [0.0, 1.0, 8.0, 27.0], derivative=-1))
    4.0
    """
    from scipy.interpolate import CubicSpline, PchipInterpolator

    abscissae, ordinates = _table(xp, fp, 2)
    if method not in ("cubic", "monotone", "linear") or derivative not in (-1, 0, 1, 2):
        raise InputError(
            f"method must be 'cubic', 'monotone' or 'linear' and derivative -1 to 2, got {method!r}, {derivative!r}"
        )
    if method == "linear" or len(abscissae) == 2:
        pieces = np.vstack([np.diff(ordinates) / np.diff(abscissae), ordinates[:-1]])
    else:
        pieces = (CubicSpline if method == "cubic" else PchipInterpolator)(abscissae, ordinates).c
    widths = np.diff(abscissae)
    slope_end = np.polyval(np.polyder(pieces[:, -1]), widths[-1])
    left, right = np.array([pieces[-2, 0], ordinates[0]]), np.array([slope_end, ordinates[-1]])
    for _ in range(derivative):
        pieces = np.array([np.polyder(column) for column in pieces.T]).T
        left, right = np.polyder(left), np.polyder(right)
    if derivative < 0:
        pieces = np.array([np.polyint(column) for column in pieces.T]).T
        areas = [np.polyval(column, width) for column, width in zip(pieces.T, widths, strict=True)]
        pieces[-1] = np.concatenate([[0.0], np.cumsum(areas)[:-1]])
        left, right = np.polyint(left), np.polyint(right, k=np.sum(areas))
    return _piecewise_polynomial(x, abscissae, pieces, left, right)


def spline_2d(
    x: object,
    y: object,
    xp: object,
    yp: object,
    fp: object,
    *,
    method: str = "cubic",
    derivative: tuple[int, int] = (0, 0),
) -> Any:
    """Return the bicubic or bilinear interpolation of a table of two variables, or its derivatives.

    Outside the table the value at its nearest edge is constant.

    Parameters
    ----------
    x, y : float, Scalar or array_like
        Values to interpolate at.
    xp : array_like of shape (n,)
        Increasing first abscissae.
    yp : array_like of shape (m,)
        Increasing second abscissae.
    fp : array_like of shape (n, m)
        Ordinates.
    method : {"cubic", "linear"}, default "cubic"
        Product of not-a-knot cubic splines, or bilinear interpolation.
    derivative : tuple of int, default (0, 0)
        Orders of the derivatives in x and y, from 0 to 2.

    Returns
    -------
    float, Scalar or numpy.ndarray
        Interpolated values.

    Raises
    ------
    InputError
        If the table is no table of increasing abscissae, or an option is unknown.

    Examples
    --------
    >>> x, y = [0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 2.0, 3.0, 4.0]
    >>> round(float(spline_2d(1.5, 2.5, x, y, [[a**2 * b for b in y] for a in x])), 12)
    5.625
    """
    from scipy.interpolate import CubicSpline

    try:
        table = np.asarray(fp, dtype=float)
    except (TypeError, ValueError):
        raise InputError("a table must be an array of numbers") from None
    if table.ndim != 2 or not np.isfinite(table).all():
        raise InputError(f"a table of two variables must be a matrix of finite numbers, got shape {table.shape}")
    axes = [_table(values, np.zeros(n), 2)[0] for values, n in zip((xp, yp), table.shape, strict=True)]
    if method not in ("cubic", "linear") or len(derivative) != 2 or not set(derivative) <= {0, 1, 2}:
        raise InputError(f"method must be 'cubic' or 'linear' and derivatives 0 to 2, got {method!r}, {derivative!r}")
    pieces = table  # of shape (power of y, interval of y, n), then (power of x, interval of x, power of y, interval)
    for axis, breaks in ((1, axes[1]), (2, axes[0])):
        if method == "cubic":
            pieces = CubicSpline(breaks, pieces, axis=axis).c
        else:
            ends = np.moveaxis(pieces, axis, 0)
            widths = np.diff(breaks).reshape(-1, *[1] * (ends.ndim - 1))
            pieces = np.stack([np.diff(ends, axis=0) / widths, ends[:-1]])
    n_powers = pieces.shape[0], pieces.shape[2]
    rows = np.ascontiguousarray(pieces.transpose(1, 3, 0, 2)).reshape(-1)

    def value(u: object, w: object) -> Any:
        is_symbolic = isinstance(u, Scalar) or isinstance(w, Scalar)
        intervals, offsets = [], []
        for breaks, at in zip(axes, (u, w), strict=True):
            inside = clip(at, breaks[0], breaks[-1])
            inner = breaks[1:-1]  # ends belong to the first and last interval
            if is_symbolic:
                number = interval_index(scalar_to_sx(inside), inner) if inner.size > 1 else ca.SX(0.0)
                number = scalar_to_sx(inside) >= inner[0] if inner.size == 1 else number
                intervals.append(number)
                offsets.append(inside - Scalar(lookup(breaks, number)))
            else:
                number = np.searchsorted(inner, inside, side="right")
                intervals.append(number)
                offsets.append(inside - breaks[number])
        first = (intervals[0] * (len(axes[1]) - 1) + intervals[1]) * (n_powers[0] * n_powers[1])
        coefficients = [
            [
                Scalar(lookup(rows, first + (i * n_powers[1] + j)))
                if is_symbolic
                else rows[first + i * n_powers[1] + j]
                for j in range(n_powers[1])
            ]
            for i in range(n_powers[0])
        ]
        return _horner([_horner(row, offsets[1], derivative[1]) for row in coefficients], offsets[0], derivative[0])

    at = np.asarray(x), np.asarray(y)
    if at[0].ndim == at[1].ndim == 0:
        return value(x, y)
    values = np.frompyfunc(value, 2, 1)(*at)
    return values if any(argument.dtype == object for argument in at) else values.astype(float)


def _horner(coefficients: list[Any], offset: Any, order: int) -> Any:
    """Return a polynomial with coefficients in descending order, or its derivative."""
    for _ in range(order):
        coefficients = [(len(coefficients) - 1 - i) * c for i, c in enumerate(coefficients[:-1])] or [0.0]
    return functools.reduce(lambda value, coefficient: value * offset + coefficient, coefficients)


def _table(xp: object, fp: object, n_least: int) -> tuple[np.ndarray, np.ndarray]:
    """Return abscissae and ordinates of a table as arrays."""
    try:
        abscissae, ordinates = np.asarray(xp, dtype=float), np.asarray(fp, dtype=float)
    except (TypeError, ValueError):
        raise InputError("a table must be two arrays of numbers") from None
    if abscissae.ndim != 1 or abscissae.shape != ordinates.shape or abscissae.size < n_least:
        raise InputError(
            f"a table needs as many abscissae as ordinates, at least {n_least}; got arrays of shape {abscissae.shape} "
            f"and {ordinates.shape}"
        )
    if not (np.isfinite(abscissae).all() and np.isfinite(ordinates).all() and (np.diff(abscissae) > 0).all()):
        raise InputError("a table needs finite numbers with increasing abscissae")
    return abscissae, ordinates


def _piecewise_polynomial(x: object, breaks: np.ndarray, pieces: np.ndarray, left: object, right: object) -> Any:
    """Return a piecewise polynomial; coefficients are in descending order, relative to the left end of each interval.

    `left` and `right` are the polynomials before the first break (relative to it) and after the last break.
    """
    columns = [left, *np.asarray(pieces).T, right]
    size = max(len(column) for column in columns)
    coefficients = np.array([[*[0.0] * (size - len(column)), *column] for column in columns], dtype=float)
    origins = np.concatenate([breaks[:1], breaks])
    breaks = np.append(breaks[:-1], np.nextafter(breaks[-1], np.inf))  # the last point belongs to the table

    def symbolic(u: object) -> Any:
        table = np.column_stack([origins, coefficients])
        if breaks.size > _MAX_TREE_POINTS:
            first = interval_index(scalar_to_sx(u), breaks) * (size + 1)
            rows = [lookup(table, first + j) for j in range(size + 1)]
        else:
            rows = _select_rows(scalar_to_sx(u), breaks, table)
        offset, value = scalar_to_sx(u) - rows[0], rows[1]
        for coefficient in rows[2:]:
            value = value * offset + coefficient
        return Scalar(value)

    def scalar(u: object) -> Any:
        return symbolic(u) if isinstance(u, Scalar) else numeric(np.asarray(u))

    def numeric(u: np.ndarray) -> Any:
        index = np.searchsorted(breaks, u, side="right")
        offset, value = u - origins[index], coefficients[index, 0]
        for j in range(1, size):
            value = value * offset + coefficients[index, j]
        return value

    if isinstance(x, Scalar):
        return symbolic(x)
    values = np.asarray(x)
    return np.frompyfunc(scalar, 1, 1)(values) if values.dtype == object else numeric(values.astype(float))


def _select_rows(u: object, breaks: np.ndarray, rows: np.ndarray) -> list[Any]:
    """Return the row of a table for the interval of u between the breaks, by a balanced tree of conditions."""
    if len(rows) == 1:
        return [ca.SX(value) for value in rows[0]]
    middle = len(rows) // 2
    condition = u < breaks[middle - 1]
    lower, upper = _select_rows(u, breaks[: middle - 1], rows[:middle]), _select_rows(u, breaks[middle:], rows[middle:])
    return [
        a if a.is_constant() and b.is_constant() and float(a) == float(b) else ca.if_else(condition, a, b)
        for a, b in zip(lower, upper, strict=True)
    ]
