"""Arrays aligned to cache lines, for vectors of eight doubles."""

from __future__ import annotations

import numpy as np

#: Size of a cache line in bytes.
_CACHE_LINE_BYTES = 64


def aligned_zeros(*shape: int) -> np.ndarray:
    """Return zeros aligned to a cache line, so that no vector spans two lines."""
    count = int(np.prod(shape))
    buffer = np.zeros(count + _CACHE_LINE_BYTES // 8)
    start = -buffer.ctypes.data % _CACHE_LINE_BYTES // 8
    return buffer[start : start + count].reshape(shape)
