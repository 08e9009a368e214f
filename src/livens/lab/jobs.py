"""Job queue of the lab: submits run requests to one worker process, and restarts it on failure or timeout."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import shutil
import tempfile
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from livens.lab.asked import Asked
from livens.lab.worker import work

#: Largest number of finished jobs whose files are kept.
_KEPT = 12
#: Seconds beyond the time limit before the worker process is killed: compilation and reports take time.
_GRACE = 30.0
#: Polling interval of the worker's messages in seconds.
_TICK = 0.05


@dataclass
class Job:
    """Run request with its status and results."""

    number: int
    asked: Asked
    folder: Path
    status: str = "waiting"  # then "running" and "done"
    version: int = 0  # of the animation data
    picture: str = ""
    reports: list[str] = field(default_factory=list)
    trouble: str = ""
    files: list[str] = field(default_factory=list)
    begun: float = 0.0

    def plain(self) -> dict[str, Any]:
        """Return the status as JSON data for the page."""
        return {
            "run": self.number,
            "status": self.status,
            "version": self.version,
            "reports": self.reports,
            "trouble": self.trouble,
            "files": self.files,
        }


class Jobs:
    """Queue that executes one job at a time in a worker process.

    The process can be killed at any time; a new one is started when needed.
    """

    def __init__(self, folder: Path, seconds: float) -> None:
        self.folder, self.seconds = folder, seconds
        self.known: dict[int, Job] = {}
        self._numbers = itertools.count(1)
        self._queue: deque[Job] = deque()
        self._change = threading.Condition()
        self._running: Job | None = None
        self._over = False
        self._kept = Path(tempfile.mkdtemp(prefix="livens-lab-"))
        self._hire()
        self._thread = threading.Thread(target=self._attend, daemon=True)
        self._thread.start()

    def _hire(self) -> None:
        here, there = multiprocessing.Pipe()
        context = multiprocessing.get_context("spawn")
        self._process = context.Process(target=work, args=(there, str(self.folder), self.seconds), daemon=True)
        self._process.start()
        there.close()
        self._pipe, self._ready = here, False

    @property
    def ready(self) -> bool:
        """True when the worker process has loaded the modules that every run needs."""
        return self._ready

    # -- called by the server -----------------------------------------------------------------------------------------
    def ask(self, asked: Asked) -> Job:
        """Submit a job; it replaces all waiting and running jobs, because a page shows one run."""
        with self._change:
            number = next(self._numbers)
            folder = self._kept / str(number)
            folder.mkdir()
            job = self.known[number] = Job(number, asked, folder)
            for older in self._queue:
                older.status, older.trouble = "done", "replaced by another run"
            self._queue.clear()
            self._queue.append(job)
            if self._running is not None:
                self._say_stop()
            else:
                self._hand_out()  # without waiting for the next poll
            for old in sorted(self.known)[:-_KEPT]:
                shutil.rmtree(self.known.pop(old).folder, ignore_errors=True)
            return job

    def stop(self, job: Job) -> None:
        """Stop a job; the steps computed so far are shown."""
        with self._change:
            if job is self._running:
                self._say_stop()
            elif job in self._queue:
                self._queue.remove(job)
                job.status = "done"

    def _say_stop(self) -> None:
        with contextlib.suppress(OSError):
            self._pipe.send("stop")

    def close(self) -> None:
        """Kill the worker process and remove all files."""
        with self._change:
            self._over = True
        self._process.kill()
        self._thread.join(timeout=5)
        shutil.rmtree(self._kept, ignore_errors=True)

    # -- worker process -----------------------------------------------------------------------------------------------
    def _attend(self) -> None:
        while not self._over:
            try:
                while self._pipe.poll(_TICK):
                    self._hear(*self._pipe.recv())
                self._watch()
                with self._change:
                    self._hand_out()
            except (EOFError, OSError):
                self._lost("the worker process has ended, possibly because there was not enough memory")

    def _hand_out(self) -> None:
        """Send the next job to the worker if it is ready; the caller must hold the lock."""
        if self._running is None and self._queue and self._ready:
            job = self._running = self._queue.popleft()
            job.status, job.begun = "running", time.monotonic()
            # a dead worker is detected by the message loop
            with contextlib.suppress(OSError):
                self._pipe.send((job.number, job.asked.plain(), str(job.folder)))

    def _hear(self, what: str, told: Any) -> None:
        with self._change:
            if what == "ready":
                self._ready = True
                return
            number, content = told
            job = self.known.get(number)
            if what == "over":
                self._running = None
            if job is None:
                return
            if what == "picture":
                job.picture, job.version = content, job.version + 1
            elif what == "report":
                job.reports.append(content)
            elif what == "trouble":
                job.trouble = content
            elif what == "kept":
                job.files = content
            else:
                job.status = "done"

    def _watch(self) -> None:
        job = self._running
        if job is not None and time.monotonic() - job.begun > 2 * self.seconds + _GRACE:
            self._lost(f"the run exceeded the time limit of {self.seconds:g} s of the lab and was stopped")

    def _lost(self, reason: str) -> None:
        """Kill the worker, report the reason in its job, and start another worker."""
        with self._change:
            if self._over:
                return
            self._process.kill()
            if self._running is not None:
                self._running.status, self._running.trouble = "done", reason
                self._running = None
            self._hire()
