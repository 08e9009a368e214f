"""Arrays aligned to cache lines, for vector loads of native code."""

from __future__ import annotations

import numpy as np


def aligned(*shape: int) -> np.ndarray:
    """Return a zero array whose address is a multiple of 64 bytes."""
    size = int(np.prod(shape))
    raw = np.zeros(size + 8)
    return raw[(-raw.ctypes.data // 8) % 8 :][:size].reshape(shape)
