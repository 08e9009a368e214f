"""A small part of each of what `make torture` does, and that it would notice faults."""

import contextlib
import random
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import livens as lv
from livens.scenario import evaluate
from torture import __main__ as torture
from torture import (
    busy,
    commands,
    dead_centres,
    ensemble_kills,
    expressions,
    findings,
    kills,
    long_run,
    random_mechanics,
    result_files,
    scenario_files,
)
from torture.__main__ import INPUTS, PARTS, Part, run_parts
from torture.findings import Findings

SEED = 2


def sound(found):
    assert not found.counts["faults"], "\n".join(found.faults)
    return found.counts


@pytest.mark.parametrize(
    ("run", "count", "seen"),
    [
        (expressions.run, 3000, ("expressions", "evaluated", "refused", "with unknown names")),
        (scenario_files.run, 150, ("damaged scenarios", "of these still valid", "refused")),
        (scenario_files.run_valid, 60, ("valid scenarios", "that took their first step")),
        (commands.run, 60, ("command lines", "with exit code 0", "with exit code 2")),
        (result_files.run, 400, ("damaged files", "read", "resumed", "refused")),
        (dead_centres.run, 25, ("linkages", "dead centres passed", "that kept their branch")),
        (random_mechanics.run, 6, ("random systems", "verdicts that agree")),
        (kills.run, 3, ("kills",)),
        (ensemble_kills.run, 6, ("kills of ensembles",)),
        (long_run.run, 200_000, ("steps",)),
    ],
)
def test_a_small_part(run, count, seen, monkeypatch):
    monkeypatch.setattr(findings, "time", SimpleNamespace(process_time=lambda: 0.0))  # no clock decides here
    counts = sound(run(SEED, 0, count))
    assert all(counts[name] for name in seen), counts


