"""Scenario files that are wrong, damaged or hostile: clear words, little time, and nothing executed but arithmetic."""

import builtins
import os

import casadi as ca
import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import livens as lv
from livens import math as m
from livens.errors import InputError
from livens.scenario import evaluate, grammar, reader
from livens.scenario import templates as examples
from scenarios import EVERYTHING, EXPRESSIONS, PENDULUM, changed, complaint, guarded, value

TRIALS = dict(x=0.5, y=-2.0, v_x=1.0, m=3.0, t=0.0)


def tried(text):
    """Return the value of an expression in a model, or its InputError."""
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
    "x.__class__.__mro__": "attributes are not available",
    "().__class__": "attributes are not available",
    "x[0]": "subscripts are not available",
    "[x for x in y]": "subscripts are not available",
    "{x}": "'{' is not part of the language",
    '"text"': "strings are not available",
    "f'{x}'": "strings are not available",
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
        system = lv.scenario.parse(PENDULUM).problem().model
    finally:
        monkeypatch.undo()
    assert system.n == 2


def test_a_long_sum_is_not_deep():
    text = "+".join(["x"] * 4000)
    assert value(text, x=0.5) == 2000.0
    assert lv.scenario.parse(PENDULUM.replace("m*g*y", text)).problem().model.n == 2


def test_products_of_thousands_of_factors_are_refused():
    """Their derivatives take most of a minute."""
    text = "*".join(["x"] * 3000)
    with pytest.raises(InputError, match="at most 1000 products, quotients and powers; use `let`"):
        lv.scenario.parse(PENDULUM.replace("m*g*y", text)).problem()
    assert value("*".join(["x"] * 900), x=1.0) == 1.0


