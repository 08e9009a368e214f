"""Run stress tests in separate processes, where a crash is a finding, and print the numbers of cases and faults.

Eight processes run beside parts that are tests, until these end: first the other parts, then idle loops that keep the
machine busy.
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
    """Part of the stress tests: a function of a module, its number of cases, and the processes that run_cases them."""

    module: str
    cases: int
    processes: int
    function: str = "run"
    tests: bool = False  # tests, which must pass on a busy machine


PARTS = {
    "whole": Part("busy", 1, 1, "run_whole", tests=True),
    "busy": Part("busy", 5, 1, tests=True),
    "kills": Part("kills", 1000, 4),
    "ensemble-kills": Part("ensemble_kills", 400, 2),
    "varied-calls": Part("varied_calls", 100_000, 1),
    "valid": Part("scenario_files", 100_000, 4, "run_valid"),
    "long-run": Part("long_run", 1_000_000_000, 1),
    "dead-centres": Part("dead_centres", 300, 2),
    "random-systems": Part("random_mechanics", 1000, 4),
    "files": Part("result_files", 50_000, 4),
    "scenarios": Part("scenario_files", 150_000, 4),
    "commands": Part("commands", 50_000, 4),
    "expressions": Part("expressions", 650_000, 4),
}
#: Number of busy processes beside the tests.
BUSY = 8
#: Parts with fuzzed inputs.
INPUTS = ("valid", "scenarios", "expressions", "commands", "files")
#: Time limit of a process, in seconds.
_LONGEST = 7200


def run_cases(part: str, seed: int, first: int, count: int) -> Findings:
    """Run part_findings cases of a part in a separate process."""
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
            output = log.read()[-1500:].decode(errors="replace")
    findings = Findings()
    findings.fault(
        f"{first} to {first + count}", f"{part}: {'hangs' if code is None else f'ended with {code}'}\n{output}"
    )
    return findings


def in_this_process(part: str, seed: int, first: int, count: int) -> Findings:
    entry = PARTS[part]
    return getattr(importlib.import_module(f"torture.{entry.module}"), entry.function)(seed, first, count)


def shares(names: list[str], scale: float) -> Iterator[tuple[str, int, int]]:
    """Yield name, first case and number of cases of the processes of each part; parts of tests may have no case."""
    for name in names:
        cases = max(0 if PARTS[name].tests else 1, round(PARTS[name].cases * scale))
        processes = min(PARTS[name].processes, cases)
        edges = [cases * i // processes for i in range(processes + 1)] if cases else []
        yield from ((name, a, b - a) for a, b in itertools.pairwise(edges))


@contextlib.contextmanager
def spinning() -> Iterator[None]:
    """Keep one core busy within a context."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def run_parts(names: list[str], scale: float, seed: int, workers: int) -> dict[str, Findings]:
    """Run all parts, divided into processes; tests start at once, with `BUSY` other processes beside them."""
    found, adding, begin = {name: Findings() for name in names}, threading.Lock(), time.monotonic()
    tests = [name for name in names if PARTS[name].tests and any(shares([name], scale))]
    others: queue.SimpleQueue[tuple[str, int, int]] = queue.SimpleQueue()
    for cases in shares([name for name in names if not PARTS[name].tests], scale):
        others.put(cases)
    tested = threading.Event()

    def run_and_add(name: str, first: int, count: int) -> None:
        start = time.monotonic()
        part_findings = run_cases(name, seed, first, count)
        with adding:
            found[name] += part_findings
        taken = f"{time.monotonic() - start:.0f} s, {part_findings.counts['faults']} faults"
        print(f"  {(time.monotonic() - begin) / 60:5.1f} min  {name} {first} to {first + count}: {taken}", flush=True)

    def busy() -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                run_and_add(*others.get_nowait())
        if not tested.is_set():
            with spinning():
                tested.wait()

    beside = BUSY if tests else workers
    with ThreadPoolExecutor(beside + len(tests)) as pool:
        jobs = [pool.submit(busy) for _ in range(beside)]
        try:
            for done in [pool.submit(run_and_add, *cases) for cases in shares(tests, scale)]:
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
    arguments = parser.parse_args()
    names = arguments.only.split(",")
    if unknown := set(names) - set(PARTS):
        parser.error(f"unknown parts: {', '.join(sorted(unknown))}")
    start = time.monotonic()
    if arguments.count is not None:
        found = {names[0]: in_this_process(names[0], arguments.seed, arguments.first, arguments.count)}
        if arguments.report:
            arguments.report.write_text(json.dumps(found[names[0]].as_object()))
            return 0
    else:
        found = run_parts(names, arguments.scale, arguments.seed, arguments.workers)
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
    print(f"{inputs:,} fuzzed inputs, {faults} faults, {(time.monotonic() - start) / 60:.1f} minutes")
    return int(faults > 0)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(main())
