"""The benchmark's bookkeeping. What it measures is not tested here: times belong to a machine, not to a test."""

from __future__ import annotations

import importlib
import io
import json
import math
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

import benchmarks as bench
from benchmarks import crank, films, fresh, large, peers, schedule, slider_crank
from benchmarks.core import single_core
from benchmarks.diagram import work_precision
from benchmarks.four_bar import FourBar
from benchmarks.iftomm import IFToMM, Task, TaskTiming
from benchmarks.kepler import Kepler
from benchmarks.large import Large
from benchmarks.peers import OtherCode, clock
from benchmarks.peers import iftomm as iftomm_peers
from benchmarks.peers.clock import seconds
from benchmarks.program import ProgramError, run_module
from benchmarks.report import BenchReport, ComparisonRow, Goal, MotionCheck, ScalingPoint, WorkPrecisionPoint
from benchmarks.scaling import growth_exponent
from benchmarks.tables import show
from benchmarks.work_precision import _idas, _radau
from livens.errors import InputError


def fake_report() -> BenchReport:
    return BenchReport(
        rounds=3,
        machine={"livens": "0", "on": "paper"},
        lines=[
            ComparisonRow("linkage", 2.0, goal=Goal(">=", 30), peer="exudyn", theirs=50.0),
            ComparisonRow("linkage", 2.0, goal=Goal(">=", 2.5), peer="mujoco"),
            ComparisonRow("start", 0.5, "s", Goal("<", 1)),
            ComparisonRow("long run", 0.25),
        ],
        motions=[MotionCheck("livens 0", "livens-em", 0.3284471, 1.1e-5, 2e-14)],
        points=[ScalingPoint(2, 10_000, 1.25, 0.5, 0.25), ScalingPoint(40, 2_000, 25.0, 30.0, 2.5)],
        skipped={"mujoco": "not installed"},
    )


def printed(report: BenchReport) -> str:
    out = io.StringIO()
    show(report, Console(file=out, width=110))
    return out.getvalue()


def row(text: str, start: str) -> list[str]:
    return next(line.split() for line in text.splitlines() if line.strip().startswith(start))


def test_no_number_of_a_table_is_cut_off(capsys):
    words = "a case that says at length what was measured, and beside what, and under which conditions it was so"
    line = ComparisonRow(words, 123.0, "us", Goal(">=", 1.25), "a peer with a long name and a setting", 1234.0)
    show(BenchReport(rounds=1, machine={}, lines=[line]))
    assert row(capsys.readouterr().out, words)[-7:] == ["setting", "1234", "us", "10.0", ">=", "1.25", "yes"]


def test_goals():
    assert Goal(">=", 30).met(30) and not Goal(">=", 30).met(29.9)
    assert Goal("<=", 1.2).met(1.2) and not Goal("<", 1.2).met(1.2)
    assert str(Goal("<", 1e-13)) == "< 1e-13"
    assert not Goal("<", 1).met(math.nan)


def test_a_line_compares_the_ratio_where_there_is_a_peer_and_our_number_otherwise():
    faster = ComparisonRow("linkage", 2.0, goal=Goal(">=", 30), peer="exudyn", theirs=80.0)
    assert faster.ratio == 40 and faster.met is True
    assert ComparisonRow("linkage", 2.0, goal=Goal(">=", 30), peer="exudyn", theirs=50.0).met is False
    skipped = ComparisonRow("linkage", 2.0, goal=Goal(">=", 30), peer="exudyn")
    assert skipped.ratio is None and skipped.met is None
    assert ComparisonRow("start", 0.5, "s", Goal("<", 1)).met is True
    assert ComparisonRow("long run", 0.25).met is None


def test_table():
    text = printed(fake_report())
    assert "best of 3 rounds" in text
    assert row(text, "linkage") == ["linkage", "2.00", "us", "exudyn", "50.0", "us", "25.0", ">=", "30", "NO"]
    assert row(text, "start") == ["start", "0.500", "s", "<", "1", "yes"]
    assert row(text, "long run") == ["long", "run", "0.250", "us"]
    assert row(text, "livens 0  ")[-3:] == ["0.3284471", "1.1e-05", "2.0e-14"]
    assert row(text, "40") == ["40", "2000", "25.0", "0.625", "30.0", "2.50"]
    assert "mujoco: not installed, skipped" in text
    assert "not as wanted: linkage against exudyn" in text


