"""Interpolants of SciPy as piecewise polynomials of symbols."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from livens.expressions.numpy_tracing.branches import TracingError
from livens.expressions.numpy_tracing.numpy_functions import (
    MAX_TABLE,
    Function,
    as_numbers,
    has_symbol,
    select_interval,
    where,
)

#: Kinds of `scipy.interpolate.interp1d` that are not splines.
_NOT_SPLINES = ("nearest", "nearest-up", "previous", "next", "linear", "zero")


def piecewise_polynomial(interpolant: object) -> Any:
    """Return a function of symbols for an interpolant of `scipy.interpolate`, or the value itself for other objects."""
    from scipy import interpolate

    if isinstance(interpolant, type) or not callable(interpolant):
        return interpolant
    polynomial = None
    if isinstance(interpolant, interpolate.PPoly):
        polynomial = interpolant
    elif isinstance(interpolant, interpolate.BSpline):
        polynomial = interpolate.PPoly.from_spline(interpolant)
    elif isinstance(interpolant, interpolate.UnivariateSpline):
        polynomial = interpolate.PPoly.from_spline(interpolant._eval_args)
    elif isinstance(interpolant, interpolate.interp1d) and interpolant.y.ndim == 1:
        if interpolant._kind == "linear":
            gradients = np.diff(interpolant.y) / np.diff(interpolant.x)
            polynomial = interpolate.PPoly(np.array([gradients, interpolant.y[:-1]]), interpolant.x)
        elif interpolant._kind not in _NOT_SPLINES:
            spline = interpolant._spline  # its coefficients are a column
            polynomial = interpolate.PPoly.from_spline(interpolate.BSpline(spline.t, spline.c.ravel(), spline.k))
    if polynomial is None or polynomial.c.ndim != 2 or getattr(polynomial, "extrapolate", True) == "periodic":
        return interpolant
    return _symbolic(interpolant, polynomial, _outside_values(interpolant))


def _outside_values(interpolant: object) -> tuple[Any, Any] | None:
    """Return the values below and above the table, or None for extrapolation."""
    from scipy import interpolate

    if isinstance(interpolant, interpolate.interp1d):
        if interpolant._extrapolate:
            return None
        if interpolant.bounds_error:
            return np.nan, np.nan
        return float(interpolant._fill_value_below), float(interpolant._fill_value_above)
    return None if getattr(interpolant, "extrapolate", True) else (np.nan, np.nan)


def _symbolic(interpolant: Any, polynomial: Any, outside: tuple[Any, Any] | None) -> Function:
    is_interval = np.diff(polynomial.x) > 0
    starts, coefficients = polynomial.x[:-1][is_interval], polynomial.c[:, is_interval]
    derivative_views: dict[int, Function] = {}

    def piece(i: int) -> Function:
        return lambda u: functools.reduce(
            lambda value, coefficient: value * (u - starts[i]) + coefficient, coefficients[1:, i], coefficients[0, i]
        )

    def evaluate(x: Any, nu: int = 0, *arguments: object, **named: object) -> Any:
        if not has_symbol(x):
            return interpolant(as_numbers(x), *((nu, *arguments) if nu or arguments else ()), **named)
        if nu:
            if nu not in derivative_views:
                derivative_views[nu] = _symbolic(interpolant, polynomial.derivative(nu), outside)
            return derivative_views[nu](x)
        if len(starts) > MAX_TABLE:
            raise TracingError(
                f"an interpolant of {len(starts)} intervals cannot be traced (at most {MAX_TABLE}): use m.spline"
            )
        pieces = [piece(i) for i in range(len(starts))]
        if outside is None:
            return np.frompyfunc(lambda u: select_interval(u, list(starts[1:]), pieces), 1, 1)(x)
        below, above = outside

        def bounded(u: Any) -> Any:
            inside = where(u <= polynomial.x[-1], select_interval(u, list(starts[1:]), pieces), above)
            return where(u >= polynomial.x[0], inside, below)

        return np.frompyfunc(bounded, 1, 1)(x)

    return evaluate
