"""Protocol of a benchmark case: runs once per round, interleaved with the other cases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from livens.bench.report import Report

Say = Callable[[str], None]


class Case(Protocol):
    name: str

    def play(self, first: bool, say: Say) -> None:
        """Run one round; `first` is True in the first round. `log` reports long operations."""
        ...

    def tell(self, report: Report) -> None:
        """Add the results of all rounds to the report."""
        ...