def test_json_has_the_same_facts(monkeypatch, capsys):
    monkeypatch.setattr(schedule, "run_benchmark", lambda rounds, say, only: fake_report())
    bench.run_and_print(rounds=3, as_json=True)
    facts = json.loads(capsys.readouterr().out)
    assert facts["rounds"] == 3
    assert facts["lines"][0] == {
        "case": "linkage", "ours": 2.0, "unit": "us", "peer": "exudyn", "theirs": 50.0, "ratio": 25.0,
        "wanted": ">= 30", "met": False,
    }  # fmt: skip
    assert facts["lines"][1]["ratio"] is None and facts["lines"][1]["met"] is None
    assert facts["motion"][0]["x4_end"] == 0.3284471
    assert [point["N"] for point in facts["scaling"]] == [2, 40]
    assert facts["skipped"] == {"mujoco": "not installed"}


def test_tables_are_printed_without_json(monkeypatch, capsys):
    monkeypatch.setattr(schedule, "run_benchmark", lambda rounds, say, only: fake_report())
    bench.run_and_print(rounds=3)
    assert "linkage" in capsys.readouterr().out


def test_missing_peers_are_skipped_with_a_word(monkeypatch):
    monkeypatch.setattr(peers.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr("benchmarks.four_bar._STEPS", 20)
    case, report = FourBar(), BenchReport(1, {})
    case.run_round(True, lambda what: None)
    case.add_to_report(report)
    assert report.skipped == {"exudyn": "not installed", "mujoco": "not installed"}
    assert [line.met for line in report.lines if line.peer] == [None, None]
    text = printed(report)
    assert "exudyn: not installed, skipped" in text and "mujoco: not installed, skipped" in text


def test_a_peer_that_fails_is_skipped_with_its_last_words(monkeypatch):
    def fail(*_):
        raise ProgramError("out of cheese")

    monkeypatch.setattr(peers.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(peers, "run_module", fail)
    peer = OtherCode("exudyn", "nowhere")
    peer.run_round()
    assert peer.info is None and peer.error == "failed (out of cheese)"


def test_the_fastest_run_of_a_peer_counts(monkeypatch):
    times = iter([5.0, 4.0, 6.0])
    monkeypatch.setattr(peers.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(peers, "run_module", lambda *_: {"us_per_step": next(times)})
    peer = OtherCode("exudyn", "nowhere")
    for _ in range(3):
        peer.run_round()
    assert peer.info == {"us_per_step": 4.0}


def test_the_clock_leaves_out_what_others_take(monkeypatch):
    wall, processor = iter([0.0, 5.0, 10.0, 11.0]), iter([0.0, 0.25, 1.0, 3.0])
    clocks = SimpleNamespace(perf_counter=lambda: next(wall), process_time=lambda: next(processor))
    monkeypatch.setattr(clock, "time", clocks)
    assert seconds(lambda: None) == 0.25, "the rest of the time the processor served others"
    assert seconds(lambda: None) == 1.0, "several threads take more of the processor than time passes"


def test_the_last_line_of_a_program_counts(tmp_path, monkeypatch):
    (tmp_path / "talker.py").write_text("import sys\nprint('hello')\nprint('{\"a\": %d}' % int(sys.argv[1]))\n")
    (tmp_path / "failer.py").write_text("raise ValueError('no such luck')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert run_module("talker", "7") == {"a": 7}
    with pytest.raises(ProgramError, match="no such luck"):
        run_module("failer")


@pytest.mark.parametrize("exponent", [0.5, 1.0, 2.0])
def test_growth_exponent(exponent):
    sizes = [2, 5, 10, 20, 40]
    assert growth_exponent(sizes, [3.7 * N**exponent for N in sizes]) == pytest.approx(exponent)


def test_a_fresh_run_tells_all():
    asked = dict(problem="simple-pendulum", steps=10, every=5, repeats=2, options={})
    found = fresh.main(asked)
    times = {"first_step_s", "compile_s", "us_per_step", "peak_mb"}
    assert set(found) == times | {"corrections", "energy", "constraint", "unsolved"}
    assert found["energy"] < 1e-13 and found["constraint"] < 1e-13 and found["unsolved"] == 0


def told(**changes):
    """Return typical output of a run of a large system in a new process."""
    usual = dict(first_step_s=2.0, us_per_step=100.0, peak_mb=400.0, corrections=1.0)
    return {**usual, "energy": 1e-15, "constraint": 1e-13, "unsolved": 0, **changes}


def test_lines_of_large_systems(monkeypatch):
    """All lines are told, two threads are compared with one, and a run that is wrong is no measurement."""
    asked = []

    def fresh_run(problem, *, threads=1, steps=1, **options):
        asked.append((problem, threads, steps))
        return told(us_per_step=options.get("N", 1) / threads)

    monkeypatch.setattr(large, "fresh_run", fresh_run)
    monkeypatch.setattr(large.os, "cpu_count", lambda: 2)
    case, report = Large(), BenchReport(2, {})
    for number in range(2):
        case.run_round(number == 0, lambda what: None)
    case.add_to_report(report)
    found = {line.case: line for line in report.lines}
    assert found["chain, 10,000 bodies: times faster with two threads"].ours == 2.0
    assert found["n-four-bar, 101 to 10,001 bodies: exponent of time per step"].ours == pytest.approx(1.0, abs=0.01)
    assert found["n-four-bar, 10,001 bodies, 1000 steps: energy, relative"].met
    assert {"net of 50 x 50 knots: a step", "random tree, 10,000 bodies: a step"} <= set(found)
    assert [steps for _, _, steps in asked].count(1000) == 1
    for wrong in (dict(energy=1e-3), dict(constraint=float("nan")), dict(unsolved=2)):
        monkeypatch.setattr(large, "fresh_run", lambda problem, wrong=wrong, **options: told(**wrong))
        with pytest.raises(RuntimeError, match="is wrong"):
            Large().run_round(False, lambda what: None)


@pytest.mark.skipif(sys.platform != "linux", reason="processes cannot be bound to a core")
def test_cores_are_given_back():
    import os

    before = os.sched_getaffinity(0)
    with pytest.raises(ZeroDivisionError), single_core():
        assert len(os.sched_getaffinity(0)) == 1
        raise ZeroDivisionError
    assert os.sched_getaffinity(0) == before


def test_some_cases_by_their_names():
    assert [case.name for case in schedule.selected_cases("mechanisms, drawn")] == ["mechanisms", "drawn to first step"]
    assert schedule.selected_cases("") == list(schedule.CASES) and len({case.name for case in schedule.CASES}) > 20
    with pytest.raises(InputError, match="no case has 'chess' in its name; there are double-four-bar, "):
        schedule.run_benchmark(1, lambda what: None, "chess")


def test_rounds_must_be_positive():
    with pytest.raises(InputError, match="rounds"):
        schedule.run_benchmark(0, lambda what: None)


def test_the_diagram_of_work_and_precision(tmp_path):
    report = fake_report()
    report.works += [WorkPrecisionPoint("ours", f"h = {h}", h**2, 1e-3 / h) for h in (0.1, 0.01)] + [
        WorkPrecisionPoint("peer", "rtol", 1e-3, 2.0)
    ]
    axes = work_precision(report).axes[0]
    assert [line.get_label() for line in axes.lines] == ["ours", "peer"]
    assert axes.get_xscale() == axes.get_yscale() == "log"
    assert row(printed(report), "peer") == ["peer", "rtol", "1.0e-03", "2000"]
    assert report.facts()["work"][0] == {"code": "ours", "setting": "h = 0.1", "error": 0.1**2, "seconds": 1e-3 / 0.1}


def test_solvers_of_the_reduced_motion_agree_with_the_exact_one():
    for error, wall in (_radau(1e-8), _idas(1e-10)):
        assert error < 1e-5 and wall > 0


def test_both_loops_of_keplers_problem_are_the_same():
    case = Kepler()
    case._livens_loop()
    case._plain_loop()
    assert abs(case._end[:2] - case._out[-1, :2]).max() < 1e-10


def test_iftomm_halves_the_step_until_it_is_accurate():
    """One small task: the step that is told is good enough, and twice of it is not."""
    task = Task("A01", "simple-pendulum", "", 1e-4, 0.04, 0.4)
    case, report = IFToMM((task,)), BenchReport(1, {})
    case.run_round(True, lambda what: None)
    (measured,) = case._timings
    assert measured.error <= 1e-4 and measured.h < task.h
    twice = TaskTiming(Task("A01", "simple-pendulum", "", 1e9, 2 * measured.h, 0.4))
    twice.choose_step_size()
    assert twice.error > 1e-4
    case.add_to_report(report)
    assert report.lines[0].unit == "s" and report.lines[0].ours > 0 and f"h = {measured.h:g}" in report.lines[0].case


def test_the_slider_crank_is_the_one_of_the_reduced_equation():
    """Order 2 against the equation of the single degree of freedom; peers state their errors."""
    steps = [1e-2, 5e-3, 2.5e-3, 1.25e-3]
    errors = [abs(slider_crank.angle(h) - crank.exact()) for h in steps]
    assert abs(np.polyfit(np.log(steps), np.log(errors), 1)[0] - 2) < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("code", ["exudyn", "mujoco"])
def test_other_codes_solve_the_same_slider_crank(code):
    pytest.importorskip(code)
    module = importlib.import_module(f"benchmarks.peers.{code}_slider_crank")
    found = module.main(1)
    assert found["error"] <= crank.TOLERANCE and found["seconds"] > 0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # other versions of these codes have other names for the same
@pytest.mark.parametrize("code", ["exudyn", "mujoco"])
@pytest.mark.parametrize(
    ("problem", "look", "theirs", "h", "t_end"),
    [
        ("simple-pendulum", "", "bob.position", 1e-2, 2.0),
        ("double-four-bar-multibody", "upper0.position", "", 1e-2, 2.0),
        ("andrews-squeezer", "", "K1.angle", 1e-4, 0.01),
        ("bricard", "rod2.end", "", 1e-2, 2.0),
        ("flyball-governor", "slider.position", "", 1e-3, 1.0),
    ],
)
def test_other_codes_solve_the_same_linkages(code, problem, look, theirs, h, t_end):
    """From the same drawings, they end where livens ends."""
    pytest.importorskip(code)
    task = Task("one", problem, look, 1e-3, h, t_end, other_output=theirs)
    one = TaskTiming(task)
    one.choose_step_size()
    (peer,) = (peer for peer in one.peers if peer.name == code)
    assert iftomm_peers.main(*json.loads(peer.arguments[0]))["error"] <= 1e-3


def test_lines_of_films(monkeypatch):
    """Once, however many rounds there are; without a browser, what needs one is skipped with a word."""
    asked = []

    def module(name, what):
        asked.append(json.loads(what)["part"])
        return {"s": 0.5, "mb": 20.0}

    monkeypatch.setattr(films, "run_module", module)
    monkeypatch.setattr(films, "missing", lambda: "")
    case, report = films.Animations(), BenchReport(2, {})
    for first in (True, False):
        case.run_round(first, lambda what: None)
    case.add_to_report(report)
    assert asked == ["write", "open", "lab"]
    assert [line.ours for line in report.lines] == [20.0, 0.5, 0.5, 0.5] and all(line.met for line in report.lines[1:])
    monkeypatch.setattr(films, "missing", lambda: "not installed")
    case, report = films.Animations(), BenchReport(1, {})
    case.run_round(True, lambda what: None)
    case.add_to_report(report)
    assert len(report.lines) == 2 and report.skipped == {"chromium": "not installed"}


def test_benchmarks_need_a_checkout(tmp_path, monkeypatch):
    from livens.cli.bench import bench

    monkeypatch.setattr("livens.cli.bench.livens.__file__", str(tmp_path / "lib" / "site-packages" / "__init__.py"))
    with pytest.raises(InputError, match="needs a checkout"):
        bench()
