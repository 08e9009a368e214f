"""Progress of the benchmark in one line on stderr."""

from __future__ import annotations

import sys


class ProgressLine:
    """Progress line: overwritten on a terminal and cleared at the end, otherwise one line per message."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()

    def show(self, text: str) -> None:
        if self._terminal:
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
        else:
            print(text, file=sys.stderr, flush=True)

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, *_: object) -> None:
        if self._terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
