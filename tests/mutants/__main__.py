"""Mutation test: create mutants in copies of the project, run the tests that verify them, and print the survivors."""

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

from mutants.changes import Change, handwritten_change, select_by_hash
from mutants.copies import LIMIT, LONGEST, NOT_FOUND, PACKAGE, ROOT, Copy, Outcome, limit
from mutants.known import Tracks, known_killers, known_survivors, proof_of, write_killers
from mutants.targets import BY_HAND, TARGETS

#: Smallest fraction of mutants that must be detected.
_MIN_DETECTED = 0.95


@functools.cache
def all_changes() -> tuple[Change, ...]:
    """Return the mutants written by hand, then the generated ones, by file."""
    sources = {path: (ROOT / PACKAGE / path).read_text() for target in TARGETS for path in target.files}
    changes = [handwritten_change(path, sources[path], before, after) for path, before, after in BY_HAND]
    seen = {(change.path, change.source) for change in changes}
    for target in TARGETS:
        for path in target.files:
            changes += [c for c in select_by_hash(path, sources[path], target.count) if (c.path, c.source) not in seen]
    return tuple(changes)


class Trial:
    """Mutants, tested in parallel copies, and their verdicts."""

    def __init__(
        self, changes: list[Change], *, learn: bool = False, trace: bool = False, near: bool = False,
        longest: float = LONGEST, killers: dict[str, str] | None = None, tracks: Tracks | None = None,
    ) -> None:  # fmt: skip
        self.changes, self._learn, self._trace, self._near, self._longest = changes, learn, trace, near, longest
        self.reasons = known_survivors()
        self.killers = known_killers() if killers is None else killers
        self.tracks = tracks or Tracks.read()
        self.verdicts: dict[str, str] = {}  # by the key of the change
        self.seconds = 0.0
        self.troubles: dict[str, str] = {}
        self._unchanged_outcomes: dict[str, Outcome] = {}  # tests on the source as it is
        self._lock = threading.Lock()

    # -- unchanged source --------------------------------------------------------------------------------------------
    def reference(self, copy: Copy, tests: list[str]) -> None:
        """Run the tests that detected a mutant before on the unchanged source, all in one call."""
        if tests:
            outcome = copy.run(tests, keep=True, all_of_them=True)
            missing = set() if outcome.tests else set(tests)  # one name that is not there, and pytest runs none
            with self._lock:
                for test in set(tests) - missing:
                    code = 1 if test in outcome.failed or test not in outcome.tests else 0
                    wall = outcome.tests.get(test, (0.0, ()))[0]
                    why = {test: outcome.failed[test]} if test in outcome.failed else {}
                    self._unchanged_outcomes[test] = Outcome(code, why, None, {}, {}, outcome.text, wall, wall)

    def trace(self, copy: Copy, file: str) -> None:
        """Record the durations and the called functions of the tests of a file."""
        outcome = copy.run([file], keep=True, all_of_them=True, trace=True)
        with self._lock:
            self.tracks.add(outcome.tests)
            self.tracks.write()
        print(f"{file}: {len(outcome.tests)} tests, {outcome.seconds:.0f} s", flush=True)

    def unchanged_outcome(self, copy: Copy, test: str) -> Outcome:
        """Return the outcome of one test on the unchanged source."""
        with self._lock:
            known = self._unchanged_outcomes.get(test)
        if known is None:
            known = copy.run([test], keep=True)
            with self._lock:
                self._unchanged_outcomes[test] = known
        return known

    # -- one change ---------------------------------------------------------------------------------------------------
    def verdict_of(self, copy: Copy, change: Change) -> tuple[str, str]:
        """Return the verdict and the test that detected the mutant: the test of the former run first, then all."""
        if change.key in self.reasons and not self._learn:
            return "known", ""
        first = self.killers.get(change.key, "")
        if first and self.unchanged_outcome(copy, first).passed:
            seconds = {first: self.unchanged_outcome(copy, first).seconds}
            with copy.mutated(change):
                outcome = copy.run([first], known=seconds)
            if not outcome.passed:
                return self._verdict_of_failure(copy, outcome, (first,), seconds)
        known, inside = self.tracks.order(change, self.killers)
        tests = tuple(known)[:inside] if self._near and inside else proof_of(change.path)
        with copy.mutated(change):
            outcome = copy.run(tests, known=known, word=scheme_name(change.path), longest=self._longest)
        return ("survived", "") if outcome.passed else self._verdict_of_failure(copy, outcome, tests, known)

    def _verdict_of_failure(
        self, copy: Copy, outcome: Outcome, tests: tuple[str, ...], known: dict[str, float]
    ) -> tuple[str, str]:
        """Return the verdict of a failed run: its test must pass on the unchanged source, and end there in time."""
        if outcome.code is None and outcome.hung is None and not outcome.failed:
            return "not decided", f"all tests together took longer than {outcome.wall:.0f} s"
        named = next(iter(outcome.failed), outcome.hung or "")
        if "::" not in named:  # no test has started: use any test of the file
            named = next((test for test in (*known, *tests) if test.startswith(named)), tests[0])
        unchanged_outcome = self.unchanged_outcome(copy, named)
        if unchanged_outcome.reason == NOT_FOUND and tests != (named,):
            unchanged_outcome = self.unchanged_outcome(copy, tests[0])
        if not unchanged_outcome.passed:
            self.troubles[named] = unchanged_outcome.reason
            return "not decided", f"{named} fails on the unchanged source"
        if outcome.code is None and not outcome.failed:
            allowed = limit(known.get(named, 0.0)) if outcome.hung else 10 * LIMIT
            again = copy.run([named], keep=True)  # now, as the machine may be busy
            needed = again.walls.get(named, again.wall) if outcome.hung else again.wall
            if not again.passed or needed > allowed / 10:
                return "not decided", f"{named} took too long, and takes {needed:.0f} s on the unchanged source"
        return "detected", named

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
        before, (verdict, detail) = copy.seconds, self.verdict_of(copy, change)
        with self._lock:
            self.verdicts[change.key] = verdict
            if verdict == "detected":
                self.killers[change.key] = detail
            elif verdict == "survived":
                self.killers.pop(change.key, None)
            if self._learn:
                write_killers(self.killers)
            print(f"{change.name}\n    {verdict}: {detail[:140]} ({copy.seconds - before:.0f} s)", flush=True)


