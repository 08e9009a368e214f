"""Functions in a small part of Python, compiled: they do what Python does."""

from __future__ import annotations

import inspect
import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from livens.engine.arrays import aligned_zeros
from livens.engine.lowering.function import (
    NativeFunction,
    compile_unit,
    fast_lowered,
    is_compiled,
    lowered,
    source_fingerprint,
)
from livens.engine.lowering.intrinsics import (
    address_of,
    atan,
    bits_to_float,
    call_kernel,
    cyclic,
    f64_pointer,
    float_to_bits,
    lane,
    load_quad,
    make_quad,
    sqrt,
    store_quad,
    sum3,
)
from livens.engine.lowering.types import F64Array, I32Array, I64Array, Struct

LIMIT = 1.5


@dataclass(frozen=True, eq=False)
class Inner(Struct):
    count: int
    values: F64Array


@dataclass(frozen=True, eq=False)
class Outer(Struct):
    inner: Inner
    places: I32Array
    mark: bool


@lowered
def arithmetic(a: int, b: int, x: float, y: float, out: F64Array) -> None:
    """Mixed kinds, tuples, chains of comparisons, and choices."""
    out[0], out[1] = a + b * x, (a - b) / 2
    out[2] = a // b + a % b
    out[3] = -x if 0 < a <= b or x == y else max(x, y) - min(a, b)
    out[4] = abs(y) ** 2 + int(x) + float(a)
    out[5] = LIMIT + (not a < b)
    i = 0
    while True:
        i += 1
        if i % 2 == 0:
            continue
        if i > b:
            break
        out[6] += i
    for k in range(b, 0, -1):
        out[7] = 10.0 * out[7] + k
        if k == 3:
            break
    out[8] = sqrt(x * x + y * y) + math.pi


def python_arithmetic(a, b, x, y):
    out = np.zeros(9)
    # the same statements, by Python itself
    scope = {**globals(), "sqrt": math.sqrt}
    body = arithmetic.__wrapped__
    type(body)(body.__code__, scope)(a, b, x, y, out)
    return out


@given(
    a=st.integers(0, 50),
    b=st.integers(1, 50),
    x=st.floats(-50, 50, allow_subnormal=False),
    y=st.floats(-50, 50, allow_subnormal=False),
)
@settings(max_examples=60, deadline=None)
def test_as_python_computes(a, b, x, y):
    out = np.zeros(9)
    arithmetic(a, b, x, y, out)
    assert np.allclose(out, python_arithmetic(a, b, x, y), rtol=1e-15, atol=0)


@lowered
def gathered(o: Outer) -> float:
    total = 0.0
    for i in range(o.inner.count):
        total += o.inner.values[o.places[i]]
    return -total if o.mark else total


@lowered
def doubled(o: Outer) -> float:
    return 2.0 * gathered(o)


@pytest.mark.parametrize("mark", [False, True])
def test_records_within_records(mark):
    o = Outer(Inner(3, np.array([1.0, 2.0, 4.0])), np.array([2, 0, 2], dtype=np.int32), mark)
    assert gathered(o) == (-9.0 if mark else 9.0)
    assert doubled(o) == (-18.0 if mark else 18.0)


@dataclass(frozen=True, eq=False)
class Span(Struct):
    start: float
    count: int
    size: float


@lowered
def end_of(span: Span) -> float:
    return span.start + span.count * span.size


@given(st.floats(-1e3, 1e3), st.integers(0, 50), st.floats(-1e3, 1e3))
@settings(max_examples=40, deadline=None)
def test_records_with_numbers(start, count, size):
    assert end_of(Span(start, count, size)) == start + count * size


@lowered
def largest(x: F64Array, n: int) -> float:
    """The largest in size; what is not a number is larger than all."""
    found = 0
    for i in range(n):
        found = max(found, float_to_bits(abs(x[i])))
    return bits_to_float(found)


@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=20), st.booleans())
@settings(max_examples=40, deadline=None)
def test_the_largest_by_its_bits(values, lost):
    x = np.array([*values, np.nan] if lost else values)
    found = largest(x, x.size)
    assert math.isnan(found) if lost else found == np.abs(x).max()


