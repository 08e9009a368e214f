"""What is known from earlier runs: which test noticed a change, and what tests take and pass through."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from mutants.changes import Change
from mutants.copies import ROOT
from mutants.targets import TARGETS

SURVIVORS = Path(__file__).with_name("survivors.toml")
KILLERS = Path(__file__).with_name("killers.json")
#: Of this machine, and made anew where it is missing.
TRACKS = ROOT / "out" / "mutants.json"


def known_survivors() -> dict[str, str]:
    """Changes that no test can or need notice, with the reason, by their keys."""
    return {entry["change"]: entry["reason"] for entry in tomllib.loads(SURVIVORS.read_text()).get("survivor", [])}


def known_killers() -> dict[str, str]:
    """The test that noticed a change last time, by its key: it is tried first."""
    return dict(json.loads(KILLERS.read_text())) if KILLERS.exists() else {}


def write_killers(killers: Mapping[str, str]) -> None:
    KILLERS.write_text(json.dumps(dict(sorted(killers.items())), indent=0) + "\n")


def proof_of(path: str) -> tuple[str, ...]:
    """The tests that claim to prove a file."""
    return next(target.tests for target in TARGETS if path in target.files)


class Tracks:
    """How long each test takes, and which functions it calls, file by file."""

    def __init__(self, tests: Mapping[str, tuple[float, tuple[str, ...]]] | None = None) -> None:
        self.tests: dict[str, tuple[float, frozenset[str]]] = {}
        self.add(tests or {})

    @classmethod
    def read(cls) -> Tracks:
        return cls(json.loads(TRACKS.read_text())) if TRACKS.exists() else cls()

    def write(self) -> None:
        TRACKS.parent.mkdir(exist_ok=True)
        TRACKS.write_text(json.dumps({test: (seconds, sorted(names)) for test, (seconds, names) in self.tests.items()}))

    def add(self, tests: Mapping[str, tuple[float, Iterable[str]]]) -> None:
        self.tests |= {test: (seconds, frozenset(names)) for test, (seconds, names) in tests.items()}

    def missing(self, files: Iterable[str]) -> list[str]:
        """Files of which nothing is known."""
        known = {test.partition("::")[0] for test in self.tests}
        return [file for file in dict.fromkeys(files) if file not in known]

    def order(self, change: Change, killers: Mapping[str, str]) -> tuple[dict[str, float], int]:
        """The tests of a change with their seconds, likely and short ones first, and how many come by its place.

        Those that have noticed other changes of the file are likely, and of the others those that call the function.
        None is said to come by code of a module, or code that is compiled.
        """
        files = set(proof_of(change.path))
        name = f"{change.path} {change.function}"
        wins = Counter(test for key, test in killers.items() if key.startswith(f"{change.path}:"))
        mine = {test: (1.0, frozenset[str]()) for test in wins if test.partition("::")[0] in files}
        mine |= {test: known for test, known in self.tests.items() if test.partition("::")[0] in files}

        def rank(test: str) -> tuple[bool, float]:
            seconds, names = mine[test]
            return name not in names, (seconds + 0.05) / (1 + wins[test])

        inside = sum(name in names for _, names in mine.values())
        return {test: mine[test][0] for test in sorted(mine, key=rank)}, inside
