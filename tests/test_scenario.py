"""Scenario files: the same runs as from Python, clear words for all that is wrong, nothing executed but arithmetic."""

import builtins
import json
import math
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import livens as lv
from livens import math as m
from livens.errors import InputError
from livens.scenario import evaluate, grammar, reader, tokens
from livens.scenario import example as examples

PROGRAM = [sys.executable, "-c", "from livens.cli import main; main()"]
DOCUMENT = Path(__file__).parent.parent / "docs" / "scenarios.md"

PENDULUM = """\
system:
  coordinates: x y
  parameters: {m: 1.0, l: 1.0, g: 9.81}
  let: {r2: x**2 + y**2}
  kinetic: 0.5*m*(v_x**2 + v_y**2)
  potential: m*g*y
  constraints: {length of the rod: 0.5*(r2 - l**2)}
start: {x: -l, y: 0, v_x: 0, v_y: 0}
h: 1e-3
t_end: 1
"""


def livens(*arguments, cwd):
    return subprocess.run([*PROGRAM, *arguments], cwd=cwd, capture_output=True, text=True, timeout=300)


def complaint(text):
    """What is said about a scenario that cannot be used."""
    with pytest.raises(InputError) as caught:
        lv.scenario.parse(text, "a.yaml").problem()
    return str(caught.value)


def value(text, **names):
    return evaluate.evaluate(grammar.parse(text), names, text)


def guarded(job):
    """Do a job that may end in an InputError, and take less than a second of this process's own time for it."""
    start = time.process_time()
    try:
        result = job()
    except InputError as error:
        result = error
        assert str(error).isascii() or str(error).encode("utf-8")
    assert time.process_time() - start < 1.0
    return result


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
    assert result.facts.coordinates == ("x", "y") and result.facts.constraint_names == ("length of the rod",)
    assert result.facts.parameters == dict(m=1.0, l=1.0, g=9.81)


EVERYTHING = """\
system:
  coordinates: [r, phi, s]
  parameters:
    mass: 2
    twice: 2*mass
    c: 30
    d: 0.25
  let:
    rate: r*v_phi
    kick: where(t < 0.5, sin(pi*t), 0)
    push: kick*exp(-s**2)
  kinetic: mass/2*(v_r**2 + rate**2) + twice/2*v_s**2
  potential: c/2*(r - 1)**2 + maximum(s, 0)**2 - cos(phi)*e
  dissipation: d/2*(rate**2 + v_s**2)
  constraints:
    - s - 0.1*sin(t) - r + 1
  forces:
    phi: push
    r: -0.1*v_r*abs(v_r)
start: {r: 1, phi: pi/6, v_r: 0, v_phi: 1/2, s: 0, v_s: 0.1}
scheme: livens-midpoint
t0: 0
h: 0.01
t_end: 2
every: 4
"""


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
    assert [result.facts.constraint_names for result in results] == [("g[0]",), ("g[0]",), ("gap",)]


def test_a_ready_problem():
    scenario = lv.scenario.parse(
        "problem: double-four-bar\noptions: {speed: 4/2}\nt_end: 0.2\nscheme: livens-midpoint\n"
    )
    expected = lv.simulate(lv.problems.load("double-four-bar", speed=2), scheme="livens-midpoint", t_end=0.2)
    result = scenario.run()
    assert np.array_equal(result.q, expected.q)
    assert (result.facts.problem, result.facts.problem_options) == ("double-four-bar", {"speed": 2.0})
    assert np.array_equal(scenario.changed({"speed": 3}).problem().v0, lv.problems.load("double-four-bar", speed=3).v0)


def test_what_is_given_to_run_wins():
    result = lv.scenario.parse(PENDULUM).run(h=0.01, t_end=0.5, scheme="livens-midpoint", every=5)
    facts = result.facts
    assert (facts.h, facts.t_end, facts.scheme, facts.every) == (0.01, 0.5, "livens-midpoint", 5)


def test_changed_parameters_move_the_start():
    changed = lv.scenario.parse(PENDULUM).changed({"l": 2.0, "g": 1e-5}).problem()
    assert changed.system.parameters == dict(m=1.0, l=2.0, g=1e-5) and changed.q0.tolist() == [-2.0, 0.0]
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
    assert lv.scenario.parse(twice + "redundant: remove\n").run().facts.dropped == (1,)


