"""The case of the benchmark with motions without constraints."""

import importlib.util

from benchmarks import series
from benchmarks.report import BenchReport


def test_codes_are_compared_where_they_are_right(monkeypatch):
    """Ours is the measure of the others; one that is wrong, or not there, is named with a word."""
    monkeypatch.setattr(series, "_PROBLEMS", {"nonlinear-pendulum": (3.0, 1e-8)})
    monkeypatch.setattr(series, "_REPEATS", 1)
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "heyoka" else find(name))
    case, report = series.Series(), BenchReport(1, {})
    monkeypatch.setattr(series, "_cvodes", lambda integrator, x0: x0[:1] + 1.0)
    case.run_round(True, lambda what: None)
    case.add_to_report(report)
    assert [line.peer for line in report.lines] == [None, "SciPy DOP853"] and report.lines[1].theirs > 0
    assert report.skipped["heyoka"] == "not installed"
    assert "more than 1e-08" in report.skipped["SUNDIALS CVODES, nonlinear-pendulum"]
