"""Timing of functions."""

from __future__ import annotations

import time
from collections.abc import Callable


def seconds(function: Callable[[], object]) -> float:
    """Return the wall time, or the processor time if smaller.

    Runs of other codes are longer than a scheduler time slice: on a busy machine their wall time includes that of other
    processes.
    """
    wall, processor = time.perf_counter(), time.process_time()
    function()
    return min(time.perf_counter() - wall, time.process_time() - processor)
