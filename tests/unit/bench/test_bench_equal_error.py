"""The case of the benchmark that compares times at equal error."""

import importlib.util

import numpy as np
import pytest

from benchmarks import equal_error
from benchmarks.report import BenchReport


@pytest.fixture
def few(monkeypatch):
    """Short problems, one repetition, and no other packages than there must be."""
    monkeypatch.setattr(equal_error, "_REPEATS", 1)
    monkeypatch.setattr(equal_error, "_TOLERANCES", (1e-8, 1e-11))
    find = importlib.util.find_spec
    hidden = ("heyoka", "rebound")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in hidden else find(name))
    return lambda **problems: monkeypatch.setattr(equal_error, "PROBLEMS", problems)


def played():
    case, report = equal_error.EqualError(), BenchReport(1, {})
    case.run_round(True, lambda what: None)
    case.add_to_report(report)
    return case, report


def test_motions_and_mechanisms(few):
    """Every code is right, or it has no time; those that are not installed are named."""
    few(kepler=(3.0, False), **{"car-axis": (0.1, True)})
    _, report = played()
    assert report.skipped["heyoka"] == "not installed"
    for name, peers in (
        ("kepler", {"SciPy DOP853", "SUNDIALS CVODES"}),
        ("car-axis", {"SciPy DOP853", "SUNDIALS CVODES", "SUNDIALS IDAS"}),
    ):
        lines = [line for line in report.lines if line.case.startswith(name)]
        assert {line.peer for line in lines} == peers
        assert {line.case for line in lines} == {f"{name} to {target:g}, taylor" for target in equal_error.ERRORS}
        assert all(np.isfinite(line.ours) and line.theirs > 0 and line.goal.limit == 1 for line in lines)


def test_planets(few):
    """Wisdom and Holman's scheme is compared as well; with too few steps it is not accurate enough, and says so."""
    few(**{"outer-solar-system": (1e4, False)})
    case, report = played()
    assert report.skipped["REBOUND"] == "not installed"
    assert any(line.case == "outer-solar-system to 1e-06, wisdom-holman" for line in report.lines)
    run, _ = case._comparisons["outer-solar-system"].codes["wisdom-holman"]
    exact = case._comparisons["outer-solar-system"].exact
    errors = [np.abs(run(count) - exact).max() for count in (50.0, 100.0)]
    assert errors[0] / errors[1] > 3  # second order at least
