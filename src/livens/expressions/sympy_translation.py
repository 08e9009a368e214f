"""Translation of expressions between SymPy and CasADi."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import casadi as ca

from livens import math as m
from livens.errors import MissingExtraError, ModelError
from livens.expressions.graph.interpreter import interpret
from livens.types import ModelFunction

#: Largest denominator of fractions that are shown instead of decimal numbers.
_MAX_DENOMINATOR = 1000
#: Functions of one argument that have the same name in SymPy and in `livens.math`.
_COMMON_FUNCTIONS = "sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh exp log sign floor sqrt".split()


@functools.cache
def sympy_module() -> Any:
    """Return the module `sympy`, or raise `MissingExtraError`."""
    try:
        import sympy
        import sympy.physics.mechanics
    except ImportError:
        raise MissingExtraError("a model of SymPy", "sympy") from None
    return sympy


# -- from SymPy --------------------------------------------------------------------------------------------------------
def from_sympy_expressions(expressions: Sequence[object], values: Mapping[object, object]) -> list[Any]:
    """Return SymPy expressions as Scalars and numbers; `values` contains the value of every symbol.

    Common subexpressions are evaluated once. Coordinates and rates are replaced by plain symbols before: otherwise
    ``q(t)`` would be extracted from ``Derivative(q(t), t)``.
    """
    sp = sympy_module()
    dummies = {symbol: sp.Dummy() for symbol in values}
    plain = [sp.sympify(expression).xreplace(dummies) for expression in expressions]
    shared, reduced = sp.cse(plain, order="none")
    known = {dummies[symbol]: value for symbol, value in values.items()}
    for symbol, expression in shared:
        known[symbol] = _evaluate(expression, known)
    return [_evaluate(expression, known) for expression in reduced]


@functools.cache
def _functions() -> dict[Any, ModelFunction]:
    """Return functions of `livens.math` by SymPy class."""
    sp = sympy_module()
    common: dict[Any, Callable[..., Any]] = {getattr(sp, name): getattr(m, name) for name in _COMMON_FUNCTIONS}
    return common | {
        sp.Abs: m.abs,
        sp.ceiling: m.ceil,
        sp.cot: lambda x: 1 / m.tan(x),
        sp.sec: lambda x: 1 / m.cos(x),
        sp.csc: lambda x: 1 / m.sin(x),
        sp.erf: lambda x: m.Scalar(ca.erf(m.to_casadi(x))),
        sp.atan2: m.atan2,
        sp.Max: lambda *items: functools.reduce(m.maximum, items),
        sp.Min: lambda *items: functools.reduce(m.minimum, items),
        sp.Heaviside: lambda x, at_zero=0.5: m.where(x < 0, 0.0, m.where(x > 0, 1.0, at_zero)),
        sp.StrictLessThan: operator.lt,
        sp.LessThan: operator.le,
        sp.StrictGreaterThan: operator.gt,
        sp.GreaterThan: operator.ge,
        sp.Equality: operator.eq,
        sp.Unequality: operator.ne,
        sp.And: lambda *items: functools.reduce(operator.and_, items),
        sp.Or: lambda *items: functools.reduce(operator.or_, items),
        sp.Not: operator.invert,
        sp.Add: lambda *items: functools.reduce(operator.add, items),
    }


def _evaluate(expression: Any, known: dict[Any, Any]) -> Any:
    sp = sympy_module()
    if expression in known:
        return known[expression]
    if expression.is_Number or expression.is_NumberSymbol:
        return float(expression)

    def evaluate(part: object) -> Any:
        return _evaluate(part, known)

    if expression.is_Mul:
        numerator, denominator = expression.as_numer_denom()
        if not denominator.is_number and denominator.args != expression.args:
            return evaluate(numerator) / evaluate(denominator)
        return functools.reduce(operator.mul, map(evaluate, expression.args))
    if expression.is_Pow:
        base, exponent = expression.args
        return _power(base, exponent, evaluate)
    if isinstance(expression, sp.Piecewise):
        value: Any = float("nan")
        for piece, condition in reversed(expression.args):
            value = evaluate(piece) if condition == sp.true else m.where(evaluate(condition), evaluate(piece), value)
        return value
    function = _functions().get(expression.func)
    if function is not None:
        return function(*map(evaluate, expression.args))
    if isinstance(expression, (sp.Symbol, sp.Derivative, sp.core.function.AppliedUndef)):
        raise ModelError(
            f"the symbol '{expression}' has no value: pass it as a parameter, as a coordinate or in `specified`"
        )
    raise ModelError(f"the function '{expression.func.__name__}' of SymPy cannot be translated")


def _power(base: Any, exponent: Any, evaluate: Callable[[Any], Any]) -> Any:
    sp = sympy_module()
    if base == sp.E:
        return m.exp(evaluate(exponent))
    if exponent == sp.Rational(1, 2):
        return m.sqrt(evaluate(base))
    if exponent == -sp.Rational(1, 2):
        return 1 / m.sqrt(evaluate(base))
    if exponent == -1:
        return 1 / evaluate(base)
    return evaluate(base) ** (int(exponent) if exponent.is_Integer else evaluate(exponent))


# -- to SymPy ----------------------------------------------------------------------------------------------------------
def to_sympy_expressions(function: ca.Function, inputs: Sequence[Sequence[object]]) -> list[list[Any]]:
    """Return the outputs of a CasADi function as SymPy expressions of the inputs."""
    return interpret(function, inputs, _constant, _apply)


def _constant(value: float) -> Any:
    sp = sympy_module()
    if value == int(value) and abs(value) < 1e15:
        return sp.Integer(int(value))
    fraction = sp.Rational(value).limit_denominator(_MAX_DENOMINATOR)
    return fraction if float(fraction) == value else sp.Float(value)


@functools.cache
def _operations() -> dict[str, ModelFunction]:
    """Return SymPy functions by the name of the CasADi operation."""
    sp = sympy_module()
    return {
        "ADD": operator.add,
        "SUB": operator.sub,
        "MUL": operator.mul,
        "DIV": operator.truediv,
        "NEG": operator.neg,
        "POW": operator.pow,
        "CONSTPOW": operator.pow,
        "SQ": lambda a: a**2,
        "TWICE": lambda a: 2 * a,
        "INV": lambda a: 1 / a,
        "ASSIGN": lambda a: a,
        "FABS": sp.Abs,
        "CEIL": sp.ceiling,
        "FMIN": sp.Min,
        "FMAX": sp.Max,
        "HYPOT": lambda a, b: sp.sqrt(a**2 + b**2),
        "LT": operator.lt,
        "LE": operator.le,
        "EQ": sp.Eq,
        "NE": sp.Ne,
        "NOT": sp.Not,
        "AND": sp.And,
        "OR": sp.Or,
        "IF_ELSE_ZERO": lambda condition, a: sp.Piecewise((a, condition), (0, True)),
        "EXPM1": lambda a: sp.exp(a) - 1,
        "LOG1P": lambda a: sp.log(1 + a),
    }


def _apply(name: str, *operands: object) -> Any:
    operation = _operations().get(name) or getattr(sympy_module(), name.lower())
    return operation(*operands)
