"""Ordering of ensemble members along a Morton (Z-order) curve: similar members share SIMD lanes."""

from __future__ import annotations

import numpy as np

#: Maximum number of columns of the Morton code, and correlation above which a column is redundant.
_AXES, _MAX_CORRELATION = 3, 0.95


def morton_order(z: np.ndarray, k: np.ndarray) -> np.ndarray:
    """Return the permutation that sorts members along the Morton curve of their initial values and parameters.

    Neighbours on the curve are similar in all columns, not only in the first one. Similar members need equal numbers of
    Newton iterations, so that no SIMD lane waits for another. The order depends on the values only.
    """
    columns = _varying_columns(z, k)
    if not len(columns):
        return np.arange(len(z))
    code = _morton_code(columns)
    order = np.argsort(code, kind="stable")
    if np.all(np.diff(code[order]) > 0):
        return order
    return np.lexsort((*columns[::-1], code))


def canonical_member(z: np.ndarray, k: np.ndarray) -> int:
    """Return a member that does not depend on the order of the members: the lexicographically smallest one."""
    ties = np.arange(len(z))
    for column in (*k.T, *z.T):
        values = column[ties]
        least = np.fmin.reduce(values)
        if least == least:
            ties = ties[values == least]
        if len(ties) == 1:
            break
    return int(ties[0])


def _varying_columns(z: np.ndarray, k: np.ndarray) -> np.ndarray:
    """Return the columns in which members differ, (n_columns, n_members)."""
    all_columns = [column for part in (k, z) for column in np.ascontiguousarray(part.T)]
    different = [column for column in all_columns if (column != column[0]).any()]
    return np.array(different) if different else np.zeros((0, len(z)))


def _morton_code(columns: np.ndarray) -> np.ndarray:
    """Return the Morton code of every member: interleaved bits of a few uncorrelated columns."""
    chosen: list[np.ndarray] = []
    for column in columns:
        low, high = column.min(), column.max()
        if not np.isfinite(high - low):
            continue
        position = (column - low) / (high - low)
        if all(abs(_correlation(position, other)) < _MAX_CORRELATION for other in chosen):
            chosen.append(position)
        if len(chosen) == _AXES:
            break
    bits = 62 // max(1, len(chosen))
    code = np.zeros(columns.shape[1], dtype=np.int64)
    integers = [np.minimum((position * 2.0**bits).astype(np.int64), 2**bits - 1) for position in chosen]
    for bit in reversed(range(bits)):
        for integer in integers:
            code = (code << 1) | ((integer >> bit) & 1)
    return code


def _correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Return the correlation of values between 0 and 1 from integer sums, which are exact in any order."""
    a, b = (np.round(values * 2.0**15).astype(np.int64) for values in (a, b))
    n, x, y = len(a), int(a.sum()), int(b.sum())
    moments = [n * int((c * d).sum()) - e * f for c, d, e, f in ((a, b, x, y), (a, a, x, x), (b, b, y, y))]
    return moments[0] / max(float(moments[1]) * float(moments[2]), 1.0) ** 0.5
