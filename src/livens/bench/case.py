"""A case of the benchmark: played once per round, between the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from livens.bench.report import Report

Say = Callable[[str], None]


class Case(Protocol):
    name: str

    def play(self, first: bool, say: Say) -> None:
        """One round; `first` may do what is needed only once. `say` what takes long."""
        ...

    def tell(self, report: Report) -> None:
        """Add to the report what all rounds have shown."""
        ...
