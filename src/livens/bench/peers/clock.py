"""How long a piece of a program takes."""

from __future__ import annotations

import time
from collections.abc import Callable


def seconds(piece: Callable[[], object]) -> float:
    """Wall time, or processor time where that is less.

    Runs of the other codes are longer than what the system grants a process at a stretch: on a busy machine their wall
    time holds that of other processes, and they would look slower than they are.
    """
    wall, processor = time.perf_counter(), time.process_time()
    piece()
    return min(time.perf_counter() - wall, time.process_time() - processor)
