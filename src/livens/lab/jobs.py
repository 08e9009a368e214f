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

from livens.lab.request import RunRequest
from livens.lab.worker import run_worker

#: Largest number of finished jobs whose files are kept.
_MAX_JOBS = 12
#: Seconds beyond the time limit before the worker process is killed: compilation and reports take time.
_GRACE = 30.0
#: Polling interval of the worker's messages in seconds.
_POLL_INTERVAL = 0.05


@dataclass
class Job:
    """Run request with its status and results."""

    number: int
    request: RunRequest
    folder: Path
    status: str = "waiting"  # then "running" and "done"
    version: int = 0  # of the animation data
    animation: str = ""
    reports: list[str] = field(default_factory=list)
    error: str = ""
    files: list[str] = field(default_factory=list)
    started: float = 0.0

    def as_dict(self) -> dict[str, object]:
        """Return the status as JSON data for the page."""
        return {
            "run": self.number,
            "status": self.status,
            "version": self.version,
            "reports": self.reports,
            "error": self.error,
            "files": self.files,
        }


class JobQueue:
    """Queue that executes one job at a time in a worker process.

    The process can be killed at any time; a new one is started when needed.
    """

    def __init__(self, folder: Path, timeout: float) -> None:
        self.folder, self.timeout = folder, timeout
        self.by_number: dict[int, Job] = {}
        self._numbers = itertools.count(1)
        self._queue: deque[Job] = deque()
        self._change = threading.Condition()
        self._running: Job | None = None
        self._closed = False
        self._output_folder = Path(tempfile.mkdtemp(prefix="livens-lab-"))
        self._start_worker()
        self._thread = threading.Thread(target=self._loop, daemon=True)
        self._thread.start()

    def _start_worker(self) -> None:
        parent_end, child_end = multiprocessing.Pipe()
        context = multiprocessing.get_context("spawn")
        self._process = context.Process(
            target=run_worker, args=(child_end, str(self.folder), self.timeout), daemon=True
        )
        self._process.start()
        child_end.close()
        self._pipe, self._ready = parent_end, False

    @property
    def ready(self) -> bool:
        """True when the worker process has loaded the modules that every run needs."""
        return self._ready

    # -- called by the server -----------------------------------------------------------------------------------------
    def submit(self, request: RunRequest) -> Job:
        """Submit a job; it replaces all waiting and running jobs, because a page shows one run."""
        with self._change:
            number = next(self._numbers)
            folder = self._output_folder / str(number)
            folder.mkdir()
            job = self.by_number[number] = Job(number, request, folder)
            for older in self._queue:
                older.status, older.error = "done", "replaced by another run"
            self._queue.clear()
            self._queue.append(job)
            if self._running is not None:
                self._send_stop()
            else:
                self._dispatch()  # without waiting for the next poll
            for old in sorted(self.by_number)[:-_MAX_JOBS]:
                shutil.rmtree(self.by_number.pop(old).folder, ignore_errors=True)
            return job

    def stop(self, job: Job) -> None:
        """Stop a job; the steps computed so far are shown."""
        with self._change:
            if job is self._running:
                self._send_stop()
            elif job in self._queue:
                self._queue.remove(job)
                job.status = "done"

    def _send_stop(self) -> None:
        with contextlib.suppress(OSError):
            self._pipe.send("stop")

    def close(self) -> None:
        """Kill the worker process and remove all files."""
        with self._change:
            self._closed = True
        self._process.kill()
        self._thread.join(timeout=5)
        shutil.rmtree(self._output_folder, ignore_errors=True)

    # -- worker process -----------------------------------------------------------------------------------------------
    def _loop(self) -> None:
        while not self._closed:
            try:
                while self._pipe.poll(_POLL_INTERVAL):
                    self._handle_message(*self._pipe.recv())
                self._check_timeout()
                with self._change:
                    self._dispatch()
            except (EOFError, OSError):
                self._restart_worker("the worker process has ended, possibly because there was not enough memory")

    def _dispatch(self) -> None:
        """Send the next job to the worker if it is ready; the caller must hold the lock."""
        if self._running is None and self._queue and self._ready:
            job = self._running = self._queue.popleft()
            job.status, job.started = "running", time.monotonic()
            # a dead worker is detected by the message loop
            with contextlib.suppress(OSError):
                self._pipe.send((job.number, job.request.as_dict(), str(job.folder)))

    def _handle_message(self, message_type: str, payload: Any) -> None:
        with self._change:
            if message_type == "ready":
                self._ready = True
                return
            number, content = payload
            job = self.by_number.get(number)
            if message_type == "done":
                self._running = None
            if job is None:
                return
            if message_type == "animation":
                job.animation, job.version = content, job.version + 1
            elif message_type == "report":
                job.reports.append(content)
            elif message_type == "error":
                job.error = content
            elif message_type == "files":
                job.files = content
            else:
                job.status = "done"

    def _check_timeout(self) -> None:
        job = self._running
        if job is not None and time.monotonic() - job.started > 2 * self.timeout + _GRACE:
            self._restart_worker(f"the run exceeded the time limit of {self.timeout:g} s of the lab and was stopped")

    def _restart_worker(self, reason: str) -> None:
        """Kill the worker, report the reason in its job, and start another worker."""
        with self._change:
            if self._closed:
                return
            self._process.kill()
            if self._running is not None:
                self._running.status, self._running.error = "done", reason
                self._running = None
            self._start_worker()