def test_values_are_what_their_field_makes_of_them():
    """YAML's own rules would read these coordinates as booleans, 1e-3 as a text and 1:30 as 90."""
    text = PENDULUM.replace("coordinates: x y", "coordinates: [x, y, no, on]").replace("y: 0,", "y: 0, no: 0, on: 0,")
    system = lv.scenario.parse(text.replace("+ v_y**2", "+ v_y**2 + v_no**2 + v_on**2")).problem().system
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
    assert loaded.facts.problem == "scenario" and loaded.facts.parameters["c"] == 31.5
    json.dumps(loaded.facts.problem_options)
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
    text = f"system:\n  coordinates: x\n  let:\n{lets}  kinetic: v_x**2/2\nstart: {{x: 1}}\nh: 1\nt_end: 2\n"
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
    system, problem = shown_scenarios()
    result = lv.scenario.parse(system).run()
    assert result.status == "complete" and result.summary.max_constraint < 1e-13
    assert np.abs(result.observe("energy_balance_defect")).max() < 1e-12
    assert result.supplied_energy[-1] != 0 and result.dissipated_energy[-1] > 0
    assert lv.scenario.parse(problem).run().status == "complete"


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
    symbolic = value(text, **dict(zip(names, m.symbols(symbols), strict=True)))
    numeric = value(text, **dict(zip(names, numbers, strict=True)))
    assert float(ca.Function("f", [symbols], [symbolic.sx])(numbers)) == pytest.approx(numeric, rel=1e-15)
    assert numeric == pytest.approx(float(getattr(m, function, getattr(builtins, function, None))(*numbers)), rel=1e-15)


NUMBERS = st.sampled_from(["0", "1", "2", "3", "0.5", "2.5e-1", "7."])
EXPRESSIONS = st.recursive(
    NUMBERS | st.sampled_from(["x", "y", "pi"]),
    lambda inner: st.one_of(
        st.builds("{} {} {}".format, inner, st.sampled_from("+ - * / **".split()), inner),
        st.builds("({})".format, inner),
        st.builds("-{}".format, inner),
        st.builds("({}) {} ({})".format, inner, st.sampled_from("< <= > >= == !=".split()), inner).map("({})".format),
        st.builds("{}({})".format, st.sampled_from(["sin", "cos", "exp", "atan", "abs"]), inner),
    ),
    max_leaves=12,
)


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


TRIALS = dict(x=0.5, y=-2.0, v_x=1.0, m=3.0, t=0.0)


def tried(text):
    """What a model makes of an expression, or the InputError it ends in."""
    found = guarded(lambda: value(text, **TRIALS) if known(text) else None)
    assert found is None or isinstance(found, (float, InputError))
    indented = yaml.safe_dump({"potential": text}, allow_unicode=True, width=10**6)
    guarded(
        lambda: lv.scenario.parse(PENDULUM.replace("potential: m*g*y\n", indented.replace("\n", "\n    "))).problem()
    )


def known(text):
    return all(name.name in (*TRIALS, *evaluate.CONSTANTS) for name in grammar.names(grammar.parse(text)))


@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(max_size=200))
@example("\ud800")
@example("x\x00")
@example("٣ + x")
def test_random_text(text):
    tried(text)


WORDS = [
    *grammar.FUNCTIONS, *"x y v_x m t pi e + - * / ** ( ) , < <= > >= == != . [ ] ' \" 0 1 2.5 1e-3 9e99 1001".split(),
    *"lambda import __class__ __import__ eval if else and not // % ^ = : ; @ $ ~ ! & | { } # \\".split(), " ", "\n",
]  # fmt: skip


@settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(WORDS), max_size=40), st.sampled_from(["", " "]))
def test_random_words(words, between):
    tried(between.join(words))


@settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(EXPRESSIONS, st.data())
def test_damaged_expressions(text, data):
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        cut = data.draw(st.integers(0, 3))
        text = text[:at] + data.draw(st.sampled_from(["", *WORDS])) + text[at + cut :]
    tried(text)