def test_named_expressions_may_double_many_times():
    """A chain of squares is shared, not written out: 2**60 factors cost 60 products."""
    lets = "".join(f"    a{i + 1}: a{i}*a{i}\n" for i in range(60))
    text = PENDULUM.replace("  let: {r2: x**2 + y**2}\n", f"  let:\n    r2: x**2 + y**2\n    a0: x\n{lets}")
    scenario = guarded(lambda: lv.scenario.parse(text.replace("m*g*y", "m*g*y + 0*a60 + a60/1e9")))
    assert scenario.problem().model.n == 2


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("m*g*yy", 4, "unknown name 'yy'; did you mean 'y'?"),
        ("m*(g*y", 2, "this '(' is never closed"),
        ("m*g*y)", 5, "this ')' has no matching '('"),
        ("m g", 2, "an operator is missing between 'm' and 'g': write * to multiply"),
        ("2y", 1, "an operator is missing between '2' and 'y'"),
        ("m*g*y +", 7, "the expression ends too early"),
        ("m**/g", 3, "expected a value, got '/'"),
        ("m, g", 1, "',' is allowed between the arguments of a function only"),
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
    (
        changed("system:", "sytem:"),
        ["needs one of the fields 'problem', 'system', 'robot' and 'bodies'; did you mean 'system'?"],
    ),
    ("h: 1\n", ["a.yaml, line 1: a scenario needs one of the fields 'problem', 'system', 'robot' and 'bodies'"]),
    (
        PENDULUM + "problem: simple-pendulum\n",
        ["one of the fields 'problem', 'system', 'robot', 'bodies', not several"],
    ),
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
    (PENDULUM + "out: [a]\n", ["line 11, out: must be a string, got a list"]),
    (PENDULUM + 'out: "a\\0b"\n', ["line 11, out: must be the name of a file, got 'a\\x00b'"]),
    (PENDULUM + "project: maybe\n", ["line 11, project: must be true or false, got 'maybe'"]),
    (PENDULUM + "redundant: removed\n", ["must be error or remove, got 'removed'; did you mean 'remove'?"]),
    (PENDULUM + "scheme: livens-me\n", ["line 11, scheme: unknown scheme 'livens-me'; did you mean 'livens-em'?"]),
    (PENDULUM + "scheme: {a: b}\n", ["line 11, scheme: must be a string, got fields with names"]),
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
    (
        changed("0.5*(r2 - l**2)", "atan2(y, x)"),
        ["line 7, system.constraints.x)", "quote expressions that contain commas"],
    ),
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
    (changed("m: 1.0", "m: 2*g"), ["line 3, system.parameters.m: 'g' is not defined yet"]),
    (changed("m: 1.0", "m: 2*x"), ["line 3, system.parameters.m: parameters cannot use the coordinate 'x'"]),
    (changed("{r2: x**2", "{r2: r2"), ["line 4, system.let.r2: 'r2' is not defined yet"]),
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
    (changed("x: -l", "x: -y"), ["line 8, initial.x: initial cannot use the coordinate 'y'; it may use parameters"]),
    (changed("x: -l, ", ""), ["line 8, initial: the value of the coordinate 'x' is missing"]),
    (changed("v_x: 0", "w_x: 0"), ["line 8, initial.w_x: unknown name 'w_x'; did you mean 'v_x'?"]),
    (changed("x: -l", "x: sqrt(-l)"), ["line 8, initial.x: this is nan, not a finite number"]),
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
    ("problem: n-four-bar\nsystem: 3\n", ["not several"]),
    ("problem: [a]\n", ["line 1, problem: must be a string, got a list"]),
    # YAML
    ("", ["a.yaml: the file is empty"]),
    ("# only a comment\n", ["a.yaml: the file is empty"]),
    ("---\n", ["a.yaml: the file is empty"]),
    ("just text\n", ["a.yaml, line 1: a scenario must consist of fields with values (name: value), got 'just text'"]),
    ("- a\n- b\n", ["a.yaml, line 1: a scenario must consist of fields with values (name: value), got a list"]),
    (
        changed("potential: m*g*y", "potential: 'm*g*y"),
        ["line 6: this is not valid YAML: while scanning a quoted scalar"],
    ),
    (
        changed("potential: m*g*y", "potential: - m*g*y"),
        ["line 6: this is not valid YAML", "quote values that contain"],
    ),
    (
        changed("potential: m*g*y", "potential: a: b"),
        ["line 6: this is not valid YAML: mapping values are not allowed"],
    ),
    (changed("  potential", "\tpotential"), ["line 6: this is not valid YAML", "found character '\\t'"]),
    (
        changed("g: 9.81}", "g: 9.81"),
        ["line 4: this is not valid YAML: while parsing a flow mapping, expected ',' or '}'"],
    ),
    (changed("m*g*y", "*pot"), ["line 6: alias '*pot' is not allowed in a scenario"]),
    (
        changed("m*g*y", "!!python/name:os.system x"),
        ["line 6: tag 'tag:yaml.org,2002:python/name:os.system' is not allowed"],
    ),
    (
        "!!python/object/apply:os.system ['true']\n",
        ["line 1: tag 'tag:yaml.org,2002:python/object/apply:os.system' is not allowed"],
    ),
    ("a: !!int 3\n", ["line 1: tag 'tag:yaml.org,2002:int' is not allowed in a scenario"]),
    ("<<: {a: b}\nsystem: {}\n", ["line 1, <<: unknown field '<<'"]),
    ("? [a]\n: b\n", ["line 1: the name of a field must be a string"]),
    (PENDULUM + "---\n" + PENDULUM, ["line 11: a scenario file must contain one document; a second one starts here"]),
    ("a: \x07\n", ["line 1: this is not a text file: it contains the character #x07"]),
    ('system: "\\ud800"\n', ["half a character"]),
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
    assert "line 2: alias '*a' is not allowed" in str(error)


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
        (b"h: \x00\x00", "line 1: this is not a text file: it contains the character #x00"),
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
    assert lv.scenario.load(tmp_path / "a.yaml").problem().model.m == 1


@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=300))
def test_random_bytes(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "bytes.yaml"
    path.write_bytes(content)
    assert isinstance(guarded(lambda: lv.scenario.load(path)), InputError)


FIELDS = st.sampled_from(
    "system problem initial options h t_end t0 every out project redundant scheme coordinates parameters let kinetic "
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
