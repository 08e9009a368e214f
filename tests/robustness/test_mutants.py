"""Mutation testing: the list of mutants matches the source, is long enough, and verdicts are right."""

import ast
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mutants.__main__ import Trial, all_changes
from mutants.changes import all_changes_of, handwritten_change
from mutants.copies import PACKAGE, ROOT, Copy, Outcome
from mutants.known import Tracks, known_killers, known_survivors, proof_of


# -- the list -----------------------------------------------------------------------------------------------------
def test_mutants_are_valid_programs():
    """Mutants are at least 150 different valid programs, and their tests exist."""
    changes = all_changes()
    assert len(changes) >= 150 and len({(change.path, change.source) for change in changes}) == len(changes)
    assert len({change.key for change in changes}) == len(changes)
    for change in changes:
        assert change.source != (ROOT / PACKAGE / change.path).read_text()
        ast.parse(change.source)
        assert all((ROOT / "tests" / test).is_file() for test in proof_of(change.path))


def test_records_match_the_source():
    """Known survivors are mutants of the source, and known tests are in existing files."""
    keys = {change.key for change in all_changes()}
    for survivor in known_survivors().keys() - keys:
        path = survivor.partition(":")[0]
        assert survivor in {change.key for change in all_changes_of(path, (ROOT / PACKAGE / path).read_text())}
    for test in known_killers().values():
        assert (ROOT / "tests" / test.partition("::")[0]).is_file()


def test_a_change_is_one_place():
    text = "def f(x):\n    '''Doc 1 + 1.'''\n    return x + 1 if x < 2 else not x\n"
    found = {change.after for change in all_changes_of("a.py", text)}
    assert found == {"(x - 1)", "(2)", "(x >= 2)", "(3)", "(x)"}
    assert [change.after for change in all_changes_of("a.py", "@dataclass(frozen=True)\nclass A:\n    b = 1\n")] == [
        "(2)"
    ]
    assert not all_changes_of("a.py", "for a, b in zip(c, d, strict=True):\n    default_rng(7)\n    e.reshape(-1, f)\n")


def test_the_key_of_a_change_does_not_depend_on_its_line():
    """The key of a change contains function and line, not its number; repeated texts have different keys."""
    text = "class A:\n    def f(self, x):\n        return x + 1 - 1\n"
    names = [change.key for change in all_changes_of("a.py", text)]
    assert names == [change.key for change in all_changes_of("a.py", "import os\n\n\n" + text)]
    assert len(set(names)) == 4 and {change.function for change in all_changes_of("a.py", text)} == {"A.f"}
    assert handwritten_change("a.py", text, "x + 1", "x").function == "A.f"


# -- a project of three lines ---------------------------------------------------------------------------------------
SOURCE = "def twice(x):\n    return 2 * x\n"
TESTS = """
import subprocess, sys
from livens.small import twice

def test_nothing():
    assert twice(0) == 0

def test_three():
    assert twice(3) == 6

def test_always_wrong():
    assert twice(1) == 3
"""


@pytest.fixture
def project(tmp_path):
    (tmp_path / "src" / "livens").mkdir(parents=True)
    (tmp_path / "src" / "livens" / "__init__.py").write_text("")
    (tmp_path / "src" / "livens" / "small.py").write_text(SOURCE)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_small.py").write_text(TESTS)
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    return tmp_path


def change_to(after):
    return handwritten_change("small.py", SOURCE, "2 * x", after)


def test_tests_are_run_in_a_copy(project, monkeypatch):
    """Known killers run first; calls are traced; a mutation exists only while its tests run."""
    good = ["test_small.py::test_three", "test_small.py::test_nothing"]
    monkeypatch.setattr("mutants.copies.LIMIT", 5.0)
    copy = Copy(project)
    try:
        right = copy.run(good, trace=True)
        assert right.passed and set(right.tests) == set(good)
        assert right.tests[good[0]][1] == ("small.py twice",)
        with copy.mutated(change_to("x + x + 1")):
            wrong = copy.run(good, known=dict.fromkeys(good, 0.0))
            other = copy.run(good, known=dict.fromkeys(good[::-1], 0.0), all_of_them=True)
        assert list(wrong.failed) == good[:1] and list(other.failed) == good[::-1]
        with copy.mutated(change_to("__import__('time').sleep(1e9)")):
            assert copy.run(good[:1], known={good[0]: 0.0}).hung == good[0]
        assert copy.run(good).passed and "no such test" in copy.run(["test_small.py::test_other"]).reason
    finally:
        copy.close()
    assert not copy.folder.exists()


