"""The functions a model is written with. They take symbols, numbers and arrays alike.

>>> from livens import math as m
>>> float(m.sin(m.pi / 2))
1.0
>>> float(m.norm([3.0, 4.0]))
5.0

A model function receives NumPy arrays of symbols, so slices, loops, ``@``, ``np.dot``, ``np.cross``, broadcasting and
helper functions work as always. Only branching on a symbol does not: a symbol has no value yet, so write
``m.where(x > 0, a, b)``, ``m.maximum(a, b)`` or ``abs(x)``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

pi: float = float(np.pi)


class Scalar:
    """A number that is not known yet: a symbol, or an expression of symbols."""

    __slots__ = ("sx",)

    def __init__(self, sx: Any) -> None:
        self.sx = sx

    # -- arithmetic -------------------------------------------------------------------------------------------------
    def __add__(self, other: Any) -> Any:
        return _binary(self, other, ca.plus)

    def __radd__(self, other: Any) -> Any:
        return _binary(other, self, ca.plus)

    def __sub__(self, other: Any) -> Any:
        return _binary(self, other, ca.minus)

    def __rsub__(self, other: Any) -> Any:
        return _binary(other, self, ca.minus)

    def __mul__(self, other: Any) -> Any:
        return _binary(self, other, ca.times)

    def __rmul__(self, other: Any) -> Any:
        return _binary(other, self, ca.times)

    def __truediv__(self, other: Any) -> Any:
        return _binary(self, other, ca.rdivide)

    def __rtruediv__(self, other: Any) -> Any:
        return _binary(other, self, ca.rdivide)

    def __pow__(self, other: Any) -> Any:
        return _binary(self, other, ca.power)

    def __rpow__(self, other: Any) -> Any:
        return _binary(other, self, ca.power)

    def __mod__(self, other: Any) -> Any:
        return _binary(self, other, _modulo)

    def __rmod__(self, other: Any) -> Any:
        return _binary(other, self, _modulo)

    def __neg__(self) -> Scalar:
        return Scalar(-self.sx)

    def __pos__(self) -> Scalar:
        return self

    def __abs__(self) -> Scalar:
        return Scalar(ca.fabs(self.sx))

    # -- comparisons give 0 or 1, to be used in `where` ---------------------------------------------------------------
    def __lt__(self, other: Any) -> Any:
        return _binary(self, other, ca.lt)

    def __le__(self, other: Any) -> Any:
        return _binary(self, other, ca.le)

    def __gt__(self, other: Any) -> Any:
        return _binary(self, other, ca.gt)

    def __ge__(self, other: Any) -> Any:
        return _binary(self, other, ca.ge)

    def __eq__(self, other: object) -> Any:
        return _binary(self, other, ca.eq)

    def __ne__(self, other: object) -> Any:
        return _binary(self, other, ca.ne)

    def __and__(self, other: Any) -> Any:
        return _binary(self, other, ca.logic_and)

    def __or__(self, other: Any) -> Any:
        return _binary(self, other, ca.logic_or)

    __rand__, __ror__ = __and__, __or__

    def __invert__(self) -> Scalar:
        return Scalar(ca.logic_not(self.sx))

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        if self.sx.is_constant():
            return bool(float(self.sx))
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


def _raw(value: Any) -> Any:
    return value.sx if isinstance(value, Scalar) else value


def _binary(a: Any, b: Any, operation: Callable[[Any, Any], Any]) -> Any:
    for operand in (a, b):
        if not isinstance(operand, (Scalar, int, float, np.integer, np.floating, np.bool_)):
            return NotImplemented  # an array spreads the operation over its items
    return Scalar(operation(_sx(a), _sx(b)))


def _sx(value: Any) -> Any:
    return value.sx if isinstance(value, Scalar) else ca.SX(float(value))


def _modulo(a: Any, b: Any) -> Any:
    """As Python defines it: the result has the sign of the divisor."""
    return a - b * ca.floor(a / b)


def _elementwise(symbolic: Callable[..., Any], numeric: Callable[..., Any], name: str, doc: str) -> Callable[..., Any]:
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
    function.__doc__ = doc
    # NumPy looks for a method of this name when its own function meets an array of Scalars: np.sin(q) works too.
    if name != "where":
        setattr(Scalar, name, lambda *operands: Scalar(symbolic(*map(_sx, operands))))
    return function


sin = _elementwise(ca.sin, np.sin, "sin", "Sine.")
cos = _elementwise(ca.cos, np.cos, "cos", "Cosine.")
tan = _elementwise(ca.tan, np.tan, "tan", "Tangent.")
asin = _elementwise(ca.asin, np.arcsin, "arcsin", "Inverse sine.")
acos = _elementwise(ca.acos, np.arccos, "arccos", "Inverse cosine.")
atan = _elementwise(ca.atan, np.arctan, "arctan", "Inverse tangent.")
atan2 = _elementwise(ca.atan2, np.arctan2, "arctan2", "The angle of the point (x, y): ``atan2(y, x)``.")
sinh = _elementwise(ca.sinh, np.sinh, "sinh", "Hyperbolic sine.")
cosh = _elementwise(ca.cosh, np.cosh, "cosh", "Hyperbolic cosine.")
tanh = _elementwise(ca.tanh, np.tanh, "tanh", "Hyperbolic tangent.")
asinh = _elementwise(ca.asinh, np.arcsinh, "arcsinh", "Inverse hyperbolic sine.")
acosh = _elementwise(ca.acosh, np.arccosh, "arccosh", "Inverse hyperbolic cosine.")
atanh = _elementwise(ca.atanh, np.arctanh, "arctanh", "Inverse hyperbolic tangent.")
exp = _elementwise(ca.exp, np.exp, "exp", "Exponential.")
log = _elementwise(ca.log, np.log, "log", "Natural logarithm.")
sqrt = _elementwise(ca.sqrt, np.sqrt, "sqrt", "Square root.")
sign = _elementwise(ca.sign, np.sign, "sign", "-1, 0 or 1.")
floor = _elementwise(ca.floor, np.floor, "floor", "Round down.")
ceil = _elementwise(ca.ceil, np.ceil, "ceil", "Round up.")
minimum = _elementwise(ca.fmin, np.minimum, "minimum", "The smaller of two.")
maximum = _elementwise(ca.fmax, np.maximum, "maximum", "The larger of two.")
where = _elementwise(ca.if_else, np.where, "where", "``where(condition, a, b)``: a where the condition holds, else b.")


def dot(a: Any, b: Any) -> Any:
    """The inner product of two vectors."""
    left, right = np.asarray(a), np.asarray(b)
    if left.shape != right.shape or left.ndim != 1:
        raise ValueError(f"dot needs two vectors of one length, got shapes {left.shape} and {right.shape}")
    return np.dot(left, right)


def norm(a: Any) -> Any:
    """The Euclidean length of a vector."""
    return sqrt(dot(a, a))


def cross(a: Any, b: Any) -> Any:
    """The vector product in space; in the plane, its one component."""
    left, right = np.asarray(a), np.asarray(b)
    if left.shape == right.shape == (2,):
        return left[0] * right[1] - left[1] * right[0]
    if left.shape == right.shape == (3,):
        turned = [left[i - 2] * right[i - 1] - left[i - 1] * right[i - 2] for i in range(3)]
        return array(turned)
    raise ValueError(f"cross needs two vectors of length 2 or 3, got shapes {left.shape} and {right.shape}")


def array(items: Any) -> np.ndarray:
    """An array from numbers, symbols, and nested lists of them."""
    return np.array(items, dtype=object) if _has_symbol(items) else np.asarray(items, dtype=float)


def _has_symbol(items: Any) -> bool:
    if isinstance(items, np.ndarray):
        return items.dtype == object
    if isinstance(items, (list, tuple)):
        return any(_has_symbol(item) for item in items)
    return isinstance(items, Scalar)


def symbols(vector: Any) -> np.ndarray:
    """A CasADi column vector as an array of Scalars (the engine's side of the border)."""
    result = np.empty(vector.numel(), dtype=object)
    for i in range(vector.numel()):
        result[i] = Scalar(vector[i])
    return result


def expression(value: Any) -> Any:
    """A Scalar, a number, or an array of them as a CasADi matrix (vectors become columns)."""
    items = array(value)
    if items.ndim == 0:
        return _sx(items.item())
    columns = items.reshape(items.shape[0], -1)
    out = ca.SX.zeros(*columns.shape)
    for (i, j), item in np.ndenumerate(columns):
        out[i, j] = _raw(item)
    return ca.sparsify(out)
