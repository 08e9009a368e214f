"""A progress bar that appears when a run takes longer than two seconds, on a terminal or in a notebook."""

from __future__ import annotations

import sys
import time
from typing import Any

_PATIENCE = 2.0


def somebody_looks() -> bool:
    """Whether there is a terminal, or a notebook, whose kernel is the only thing that imports ipykernel."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


class Progress:
    """Use as a context manager; `update` may be called as often as one likes."""

    def __init__(self, title: str, total: int, show: bool | None = None, unit: str = "steps") -> None:
        self._title, self._total, self._unit = title, total, unit
        self._show = show
        self._start = self._last = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Progress:
        return self

    def update(self, done: int) -> None:
        if self._show is None:
            self._show = somebody_looks()
        now = time.monotonic()
        if not self._show or now - self._last < 0.1:
            return
        self._last = now
        if self._bar is None:
            if now - self._start < _PATIENCE:
                return
            self._open()
        rate = done / (now - self._start)
        self._bar.update(self._task, completed=done, rate=f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.2g}/s")

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn(self._unit),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._bar.start()
        self._task = self._bar.add_task(self._title, total=self._total, rate="")

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
