"""Scenario files: the same runs as from Python, the language, and the commands that read them."""

import builtins
import json
import math
import re
import subprocess
import sys
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from hypothesis import given, settings

import livens as lv
from livens import math as m
from livens.errors import InputError
from livens.scenario import evaluate, grammar, reader, tokens
from livens.scenario import templates as examples
from scenarios import EVERYTHING, EXPRESSIONS, PENDULUM, changed, complaint, guarded, value
from terminal import livens

DOCUMENT = Path(__file__).parents[3] / "docs" / "howto" / "yaml-models.md"


# -- the same as from Python ------------------------------------------------------------------------------------------
def test_a_pendulum_as_in_python():
    system = lv.System(
        "x y",
        kinetic=lambda v, k: 0.5 * k.m * (v[0] ** 2 + v[1] ** 2),
        potential=lambda q, k: k.m * k.g * q[1],
        constraints=lambda q, k: [0.5 * (q[0] ** 2 + q[1] ** 2 - k.l**2)],
        constraint_names=["length of the rod"],
        parameters=dict(m=1.0, l=1.0, g=9.81),
    )
    expected = lv.simulate(system, q0=[-1, 0], v0=[0, 0], scheme="livens-em", h=1e-3, t_end=1)
    result = lv.scenario.parse(PENDULUM).run()
    for name in ("t", "q", "v", "p", "multipliers"):
        assert np.array_equal(getattr(result, name), getattr(expected, name))
    assert result.info.coordinates == ("x", "y") and result.info.constraint_names == ("length of the rod",)
    assert result.info.parameters == dict(m=1.0, l=1.0, g=9.81)


def everything():
    def forces(q, v, t, k):
        push = m.where(t < 0.5, m.sin(m.pi * t), 0.0) * m.exp(-(q[2] ** 2))
        return [-0.1 * v[0] * abs(v[0]), push, 0.0]

    return lv.System(
        "r phi s",
        kinetic=lambda q, v, k: k.mass / 2 * (v[0] ** 2 + (q[0] * v[1]) ** 2) + k.twice / 2 * v[2] ** 2,
        potential=lambda q, k: k.c / 2 * (q[0] - 1) ** 2 + m.maximum(q[2], 0) ** 2 - m.cos(q[1]) * math.e,
        dissipation=lambda q, v, k: k.d / 2 * ((q[0] * v[1]) ** 2 + v[2] ** 2),
        constraints=lambda q, t: [q[2] - 0.1 * m.sin(t) - q[0] + 1],
        forces=forces,
        parameters=dict(mass=2.0, twice=4.0, c=30.0, d=0.25),
    )


def test_every_field_as_in_python():
    start = dict(q0=[1, math.pi / 6, 0], v0=[0, 0.5, 0.1])
    expected = lv.simulate(everything(), **start, scheme="livens-midpoint", h=0.01, t_end=2, every=4)
    result = lv.scenario.parse(EVERYTHING).run()
    assert np.array_equal(result.q, expected.q) and np.array_equal(result.v, expected.v) and len(result) == 51
    assert np.array_equal(result.supplied_energy, expected.supplied_energy) and np.any(result.supplied_energy != 0)
    assert np.array_equal(result.dissipated_energy, expected.dissipated_energy)


def test_lists_and_names_mean_the_same():
    listed = EVERYTHING.replace(
        "    phi: push\n    r: -0.1*v_r*abs(v_r)", "    - -0.1*v_r*abs(v_r)\n    - push\n    - 0"
    )
    named = EVERYTHING.replace("    - s - 0.1", "    gap: s - 0.1")
    assert listed != EVERYTHING != named
    results = [lv.scenario.parse(text).run() for text in (EVERYTHING, listed, named)]
    assert all(np.array_equal(result.q, results[0].q) for result in results)
    assert [result.info.constraint_names for result in results] == [("g[0]",), ("g[0]",), ("gap",)]


def test_a_ready_problem():
    scenario = lv.scenario.parse(
        "problem: double-four-bar\noptions: {speed: 4/2}\nt_end: 0.2\nscheme: livens-midpoint\n"
    )
    expected = lv.simulate(lv.problems.load("double-four-bar", speed=2), scheme="livens-midpoint", t_end=0.2)
    result = scenario.run()
    assert np.array_equal(result.q, expected.q)
    assert (result.info.problem, result.info.problem_options) == ("double-four-bar", {"speed": 2.0})
    assert np.array_equal(scenario.changed({"speed": 3}).problem().v0, lv.problems.load("double-four-bar", speed=3).v0)


