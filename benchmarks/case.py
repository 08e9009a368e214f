"""Protocol of a benchmark case: runs once per round, interleaved with the other cases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from benchmarks.report import BenchReport

Log = Callable[[str], None]


class Case(Protocol):
    name: str

    def run_round(self, first: bool, log: Log) -> None:
        """Run one round; `first` is True in the first round. `log` reports long operations."""
        ...

    def add_to_report(self, report: BenchReport) -> None:
        """Add the results of all rounds to the report."""
        ...
