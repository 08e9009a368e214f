"""Mathematical functions for models. They accept symbols, numbers and arrays.

>>> from livens import math as m
>>> float(m.sin(m.pi / 2))
1.0
>>> float(m.norm([3.0, 4.0]))
5.0

A model function receives NumPy arrays of symbols, so slices, loops, ``@``, ``np.dot``, ``np.cross``, broadcasting and
helper functions work as usual. Where a model function branches on a symbol (``if x[0] > 0:``), every path is traced,
and the paths are joined by ``m.where(condition, a, b)``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import casadi as ca
import numpy as np

from livens.errors import InputError
from livens.lookup_tables import interval_index, lookup

pi: float = float(np.pi)
#: Decision of a branch on a symbolic condition. Set while all branches of a function are traced; else None.
branch_decision: ContextVar[Callable[[Any], bool] | None] = ContextVar("branch_decision", default=None)


class Scalar:
    """Symbolic scalar: a symbol, or an expression of symbols.

    Parameters
    ----------
    sx : casadi.SX
        Scalar CasADi expression.
    """

    __slots__ = ("sx",)

    def __init__(self, sx: Any) -> None:
        self.sx = sx

    # -- arithmetic -------------------------------------------------------------------------------------------------
    def __add__(self, other: object) -> Any:
        return _apply_binary(self, other, ca.OP_ADD)

    def __radd__(self, other: object) -> Any:
        return _apply_binary(other, self, ca.OP_ADD)

    def __sub__(self, other: object) -> Any:
        return _apply_binary(self, other, ca.OP_SUB)

    def __rsub__(self, other: object) -> Any:
        return _apply_binary(other, self, ca.OP_SUB)

    def __mul__(self, other: object) -> Any:
        return _apply_binary(self, other, ca.OP_MUL)

    def __rmul__(self, other: object) -> Any:
        return _apply_binary(other, self, ca.OP_MUL)

    def __truediv__(self, other: object) -> Any:
        return _apply_binary(self, other, ca.OP_DIV)

    def __rtruediv__(self, other: object) -> Any:
        return _apply_binary(other, self, ca.OP_DIV)

    def __pow__(self, other: object) -> Any:
        return _apply_binary(self, other, ca.OP_POW)

    def __rpow__(self, other: object) -> Any:
        return _apply_binary(other, self, ca.OP_POW)

    def __mod__(self, other: object) -> Any:
        return _modulo(self, other)

    def __rmod__(self, other: object) -> Any:
        return _modulo(other, self)

    def __neg__(self) -> Scalar:
        return Scalar(_unary_op(ca.OP_NEG, self.sx))

    def __pos__(self) -> Scalar:
        return self

    def clip(self, low: object = None, high: object = None, out: object = None) -> Any:
        """Clip the value to an interval. ``np.clip(x, low, high)`` calls this method.

        Parameters
        ----------
        low, high : scalar or Scalar, optional
            Lower and upper bound. None means no bound.
        out : None, optional
            Ignored; part of NumPy's signature.

        Returns
        -------
        Scalar
            The clipped value.
        """
        return clip(self, low, high)

    def __abs__(self) -> Scalar:
        return Scalar(_unary_op(ca.OP_FABS, self.sx))

    # -- comparisons return 0 or 1, to be used in `where` -------------------------------------------------------------
    def __lt__(self, other: object) -> Any:
        return _apply_binary(self, other, ca.OP_LT)

    def __le__(self, other: object) -> Any:
        return _apply_binary(self, other, ca.OP_LE)

    def __gt__(self, other: object) -> Any:
        return _apply_binary(other, self, ca.OP_LT)

    def __ge__(self, other: object) -> Any:
        return _apply_binary(other, self, ca.OP_LE)

    def __eq__(self, other: object) -> Any:
        return _apply_binary(self, other, ca.OP_EQ)

    def __ne__(self, other: object) -> Any:
        return _apply_binary(self, other, ca.OP_NE)

    def __and__(self, other: object) -> Any:
        return _apply_binary(self, other, ca.OP_AND)

    def __or__(self, other: object) -> Any:
        return _apply_binary(self, other, ca.OP_OR)

    __rand__, __ror__ = __and__, __or__

    def __invert__(self) -> Scalar:
        return Scalar(_unary_op(ca.OP_NOT, self.sx))

    __hash__ = None  # type: ignore[assignment]

    def __array_function__(self, function: Any, types: object, arguments: Any, named: Any) -> Any:
        """Return `interp` for `numpy.interp`; other functions of NumPy treat Scalars as objects."""
        if function is np.interp:
            return interp(*arguments, **named)
        return function._implementation(*arguments, **named)

    def __bool__(self) -> bool:
        if self.sx.is_constant():
            return bool(float(self.sx))
        decide = branch_decision.get()
        if decide is not None:
            return decide(self.sx)
        raise TypeError(
            f"a model cannot branch on the symbol {self.sx}: it has no value yet; "
            "use livens.math.where, maximum, minimum or abs"
        )

    def __float__(self) -> float:
        if self.sx.is_constant():
            return float(self.sx)
        raise TypeError(f"the symbol {self.sx} has no value yet; use the functions of livens.math instead of math's")

    def __repr__(self) -> str:
        return str(self.sx)


def _unwrap(value: object) -> Any:
    return value.sx if isinstance(value, Scalar) else value


# CasADi operations by their codes: the overload resolution of ``ca.plus(a, b)`` takes ten times as long
_unary_op, _binary_op = ca.SX.unary, ca.SX.binary


def _apply_binary(a: object, b: object, operation: int) -> Any:
    lhs = a.sx if isinstance(a, Scalar) else _as_operand(a)
    rhs = b.sx if isinstance(b, Scalar) else _as_operand(b)
    if lhs is None or rhs is None:
        return NotImplemented  # NumPy broadcasts the operation over the items of an array
    return Scalar(_binary_op(operation, lhs, rhs))


def _as_operand(value: object) -> Any:
    """Return a number as an SX operand, or None if the value is not a number."""
    if not isinstance(value, (int, float, np.integer, np.floating, np.bool_)):
        return None
    return _cached_constant(float(value)) if value else ca.SX(float(value))  # 0.0 == -0.0 would share one cache entry


@functools.lru_cache(maxsize=1024)
def _cached_constant(value: float) -> Any:
    return ca.SX(value)


def _sx(value: Any) -> Any:
    return value.sx if isinstance(value, Scalar) else ca.SX(float(value))


def _modulo(a: object, b: object) -> Any:
    """Return Python's modulo: the result has the sign of the divisor."""
    quotient = _apply_binary(a, b, ca.OP_DIV)
    return quotient if quotient is NotImplemented else a - b * Scalar(_unary_op(ca.OP_FLOOR, quotient.sx))


