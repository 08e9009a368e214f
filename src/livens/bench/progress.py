"""What the benchmark is at, in one line on stderr."""

from __future__ import annotations

import sys


class ProgressLine:
    """A line that is overwritten on a terminal, and lines one after another elsewhere. Gone at the end."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()

    def say(self, text: str) -> None:
        if self._terminal:
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
        else:
            print(text, file=sys.stderr, flush=True)

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, *_: object) -> None:
        if self._terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
