"""Copies of the project in which one file at a time is mutated."""

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
#: Time limit of all tests of a mutant, in seconds.
LONGEST = 1200.0
#: Reason if a test does not exist.
NOT_FOUND = "source is no such test"


def limit(seconds: float) -> float:
    """Return the time limit of a test, given its usual processor time in seconds."""
    return max(LIMIT, TIMES_LONGER * seconds)


@dataclass(frozen=True)
class Outcome:
    """Outcome of a run of tests."""

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
        """Reason of the failure."""
        if self.failed:
            return next(f"{test}: {why}" for test, why in self.failed.items())
        if self.code is None:
            return f"{self.hung or 'all together'} took too long"
        if self.code == 4 and "not found" in self.text:
            return NOT_FOUND
        return (self.text.strip().splitlines() or [""])[-1][:200] or f"exit code {self.code}"


class Copy:
    """Copy of the project, with a process that runs its tests and ends with the process that created the copy."""

    def __init__(self, root: Path = ROOT) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="livens-mutants-"))
        self.seconds = 0.0
        for name in ("src", "tests", "docs", "pyproject.toml", "README.md", "CHANGELOG.md"):
            source = root / name
            if source.is_dir():
                shutil.copytree(source, self.folder / name, ignore=shutil.ignore_patterns("__pycache__"))
            elif source.exists():
                shutil.copy2(source, self.folder / name)
        compileall.compile_dir(self.folder / "src", quiet=2)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "mutants.child_runner", str(self.folder)],
            env={**os.environ, "PYTHONPATH": str(ROOT / "tests")}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, start_new_session=True,
        )  # fmt: skip

    def close(self) -> None:
        """Terminate running tests and remove the copy."""
        assert self._process.stdin is not None and self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def run(
        self, tests: Iterable[str], *, known: Mapping[str, float] | None = None, keep: bool = False,
        word: str = "", all_of_them: bool = False, trace: bool = False, longest: float = LONGEST,
    ) -> Outcome:  # fmt: skip
        """Run tests until one fails, or `all_of_them`: first those in `known`, then those whose names contain `word`.

        With `keep`, bytecode is stored; only for unchanged sources. Native code is stored by its content, so that
        code of mutants is not used elsewhere.
        """
        known = known or {}
        options = ["-q", "-p", "no:cacheprovider", "-p", "_hypothesis_pytestplugin", "--hypothesis-seed=0"]
        job = dict(
            folder=str(self.folder), options=options + ([] if all_of_them else ["-x"]), keep=keep, trace=trace,
            tests=[f"tests/{test}" for test in tests], order=[f"tests/{test}" for test in known],
            word=word, limit=10 * LIMIT, longest=10 * LONGEST if all_of_them else longest,
            limits={f"tests/{test}": limit(seconds) for test, seconds in known.items()},
        )  # fmt: skip
        assert self._process.stdin is not None and self._process.stdout is not None
        print(json.dumps(job), file=self._process.stdin, flush=True)
        outcome = json.loads(self._process.stdout.readline())
        if outcome["code"] == 5:  # source are no such tests
            raise RuntimeError(f"pytest could not be used: {outcome['text']}")
        self.seconds += outcome["seconds"]
        hung = outcome["hung"]
        return Outcome(
            outcome["code"],
            {test.removeprefix("tests/"): why for test, why in outcome["failed"].items()},
            None if hung is None else hung.removeprefix("tests/"),
            {test.removeprefix("tests/"): (s, tuple(names)) for test, (s, names) in outcome["tests"].items()},
            {test.removeprefix("tests/"): wall for test, wall in outcome["walls"].items()},
            outcome["text"], outcome["wall"], outcome["seconds"],
        )  # fmt: skip

    @contextlib.contextmanager
    def mutated(self, change: Change) -> Iterator[None]:
        """Mutate the file of a change within a context; its time of modification invalidates stored bytecode."""
        path = self.folder / PACKAGE / change.path
        original, times = path.read_text(), path.stat()
        path.write_text(change.source)
        os.utime(path, (times.st_atime, times.st_mtime + 1000))
        try:
            yield
        finally:
            path.write_text(original)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
