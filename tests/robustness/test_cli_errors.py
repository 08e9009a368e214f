"""Errors of the command line: exit codes and one-line messages without traceback."""

import os
import signal

import numpy as np
import pytest

import livens as lv
from livens.run.progress import Progress
from terminal import livens


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "double-fourbar"], "did you mean 'double-four-bar'?"),
        (["run", "simple-pendulum", "--scheme", "livens-midpont"], "did you mean 'livens-midpoint'?"),
        (["run", "simple-pendulum", "--h", "0"], "h must be greater than 0"),
        (["run", "simple-pendulum", "--h", "-1"], "h must be greater than 0"),
        (["run", "simple-pendulum", "--h", "nan"], "h must be a finite number"),
        (["run", "simple-pendulum", "--h", "fast"], "valid number"),
        (["run", "simple-pendulum", "--t-end", "-1"], "t_end must lie after"),
        (["run", "simple-pendulum", "--every", "0"], "every must be a whole number"),
        (["run", "simple-pendulum", "--set", "l"], "--set must have the form name=number"),
        (["run", "simple-pendulum", "--set", "l=long"], "option 'l' must be a finite number"),
        (["run", "simple-pendulum", "--set", "length=2"], "has no option 'length'"),
        (["run", "simple-pendulum", "--set", "l=nan"], "option 'l' must be a finite number"),
        (["run", "simple-pendulum", "--tier", "fast"], "unknown tier 'fast'"),
        (["run", "simple-pendulum", "--threads", "0"], "threads must be a whole number"),
        (["run", "simple-pendulum", "--out", "no/where.h5"], "does not exist"),
        (["run", "text.h5", "--resume"], "not a result file of livens"),
        (["run", "absent.h5", "--resume"], "there is no file"),
        (["plot", "text.h5"], "not a result file of livens"),
        (["list", "schemas"], "did you mean 'schemes'?"),
        (["list", "schemes", "gaus-2"], "unknown scheme 'gaus-2'; did you mean 'gauss-2'?"),
        (["list", "problems", "keppler"], "did you mean 'kepler'?"),
        (["bench", "--rounds", "0"], "rounds must be at least 1"),
        (["walk"], "No such command"),
    ],
)
def test_bad_input(tmp_path, arguments, words):
    (tmp_path / "text.h5").write_text("hello")
    done = livens(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert words in done.stderr and "Traceback" not in done.stderr


def test_a_failed_integration(tmp_path):
    """A step far too large: exit code 3, time, residual, equation, advice, and a file with the steps before."""
    done = livens("run", "double-four-bar", "--h", "5", "--t-end", "500", "--out", "run.h5", cwd=tmp_path)
    assert done.returncode == 3, (done.stdout, done.stderr)
    for words in ("the step from t = ", "the worst equation is the", "with residual", "Try a smaller step"):
        assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert lv.load(tmp_path / "run.h5").status == "failed"


def test_ctrl_c_leaves_a_file_that_goes_on(tmp_path, monkeypatch):
    """Stopped by the user: exit code 130, the steps so far in the file, and the rest bit for bit after --resume.

    Ctrl-C comes in the third chunk of steps, so that no clock decides.
    """
    looks, update = [], Progress.update

    def told(self, done):
        update(self, done)
        looks.append(done)
        if len(looks) == 2:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Progress, "update", told)
    arguments = ["simple-pendulum", "--h", "1e-5", "--t-end", "3", "--every", "1000", "--out", "a.h5", "--no-accuracy"]
    done = livens("run", *arguments, cwd=tmp_path)
    monkeypatch.undo()
    stopped = lv.load(tmp_path / "a.h5")
    assert done.returncode == 130, done.stderr
    assert "stopped by the user" in done.stderr and "Traceback" not in done.stderr
    assert stopped.status == "interrupted" and 1 < len(stopped) < 301
    done = livens("run", "a.h5", "--resume", "--quiet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    whole = lv.simulate(lv.problems.load("simple-pendulum"), h=1e-5, t_end=3.0, every=1000)
    resumed = lv.load(tmp_path / "a.h5")
    assert np.array_equal(resumed.q, whole.q) and np.array_equal(resumed.t, whole.t)
