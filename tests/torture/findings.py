"""Findings of a part of the stress tests: counts, extremes and faults, added over processes."""

from __future__ import annotations

import contextlib
import time
import traceback
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from livens.errors import LivensError

#: Time limit of an input, in seconds of processor time.
LONGEST = 2.0
#: Number of faults that are printed in full.
_MAX_PRINTED = 20


@dataclass
class Findings:
    """Numbers of cases by outcome, largest measured values, and texts of faults."""

    counts: Counter[str] = field(default_factory=Counter)
    largest: dict[str, float] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def measure(self, name: str, value: float) -> None:
        self.largest[name] = max(value, self.largest.get(name, -float("inf")))

    def fault(self, case: object, message: str) -> None:
        self.counts["faults"] += 1
        if len(self.faults) < _MAX_PRINTED:
            self.faults.append(f"case {case}: {message}")

    @contextlib.contextmanager
    def case(self, number: object, what: object, limit: float = LONGEST):
        """Test one input: it may raise a `LivensError` with a message, no other exception, and must end in time."""
        start = time.process_time()
        try:
            yield
        except LivensError as error:
            self.counts["refused"] += 1
            if not str(error):
                self.fault(number, f"an error without a message for {what!r}")
        except Exception:
            self.fault(number, f"{what!r}: {traceback.format_exc(limit=-3)}")
        taken = time.process_time() - start
        self.measure("longest case in s", taken)
        if taken > limit:
            self.fault(number, f"{taken:.1f} s for {what!r}"[:2000])

    def __add__(self, other: Findings) -> Findings:
        largest = {
            name: max(part.get(name, -float("inf")) for part in (self.largest, other.largest))
            for name in {**self.largest, **other.largest}
        }
        return Findings(self.counts + other.counts, largest, [*self.faults, *other.faults][:_MAX_PRINTED])

    def as_object(self) -> dict[str, Any]:
        return asdict(self) | {"counts": dict(self.counts)}

    @classmethod
    def from_object(cls, found: dict[str, Any]) -> Findings:
        return cls(Counter(found["counts"]), found["largest"], found["faults"])

    def __str__(self) -> str:
        counts = ", ".join(f"{count:,} {name}" for name, count in sorted(self.counts.items()))
        extremes = ", ".join(f"{name}: {value:.3g}" for name, value in sorted(self.largest.items()))
        return "; ".join(part for part in (counts, extremes) if part)
