"""Arrays of large systems: where they begin, and that they are used again."""

from __future__ import annotations

import sys

import numpy as np

#: Bytes of a cache line.
_LINE = 64


def aligned_zeros(*shape: int) -> np.ndarray:
    """Zeros that begin at a cache line: a vector then lies in one line, and not across two."""
    count = int(np.prod(shape))
    room = np.zeros(count + _LINE // 8)
    first = -room.ctypes.data % _LINE // 8
    return room[first : first + count].reshape(shape)


class Copies:
    """Copies of arrays, in memory of earlier copies that nobody has any more: new memory costs more than to copy."""

    #: References to an array that nobody else has: from the list, from the loop, and from the call that counts them.
    _ALONE = 3

    def __init__(self) -> None:
        self._made: list[np.ndarray] = []

    def of(self, array: np.ndarray) -> np.ndarray:
        """A copy."""
        for known in self._made:
            if sys.getrefcount(known) == self._ALONE and known.shape == array.shape:
                np.copyto(known, array)
                return known
        made = array.copy()
        self._made.append(made)
        return made
