"""Steps without classes of fronts: damped Newton steps with dense fronts, or with SuperLU, which pivots."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from livens.engine.assembled.assembly import Bench
from livens.engine.assembled.multifrontal import Multifrontal, glued
from livens.engine.reference import ReferenceSolver

#: With fewer unknowns than this, an order of nested dissection is not worth finding.
_FEW = 150
#: With more products than this for each unknown, the order of nested dissection is no good, and SuperLU is faster.
_MOST_PRODUCTS = 20_000
#: A solution is good if what it leaves of the right-hand side is at most this part of what was subtracted from it.
_GOOD = 1e-9


class AssembledSolver(ReferenceSolver):
    """As the reference tier solves a step, with equations that are summed up of pieces."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        #: What the equations remember of the steps before the one that is solved.
        self.memory = np.zeros(bench.assembly.pieces.memory.size)
        self._multifrontal: Multifrontal | None = None

    def residual(self, x: np.ndarray, z: np.ndarray, c: np.ndarray) -> np.ndarray:
        return self._bench.residual(x, z, self.memory, c)

    def bounds(self, x: np.ndarray, z: np.ndarray, c: np.ndarray, dx: np.ndarray) -> np.ndarray:
        return self._bench.scales(x, z, self.memory, c, dx)

    def linearised(
        self, x: np.ndarray, z: np.ndarray, c: np.ndarray
    ) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray, np.ndarray], Callable[[np.ndarray], np.ndarray]]:
        residual, values = self._bench.newton(x, z, self.memory, c)
        rows, columns, _ = self._bench.assembly.pattern

        def turned(solution: np.ndarray) -> np.ndarray:
            correction = np.ascontiguousarray(solution, dtype=float).copy()
            self._bench.turn(x, z, self.memory, c, correction)
            return correction

        return residual, (values, rows, columns), turned

    def row_name(self, i: int) -> str:
        return self._bench.assembly.pieces.row_names()[i]

    def _solved(self, values: np.ndarray, rows: np.ndarray, columns: np.ndarray, r: np.ndarray) -> np.ndarray:
        """By dense fronts with pivots on the diagonal, and where these are not good by SuperLU."""
        if r.size >= _FEW and self._multifrontal is None:
            pieces = self._bench.assembly.pieces
            block = glued(pieces.multiplier, pieces.body, rows, columns)
            self._multifrontal = Multifrontal(rows, columns, block, pieces.multiplier)
        if self._multifrontal is not None and self._multifrontal.products <= _MOST_PRODUCTS * r.size:
            with np.errstate(all="ignore"):
                found = self._multifrontal.solve(values, r)
                products = values * found[columns]
                left = np.abs(r - np.bincount(rows, products, minlength=r.size)).max()
                size = np.abs(r).max() + np.bincount(rows, np.abs(products), minlength=r.size).max()
            if left <= _GOOD * size < np.inf:
                return found
        return super()._solved(values, rows, columns, r)