ATTACKS = {
    "__import__('os').system('ls')": "''' is not part of the language",
    "__import__": "unknown name '__import__'",
    "__import__(os)": "unknown function '__import__'",
    "x.__class__.__mro__": "there are no attributes",
    "().__class__": "there are no attributes",
    "x[0]": "there are no subscripts",
    "[x for x in y]": "there are no subscripts",
    "{x}": "'{' is not part of the language",
    '"text"': "there is no text",
    "f'{x}'": "there is no text",
    "(lambda)": "'lambda' is not part of the language",
    "lambda x: x": "':' is not part of the language",
    "x if y else 1": "'if' is not part of the language",
    "import os": "'import' is not part of the language",
    "eval(x)": "unknown function 'eval'",
    "exec(x)": "unknown function 'exec'",
    "open(x)": "unknown function 'open'",
    "getattr(x, y)": "unknown function 'getattr'",
    "symbols(x)": "unknown function 'symbols'",
    "sx": "unknown name 'sx'",
    "x := 3": "':' is not part of the language",
    "x = 3": "write == to compare",
    "x; y": "';' is not part of the language",
    "True": "'True' is not part of the language",
    "9**9**9**9": "the exponent 3.8742e+08 is too large (at most 1000)",
    "x**1001": "the exponent 1001 is too large",
    "x**-1001": "the exponent -1001 is too large",
    "x**(y - y + 2000)": "the exponent 2000 is too large",
    "10**400": "this is inf, not a finite number",
    "10**308*10": "this is inf, not a finite number",
    "1e999": "the number 1e999 is too large",
    "9" * 9999: "is too large",
    "1/0": "this is inf, not a finite number",
    "x/(y - y)": "not a finite number",
    "0/0": "this is nan, not a finite number",
    "(-8)**(1/3)": "this is nan, not a finite number",
    "sqrt(-1)": "this is nan, not a finite number",
    "(" * 4000 + "x" + ")" * 4000: "nested too deeply (at most 100 levels)",
    "-" * 9000 + "x": "nested too deeply",
    "x**" * 3000 + "x": "nested too deeply",
    "sin(" * 2000 + "x": "nested too deeply",
    "(" * 9999: "nested too deeply",
    "x+" * 5000 + "x": "at most 10000 characters, this one has 10001",
    "x" * 9999: "a name may have at most 60 characters",
    "x\u202e": "is not part of the language",
}


@pytest.mark.parametrize("text", ATTACKS, ids=lambda text: text[:20])
def test_nothing_but_arithmetic(text):
    error = guarded(
        lambda: value(text, x=m.Scalar(ca.SX.sym("x")), y=m.Scalar(ca.SX.sym("y"))) if known(text) else None
    )
    quoted = yaml.safe_dump(text, allow_unicode=True, width=10**6).removesuffix("...\n").strip()
    error = guarded(lambda: lv.scenario.parse(PENDULUM.replace("m*g*y", quoted), "a.yaml"))
    assert isinstance(error, InputError)
    assert str(error).startswith("a.yaml, line 6, system.potential: ") and ATTACKS[text] in str(error)
    assert all(len(line) < 400 for line in str(error).splitlines())


def test_nothing_is_compiled_from_text(monkeypatch):
    lv.scenario.parse(PENDULUM).problem()

    def forbidden(*arguments, **options):
        raise AssertionError("a scenario must not run code")

    for name in ("eval", "exec", "compile"):
        monkeypatch.setattr(builtins, name, forbidden)
    try:
        system = lv.scenario.parse(PENDULUM).problem().system
    finally:
        monkeypatch.undo()
    assert system.n == 2


def test_a_long_sum_is_not_deep():
    text = "+".join(["x"] * 4000)
    assert value(text, x=0.5) == 2000.0
    assert lv.scenario.parse(PENDULUM.replace("m*g*y", text)).problem().system.n == 2


