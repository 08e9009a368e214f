"""Process that has imported the dependencies of the tests, and runs tests in child processes.

Each line of standard input is a JSON object: folder of the copy, tests, their order and their time limits. Each line of
standard output is a JSON object with the failed tests, or the test that did not end. At the end of its input the
process terminates all child processes and removes the copy.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from types import FrameType
from typing import Any

#: Modules that are imported once: none of the package, which is mutated in child processes, and no plugins of pytest,
#: whose assertions are rewritten.
_DEPENDENCIES = (
    "numpy", "numpy.testing", "casadi", "scipy.integrate", "scipy.optimize", "scipy.sparse.linalg", "h5py", "yaml",
    "llvmlite.binding", "_pytest.config", "typer.testing", "rich.progress", "xarray", "pandas", "hypothesis.strategies",
)  # fmt: skip
#: Options of `prctl`: signal at the end of the parent process, and adoption of orphaned processes.
_PARENT_DEATH_SIGNAL, _CHILD_SUBREAPER = 1, 36


def _set_process_option(option: int, value: int) -> None:
    """Set an option of the process on Linux; elsewhere nothing is done."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


class EventPlugin:
    """Plugin of pytest that writes events of the tests to a pipe."""

    def __init__(self, pipe: int, job: dict[str, Any]) -> None:
        self._pipe, self._positions = pipe, {name: i for i, name in enumerate(job["order"])}
        self._name_part = job["word"]
        self._source = str(Path(job["folder"]) / "src" / "livens") + os.sep if job["trace"] else ""
        self._codes: dict[int, Any] = {}
        self._start = 0.0

    def _write(self, **event: Any) -> None:
        line = (json.dumps(event) + "\n").encode()
        while line:
            line = line[os.write(self._pipe, line) :]

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Sort the tests: known ones first, then those whose names contain the given word."""
        last = len(self._positions)
        items.sort(key=lambda item: (self._positions.get(item.nodeid, last), self._name_part not in item.nodeid))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._write(test=nodeid)
        self._codes.clear()
        self._start = self._seconds()
        if self._source:
            sys.settrace(self._record_call)

    def _record_call(self, frame: FrameType, event: str, argument: object) -> None:
        self._codes[id(frame.f_code)] = frame.f_code

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        sys.settrace(None) if self._source else None
        size, folder = len(self._source), self._source
        codes = [code for code in self._codes.values() if folder and code.co_filename.startswith(folder)]
        functions = sorted({f"{code.co_filename[size:]} {code.co_qualname}" for code in codes})
        self._write(test=nodeid, seconds=self._seconds() - self._start, functions=functions)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self._write(test=report.nodeid, failed=self._reason(report))

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self._write(test=report.nodeid, failed=self._reason(report))

    @staticmethod
    def _reason(report: Any) -> str:
        crash = getattr(report.longrepr, "reprcrash", None)
        lines = (crash.message if crash else str(report.longrepr)).strip().splitlines()
        return (lines[0] if crash else lines[-1])[:200] if lines else ""

    @staticmethod
    def _seconds() -> float:
        """Return the processor time, which does not depend on the load of the machine."""
        times = os.times()
        return times.user + times.system + times.children_user + times.children_system


def child(job: dict[str, Any], log: int, pipe: int) -> int:
    """Run tests in a copy of the project, in the environment of a new process."""
    os.setsid()
    _set_process_option(_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # standard input contains the next jobs
    for stream in (1, 2):
        os.dup2(log, stream)
    folder = Path(job["folder"])
    os.chdir(folder)
    sys.path[:0] = [str(folder), str(folder / "src")]
    os.environ["PYTHONPATH"] = str(folder / "src")
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    if not job["keep"]:
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        sys.dont_write_bytecode = True
    import pytest

    return int(pytest.main([*job["options"], *job["tests"]], plugins=[EventPlugin(pipe, job)]))


def _end_all(pid: int) -> None:
    """Terminate a child process and all processes that its tests have started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    for _ in range(100):  # children of killed processes follow
        remaining = [int(word) for word in children.read_text().split()] if children.exists() else []
        if not remaining:
            return
        for child_pid in remaining:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(child_pid, signal.SIGKILL)
                os.waitpid(child_pid, 0)


def run_job(job: dict[str, Any]) -> dict[str, Any]:
    """Run the tests of a job and return their outcome."""
    reading, writing = os.pipe()
    start, spent = time.monotonic(), os.times()
    with tempfile.TemporaryFile() as log:
        pid = os.fork()
        if not pid:
            code = 4
            try:
                os.close(reading)
                code = child(job, log.fileno(), writing)
            except BaseException:
                traceback.print_exc()
            finally:
                for stream in (sys.stdout, sys.stderr):
                    with contextlib.suppress(Exception):
                        stream.flush()
                os._exit(code)
        os.close(writing)
        outcome = _follow(pid, reading, job)
        os.close(reading)
        _end_all(pid)
        log.seek(0)
        text = log.read().decode(errors="replace")
    now = os.times()
    seconds = now.children_user + now.children_system - spent.children_user - spent.children_system
    return {**outcome, "text": text[-2000:], "wall": time.monotonic() - start, "seconds": seconds}


def _follow(pid: int, reading: int, job: dict[str, Any]) -> dict[str, Any]:
    """Return the exit code or the test that exceeds its limit, the failed tests, and the record of each test."""
    failed: dict[str, str] = {}
    tests: dict[str, tuple[float, list[str]]] = {}
    walls: dict[str, float] = {}
    code, test, since, rest = None, "", time.monotonic(), b""
    last = since + job["longest"]
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG) if code is None else (0, 0)
        if ended:
            code = os.waitstatus_to_exitcode(status)
        ready = select.select([reading, 0], [], [], 0 if ended else 0.05)[0]
        if 0 in ready:  # the owner of the process has ended
            _end_all(pid)
            sys.exit(0)
        if ready:
            data = os.read(reading, 1 << 16)
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                event = json.loads(line)
                if "failed" in event:
                    failed.setdefault(event["test"], event["failed"])
                elif "seconds" in event:
                    tests[event["test"]] = event["seconds"], event["functions"]
                    walls[event["test"]] = time.monotonic() - since
                    test, since = "", time.monotonic()
                else:
                    test, since = event["test"], time.monotonic()
            if data:
                continue
        if code is not None:
            if test:  # a crash
                failed.setdefault(test, f"the process ended with code {code}")
            return dict(code=code, failed=failed, tests=tests, walls=walls, hung=None)
        now = time.monotonic()
        if now - since > job["limits"].get(test, job["limit"]):
            return dict(code=None, failed=failed, tests=tests, walls=walls, hung=test)
        if now > last:
            return dict(code=None, failed=failed, tests=tests, walls=walls, hung=None)
        if ready:  # the pipe is closed, and the process not gone yet
            time.sleep(0.02)


def main() -> None:
    _set_process_option(_CHILD_SUBREAPER, 1)
    for name in _DEPENDENCIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    try:
        while line := sys.stdin.buffer.raw.readline():
            print(json.dumps(run_job(json.loads(line))), flush=True)
    finally:
        shutil.rmtree(sys.argv[1], ignore_errors=True)


if __name__ == "__main__":
    main()
