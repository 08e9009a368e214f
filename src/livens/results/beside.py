"""Work that is done while something else goes on: rows go to their file while the next steps are computed."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Beside:
    """Does one thing at a time in another thread. What goes wrong in it is raised where it is waited for."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def do(self, work: Callable[[], None]) -> None:
        """Begin with some work, when what was begun before is done."""
        self.wait()
        self._thread = threading.Thread(target=self._done, args=(work,), name="livens-rows")
        self._thread.start()

    def wait(self) -> None:
        """Until what was begun is done."""
        self.end()
        error, self._error = self._error, None
        if error is not None:
            raise error

    def end(self) -> None:
        """Until nothing is being done any more, however that went."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()

    def _done(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # it belongs to whoever waits
            self._error = error
