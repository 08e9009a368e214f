"""Arrays that vectors of native code can be loaded from."""

from __future__ import annotations

import numpy as np


def aligned(*shape: int) -> np.ndarray:
    """Zeros at an address that 64 divides."""
    size = int(np.prod(shape))
    raw = np.zeros(size + 8)
    return raw[(-raw.ctypes.data // 8) % 8 :][:size].reshape(shape)
