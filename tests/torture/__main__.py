"""Run the torture, in processes of their own (a crash is a finding), and print its figures.

Where tests are among its parts, eight processes run beside them until they are done: those of the other parts, and when
these are done, processes that do nothing but keep the machine busy.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import itertools
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from torture.findings import Findings


@dataclass(frozen=True)
class Part:
    """A function of a module, how many cases it gets in all, and into how many processes they are divided."""

    module: str
    cases: int
    processes: int
    function: str = "run"
    tests: bool = False  # tests, which pass however busy the machine is


PARTS = {
    "whole": Part("busy", 1, 1, "run_whole", tests=True),
    "busy": Part("busy", 5, 1, tests=True),
    "kills": Part("kills", 1000, 4),
    "valid": Part("scenario_files", 100_000, 4, "run_valid"),
    "long-run": Part("long_run", 1_000_000_000, 1),
    "dead-centres": Part("dead_centres", 300, 2),
    "random-systems": Part("random_mechanics", 1000, 4),
    "files": Part("result_files", 50_000, 4),
    "scenarios": Part("scenario_files", 150_000, 4),
    "commands": Part("commands", 50_000, 4),
    "expressions": Part("expressions", 650_000, 4),
}
#: So many busy processes are beside the tests.
BUSY = 8
#: Fuzzed inputs, together.
INPUTS = ("valid", "scenarios", "expressions", "commands", "files")
#: A process that takes longer than this hangs.
_LONGEST = 7200


def share(part: str, seed: int, first: int, count: int) -> Findings:
    """Some cases of a part, in a process of their own."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "torture", "--only", part, "--seed", str(seed), "--first", str(first)]
        command += ["--count", str(count), "--report", str(report)]
        log = (Path(folder) / "log").open("w+b")
        with log:
            try:
                code = subprocess.run(command, stdout=log, stderr=log, timeout=_LONGEST).returncode
            except subprocess.TimeoutExpired:
                code = None
            if code == 0:
                return Findings.from_object(json.loads(report.read_text()))
            log.seek(0)
            said = log.read()[-1500:].decode(errors="replace")
    findings = Findings()
    findings.fault(
        f"{first} to {first + count}", f"{part}: {'hangs' if code is None else f'ended with {code}'}\n{said}"
    )
    return findings


def in_this_process(part: str, seed: int, first: int, count: int) -> Findings:
    place = PARTS[part]
    return getattr(importlib.import_module(f"torture.{place.module}"), place.function)(seed, first, count)


def shares(names: list[str], scale: float) -> Iterator[tuple[str, int, int]]:
    """Parts of the parts: their names, their first cases, and how many there are; of tests, there may be none."""
    for name in names:
        cases = max(0 if PARTS[name].tests else 1, round(PARTS[name].cases * scale))
        processes = min(PARTS[name].processes, cases)
        edges = [cases * i // processes for i in range(processes + 1)] if cases else []
        yield from ((name, a, b - a) for a, b in itertools.pairwise(edges))


@contextlib.contextmanager
def spinning() -> Iterator[None]:
    """While a process does nothing but keep the machine busy."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def everything(names: list[str], scale: float, seed: int, workers: int) -> dict[str, Findings]:
    """All parts, each divided among processes; tests begin at once and have `BUSY` others beside them to their end."""
    found, adding = {name: Findings() for name in names}, threading.Lock()
    tests = [name for name in names if PARTS[name].tests and any(shares([name], scale))]
    others: queue.SimpleQueue[tuple[str, int, int]] = queue.SimpleQueue()
    for some in shares([name for name in names if not PARTS[name].tests], scale):
        others.put(some)
    tested = threading.Event()

    def told(name: str, first: int, count: int) -> None:
        begun = time.monotonic()
        some = share(name, seed, first, count)
        with adding:
            found[name] += some
        taken = f"{time.monotonic() - begun:.0f} s, {some.counts['faults']} faults"
        print(f"  {name} {first} to {first + count}: {taken}", flush=True)

    def busy() -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                told(*others.get_nowait())
        if not tested.is_set():
            with spinning():
                tested.wait()

    beside = BUSY if tests else workers
    with ThreadPoolExecutor(beside + len(tests)) as pool:
        jobs = [pool.submit(busy) for _ in range(beside)]
        try:
            for done in [pool.submit(told, *some) for some in shares(tests, scale)]:
                done.result()
        finally:
            tested.set()
        for job in jobs:
            job.result()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m torture", description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="This part of all cases.")
    parser.add_argument("--only", default=",".join(PARTS), help=f"Parts, with commas, of: {', '.join(PARTS)}.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="The first case, with --count, in this process.")
    parser.add_argument("--count", type=int)
    parser.add_argument("--report", type=Path, help="Write the findings of --count cases to this file.")
    parser.add_argument("--workers", type=int, default=2, help="Processes at a time, where no tests are.")
    given = parser.parse_args()
    names = given.only.split(",")
    if unknown := set(names) - set(PARTS):
        parser.error(f"unknown parts: {', '.join(sorted(unknown))}")
    begun = time.monotonic()
    if given.count is not None:
        found = {names[0]: in_this_process(names[0], given.seed, given.first, given.count)}
        if given.report:
            given.report.write_text(json.dumps(found[names[0]].as_object()))
            return 0
    else:
        found = everything(names, given.scale, given.seed, given.workers)
    faults = 0
    for name, findings in found.items():
        print(f"{name:13} {findings}")
        faults += findings.counts["faults"]
        for fault in findings.faults:
            print(f"    {fault}")
    inputs = sum(
        count for name in INPUTS if name in found for kind, count in found[name].counts.items()
        if kind in ("expressions", "valid scenarios", "damaged scenarios", "command lines", "damaged files")
    )  # fmt: skip
    print(f"{inputs:,} fuzzed inputs, {faults} faults, {(time.monotonic() - begun) / 60:.1f} minutes")
    return int(faults > 0)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(main())
