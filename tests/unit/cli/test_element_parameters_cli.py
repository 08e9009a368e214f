"""Parameters of elements on the command line, in sweeps and in scenario files: as if the model were built with them."""

import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import livens as lv

PROBLEM, END = "four-particles", 0.2
OWN = [1.0, 3.0, 2.0, 1.5]
CHANGED = [1.0, 5.5, 2.0, 0.25]
SET = ["--set", "m2.mass=5.5", "--set", "m4.mass=0.25"]
SCENARIO = f"problem: {PROBLEM}\nt_end: {END}\nparameters:\n  m2.mass: 11/2\n  m4.mass: 0.25\n"


@pytest.fixture
def livens(monkeypatch, capsys, tmp_path):
    """The program, called here: its exit code and what it prints."""
    from livens.cli import main

    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["livens", *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        printed = capsys.readouterr()
        return SimpleNamespace(returncode=stop.value.code or 0, stdout=printed.out, stderr=printed.err)

    return call


def built(m=CHANGED, **options):
    """The run of a model that was built with these masses."""
    return lv.simulate(lv.problems.load(PROBLEM, m=m), **({"t_end": END} | options))


def same(run, other):
    """To the last bits: the pivot order is chosen for the parameters a model is built with."""
    return np.abs(np.asarray(run) - np.asarray(other)).max() < 1e-13


def test_the_problem_has_these_masses():
    system = lv.problems.load(PROBLEM).model
    assert [system.parameters[f"m{i}.mass"] for i in (1, 2, 3, 4)] == OWN
    assert np.abs(built().q - built(OWN).q).max() > 1e-4


def test_run(livens, tmp_path):
    done = livens("run", PROBLEM, "--t-end", str(END), *SET, "--out", "run.h5", "--quiet")
    assert done.returncode == 0, done.stderr
    run = lv.load(tmp_path / "run.h5")
    assert same(run.q, built().q) and run.info.parameters["m4.mass"] == 0.25
    changes = {"m2.mass": 5.5, "m4.mass": 0.25}
    assert np.array_equal(run.q, lv.simulate(lv.problems.load(PROBLEM), t_end=END, parameters=changes).q)
    assert run.info.parameters["m2.mass"] == 5.5
    assert livens("run", "run.h5", "--resume", "--t-end", str(2 * END), "--quiet").returncode == 0
    assert same(lv.load(tmp_path / "run.h5").q, built(t_end=2 * END).q)
    again = run.info.made["again_in_python"]
    assert np.array_equal(eval(again, {"lv": lv}).q, run.q)


def test_a_scenario(livens, tmp_path):
    assert same(lv.scenario.parse(SCENARIO).run().q, built().q)
    (tmp_path / "a.yaml").write_text(SCENARIO)
    assert livens("run", "a.yaml", "--quiet").returncode == 0
    assert same(lv.load(tmp_path / "a.h5").q, built().q)
    done = livens("run", "a.yaml", "--set", "m2.mass=3", "--out", "b.h5", "--quiet")
    assert done.returncode == 0 and same(lv.load(tmp_path / "b.h5").q, built([1.0, 3.0, 2.0, 0.25]).q)


@pytest.mark.parametrize("source", [PROBLEM, "a.yaml"])
def test_sweep(livens, tmp_path, source):
    """The state at the end; in processes too, and whichever way the other mass is given."""
    (tmp_path / "a.yaml").write_text(SCENARIO)
    fixed = ["--set", "m4.mass=0.25"] if source == PROBLEM else []
    for workers in "1" if source == PROBLEM else "2":
        arguments = ["--t-end", str(END), "--vary", "m2.mass=3,5.5", *fixed, "--final", "--json", "--workers", workers]
        done = livens("sweep", source, *arguments)
        assert done.returncode == 0, done.stderr
        rows = json.loads(done.stdout)["rows"]
        assert [row["m2.mass"] for row in rows] == [3.0, 5.5]
        for row, mass in zip(rows, (3.0, 5.5), strict=True):
            run = built([1.0, mass, 2.0, 0.25])
            assert same([row[f"q.{name}"] for name in run.info.coordinates], run.last("q"))


def test_studies(livens):
    """They see the changed model too."""
    errors = []
    for changes in ([], SET):
        done = livens("converge", PROBLEM, "--schemes", "livens-em", "--t-end", "0.1", *changes, "--json")
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)["schemes"]["livens-em"]
        assert told["as_promised"]
        errors.append(told["points"][0]["errors"]["q"])
    assert errors[0] != errors[1]


def test_an_exact_solution_is_one_of_the_model_itself():
    """With other parameters there is none, and errors are not measured against the wrong motion."""
    problem = lv.problems.load("double-four-bar")
    moved = problem.with_parameters({"ground-lower0.at": problem.model.parameters["ground-lower0.at"]})
    assert problem.reference is not None and moved.reference is None and problem.with_parameters({}) is problem


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", PROBLEM, "--set", "m2.mas=1"], "did you mean 'm2.mass'?"),
        (["sweep", PROBLEM, "--vary", "m2.mas=1,2"], "did you mean 'm2.mass'?"),
        (["run", "bad.yaml"], "line 3, parameters.m2.mas: the model of 'four-particles' has no parameter 'm2.mas'"),
        (["run", PROBLEM, "--set", "m2.mass=1,2"], "m2.mass"),
    ],
)
def test_bad_names_and_values(livens, tmp_path, arguments, words):
    (tmp_path / "bad.yaml").write_text(f"problem: {PROBLEM}\nparameters:\n  m2.mas: 1\n")
    done = livens(*arguments)
    assert done.returncode == 2 and words in done.stderr and "Traceback" not in done.stderr
