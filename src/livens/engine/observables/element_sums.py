"""Observables summed over elements at every row of a run: one small kernel per element type, eight elements at a time.

Sums are compensated (TwoSum), so that sums over ten thousand elements are as accurate as sums over ten.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from livens.engine.arrays import aligned_zeros
from livens.engine.codegen.jit import NativeCode
from livens.engine.codegen.step_kernels import compile_function_kernel
from livens.engine.lowering.function import compile_unit, lowered
from livens.engine.lowering.intrinsics import call_kernel
from livens.engine.lowering.types import F64Array, I32Array, I64Array, Struct
from livens.engine.observables.drift_monitor import accumulate_rows
from livens.models.element_sums import BilinearForm, ElementSums, GroupKernel

WIDTH = 8


@dataclass(frozen=True, eq=False)
class ElementKernelArrays(Struct):
    """Index arrays of the elements of one type, in blocks of eight: (n_entries, n_padded), one column per element."""

    n_elements: int
    n_padded: int  # number of elements rounded up to whole blocks
    n_state_indices: int
    state_indices: I32Array  # indices of state entries
    n_param_indices: int
    param_indices: I32Array  # indices of element parameters
    n_sums: int
    sum_columns: I64Array  # output columns
    n_maxima: int
    max_columns: I64Array
    n_scattered: int
    scatter_indices: I32Array

    @property
    def n_outputs(self) -> int:
        """Number of kernel outputs per element."""
        return self.n_sums + self.n_maxima + self.n_scattered


class ElementObservables:
    """Observables summed over elements, compiled to native code over engine states.

    Parameters
    ----------
    columns : ElementColumns
        Element groups, output columns and products of state entries.
    """

    def __init__(self, columns: ElementSums) -> None:
        self.width, self._shared = columns.n_outputs, columns.n_shared
        self._code: list[NativeCode] = []
        self._arrays: list[ElementKernelArrays] = []
        for group in columns.groups:
            self._code.append(compile_function_kernel(group.function, "columns", opt_level=1, width=WIDTH))
            self._arrays.append(_element_arrays(group, columns.n_shared))
        self._products = [
            (column, absolute, *part)
            for column, absolute, products in columns.bilinear
            for part in _split_products(products)
        ]

    def __call__(self, t: np.ndarray, Z: np.ndarray, k: np.ndarray, X: np.ndarray | None = None) -> np.ndarray:
        """Return one row for each state.

        Parameters
        ----------
        t : ndarray
            Times, (n_rows,).
        Z : ndarray
            States that start with q, v and p, (n_rows, n_state).
        k : ndarray
            Parameter vector.
        X : ndarray, optional
            Lagrange multipliers, (n_rows, n_multipliers), if columns depend on them.

        Returns
        -------
        ndarray
            Observables, (n_rows, width).
        """
        Z = np.ascontiguousarray(Z if X is None else np.hstack([Z, X]))
        t, k = np.ascontiguousarray(t, dtype=float), np.ascontiguousarray(k, dtype=float)
        rows, width = Z.shape
        hi, lo = np.zeros((len(t), self.width)), np.zeros((len(t), self.width))
        for code, arrays in zip(self._code, self._arrays, strict=True):
            x, y = aligned_zeros(max(1, arrays.n_state_indices), WIDTH), aligned_zeros(arrays.n_outputs, WIDTH)
            c, work = (
                aligned_zeros(1 + self._shared + arrays.n_param_indices, WIDTH),
                aligned_zeros(2 * arrays.n_outputs, WIDTH),
            )
            c[1 : 1 + self._shared] = k[: self._shared, None]
            _accumulate_elements(
                code.address, arrays, rows, width, t, Z, k, self._shared, x, c, y, work, self.width, hi, lo
            )
        work = aligned_zeros(2, WIDTH)
        for column, absolute, first_index, second_index, values in self._products:
            size, paired, wide = first_index.size, second_index.size > 0, self.width
            _accumulate_products(
                Z, rows, width, first_index, second_index, values, size, paired, absolute, column, wide, work, hi, lo
            )
        return hi + lo

    def accumulate(
        self,
        t: np.ndarray,
        Z: np.ndarray,
        k: np.ndarray,
        supplied_index: int,
        is_start: bool,
        initial_row: np.ndarray,
        last_energy: np.ndarray,
        *monitor: np.ndarray,
    ) -> None:
        """Update the drift monitor with the rows of these states.

        Parameters
        ----------
        t : ndarray
            Times, (n_rows,).
        Z : ndarray
            States, (n_rows, n_state).
        k : ndarray
            Parameter vector.
        supplied_index : int
            Index of the supplied energy in the state, followed by the dissipated energy; -1 if there is none.
        is_start : bool
            Whether the first state is the initial state of the run.
        initial_row : ndarray
            Initial monitor row; overwritten if `is_start`.
        last_energy : ndarray
            Energy of the last row, (1,); updated.
        *monitor : ndarray
            Further arguments of `livens.engine.observables.drift_monitor.accumulate_rows`.
        """
        table = self(t, Z, k)
        net_work = np.zeros(len(t)) if supplied_index < 0 else Z[:, supplied_index] - Z[:, supplied_index + 1]
        if is_start:
            initial_row[:], last_energy[0] = table[0], table[0, 0] - net_work[0]
        accumulate_rows(table, net_work, initial_row, last_energy, *monitor)


def _element_arrays(group: GroupKernel, shared: int) -> ElementKernelArrays:
    state_indices, param_indices, scatter_indices = (
        _to_lanes(group.state_dofs),
        _to_lanes(group.group.parameters[:, shared:]),
        _to_lanes(group.scatter),
    )
    sums, largest = np.array(group.sum_targets, dtype=np.int64), np.array(group.max_targets, dtype=np.int64)
    return ElementKernelArrays(
        *(group.group.count, state_indices.shape[1]),
        *(len(state_indices), state_indices),
        *(len(param_indices), param_indices),
        *(sums.size, sums),
        *(largest.size, largest),
        *(len(scatter_indices), scatter_indices),
    )


def _split_products(products: BilinearForm) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Split products into products of two entries and single entries."""
    is_product = products.columns >= 0
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for chosen, second_index in ((is_product, products.columns[is_product]), (~is_product, np.zeros(0))):
        if chosen.any():
            first_index, values = _pad(products.rows[chosen]), _pad(products.values[chosen])
            parts.append((first_index.astype(np.int32), _pad(second_index).astype(np.int32), values))
    return parts