@lowered
def square(x: F64Array, unused: F64Array, c: F64Array, table: F64Array, out: F64Array) -> None:
    out[0] = x[0] * x[0]


@lowered
def by_address(function: int, x: F64Array, out: F64Array) -> None:
    call_kernel(function, x, 0, 0, 0, f64_pointer(address_of(out) + 8))


def test_calls_of_an_address():
    square.compile()
    out = np.zeros(2)
    by_address(square._code.address_of(square.name), np.array([3.0]), out)
    assert out.tolist() == [0.0, 9.0]


@fast_lowered
def dot(a: F64Array, b: F64Array, n: int) -> float:
    total = 0.0
    for i in range(n):
        total += a[i] * b[i]
    return total


def test_sums_in_any_order():
    random = np.random.default_rng(1)
    a, b = random.normal(size=(2, 37))
    assert dot(a, b, 37) == pytest.approx(a @ b, rel=1e-13)


@lowered
def one(n: int) -> int:
    return n + 1


@lowered
def two(n: int) -> bool:
    return one(n) > 2


def test_what_belongs_together_is_compiled_at_once():
    compile_unit(one, two)
    assert not is_compiled(two)
    assert one(3) == 4
    assert two(3) is True
    assert two(1) is False
    assert is_compiled(one)
    assert one._code is two._code


def returns_nothing(n: int) -> int:
    one(n)


def unknown_name(n: int) -> int:
    return n + nowhere  # noqa: F821  # on purpose


def assigns_a_field(o: Outer) -> None:
    o.mark = True


def has_a_list(n: int) -> None:
    [n for _ in range(n)]


def wrong_number_of_arguments(n: int) -> int:
    return one(n, n)


def text_is_no_number(n: int) -> int:
    return n + "1"


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (returns_nothing, "does not return"),
        (unknown_name, "unknown name 'nowhere'"),
        (assigns_a_field, "only variables and array entries"),
        (has_a_list, "ListComp cannot be lowered"),
        (wrong_number_of_arguments, "takes 1 arguments"),
        (text_is_no_number, "is not a number"),
    ],
)
def test_what_cannot_be_lowered_is_named(function, words):
    with pytest.raises(TypeError, match=words):
        NativeFunction(function, False).compile()


def test_arrays_of_the_wrong_kind_are_not_taken():
    with pytest.raises(AssertionError):
        largest(np.zeros(3, dtype=np.float32), 3)
    with pytest.raises(AssertionError):
        largest(np.zeros((3, 3))[:, 0], 3)
    with pytest.raises(AssertionError):
        Inner(1, np.zeros(1, dtype=np.int64))


@lowered
def counted_up(numbers: I64Array, n: int) -> int:
    for i in range(n):
        numbers[i] += i
    return numbers[n - 1]


def test_whole_numbers():
    numbers = np.arange(5)
    assert counted_up(numbers, 5) == 8
    assert numbers.tolist() == [0, 2, 4, 6, 8]


# -- what is found again ----------------------------------------------------------------------------------------------
FACTOR = 2.0


@lowered
def times_factor(x: float) -> float:
    return FACTOR * x


@lowered
def calls_it(x: float) -> float:
    return times_factor(x) + 1.0


def test_code_is_found_by_what_it_follows_from(monkeypatch):
    """By constants and by functions that are called, too; without reading a source."""
    before = source_fingerprint([calls_it])
    monkeypatch.setattr(inspect, "getsource", None)
    assert source_fingerprint([calls_it]) == before != source_fingerprint([times_factor])
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    changed = source_fingerprint([calls_it])
    assert changed != before
    monkeypatch.setitem(globals(), "FACTOR", 2.0)
    assert source_fingerprint([calls_it]) == before

    def times_another(x: float) -> float:
        return x * FACTOR

    times_another.__name__ = "times_factor"
    monkeypatch.setitem(globals(), "times_factor", lowered(times_another))
    assert source_fingerprint([calls_it]) != before


