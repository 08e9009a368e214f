"""Fallback solver for steps that fronts do not solve: damped Newton iteration with SuperLU, which pivots."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from livens.engine.assembled.assembly import AssemblyWorkspace
from livens.engine.steppers.reference import ReferenceSolver


class AssembledSolver(ReferenceSolver):
    """Reference solver on the assembled equations."""

    def __init__(self, workspace: AssemblyWorkspace) -> None:
        self._workspace = workspace
        #: History of the equations before the current step.
        self.history = np.zeros(workspace.assembly.plan.compensation_layout.size)

    def residual(self, x: np.ndarray, z: np.ndarray, c: np.ndarray) -> np.ndarray:
        return self._workspace.residual(x, z, self.history, c)

    def inv_roundoff_after(self, x: np.ndarray, z: np.ndarray, c: np.ndarray, dx: np.ndarray) -> np.ndarray:
        return self._workspace.reciprocal_bounds(x, z, self.history, c, dx)

    def linearize(
        self, x: np.ndarray, z: np.ndarray, c: np.ndarray
    ) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray, np.ndarray], Callable[[np.ndarray], np.ndarray]]:
        residual, values = self._workspace.newton(x, z, self.history, c)
        rows, columns, _ = self._workspace.assembly.pattern

        def to_increment(solution: np.ndarray) -> np.ndarray:
            correction = np.ascontiguousarray(solution, dtype=float).copy()
            self._workspace.to_increment(x, z, self.history, c, correction)
            return correction

        return residual, (values, rows, columns), to_increment

    @property
    def group_sizes(self) -> tuple[int, ...]:
        return self._workspace.assembly.plan.block_sizes

    def row_name(self, i: int) -> str:
        return self._workspace.assembly.plan.equation_labels()[i]
