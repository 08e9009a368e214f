"""Exact increments of expressions, without cancellation.

``f(y) - f(x)`` loses all its digits when x and y are close. But the increment of every elementary operation follows
from the increments of its operands by an exact identity, such as ``D(a b) = a_m Db + b_m Da`` with the mean values
``a_m = (a(x) + a(y))/2``, or ``D sin a = 2 cos(a_m) sin(Da/2)``. Propagation through the graph gives ``f(y) - f(x)``
from ``y - x`` with a small *relative* error, down to the smallest increments a double can hold.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import casadi as ca

from livens.expressions.graph.walk import OPS, walk

#: Threshold on the increment below which two terms of the Taylor series about the mean are exact to round-off.
_SHORT = 1e-3


class Moving(NamedTuple):
    """Values of a node at both end points and its increment ``end - start``, computed without cancellation."""

    start: Any
    end: Any
    step: Any

    @property
    def mean(self) -> Any:
        return (self.start + self.end) / 2


def increments(function: ca.Function, start: Any, step: Any, others: list[Any]) -> Any:
    """Return ``f(start + delta, *others) - f(start, *others)`` for every nonzero of the first output."""
    end = start + step
    moving = [Moving(start[i], end[i], step[i]) for i in range(start.numel())]
    still = [[_constant(vector[i]) for i in range(vector.numel())] for vector in others]
    inputs = [_nonzeros(function, 0, moving), *(_nonzeros(function, i + 1, v) for i, v in enumerate(still))]
    (values, *_) = walk(function, inputs, _constant, _apply)
    return ca.vertcat(*(value.step for value in values)) if values else ca.SX(0, 1)


def _nonzeros(function: ca.Function, i: int, values: list[Moving]) -> list[Moving]:
    if function.nnz_in(i) != len(values):
        raise ValueError(f"input {i} has {function.nnz_in(i)} entries, not {len(values)}")
    return values


def _constant(value: Any) -> Moving:
    return Moving(ca.SX(value), ca.SX(value), ca.SX(0))


def _apply(name: str, a: Moving, b: Moving | None = None) -> Moving:
    operands = (a,) if b is None else (a, b)
    start = _operate(name, *(o.start for o in operands))
    if all(o.step.is_zero() for o in operands):
        return Moving(start, start, ca.SX(0))
    end = _operate(name, *(o.end for o in operands))
    rule = _RULES.get(name, _general)
    return Moving(start, end, rule(name, *operands, start, end))


def _operate(name: str, *operands: Any) -> Any:
    if len(operands) == 1:
        return ca.SX.unary(OPS[name], operands[0])
    return ca.SX.binary(OPS[name], *operands)


# -- one identity per operation: (name, operands..., value at start, value at end) -> increment ----------------------
def _general(name: str, *arguments: Any) -> Any:
    """Return the plain difference, or a Taylor series for small increments of a smooth unary function."""
    *operands, start, end = arguments
    plain = end - start
    if len(operands) != 1 or name in ("NOT", "SIGN", "FLOOR", "CEIL"):
        return plain
    (a,) = operands
    x = ca.SX.sym("x")
    first = ca.gradient(_operate(name, x), x)
    third = ca.gradient(ca.gradient(first, x), x)
    slopes = ca.Function("slopes", [x], [first, third])
    d1, d3 = slopes(a.mean)
    return ca.if_else(ca.fabs(a.step) < _SHORT, a.step * (d1 + d3 * a.step**2 / 24), plain)


def _product(_: str, a: Moving, b: Moving, *__: Any) -> Any:
    return a.mean * b.step + b.mean * a.step


def _quotient(_: str, a: Moving, b: Moving, start: Any, end: Any) -> Any:
    return (a.step - start * b.step) / b.end


def _square_root(_: str, a: Moving, start: Any, end: Any) -> Any:
    total = start + end
    return ca.if_else(total > 0, a.step / ca.if_else(total > 0, total, 1), end - start)


def _hypotenuse(_: str, a: Moving, b: Moving, start: Any, end: Any) -> Any:
    total = start + end
    safe = ca.if_else(total > 0, total, 1)  # both end points at the origin: zero increment
    # no squares: they overflow before the hypotenuse does
    return 2 * (a.mean / safe * a.step + b.mean / safe * b.step)


def _logarithm(_: str, a: Moving, *__: Any) -> Any:
    return ca.if_else(a.step > 0, ca.log1p(a.step / a.start), -ca.log1p(-a.step / a.end))


def _logarithm_of_one_plus(_: str, a: Moving, *__: Any) -> Any:
    return _logarithm("LOG", Moving(1 + a.start, 1 + a.end, a.step))


def _exponential(_: str, a: Moving, start: Any, end: Any) -> Any:
    return _exponential_change(a.step, start, end)


def _exponential_minus_one(_: str, a: Moving, *__: Any) -> Any:
    return _exponential_change(a.step, ca.exp(a.start), ca.exp(a.end))  # `1 + value` would cancel near -1


def _exponential_change(change: Any, start: Any, end: Any) -> Any:
    """Return ``end - start`` of exponentials, from the larger one to avoid overflow."""
    return ca.if_else(change > 0, -end * ca.expm1(-change), start * ca.expm1(change))


def _tangent(_: str, a: Moving, *__: Any) -> Any:
    return ca.sin(a.step) / (ca.cos(a.start) * ca.cos(a.end))


def _arc_tangent(_: str, a: Moving, start: Any, end: Any) -> Any:
    same = 1 + a.start * a.end
    return ca.if_else(same > 0, ca.atan(a.step / ca.if_else(same > 0, same, 1)), end - start)


def _arc_tangent_2(_: str, y: Moving, x: Moving, start: Any, end: Any) -> Any:
    turned = ca.atan2(y.step * x.start - y.start * x.step, x.start * x.end + y.start * y.end)
    return ca.if_else(ca.fabs(turned - (end - start)) < 1, turned, end - start)  # except across the branch cut


def _absolute(_: str, a: Moving, start: Any, end: Any) -> Any:
    end_ = a.start + a.step
    total = ca.fabs(a.start) + ca.fabs(end_)
    return a.step * ((a.start + end_) / ca.if_else(total > 0, total, 1))


def _smaller(_: str, a: Moving, b: Moving, start: Any, end: Any) -> Any:
    return _extreme(a, b, -1)


def _larger(_: str, a: Moving, b: Moving, start: Any, end: Any) -> Any:
    return _extreme(a, b, 1)


def _extreme(a: Moving, b: Moving, sign: int) -> Any:
    d = Moving(sign * (a.start - b.start), sign * (a.start - b.start + (a.step - b.step)), sign * (a.step - b.step))
    change = sign * _absolute("FABS", d, None, None)
    is_a, is_b = ca.logic_and(d.start >= 0, d.end >= 0), ca.logic_and(d.start <= 0, d.end <= 0)
    return ca.if_else(is_a, a.step, ca.if_else(is_b, b.step, (a.step + b.step + change) / 2))


def _if_else_zero(_: str, condition: Moving, a: Moving, start: Any, end: Any) -> Any:
    return ca.if_else(condition.start == condition.end, ca.if_else(condition.end, a.step, 0), end - start)


def _power(_: str, a: Moving, b: Moving, start: Any, end: Any) -> Any:
    if b.step.is_zero() and b.start.is_constant():
        exponent = float(b.start)
        if exponent == int(exponent) and 0 < abs(exponent) <= 16:
            rising = a
            for _i in range(int(abs(exponent)) - 1):
                rising = _apply("MUL", rising, a)
            return rising.step if exponent > 0 else _apply("INV", rising).step
    positive = ca.logic_and(a.start > 0, a.end > 0)
    base = Moving(*(ca.if_else(positive, part, 1) for part in a))
    log_step = Moving(ca.log(base.start), ca.SX(0), ca.if_else(positive, _logarithm("LOG", base), 0))
    log_end = log_step.start + log_step.step
    change = (b.start + b.end) / 2 * log_step.step + (log_step.start + log_end) / 2 * b.step
    return ca.if_else(positive, _exponential_change(change, start, end), end - start)


_RULES: dict[str, Any] = {
    "ASSIGN": lambda _, a, *__: a.step,
    "ADD": lambda _, a, b, *__: a.step + b.step,
    "SUB": lambda _, a, b, *__: a.step - b.step,
    "MUL": _product,
    "DIV": _quotient,
    "NEG": lambda _, a, *__: -a.step,
    "SQ": lambda _, a, *__: 2 * a.mean * a.step,
    "TWICE": lambda _, a, *__: 2 * a.step,
    "INV": lambda _, a, start, end: -start * end * a.step,
    "SQRT": _square_root,
    "HYPOT": _hypotenuse,
    "LOG": _logarithm,
    "LOG1P": _logarithm_of_one_plus,
    "EXP": _exponential,
    "EXPM1": _exponential_minus_one,
    "SIN": lambda _, a, *__: 2 * ca.cos(a.mean) * ca.sin(a.step / 2),
    "COS": lambda _, a, *__: -2 * ca.sin(a.mean) * ca.sin(a.step / 2),
    "TAN": _tangent,
    "SINH": lambda _, a, *__: 2 * ca.cosh(a.mean) * ca.sinh(a.step / 2),
    "COSH": lambda _, a, *__: 2 * ca.sinh(a.mean) * ca.sinh(a.step / 2),
    "TANH": lambda _, a, start, end: ca.tanh(a.step) * (1 - start * end),
    "ATAN": _arc_tangent,
    "ATAN2": _arc_tangent_2,
    "FABS": _absolute,
    "FMIN": _smaller,
    "FMAX": _larger,
    "IF_ELSE_ZERO": _if_else_zero,
    "POW": _power,
    "CONSTPOW": _power,
}