def _op(operation: int) -> Callable[..., Any]:
    """Return a CasADi operation as a function of one or two expressions."""
    return lambda *operands: _unary_op(operation, *operands) if len(operands) == 1 else _binary_op(operation, *operands)


def _elementwise(
    operation: Any, numeric: Callable[..., Any], name: str, doc: str, example: str, value: float
) -> Callable[..., Any]:
    """Return an element-wise function from a CasADi operation (or its code) and the NumPy function.

    `name` is NumPy's name of the function; `example` is a call in the doctest and `value` its result.
    """
    symbolic = operation if callable(operation) else _op(operation)

    def scalar(*arguments: Any) -> Any:
        if any(isinstance(a, Scalar) for a in arguments):
            return Scalar(symbolic(*map(_sx, arguments)))
        return numeric(*arguments)

    def function(*arguments: Any) -> Any:
        arrays = [a if isinstance(a, Scalar) else np.asarray(a) for a in arguments]
        if any(isinstance(a, Scalar) or a.dtype == object for a in arrays):
            return np.frompyfunc(scalar, len(arguments), 1)(*arguments)
        return numeric(*arguments)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"{doc}\n\n    Parameters\n    ----------\n    *arguments : float, Scalar or array_like\n"
        "        Operands, broadcast against each other.\n\n    Returns\n    -------\n"
        "    float, Scalar or numpy.ndarray\n"
        f"        Element-wise result.\n\n    Examples\n    --------\n    >>> float({example})\n    {value}\n    "
    )
    # NumPy calls a method of this name for arrays of Scalars, so that np.sin(q) works too.
    if name != "where":
        setattr(Scalar, name, lambda *operands: Scalar(symbolic(*map(_sx, operands))))
    return function