def test_named_expressions_may_double_many_times():
    """A chain of squares is shared, not written out: 2**60 factors cost 60 products."""
    lets = "".join(f"    a{i + 1}: a{i}*a{i}\n" for i in range(60))
    text = PENDULUM.replace("  let: {r2: x**2 + y**2}\n", f"  let:\n    r2: x**2 + y**2\n    a0: x\n{lets}")
    scenario = guarded(lambda: lv.scenario.parse(text.replace("m*g*y", "m*g*y + 0*a60 + a60/1e9")))
    assert scenario.problem().system.n == 2


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("m*g*yy", 4, "unknown name 'yy'; did you mean 'y'?"),
        ("m*(g*y", 2, "this '(' is never closed"),
        ("m*g*y)", 5, "this ')' closes nothing"),
        ("m g", 2, "an operator is missing between 'm' and 'g': write * to multiply"),
        ("2y", 1, "an operator is missing between '2' and 'y'"),
        ("m*g*y +", 7, "the expression ends too early"),
        ("m**/g", 3, "'/' stands where a value belongs"),
        ("m, g", 1, "a ',' only separates the arguments of a function"),
        ("y + sine(y)", 4, "unknown function 'sine'; did you mean 'sin'?"),
        ("y + m(y)", 4, "unknown function 'm'; to multiply, write m*(...)"),
        ("y + sin", 4, "'sin' is a function: write sin(...)"),
        ("sin(y, m)", 0, "sin takes 1 argument, got 2"),
        ("where(y > 0, 1)", 0, "where takes 3 arguments, got 2"),
        ("min(y)", 0, "min takes 2 to 100 arguments, got 1"),
        ("0 < y < 1", 6, "comparisons cannot be chained: write (a < b)*(b < c)"),
        ("y^2", 1, "write x**2 for a power"),
        ("y // 2", 2, "write floor(a/b)"),
        ("m*v_y", 2, "potential cannot use the velocity 'v_y'; it may use coordinates, the time t and parameters"),
        ("y'", 1, "the velocity of x is v_x"),
        ("1 + 1/(y - y)", 5, "this is inf, not a finite number"),
        ("1 + y**2000", 5, "the exponent 2000 is too large"),
    ],
)
def test_a_caret_points_at_it(text, column, words):
    quoted = "'" + text.replace("'", "''") + "'"
    reason, excerpt, caret = complaint(PENDULUM.replace("m*g*y", quoted)).split("\n")
    assert reason.startswith("a.yaml, line 6, system.potential: ") and words in reason
    assert excerpt == f"    {text}" and caret == " " * (4 + column) + "^"


def test_the_caret_stays_near_in_long_and_in_many_lines():
    reason, excerpt, caret = complaint(PENDULUM.replace("m*g*y", "y + " * 500 + "? + y" + " + y" * 500)).split("\n")
    assert excerpt[caret.index("^")] == "?" and len(excerpt) < 120 and excerpt.count("...") == 2
    block = PENDULUM.replace("potential: m*g*y", "potential: |\n    m*g\n    *yy\n    + y")
    reason, excerpt, caret = complaint(block).split("\n")
    assert excerpt == "    *yy" and caret == "     ^" and "did you mean 'y'?" in reason


# -- files that cannot be used ----------------------------------------------------------------------------------------
def changed(old, new):
    assert PENDULUM.count(old) == 1
    return PENDULUM.replace(old, new)


