"""Native code computes what CasADi computes, for every operation and special value; and the cache on disk."""

import ctypes
import itertools
import resource

import casadi as ca
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import livens as lv
from livens.engine.codegen import jit
from livens.engine.codegen.ir_emitter import Emitter, literal
from livens.engine.codegen.step_kernels import compile_function_kernel, inv_roundoff_function, inv_roundoff_kernel
from livens.engine.newton import time_loop
from livens.expressions.graph.roundoff import UNIT_ROUNDOFF, roundoff_bound

INF, NAN = np.inf, np.nan
POINTER = ctypes.POINTER(ctypes.c_double)
SIGNATURE = ctypes.CFUNCTYPE(None, *[POINTER] * 5)


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory):
    """Everything is compiled here and now, whatever earlier runs have left on disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LIVENS_CACHE_DIR", str(tmp_path_factory.mktemp("kernels")))
        yield


def call(code, x, z=(), c=(), r=0, out=0):
    """Call a kernel; returns what it wrote to r and out, with a guard behind each that must stay as it was."""
    guard = 1.25
    vectors = [np.array([*v, guard], dtype=float) for v in (x, z, c, [NAN] * r, [NAN] * out)]
    SIGNATURE(code.address)(*(v.ctypes.data_as(POINTER) for v in vectors))
    assert all(v[-1] == guard for v in vectors)
    return vectors[3][:-1], vectors[4][:-1]


def both(function, arguments, points):
    """`function` (of `arguments` numbers) at all points, by native code and by CasADi."""
    points = np.array(points, dtype=float).reshape(-1, arguments)
    x = ca.SX.sym("x", points.size)
    rows = ca.vertsplit(ca.reshape(x, arguments, len(points)).T)
    symbol = ca.SX.sym("a", arguments)
    one = ca.Function("one", [symbol], [function(*ca.vertsplit(symbol))])
    f = ca.Function("f", [x], [ca.densify(ca.vertcat(*(one(row) for row in rows)))])
    _, got = call(compile_function_kernel(f, "f"), points.ravel(), out=len(points))
    return got, f(points.ravel()).full().ravel()


def assert_equal(got, expected, points, ulps):
    """Equal up to some ulp; NaN and infinities where CasADi has them."""
    with np.errstate(invalid="ignore"):
        close = (got == expected) | (np.isnan(got) & np.isnan(expected))
        close |= abs(got - expected) <= ulps * np.spacing(abs(expected))
    wrong = [(p, g, e) for p, g, e, ok in zip(points, got, expected, close, strict=True) if not ok]
    assert not wrong, f"(point, native, CasADi): {wrong[:5]}"


SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.5, 3.0, 1e-5, -1e5, 7.75, 700.0, INF, -INF, NAN]
UNARY = {
    "neg": lambda a: -a, "sq": lambda a: a**2, "twice": lambda a: 2 * a, "inverse": lambda a: 1 / a,
    "sqrt": ca.sqrt, "exp": ca.exp, "log": ca.log, "log1p": ca.log1p, "expm1": ca.expm1,
    "sin": ca.sin, "cos": ca.cos, "tan": ca.tan, "asin": ca.asin, "acos": ca.acos, "atan": ca.atan,
    "sinh": ca.sinh, "cosh": ca.cosh, "tanh": ca.tanh, "asinh": ca.asinh, "acosh": ca.acosh, "atanh": ca.atanh,
    "fabs": ca.fabs, "sign": ca.sign, "floor": ca.floor, "ceil": ca.ceil, "erf": ca.erf, "not": ca.logic_not,
    "constant": lambda a: a + 0.1, "times constant": lambda a: -0.3 * a,
    "if positive": lambda a: ca.if_else(a > 0, a, 7),
}  # fmt: skip
BINARY = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b,
    "lt": lambda a, b: a < b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "and": ca.logic_and, "or": ca.logic_or,
    "fmin": ca.fmin, "fmax": ca.fmax, "fmod": ca.fmod, "remainder": ca.remainder, "copysign": ca.copysign,
    "atan2": ca.atan2, "hypot": ca.hypot, "pow": ca.power, "if_else": lambda a, b: ca.if_else(a, b, -b),
}  # fmt: skip
EXPONENTS = [*range(6), 7, 8, 13, 15, 16, 17, 20, 31, 101, -1, -2, -3, -5, -16, -17, -101, 0.5, -0.5, 1.5, 1 / 3, 2.5]


@pytest.mark.parametrize("name", UNARY)
def test_operations_of_one_operand(name):
    """At ordinary numbers and at zeros, infinities and NaN."""
    got, expected = both(UNARY[name], 1, SPECIAL)
    assert_equal(got, expected, SPECIAL, ulps=2)


@pytest.mark.parametrize("name", BINARY)
def test_operations_of_two_operands(name):
    """At all pairs of ordinary numbers, zeros, infinities and NaN."""
    pairs = list(itertools.product(SPECIAL, SPECIAL))
    got, expected = both(BINARY[name], 2, pairs)
    assert_equal(got, expected, pairs, ulps=2)


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_constant_exponents(exponent):
    """Small integer powers are products: each adds its rounding. Negative, fractional and large ones too."""
    points = [0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1.1, -0.9, 7.75, INF, NAN]
    got, expected = both(lambda a: a**exponent, 1, points)
    assert_equal(got, expected, points, ulps=16)


@pytest.mark.parametrize("exponent", [*range(-17, 18), 0.5, 100, 1.5])
def test_constant_exponents_as_instructions(exponent):
    """The power instruction itself with a constant, which CasADi takes apart only in part."""
    emitter = Emitter("power", 5)
    emitter.store(emitter.lower_op("CONSTPOW", emitter.load(0, 0), literal(float(exponent))), 4, 0)
    code = jit.compile_function(emitter.to_ir(), "power")
    for x in (1.1, -0.9, 2.5, -3.0, 1.0, INF):
        _, (got,) = call(code, [x], out=1)
        with np.errstate(invalid="ignore"):
            np.testing.assert_allclose(got, np.float64(x) ** exponent, rtol=16 * UNIT_ROUNDOFF)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(UNARY)), st.lists(st.floats(-30, 30), min_size=1, max_size=20))
def test_operations_of_one_operand_anywhere(name, points):
    """Random numbers, subnormal ones among them."""
    got, expected = both(UNARY[name], 1, points)
    assert_equal(got, expected, points, ulps=2)


# -- whole graphs -----------------------------------------------------------------------------------------------------
# tame operations: a rounding error is not amplified without bound, so the first-order bound of round-off is one
ONE = {
    "sin": ca.sin, "cos": ca.cos, "tanh": ca.tanh, "atan": ca.atan, "asinh": ca.asinh, "abs": ca.fabs,
    "sqrt": lambda a: ca.sqrt(1 + a**2), "cube": lambda a: a**3, "power": lambda a: (1 + a**2) ** -1.5,
    "log": lambda a: ca.log(1 + a**2), "exp": lambda a: ca.exp(-(a**2)), "neg": lambda a: -a,
}  # fmt: skip
TWO = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / (1 + b**2),
    "max": ca.fmax, "min": ca.fmin, "atan2": lambda a, b: ca.atan2(a, 2 + b**2),
    "hypot": lambda a, b: ca.hypot(1, a * b),
}  # fmt: skip
SIZE = 4
TREES = st.recursive(
    st.one_of(st.integers(0, SIZE - 1), st.sampled_from([0.5, -1.25, 0.1])),
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(sorted(ONE)), inner),
        st.tuples(st.sampled_from(sorted(TWO)), inner, inner),
        # the condition is one on the inputs, which are exact
        st.tuples(st.just("where"), st.integers(0, SIZE - 1), inner, inner),
    ),
    max_leaves=15,
)


def graph(tree, x):
    if isinstance(tree, float):
        return ca.SX(tree)
    if isinstance(tree, int):
        return x[tree]
    name, *operands = tree
    operands = [graph(operand, x) for operand in operands]
    if name == "where":
        return ca.if_else(operands[0] > 0, *operands[1:])
    return (ONE | TWO)[name](*operands)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(TREES, min_size=1, max_size=4),
    st.lists(st.lists(st.floats(-2, 2), min_size=SIZE, max_size=SIZE), min_size=1, max_size=4),
)
def test_random_graphs(trees, points):
    """Native code may contract products and sums, but stays within the rounding errors of the graph."""
    x = ca.SX.sym("x", SIZE)
    f = ca.Function("f", [x], [ca.densify(ca.vertcat(*(graph(tree, x) for tree in trees)))])
    bound = ca.Function("b", [x], [ca.densify(roundoff_bound(f, [x], [ca.SX.zeros(SIZE)]))])
    code = compile_function_kernel(f, "f")
    for point in points:
        _, got = call(code, point, out=len(trees))
        expected, allowed = f(point).full().ravel(), 2.1 * UNIT_ROUNDOFF * bound(point).full().ravel()
        assert np.all(abs(got - expected) <= allowed), (got, expected, allowed)


def test_arguments_come_from_their_pointers():
    """x, z and c are read from the first three, the result goes to out or, if asked for, to r."""
    x, z, c = ca.SX.sym("x", 2), ca.SX.sym("z", 3), ca.SX.sym("c", 1)
    f = ca.Function("f", [x, z, c], [ca.vertcat(x[0] + 10 * z[2], c[0] * x[1], z[0], 4.0)])
    r, out = call(compile_function_kernel(f, "f"), [1, 2], [3, 4, 5], [6], r=4, out=4)
    np.testing.assert_array_equal(out, [51, 12, 3, 4])
    assert np.isnan(r).all()
    r, out = call(compile_function_kernel(f, "f", pointer=3), [1, 2], [3, 4, 5], [6], r=4, out=4)
    np.testing.assert_array_equal(r, [51, 12, 3, 4])
    assert np.isnan(out).all()


def test_effort_does_not_change_values():
    """Rarely used code is compiled with less optimization and equal results."""
    x = ca.SX.sym("x", 2)
    f = ca.Function("f", [x], [ca.sin(x[0]) / (x[1] ** 2 + 1)])
    results = [
        call(compile_function_kernel(f, "f", opt_level=effort), [0.3, 1.7], out=1)[1][0] for effort in (0, 1, 2, 3)
    ]
    np.testing.assert_allclose(results, float(f([0.3, 1.7])), rtol=8 * UNIT_ROUNDOFF)


def test_tables():
    """The compiled loop evaluates a kernel at every row, with the time as the second of c."""
    x, z, c = ca.SX.sym("x", 2), ca.SX.sym("z", 1), ca.SX.sym("c", 3)
    f = ca.Function("f", [x, z, c], [ca.vertcat(x[0] * z[0], c[1] + c[2], x[1])])
    X, Z, t = np.arange(8.0).reshape(4, 2), np.arange(4.0)[:, None] + 1, np.linspace(0, 3, 4)
    out = np.empty((4, 3))
    time_loop.tabulate(compile_function_kernel(f, "f").address, X, Z, np.array([0.1, 0.0, 5.0]), t, out)
    np.testing.assert_array_equal(out, np.column_stack([X[:, 0] * Z[:, 0], t + 5, X[:, 1]]))


@pytest.mark.parametrize("value", [0.0, -0.0, 0.1, -1e-310, 1e308, INF, -INF, NAN])
def test_literals_are_exact(value):
    """Constants are written bit for bit."""
    emitter = Emitter("constant", 5)
    emitter.store(literal(value), 4, 0)
    _, (got,) = call(jit.compile_function(emitter.to_ir(), "constant"), [0.0], out=1)
    assert np.float64(got).tobytes() == np.float64(value).tobytes()


def test_equal_instructions_are_written_once():
    """A graph that repeats itself costs nothing."""
    emitter = Emitter("f", 5)
    a, b = (emitter.lower_op("SIN", emitter.load(0, 0)) for _ in range(2))
    assert a == b
    assert emitter.to_ir().count("@sin(double %") == 1


def test_unknown_operations_are_named():
    """Unsupported operations are named when the kernel is built."""
    x = ca.SX.sym("x")
    with pytest.raises(ValueError, match="'erfinv' cannot be compiled"):
        compile_function_kernel(ca.Function("f", [x], [ca.erfinv(x)]), "f")


# -- the cache on disk ------------------------------------------------------------------------------------------------
@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache of this test's own."""
    monkeypatch.setenv("LIVENS_CACHE_DIR", str(tmp_path / "kernels"))
    jit.clear_memory_cache()
    yield tmp_path / "kernels"
    jit.clear_memory_cache()


