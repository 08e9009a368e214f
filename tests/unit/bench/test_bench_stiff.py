"""The case of the benchmark with stiff equations."""

import numpy as np

from benchmarks import stiff
from benchmarks.report import BenchReport


def test_codes_are_compared_at_equal_error(monkeypatch):
    """The fastest run that is accurate enough counts; a code that never is has no time, and a failure is named."""

    def fails(problem, equations, tolerance):
        raise RuntimeError("CV_TOO_MUCH_WORK\nand more")

    monkeypatch.setattr(stiff, "_cvodes", fails)
    monkeypatch.setattr(stiff, "_scipy", lambda problem, rates, slopes, tolerance: np.array(problem.exact) * 1.01)
    monkeypatch.setattr(stiff, "_TOLERANCES", (1e-4, 1e-6))
    case, report = stiff.StiffEquations(), BenchReport(1, {})
    case.run_round(False, lambda what: None)
    case.add_to_report(report)
    assert {line.case for line in report.lines} >= {"Robertson, t = 1e11 to 1e-08, radau"}
    assert all(np.isfinite(line.ours) and np.isinf(line.theirs) for line in report.lines)
    assert report.skipped["SUNDIALS CVODES, Robertson, t = 1e11 at 1e-06"] == "CV_TOO_MUCH_WORK"


def test_all_codes_follow_the_same_motion():
    """At a moderate tolerance each of them is right to four digits, on the oscillator."""
    problem = stiff.problems()["Van der Pol, mu = 1000"]
    short = stiff.Stiff(problem.model, problem.x0, 500.0, (1.0, 1.0), problem.absolute)
    ends = [run(1e-7) for run in stiff.codes(short).values()]
    assert np.abs(ends[1] / ends[0] - 1).max() < 1e-4 and np.abs(ends[2] / ends[0] - 1).max() < 1e-4
