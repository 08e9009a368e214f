"""Arrays aligned to cache lines, for vectors of eight doubles."""

from __future__ import annotations

import numpy as np

#: Size of a cache line in bytes.
_LINE = 64


def aligned_zeros(*shape: int) -> np.ndarray:
    """Return zeros aligned to a cache line, so that no vector spans two lines."""
    count = int(np.prod(shape))
    room = np.zeros(count + _LINE // 8)
    first = -room.ctypes.data % _LINE // 8
    return room[first : first + count].reshape(shape)
