"""Rows go to their file while the next steps are computed: in their order, and what goes wrong is said."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import livens as lv
from livens.errors import WriteError
from livens.results import recorder
from livens.results.background import BackgroundTask
from livens.results.storage.hdf5_writer import RunFile


def test_one_thing_after_the_other():
    beside, done, may = BackgroundTask(), [], threading.Event()
    beside.submit(lambda: (may.wait(60), done.append(1)))
    assert not done
    may.set()
    beside.submit(lambda: done.append(2))
    beside.result()
    assert done == [1, 2]


def test_what_goes_wrong_is_raised_where_it_is_waited_for_and_only_once():
    beside = BackgroundTask()

    def fails():
        raise OSError("the disk is full")

    beside.submit(fails)
    with pytest.raises(OSError, match="full"):
        beside.result()
    beside.result()
    beside.submit(fails)
    beside.join()  # whoever only tidies up does not want to know
    assert not [thread for thread in threading.enumerate() if thread.name == "livens-rows"]


def test_a_run_is_the_same_in_memory_and_in_a_file(monkeypatch, tmp_path):
    """Also where every chunk of steps is written by itself, beside the next one."""
    monkeypatch.setattr(recorder, "FLUSH_BYTES", 1)
    monkeypatch.setattr(recorder, "COMMIT_INTERVAL", 1e6)
    begun = []
    monkeypatch.setattr(
        BackgroundTask, "submit", lambda self, work, do=BackgroundTask.submit: (begun.append(1), do(self, work))[1]
    )
    problem = lv.problems.load("simple-pendulum")
    kept = lv.simulate(problem, t_end=30_000 * problem.h)
    written = lv.simulate(problem, t_end=30_000 * problem.h, out=tmp_path / "run.h5")
    assert len(begun) > 5
    for name in ("t", "q", "v", "p", "multipliers"):
        np.testing.assert_array_equal(kept[name], written[name])


def test_a_failure_to_write_ends_the_run(monkeypatch, tmp_path):
    monkeypatch.setattr(recorder, "FLUSH_BYTES", 1)
    append, calls = RunFile.append, []

    def fails(self, arrays):
        calls.append(threading.current_thread().name)
        if len(calls) < 4:
            return append(self, arrays)
        with self._writing():
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(RunFile, "append", fails)
    problem = lv.problems.load("simple-pendulum")
    with pytest.raises(WriteError, match="no space left") as caught:
        lv.simulate(problem, t_end=100_000 * problem.h, out=tmp_path / "run.h5")
    assert "livens-rows" in calls[3]
    assert caught.value.result.status == "running"
    assert not [thread for thread in threading.enumerate() if thread.name == "livens-rows"]
