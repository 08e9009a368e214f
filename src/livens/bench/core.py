"""One core for all that is timed, so that no code gains from threads and none is moved about."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def one_core() -> Iterator[None]:
    """Keep this process, and the processes it starts, on one core; where the system cannot, nothing happens."""
    if sys.platform != "linux":
        yield
        return
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(allowed)})  # the first core also serves interrupts
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)