WRONG = [
    # fields
    (
        changed("potential", "potental"),
        ["line 6, system.potental: unknown field 'potental'; did you mean 'potential'?"],
    ),
    (PENDULUM + "evry: 2\n", ["line 11, evry: unknown field 'evry'; did you mean 'every'?"]),
    (changed("  kinetic: 0.5*m*(v_x**2 + v_y**2)\n", ""), ["line 1, system: the field 'kinetic' is missing: give the"]),
    (changed("h: 1e-3\n", ""), ["a.yaml, line 1: the field 'h' is missing: give the step size"]),
    (changed("h: 1e-3", "h:"), ["a.yaml, line 1: the field 'h' is missing"]),
    (changed("kinetic", "kinetik").replace("h: 1", "hh: 1"), ["'kinetic' is missing", "'kinetik'", "'h' is", "'hh'"]),
    (changed("system:", "sytem:"), ["needs the field 'problem' or the field 'system'; did you mean 'system'?"]),
    ("h: 1\n", ["a.yaml, line 1: a scenario needs the field 'problem' or the field 'system'"]),
    (PENDULUM + "problem: simple-pendulum\n", ["either the field 'problem' or the field 'system', not both"]),
    (changed("h: 1e-3", "h: 1e-3\nh: 2e-3"), ["a.yaml, line 10: 'h' is given twice, first on line 9"]),
    (changed("g: 9.81", "m: 9.81"), ["a.yaml, line 3: 'm' is given twice, first on line 3"]),
    # types
    (changed("h: 1e-3", "h: fast"), ["line 9, h: must be a number or a constant expression", "'fast' is not constant"]),
    (changed("h: 1e-3", "h: [1, 2]"), ["line 9, h: must be a number or an expression, got a list"]),
    (changed("h: 1e-3", "h: -1e-3"), ["line 9, h: must be greater than 0, got -0.001"]),
    (changed("h: 1e-3", "h: 1/0"), ["line 9, h: this is inf, not a finite number"]),
    (changed("t_end: 1", "t_end: 0"), ["line 10, t_end: must lie after t0 = 0, got 0"]),
    (changed("t_end: 1", "t_end: 1\nt0: 2"), ["line 10, t_end: must lie after t0 = 2, got 1"]),
    (PENDULUM + "every: 2.5\n", ["line 11, every: must be a whole number of at least 1, got 2.5"]),
    (PENDULUM + "every: 0\n", ["line 11, every: must be a whole number of at least 1, got 0"]),
    (PENDULUM + "every: 1e300\n", ["line 11, every: must be at most 9007199254740992, got 1e+300"]),
    (PENDULUM + "out: [a]\n", ["line 11, out: must be a text, got a list"]),
    (PENDULUM + 'out: "a\\0b"\n', ["line 11, out: must be the name of a file, got 'a\\x00b'"]),
    (PENDULUM + "project: maybe\n", ["line 11, project: must be true or false, got 'maybe'"]),
    (PENDULUM + "redundant: removed\n", ["must be error or remove, got 'removed'; did you mean 'remove'?"]),
    (PENDULUM + "scheme: livens-me\n", ["line 11, scheme: unknown scheme 'livens-me'; did you mean 'livens-em'?"]),
    (PENDULUM + "scheme: {a: b}\n", ["line 11, scheme: must be a text, got fields with names"]),
    ("system: text\n", ["line 1, system: must be fields with values (coordinates, parameters, let,", "got 'text'"]),
    ("system:\n", ["the field 'system' is missing"]),
    (changed("{m: 1.0, l: 1.0, g: 9.81}", "3"), ["line 3, system.parameters: must be names with values", "got '3'"]),
    (changed("m: 1.0", "m: [1.0]"), ["line 3, system.parameters.m: must be a number or an expression, got a list"]),
    (changed("m: 1.0", "m:"), ["line 3, system.parameters.m: must be a number or an expression, got nothing"]),
    (changed("m: 1.0", "m: ''"), ["line 3, system.parameters.m: must be a number or an expression, got ''"]),
    (changed("coordinates: x y", "coordinates: {x: y}"), ["line 2, system.coordinates: must be names such as: x y"]),
    (
        changed("{length of the rod: 0.5*(r2 - l**2)}", "0"),
        ["line 7, system.constraints: must be a list of expressions"],
    ),
    (
        changed("{length of the rod: 0.5*(r2 - l**2)}", "[x, {y: 1}]"),
        ["line 7, system.constraints[1]: must be a number"],
    ),
    (changed("0.5*(r2 - l**2)", "atan2(y, x)"), ["line 7, system.constraints.x)", "with commas into quotes"]),
    (changed("0.5*(r2 - l**2)", "r2 - ll"), ["line 7, system.constraints.length of the rod: unknown name 'll'"]),
    # names
    (changed("coordinates: x y", "coordinates: x 2y"), ["'2y' cannot be the name of a coordinate: use letters"]),
    (changed("coordinates: x y", "coordinates: x __y"), ["'__y' cannot be the name of a coordinate: use letters"]),
    (changed("coordinates: x y", "coordinates: x lambda"), ["'lambda' cannot be the name of a coordinate"]),
    (changed("coordinates: x y", "coordinates: x t"), ["'t' cannot be the name of a coordinate: it is the time"]),
    (changed("coordinates: x y", "coordinates: x sin"), ["'sin' cannot be the name of a coordinate: it is a function"]),
    (changed("coordinates: x y", "coordinates: x x"), ["line 2, system.coordinates: 'x' cannot", "coordinate already"]),
    (changed("coordinates: x y", "coordinates: x v_x"), ["'v_x' cannot be the name of a velocity: it is a coordinate"]),
    (changed("coordinates: x y", "coordinates: ''"), ["line 2, system.coordinates: a system needs at least one"]),
    (changed("coordinates: x y", f"coordinates: {'x' * 61}"), ["a coordinate may have at most 60 characters"]),
    (
        changed("m: 1.0", "x: 1.0"),
        ["line 3, system.parameters.x: 'x' cannot be the name of a parameter: it is a coord"],
    ),
    (changed("m: 1.0", "e: 1.0"), ["'e' cannot be the name of a parameter: it is Euler's number"]),
    (changed("{r2:", "{m:"), ["line 4, system.let.m: 'm' cannot be the name of a named expression: it is a parameter"]),
    (changed("m: 1.0", "m: 2*g"), ["line 3, system.parameters.m: 'g' is defined only here or further down"]),
    (changed("m: 1.0", "m: 2*x"), ["line 3, system.parameters.m: parameters cannot use the coordinate 'x'"]),
    (changed("{r2: x**2", "{r2: r2"), ["line 4, system.let.r2: 'r2' is defined only here or further down"]),
    (
        changed("{r2: x**2", "{r2: v_x"),
        ["constraints.length of the rod: constraints cannot use the velocity 'v_x' (through"],
    ),
    (changed("v_x**2 + v_y**2)", "v_x**2 + t)"), ["line 5, system.kinetic: kinetic cannot use the time t; it may use"]),
    (changed("0.5*m*(v_x**2 + v_y**2)", "0"), ["a.yaml, line 1, system: the system has no kinetic energy"]),
    (changed("  let:", "  forces: {z: 1}\n  let:"), ["line 4, system.forces.z: unknown coordinate 'z'; known: x, y"]),
    (
        changed("  let:", "  forces: [1]\n  let:"),
        ["line 4, system.forces: must be 2 expressions, one for every", "got 1"],
    ),
    (changed("x: -l", "x: -y"), ["line 8, start.x: start cannot use the coordinate 'y'; it may use parameters"]),
    (changed("x: -l, ", ""), ["line 8, start: the value of the coordinate 'x' is missing"]),
    (changed("v_x: 0", "w_x: 0"), ["line 8, start.w_x: unknown name 'w_x'; did you mean 'v_x'?"]),
    (changed("x: -l", "x: sqrt(-l)"), ["line 8, start.x: this is nan, not a finite number"]),
    # ready problems
    (
        "problem: double-fourbar\n",
        ["line 1, problem: unknown problem 'double-fourbar'; did you mean 'double-four-bar'?"],
    ),
    ("problem: double-four-bar\noptions: {sped: 2}\n", ["line 2, options.sped: problem", "did you mean 'speed'?"]),
    ("problem: double-four-bar\noptions: {speed: fast}\n", ["line 2, options.speed: must be a number"]),
    ("problem: n-four-bar\noptions:\n  m: 1\n  N: 2.5\n", ["line 4, options.N: option 'N' must be a whole number"]),
    ("problem: n-four-bar\noptions:\n  N: [1, 2]\n", ["line 3, options.N: option 'N' must be a whole number"]),
    ("problem: n-four-bar\noptions: 3\n", ["line 2, options: must be names with values (name: value), got '3'"]),
    ("problem: n-four-bar\nsystem: 3\n", ["not both"]),
    ("problem: [a]\n", ["line 1, problem: must be a text, got a list"]),
    # YAML
    ("", ["a.yaml: the file is empty"]),
    ("# only a comment\n", ["a.yaml: the file is empty"]),
    ("---\n", ["a.yaml: the file is empty"]),
    ("just text\n", ["a.yaml, line 1: a scenario is made of fields with values (name: value), got 'just text'"]),
    ("- a\n- b\n", ["a.yaml, line 1: a scenario is made of fields with values (name: value), got a list"]),
    (
        changed("potential: m*g*y", "potential: 'm*g*y"),
        ["line 6: this is not valid YAML: while scanning a quoted scalar"],
    ),
    (changed("potential: m*g*y", "potential: - m*g*y"), ["line 6: this is not valid YAML", "must stand in quotes"]),
    (
        changed("potential: m*g*y", "potential: a: b"),
        ["line 6: this is not valid YAML: mapping values are not allowed"],
    ),
    (changed("  potential", "\tpotential"), ["line 6: this is not valid YAML", "found character '\\t'"]),
    (
        changed("g: 9.81}", "g: 9.81"),
        ["line 4: this is not valid YAML: while parsing a flow mapping, expected ',' or '}'"],
    ),
    (changed("m*g*y", "*pot"), ["line 6: '*pot' is an alias, which a scenario cannot have"]),
    (changed("m*g*y", "!!python/name:os.system x"), ["line 6: 'tag:yaml.org,2002:python/name:os.system' is a tag"]),
    (
        "!!python/object/apply:os.system ['true']\n",
        ["line 1: 'tag:yaml.org,2002:python/object/apply:os.system' is a tag"],
    ),
    ("a: !!int 3\n", ["line 1: 'tag:yaml.org,2002:int' is a tag, which a scenario cannot have"]),
    ("<<: {a: b}\nsystem: {}\n", ["line 1, <<: unknown field '<<'"]),
    ("? [a]\n: b\n", ["line 1: the name of a field must be a text"]),
    (PENDULUM + "---\n" + PENDULUM, ["line 11: a scenario file holds one document, here a second begins"]),
    ("a: \x07\n", ["line 1: this is not a text file: it holds the character #x07"]),
    ('system: "\\ud800"\n', ["line 1: half a character"]),
    ('h: 1\nsystem: "\\UFFFFFFFF"\n', ["line 2: this is not valid YAML: an escape or a number is out of range"]),
    ("[" * 50_000, ["line 1: this is nested too deeply (at most 8 levels)"]),
    ("{a: " * 20_000, ["line 1: this is nested too deeply"]),
    ("- " * 40_000, ["line 1: this is nested too deeply"]),
    ("x: [" + "1," * 20_000 + "]\n", ["line 1: a scenario may have at most 10000 values"]),
    (
        changed("coordinates: x y", f"coordinates: x y {' '.join(f'a{i}' for i in range(1000))}"),
        ["line 2, system.coordinates: a scenario may have at most 1000 names"],
    ),
]


