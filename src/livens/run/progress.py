"""Progress bar of runs longer than two seconds, on a terminal or in a notebook."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

from livens.progress import is_silent, listen

_DELAY = 2.0
#: Largest number of preparation stages shown at once; the last ones are shown.
_MAX_STAGES = 3


def is_interactive() -> bool:
    """Return True on a terminal or in a notebook (only the notebook kernel imports ipykernel)."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


class Progress:
    """Progress bar as a context manager; `update` may be called at any rate."""

    def __init__(self, title: str, total: int, show: bool | None = None, unit: str = "steps") -> None:
        self._title, self._total, self._unit = title, total, unit
        self._show = show
        self._start = self._last = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Progress:
        return self

    def update(self, done: int, note: str = "") -> None:
        """Show the amount done, and a note instead of the rate."""
        if self._show is None:
            self._show = is_interactive()
        now = time.monotonic()
        if not self._show or now - self._last < 0.1:
            return
        self._last = now
        if self._bar is None:
            if now - self._start < _DELAY:
                return
            self._open()
        rate = done / (now - self._start)
        text = note or (f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.2g}/s")
        self._bar.update(self._task, completed=done, rate=text)

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


class PreparationStatus:
    """Status line of the preparation of a run (derivation, compilation), shown if it takes longer than two seconds.

    The line is written by a separate thread, because the working thread is busy for seconds at a time. The thread is
    started with the first message.
    """

    def __init__(self, title: str) -> None:
        self._title, self._t_start = title, time.monotonic()
        self._stages: dict[str, str] = {}  # shown text by stage
        self._counts: dict[str, int] = {}
        self._finished = threading.Event()
        self._thread: threading.Thread | None = None

    # -- messages of the working thread --------------------------------------------------------------------------------
    def message(self, text: str) -> None:
        self._show(text, text)

    def item(self, operation: str, noun: str) -> None:
        count = self._counts[noun] = self._counts.get(noun, 0) + 1
        self._show(f"{operation} {noun}", f"{operation} {count} {noun}{'' if count == 1 else 's'}")

    def _show(self, key: str, text: str) -> None:
        self._stages = {**{k: v for k, v in self._stages.items() if k != key}, key: text}
        if self._thread is None:
            self._thread = threading.Thread(target=self._show_status, daemon=True, name="livens progress")
            self._thread.start()

    def status_line(self) -> str:
        """Return the line, ``n-four-bar (livens-em): deriving 971 equations ... compiling 7 kernels ... 12 s``."""
        stages = list(self._stages.values())[-_MAX_STAGES:]
        return f"{self._title}: {' ... '.join(stages)} ... {time.monotonic() - self._t_start:.0f} s"

    # -- display thread ------------------------------------------------------------------------------------------------
    def _show_status(self) -> None:
        if self._finished.wait(max(0.0, _DELAY - (time.monotonic() - self._t_start))):
            return
        from rich.console import Console

        with Console(stderr=True).status(self.status_line()) as status:
            while not self._finished.wait(0.2):
                status.update(self.status_line())

    def end(self) -> None:
        self._finished.set()
        if self._thread is not None:
            self._thread.join()


_NO_STATUS = contextlib.nullcontext()


def show_preparation(title: str, show: bool | None = None) -> contextlib.AbstractContextManager[None]:
    """Return a context manager that shows the stages of a preparation; by default on a terminal only.

    Within another preparation it has no effect: the outer one shows the stages.
    """
    is_visible = (is_interactive() if show is None else show) and is_silent()
    return _status_shown(title) if is_visible else _NO_STATUS


@contextlib.contextmanager
def _status_shown(title: str) -> Iterator[None]:
    preparation = PreparationStatus(title)
    try:
        with listen(preparation):
            yield
    finally:
        preparation.end()
