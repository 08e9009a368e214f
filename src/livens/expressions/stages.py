"""Progress messages of long preparations, such as deriving equations or compiling kernels.

Without a listener a message costs next to nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Protocol


class StageListener(Protocol):
    """Protocol of receivers of progress messages."""

    def stage(self, words: str) -> None:
        """Receive a message about a long operation that starts, such as "deriving 210 equations"."""
        ...

    def counted(self, doing: str, what: str) -> None:
        """Receive the start of one more item of a repeated operation, such as "compiling" a "kernel"."""
        ...


_listener: ContextVar[StageListener | None] = ContextVar("listener", default=None)


def stage(words: str) -> None:
    """Report the start of a long operation to the listener."""
    listener = _listener.get()
    if listener is not None:
        listener.stage(words)


def counted(doing: str, what: str) -> None:
    """Report the start of one more item of a repeated operation."""
    listener = _listener.get()
    if listener is not None:
        listener.counted(doing, what)


def nobody_listens() -> bool:
    """Return True if no listener is registered."""
    return _listener.get() is None


@contextlib.contextmanager
def listening(listener: StageListener) -> Iterator[None]:
    """Register a progress listener for the duration of a context."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)
