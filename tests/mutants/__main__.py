"""Change the source in copies of the project, run the tests that should notice, and say what survived."""

from __future__ import annotations

import argparse
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections import Counter, defaultdict
from pathlib import Path

from mutants.changes import Change, chosen, written
from mutants.targets import BY_HAND, TARGETS

ROOT = Path(__file__).parents[2]
PACKAGE = Path("src") / "livens"
SURVIVORS = Path(__file__).with_name("survivors.toml")
#: Tests of one change that take longer than this hang, or the machine is busy: that decides nothing.
_LONGEST = 900
#: What has to be caught, of all changes.
_SHARE = 0.95


def all_changes() -> list[Change]:
    """Those by hand, then those that are generated, file after file."""
    sources = {path: (ROOT / PACKAGE / path).read_text() for target in TARGETS for path in target.files}
    made = [written(path, sources[path], before, after) for path, before, after in BY_HAND]
    seen = {(change.path, change.source) for change in made}
    for target in TARGETS:
        for path in target.files:
            made += [c for c in chosen(path, sources[path], target.count) if (c.path, c.source) not in seen]
    return made


def proof_of(path: str) -> tuple[str, ...]:
    """The tests that claim to prove a file."""
    return next(target.tests for target in TARGETS if path in target.files)


class Copy:
    """A copy of the project in which one file at a time is wrong."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("src", "tests", "docs", "pyproject.toml", "README.md", "CHANGELOG.md"):
            there = ROOT / name
            if there.is_dir():
                shutil.copytree(there, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy2(there, folder / name)

    def passes(self, tests: tuple[str, ...]) -> tuple[bool | None, str]:
        """Whether the tests pass, and what was said last.

        Compiled code is kept by its content, so that wrong code is found by nobody else.
        """
        environment = {
            **os.environ,
            "PYTHONPATH": str(self.folder / "src"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:randomly"]
        command += [f"tests/{test}" for test in tests]
        try:
            done = subprocess.run(
                command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=_LONGEST
            )
        except subprocess.TimeoutExpired:
            return None, f"took longer than {_LONGEST} s"
        lines = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
        if done.returncode not in (0, 1, 2, 3):
            raise RuntimeError(f"pytest could not be used: {done.stdout[-1000:]}{done.stderr[-1000:]}")
        return done.returncode == 0, (lines or [f"exit code {done.returncode}"])[0][:140]

    def catches(self, change: Change) -> tuple[str, str]:
        """Whether a change is "caught" or has "survived", or was "not decided", and by what."""
        path = self.folder / PACKAGE / change.path
        right = path.read_text()
        path.write_text(change.source)
        try:
            passed, said = self.passes(proof_of(change.path))
        finally:
            path.write_text(right)
        return {True: "survived", False: "caught", None: "not decided"}[passed], said


class Baseline:
    """Whether tests pass as the source is: each set of them is run once, before the first change it has to notice.

    A change that fails tests which fail anyway is not caught.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], str] = {}
        self._locks: defaultdict[tuple[str, ...], threading.Lock] = defaultdict(threading.Lock)
        self._choosing = threading.Lock()

    def trouble(self, copy: Copy, tests: tuple[str, ...]) -> str:
        """What is said if they do not pass."""
        with self._choosing:
            lock = self._locks[tests]
        with lock:
            if tests not in self._known:
                passed, said = copy.passes(tests)
                self._known[tests] = "" if passed else said
            return self._known[tests]


def known_survivors() -> dict[str, str]:
    """Changes that no test can or need notice, with the reason, by what they change (without the line)."""
    return {entry["change"]: entry["reason"] for entry in tomllib.loads(SURVIVORS.read_text())["survivor"]}


def without_line(change: Change) -> str:
    path, _, rest = change.name.split(":", 2)
    return f"{path}:{rest}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m mutants", description=__doc__)
    parser.add_argument("--count", type=int, help="Try this many changes, spread over all.")
    parser.add_argument("--only", default="", help="Only files whose path contains one of these texts, with commas.")
    parser.add_argument("--by-hand", action="store_true", help="Only the changes that somebody thought of.")
    parser.add_argument("--list", action="store_true", help="Print the changes and do nothing.")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    everything = all_changes()[: len(BY_HAND) if given.by_hand else None]
    changes = [c for c in everything if any(text in c.path for text in given.only.split(","))]
    if given.count and given.count < len(changes):
        changes = [changes[len(changes) * i // given.count] for i in range(given.count)]
    if given.list:
        print("\n".join(change.name for change in changes))
        return 0
    begun, reasons = time.monotonic(), known_survivors()
    todo: queue.SimpleQueue[Change] = queue.SimpleQueue()
    for job in changes:
        todo.put(job)
    found: Counter[str] = Counter()
    survived: list[Change] = []
    troubles: dict[tuple[str, ...], str] = {}
    telling, baseline = threading.Lock(), Baseline()

    def work(folder: Path) -> None:
        copy = Copy(folder)
        while True:
            try:
                change = todo.get_nowait()
            except queue.Empty:
                return
            tests = proof_of(change.path)
            if trouble := baseline.trouble(copy, tests):
                with telling:
                    troubles[tests] = trouble
                    found["not decided"] += 1
                continue
            started = time.monotonic()
            verdict, said = copy.catches(change)
            with telling:
                found[verdict] += 1
                if verdict == "survived":
                    survived.append(change)
                print(f"{change.name}\n    {verdict}: {said} ({time.monotonic() - started:.0f} s)", flush=True)

    with tempfile.TemporaryDirectory() as place:
        folders = [Path(place) / str(i) for i in range(given.workers)]
        threads = [threading.Thread(target=work, args=(folder,)) for folder in folders]
        for folder, thread in zip(folders, threads, strict=True):
            folder.mkdir()
            thread.start()
        for thread in threads:
            thread.join()
    for tests, trouble in troubles.items():
        print(f"the tests {', '.join(tests)} do not pass as the source is: {trouble}")
    unknown = [change for change in survived if without_line(change) not in reasons]
    counts = ", ".join(f"{found[name]} {name}" for name in ("caught", "survived", "not decided"))
    print(f"\n{len(changes)} changes, {counts}; {(time.monotonic() - begun) / 60:.0f} minutes")
    for change in survived:
        print(f"  {change.name}\n    {reasons.get(without_line(change), 'no reason is known: write a test')}")
    return int(bool(unknown or troubles) or found["caught"] < _SHARE * len(changes))


if __name__ == "__main__":
    sys.exit(main())
