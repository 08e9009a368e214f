"""All tests that start processes, send signals or wait, several times over, and all tests there are, once.

Whoever calls these keeps the machine busy.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

from torture.findings import Findings

TESTS = Path(__file__).parents[1]
#: What in a function shows that it starts processes, sends signals or waits: programs, workers, browsers, servers.
_SIGNS = (
    "subprocess", "Popen", "PROGRAM", "process(", "workers=", "time.sleep", "os.kill", "os.fork", "multiprocessing",
    "LocalCluster", "chromium(", "Lab(", "Jobs(", "Thread(",
)  # fmt: skip
#: Nothing waits longer than this for a repetition, in seconds.
_LONGEST = 6000


def _names(part: ast.AST) -> set[str]:
    """What a function or a class uses; fixtures are arguments."""
    nodes = list(ast.walk(part))
    return {n.id for n in nodes if isinstance(n, ast.Name)} | {n.arg for n in nodes if isinstance(n, ast.arg)}


def waiting(text: str) -> list[str]:
    """The tests of a file that do so, by themselves or by functions, classes and fixtures of the file that they use."""
    parts = {part.name: part for part in ast.parse(text).body if isinstance(part, (ast.FunctionDef, ast.ClassDef))}
    lines = {name: (ast.get_source_segment(text, part) or "", _names(part)) for name, part in parts.items()}
    found = {name for name, (source, _) in lines.items() if any(sign in source for sign in _SIGNS)}
    while more := {name for name, (_, used) in lines.items() if name not in found and used & found}:
        found |= more
    return [name for name in parts if name in found and name.startswith("test_")]


def tests() -> list[str]:
    """The tests that are repeated."""
    found = []
    for path in sorted(TESTS.rglob("test_*.py")):
        if path.name != "test_torture.py":
            found += [f"{path}::{name}" for name in waiting(path.read_text())]
    return found


def repeated(count: int, options: list[str]) -> Findings:
    """`count` runs of pytest at once."""
    findings = Findings()
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
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
            findings.fault(number, said[-6000:])
        elif counted := re.search(r"(\d+) passed", said):
            findings.counts["tests"] = int(counted[1])
    return findings


def run(seed: int, first: int, count: int) -> Findings:
    """`count` repetitions at once of the tests that wait."""
    return repeated(count, tests())


def run_whole(seed: int, first: int, count: int) -> Findings:
    """All tests that `make test` runs, in four processes: in two, beside eight others, they would take over an hour."""
    return repeated(count, ["-n", "4", "--dist", "loadfile"])
