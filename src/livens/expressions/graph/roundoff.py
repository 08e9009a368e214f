"""Running error analysis: round-off bounds of computed values.

Every node has a value and a bound of its error in units of the unit round-off. Inputs have given errors; each operation
propagates the errors of its operands and adds its rounding error. The bound of a residual is the level below which it
is round-off, that is, the level that Newton's method can and must reach.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple, Protocol

import casadi as ca

from livens.expressions.graph.interpreter import OPS, interpret, operate
from livens.lookup_tables import LOOKUP_OPERATION
from livens.types import Expr

#: Unit round-off u of double precision: relative rounding error of one operation.
UNIT_ROUNDOFF = 2.0**-53
#: Operations computed by the C mathematical library (libm), accurate to one or a few units in the last place.
LIBM_OPS = frozenset(
    "EXP LOG SIN COS TAN ASIN ACOS ATAN SINH COSH TANH ASINH ACOSH ATANH ATAN2 POW CONSTPOW ERF LOG1P EXPM1 HYPOT FMOD "
    "REMAINDER".split()
)
#: Error bound of the vector mathematical library, in units in the last place.
VECTOR_LIBM_ULPS = 4


class Rounded(NamedTuple):
    value: Any
    error: Any  # in units of UNIT_ROUNDOFF


def uses_libm(function: ca.Function) -> bool:
    """Return True if a function contains libm operations."""
    codes = {OPS[name] for name in LIBM_OPS}
    return any(function.instruction_id(i) in codes for i in range(function.n_instructions()))


class Algebra(Protocol):
    """Protocol of the algebra of the bounds: CasADi expressions or registers of native code."""

    def op(self, name: str, *operands: object) -> Expr: ...
    def constant(self, value: float) -> Expr: ...
    def fabs(self, a: object) -> Expr: ...
    def add(self, a: object, b: object) -> Any: ...
    def mul(self, a: object, b: object) -> Expr: ...
    def larger(self, a: Expr, b: Expr) -> Expr: ...
    def where(self, condition: Any, a: Any, b: Any) -> Expr: ...
    def above(self, a: object, bound: float) -> Expr: ...
    def graph(self, function: ca.Function, operands: list[object]) -> list[Expr]: ...
    def number(self, a: Expr) -> float | None: ...


class SXAlgebra:
    """Algebra of bounds as CasADi SX expressions."""

    def op(self, name: str, *operands: object) -> Expr:
        return operate(name, *operands)

    def constant(self, value: float) -> Expr:
        return ca.SX(value)

    def fabs(self, a: Any) -> Expr:
        return ca.fabs(a)

    def add(self, a: Any, b: Any) -> Any:
        return a + b

    def mul(self, a: Any, b: Any) -> Expr:
        return a * b

    def larger(self, a: Expr, b: Expr) -> Expr:
        return ca.fmax(a, b)

    def where(self, condition: Any, a: Any, b: Any) -> Expr:
        return ca.if_else(condition, a, b)

    def above(self, a: Any, bound: float) -> Expr:
        return a > bound

    def graph(self, function: ca.Function, operands: list[Any]) -> list[Expr]:
        return list(function.call(operands))

    def number(self, a: Expr) -> float | None:
        return float(a) if a.is_constant() else None


def roundoff_bound(function: ca.Function, inputs: list[Any], errors: list[Any], libm_ulps: int = 1) -> Expr:
    """Return a bound of the rounding error of the first output at `inputs` with `errors`, in units of UNIT_ROUNDOFF.

    libm operations are accurate to `libm_ulps` units in the last place.
    """
    rounded_inputs = [
        [Rounded(vector[j], error[j]) for j in range(vector.numel())]
        for vector, error in zip(inputs, errors, strict=True)
    ]
    error_bounds = roundoff_bounds(SXAlgebra(), function, rounded_inputs, libm_ulps)
    return ca.vertcat(*error_bounds) if error_bounds else ca.SX(0, 1)


def roundoff_bounds(algebra: Algebra, function: ca.Function, inputs: Any, libm_ulps: int = 1) -> list[Any]:
    """Return the bounds of the nonzeros of the first output in any algebra; `inputs` are `Rounded` values."""
    zero = algebra.constant(0.0)
    apply = functools.partial(_apply, algebra, libm_ulps)
    (outputs, *_) = interpret(function, inputs, lambda c: Rounded(algebra.constant(c), zero), apply)
    return [output.error for output in outputs]


def _apply(algebra: Algebra, libm_ulps: int, name: str, a: Rounded, b: Rounded | None = None) -> Rounded:
    operands = (a,) if b is None else (a, b)
    value = algebra.op(name, *(operand.value for operand in operands))
    if name in ("ASSIGN", "NEG", "TWICE", "FABS"):
        return Rounded(value, algebra.add(a.error, a.error) if name == "TWICE" else a.error)
    if name in ("ADD", "SUB") and b is not None:
        return Rounded(value, algebra.add(algebra.add(a.error, b.error), algebra.fabs(value)))
    if name == "MUL" and b is not None:
        propagated = algebra.add(
            algebra.mul(algebra.fabs(a.value), b.error), algebra.mul(algebra.fabs(b.value), a.error)
        )
        exact = _is_power_of_two(algebra.number(a.value)) or _is_power_of_two(algebra.number(b.value))
        return Rounded(value, propagated if exact else algebra.add(propagated, algebra.fabs(value)))
    if name == "SQ":
        propagated = algebra.mul(algebra.mul(algebra.constant(2.0), algebra.fabs(a.value)), a.error)
        return Rounded(value, algebra.add(propagated, algebra.fabs(value)))
    if name == "IF_ELSE_ZERO" and b is not None:
        return Rounded(value, algebra.where(a.value, b.error, algebra.constant(0.0)))
    if name in ("LT", "LE", "EQ", "NE", "NOT", "AND", "OR", "SIGN", "FLOOR", "CEIL", LOOKUP_OPERATION):
        return Rounded(value, algebra.constant(0.0))
    if name in ("FMIN", "FMAX") and b is not None:
        return Rounded(value, algebra.larger(a.error, b.error))  # round-off may decide which operand is selected
    return Rounded(value, _propagate(algebra, libm_ulps, name, value, operands))


def _propagate(
    algebra: Algebra, libm_ulps: int, name: str, value: Expr | str, operands: tuple[Rounded, ...]
) -> Expr | str:
    """Return the error bound of a general operation by linear error propagation."""
    unit, rounding = algebra.constant(1.0), 2.0 * (libm_ulps if name in LIBM_OPS else 1)
    error = algebra.mul(algebra.constant(rounding), algebra.fabs(value))
    if name == "HYPOT":
        # the derivatives a/value and b/value have no limit at the origin, but are bounded by one
        positive = algebra.above(value, 0.0)
        safe = algebra.where(positive, value, unit)
        for component in operands:
            propagated = algebra.where(positive, algebra.op("DIV", algebra.fabs(component.value), safe), unit)
            error = algebra.add(error, algebra.mul(propagated, component.error))
        return error
    symbols = [ca.SX.sym("x") for _ in operands]
    operation = operate(name, *symbols)
    derivative_function = ca.Function("slopes", symbols, [ca.densify(ca.gradient(operation, s)) for s in symbols])
    derivatives = algebra.graph(derivative_function, [operand.value for operand in operands])
    zero = algebra.constant(0.0)
    if name == "POW":  # log(x) x^y, but for integers y also at x <= 0
        logarithm = algebra.mul(value, algebra.op("LOG", algebra.fabs(operands[0].value)))
        derivatives[1] = algebra.where(algebra.op("EQ", value, zero), zero, logarithm)
    for operand, derivative in zip(operands, derivatives, strict=True):
        # operands without error contribute nothing, also where the derivative is infinite
        propagated = algebra.mul(algebra.fabs(derivative), operand.error)
        error = algebra.add(error, algebra.where(algebra.above(operand.error, 0.0), propagated, zero))
    return error


def _is_power_of_two(value: float | None) -> bool:
    number = abs(value or 0.0)
    return number > 0 and float.hex(number).split("p")[0] == "0x1.0000000000000"
