"""Fallback solver for steps that fronts do not solve: damped Newton iteration with SuperLU, which pivots."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from livens.engine.assembled.assembly import Bench
from livens.engine.reference import ReferenceSolver


class AssembledSolver(ReferenceSolver):
    """Reference solver on the assembled equations."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        #: History of the equations before the current step.
        self.memory = np.zeros(bench.assembly.pieces.memory.size)

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

    @property
    def kinds(self) -> tuple[int, ...]:
        return self._bench.assembly.pieces.kinds

    def row_name(self, i: int) -> str:
        return self._bench.assembly.pieces.row_names()[i]
