"""Arrays for vectors of eight numbers: they begin where a cache line begins."""

from __future__ import annotations

import numpy as np

#: Bytes of a cache line.
_LINE = 64


def aligned_zeros(*shape: int) -> np.ndarray:
    """Zeros that begin at a cache line: a vector then lies in one line, and not across two."""
    count = int(np.prod(shape))
    room = np.zeros(count + _LINE // 8)
    first = -room.ctypes.data % _LINE // 8
    return room[first : first + count].reshape(shape)
