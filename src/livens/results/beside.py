"""Background task: rows are written to the file while the next steps are computed."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Beside:
    """Worker that runs one task at a time in another thread; exceptions are raised by `result`."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def do(self, work: Callable[[], None]) -> None:
        """Start a task in the background after the previous task has finished."""
        self.wait()
        self._thread = threading.Thread(target=self._done, args=(work,), name="livens-rows")
        self._thread.start()

    def wait(self) -> None:
        """Wait for the task to finish, and raise its exception, if any."""
        self.end()
        error, self._error = self._error, None
        if error is not None:
            raise error

    def end(self) -> None:
        """Wait for the task to finish, and ignore its exception."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()

    def _done(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # raised again by `result`
            self._error = error