def test_what_is_given_to_run_wins():
    result = lv.scenario.parse(PENDULUM).run(h=0.01, t_end=0.5, scheme="livens-midpoint", every=5)
    facts = result.info
    assert (facts.h, facts.t_end, facts.scheme, facts.every) == (0.01, 0.5, "livens-midpoint", 5)


def test_changed_parameters_move_the_start():
    changed = lv.scenario.parse(PENDULUM).changed({"l": 2.0, "g": 1e-5}).problem()
    assert changed.model.parameters == dict(m=1.0, l=2.0, g=1e-5) and changed.q0.tolist() == [-2.0, 0.0]
    with pytest.raises(InputError, match="has no parameter 'length'"):
        lv.scenario.parse(PENDULUM).changed({"length": 2.0})
    with pytest.raises(InputError, match=r"line 3, system\.parameters\.l: must be a finite number, got nan"):
        lv.scenario.parse(PENDULUM).changed({"l": math.nan})
    with pytest.raises(InputError, match="must be one number"):
        lv.scenario.parse(PENDULUM).changed({"l": [1.0, 2.0]})


def test_a_start_beside_the_constraints_can_be_moved():
    beside = PENDULUM.replace("x: -l", "x: -1.01")
    with pytest.raises(InputError, match="inconsistent initial values: constraint 'length of the rod'"):
        lv.scenario.parse(beside).run()
    assert lv.scenario.parse(beside + "project: true\n").run().q[0] == pytest.approx([-1, 0], abs=1e-12)


def test_redundant_constraints_can_be_removed():
    twice = PENDULUM.replace("length of the rod:", "again: r2 - l**2, length of the rod:")
    with pytest.raises(InputError, match="redundant constraints"):
        lv.scenario.parse(twice).run()
    assert lv.scenario.parse(twice + "redundant: remove\n").run().info.dropped == (1,)


def test_values_are_what_their_field_makes_of_them():
    """YAML's own rules would read these coordinates as booleans, 1e-3 as a text and 1:30 as 90."""
    text = PENDULUM.replace("coordinates: x y", "coordinates: [x, y, no, on]").replace("y: 0,", "y: 0, no: 0, on: 0,")
    system = lv.scenario.parse(text.replace("+ v_y**2", "+ v_y**2 + v_no**2 + v_on**2")).problem().model
    assert system.coordinates == ("x", "y", "no", "on")
    assert "line 9, h: ':' is not part of the language" in complaint(PENDULUM.replace("h: 1e-3", "h: 1:30"))


def test_greek_letters():
    text = PENDULUM.replace("coordinates: x y", "coordinates: x y θ").replace("y: 0", "y: 0, θ: π0", 1)
    text = text.replace("m: 1.0", "m: 1.0, π0: 0.5").replace("+ v_y**2", "+ v_y**2 + v_θ**2")
    assert lv.scenario.parse(text).problem().q0.tolist() == [-1.0, 0.0, 0.5]


# -- files of runs ----------------------------------------------------------------------------------------------------
def test_result_files_know_their_system(tmp_path):
    scenario = lv.scenario.parse(EVERYTHING).changed({"c": 31.5})
    whole = scenario.run()
    scenario.run(t_end=1.2, out=tmp_path / "a.h5")
    loaded = lv.load(tmp_path / "a.h5")
    assert loaded.info.problem == "scenario" and loaded.info.parameters["c"] == 31.5
    json.dumps(loaded.info.problem_options)
    assert loaded.observe("total_energy").shape == (31,)
    resumed = lv.resume(tmp_path / "a.h5", t_end=2.0)
    for name in ("t", "q", "v", "p", "multipliers"):
        assert np.array_equal(getattr(resumed, name), getattr(whole, name))
    energy = lv.load(tmp_path / "a.h5").observe("generalized_energy")
    assert np.array_equal(energy, whole.observe("generalized_energy"))


def test_changed_values_survive_in_the_file(tmp_path):
    lv.scenario.parse(PENDULUM).changed({"l": 0.1 + 0.2}).run(out=tmp_path / "a.h5")
    assert lv.load(tmp_path / "a.h5").system.parameters["l"] == 0.1 + 0.2


def test_a_long_model_fits_into_a_file(tmp_path):
    """More than 64 kB, the limit of small attributes of HDF5."""
    lets = "".join(f"    a{i}: {' + '.join(['x'] * 2000)}\n" for i in range(9))
    text = f"system:\n  coordinates: x\n  let:\n{lets}  kinetic: v_x**2/2\ninitial: {{x: 1}}\nh: 1\nt_end: 2\n"
    assert len(text) > 65536
    lv.scenario.parse(text).run(out=tmp_path / "a.h5")
    assert lv.load(tmp_path / "a.h5").observe("total_energy").shape == (3,)


