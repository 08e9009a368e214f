"""Change the source in copies of the project, run the tests that should notice, and say what survived."""

from __future__ import annotations

import argparse
import functools
import queue
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from mutants.changes import Change, chosen, written
from mutants.copies import LIMIT, LONGEST, NOT_FOUND, PACKAGE, ROOT, Copy, Outcome, limit
from mutants.known import Tracks, known_killers, known_survivors, proof_of, write_killers
from mutants.targets import BY_HAND, TARGETS

#: What has to be caught, of all changes.
_SHARE = 0.95


@functools.cache
def all_changes() -> tuple[Change, ...]:
    """Those by hand, then those that are generated, file after file."""
    sources = {path: (ROOT / PACKAGE / path).read_text() for target in TARGETS for path in target.files}
    made = [written(path, sources[path], before, after) for path, before, after in BY_HAND]
    seen = {(change.path, change.source) for change in made}
    for target in TARGETS:
        for path in target.files:
            made += [c for c in chosen(path, sources[path], target.count) if (c.path, c.source) not in seen]
    return tuple(made)


class Trial:
    """Changes that are tried in copies side by side, and what became of them."""

    def __init__(
        self, changes: list[Change], *, learn: bool = False, trace: bool = False, near: bool = False,
        longest: float = LONGEST, killers: dict[str, str] | None = None, tracks: Tracks | None = None,
    ) -> None:  # fmt: skip
        self.changes, self._learn, self._trace, self._near, self._longest = changes, learn, trace, near, longest
        self.reasons = known_survivors()
        self.killers = known_killers() if killers is None else killers
        self.tracks = tracks or Tracks.read()
        self.found: dict[str, str] = {}  # verdicts, by the key of the change
        self.seconds = 0.0
        self.troubles: dict[str, str] = {}
        self._right: dict[str, Outcome] = {}  # tests on the source as it is
        self._lock = threading.Lock()

    # -- the source as it is ------------------------------------------------------------------------------------------
    def reference(self, copy: Copy, tests: list[str]) -> None:
        """Run tests on the source as it is, all at once: those that noticed a change last time must pass."""
        if tests:
            found = copy.run(tests, keep=True, all_of_them=True)
            missing = set() if found.tests else set(tests)  # one name that is not there, and pytest runs none
            with self._lock:
                for test in set(tests) - missing:
                    code = 1 if test in found.failed or test not in found.tests else 0
                    wall = found.tests.get(test, (0.0, ()))[0]
                    why = {test: found.failed[test]} if test in found.failed else {}
                    self._right[test] = Outcome(code, why, None, {}, {}, found.text, wall, wall)

    def trace(self, copy: Copy, file: str) -> None:
        """Learn what the tests of a file take and come by."""
        found = copy.run([file], keep=True, all_of_them=True, trace=True)
        with self._lock:
            self.tracks.add(found.tests)
            self.tracks.write()
        print(f"{file}: {len(found.tests)} tests, {found.seconds:.0f} s", flush=True)

    def right(self, copy: Copy, test: str) -> Outcome:
        """One test on the source as it is."""
        with self._lock:
            known = self._right.get(test)
        if known is None:
            known = copy.run([test], keep=True)
            with self._lock:
                self._right[test] = known
        return known

    # -- one change ---------------------------------------------------------------------------------------------------
    def tried(self, copy: Copy, change: Change) -> tuple[str, str]:
        """The verdict, and the test that noticed, by the one that noticed last time, if any did, and then by all."""
        if change.key in self.reasons and not self._learn:
            return "known", ""
        first = self.killers.get(change.key, "")
        if first and self.right(copy, first).passed:
            seconds = {first: self.right(copy, first).seconds}
            with copy.wrong(change):
                found = copy.run([first], known=seconds)
            if not found.passed:
                return self._judged(copy, found, (first,), seconds)
        known, inside = self.tracks.order(change, self.killers)
        tests = tuple(known)[:inside] if self._near and inside else proof_of(change.path)
        with copy.wrong(change):
            found = copy.run(tests, known=known, word=word_of(change.path), longest=self._longest)
        return ("survived", "") if found.passed else self._judged(copy, found, tests, known)

    def _judged(self, copy: Copy, found: Outcome, tests: tuple[str, ...], known: dict[str, float]) -> tuple[str, str]:
        """A test that notices has to pass as the source is, and one that hangs has to be quick there."""
        if found.code is None and found.hung is None and not found.failed:
            return "not decided", f"all tests together took longer than {found.wall:.0f} s"
        named = next(iter(found.failed), found.hung or "")
        if "::" not in named:  # no test has begun: any one of the file will do
            named = next((test for test in (*known, *tests) if test.startswith(named)), tests[0])
        right = self.right(copy, named)
        if right.reason == NOT_FOUND and tests != (named,):
            right = self.right(copy, tests[0])
        if not right.passed:
            self.troubles[named] = right.reason
            return "not decided", f"{named} does not pass as the source is"
        if found.code is None and not found.failed:
            allowed = limit(known.get(named, 0.0)) if found.hung else 10 * LIMIT
            again = copy.run([named], keep=True)  # now, as the machine may be busy
            needed = again.walls.get(named, again.wall) if found.hung else again.wall
            if not again.passed or needed > allowed / 10:
                return "not decided", f"{named} took too long, and takes {needed:.0f} s as the source is"
        return "caught", named

    # -- all of them --------------------------------------------------------------------------------------------------
    def run(self, workers: int) -> None:
        files = [file for change in self.changes if change.key not in self.killers for file in proof_of(change.path)]
        first = sorted({test for change in self.changes if (test := self.killers.get(change.key, ""))})
        todo: queue.SimpleQueue[Change | str] = queue.SimpleQueue()
        for job in (*(self.tracks.missing(files) if self._trace else ()), *self.changes):
            todo.put(job)
        copies: list[Copy] = []
        problems: list[BaseException] = []

        def work(copy: Copy, mine: list[str]) -> None:
            try:
                self.reference(copy, mine)
                while not problems:
                    job = todo.get_nowait()
                    self.trace(copy, job) if isinstance(job, str) else self._try(copy, job)
            except queue.Empty:
                pass
            except BaseException as problem:
                problems.append(problem)

        try:
            copies += [Copy() for _ in range(workers)]
            shares = [first[len(first) * i // workers : len(first) * (i + 1) // workers] for i in range(workers)]
            threads = [
                threading.Thread(target=work, args=pair, daemon=True) for pair in zip(copies, shares, strict=True)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            for copy in copies:
                copy.close()
        self.seconds = sum(copy.seconds for copy in copies)
        if problems:
            raise problems[0]

    def _try(self, copy: Copy, change: Change) -> None:
        before, (verdict, said) = copy.seconds, self.tried(copy, change)
        with self._lock:
            self.found[change.key] = verdict
            if verdict == "caught":
                self.killers[change.key] = said
            elif verdict == "survived":
                self.killers.pop(change.key, None)
            if self._learn:
                write_killers(self.killers)
            print(f"{change.name}\n    {verdict}: {said[:140]} ({copy.seconds - before:.0f} s)", flush=True)


def word_of(path: str) -> str:
    """What a scheme is called, by its file."""
    return Path(path).stem.replace("_", "-") if path.startswith("schemes/") else ""


def picked(changes: Iterable[Change], only: str, count: int | None) -> list[Change]:
    """Those in files whose path contains one of some texts, or so many of them, spread over all."""
    found = [change for change in changes if any(text in change.path for text in only.split(","))]
    return found if not count or count >= len(found) else [found[len(found) * i // count] for i in range(count)]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m mutants", description=__doc__)
    parser.add_argument("--count", type=int, help="Try this many changes, spread over all.")
    parser.add_argument("--only", default="", help="Only files whose path contains one of these texts, with commas.")
    parser.add_argument("--by-hand", action="store_true", help="Only the changes that somebody thought of.")
    parser.add_argument("--new", action="store_true", help="Only changes that no test is known to notice.")
    parser.add_argument("--trace", action="store_true", help="Look first which tests call which functions.")
    parser.add_argument("--longest", type=float, default=LONGEST, help="Seconds for all tests of a change.")
    parser.add_argument("--near", action="store_true", help="Only by tests that are known to call the function.")
    parser.add_argument("--list", action="store_true", help="Print the changes and do nothing.")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--learn", action="store_true", help="Write down which test noticed a change.")
    given = parser.parse_args()
    changes = picked(all_changes()[: len(BY_HAND) if given.by_hand else None], given.only, given.count)
    if given.new:
        known = known_killers().keys() | known_survivors().keys()
        changes = [change for change in changes if change.key not in known]
    if given.list:
        print("\n".join(f"{change.name}\n    {change.key}" for change in changes))
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    begun, trial = (
        time.monotonic(),
        Trial(changes, learn=given.learn, trace=given.trace, near=given.near, longest=given.longest),
    )
    trial.run(given.workers)
    return told(trial, time.monotonic() - begun)


def told(trial: Trial, seconds: float) -> int:
    """Print the figures; 1 if too few changes were caught, or one survived for no reason that is known."""
    for test, trouble in trial.troubles.items():
        print(f"{test} does not pass as the source is: {trouble}")
    found, changes = trial.found, trial.changes
    left = [change for change in changes if found[change.key] != "caught"]
    unknown = [change for change in left if change.key not in trial.reasons]
    counts = Counter("known" if change.key in trial.reasons else found[change.key] for change in left)
    print(
        f"\n{len(changes)} changes: {len(changes) - len(left)} caught, {counts['known']} survived for known reasons, "
        f"{counts['survived']} survived, {counts['not decided']} not decided; "
        f"{seconds / 60:.0f} minutes, {trial.seconds / 60:.0f} of the processor"
    )
    for change in left:
        print(f"  {change.name}\n    {trial.reasons.get(change.key, 'no reason is known: write a test')}")
    return int(bool(unknown or trial.troubles) or len(changes) - len(left) < _SHARE * len(changes))


if __name__ == "__main__":
    sys.exit(main())