@lowered
def quotient_and_remainder(a: int, b: int, out: I64Array) -> None:
    out[0] = a // b
    out[1] = a % b


@given(st.integers(-(2**40), 2**40), st.integers(-(2**20), 2**20).filter(bool))
def test_integer_division_rounds_down_as_in_python(a, b):
    out = np.zeros(2, dtype=np.int64)
    quotient_and_remainder(a, b, out)
    assert out.tolist() == [a // b, a % b]


@lowered
def _product_sum(a: F64Array, i: int) -> float:
    return sum3(load_quad(a, 0) * load_quad(a, i))


@lowered
def _in_lanes_and_alone(a: F64Array, n: int) -> None:
    total = 0.0
    for i in range(n):
        u, v = load_quad(a, 4 * i), load_quad(a, 0)
        w = cyclic(u * cyclic(v) - cyclic(u) * v) * 0.3 + make_quad(a[1], 2.0, -lane(u, i % 3)) - v * total
        x = lane(w, 2) / (1.0 + sqrt(abs(lane(w, 1))))
        if x > 0.0:  # true in any lane
            x = atan(x) if x > 0.0 else x
        total = max(total, x) + min(1, i) * _product_sum(a, 4 * i)
        store_quad(a, 4 * i, u * total - w)
    a[3] = total


@pytest.mark.parametrize("width", [4, 8])
def test_lanes_have_the_bits_of_single_numbers(width):
    n, random = 5, np.random.default_rng(width)
    values = random.standard_normal((width, 4 * n))
    lanes = aligned_zeros(4 * n * width)
    lanes.reshape(-1, width)[:] = values.T
    _in_lanes_and_alone.in_lanes(width)(lanes, n)
    for row in values:
        _in_lanes_and_alone(row, n)
    used = [i for i in range(4 * n) if i % 4 < 3 or i == 3]
    assert np.array_equal(lanes.reshape(-1, width).T[:, used], values[:, used])
    assert _in_lanes_and_alone.in_lanes(width) is _in_lanes_and_alone.in_lanes(width)


@lowered
def _conditions(a: F64Array, n: int) -> None:
    x, y = a[0], a[1]
    a[2] = 1.0 if x > 0.0 and y > 0.0 else 2.0
    a[3] = 1.0 if x > 0.0 or y > 0.0 else 2.0
    a[4] = 1.0 if not x > 0.0 else 2.0
    a[5] = 1.0 if 0.0 < x < y else 2.0
    a[6] = 1.0 if x else 2.0
    a[7] = 1.0 if x in (1.0, 2.0) else 2.0
    a[8] = 1.0 if n > 3 and x > 0.0 else 2.0
    a[9] = 1.0 if n > 3 or not (x > 0.0 and y > 0.0) else 2.0
    a[10] = 1.0 if n > 1 and n < 4 else 2.0
    a[11] = 1.0 if not (x > 0.0 or y > 0.0) and not (x == y and n > 1) else 2.0
    a[12] = 1.0 if (n > 3 and a[n] > 0.0) or x > y else 2.0


@pytest.mark.parametrize("n", [1, 2, 4])
@pytest.mark.parametrize("width", [2, 4, 8])
def test_conditions_of_floats_differ_by_lane(width, n):
    """`and`, `or`, `not`, chains of comparisons and `in`, as in Python."""
    values = np.zeros((4 * width, 13))
    values[:, :2] = np.random.default_rng(n).choice([-1.0, -0.0, 0.0, 0.5, 1.0, 2.0, np.nan], size=(4 * width, 2))
    for rows in np.split(values, 4):
        lanes = aligned_zeros(13 * width)
        lanes.reshape(-1, width)[:] = rows.T
        _conditions.in_lanes(width)(lanes, n)
        alone = rows.copy()
        for single, row in zip(alone, rows, strict=True):
            _conditions(single, n)
            expected = row.tolist()
            _conditions.__wrapped__(expected, n)
            assert np.array_equal(single, expected, equal_nan=True)
        assert np.array_equal(lanes.reshape(-1, width).T, alone, equal_nan=True)