@pytest.mark.parametrize(("text", "words"), WRONG, ids=[f"{i}-{words[0][:30]}" for i, (_, words) in enumerate(WRONG)])
def test_what_is_wrong_is_said_where(text, words):
    message = complaint(text)
    assert message.startswith("a.yaml")
    for part in words:
        assert part in message


def test_an_alias_bomb_does_not_go_off():
    levels = "".join(f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    error = guarded(lambda: lv.scenario.parse("a: &a [x, x, x, x, x, x, x, x, x]\n" + levels, "a.yaml"))
    assert "line 2: '*a' is an alias" in str(error)


def test_many_mistakes_are_not_all_listed():
    message = complaint("system: {}\n" + "".join(f"a{i}: 1\n" for i in range(100)))
    assert len(message.splitlines()) == 11 and message.endswith("... and 95 more")


def test_control_characters_do_not_reach_the_terminal():
    message = complaint(PENDULUM + '"\\e[31mred\\n": 1\n')
    assert "unknown field '\\x1b[31mred\\n'" in message and "\x1b" not in message and message.count("\n") == 0


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the file is empty"),
        (b"\xff\xfe\x00\x01", "this is not a text file: byte 0 is not UTF-8"),
        (b"\x89HDF\r\n\x1a\n" + bytes(100), "this is not a text file: byte 0 is not UTF-8"),
        (b"h: \x00\x00", "line 1: this is not a text file: it holds the character #x00"),
        (PENDULUM.encode("utf-16"), "this is not a text file: byte 0 is not UTF-8"),
        (b"#" * (reader.MAX_BYTES + 1), f"a scenario file may have at most {reader.MAX_BYTES} bytes"),
        (b"# a\n# b\nh: [", "line 3: this is not valid YAML"),
    ],
)
def test_files_that_are_none(tmp_path, content, words):
    path = tmp_path / "a.yaml"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        lv.scenario.load(path)
    assert str(caught.value).startswith(str(path)) and words in str(caught.value)


