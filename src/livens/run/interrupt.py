"""Handling of Ctrl-C (SIGINT) between chunks of steps, so that results stay complete."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any


class Interrupt:
    """Context manager: after `install`, the first Ctrl-C only sets `requested`; the second acts as usual."""

    def __init__(self) -> None:
        self.seen = False
        self._before: Any = None

    def __enter__(self) -> Interrupt:
        return self

    def arm(self) -> None:
        """Install the signal handler; has no effect outside the main thread."""
        if self._before is None and not self.seen and threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.seen = True
        signal.signal(signal.SIGINT, self._before)

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
