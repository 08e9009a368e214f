"""Evaluation of expressions (third stage): the value of a syntax tree, a number or a symbol.

Only operators and functions of the tables below are evaluated. All numbers are 64-bit floats.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Mapping
from typing import Any

import numpy as np

from livens import math as m
from livens.scenario.grammar import FUNCTIONS, Call, Chain, Comparison, Name, Negative, Node, Number, Power
from livens.scenario.tokens import ExpressionError
from livens.types import ModelFunction, ScalarLike

MAX_EXPONENT = 1000.0
#: Largest number of products, quotients and powers of symbols in an expression: their derivatives take most of the time
#: of compilation.
MAX_PRODUCTS = 1000

#: Names available in every expression.
CONSTANTS: dict[str, float] = {"pi": math.pi, "e": math.e}

#: NumPy functions for two numbers (inf or nan where Python raises or returns complex numbers), Python for symbols.
_OPERATORS: dict[str, tuple[ModelFunction, ModelFunction]] = {
    "+": (np.add, operator.add),
    "-": (np.subtract, operator.sub),
    "*": (np.multiply, operator.mul),
    "/": (np.divide, operator.truediv),
    "**": (np.power, operator.pow),
    "<": (np.less, operator.lt),
    "<=": (np.less_equal, operator.le),
    ">": (np.greater, operator.gt),
    ">=": (np.greater_equal, operator.ge),
    "==": (np.equal, operator.eq),
    "!=": (np.not_equal, operator.ne),
}
_FUNCTIONS: dict[str, ModelFunction] = {
    **{name: getattr(m, name) for name in FUNCTIONS if hasattr(m, name)},
    "abs": abs,
    "min": lambda *values: functools.reduce(m.minimum, values),
    "max": lambda *values: functools.reduce(m.maximum, values),
}


def evaluate(node: Node, values: Mapping[str, Any], text: str) -> ScalarLike:
    """Return the value of a tree: a float, or a Scalar of `livens.math`. Messages point into `text`."""
    with np.errstate(all="ignore"):  # non-finite values are rejected below, with their column
        return _Evaluation(values, text).value(node)


class _Evaluation:
    def __init__(self, values: Mapping[str, ScalarLike] | Mapping[str, float], text: str) -> None:
        self._values, self._text = values, text
        self._n_products = 0

    def value(self, node: Node) -> Any:
        match node:
            case Number():
                return node.value
            case Name():
                return CONSTANTS[node.name] if node.name in CONSTANTS else self._values[node.name]
            case Negative():
                return -self.value(node.operand)
            case Chain():
                total = self.value(node.first_operand)
                for sign, operand, column in node.rest:
                    total = self._binary(sign, total, self.value(operand), column)
                return total
            case Power():
                base, exponent = self.value(node.base), self.value(node.exponent)
                if isinstance(exponent, float) and abs(exponent) > MAX_EXPONENT:
                    reason = f"the exponent {exponent:g} is too large (at most {MAX_EXPONENT:g})"
                    raise ExpressionError(reason, self._text, node.column)
                return self._binary("**", base, exponent, node.column)
            case Comparison():
                return self._binary(node.operator, self.value(node.left), self.value(node.right), node.column)
            case Call():
                arguments = [self.value(argument) for argument in node.arguments]
                return self._require_finite(_FUNCTIONS[node.function](*arguments), node.column)

    def _binary(self, sign: str, left: ScalarLike, right: ScalarLike, column: int) -> ScalarLike:
        numeric, symbolic = _OPERATORS[sign]
        both_numeric = isinstance(left, float) and isinstance(right, float)
        self._n_products += sign in ("*", "/", "**") and not both_numeric
        if self._n_products > MAX_PRODUCTS:
            reason = f"an expression may have at most {MAX_PRODUCTS} products, quotients and powers; use `let`"
            raise ExpressionError(reason, self._text, column)
        return self._require_finite((numeric if both_numeric else symbolic)(left, right), column)

    def _require_finite(self, value: ScalarLike, column: int) -> ScalarLike:
        """Return a finite float for constant values, and symbols unchanged."""
        if isinstance(value, m.Scalar) and not value.sx.is_constant():
            return value
        number = float(value)
        if not math.isfinite(number):
            raise ExpressionError(f"this is {number}, not a finite number", self._text, column)
        return number
