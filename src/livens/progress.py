"""Progress messages of long preparations, such as deriving equations or compiling kernels.

Without a listener a message costs next to nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Protocol


class ProgressListener(Protocol):
    """Protocol of receivers of progress messages."""

    def message(self, text: str) -> None:
        """Receive a message about a long operation that starts, such as "deriving 210 equations"."""
        ...

    def item(self, operation: str, noun: str) -> None:
        """Receive the start of one more item of a repeated operation, such as "compiling" a "kernel"."""
        ...


_listener: ContextVar[ProgressListener | None] = ContextVar("listener", default=None)


def report_progress(text: str) -> None:
    """Report the start of a long operation to the listener."""
    listener = _listener.get()
    if listener is not None:
        listener.message(text)


def report_item(operation: str, noun: str) -> None:
    """Report the start of one more item of a repeated operation."""
    listener = _listener.get()
    if listener is not None:
        listener.item(operation, noun)


def is_silent() -> bool:
    """Return True if no listener is registered."""
    return _listener.get() is None


@contextlib.contextmanager
def listen(listener: ProgressListener) -> Iterator[None]:
    """Register a progress listener for the duration of a context."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)
