"""Running error analysis: round-off bounds of computed values.

Every node has a value and a bound of its error in units of the unit round-off. Inputs have given errors; each operation
propagates the errors of its operands and adds its rounding error. The bound of a residual is the level below which it
is round-off, that is, the level that Newton's method can and must reach.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple, Protocol

import casadi as ca

from livens.expressions.graph.walk import OPS, walk

#: Unit round-off u of double precision: relative rounding error of one operation.
UNIT = 2.0**-53
#: Operations computed by the C mathematical library (libm), accurate to one or a few units in the last place.
LIBRARY = frozenset(
    "EXP LOG SIN COS TAN ASIN ACOS ATAN SINH COSH TANH ASINH ACOSH ATANH ATAN2 POW CONSTPOW ERF LOG1P EXPM1 HYPOT FMOD "
    "REMAINDER".split()
)
#: Error bound of the vector mathematical library, in units in the last place.
VECTOR_LIBRARY = 4


class Rounded(NamedTuple):
    value: Any
    error: Any  # in units of UNIT_ROUNDOFF


def uses_library(function: ca.Function) -> bool:
    """Return True if a function contains libm operations."""
    codes = {OPS[name] for name in LIBRARY}
    return any(function.instruction_id(i) in codes for i in range(function.n_instructions()))


class Algebra(Protocol):
    """Protocol of the algebra of the bounds: CasADi expressions or registers of native code."""

    def op(self, name: str, *operands: Any) -> Any: ...
    def constant(self, value: float) -> Any: ...
    def fabs(self, a: Any) -> Any: ...
    def add(self, a: Any, b: Any) -> Any: ...
    def mul(self, a: Any, b: Any) -> Any: ...
    def larger(self, a: Any, b: Any) -> Any: ...
    def where(self, condition: Any, a: Any, b: Any) -> Any: ...
    def above(self, a: Any, bound: float) -> Any: ...
    def graph(self, function: ca.Function, operands: list[Any]) -> list[Any]: ...
    def number(self, a: Any) -> float | None: ...


class Expressions:
    """Algebra of bounds as CasADi SX expressions."""

    def op(self, name: str, *operands: Any) -> Any:
        return (ca.SX.unary if len(operands) == 1 else ca.SX.binary)(OPS[name], *operands)

    def constant(self, value: float) -> Any:
        return ca.SX(value)

    def fabs(self, a: Any) -> Any:
        return ca.fabs(a)

    def add(self, a: Any, b: Any) -> Any:
        return a + b

    def mul(self, a: Any, b: Any) -> Any:
        return a * b

    def larger(self, a: Any, b: Any) -> Any:
        return ca.fmax(a, b)

    def where(self, condition: Any, a: Any, b: Any) -> Any:
        return ca.if_else(condition, a, b)

    def above(self, a: Any, bound: float) -> Any:
        return a > bound

    def graph(self, function: ca.Function, operands: list[Any]) -> list[Any]:
        return list(function.call(operands))

    def number(self, a: Any) -> float | None:
        return float(a) if a.is_constant() else None


def roundoff_bound(function: ca.Function, inputs: list[Any], errors: list[Any], library: int = 1) -> Any:
    """Return a bound of the rounding error of the first output at `inputs` with `errors`, in units of UNIT_ROUNDOFF.

    libm operations are accurate to `libm_ulps` units in the last place.
    """
    lifted = [
        [Rounded(vector[j], error[j]) for j in range(vector.numel())]
        for vector, error in zip(inputs, errors, strict=True)
    ]
    found = bounds(Expressions(), function, lifted, library)
    return ca.vertcat(*found) if found else ca.SX(0, 1)


def bounds(algebra: Algebra, function: ca.Function, inputs: Any, library: int = 1) -> list[Any]:
    """Return the bounds of the nonzeros of the first output in any algebra; `inputs` are `Rounded` values."""
    zero = algebra.constant(0.0)
    apply = functools.partial(_apply, algebra, library)
    (outputs, *_) = walk(function, inputs, lambda c: Rounded(algebra.constant(c), zero), apply)
    return [one.error for one in outputs]


def _apply(of: Algebra, library: int, name: str, a: Rounded, b: Rounded | None = None) -> Rounded:
    operands = (a,) if b is None else (a, b)
    value = of.op(name, *(operand.value for operand in operands))
    if name in ("ASSIGN", "NEG", "TWICE", "FABS"):
        return Rounded(value, of.add(a.error, a.error) if name == "TWICE" else a.error)
    if name in ("ADD", "SUB") and b is not None:
        return Rounded(value, of.add(of.add(a.error, b.error), of.fabs(value)))
    if name == "MUL" and b is not None:
        passed = of.add(of.mul(of.fabs(a.value), b.error), of.mul(of.fabs(b.value), a.error))
        exact = _is_power_of_two(of.number(a.value)) or _is_power_of_two(of.number(b.value))
        return Rounded(value, passed if exact else of.add(passed, of.fabs(value)))
    if name == "SQ":
        passed = of.mul(of.mul(of.constant(2.0), of.fabs(a.value)), a.error)
        return Rounded(value, of.add(passed, of.fabs(value)))
    if name == "IF_ELSE_ZERO" and b is not None:
        return Rounded(value, of.where(a.value, b.error, of.constant(0.0)))
    if name in ("LT", "LE", "EQ", "NE", "NOT", "AND", "OR", "SIGN", "FLOOR", "CEIL"):
        return Rounded(value, of.constant(0.0))
    if name in ("FMIN", "FMAX") and b is not None:
        return Rounded(value, of.larger(a.error, b.error))  # round-off may decide which operand is selected
    return Rounded(value, _by_slopes(of, library, name, value, operands))


def _by_slopes(of: Algebra, library: int, name: str, value: Any, operands: tuple[Rounded, ...]) -> Any:
    """Return the error bound of a general operation by linear error propagation."""
    one, own = of.constant(1.0), 2.0 * (library if name in LIBRARY else 1)
    error = of.mul(of.constant(own), of.fabs(value))
    if name == "HYPOT":
        # the derivatives a/value and b/value have no limit at the origin, but are bounded by one
        positive = of.above(value, 0.0)
        safe = of.where(positive, value, one)
        for side in operands:
            share = of.where(positive, of.op("DIV", of.fabs(side.value), safe), one)
            error = of.add(error, of.mul(share, side.error))
        return error
    symbols = [ca.SX.sym("x") for _ in operands]
    slot = ca.SX.unary(OPS[name], *symbols) if len(symbols) == 1 else ca.SX.binary(OPS[name], *symbols)
    slopes = ca.Function("slopes", symbols, [ca.densify(ca.gradient(slot, s)) for s in symbols])
    derivatives = of.graph(slopes, [operand.value for operand in operands])
    zero = of.constant(0.0)
    if name == "POW":  # log(x) x^y, but for integers y also at x <= 0
        logarithm = of.mul(value, of.op("LOG", of.fabs(operands[0].value)))
        derivatives[1] = of.where(of.op("EQ", value, zero), zero, logarithm)
    for operand, slope in zip(operands, derivatives, strict=True):
        # operands without error contribute nothing, also where the derivative is infinite
        share = of.mul(of.fabs(slope), operand.error)
        error = of.add(error, of.where(of.above(operand.error, 0.0), share, zero))
    return error


def _is_power_of_two(value: float | None) -> bool:
    number = abs(value or 0.0)
    return number > 0 and float.hex(number).split("p")[0] == "0x1.0000000000000"