sin = _elementwise(ca.OP_SIN, np.sin, "sin", "Return the sine.", "sin(pi / 2)", 1.0)
cos = _elementwise(ca.OP_COS, np.cos, "cos", "Return the cosine.", "cos(0)", 1.0)
tan = _elementwise(ca.OP_TAN, np.tan, "tan", "Return the tangent.", "tan(0)", 0.0)
asin = _elementwise(ca.OP_ASIN, np.arcsin, "arcsin", "Return the inverse sine.", "asin(1)", 1.5707963267948966)
acos = _elementwise(ca.OP_ACOS, np.arccos, "arccos", "Return the inverse cosine.", "acos(1)", 0.0)
atan = _elementwise(ca.OP_ATAN, np.arctan, "arctan", "Return the inverse tangent.", "atan(0)", 0.0)
atan2 = _elementwise(ca.OP_ATAN2, np.arctan2, "arctan2", "Return the angle of (x, y).", "atan2(0, 1)", 0.0)
sinh = _elementwise(ca.OP_SINH, np.sinh, "sinh", "Return the hyperbolic sine.", "sinh(0)", 0.0)
cosh = _elementwise(ca.OP_COSH, np.cosh, "cosh", "Return the hyperbolic cosine.", "cosh(0)", 1.0)
tanh = _elementwise(ca.OP_TANH, np.tanh, "tanh", "Return the hyperbolic tangent.", "tanh(0)", 0.0)
asinh = _elementwise(ca.OP_ASINH, np.arcsinh, "arcsinh", "Return the inverse hyperbolic sine.", "asinh(0)", 0.0)
acosh = _elementwise(ca.OP_ACOSH, np.arccosh, "arccosh", "Return the inverse hyperbolic cosine.", "acosh(1)", 0.0)
atanh = _elementwise(ca.OP_ATANH, np.arctanh, "arctanh", "Return the inverse hyperbolic tangent.", "atanh(0)", 0.0)
exp = _elementwise(ca.OP_EXP, np.exp, "exp", "Return the exponential.", "exp(0)", 1.0)
log = _elementwise(ca.OP_LOG, np.log, "log", "Return the natural logarithm.", "log(1)", 0.0)
expm1 = _elementwise(ca.OP_EXPM1, np.expm1, "expm1", "Return ``exp(x) - 1`` accurately.", "expm1(1e-20)", 1e-20)
log1p = _elementwise(ca.OP_LOG1P, np.log1p, "log1p", "Return ``log(1 + x)`` accurately.", "log1p(1e-20)", 1e-20)
sqrt = _elementwise(ca.OP_SQRT, np.sqrt, "sqrt", "Return the square root.", "sqrt(9)", 3.0)
hypot = _elementwise(ca.OP_HYPOT, np.hypot, "hypot", "Return ``sqrt(x^2 + y^2)``.", "hypot(3, 4)", 5.0)
abs = _elementwise(ca.OP_FABS, np.abs, "abs", "Return the absolute value.", "abs(-2)", 2.0)
sign = _elementwise(ca.OP_SIGN, np.sign, "sign", "Return the sign: -1, 0 or 1.", "sign(-2)", -1.0)
floor = _elementwise(ca.OP_FLOOR, np.floor, "floor", "Return the value rounded down.", "floor(1.5)", 1.0)
ceil = _elementwise(ca.OP_CEIL, np.ceil, "ceil", "Return the value rounded up.", "ceil(1.5)", 2.0)
minimum = _elementwise(ca.OP_FMIN, np.minimum, "minimum", "Return the smaller value.", "minimum(1, 2)", 1.0)
maximum = _elementwise(ca.OP_FMAX, np.maximum, "maximum", "Return the larger value.", "maximum(1, 2)", 2.0)
where = _elementwise(
    ca.if_else,
    np.where,
    "where",
    "Return a where the condition holds, else b: ``where(condition, a, b)``.",
    "where(True, 1, 2)",
    1.0,
)


