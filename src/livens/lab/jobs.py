"""Runs that the page asked for, and the process that computes them: hired, listened to, and dismissed if need be."""

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

#: Runs that are remembered with their files.
_KEPT = 12
#: Seconds beyond its limit that a job is given before its process is ended: code is compiled, or a report made.
_GRACE = 30.0
#: Seconds between looks at the clock, and at what is waiting.
_TICK = 0.05


@dataclass
class Job:
    """A run that was asked for, and all that is known of it so far."""

    number: int
    asked: Asked
    folder: Path
    status: str = "waiting"  # then running, and done
    version: int = 0  # of the picture
    picture: str = ""
    reports: list[str] = field(default_factory=list)
    trouble: str = ""
    files: list[str] = field(default_factory=list)
    begun: float = 0.0

    def plain(self) -> dict[str, Any]:
        """What the page is told."""
        return {
            "run": self.number,
            "status": self.status,
            "version": self.version,
            "reports": self.reports,
            "trouble": self.trouble,
            "files": self.files,
        }


class Jobs:
    """Carries out one job after the other in a process of its own.

    A process can be ended whatever it does; a new one is hired when it is needed.
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
        """Whether the process that computes has loaded what every run needs."""
        return self._ready

    # -- asked by the server ------------------------------------------------------------------------------------------
    def ask(self, asked: Asked) -> Job:
        """A new job; it takes the place of all that went before, as a page shows but one."""
        with self._change:
            number = next(self._numbers)
            folder = self._kept / str(number)
            folder.mkdir()
            job = self.known[number] = Job(number, asked, folder)
            for older in self._queue:
                older.status, older.trouble = "done", "another run was asked for"
            self._queue.clear()
            self._queue.append(job)
            if self._running is not None:
                self._say_stop()
            else:
                self._hand_out()  # at once: whoever pressed the button waits for a picture
            for old in sorted(self.known)[:-_KEPT]:
                shutil.rmtree(self.known.pop(old).folder, ignore_errors=True)
            return job

    def stop(self, job: Job) -> None:
        """End a job where it is; what was computed is shown."""
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
        """Nobody needs it any more."""
        with self._change:
            self._over = True
        self._process.kill()
        self._thread.join(timeout=5)
        shutil.rmtree(self._kept, ignore_errors=True)

    # -- with the process ---------------------------------------------------------------------------------------------
    def _attend(self) -> None:
        while not self._over:
            try:
                while self._pipe.poll(_TICK):
                    self._hear(*self._pipe.recv())
                self._watch()
                with self._change:
                    self._hand_out()
            except (EOFError, OSError):
                self._lost("the process that computes has ended: there may not be enough memory for that")

    def _hand_out(self) -> None:
        """Give the next job to the process, if it is ready for one; by whoever holds the lock."""
        if self._running is None and self._queue and self._ready:
            job = self._running = self._queue.popleft()
            job.status, job.begun = "running", time.monotonic()
            # that the process is gone is noticed where its answers are waited for
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
            self._lost(f"that took longer than {self.seconds:g} s, the most the lab takes, and was ended")

    def _lost(self, reason: str) -> None:
        """The process is gone, or is to go: its job says why, and another one is hired."""
        with self._change:
            if self._over:
                return
            self._process.kill()
            if self._running is not None:
                self._running.status, self._running.trouble = "done", reason
                self._running = None
            self._hire()