class _FakeCopy:
    """Copy with given outcomes, for a mutated source and for the unchanged one."""

    seconds = 0.0

    def __init__(self, mutated, unchanged):
        self._outcomes = {True: mutated, False: unchanged}
        self._is_mutated = False

    def mutated(self, change):
        return self

    def __enter__(self):
        self._is_mutated = True

    def __exit__(self, *_):
        self._is_mutated = False

    def run(self, tests, **options):
        return self._outcomes[self._is_mutated]


def outcome(code=0, failed=None, hung=None, wall=0.1):
    return Outcome(code, failed or {}, hung, {}, {"a::b": wall}, "", wall, wall)


@pytest.mark.parametrize(
    ("wrong", "right", "verdict"),
    [
        (outcome(), outcome(), "survived"),
        (outcome(1, {"a::b": "3 != 4"}), outcome(), "detected"),
        (outcome(1, {"a::b": "3 != 4"}), outcome(1, {"a::b": "3 != 4"}), "not decided"),  # it fails anyway
        (outcome(-11), outcome(), "detected"),  # a crash
        (outcome(None, hung="a::b", wall=60.0), outcome(wall=5.9), "detected"),
        (outcome(None, hung="a::b", wall=60.0), outcome(wall=6.1), "not decided"),  # the machine is busy
        (outcome(None, hung="a::b", wall=60.0), outcome(None, hung="a::b", wall=60.0), "not decided"),
        (outcome(None, wall=1200.0), outcome(wall=130.0), "not decided"),  # all tests together took too long
    ],
)
def test_verdicts(wrong, right, verdict):
    change = all_changes()[0]
    trial = Trial([change], killers={}, tracks=Tracks())
    assert trial.verdict_of(_FakeCopy(wrong, right), change)[0] == verdict


def test_processes_and_copies_are_removed(project):
    """All processes end if the owner of the copy is killed while a test waits for a process."""
    started = project / "started"
    (project / "tests" / "test_long.py").write_text(
        "import os, subprocess, sys\n"
        "def test_long():\n"
        f"    program = [sys.executable, '-c', 'import time; time.sleep(1e5)']\n"
        f"    child = subprocess.Popen(program, start_new_session=True)\n"
        f"    open({str(started)!r}, 'w').write(f'{{child.pid}} {{os.getpid()}} ')\n"
        "    child.wait()\n"
    )
    program = (
        f"from mutants.copies import Copy; from pathlib import Path; copy = Copy(Path({str(project)!r}))\n"
        "import json; print(json.dumps(str(copy.folder)), flush=True)\n"
        "copy.run(['test_long.py'])\n"
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": str(ROOT / "tests")}, stdout=subprocess.PIPE
    )
    folder = Path(json.loads(owner.stdout.readline()))
    while not started.exists() or len(started.read_text().split()) < 2:
        time.sleep(0.05)
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    owner.stdout.close()
    processes = [Path(f"/proc/{pid}") for pid in started.read_text().split()]
    while folder.exists() or any(process.exists() for process in processes):  # for ever, if it does not work
        time.sleep(0.05)


# -- the source itself ----------------------------------------------------------------------------------------------
def test_known_tests_detect_mutants():
    """Mutants of schemes, tableaus, engine, files and verdicts are detected by the known tests."""
    killers, changes = known_killers(), all_changes()
    paths = ("analysis/round_off", "engine/newton", "schemes/tableaus", "run/drift_monitor", "results/dense_output")
    handful = [next(c for c in changes if c.path.startswith(path) and c.key in killers) for path in paths]
    trial = Trial(handful)
    trial.run(workers=1)
    assert [trial.verdicts[change.key] for change in handful] == ["detected"] * len(paths)
