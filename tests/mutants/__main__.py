"""Change the source in copies of the project, run the tests that should notice, and say what survived."""

from __future__ import annotations

import argparse
import compileall
import contextlib
import json
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
from collections.abc import Iterator
from pathlib import Path

from mutants.changes import Change, chosen, written
from mutants.targets import BY_HAND, TARGETS

ROOT = Path(__file__).parents[2]
PACKAGE = Path("src") / "livens"
SURVIVORS = Path(__file__).with_name("survivors.toml")
KILLERS = Path(__file__).with_name("killers.json")
#: Tests of one change that take longer than this hang, or the machine is busy: that decides nothing.
_LONGEST = 900
#: What is said of a test whose name was cut off.
NOT_FOUND = "there is no such test"
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
    """A copy of the project in which one file at a time is wrong, and a process that runs its tests."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("src", "tests", "docs", "pyproject.toml", "README.md", "CHANGELOG.md"):
            there = ROOT / name
            if there.is_dir():
                shutil.copytree(there, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy2(there, folder / name)
        compileall.compile_dir(folder / "src", quiet=2)
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
        self._nest = subprocess.Popen(
            [sys.executable, "-m", "mutants.nest"], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True,
        )  # fmt: skip

    def close(self) -> None:
        assert self._nest.stdin is not None
        self._nest.stdin.close()
        self._nest.wait()

    def passes(self, tests: tuple[str, ...], keep: bool = False) -> tuple[bool | None, str]:
        """Whether the tests pass, and what was said last; `keep` what Python compiles, if nothing is wrong.

        Native code is kept by its content, so that wrong code is found by nobody else.
        """
        arguments = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:randomly", *(f"tests/{test}" for test in tests)]
        job = dict(arguments=arguments, folder=str(self.folder), seconds=_LONGEST, keep=keep)
        assert self._nest.stdin is not None and self._nest.stdout is not None
        print(json.dumps(job), file=self._nest.stdin, flush=True)
        found = json.loads(self._nest.stdout.readline())
        if found["code"] is None:
            return None, f"took longer than {_LONGEST} s"
        if found["code"] == 5:  # there are no such tests
            raise RuntimeError(f"pytest could not be used: {found['text']}")
        if found["code"] == 4 and any("not found" in line for line in found["lines"]):
            return False, NOT_FOUND
        return found["code"] == 0, (found["lines"] or [f"exit code {found['code']}"])[0]

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

    def catches(self, change: Change, tests: tuple[str, ...]) -> tuple[str, str]:
        """Whether a change is "caught" or has "survived", or was "not decided", and by what."""
        with self.wrong(change):
            passed, said = self.passes(tests)
        return {True: "survived", False: "caught", None: "not decided"}[passed], said


class Baseline:
    """Whether tests pass as the source is: each set of them is run once, when it is first asked for.

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
                passed, said = copy.passes(tests, keep=True)
                self._known[tests] = "" if passed else said
            return self._known[tests]


def known_survivors() -> dict[str, str]:
    """Changes that no test can or need notice, with the reason, by what they change (without the line)."""
    return {entry["change"]: entry["reason"] for entry in tomllib.loads(SURVIVORS.read_text())["survivor"]}


def known_killers() -> dict[str, str]:
    """The test that noticed a change last time, by what it changes: it is tried first."""
    return dict(json.loads(KILLERS.read_text())) if KILLERS.exists() else {}


def killer_of(said: str) -> str:
    """The test that is named in a line of pytest."""
    name = said.partition(" - ")[0].removeprefix("FAILED ").removeprefix("ERROR ").strip()
    return name.removeprefix("tests/") if "::" in name else ""


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
    parser.add_argument(
        "--learn", action="store_true", help=f"Write down which test noticed a change ({KILLERS.name})."
    )
    given = parser.parse_args()
    everything = all_changes()[: len(BY_HAND) if given.by_hand else None]
    changes = [c for c in everything if any(text in c.path for text in given.only.split(","))]
    if given.count and given.count < len(changes):
        changes = [changes[len(changes) * i // given.count] for i in range(given.count)]
    if given.list:
        print("\n".join(change.name for change in changes))
        return 0
    begun, reasons, killers = time.monotonic(), known_survivors(), known_killers()
    todo: queue.SimpleQueue[Change] = queue.SimpleQueue()
    for job in changes:
        todo.put(job)
    found: Counter[str] = Counter()
    survived: list[Change] = []
    troubles: dict[tuple[str, ...], str] = {}
    telling, baseline = threading.Lock(), Baseline()

    def tried(copy: Copy, change: Change) -> tuple[str, str]:
        """By the test that noticed it last time, if one did, then by all."""
        first = killers.get(without_line(change), "")
        sets = [(first,)] if first and not baseline.trouble(copy, (first,)) else []
        for tests in (*sets, proof_of(change.path)):
            verdict, said = copy.catches(change, tests)
            if verdict == "caught":
                # whether the test that noticed passes as the source is; all of them, if it has no name
                named = killer_of(said)
                alone = (named,) if named and baseline.trouble(copy, (named,)) != NOT_FOUND else tests
                if trouble := baseline.trouble(copy, alone):
                    with telling:
                        troubles[alone] = trouble
                    return "not decided", trouble
                break
        return verdict, said

    def work(folder: Path) -> None:
        copy = Copy(folder)
        while True:
            try:
                change = todo.get_nowait()
            except queue.Empty:
                break
            started = time.monotonic()
            verdict, said = tried(copy, change)
            with telling:
                found[verdict] += 1
                if verdict == "survived":
                    survived.append(change)
                name = without_line(change)
                if verdict == "caught" and killer_of(said):
                    killers[name] = killer_of(said)
                elif verdict == "survived":
                    killers.pop(name, None)
                if given.learn:
                    KILLERS.write_text(json.dumps(dict(sorted(killers.items())), indent=0) + "\n")
                seconds = time.monotonic() - started
                print(f"{change.name}\n    {verdict}: {said[:140]} ({seconds:.0f} s)", flush=True)
        copy.close()

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
