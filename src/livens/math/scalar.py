"""Symbolic scalar with its operators, and element-wise functions of symbols, numbers and arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import casadi as ca
import numpy as np

pi: float = float(np.pi)
#: Decision of a branch on a symbolic condition. Set while all branches of a function are traced; else None.
branch_decision: ContextVar[Callable[[Any], bool] | None] = ContextVar("branch_decision", default=None)
#: Function that is called when a symbol is converted to text. Set while a function is traced; else None.
conversion_to_text: ContextVar[Callable[[], None] | None] = ContextVar("conversion_to_text", default=None)


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
            from livens.math.interpolation import interp

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
        record = conversion_to_text.get()
        if record is not None:
            record()
        return str(self.sx)


def unwrap(value: object) -> Any:
    """Return the expression of a Scalar, other values unchanged."""
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


def scalar_to_sx(value: Any) -> Any:
    """Return the expression of a Scalar or of a number."""
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

    def scalar(*arguments: object) -> Any:
        if any(isinstance(a, Scalar) for a in arguments):
            return Scalar(symbolic(*map(scalar_to_sx, arguments)))
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

        def method(*arguments: Any) -> Scalar:
            return Scalar(symbolic(*map(scalar_to_sx, arguments)))

        method.__name__, method.__qualname__, method.__doc__ = name, f"Scalar.{name}", function.__doc__
        setattr(Scalar, name, method)
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