def test_places_without_a_file(tmp_path):
    with pytest.raises(InputError, match=r"there is no file .*write an example with: livens init"):
        lv.scenario.load(tmp_path / "absent.yaml")
    with pytest.raises(InputError, match="is a folder, not a scenario file"):
        lv.scenario.load(tmp_path)
    os.mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(InputError, match="is not a regular file"):
        lv.scenario.load(tmp_path / "pipe.yaml")
    with pytest.raises(InputError, match="cannot read the scenario file"):
        lv.scenario.load("a\0.yaml")


def test_a_byte_order_mark_is_no_mistake(tmp_path):
    (tmp_path / "a.yaml").write_bytes(b"\xef\xbb\xbf" + PENDULUM.replace("\n", "\r\n").encode())
    assert lv.scenario.load(tmp_path / "a.yaml").problem().system.m == 1


@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=300))
def test_random_bytes(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "bytes.yaml"
    path.write_bytes(content)
    assert isinstance(guarded(lambda: lv.scenario.load(path)), InputError)


FIELDS = st.sampled_from(
    "system problem start options h t_end t0 every out project redundant scheme coordinates parameters let kinetic "
    "potential constraints dissipation forces x y v_x m".split()
)
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20), EXPRESSIONS,
    st.sampled_from(["x y", "x", "m*x", "v_x**2", "simple-pendulum", "livens-em", "true", "1e-3"]),
)  # fmt: skip
TREES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(FIELDS | st.text(max_size=5), inner, max_size=6),
    max_leaves=25,
)


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(FIELDS, TREES, max_size=8))
def test_random_structures(tree):
    for result in (
        guarded(lambda: lv.scenario.parse(yaml.safe_dump(tree, allow_unicode=True))),
        guarded(lambda: lv.scenario.described(tree)),
    ):
        assert isinstance(result, (lv.scenario.Scenario, InputError))


@settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(st.data(), st.sampled_from([PENDULUM, EVERYTHING, examples.PROBLEM]))
def test_damaged_scenarios(data, text):
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        cut = data.draw(st.integers(0, 8))
        piece = data.draw(
            st.text(max_size=3) | st.sampled_from([*"{}[],:#&*!|>'\"%@`-?~\n\t ", "\n  ", ": ", "- ", "x", "1"])
        )
        text = text[:at] + piece + text[at + cut :]
    result = guarded(lambda: lv.scenario.parse(text, "a.yaml"))
    assert isinstance(result, lv.scenario.Scenario) or str(result).startswith("a.yaml")


# -- the command line -------------------------------------------------------------------------------------------------
def test_init_and_run(tmp_path):
    done = livens("init", cwd=tmp_path)
    assert done.returncode == 0 and done.stdout == "wrote scenario.yaml; run it with: livens run scenario.yaml\n"
    done = livens("run", "scenario.yaml", "--t-end", "0.5", "--every", "5", "--set", "l=2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "500 steps" in done.stdout and "scenario.h5" in done.stdout
    result = lv.load(tmp_path / "scenario.h5")
    assert len(result) == 101 and result.q[0].tolist() == [-2, 0] and result.facts.parameters["l"] == 2.0
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
    assert result.facts.scheme == "livens-midpoint" and len(result) == 1001
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
        (["init", "a.yaml", "--problem", "--system"], "choose one of --problem and --system"),
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
    limits = " ".join(text.split("## Limits")[1].split())
    for words in ("100 kB", "10 000 values", "8 levels", "1000 names", "10 000 characters", "100 levels", "up to 1000"):
        assert words in limits