@pytest.mark.parametrize("description", [None, 3, "x", [], {}, {"system": 5}, {"system": {"coordinates": 7}}])
def test_a_description_that_is_none(description):
    with pytest.raises(InputError):
        lv.problems.load("scenario", description=description)


def test_scenario_is_no_ready_problem():
    with pytest.raises(InputError, match="unknown problem 'scenario'"):
        lv.problems.load("scenario")
    assert "scenario" not in [entry.name for entry in lv.problems.all()]


# -- what the documentation shows -------------------------------------------------------------------------------------
def shown_scenarios():
    return re.findall(r"^```yaml\n(.*?)^```", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_the_scenarios_of_the_documentation_run():
    system, problem, changed_model, *mechanisms = shown_scenarios()
    assert all(lv.scenario.parse(text).run().status == "complete" for text in mechanisms)
    result = lv.scenario.parse(system).run()
    assert result.status == "complete" and result.summary.max_constraint < 1e-13
    assert np.abs(result.observe("energy_balance_defect")).max() < 1e-12
    assert result.supplied_energy[-1] != 0 and result.dissipated_energy[-1] > 0
    assert lv.scenario.parse(problem).run().status == "complete"
    run = lv.scenario.parse(changed_model).run()
    assert run.status == "complete" and run.info.parameters["m2.mass"] == 5.5


def test_the_documentation_names_every_function_and_field():
    text = DOCUMENT.read_text(encoding="utf-8")
    for function in grammar.FUNCTIONS:
        assert re.search(rf"`[^`]*\b{function}\b[^`]*`", text), function
    from livens.scenario import schema

    for model in (schema.ProblemScenario, schema.SystemScenario, schema.SystemFields):
        for field in model.model_fields:
            assert f"`{field}`" in text, field


def test_the_message_of_the_documentation():
    shown = "unknown name 'gg'; did you mean 'g'?\n        m*gg*y\n          ^\n"
    assert shown in DOCUMENT.read_text(encoding="utf-8")
    message = complaint(PENDULUM.replace("m*g*y", "m*gg*y"))
    assert message == "a.yaml, line 6, system.potential: unknown name 'gg'; did you mean 'g'?\n    m*gg*y\n      ^"


# -- the language -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 - 2 - 3", -4), ("2/4/2", 0.25), ("2**3**2", 512), ("-2**2", -4), ("2**-1", 0.5), ("--2", 2), ("+-2", -2),
        ("2*-3", -6), ("(1 + 2)*3", 9), ("1 + 2*3", 7), (".5 + 5.", 5.5), ("1e3", 1000), ("1.5E-3", 0.0015),
        ("1 < 2", 1), ("2 <= 1", 0), ("1 == 1", 1), ("1 != 1", 0), ("3 > 2 + 2", 0), ("2 >= 2", 1), ("-(1 < 2)", -1),
        ("where(1 < 2, 3, 4)", 3), ("where(0, 3, 4)", 4), ("min(3, 1, 2)", 1), ("max(3, 1, 2, 7)", 7),
        ("pi", math.pi), ("e", math.e), ("atan2(1, -1)", math.atan2(1, -1)), ("  1\n+\t2 ", 3), ("abs(-3)", 3),
        ("floor(-1.5)", -2), ("ceil(-1.5)", -1), ("sign(-7)", -1), ("sin(pi/6)", math.sin(math.pi / 6)),
    ],
)  # fmt: skip
def test_values(text, expected):
    assert value(text) == expected and type(value(text)) is float


@pytest.mark.parametrize("function", sorted(grammar.FUNCTIONS))
def test_functions_of_symbols_and_of_numbers(function):
    """Symbols go to CasADi and numbers to NumPy: both mean the same."""
    fewest = grammar.FUNCTIONS[function][0]
    names = "abc"[:fewest]
    numbers = [1.25, 0.5, -0.75][:fewest] if function == "acosh" else [0.25, 0.5, -0.75][:fewest]
    text = f"{function}({', '.join(names)})"
    symbols = ca.SX.sym("s", fewest)
    symbolic = value(text, **dict(zip(names, m.from_casadi(symbols), strict=True)))
    numeric = value(text, **dict(zip(names, numbers, strict=True)))
    assert float(ca.Function("f", [symbols], [symbolic.sx])(numbers)) == pytest.approx(numeric, rel=1e-15)
    assert numeric == pytest.approx(float(getattr(m, function, getattr(builtins, function, None))(*numbers)), rel=1e-15)


