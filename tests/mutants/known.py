"""Records of earlier runs: the test that detected a mutant, durations of tests, and the functions they call."""

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
#: Records of this machine; created if missing.
TRACKS = ROOT / "out" / "mutants.json"


def known_survivors() -> dict[str, str]:
    """Return the reasons of survivors that no test can or need detect, by the key of the change."""
    return {entry["change"]: entry["reason"] for entry in tomllib.loads(SURVIVORS.read_text()).get("survivor", [])}


def known_killers() -> dict[str, str]:
    """Return the test that detected a change in an earlier run, by its key; it is run first."""
    return dict(json.loads(KILLERS.read_text())) if KILLERS.exists() else {}


def write_killers(killers: Mapping[str, str]) -> None:
    KILLERS.write_text(json.dumps(dict(sorted(killers.items())), indent=0) + "\n")


def proof_of(path: str) -> tuple[str, ...]:
    """Return the tests that verify a file."""
    return next(target.tests for target in TARGETS if path in target.files)


class Tracks:
    """Durations of tests, and the functions that they call."""

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
        """Return the files without records."""
        known = {test.partition("::")[0] for test in self.tests}
        return [file for file in dict.fromkeys(files) if file not in known]

    def order(self, change: Change, killers: Mapping[str, str]) -> tuple[dict[str, float], int]:
        """Return the tests of a change with their durations, and the number of tests that call its function.

        Tests that detected other changes of the file come first, then those that call the function; short tests before
        long ones. Calls of module code and of compiled code are not recorded.
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
