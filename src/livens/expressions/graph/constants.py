"""Constants of expression graphs that depend on parameters only; they are evaluated once per run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca

from livens.expressions.graph.walk import OPS


@dataclass(frozen=True, eq=False)
class Constant:
    """Expression of the parameters; equal expressions are the same object."""

    number: int  # index in the order of creation
    expression: Any


#: Coefficient: a number, or a number times a constant.
Factor = float | tuple[float, Constant]


class Constants:
    """Builder of constants with common-subexpression elimination: k, -k and 2 k share one constant."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], Constant] = {}

    def _one(self, key: tuple[Any, ...], expression: Any) -> Factor:
        if key not in self._known:
            self._known[key] = Constant(len(self._known), expression)
        return 1.0, self._known[key]

    def parameter(self, i: int, symbol: Any) -> Factor:
        return self._one(("parameter", i), symbol)

    def times(self, a: Factor, b: Factor) -> Factor:
        (s, x), (r, y) = split(a), split(b)
        if x is None or y is None:
            return joined(s * r, x or y)
        first, second = sorted((x, y), key=lambda c: c.number)
        return scaled(self._one(("times", first, second), first.expression * second.expression), s * r)

    def plus(self, a: Factor, b: Factor) -> Factor:
        (s, x), (r, y) = split(a), split(b)
        if x is y:
            return joined(s + r, x)
        if not s or not r:
            return b if not s else a
        return self._one(("plus", s, x, r, y), expression(a) + expression(b))

    def over(self, a: Factor, b: Factor) -> Factor:
        (s, x), (r, y) = split(a), split(b)
        if y is None:
            return joined(s / r, x)
        if x is y:
            return s / r
        inverse = self._one(("inverse", y), 1 / y.expression)
        return self.times(joined(s / r, x), inverse)

    def power(self, a: Factor, e: float) -> Factor:
        s, x = split(a)
        if x is None:
            return float(s**e)
        if s > 0 or e == int(e):
            return scaled(self._one(("power", x, e), x.expression**e), float(s**e))
        return self._one(("power of", s, x, e), expression(a) ** e)

    def apply(self, name: str, a: Factor, b: Factor | None = None) -> Factor:
        """Apply any other unary or binary operation."""
        operands = [expression(f) for f in (a, b) if f is not None]
        value = ca.SX.unary(OPS[name], operands[0]) if b is None else ca.SX.binary(OPS[name], *operands)
        return float(value) if value.is_constant() else self._one((name, a, b), value)


def split(a: Factor) -> tuple[float, Constant | None]:
    """Return the number and the constant of a coefficient."""
    return a if isinstance(a, tuple) else (a, None)


def joined(number: float, constant: Constant | None) -> Factor:
    return number if constant is None or not number else (number, constant)


def scaled(a: Factor, number: float) -> Factor:
    s, x = split(a)
    return joined(s * number, x)


def expression(a: Factor) -> Any:
    """Return a coefficient as an expression of the parameters."""
    s, x = split(a)
    return ca.SX(s) if x is None else (x.expression if s == 1.0 else s * x.expression)


def values_of(factors: list[Factor], k: Any) -> ca.Function:
    """Return a CasADi function from parameters to the values of coefficients."""
    column = ca.vertcat(*map(expression, factors)) if factors else ca.SX(0, 1)
    return ca.Function("constants", [k], [ca.densify(column)])