@pytest.mark.parametrize("count", [2000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_memory_does_not_grow_with_calls(count, monkeypatch):
    """In a process of its own, whose caches are empty at the start."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]), prepend=":")
    counts = sound(torture.run_cases("varied-calls", SEED, 0, count))
    assert counts["calls"] == count


def test_at_full_size_there_are_enough():
    assert sum(PARTS[name].cases for name in INPUTS) >= 1_000_000
    assert PARTS["valid"].cases >= 100_000 and PARTS["kills"].cases >= 1000 and PARTS["dead-centres"].cases >= 300
    assert PARTS["random-systems"].cases >= 1000
    assert PARTS["long-run"].cases >= 1_000_000_000 and PARTS["busy"].cases >= 5 and PARTS["whole"].cases >= 1
    names = {name.rpartition("/")[2] for name in busy.tests()}
    assert {
        "test_interrupts.py::test_a_sweep_ends_after_ctrl_c", "test_survival.py::test_killed_at_any_time",
        "test_cli_errors.py::test_ctrl_c_leaves_a_file_that_goes_on", "test_study.py::test_ctrl_c_with_processes",
        "test_lab_page.py::test_a_run_by_clicks", "test_cluster.py::test_a_cluster_changes_no_bit",
    } <= names  # fmt: skip
    assert "test_study.py::test_report" not in names


def test_it_runs_in_processes_of_its_own(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]), prepend=":")
    monkeypatch.setitem(PARTS, "expressions", Part("expressions", 50_000, 2))
    found = run_parts(["expressions"], 2e-3, SEED, 2)["expressions"]
    assert sound(found)["expressions"] == 100


def test_tests_have_eight_busy_processes_beside_them(monkeypatch):
    """Tests run beside processes of other parts, then beside processes that only load the machine."""
    beside, most, done = [], [], threading.Event()

    @contextlib.contextmanager
    def spinning():
        beside.append("idle")
        if beside.count("idle") == torture.BUSY:
            done.set()
        yield
        beside.remove("idle")

    def run_cases(part, seed, first, count):
        if part == "busy":
            assert done.wait(60)
            most.append(len(beside))
        return Findings(Counter({part: count}))

    monkeypatch.setattr(torture, "spinning", spinning)
    monkeypatch.setattr(torture, "run_cases", run_cases)
    found = run_parts(["busy", "whole", "kills"], 0.2, SEED, 2)
    assert most == [torture.BUSY] and not beside
    assert found["busy"].counts == {"busy": 1} and found["kills"].counts == {"kills": 200}
    assert not found["whole"].counts  # a fifth of all tests is none
    done.clear()
    assert run_parts(["kills"], 0.2, SEED, 2)["kills"].counts == {"kills": 200} and not done.is_set()


# -- it would notice --------------------------------------------------------------------------------------------------
def test_wrong_values_exceptions_and_slow_cases_are_faults(monkeypatch):
    right = evaluate.evaluate
    monkeypatch.setattr(evaluate, "evaluate", lambda *arguments: right(*arguments) + 1e-6)
    assert expressions.run(SEED, 0, 100).counts["faults"]
    found = Findings()
    with found.case(1, "what"):
        raise KeyError("raw")
    with found.case(2, "what", limit=-1.0):
        pass
    with found.case(3, "what"):
        raise lv.InputError("a sentence")
    assert found.counts["faults"] == 2 and found.counts["refused"] == 1
    assert (found + found).counts["faults"] == 4


def test_a_crash_is_a_fault():
    code = "import sys, torture.expressions as e, os; e.run = lambda *_: os.abort()\n"
    code += "sys.argv = ['', '--only', 'expressions', '--count', '1']; from torture.__main__ import main; main()"
    path = str(Path(__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {path!r}); {code}"], capture_output=True
    )
    assert done.returncode != 0


def test_changed_numbers_in_files_are_faults(monkeypatch):
    """Without checksums, flipped bits are read as numbers."""
    from livens.results.storage import checksums

    monkeypatch.setattr(checksums, "read_verified", lambda file, name, first, last: file[name][first:last])
    monkeypatch.setattr(result_files, "damage", _flip_a_number)
    assert result_files.run(SEED, 0, 20).counts["faults"]


def _flip_a_number(chance, whole):
    data = bytearray(whole)
    place = data.rfind(lv.simulate(lv.problems.load("simple-pendulum"), t_end=0.03).q[5:9].tobytes())
    if place >= 0:
        data[place + 3] ^= 1
    else:
        del data[-1]  # which is noticed
    return bytes(data)


def test_a_jump_to_the_other_branch_is_seen():
    chance = random.Random(3)
    k, q0, _ = dead_centres.linkage(chance, "slider-crank")
    mirrored = [q0[0], q0[1], 2 * q0[0] - q0[2]]
    rows = dead_centres.side("slider-crank", np.array([q0, mirrored]), k)
    assert rows[0] * rows[1] < 0


def test_a_trend_of_the_energy_is_seen():
    """Random walks of round-off have none; a bias of a two-thousandth of the last digit in each of 1e9 steps is one."""
    chance = np.random.default_rng(7)
    rows, steps = long_run.ROWS, 1_000_000_000 // long_run.ROWS
    walks = np.cumsum(chance.normal(0.0, 1.5e-16 * np.sqrt(steps), (200, rows)), axis=1)
    found = np.array([long_run.trend(walk) for walk in walks])
    assert np.abs(found).max() < 4.0 and 0.8 < found.std() < 1.2
    assert min(long_run.trend(walk + 1.1e-19 * steps * np.arange(rows)) for walk in walks) > 15.0


def test_a_pendulum_needs_one_correction_in_every_step():
    """At turning points of the unknowns further corrections are biased rounding, which the energy reveals."""
    run = lv.simulate(lv.problems.load("simple-pendulum"), t_end=100.0, every=100)
    assert run.statistics.newton_iterations <= 1.001 * run.statistics.steps
    energy = run.observe("generalized_energy") / np.abs(run.observe("kinetic_energy")).max()
    assert abs(long_run.trend(energy)) < 4.0
