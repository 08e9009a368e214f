"""A process that has imported what the tests need of others, and runs tests in children: that saves most of the time.

Reads one JSON object per line from standard input: the folder of the copy, the tests, in which order, and how long one
of them may take. Answers with one that says which tests failed, or which one did not come to an end. When its input
ends, for whatever reason, nothing is left behind: no process, and no copy.
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

#: What is imported once. Nothing of the package itself, as in every child another place of it is wrong, and no plugins
#: of pytest, which have to be rewritten.
_OTHERS = (
    "numpy", "numpy.testing", "casadi", "scipy.integrate", "scipy.optimize", "scipy.sparse.linalg", "h5py", "yaml",
    "llvmlite.binding", "_pytest.config", "typer.testing", "rich.progress", "xarray", "pandas", "hypothesis.strategies",
)  # fmt: skip
_ENDS_WITH_PARENT, _TAKES_ORPHANS = 1, 36


def _ask(option: int, value: int) -> None:
    """Ask the system that processes end with their parents, where it can be asked."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


class Teller:
    """What the tests do, told through a pipe while they do it: a plugin of pytest."""

    def __init__(self, pipe: int, job: dict[str, Any]) -> None:
        self._pipe, self._places = pipe, {name: i for i, name in enumerate(job["order"])}
        self._word = job["word"]
        self._source = str(Path(job["folder"]) / "src" / "livens") + os.sep if job["trace"] else ""
        self._codes: dict[int, Any] = {}
        self._begun = 0.0

    def _tell(self, **what: Any) -> None:
        line = (json.dumps(what) + "\n").encode()
        while line:
            line = line[os.write(self._pipe, line) :]

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Those that are known first, then those whose names contain a word."""
        last = len(self._places)
        items.sort(key=lambda item: (self._places.get(item.nodeid, last), self._word not in item.nodeid))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._tell(test=nodeid)
        self._codes.clear()
        self._begun = self._seconds()
        if self._source:
            sys.settrace(self._came_by)

    def _came_by(self, frame: FrameType, event: str, argument: object) -> None:
        self._codes[id(frame.f_code)] = frame.f_code

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        sys.settrace(None) if self._source else None
        size, here = len(self._source), self._source
        codes = [code for code in self._codes.values() if here and code.co_filename.startswith(here)]
        functions = sorted({f"{code.co_filename[size:]} {code.co_qualname}" for code in codes})
        self._tell(test=nodeid, seconds=self._seconds() - self._begun, functions=functions)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self._tell(test=report.nodeid, failed=self._reason(report))

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self._tell(test=report.nodeid, failed=self._reason(report))

    @staticmethod
    def _reason(report: Any) -> str:
        crash = getattr(report.longrepr, "reprcrash", None)
        lines = (crash.message if crash else str(report.longrepr)).strip().splitlines()
        return (lines[0] if crash else lines[-1])[:200] if lines else ""

    @staticmethod
    def _seconds() -> float:
        """Of the processor, so that it is the same on a busy machine."""
        times = os.times()
        return times.user + times.system + times.children_user + times.children_system


def child(job: dict[str, Any], log: int, pipe: int) -> int:
    """Run tests in a copy of the project, as a process that was started there would."""
    os.setsid()
    _ask(_ENDS_WITH_PARENT, signal.SIGKILL)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # the next jobs are not for the tests
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

    return int(pytest.main([*job["options"], *job["tests"]], plugins=[Teller(pipe, job)]))


def _end_all(pid: int) -> None:
    """A child, and whatever the tests have started and left."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    for _ in range(100):  # those of the ones that are killed come next
        left = [int(word) for word in children.read_text().split()] if children.exists() else []
        if not left:
            return
        for one in left:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(one, signal.SIGKILL)
                os.waitpid(one, 0)


def answer(job: dict[str, Any]) -> dict[str, Any]:
    """Run the tests of a job, and follow them."""
    reading, writing = os.pipe()
    begun, spent = time.monotonic(), os.times()
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
        found = _followed(pid, reading, job)
        os.close(reading)
        _end_all(pid)
        log.seek(0)
        text = log.read().decode(errors="replace")
    now = os.times()
    seconds = now.children_user + now.children_system - spent.children_user - spent.children_system
    return {**found, "text": text[-2000:], "wall": time.monotonic() - begun, "seconds": seconds}


def _followed(pid: int, reading: int, job: dict[str, Any]) -> dict[str, Any]:
    """The exit code, or the test that takes too long; what failed, and what was learned of each test."""
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
        if 0 in ready:  # whoever asked is gone
            _end_all(pid)
            sys.exit(0)
        if ready:
            data = os.read(reading, 1 << 16)
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                told = json.loads(line)
                if "failed" in told:
                    failed.setdefault(told["test"], told["failed"])
                elif "seconds" in told:
                    tests[told["test"]] = told["seconds"], told["functions"]
                    walls[told["test"]] = time.monotonic() - since
                    test, since = "", time.monotonic()
                else:
                    test, since = told["test"], time.monotonic()
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
    _ask(_TAKES_ORPHANS, 1)
    for name in _OTHERS:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    try:
        while line := sys.stdin.buffer.raw.readline():
            print(json.dumps(answer(json.loads(line))), flush=True)
    finally:
        shutil.rmtree(sys.argv[1], ignore_errors=True)


if __name__ == "__main__":
    main()
