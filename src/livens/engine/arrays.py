"""Arrays of native code: zeros aligned to cache lines, offsets of contiguous segments."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

#: Size of a cache line, and of a vector of eight doubles, in bytes.
_CACHE_LINE_BYTES = 64


def aligned_zeros(*shape: int) -> np.ndarray:
    """Return zeros aligned to a cache line, so that no vector spans two lines."""
    count = int(np.prod(shape))
    buffer = np.zeros(count + _CACHE_LINE_BYTES // 8)
    start = -buffer.ctypes.data % _CACHE_LINE_BYTES // 8
    return buffer[start : start + count].reshape(shape)


def offsets(sizes: np.ndarray | Sequence[int]) -> np.ndarray:
    """Return the offsets of contiguous segments of these sizes, and their total size as the last entry."""
    result = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=result[1:])
    return result
