"""Constants of expression graphs that depend on parameters only; they are evaluated once per run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca

from livens.expressions.graph.interpreter import operate
from livens.types import Expr


@dataclass(frozen=True, eq=False)
class Constant:
    """Expression of the parameters; equal expressions are the same object."""

    index: int  # index in the order of creation
    expression: Expr


#: Coefficient: a number, or a number times a constant.
Coefficient = float | tuple[float, Constant]


class ConstantPool:
    """Builder of constants with common-subexpression elimination: k, -k and 2 k share one constant."""

    def __init__(self) -> None:
        self._constants: dict[tuple[Any, ...], Constant] = {}

    def _intern(self, key: tuple[object, ...], expression: Expr) -> Coefficient:
        if key not in self._constants:
            self._constants[key] = Constant(len(self._constants), expression)
        return 1.0, self._constants[key]

    def parameter(self, i: int, symbol: Expr) -> Coefficient:
        return self._intern(("parameter", i), symbol)

    def multiply(self, a: Coefficient, b: Coefficient) -> Coefficient:
        (s, x), (r, y) = split_coefficient(a), split_coefficient(b)
        if x is None or y is None:
            return make_coefficient(s * r, x or y)
        left_factor, right_factor = sorted((x, y), key=lambda c: c.index)
        return scale(
            self._intern(("times", left_factor, right_factor), left_factor.expression * right_factor.expression), s * r
        )

    def add(self, a: Coefficient, b: Coefficient) -> Coefficient:
        (s, x), (r, y) = split_coefficient(a), split_coefficient(b)
        if x is y:
            return make_coefficient(s + r, x)
        if not s or not r:
            return b if not s else a
        return self._intern(("plus", s, x, r, y), coefficient_expression(a) + coefficient_expression(b))

    def divide(self, a: Coefficient, b: Coefficient) -> Coefficient:
        (s, x), (r, y) = split_coefficient(a), split_coefficient(b)
        if y is None:
            return make_coefficient(s / r, x)
        if x is y:
            return s / r
        inverse = self._intern(("inverse", y), 1 / y.expression)
        return self.multiply(make_coefficient(s / r, x), inverse)

    def power(self, a: Coefficient, e: float) -> Coefficient:
        s, x = split_coefficient(a)
        if x is None:
            return float(s**e)
        if s > 0 or e == int(e):
            return scale(self._intern(("power", x, e), x.expression**e), float(s**e))
        return self._intern(("power of", s, x, e), coefficient_expression(a) ** e)

    def apply(self, name: str, a: Coefficient, b: Coefficient | None = None) -> Coefficient:
        """Apply any other unary or binary operation."""
        operands = [coefficient_expression(f) for f in (a, b) if f is not None]
        value = operate(name, *operands)
        return float(value) if value.is_constant() else self._intern((name, a, b), value)


def split_coefficient(a: Coefficient) -> tuple[float, Constant | None]:
    """Return the number and the constant of a coefficient."""
    return a if isinstance(a, tuple) else (a, None)


def make_coefficient(number: float, constant: Constant | None) -> Coefficient:
    return number if constant is None or not number else (number, constant)


def scale(a: Coefficient, number: float) -> Coefficient:
    s, x = split_coefficient(a)
    return make_coefficient(s * number, x)


def coefficient_expression(a: Coefficient) -> Expr:
    """Return a coefficient as an expression of the parameters."""
    s, x = split_coefficient(a)
    return ca.SX(s) if x is None else (x.expression if s == 1.0 else s * x.expression)


def coefficient_function(coefficients: list[Coefficient], k: Expr) -> ca.Function:
    """Return a CasADi function from parameters to the values of coefficients."""
    column = ca.vertcat(*map(coefficient_expression, coefficients)) if coefficients else ca.SX(0, 1)
    return ca.Function("constants", [k], [ca.densify(column)])