def clip(x: object, low: object = None, high: object = None) -> Any:
    """Clip values to an interval.

    Parameters
    ----------
    x : float, Scalar or array_like
        Values.
    low, high : float, Scalar or array_like, optional
        Lower and upper bound. None means no bound.

    Returns
    -------
    float, Scalar or numpy.ndarray
        The clipped values.

    Examples
    --------
    >>> clip([-2.0, 0.5, 3.0], 0, 1)
    array([0. , 0.5, 1. ])
    """
    bounded_below = x if low is None else maximum(x, low)
    return bounded_below if high is None else minimum(bounded_below, high)


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

    def value(u: Any, w: Any) -> Any:
        is_symbolic = isinstance(u, Scalar) or isinstance(w, Scalar)
        intervals, offsets = [], []
        for breaks, at in zip(axes, (u, w), strict=True):
            inside = clip(at, breaks[0], breaks[-1])
            inner = breaks[1:-1]  # ends belong to the first and last interval
            if is_symbolic:
                number = interval_index(_sx(inside), inner) if inner.size > 1 else ca.SX(0.0)
                number = _sx(inside) >= inner[0] if inner.size == 1 else number
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


def _piecewise_polynomial(x: object, breaks: np.ndarray, pieces: np.ndarray, left: Any, right: Any) -> Any:
    """Return a piecewise polynomial; coefficients are in descending order, relative to the left end of each interval.

    `left` and `right` are the polynomials before the first break (relative to it) and after the last break.
    """
    columns = [left, *np.asarray(pieces).T, right]
    size = max(len(column) for column in columns)
    coefficients = np.array([[*[0.0] * (size - len(column)), *column] for column in columns], dtype=float)
    origins = np.concatenate([breaks[:1], breaks])
    breaks = np.append(breaks[:-1], np.nextafter(breaks[-1], np.inf))  # the last point belongs to the table

    def symbolic(u: Any) -> Any:
        table = np.column_stack([origins, coefficients])
        if breaks.size > _MAX_TREE_POINTS:
            first = interval_index(_sx(u), breaks) * (size + 1)
            rows = [lookup(table, first + j) for j in range(size + 1)]
        else:
            rows = _select_rows(_sx(u), breaks, table)
        offset, value = _sx(u) - rows[0], rows[1]
        for coefficient in rows[2:]:
            value = value * offset + coefficient
        return Scalar(value)

    def scalar(u: Any) -> Any:
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


def _select_rows(u: Any, breaks: np.ndarray, rows: np.ndarray) -> list[Any]:
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


def sum(items: object, axis: int | None = None) -> Any:
    """Return the sum of all items, or the sums along one axis of an array.

    Parameters
    ----------
    items : array_like or iterator
        Numbers or Scalars.
    axis : int, optional
        Axis of summation. Default: all axes.

    Returns
    -------
    float, Scalar or numpy.ndarray
        The sum.

    Examples
    --------
    >>> float(sum([1.0, 2.0, 3.0]))
    6.0
    >>> sum([[1.0, 2.0], [3.0, 4.0]], axis=0)
    array([4., 6.])
    """
    return np.sum(array(list(items) if isinstance(items, Iterator) else items), axis=axis)


def dot(a: object, b: object) -> Any:
    """Return the inner product of two vectors.

    Parameters
    ----------
    a, b : array_like of shape (n,)
        Vectors of equal length.

    Returns
    -------
    float or Scalar
        The inner product.

    Raises
    ------
    ValueError
        If the arguments are not vectors of equal length.

    Examples
    --------
    >>> float(dot([1.0, 2.0], [3.0, 4.0]))
    11.0
    """
    lhs, rhs = np.asarray(a), np.asarray(b)
    if lhs.shape != rhs.shape or lhs.ndim != 1:
        raise ValueError(f"dot needs two vectors of one length, got shapes {lhs.shape} and {rhs.shape}")
    return np.dot(lhs, rhs)


