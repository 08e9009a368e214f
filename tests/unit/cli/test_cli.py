"""The command line, as a person uses it: output, exit codes, one clear sentence instead of a traceback."""

import json
import os
import subprocess
import sys

import h5py
import numpy as np
import pytest

import livens as lv
from terminal import livens, process


def test_as_a_process(tmp_path):
    """Exit code, output and file of one that goes well, and of one that cannot."""
    done = process("run", "simple-pendulum", "--t-end", "0.1", "--every", "10", cwd=tmp_path)
    assert done.returncode == 0 and "100 steps" in done.stdout and done.stderr == ""
    assert len(lv.load(tmp_path / "simple-pendulum.h5")) == 11
    refused = process("run", "simple-pendulum", "--h", "0", cwd=tmp_path)
    assert refused.returncode == 2 and refused.stdout == ""
    assert refused.stderr.startswith("livens: h must be greater than 0") and "Traceback" not in refused.stderr


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
        "heavy = {'casadi', 'llvmlite', 'scipy', 'h5py', 'xarray', 'matplotlib', 'numpy'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_sweep_imports_what_it_needs_and_no_more():
    """A thousand short runs take less time than it takes to import SciPy and what reads scenario files."""
    code = (
        "import sys\n"
        "from livens.cli import main\n"
        "sys.argv = 'livens sweep simple-pendulum --vary l=0.5:2:10 --workers 1 --t-end 0.1 --quiet'.split()\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        "heavy = {'scipy', 'livens.scenario', 'livens.multibody', 'xarray', 'h5py', 'matplotlib'} & set(sys.modules)\n"
        "sys.exit(f'imported: {heavy}' if heavy else 0)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr


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
        "final", "resolved", "estimated_error", "accuracy",
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


def test_the_accuracy_of_a_run_is_kept_with_it(tmp_path):
    """As JSON in an attribute of the file, until the run goes on: then it is another one."""
    path = tmp_path / "simple-pendulum.h5"
    done = livens("run", "simple-pendulum", "--t-end", "0.2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    with h5py.File(path, "r") as file:
        kept = json.loads(file.attrs["accuracy"])
    found = lv.load(path).accuracy().as_object()
    assert kept["resolved"] is found["resolved"] is True and kept["accuracy"]["words"] in done.stdout.replace("\n", " ")
    assert kept["estimated_error"] == pytest.approx(found["estimated_error"])
    assert livens("run", path.name, "--resume", "--t-end", "0.3", "--quiet", cwd=tmp_path).returncode == 0
    with h5py.File(path, "r") as file:
        assert "accuracy" not in file.attrs
    told = livens("run", "simple-pendulum", "--t-end", "0.2", "--no-accuracy", "--force", cwd=tmp_path)
    with h5py.File(path, "r") as file:
        assert "accuracy" not in file.attrs and "accuracy" not in told.stdout


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
    assert facts == {"schemes": [json.loads(json.dumps(lv.schemes.get("livens-em").traits.to_dict()))]}
    done = livens("list", "schemes", "ggl-classic", cwd=tmp_path)
    assert done.stdout.startswith("ggl-classic\n") and "a constant mass matrix; a regular mass matrix" in done.stdout


def test_show(tmp_path):
    done = livens("show", "double-four-bar", cwd=tmp_path)  # no terminal, so no picture
    assert done.returncode == 0 and done.stdout.startswith("double-four-bar\n") and "speed=1" in done.stdout
    assert "Runge-Kutta methods\n            lobatto-iiic-2" in done.stdout
    drawn = livens("show", "double-four-bar", "--picture", cwd=tmp_path).stdout
    assert drawn.endswith(done.stdout) and "\u28c0\u28c0\u28c0" in drawn.splitlines()[0]
    assert "\u28c0" in livens("show", "rlc-circuit", "--picture", cwd=tmp_path).stdout
    assert livens("show", "gauss-2", cwd=tmp_path).stdout.startswith("gauss-2\n")
    done = livens("show", "double-four-bat", cwd=tmp_path)
    assert done.returncode == 2 and "did you mean 'double-four-bar'?" in done.stderr


def test_problems_have_the_scheme_that_is_declared():
    """Lists of problems tell it without building them."""
    ours = [entry for entry in lv.problems.all() if entry.factory.__module__.startswith("livens.")]
    assert len(ours) > 80
    for entry in ours:
        assert entry.default_scheme == lv.problems.load(entry.name).scheme, entry.name


def test_list_without_a_topic_names_all_problems_and_scheme_families_by_section(tmp_path):
    from livens.problems.sections import REMAINING, SECTIONS, by_section

    names = {entry.name for entry in lv.problems.all()}
    assert {name for listed in SECTIONS.values() for name in listed.split()} <= names
    assert len(by_section(names).get(REMAINING, [])) < 20  # new problems belong to a section
    short = livens("list", cwd=tmp_path).stdout
    assert len(short.splitlines()) < 100 and all(name in short for name in ("Start here", "kepler", "gauss-<s>"))
    described = livens("list", "--all", cwd=tmp_path).stdout
    assert "planet on an ellipse" in described and "conserves exactly" in described


def test_show_states_source_and_default_run_of_a_problem_and_advice_on_a_scheme(tmp_path):
    shown = livens("show", "kepler", cwd=tmp_path).stdout
    assert "Modin 2009" in shown and "scheme livens-em, h = 0.002 s, until t = 62.8319 s" in shown
    shown = livens("show", "free-rigid-body", cwd=tmp_path).stdout
    assert "h = 0.002 s, until t = 2 s\n    source run    livens-em, h = 0.05 s, until t = 2 s\n" in shown
    assert "case=axial" in livens("show", "ball-bearing", cwd=tmp_path).stdout  # an option that is no number
    shown = livens("show", "lie-em", cwd=tmp_path).stdout
    assert "use           Mechanisms of rigid bodies" in shown and "avoid if" in shown


def test_converge_takes_five_schemes_of_different_families_by_default():
    from livens.analysis.study.step_lists import representative_schemes

    chosen = representative_schemes(lv.problems.load("simple-pendulum"))
    families = {scheme.traits.family or scheme.name for scheme in chosen}
    assert len(chosen) == len(families) == 5 and chosen[0].name == "livens-em"
    assert all(scheme.group != "Methods for comparison" for scheme in chosen)


def test_run_with_out_and_resume_starts_a_run_and_resumes_it_later(tmp_path):
    options = ("--h", "0.002", "--every", "2", "--scheme", "livens-em", "--set", "m=2", "--store", "t,q")
    command = ("run", "simple-pendulum", *options, "--out", "run.h5", "--resume", "--quiet")
    assert livens(*command, "--t-end", "0.5", cwd=tmp_path).returncode == 0
    assert livens(*command, "--t-end", "1", cwd=tmp_path).returncode == 0
    assert lv.load(tmp_path / "run.h5").t[-1] == 1.0
    for changed in (("--h", "0.1"), ("--set", "m=3"), ("--store", "v")):
        refused = livens(*command[:-1], *changed, cwd=tmp_path)
        assert refused.returncode == 2 and f"{changed[0]} cannot be changed" in refused.stderr
    refused = livens("run", "kepler", "--out", "run.h5", "--resume", cwd=tmp_path)
    assert refused.returncode == 2 and "a run of 'simple-pendulum', not of 'kepler'" in refused.stderr


def test_reproduce_lists_the_figures_of_a_paper(tmp_path):
    listed = livens("reproduce", "kinon-betsch-2023", "--list", cwd=tmp_path).stdout
    assert "Energies of the two masses" in listed and not list(tmp_path.iterdir())


def test_terminals_without_utf8(tmp_path):
    """Characters that the encoding lacks are replaced; the command does not fail after its run."""
    code = "from livens.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "run", "simple-pendulum", "--t-end", "1", "--no-accuracy"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0 and b"Traceback" not in done.stderr
    assert done.stdout.decode("ascii")
