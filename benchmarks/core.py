"""CPU affinity: timed code runs on one core, without gain from threads and without migration."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def single_core() -> Iterator[None]:
    """Keep this process and its child processes on one core; without effect on systems other than Linux."""
    if sys.platform != "linux":
        yield
        return
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(allowed)})  # the first core also handles interrupts
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)