def affine(slope, name="affine"):
    """A small function; each slope is another one."""
    x = ca.SX.sym("x")
    return ca.Function(name, [x], [slope * x + 1])


def compiled(slope, x=2.0, name="affine"):
    """The value of a kernel made now, and how many compilations that took."""
    before = jit.compilations
    jit.clear_memory_cache()
    _, (value,) = call(compile_function_kernel(affine(slope), name), [x], out=1)
    return value, jit.compilations - before


def files(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_the_second_time_is_taken_from_disk(cache):
    """An equal function is found, although it is another object."""
    assert compiled(3.0) == (7.0, 1)
    assert len(files(cache)) == 1
    assert compiled(3.0) == (7.0, 0)
    assert len(files(cache)) == 1


def test_text_is_found_too(cache):
    """Code given as text is kept by its text, in memory and on disk."""
    emitter = Emitter("half", 5)
    emitter.store(emitter.lower_op("MUL", emitter.load(0, 0), literal(0.5)), 4, 0)
    before = jit.compilations
    codes = []
    for _ in range(2):
        codes.append(jit.compile_function(emitter.to_ir(), "half"))
        assert jit.compile_function(emitter.to_ir(), "half") is codes[-1]
        jit.clear_memory_cache()
    assert jit.compilations == before + 1
    assert [call(code, [5.0], out=1)[1][0] for code in codes] == [2.5, 2.5]


def test_text_is_not_written_if_code_is_on_disk(cache):
    """Cached code is not emitted again."""

    def text():
        emitter = Emitter("one", 5)
        emitter.store(literal(1.0), 4, 0)
        return emitter.to_ir()

    jit.load_or_compile("some content", text, "one")
    code = jit.load_or_compile("some content", lambda: pytest.fail("asked for the text"), "one")
    assert call(code, [0.0], out=1)[1][0] == 1.0


def test_different_functions_have_different_code(cache):
    """One file per function; all of them work side by side."""
    assert [compiled(slope) for slope in (1.0, 2.0, 1.0)] == [(3.0, 1), (5.0, 1), (3.0, 0)]
    assert len(files(cache)) == 2
    f = affine(4.0)
    assert compile_function_kernel(f, "affine", pointer=3) is not compile_function_kernel(f, "affine", pointer=4)
    assert len(files(cache)) == 4


def test_one_function_may_have_two_names(cache):
    """The name belongs to the code: the other one is not in it."""
    assert compiled(3.0, name="first")[0] == 7.0
    assert compiled(3.0, name="second")[0] == 7.0


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:10],
        lambda content: content[: len(content) // 2],
        lambda content: content[:-1],
        lambda content: bytes([content[0] ^ 1]) + content[1:],
        lambda content: content[:200] + bytes([content[200] ^ 1]) + content[201:],
        lambda content: b"\0" * len(content),
        lambda content: content + b"more",
    ],
)
def test_a_damaged_file_is_compiled_anew(cache, damage):
    """Torn writes and flipped bits cost a compilation, never a crash or a wrong number."""
    compiled(3.0)
    (file,) = files(cache)
    sound = file.read_bytes()
    file.write_bytes(damage(sound))
    assert compiled(3.0) == (7.0, 1)
    assert file.read_bytes() == sound
    assert compiled(3.0) == (7.0, 0)


