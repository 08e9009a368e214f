"""The command line, as a person uses it: subprocesses, exit codes, one clear sentence instead of a traceback."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import livens as lv

PROGRAM = [sys.executable, "-c", "from livens.cli import main; main()"]


def livens(*arguments, cwd):
    return subprocess.run([*PROGRAM, *arguments], cwd=cwd, capture_output=True, text=True, timeout=300)


def test_help_names_the_commands(tmp_path):
    done = livens("--help", cwd=tmp_path)
    assert done.returncode == 0
    for command in ("run", "list", "plot", "bench"):
        assert command in done.stdout
    assert livens("--version", cwd=tmp_path).stdout.strip() == f"livens {lv.__version__}"


def test_help_imports_nothing_heavy(tmp_path):
    code = (
        "import sys\nfrom livens.cli import main\nsys.argv = ['livens', '--help']\n"
        "try: main()\nexcept SystemExit: pass\n"
        "heavy = {'casadi', 'numba', 'llvmlite', 'scipy', 'h5py', 'xarray', 'matplotlib', 'numpy'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_run_leaves_a_file_and_a_table(tmp_path):
    done = livens("run", "double-four-bar", "--t-end", "0.5", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "500 steps" in done.stdout and "round-off" in done.stdout and "generalized energy" in done.stdout
    assert len(lv.load(tmp_path / "double-four-bar.h5")) == 501
    again = livens("run", "double-four-bar", "--t-end", "0.5", cwd=tmp_path)
    assert again.returncode == 2 and "exists already" in again.stderr
    assert livens("run", "double-four-bar", "--t-end", "0.5", "--force", "--quiet", cwd=tmp_path).stdout == ""


def test_json(tmp_path):
    done = livens(
        "run", "spring-pendulum-spherical", "--scheme", "livens-midpoint", "--h", "0.005", "--set", "EA=200", "--json",
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert list(facts) == [
        "problem", "scheme", "h", "t_end", "steps", "wall_s", "us_per_step", "compile_s", "newton_iterations_mean",
        "max_energy_drift", "max_energy_increment", "max_constraint", "max_velocity_constraint", "momentum_drift",
        "final",
    ]  # fmt: skip
    assert facts["steps"] == 200 and facts["scheme"] == "livens-midpoint" and facts["momentum_drift"] < 1e-12
    expected = lv.simulate(lv.problems.load("spring-pendulum-spherical", EA=200), scheme="livens-midpoint", h=0.005)
    assert facts["final"] == {name: getattr(expected, name)[-1].tolist() for name in ("q", "v", "p")}
    assert list(tmp_path.iterdir()) == []  # no file unless asked for


def test_every_and_resume(tmp_path):
    assert livens("run", "simple-pendulum", "--t-end", "1", "--every", "10", "--quiet", cwd=tmp_path).returncode == 0
    done = livens("run", "simple-pendulum.h5", "--resume", cwd=tmp_path)
    assert done.returncode == 2 and "already finished" in done.stderr
    done = livens("run", "simple-pendulum.h5", "--resume", "--t-end", "2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    whole = lv.simulate(lv.problems.load("simple-pendulum"), t_end=2.0, every=10)
    assert np.array_equal(lv.load(tmp_path / "simple-pendulum.h5").q, whole.q)
    refused = livens("run", "simple-pendulum.h5", "--resume", "--h", "0.1", cwd=tmp_path)
    assert refused.returncode == 2 and "--h cannot be changed" in refused.stderr


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
        (["run", "simple-pendulum", "--set", "l"], "--set must look like name=number"),
        (["run", "simple-pendulum", "--set", "l=long"], "--set must look like name=number"),
        (["run", "simple-pendulum", "--set", "length=2"], "has no option 'length'"),
        (["run", "simple-pendulum", "--set", "l=nan"], "option 'l' must be a finite number"),
        (["run", "simple-pendulum", "--tier", "fast"], "unknown tier 'fast'"),
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


def test_list(tmp_path):
    done = livens("list", "problems", cwd=tmp_path)
    assert done.returncode == 0
    for entry in lv.problems.all():
        assert entry.name in done.stdout and entry.summary in done.stdout
    facts = json.loads(livens("list", "--json", cwd=tmp_path).stdout)
    assert {p["name"] for p in facts["problems"]} == {entry.name for entry in lv.problems.all()}
    assert {s["name"]: s["order"] for s in facts["schemes"]} == {s.name: s.order for s in lv.schemes.all()}
    done = livens("list", "schemes", cwd=tmp_path)
    assert "livens-em" in done.stdout and "livens-midpoint" in done.stdout
    facts = json.loads(livens("list", "schemes", "EML", "--json", cwd=tmp_path).stdout)
    assert facts == {"schemes": [json.loads(json.dumps(lv.schemes.get("livens-em").traits.as_object()))]}
    done = livens("list", "schemes", "ggl-em", cwd=tmp_path)
    assert done.stdout.startswith("ggl-em\n") and "a constant mass matrix; a regular mass matrix" in done.stdout


def test_ctrl_c_leaves_a_file_that_goes_on(tmp_path):
    """Stopped by the user: exit code 130, the steps so far in the file, and the rest bit for bit after --resume."""
    arguments = [*PROGRAM, "run", "simple-pendulum", "--h", "1e-5", "--t-end", "60", "--every", "1000", "--out", "a.h5"]
    with subprocess.Popen(
        arguments, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        while not (tmp_path / "a.h5").exists():
            time.sleep(0.05)
        time.sleep(0.3)
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    stopped = lv.load(tmp_path / "a.h5")
    assert process.returncode == 130, errors
    assert "stopped by the user" in errors and "Traceback" not in errors
    assert stopped.status == "interrupted" and 1 < len(stopped) < 6001
    done = livens("run", "a.h5", "--resume", "--quiet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    whole = lv.simulate(lv.problems.load("simple-pendulum"), h=1e-5, t_end=60.0, every=1000)
    resumed = lv.load(tmp_path / "a.h5")
    assert np.array_equal(resumed.q, whole.q) and np.array_equal(resumed.t, whole.t)
