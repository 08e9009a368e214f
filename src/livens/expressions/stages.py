"""What a long preparation is doing at the moment, for whoever wants to tell the user.

Whatever may take seconds (deriving equations, compiling kernels) says so where it begins; most of the time nobody
listens, and it costs next to nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Protocol


class StageListener(Protocol):
    """Whoever wants to know."""

    def stage(self, words: str) -> None:
        """Something begins that may take long, such as "deriving 210 equations"."""
        ...

    def counted(self, doing: str, what: str) -> None:
        """One more of something begins, such as "compiling" a "kernel"."""
        ...


_listener: ContextVar[StageListener | None] = ContextVar("listener", default=None)


def stage(words: str) -> None:
    """Say what begins now."""
    listener = _listener.get()
    if listener is not None:
        listener.stage(words)


def counted(doing: str, what: str) -> None:
    """Say that one more of something begins."""
    listener = _listener.get()
    if listener is not None:
        listener.counted(doing, what)


def nobody_listens() -> bool:
    """Whether what is said is lost anyway."""
    return _listener.get() is None


@contextlib.contextmanager
def listening(listener: StageListener) -> Iterator[None]:
    """Meanwhile, this one is told."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)
