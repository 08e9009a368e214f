"""How much of a computed value can be round-off: a bound from the data itself.

Running error analysis: next to its value every node carries a bound of its error, in units of half an ulp. Inputs
come with their own errors, each operation adds its own rounding and passes on those of its operands. The result says
below which size a residual means nothing: the floor that Newton's method can reach and must reach.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import casadi as ca

from livens.expressions.graph.walk import OPS, walk

#: Relative rounding error of one operation.
UNIT = 2.0**-53
#: Functions that a mathematical library computes, to a unit in the last place or to a few.
LIBRARY = frozenset(
    "EXP LOG SIN COS TAN ASIN ACOS ATAN SINH COSH TANH ASINH ACOSH ATANH ATAN2 POW CONSTPOW ERF LOG1P EXPM1 HYPOT FMOD "
    "REMAINDER".split()
)
#: How many units in the last place the library for vectors may be off.
VECTOR_LIBRARY = 4


class Rounded(NamedTuple):
    value: Any
    error: Any  # in units of UNIT


def uses_library(function: ca.Function) -> bool:
    """Whether a function calls the mathematical library."""
    codes = {OPS[name] for name in LIBRARY}
    return any(function.instruction_id(i) in codes for i in range(function.n_instructions()))


def roundoff_bound(function: ca.Function, inputs: list[Any], errors: list[Any], library: int = 1) -> Any:
    """A bound of the rounding error of the first output at `inputs`, which have errors `errors`; in units of UNIT.

    Library functions are good to `library` units in the last place.
    """
    lifted = [
        [Rounded(vector[j], error[j]) for j in range(vector.numel())]
        for vector, error in zip(inputs, errors, strict=True)
    ]
    apply = functools.partial(_apply, library)
    (outputs, *_) = walk(function, lifted, lambda c: Rounded(ca.SX(c), ca.SX(0)), apply)
    return ca.vertcat(*(o.error for o in outputs)) if outputs else ca.SX(0, 1)


def _apply(library: int, name: str, a: Rounded, b: Rounded | None = None) -> Rounded:
    operands = (a,) if b is None else (a, b)
    value = ca.SX.unary(OPS[name], a.value) if b is None else ca.SX.binary(OPS[name], a.value, b.value)
    if name in ("ASSIGN", "NEG", "TWICE", "FABS"):
        return Rounded(value, 2 * a.error if name == "TWICE" else a.error)
    if name in ("ADD", "SUB") and b is not None:
        return Rounded(value, a.error + b.error + ca.fabs(value))
    if name == "MUL" and b is not None:
        own = ca.SX(0) if _is_power_of_two(a.value) or _is_power_of_two(b.value) else ca.fabs(value)
        return Rounded(value, ca.fabs(a.value) * b.error + ca.fabs(b.value) * a.error + own)
    if name == "SQ":
        return Rounded(value, 2 * ca.fabs(a.value) * a.error + ca.fabs(value))
    if name == "IF_ELSE_ZERO" and b is not None:
        return Rounded(value, ca.if_else(a.value, b.error, 0))
    if name in ("LT", "LE", "EQ", "NE", "NOT", "AND", "OR", "SIGN", "FLOOR", "CEIL"):
        return Rounded(value, ca.SX(0))
    if name in ("FMIN", "FMAX") and b is not None:
        return Rounded(value, ca.fmax(a.error, b.error))  # which one it is may be a matter of round-off itself
    if name == "HYPOT" and b is not None:
        # its slopes a/value and b/value have no limit at the origin, but are never larger than one
        safe = ca.if_else(value > 0, value, 1)
        passed = [ca.if_else(value > 0, ca.fabs(side.value) / safe, 1) * side.error for side in (a, b)]
        return Rounded(value, passed[0] + passed[1] + 2 * library * ca.fabs(value))
    # everything else by its derivatives
    error = 2 * (library if name in LIBRARY else 1) * ca.fabs(value)
    symbols = [ca.SX.sym("x") for _ in operands]
    slot = ca.SX.unary(OPS[name], *symbols) if b is None else ca.SX.binary(OPS[name], *symbols)
    slopes = ca.Function("slopes", symbols, [ca.gradient(slot, s) for s in symbols])
    derivatives = slopes.call([o.value for o in operands])
    if name == "POW":  # log(x) x^y, but for integers y also at x <= 0
        derivatives[1] = ca.if_else(value == 0, 0, value * ca.log(ca.fabs(a.value)))
    for operand, slope in zip(operands, derivatives, strict=True):
        # no error, no share in it: also where the slope is infinite
        error += ca.if_else(operand.error > 0, ca.fabs(slope) * operand.error, 0)
    return Rounded(value, error)


def _is_power_of_two(value: Any) -> bool:
    if not value.is_constant():
        return False
    number = abs(float(value))
    return number > 0 and float.hex(number).split("p")[0] == "0x1.0000000000000"
