"""Code generation for the round-off bounds of the residual, without symbolic expressions of the bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np

from livens.engine.emit import ONE, ZERO, Emitter, as_number, literal
from livens.expressions.graph.roundoff import UNIT, Rounded, bounds
from livens.schemes.step import FlatEquations

#: Lower limit of the rounding error of an unknown, relative to the largest unknown of its group.
OWN_DIGITS = 1e-4
#: Lower limit of the round-off bound of an equation, relative to the largest bound of its group.
OWN_BOUND = 1e-10
#: Additive constant that keeps the reciprocal finite where an entry is identically zero.
TINY = 1e-290


class Registers:
    """Arithmetic on emitted values with constant folding of zero and one."""

    def __init__(self, emitter: Emitter) -> None:
        self._emitter = emitter

    def op(self, name: str, *operands: str) -> str:
        return self._emitter.apply(name, *operands)

    def constant(self, value: float) -> str:
        return literal(value)

    def fabs(self, a: str) -> str:
        number = as_number(a)
        return self._emitter.fabs(a) if number is None else literal(abs(number))

    def add(self, a: str, b: str) -> str:
        return b if a == ZERO else a if b == ZERO else self._emitter.add(a, b)

    def mul(self, a: str, b: str) -> str:
        if ZERO in (a, b):
            return ZERO
        return b if a == ONE else a if b == ONE else self._emitter.mul(a, b)

    def larger(self, a: str, b: str) -> str:
        return a if b == ZERO else b if a == ZERO else self._emitter.larger(a, b)

    def where(self, condition: str, a: str, b: str) -> str:
        return a if a == b else self._emitter.select(self._emitter.truth(condition), a, b)

    def above(self, a: str, bound: float) -> str:
        return self._emitter.number(self._emitter.compare("ogt", a, literal(bound)))

    def graph(self, function: ca.Function, operands: Sequence[str]) -> list[str]:
        return [values[0] for values in self._emitter.graph(function, [[operand] for operand in operands])]

    def number(self, a: str) -> float | None:
        return as_number(a)


def write_floor(emitter: Emitter, equations: FlatEquations, inputs: Sequence[Sequence[str]], library: int) -> list[str]:
    """Emit the bounds of `livens.engine.codegen.step_kernels.inv_roundoff_function` from values of (x, z, c, dx)."""
    of: Any = Registers(emitter)
    x, z, c, dx = inputs
    kinds = np.split(np.arange(equations.size), np.cumsum(equations.kinds)[:-1])
    size, four = [of.fabs(x[i]) for i in range(equations.size)], literal(4.0)
    errors = list(size)
    for kind in kinds:
        most = _largest(of, [size[i] for i in kind], OWN_DIGITS)
        for i in kind:
            errors[i] = of.add(of.add(size[i], of.mul(four, of.fabs(dx[i]))), most)
    lifted = [[Rounded(x[i], error) for i, error in enumerate(errors)], _Given(of, z), _Given(of, c)]
    found = [of.mul(literal(UNIT), bound) for bound in bounds(of, equations.residual_function, lifted, library)]
    for kind in kinds:
        most = _largest(of, [found[i] for i in kind], OWN_BOUND)
        for i in kind:
            found[i] = of.larger(found[i], most)
    return [emitter.reciprocal(of.add(bound, literal(TINY))) for bound in found]


class _Given:
    """Inputs with a rounding error of one unit, loaded at first access."""

    def __init__(self, of: Registers, values: Sequence[str]) -> None:
        self._of, self._values = of, values

    def __getitem__(self, i: int) -> Rounded:
        return Rounded(self._values[i], self._of.fabs(self._values[i]))


def _largest(of: Any, values: Sequence[str], part: float) -> str:
    """Return a fraction of the maximum of the values."""
    found = ZERO
    for value in values:
        found = of.larger(found, value)
    return str(of.mul(literal(part), found))
