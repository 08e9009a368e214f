"""Copies of the project in which one file at a time is wrong."""

from __future__ import annotations

import compileall
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from mutants.changes import Change

ROOT = Path(__file__).parents[2]
PACKAGE = Path("src") / "livens"
#: One test may take this many seconds, or as many times longer than it takes as a rule.
LIMIT, TIMES_LONGER = 60.0, 30.0
#: All tests of a change together.
LONGEST = 1200.0
#: What is said of a test whose name was cut off.
NOT_FOUND = "there is no such test"


def limit(seconds: float) -> float:
    """How long a test may take that takes so many seconds of the processor as a rule."""
    return max(LIMIT, TIMES_LONGER * seconds)


@dataclass(frozen=True)
class Outcome:
    """What became of some tests."""

    code: int | None  # of pytest; none if it was stopped
    failed: Mapping[str, str]  # tests, or files that could not be read, with the reason
    hung: str | None  # the test that took too long; "" while no test was running
    tests: Mapping[str, tuple[float, tuple[str, ...]]]  # seconds of the processor, and functions that were called
    walls: Mapping[str, float]  # seconds that have passed
    text: str  # the end of what was printed
    wall: float
    seconds: float

    @property
    def passed(self) -> bool:
        return self.code == 0

    @property
    def reason(self) -> str:
        """Why they did not pass."""
        if self.failed:
            return next(f"{test}: {why}" for test, why in self.failed.items())
        if self.code is None:
            return f"{self.hung or 'all together'} took too long"
        if self.code == 4 and "not found" in self.text:
            return NOT_FOUND
        return (self.text.strip().splitlines() or [""])[-1][:200] or f"exit code {self.code}"


class Copy:
    """A copy of the project, and a process that runs its tests and ends with whoever made the copy."""

    def __init__(self, root: Path = ROOT) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="livens-mutants-"))
        self.seconds = 0.0
        for name in ("src", "tests", "docs", "pyproject.toml", "README.md", "CHANGELOG.md"):
            there = root / name
            if there.is_dir():
                shutil.copytree(there, self.folder / name, ignore=shutil.ignore_patterns("__pycache__"))
            elif there.exists():
                shutil.copy2(there, self.folder / name)
        compileall.compile_dir(self.folder / "src", quiet=2)
        self._nest = subprocess.Popen(
            [sys.executable, "-m", "mutants.nest", str(self.folder)],
            env={**os.environ, "PYTHONPATH": str(ROOT / "tests")}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, start_new_session=True,
        )  # fmt: skip

    def close(self) -> None:
        """End the tests that are running, and throw the copy away."""
        assert self._nest.stdin is not None and self._nest.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._nest.stdin.close()
        self._nest.wait()
        self._nest.stdout.close()

    def run(
        self, tests: Iterable[str], *, known: Mapping[str, float] | None = None, keep: bool = False,
        word: str = "", all_of_them: bool = False, trace: bool = False, longest: float = LONGEST,
    ) -> Outcome:  # fmt: skip
        """Run tests until one fails, or `all_of_them`: first those that are `known`, then those that name a `word`.

        `keep` what Python compiles, if nothing is wrong. Native code is kept by its content, so that wrong code is
        found by nobody else.
        """
        known = known or {}
        options = ["-q", "-p", "no:cacheprovider", "-p", "_hypothesis_pytestplugin", "--hypothesis-seed=0"]
        job = dict(
            folder=str(self.folder), options=options + ([] if all_of_them else ["-x"]), keep=keep, trace=trace,
            tests=[f"tests/{test}" for test in tests], order=[f"tests/{test}" for test in known],
            word=word, limit=10 * LIMIT, longest=10 * LONGEST if all_of_them else longest,
            limits={f"tests/{test}": limit(seconds) for test, seconds in known.items()},
        )  # fmt: skip
        assert self._nest.stdin is not None and self._nest.stdout is not None
        print(json.dumps(job), file=self._nest.stdin, flush=True)
        found = json.loads(self._nest.stdout.readline())
        if found["code"] == 5:  # there are no such tests
            raise RuntimeError(f"pytest could not be used: {found['text']}")
        self.seconds += found["seconds"]
        hung = found["hung"]
        return Outcome(
            found["code"],
            {test.removeprefix("tests/"): why for test, why in found["failed"].items()},
            None if hung is None else hung.removeprefix("tests/"),
            {test.removeprefix("tests/"): (s, tuple(names)) for test, (s, names) in found["tests"].items()},
            {test.removeprefix("tests/"): wall for test, wall in found["walls"].items()},
            found["text"], found["wall"], found["seconds"],
        )  # fmt: skip

    @contextlib.contextmanager
    def wrong(self, change: Change) -> Iterator[None]:
        """While the file of a change is wrong; what Python has compiled of it does not count then, by its time."""
        path = self.folder / PACKAGE / change.path
        right, times = path.read_text(), path.stat()
        path.write_text(change.source)
        os.utime(path, (times.st_atime, times.st_mtime + 1000))
        try:
            yield
        finally:
            path.write_text(right)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
