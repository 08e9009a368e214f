"""Native kernel for consistent initial momenta and multipliers of many ensemble members, in unrolled code."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from livens.engine import loop
from livens.engine.emit import ONE, ZERO, Emitter
from livens.engine.factors import Factors, Order
from livens.engine.kernels import writer
from livens.engine.native import find_or_compile

_OUT = 4


@dataclass(frozen=True)
class Linear:
    """Sparsity pattern of a square matrix, as required by `UnrolledLU`."""

    size: int
    rows: np.ndarray
    columns: np.ndarray
    turn: None = None


class StartCode:
    """Native code for a function of (x, z, c) that returns values, the nonzeros of a matrix, and a right-hand side.

    An output row contains the values, the solution of the linear system, the pivot growth, and the largest and smallest
    reciprocal of a pivot.
    """

    def __init__(self, function: ca.Function, matrix: Linear, order: Order) -> None:
        self.numbers, self.size = int(function.numel_out(0)), matrix.size
        self.width = self.numbers + matrix.size + 3
        places = f"{matrix.rows.tolist()} {matrix.columns.tolist()} {order}"
        content = f"{writer()} {places} {function.serialize()}"
        self._code = find_or_compile(content, lambda: _text(function, matrix, order), "start", 1)

    def __call__(self, t: float, Z: np.ndarray, X: np.ndarray, constants: np.ndarray) -> np.ndarray:
        """Return one output row for each row of Z and X."""
        out, times = np.empty((len(Z), self.width)), np.full(len(Z), t)
        loop.tabulate(self._code.address, np.ascontiguousarray(X), np.ascontiguousarray(Z), constants, times, out)
        return out


def _text(function: ca.Function, matrix: Linear, order: Order) -> str:
    emitter = Emitter("start", 5)
    inputs = [emitter.inputs(pointer, function.nnz_in(pointer)) for pointer in range(3)]
    numbers, entries, right = emitter.graph(function, inputs)
    factors = Factors(emitter, matrix, order, entries, right)
    solution = dict(factors.solution())
    found = [*numbers, *(solution[i] for i in range(matrix.size)), factors.growth, *_extremes(emitter, factors)]
    for i, value in enumerate(found):
        emitter.store(value, _OUT, i)
    return emitter.text()


def _extremes(emitter: Emitter, factors: Factors) -> tuple[str, str]:
    """Return the largest and the smallest reciprocal of a pivot."""
    sizes = [emitter.fabs(value) for value in factors.reciprocals]
    largest, smallest = (sizes[0], sizes[0]) if sizes else (ONE, ONE)
    for size in sizes[1:]:
        largest = emitter.larger(largest, size)
        smallest = emitter.select(emitter.compare("olt", smallest, size), smallest, size)
    return largest or ZERO, smallest or ZERO