def norm(a: object) -> Any:
    """Return the Euclidean norm of a vector.

    Parameters
    ----------
    a : array_like of shape (n,)
        Vector.

    Returns
    -------
    float or Scalar
        The norm.

    Examples
    --------
    >>> float(norm([3.0, 4.0]))
    5.0
    """
    return sqrt(dot(a, a))


def cross(a: object, b: object) -> Any:
    """Return the cross product of two vectors in space, or its scalar value in the plane.

    Parameters
    ----------
    a, b : array_like of shape (3,) or (2,)
        Vectors of equal length.

    Returns
    -------
    numpy.ndarray of shape (3,), float or Scalar
        The cross product; a scalar for vectors in the plane.

    Raises
    ------
    ValueError
        If the arguments are not two vectors of length 2 or 3.

    Examples
    --------
    >>> cross([1, 0, 0], [0, 1, 0])
    array([0., 0., 1.])
    """
    lhs, rhs = np.asarray(a), np.asarray(b)
    if lhs.shape == rhs.shape == (2,):
        return lhs[0] * rhs[1] - lhs[1] * rhs[0]
    if lhs.shape == rhs.shape == (3,):
        components = [lhs[i - 2] * rhs[i - 1] - lhs[i - 1] * rhs[i - 2] for i in range(3)]
        return array(components)
    raise ValueError(f"cross needs two vectors of length 2 or 3, got shapes {lhs.shape} and {rhs.shape}")


def outer(a: object, b: object) -> np.ndarray:
    """Return the outer product of two vectors: the matrix of all products ``a_i b_j``.

    Parameters
    ----------
    a, b : array_like
        Vectors of length m and n.

    Returns
    -------
    numpy.ndarray of shape (m, n)
        The outer product.

    Examples
    --------
    >>> outer([1.0, 2.0], [3.0, 4.0])
    array([[3., 4.],
           [6., 8.]])
    """
    return np.outer(array(a), array(b))


def diag(items: object) -> np.ndarray:
    """Return the diagonal matrix of a vector, or the diagonal of a matrix.

    Parameters
    ----------
    items : array_like of shape (n,) or (n, n)
        Vector or matrix.

    Returns
    -------
    numpy.ndarray
        Matrix of shape (n, n) or vector of shape (n,).

    Raises
    ------
    ValueError
        If `items` is not a vector or a matrix.

    Examples
    --------
    >>> diag([1.0, 2.0])
    array([[1., 0.],
           [0., 2.]])
    >>> diag([[1.0, 5.0], [6.0, 2.0]])
    array([1., 2.])
    """
    values = array(items)
    if values.ndim not in (1, 2):
        raise ValueError(f"diag needs a vector or a matrix, got an array of shape {values.shape}")
    return np.diag(values)


def zeros(shape: int | tuple[int, ...]) -> np.ndarray:
    """Return an array of zeros that can store numbers and symbols.

    Parameters
    ----------
    shape : int or tuple of int
        Shape of the array.

    Returns
    -------
    numpy.ndarray
        Array of zeros with dtype object. The arrays of ``numpy.zeros`` store numbers only.

    Examples
    --------
    >>> A = zeros((2, 2))
    >>> A[0, 1] = Scalar(ca.SX.sym("x"))
    >>> A
    array([[0.0, x],
           [0.0, 0.0]], dtype=object)
    """
    return np.full(shape, 0.0, dtype=object)


def ones(shape: int | tuple[int, ...]) -> np.ndarray:
    """Return an array of ones that can store numbers and symbols.

    Parameters
    ----------
    shape : int or tuple of int
        Shape of the array.

    Returns
    -------
    numpy.ndarray
        Array of ones with dtype object.

    Examples
    --------
    >>> ones(2)
    array([1.0, 1.0], dtype=object)
    """
    return np.full(shape, 1.0, dtype=object)


def eye(n: int) -> np.ndarray:
    """Return the identity matrix as an array that can store numbers and symbols.

    Parameters
    ----------
    n : int
        Number of rows and columns.

    Returns
    -------
    numpy.ndarray of shape (n, n)
        Identity matrix with dtype object.

    Examples
    --------
    >>> eye(2)
    array([[1.0, 0.0],
           [0.0, 1.0]], dtype=object)
    """
    return np.eye(n).astype(object)


