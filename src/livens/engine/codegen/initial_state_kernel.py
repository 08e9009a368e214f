"""Native kernel for consistent initial momenta and multipliers of many ensemble members, in unrolled code."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from livens.engine.codegen.fingerprint import codegen_fingerprint
from livens.engine.codegen.ir_emitter import ONE, ZERO, Emitter
from livens.engine.codegen.jit import load_or_compile
from livens.engine.codegen.unrolled_lu import PivotOrder, UnrolledLU
from livens.engine.newton import time_loop

_OUT = 4


@dataclass(frozen=True)
class MatrixPattern:
    """Sparsity pattern of a square matrix, as required by `UnrolledLU`."""

    size: int
    jac_rows: np.ndarray
    jac_cols: np.ndarray
    update_matrix: None = None


class InitialStateKernel:
    """Native code for a function of (x, z, c) that returns values, the nonzeros of a matrix, and a right-hand side.

    An output row contains the values, the solution of the linear system, the pivot growth, and the largest and smallest
    reciprocal of a pivot.
    """

    def __init__(self, function: ca.Function, matrix: MatrixPattern, order: PivotOrder) -> None:
        self.n_values, self.size = int(function.numel_out(0)), matrix.size
        self.width = self.n_values + matrix.size + 3
        pattern = f"{matrix.jac_rows.tolist()} {matrix.jac_cols.tolist()} {order}"
        key = f"{codegen_fingerprint()} {pattern} {function.serialize()}"
        self._code = load_or_compile(key, lambda: _initial_state_ir(function, matrix, order), "start", 1)

    def __call__(self, t: float, Z: np.ndarray, X: np.ndarray, step_inputs: np.ndarray) -> np.ndarray:
        """Return one output row for each row of Z and X."""
        out, times = np.empty((len(Z), self.width)), np.full(len(Z), t)
        time_loop.tabulate(
            self._code.address, np.ascontiguousarray(X), np.ascontiguousarray(Z), step_inputs, times, out
        )
        return out


def _initial_state_ir(function: ca.Function, matrix: MatrixPattern, order: PivotOrder) -> str:
    emitter = Emitter("start", 5)
    inputs = [emitter.inputs(pointer, function.nnz_in(pointer)) for pointer in range(3)]
    values, entries, rhs = emitter.graph(function, inputs)
    lu = UnrolledLU(emitter, matrix, order, entries, rhs)
    solution = dict(lu.solve_attached_rhs())
    outputs = [
        *values,
        *(solution[i] for i in range(matrix.size)),
        lu.pivot_growth,
        *_extreme_inverse_pivots(emitter, lu),
    ]
    for i, value in enumerate(outputs):
        emitter.store(value, _OUT, i)
    return emitter.to_ir()


def _extreme_inverse_pivots(emitter: Emitter, lu: UnrolledLU) -> tuple[str, str]:
    """Return the largest and the smallest reciprocal of a pivot."""
    magnitudes = [emitter.fabs(value) for value in lu.inverse_pivots]
    largest, smallest = (magnitudes[0], magnitudes[0]) if magnitudes else (ONE, ONE)
    for size in magnitudes[1:]:
        largest = emitter.fmax(largest, size)
        smallest = emitter.select(emitter.compare("olt", smallest, size), smallest, size)
    return largest or ZERO, smallest or ZERO
