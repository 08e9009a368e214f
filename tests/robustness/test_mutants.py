"""The list of changes that `make mutants` makes: it fits the source as it is, and is long enough."""

import ast

from mutants.__main__ import PACKAGE, ROOT, all_changes, known_survivors, proof_of, without_line
from mutants.changes import possible


def test_the_changes_can_be_made():
    """At least 150, no two alike, each of which is a program; the tests that are to notice are there."""
    changes = all_changes()
    assert len(changes) >= 150 and len({(change.path, change.source) for change in changes}) == len(changes)
    for change in changes:
        assert change.source != (ROOT / PACKAGE / change.path).read_text()
        ast.parse(change.source)
        assert all((ROOT / "tests" / test).is_file() for test in proof_of(change.path))


def test_every_known_survivor_is_a_change():
    for known in known_survivors():
        path = known.partition(":")[0]
        made = [change for change in all_changes() if change.path == path]
        assert known in {without_line(change) for change in made + possible(path, (ROOT / PACKAGE / path).read_text())}


def test_a_change_is_one_place():
    text = "def f(x):\n    '''Doc 1 + 1.'''\n    return x + 1 if x < 2 else not x\n"
    found = {change.after for change in possible("a.py", text)}
    assert found == {"(x - 1)", "(2)", "(x >= 2)", "(3)", "(x)"}
    assert [change.after for change in possible("a.py", "@dataclass(frozen=True)\nclass A:\n    b = 1\n")] == ["(2)"]