def _pad(array: np.ndarray) -> np.ndarray:
    """Pad an array with zeros to whole blocks."""
    return np.concatenate([array, np.zeros(-len(array) % WIDTH, dtype=array.dtype)])


def _to_lanes(table: np.ndarray) -> np.ndarray:
    """Transpose a table to (n_entries, n_padded); the last block is padded with the last element."""
    blocks = -(-len(table) // WIDTH)
    padded = np.minimum(np.arange(blocks * WIDTH), len(table) - 1)
    return np.ascontiguousarray(table[padded].T, dtype=np.int32)


@lowered
def _accumulate_elements(
    kernel: int,
    arrays: ElementKernelArrays,
    n_rows: int,
    width: int,
    t: F64Array,
    Z: F64Array,
    k: F64Array,
    shared: int,
    x: F64Array,
    c: F64Array,
    y: F64Array,
    work: F64Array,
    n_columns: int,
    hi: F64Array,
    lo: F64Array,
) -> None:
    """Accumulate the outputs of all elements of a type for every row of Z. NaN propagates."""
    n_sums, n_maxima, n_scattered = arrays.n_sums, arrays.n_maxima, arrays.n_scattered
    total, compensation, running_max = work, work + 8 * n_sums, work + 16 * n_sums
    outputs, n_padded = n_sums + n_maxima + n_scattered, arrays.n_padded
    for s in range(n_rows):
        z, row_hi, row_lo = Z + s * width, hi + s * n_columns, lo + s * n_columns
        for lane in range(8):
            c[lane] = t[s]
        for i in range(8 * (2 * n_sums + n_maxima)):
            work[i] = 0.0
        for start in range(0, arrays.n_elements, 8):
            for i in range(arrays.n_state_indices):
                indices = arrays.state_indices + (i * n_padded + start)
                for lane in range(8):
                    x[8 * i + lane] = z[indices[lane]]
            for i in range(arrays.n_param_indices):
                param_index = arrays.param_indices + (i * n_padded + start)
                for lane in range(8):
                    c[8 * (1 + shared + i) + lane] = k[param_index[lane]]
            call_kernel(kernel, x, x, c, y, y)
            for lane in range(arrays.n_elements - start, 8):  # padding: a repeated element
                for j in range(outputs):
                    y[8 * j + lane] = 0.0
            for i in range(8 * n_sums):
                _two_sum_into(total, compensation, i, y[i])
            for i in range(8 * n_maxima):
                value = y[8 * n_sums + i]
                if not value <= running_max[i] and running_max[i] == running_max[i]:
                    running_max[i] = value
            for j in range(n_scattered):
                target, value_of = arrays.scatter_indices + (j * n_padded + start), y + 8 * (n_sums + n_maxima + j)
                for lane in range(8):
                    row_hi[target[lane]] += value_of[lane]
        for j in range(n_sums):
            for lane in range(8):
                _two_sum_into_checked(row_hi, row_lo, arrays.sum_columns[j], total[8 * j + lane])
                row_lo[arrays.sum_columns[j]] += compensation[8 * j + lane]
        for j in range(n_maxima):
            column = arrays.max_columns[j]
            for lane in range(8):
                value = running_max[8 * j + lane]
                if not value <= row_hi[column] and row_hi[column] == row_hi[column]:
                    row_hi[column] = value


@lowered
def _accumulate_products(
    Z: F64Array,
    n_rows: int,
    width: int,
    first_index: I32Array,
    second_index: I32Array,
    values: F64Array,
    size: int,
    paired: bool,
    absolute: bool,
    column: int,
    n_columns: int,
    work: F64Array,
    hi: F64Array,
    lo: F64Array,
) -> None:
    """Accumulate products of state entries of every row of Z in a column; if not `paired`, single entries."""
    total, compensation = work, work + 8  # eight independent sums: one would be limited by the latency of additions
    for s in range(n_rows):
        z = Z + s * width
        for i in range(16):
            work[i] = 0.0
        for block in range(0, size, 8):
            for lane in range(8):
                i = block + lane
                b = values[i] * z[first_index[i]]
                if paired:
                    b *= z[second_index[i]]
                _two_sum_into(total, compensation, lane, abs(b) if absolute else b)
        row_hi, row_lo = hi + s * n_columns, lo + s * n_columns
        for lane in range(8):
            _two_sum_into_checked(row_hi, row_lo, column, total[lane])
            row_lo[column] += compensation[lane]


@lowered
def _two_sum_into(total: F64Array, compensation: F64Array, i: int, b: float) -> None:
    """Add a number to a compensated sum (TwoSum)."""
    a = total[i]
    total_new = a + b
    part = total_new - a
    compensation[i] += (a - (total_new - part)) + (b - part)
    total[i] = total_new


@lowered
def _two_sum_into_checked(hi: F64Array, lo: F64Array, column: int, b: float) -> None:
    """Add a number to a compensated sum (TwoSum); infinities and NaN leave the compensation unchanged."""
    a = hi[column]
    total_new = a + b
    part = total_new - a
    error = (a - (total_new - part)) + (b - part)
    hi[column] = total_new
    if error == error:
        lo[column] += error


compile_unit(_accumulate_elements, _accumulate_products)


def precompile() -> None:
    """Compile the native code, once per machine."""
    cast(Any, _accumulate_elements).compile()