def scheme_name(path: str) -> str:
    """Return the name of the scheme in a file; empty for other files."""
    return Path(path).stem.replace("_", "-") if path.startswith("schemes/") else ""


def select_changes(changes: Iterable[Change], only: str, count: int | None) -> list[Change]:
    """Return the mutants in files whose path contains one of some texts, or `count` of them at equal distances."""
    selected = [change for change in changes if any(text in change.path for text in only.split(","))]
    return (
        selected
        if not count or count >= len(selected)
        else [selected[len(selected) * i // count] for i in range(count)]
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m mutants", description=__doc__)
    parser.add_argument("--count", type=int, help="Try this many changes, spread over all.")
    parser.add_argument("--only", default="", help="Only files whose path contains one of these texts, with commas.")
    parser.add_argument("--by-hand", action="store_true", help="Only the mutants written by hand.")
    parser.add_argument("--new", action="store_true", help="Only changes that no test is known to notice.")
    parser.add_argument("--trace", action="store_true", help="Look first which tests call which functions.")
    parser.add_argument("--longest", type=float, default=LONGEST, help="Seconds for all tests of a change.")
    parser.add_argument("--near", action="store_true", help="Only by tests that are known to call the function.")
    parser.add_argument("--list", action="store_true", help="Print the changes and do nothing.")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--learn", action="store_true", help="Write down which test noticed a change.")
    arguments = parser.parse_args()
    changes = select_changes(
        all_changes()[: len(BY_HAND) if arguments.by_hand else None], arguments.only, arguments.count
    )
    if arguments.new:
        known = known_killers().keys() | known_survivors().keys()
        changes = [change for change in changes if change.key not in known]
    if arguments.list:
        print("\n".join(f"{change.name}\n    {change.key}" for change in changes))
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    start, trial = (
        time.monotonic(),
        Trial(changes, learn=arguments.learn, trace=arguments.trace, near=arguments.near, longest=arguments.longest),
    )
    trial.run(arguments.workers)
    return print_report(trial, time.monotonic() - start)


def print_report(trial: Trial, seconds: float) -> int:
    """Print the numbers of verdicts; return 1 if too few mutants are detected, or an unknown one survived."""
    for test, trouble in trial.troubles.items():
        print(f"{test} fails on the unchanged source: {trouble}")
    verdicts, changes = trial.verdicts, trial.changes
    undetected = [change for change in changes if verdicts[change.key] != "detected"]
    unknown = [change for change in undetected if change.key not in trial.reasons]
    counts = Counter("known" if change.key in trial.reasons else verdicts[change.key] for change in undetected)
    print(
        f"\n{len(changes)} changes: {len(changes) - len(undetected)} detected, "
        f"{counts['known']} survived for known reasons, "
        f"{counts['survived']} survived, {counts['not decided']} not decided; "
        f"{seconds / 60:.0f} minutes, {trial.seconds / 60:.0f} of the processor"
    )
    for change in undetected:
        print(f"  {change.name}\n    {trial.reasons.get(change.key, 'no reason is known: write a test')}")
    return int(bool(unknown or trial.troubles) or len(changes) - len(undetected) < _MIN_DETECTED * len(changes))


if __name__ == "__main__":
    sys.exit(main())
