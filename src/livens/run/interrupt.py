"""Handling of Ctrl-C (SIGINT) between chunks of steps, so that results stay complete."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any


class Interrupt:
    """Context manager: after `install`, the first Ctrl-C only sets `requested`; the second acts as usual."""

    def __init__(self) -> None:
        self.requested = False
        self._previous_handler: Any = None

    def __enter__(self) -> Interrupt:
        return self

    def install(self) -> None:
        """Install the signal handler; has no effect outside the main thread, and beside handlers of C libraries."""
        if (
            self._previous_handler is None
            and not self.requested
            and threading.current_thread() is threading.main_thread()
        ):
            # known before the handler is installed: Ctrl-C may arrive at once
            self._previous_handler = signal.getsignal(signal.SIGINT)
            if self._previous_handler is not None:
                signal.signal(signal.SIGINT, self._on_sigint)

    def _on_sigint(self, signum: int, frame: FrameType | None) -> None:
        self.requested = True
        signal.signal(signal.SIGINT, self._previous_handler)

    def __exit__(self, *_: object) -> None:
        if self._previous_handler is not None:
            signal.signal(signal.SIGINT, self._previous_handler)
