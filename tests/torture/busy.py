"""Repetitions of all tests that start processes, send signals or wait, and one run of all tests, on a busy machine."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

from torture.findings import Findings

TESTS = Path(__file__).parents[1]
#: Texts of functions that start processes, send signals or wait: programs, workers, browsers, servers.
_SIGNS = (
    "subprocess", "Popen", "PROGRAM", "process(", "workers=", "time.sleep", "os.kill", "os.fork", "multiprocessing",
    "LocalCluster", "chromium(", "Lab(", "Jobs(", "Thread(",
)  # fmt: skip
#: Time limit of a repetition, in seconds.
_LONGEST = 6000


def _names(part: ast.AST) -> set[str]:
    """Return the names used by a function or class; fixtures are arguments."""
    nodes = list(ast.walk(part))
    return {n.id for n in nodes if isinstance(n, ast.Name)} | {n.arg for n in nodes if isinstance(n, ast.arg)}


def waiting(text: str) -> list[str]:
    """Return the tests of a file that wait, themselves or by functions, classes and fixtures of the file."""
    parts = {part.name: part for part in ast.parse(text).body if isinstance(part, (ast.FunctionDef, ast.ClassDef))}
    lines = {name: (ast.get_source_segment(text, part) or "", _names(part)) for name, part in parts.items()}
    waiting_names = {name for name, (source, _) in lines.items() if any(sign in source for sign in _SIGNS)}
    while more := {name for name, (_, used) in lines.items() if name not in waiting_names and used & waiting_names}:
        waiting_names |= more
    return [name for name in parts if name in waiting_names and name.startswith("test_")]


def tests() -> list[str]:
    """Return the tests that are repeated."""
    waiting_names = []
    for path in sorted(TESTS.rglob("test_*.py")):
        if path.name != "test_torture.py":
            waiting_names += [f"{path}::{name}" for name in waiting(path.read_text())]
    return waiting_names


def repeated(count: int, options: list[str]) -> Findings:
    """Run pytest `count` times in parallel."""
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
            output, _ = process.communicate(timeout=_LONGEST)
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
        findings.counts["repetitions"] += 1
        findings.counts["that passed"] += process.returncode == 0
        if process.returncode:
            findings.fault(number, output[-6000:])
        elif n_passed := re.search(r"(\d+) passed", output):
            findings.counts["tests"] = int(n_passed[1])
    return findings


def run(seed: int, first: int, count: int) -> Findings:
    """Repeat the tests that wait `count` times in parallel."""
    return repeated(count, tests())


def run_whole(seed: int, first: int, count: int) -> Findings:
    """Run all tests of `make test` in four processes; in two, beside eight others, they take more than an hour."""
    return repeated(count, ["-n", "4", "--dist", "loadfile"])
