"""Code generation for the round-off bounds of the residual, without symbolic expressions of the bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np

from livens.engine.codegen.ir_emitter import ONE, ZERO, Emitter, literal, literal_value
from livens.expressions.graph.roundoff import UNIT_ROUNDOFF, Rounded, roundoff_bounds
from livens.schemes.core.step_equations import StepGraph

#: Lower limit of the rounding error of an unknown, relative to the largest unknown of its group.
RELATIVE_FLOOR_UNKNOWNS = 1e-4
#: Lower limit of the round-off bound of an equation, relative to the largest bound of its group.
RELATIVE_FLOOR_EQUATIONS = 1e-10
#: Additive constant that keeps the reciprocal finite where an entry is identically zero.
TINY = 1e-290


class FoldingArithmetic:
    """Arithmetic on emitted values with constant folding of zero and one."""

    def __init__(self, emitter: Emitter) -> None:
        self._emitter = emitter

    def op(self, name: str, *operands: str) -> str:
        return self._emitter.lower_op(name, *operands)

    def constant(self, value: float) -> str:
        return literal(value)

    def fabs(self, a: str) -> str:
        number = literal_value(a)
        return self._emitter.fabs(a) if number is None else literal(abs(number))

    def add(self, a: str, b: str) -> str:
        return b if a == ZERO else a if b == ZERO else self._emitter.add(a, b)

    def mul(self, a: str, b: str) -> str:
        if ZERO in (a, b):
            return ZERO
        return b if a == ONE else a if b == ONE else self._emitter.mul(a, b)

    def larger(self, a: str, b: str) -> str:
        return a if b == ZERO else b if a == ZERO else self._emitter.fmax(a, b)

    def where(self, condition: str, a: str, b: str) -> str:
        return a if a == b else self._emitter.select(self._emitter.to_bool(condition), a, b)

    def above(self, a: str, bound: float) -> str:
        return self._emitter.to_double(self._emitter.compare("ogt", a, literal(bound)))

    def graph(self, function: ca.Function, operands: Sequence[str]) -> list[str]:
        return [values[0] for values in self._emitter.graph(function, [[operand] for operand in operands])]

    def number(self, a: str) -> float | None:
        return literal_value(a)


def emit_inv_roundoff(
    emitter: Emitter, equations: StepGraph, inputs: Sequence[Sequence[str]], library: int
) -> list[str]:
    """Emit the bounds of `livens.engine.codegen.step_kernels.inv_roundoff_function` from values of (x, z, c, dx)."""
    arithmetic: Any = FoldingArithmetic(emitter)
    x, z, c, dx = inputs
    groups = np.split(np.arange(equations.size), np.cumsum(equations.block_sizes)[:-1])
    size, four = [arithmetic.fabs(x[i]) for i in range(equations.size)], literal(4.0)
    errors = list(size)
    for group in groups:
        lower_limit = _scaled_maximum(arithmetic, [size[i] for i in group], RELATIVE_FLOOR_UNKNOWNS)
        for i in group:
            errors[i] = arithmetic.add(
                arithmetic.add(size[i], arithmetic.mul(four, arithmetic.fabs(dx[i]))), lower_limit
            )
    intervals = [
        [Rounded(x[i], error) for i, error in enumerate(errors)],
        _RoundedInputs(arithmetic, z),
        _RoundedInputs(arithmetic, c),
    ]
    roundoff = [
        arithmetic.mul(literal(UNIT_ROUNDOFF), bound)
        for bound in roundoff_bounds(arithmetic, equations.residual_function, intervals, library)
    ]
    for group in groups:
        lower_limit = _scaled_maximum(arithmetic, [roundoff[i] for i in group], RELATIVE_FLOOR_EQUATIONS)
        for i in group:
            roundoff[i] = arithmetic.larger(roundoff[i], lower_limit)
    return [emitter.reciprocal(arithmetic.add(bound, literal(TINY))) for bound in roundoff]


class _RoundedInputs:
    """Inputs with a rounding error of one unit, loaded at first access."""

    def __init__(self, arithmetic: FoldingArithmetic, values: Sequence[str]) -> None:
        self._arithmetic, self._values = arithmetic, values

    def __getitem__(self, i: int) -> Rounded:
        return Rounded(self._values[i], self._arithmetic.fabs(self._values[i]))


def _scaled_maximum(arithmetic: FoldingArithmetic, values: Sequence[str], fraction: float) -> str:
    """Return a fraction of the maximum of the values."""
    largest = ZERO
    for value in values:
        largest = arithmetic.larger(largest, value)
    return str(arithmetic.mul(literal(fraction), largest))
