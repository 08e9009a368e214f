"""Numbers of adaptive steps at equal error, relative to equal steps: the table of eight mechanisms."""

import pytest

from benchmarks import adaptive_steps
from benchmarks.report import BenchReport

SHORT = ("double four-bar through singular positions", "double pendulum")
ROUND_OFF = 2e-12  # energy balance; the governor's stiff springs and dampers exchange much more than the energy


@pytest.mark.parametrize(
    "motion",
    [
        pytest.param(motion, id=motion.name, marks=() if motion.name in SHORT else pytest.mark.slow)
        for motion in adaptive_steps.MOTIONS
    ],
)
def test_steps_at_equal_error(motion):
    found = adaptive_steps.compare(motion)
    assert found.max_energy_drift < ROUND_OFF
    assert max(found.tolerance, found.reversible) < adaptive_steps.LIMIT
    if motion.has_phases:
        assert found.reversible < adaptive_steps.LIMIT_OF_PHASES


def test_report_of_adaptive_steps(monkeypatch):
    monkeypatch.setattr(adaptive_steps, "MOTIONS", [m for m in adaptive_steps.MOTIONS if m.name == "double pendulum"])
    case, report = adaptive_steps.AdaptiveSteps(), BenchReport(1, {})
    case.run_round(True, lambda text: None)
    case.add_to_report(report)
    assert [line.case.split(", ")[-1] for line in report.lines] == ["tolerance", "reversible"]
    assert all(line.met for line in report.lines)
