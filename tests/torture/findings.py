"""What a part of the torture has found: counts, extremes and faults, added up over processes."""

from __future__ import annotations

import contextlib
import time
import traceback
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from livens.errors import LivensError

#: No input may take longer than this, in seconds of the processor.
LONGEST = 2.0
#: This many faults are told in full.
_TOLD = 20


@dataclass
class Findings:
    """Numbers of cases by what became of them, the largest of what was measured, and what went wrong."""

    counts: Counter[str] = field(default_factory=Counter)
    largest: dict[str, float] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def measure(self, name: str, value: float) -> None:
        self.largest[name] = max(value, self.largest.get(name, -float("inf")))

    def fault(self, case: object, words: str) -> None:
        self.counts["faults"] += 1
        if len(self.faults) < _TOLD:
            self.faults.append(f"case {case}: {words}")

    @contextlib.contextmanager
    def case(self, number: object, what: object, limit: float = LONGEST):
        """One input: it may end with a sentence, but with no other exception, and must not take long."""
        begun = time.process_time()
        try:
            yield
        except LivensError as error:
            self.counts["refused"] += 1
            if not str(error):
                self.fault(number, f"an error without words for {what!r}")
        except Exception:
            self.fault(number, f"{what!r}: {traceback.format_exc(limit=-3)}")
        taken = time.process_time() - begun
        self.measure("longest case in s", taken)
        if taken > limit:
            self.fault(number, f"{taken:.1f} s for {what!r}"[:2000])

    def __add__(self, other: Findings) -> Findings:
        largest = {
            name: max(part.get(name, -float("inf")) for part in (self.largest, other.largest))
            for name in {**self.largest, **other.largest}
        }
        return Findings(self.counts + other.counts, largest, [*self.faults, *other.faults][:_TOLD])

    def as_object(self) -> dict[str, Any]:
        return asdict(self) | {"counts": dict(self.counts)}

    @classmethod
    def from_object(cls, found: dict[str, Any]) -> Findings:
        return cls(Counter(found["counts"]), found["largest"], found["faults"])

    def __str__(self) -> str:
        counts = ", ".join(f"{count:,} {name}" for name, count in sorted(self.counts.items()))
        extremes = ", ".join(f"{name}: {value:.3g}" for name, value in sorted(self.largest.items()))
        return "; ".join(part for part in (counts, extremes) if part)