def stack(items: Any, axis: int = 0) -> np.ndarray:
    """Stack arrays of equal shape along a new axis.

    Parameters
    ----------
    items : sequence of array_like
        Arrays of equal shape.
    axis : int, default 0
        Index of the new axis.

    Returns
    -------
    numpy.ndarray
        The stacked array.

    Examples
    --------
    >>> stack([[1.0, 2.0], [3.0, 4.0]], axis=1)
    array([[1., 3.],
           [2., 4.]])
    """
    return np.stack([array(item) for item in items], axis=axis)


def concatenate(items: Any, axis: int = 0) -> np.ndarray:
    """Concatenate arrays along an existing axis.

    Parameters
    ----------
    items : sequence of array_like
        Arrays whose shapes are equal except along `axis`.
    axis : int, default 0
        Axis of concatenation.

    Returns
    -------
    numpy.ndarray
        The concatenated array.

    Examples
    --------
    >>> concatenate([[1.0, 2.0], [3.0]])
    array([1., 2., 3.])
    """
    return np.concatenate([array(item) for item in items], axis=axis)


def array(items: object) -> np.ndarray:
    """Return an array of numbers, symbols or nested lists of them.

    Parameters
    ----------
    items : array_like
        Numbers, Scalars or nested lists of them.

    Returns
    -------
    numpy.ndarray
        Array with dtype object if it contains a Scalar, else dtype float.

    Examples
    --------
    >>> array([[1, 2], [3, 4]])
    array([[1., 2.],
           [3., 4.]])
    """
    return np.array(items, dtype=object) if _has_symbol(items) else np.asarray(items, dtype=float)


def _has_symbol(items: object) -> bool:
    if isinstance(items, np.ndarray):
        return items.dtype == object
    if isinstance(items, (list, tuple)):
        return any(_has_symbol(item) for item in items)
    return isinstance(items, Scalar)


def from_casadi(vector: Any) -> np.ndarray:
    """Return a CasADi column vector as an array of Scalars.

    Parameters
    ----------
    vector : casadi.SX
        Column vector of n entries.

    Returns
    -------
    numpy.ndarray of shape (n,)
        Array of Scalars.

    Examples
    --------
    >>> from_casadi(ca.SX.sym("q", 2))
    array([q_0, q_1], dtype=object)
    """
    elements = vector.elements()
    result = np.empty(len(elements), dtype=object)
    for i, element in enumerate(elements):
        result[i] = Scalar(element)
    return result


def to_casadi(value: object) -> Any:
    """Return a Scalar, a number, or an array of them as a CasADi matrix.

    Parameters
    ----------
    value : float, Scalar or array_like
        Scalar, vector or matrix.

    Returns
    -------
    casadi.SX
        Expression; vectors become columns.

    Examples
    --------
    >>> to_casadi([1.0, Scalar(ca.SX.sym("x"))])
    SX([1, x])
    """
    items = array(value)
    if items.ndim == 0:
        return _sx(items.item())
    columns = items.reshape(items.shape[0], -1)
    # triplets of the nonzeros in column-major order: setting single entries takes five times as long
    if columns.dtype != object:
        indices = np.argwhere(columns.T != 0)
        values = ca.SX(ca.DM(columns[indices[:, 1], indices[:, 0]]))
    else:
        triplets = [(j, i, _unwrap(item)) for (j, i), item in np.ndenumerate(columns.T)]
        nonzeros = [
            entry for entry in triplets if not (entry[2].is_zero() if isinstance(entry[2], ca.SX) else entry[2] == 0)
        ]
        indices = np.array([entry[:2] for entry in nonzeros], dtype=np.int64).reshape(-1, 2)
        values = ca.vertcat(*(entry[2] for entry in nonzeros)) if nonzeros else ca.SX(0, 1)
    return ca.SX.triplet(indices[:, 1].tolist(), indices[:, 0].tolist(), ca.SX(values), *columns.shape)
