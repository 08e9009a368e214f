"""Exact increments of expressions, without cancellation.

``f(y) - f(x)`` loses all its digits when x and y are close. But the increment of every elementary operation follows
from the increments of its operands by an exact identity, such as ``D(a b) = a_m Db + b_m Da`` with the mean values
``a_m = (a(x) + a(y))/2``, or ``D sin a = 2 cos(a_m) sin(Da/2)``. Propagation through the graph gives ``f(y) - f(x)``
from ``y - x`` with a small *relative* error, down to the smallest increments a double can hold.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import casadi as ca

from livens.expressions.graph.interpreter import interpret, operate
from livens.types import Expr

#: Threshold on the increment below which two terms of the Taylor series about the mean are exact to round-off.
_SERIES_THRESHOLD = 1e-3


class Increment(NamedTuple):
    """Values of a node at both end points and its increment ``end - start``, computed without cancellation."""

    start: Expr
    end: Expr
    delta: Any

    @property
    def mean(self) -> Expr:
        return (self.start + self.end) / 2


def increments(function: ca.Function, start: Expr, delta: Expr, others: list[Any]) -> Expr:
    """Return ``f(start + delta, *others) - f(start, *others)`` for every nonzero of the first output."""
    end = start + delta
    varied = [Increment(start[i], end[i], delta[i]) for i in range(start.numel())]
    fixed = [[_constant(vector[i]) for i in range(vector.numel())] for vector in others]
    inputs = [_nonzeros(function, 0, varied), *(_nonzeros(function, i + 1, v) for i, v in enumerate(fixed))]
    (values, *_) = interpret(function, inputs, _constant, _apply)
    return ca.vertcat(*(value.delta for value in values)) if values else ca.SX(0, 1)


def _nonzeros(function: ca.Function, i: int, values: list[Increment]) -> list[Increment]:
    if function.nnz_in(i) != len(values):
        raise ValueError(f"input {i} has {function.nnz_in(i)} entries, not {len(values)}")
    return values


def _constant(value: Any) -> Increment:
    return Increment(ca.SX(value), ca.SX(value), ca.SX(0))


def _apply(name: str, a: Increment, b: Increment | None = None) -> Increment:
    operands = (a,) if b is None else (a, b)
    start = operate(name, *(o.start for o in operands))
    if all(o.delta.is_zero() for o in operands):
        return Increment(start, start, ca.SX(0))
    end = operate(name, *(o.end for o in operands))
    rule = _RULES.get(name, _generic)
    return Increment(start, end, rule(name, *operands, start, end))


# -- one identity per operation: (name, operands..., value at start, value at end) -> increment ----------------------
def _generic(name: str, *arguments: Any) -> Expr:
    """Return the plain difference, or a Taylor series for small increments of a smooth unary function."""
    *operands, start, end = arguments
    difference = end - start
    if len(operands) != 1 or name in ("NOT", "SIGN", "FLOOR", "CEIL"):
        return difference
    (a,) = operands
    x = ca.SX.sym("x")
    first_derivative = ca.gradient(operate(name, x), x)
    third_derivative = ca.gradient(ca.gradient(first_derivative, x), x)
    derivatives = ca.Function("slopes", [x], [first_derivative, third_derivative])
    d1, d3 = derivatives(a.mean)
    return ca.if_else(ca.fabs(a.delta) < _SERIES_THRESHOLD, a.delta * (d1 + d3 * a.delta**2 / 24), difference)


def _product(_: str, a: Increment, b: Increment, *__: object) -> Expr:
    return a.mean * b.delta + b.mean * a.delta


def _quotient(_: str, a: Increment, b: Increment, start: Expr, end: Expr) -> Expr:
    return (a.delta - start * b.delta) / b.end


def _square_root(_: str, a: Increment, start: Expr, end: Expr) -> Expr:
    total = start + end
    return ca.if_else(total > 0, a.delta / ca.if_else(total > 0, total, 1), end - start)


def _hypotenuse(_: str, a: Increment, b: Increment, start: Expr, end: Expr) -> Expr:
    total = start + end
    safe = ca.if_else(total > 0, total, 1)  # both end points at the origin: zero increment
    # no squares: they overflow before the hypotenuse does
    return 2 * (a.mean / safe * a.delta + b.mean / safe * b.delta)


def _logarithm(_: str, a: Increment, *__: object) -> Expr:
    return ca.if_else(a.delta > 0, ca.log1p(a.delta / a.start), -ca.log1p(-a.delta / a.end))


def _logarithm_of_one_plus(_: str, a: Increment, *__: object) -> Expr:
    return _logarithm("LOG", Increment(1 + a.start, 1 + a.end, a.delta))


def _exponential(_: str, a: Increment, start: Expr, end: Expr) -> Expr:
    return _exponential_change(a.delta, start, end)


def _exponential_minus_one(_: str, a: Increment, *__: object) -> Expr:
    return _exponential_change(a.delta, ca.exp(a.start), ca.exp(a.end))  # `1 + value` would cancel near -1


def _exponential_change(change: Expr, start: Expr, end: Expr) -> Expr:
    """Return ``end - start`` of exponentials, from the larger one to avoid overflow."""
    return ca.if_else(change > 0, -end * ca.expm1(-change), start * ca.expm1(change))


def _tangent(_: str, a: Increment, *__: object) -> Expr:
    return ca.sin(a.delta) / (ca.cos(a.start) * ca.cos(a.end))


def _arc_tangent(_: str, a: Increment, start: Expr, end: Expr) -> Expr:
    denominator = 1 + a.start * a.end
    return ca.if_else(denominator > 0, ca.atan(a.delta / ca.if_else(denominator > 0, denominator, 1)), end - start)


def _arc_tangent_2(_: str, y: Increment, x: Increment, start: Expr, end: Expr) -> Expr:
    delta_angle = ca.atan2(y.delta * x.start - y.start * x.delta, x.start * x.end + y.start * y.end)
    return ca.if_else(
        ca.fabs(delta_angle - (end - start)) < 1, delta_angle, end - start
    )  # except across the branch cut


def _absolute(_: str, a: Increment, start: Expr | None, end: Expr | None) -> Expr:
    end_ = a.start + a.delta
    total = ca.fabs(a.start) + ca.fabs(end_)
    return a.delta * ((a.start + end_) / ca.if_else(total > 0, total, 1))


def _minimum(_: str, a: Increment, b: Increment, start: Expr, end: Expr) -> Expr:
    return _extreme(a, b, -1)


def _maximum(_: str, a: Increment, b: Increment, start: Expr, end: Expr) -> Expr:
    return _extreme(a, b, 1)


def _extreme(a: Increment, b: Increment, sign: int) -> Expr:
    d = Increment(
        sign * (a.start - b.start), sign * (a.start - b.start + (a.delta - b.delta)), sign * (a.delta - b.delta)
    )
    change = sign * _absolute("FABS", d, None, None)
    is_a, is_b = ca.logic_and(d.start >= 0, d.end >= 0), ca.logic_and(d.start <= 0, d.end <= 0)
    return ca.if_else(is_a, a.delta, ca.if_else(is_b, b.delta, (a.delta + b.delta + change) / 2))


def _if_else_zero(_: str, condition: Increment, a: Increment, start: Expr, end: Expr) -> Expr:
    return ca.if_else(condition.start == condition.end, ca.if_else(condition.end, a.delta, 0), end - start)


def _power(_: str, a: Increment, b: Increment, start: Expr, end: Expr) -> Expr:
    if b.delta.is_zero() and b.start.is_constant():
        exponent = float(b.start)
        if exponent == int(exponent) and 0 < abs(exponent) <= 16:
            power = a
            for _i in range(int(abs(exponent)) - 1):
                power = _apply("MUL", power, a)
            return power.delta if exponent > 0 else _apply("INV", power).delta
    positive = ca.logic_and(a.start > 0, a.end > 0)
    base = Increment(*(ca.if_else(positive, part, 1) for part in a))
    log_step = Increment(ca.log(base.start), ca.SX(0), ca.if_else(positive, _logarithm("LOG", base), 0))
    log_end = log_step.start + log_step.delta
    change = (b.start + b.end) / 2 * log_step.delta + (log_step.start + log_end) / 2 * b.delta
    return ca.if_else(positive, _exponential_change(change, start, end), end - start)


_RULES: dict[str, Any] = {
    "ASSIGN": lambda _, a, *__: a.step,
    "ADD": lambda _, a, b, *__: a.delta + b.delta,
    "SUB": lambda _, a, b, *__: a.delta - b.delta,
    "MUL": _product,
    "DIV": _quotient,
    "NEG": lambda _, a, *__: -a.delta,
    "SQ": lambda _, a, *__: 2 * a.mean * a.delta,
    "TWICE": lambda _, a, *__: 2 * a.delta,
    "INV": lambda _, a, start, end: -start * end * a.delta,
    "SQRT": _square_root,
    "HYPOT": _hypotenuse,
    "LOG": _logarithm,
    "LOG1P": _logarithm_of_one_plus,
    "EXP": _exponential,
    "EXPM1": _exponential_minus_one,
    "SIN": lambda _, a, *__: 2 * ca.cos(a.mean) * ca.sin(a.delta / 2),
    "COS": lambda _, a, *__: -2 * ca.sin(a.mean) * ca.sin(a.delta / 2),
    "TAN": _tangent,
    "SINH": lambda _, a, *__: 2 * ca.cosh(a.mean) * ca.sinh(a.delta / 2),
    "COSH": lambda _, a, *__: 2 * ca.sinh(a.mean) * ca.sinh(a.delta / 2),
    "TANH": lambda _, a, start, end: ca.tanh(a.delta) * (1 - start * end),
    "ATAN": _arc_tangent,
    "ATAN2": _arc_tangent_2,
    "FABS": _absolute,
    "FMIN": _minimum,
    "FMAX": _maximum,
    "IF_ELSE_ZERO": _if_else_zero,
    "POW": _power,
    "CONSTPOW": _power,
}
