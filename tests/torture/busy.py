"""All tests that start processes, send signals or wait, several times over with eight busy processes beside them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from torture.findings import Findings

TESTS = Path(__file__).parents[1]
BUSY = 8
#: What in a file shows that its tests start processes, send signals or wait.
_SIGNS = ("subprocess", "Popen", "workers=", "time.sleep", "os.kill")
#: Nothing waits longer than this for a repetition, in seconds.
_LONGEST = 3000


def files(whole: bool = False) -> list[str]:
    """The tests that are repeated; all of them if `whole`."""
    if whole:
        return [str(TESTS)]
    found = [path for path in sorted(TESTS.rglob("test_*.py")) if any(sign in path.read_text() for sign in _SIGNS)]
    return [str(path) for path in found if path.name != "test_torture.py"]


def run(seed: int, first: int, count: int, tests: list[str] | None = None) -> Findings:
    """`count` repetitions at once."""
    findings = Findings()
    tests = files() if tests is None else tests
    idle = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(BUSY)]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    try:
        runs = [
            subprocess.Popen(
                command, cwd=TESTS.parent, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
            for _ in range(count)
        ]
        for number, process in enumerate(runs):
            try:
                said, _ = process.communicate(timeout=_LONGEST)
            except subprocess.TimeoutExpired:
                process.kill()
                said, _ = process.communicate()
            findings.counts["repetitions"] += 1
            findings.counts["that passed"] += process.returncode == 0
            if process.returncode:
                findings.fault(number, said[-3000:])
    finally:
        for process in idle:
            process.kill()
            process.wait()
    findings.counts["files of tests"] = len(tests)
    return findings


def run_whole(seed: int, first: int, count: int) -> Findings:
    """All tests, once."""
    return run(seed, first, count, files(whole=True))
