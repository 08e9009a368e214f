"""Background task: rows are written to the file while the next steps are computed."""

from __future__ import annotations

import threading
from collections.abc import Callable


class BackgroundTask:
    """Worker that runs one task at a time in another thread; exceptions are raised by `result`."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def submit(self, task: Callable[[], None]) -> None:
        """Start a task in the background after the previous task has finished."""
        self.result()
        self._thread = threading.Thread(target=self._execute, args=(task,), name="livens-rows")
        self._thread.start()

    def result(self) -> None:
        """Wait for the task to finish, and raise its exception, if any."""
        self.join()
        error, self._error = self._error, None
        if error is not None:
            raise error

    def join(self) -> None:
        """Wait for the task to finish, and ignore its exception."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()

    def _execute(self, task: Callable[[], None]) -> None:
        try:
            task()
        except BaseException as error:  # raised again by `result`
            self._error = error