@settings(deadline=None, max_examples=300)
@given(EXPRESSIONS)
def test_operators_bind_as_in_python(text):
    scope = dict(x=0.7, y=-1.3, pi=math.pi, sin=math.sin, cos=math.cos, exp=math.exp, atan=math.atan, abs=abs)
    whole = re.sub(r"(?<![\w.])(?<!e-)\d+(?![\w.])", r"\g<0>.0", text)  # as in the language: every number is a float
    try:
        expected = eval(whole, {"__builtins__": {}}, scope)
        usable = not isinstance(expected, complex) and math.isfinite(expected)
    except (ArithmeticError, TypeError):  # TypeError: a comparison of complex numbers
        usable = False
    found = guarded(lambda: value(text, x=0.7, y=-1.3))
    if usable and not isinstance(found, InputError):
        assert found == pytest.approx(float(expected), rel=1e-12, abs=1e-12)
    elif usable:  # what is finite in the end may have been too large, or complex, on the way
        assert any(words in str(found) for words in ("too large", "not a finite number"))
    else:
        assert isinstance(found, InputError)


# -- the command line -------------------------------------------------------------------------------------------------
def test_init_and_run(tmp_path):
    done = livens("init", cwd=tmp_path)
    assert done.returncode == 0 and done.stdout == "wrote scenario.yaml; run it with: livens run scenario.yaml\n"
    done = livens("run", "scenario.yaml", "--t-end", "0.5", "--every", "5", "--set", "l=2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "500 steps" in done.stdout and "scenario.h5" in done.stdout
    result = lv.load(tmp_path / "scenario.h5")
    assert len(result) == 101 and result.q[0].tolist() == [-2, 0] and result.info.parameters["l"] == 2.0
    assert np.ptp(result.observe("total_energy")) < 1e-4
    done = livens("run", "scenario.h5", "--resume", "--t-end", "1", "--quiet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    whole = lv.scenario.load(tmp_path / "scenario.yaml").changed({"l": 2.0}).run(t_end=1, every=5)
    assert np.array_equal(lv.load(tmp_path / "scenario.h5").q, whole.q)


def test_init_asks_before_it_replaces(tmp_path):
    (tmp_path / "a.yaml").write_text("mine")
    done = livens("init", "a.yaml", cwd=tmp_path)
    assert done.returncode == 2 and "exists already" in done.stderr and (tmp_path / "a.yaml").read_text() == "mine"
    assert livens("init", "a.yaml", "--problem", "--force", cwd=tmp_path).returncode == 0
    done = livens("run", "a.yaml", "--h", "2e-3", "--t-end", "0.1", "--json", cwd=tmp_path)
    facts = json.loads(done.stdout)
    assert (facts["problem"], facts["h"], facts["steps"]) == ("double-four-bar", 2e-3, 50)
    assert [path.name for path in tmp_path.iterdir()] == ["a.yaml"]  # --json keeps no file unless asked for


@pytest.mark.parametrize("kind", ["--system", "--problem"])
def test_the_examples_run_as_they_are(tmp_path, kind):
    assert livens("init", "new.yml", kind, cwd=tmp_path).returncode == 0
    done = livens("run", "new.yml", cwd=tmp_path)
    assert done.returncode == 0 and "10000 steps" in done.stdout, done.stderr
    assert lv.load(tmp_path / "new.h5").status == "complete"


def test_what_a_comment_of_the_example_offers_works():
    text = examples.SYSTEM.format(file="a.yaml")
    offered = re.sub(r"^( *)# (dissipation|forces|project|out)", r"\1\2", text, flags=re.MULTILINE)
    fields = lv.scenario.parse(offered).fields
    assert fields.out == "pendulum.h5" and fields.project and fields.system.dissipation and fields.system.forces
    fields = lv.scenario.parse(examples.PROBLEM.replace("# out", "out")).fields
    assert fields.out == "four-bar.h5"


def test_options_of_the_command_line_win(tmp_path):
    (tmp_path / "a.yaml").write_text(PENDULUM + "out: file.h5\nscheme: livens-em\nevery: 100\n")
    assert livens("run", "a.yaml", "--quiet", cwd=tmp_path).returncode == 0
    assert len(lv.load(tmp_path / "file.h5")) == 11
    done = livens("run", "a.yaml", "--scheme", "livens-midpoint", "--out", "own.h5", "--every", "1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = lv.load(tmp_path / "own.h5")
    assert result.info.scheme == "livens-midpoint" and len(result) == 1001
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.yaml", "file.h5", "own.h5"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "bad.yaml"], "bad.yaml, line 6, system.potential: unknown name 'gg'; did you mean 'g'?"),
        (["run", "empty.yaml"], "empty.yaml: the file is empty"),
        (["run", "absent.yaml"], "there is no file 'absent.yaml'"),
        (["run", "folder.yaml"], "'folder.yaml' is a folder, not a scenario file"),
        (["run", "bytes.yml"], "bytes.yml: this is not a text file"),
        (["run", "good.yaml", "--set", "length=2"], "has no parameter 'length'"),
        (["run", "good.yaml", "--set", "m=nan"], "system.parameters.m: must be a finite number, got nan"),
        (["run", "good.yaml", "--set", "l=1,2"], "must be one number"),
        (["run", "good.yaml", "--h", "0"], "h must be greater than 0"),
        (["run", "good.yaml", "--every", "0"], "every must be a whole number"),
        (["run", "good.yaml", "--scheme", "livens-me"], "did you mean 'livens-em'?"),
        (["run", "good.yaml", "--resume"], "not a result file of livens"),
        (["init", "a.txt"], "must end in .yaml or .yml, got 'a.txt'"),
        (["init", "no/where.yaml"], "cannot write the scenario file 'no/where.yaml'"),
        (["init", "folder.yaml", "--force"], "cannot write the scenario file 'folder.yaml'"),
        (["init", "a.yaml", "--problem", "--system"], "choose one of --problem, --system and --mechanism"),
    ],
)
def test_bad_input(tmp_path, arguments, words):
    (tmp_path / "good.yaml").write_text(PENDULUM)
    (tmp_path / "bad.yaml").write_text(changed("m*g*y", "m*gg*y"))
    (tmp_path / "empty.yaml").write_text("")
    (tmp_path / "bytes.yml").write_bytes(bytes(range(256)))
    (tmp_path / "folder.yaml").mkdir()
    done = livens(*arguments, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert words in done.stderr and "Traceback" not in done.stderr
    assert not list(tmp_path.glob("*.h5"))


def test_help_does_not_import_what_reads_scenarios(tmp_path):
    code = (
        "import sys\nfrom livens.cli import main\nsys.argv = ['livens', '--help']\n"
        "try: main()\nexcept SystemExit: pass\n"
        "sys.exit(str({'pydantic', 'yaml', 'casadi', 'numpy'} & set(sys.modules) or ''))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.stderr.strip() in ("", "''") and "init" in done.stdout


def test_limits_are_as_documented():
    text = DOCUMENT.read_text(encoding="utf-8")
    assert (reader.MAX_BYTES, reader.MAX_VALUES, reader.MAX_DEPTH) == (100_000, 10_000, 8)
    assert (tokens.MAX_LENGTH, grammar.MAX_DEPTH, evaluate.MAX_EXPONENT) == (10_000, 100, 1000)
    assert evaluate.MAX_PRODUCTS == 1000
    limits = " ".join(text.split("## Limits")[1].split())
    for words in (
        "100 kB",
        "10 000 values",
        "8 levels",
        "1000 names",
        "10 000 characters",
        "100 levels",
        "up to 1000",
        "1000 products",
    ):
        assert words in limits


def test_a_product_of_thousands_of_factors_is_refused():
    """Derivatives of products take most of the time of compilation."""
    text = "system:\n  coordinates: x\n  kinetic: v_x**2/2\n  potential: {}\ninitial: {{x: 1}}\nh: 1\nt_end: 2\n"
    with pytest.raises(InputError, match="at most 1000 products"):
        lv.scenario.parse(text.format("*".join(["x"] * 3000))).problem()


def test_options_of_problems_may_be_words(tmp_path):
    file = tmp_path / "linkage.yaml"
    file.write_text("problem: double-four-bar\noptions: {start: published}\n", encoding="utf-8")
    assert lv.scenario.load(file).problem().v0[18] == pytest.approx(11 / 12)
    for text, message in (
        ("options: {start: publish}", "start must be 'consistent' or 'published', got 'publish'"),
        ("options: {speed: fast}", "options.speed: must be a number or a constant expression such as pi/2"),
    ):
        file.write_text(f"problem: double-four-bar\n{text}\n", encoding="utf-8")
        with pytest.raises(lv.InputError, match=message):
            lv.scenario.load(file).problem()
