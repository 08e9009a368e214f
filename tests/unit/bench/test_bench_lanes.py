"""The case of the benchmark with loops in lanes."""

from benchmarks import lanes
from benchmarks.report import BenchReport


def test_every_line_has_its_figure(monkeypatch):
    monkeypatch.setattr(lanes, "_REPEATS", 1)
    monkeypatch.setattr(lanes, "_STEPS", 10)
    monkeypatch.setattr(lanes, "_EXPLICIT", lanes._EXPLICIT[::2])
    case, report = lanes.SimdSteps(), BenchReport(1, {})
    case.run_round(True, lambda what: None)
    case.add_to_report(report)
    assert [line.peer for line in report.lines] == ["the same without vectors"] * 2 + [None] * 6
    assert all(line.goal is not None and line.ours > 0 for line in report.lines)
    assert {line.unit for line in report.lines if line.peer is None} == {"ms"}