def test_a_cache_that_cannot_be_made(cache):
    """A file stands where the folder should be: a temporary folder serves, and a warning says so once."""
    cache.write_text("not a folder")
    with pytest.warns(RuntimeWarning, match="compiled code cannot be kept"):
        assert compiled(31.0) == (63.0, 1)
    assert compiled(31.0) == (63.0, 0)


def test_a_folder_stands_in_the_way_of_the_file(cache):
    """Neither read nor replaced, and nothing half-written is left behind."""
    compiled(3.0)
    (file,) = files(cache)
    file.unlink()
    file.mkdir()
    assert compiled(3.0) == (7.0, 1)
    assert files(cache) == []


def test_a_full_disk(cache):
    """The file can be made but not written: the run goes on, and no remains pile up."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, hard))  # no file may grow beyond 64 bytes
    try:
        result = compiled(3.0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert result == (7.0, 1)
    assert files(cache) == []
    assert compiled(3.0) == (7.0, 1)
    assert compiled(3.0) == (7.0, 0)


def test_where_the_cache_is(monkeypatch, tmp_path):
    """$LIVENS_CACHE_DIR, else the user's cache folder."""
    monkeypatch.setenv("LIVENS_CACHE_DIR", str(tmp_path / "own"))
    assert jit.cache_directory() == tmp_path / "own"
    monkeypatch.delenv("LIVENS_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert jit.cache_directory() == tmp_path / "xdg" / "livens"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert jit.cache_directory() == tmp_path / ".cache" / "livens"


@pytest.mark.parametrize("name", ["joint-helix", "rolling-disc", "joint-gear"])
def test_the_floor_is_that_of_its_expression(name):
    """Written as native code at once: the same reciprocals of bounds to round-off."""
    problem = lv.problems.load(name)
    e = lv.schemes.get("lie-em").equations(problem.model).to_single_graph()
    assert e.assembled_roundoff_bound is None
    exact, random = inv_roundoff_function(e), np.random.default_rng(1)
    x, z, dx = (scale * random.standard_normal(n) for scale, n in ((1, e.size), (1, e.z.numel()), (1e-8, e.size)))
    c = np.concatenate([[0.01, 0.3], problem.model.parameter_vector()])
    found, code = np.zeros(e.size), inv_roundoff_kernel(e)
    SIGNATURE(code.address)(*(a.ctypes.data_as(POINTER) for a in (x, z, c, dx, found)))
    assert found == pytest.approx(np.array(exact(x, z, c, dx)).ravel(), rel=1e-14)
