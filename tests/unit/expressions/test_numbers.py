"""Numbers and names as users give them: what is wrong is said in one sentence, whatever is given."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import livens as lv
from livens.expressions.names import names_of
from livens.expressions.numbers import array, not_negative, number, positive, vector, whole_number

anything = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.floats(), max_size=4),
    st.complex_numbers(),
    st.dictionaries(st.text(max_size=2), st.floats(), max_size=2),
)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: number("h", None), "h is missing: give a number"),
        (lambda: number("h", "fast"), "h must be a number, got 'fast'"),
        (lambda: number("h", math.nan), "h must be a finite number, got nan"),
        (lambda: number("h", True), "h must be a finite number, got True"),
        (lambda: number("h", "2", text=False), "h must be a finite number, got '2'"),
        (lambda: number("h", 10**400), "h must be a number"),
        (lambda: positive("link: the length", 0), "link: the length must be greater than 0, got 0"),
        (lambda: not_negative("the radius", -1), "the radius must not be negative, got -1"),
        (lambda: whole_number("every", 1.5, least=1), "every must be a whole number of at least 1, got 1.5"),
        (lambda: whole_number("every", True, least=1), "every must be a whole number"),
        (lambda: whole_number("every", 2**60, least=1, most=2**52), "at least 1 (and at most 2**52)"),
        (lambda: vector("q0", None, "xy", "coordinate"), "q0 is missing: give one number per coordinate (x, y)"),
        (lambda: vector("q0", [1, 2, 3], "xy", "state"), "q0 must be 2 numbers (one per state), got 3 numbers"),
        (lambda: vector("q0", [[1, 2]], "xy"), "q0 must be 2 numbers (x, y), got an array of shape (1, 2)"),
        (lambda: vector("q0", [1, math.inf], "xy"), "q0 must be finite, but q0[y] is inf"),
        (lambda: vector("q0", "left", "xy"), "q0 must be 2 numbers, got 'left'"),
        (lambda: vector("q0", [1], [f"x{i}" for i in range(40)]), "x11, ...), got 1 numbers"),
        (lambda: array("centre", [1, 2], (3,)), "centre must be 3 numbers, all finite, got [1, 2]"),
        (lambda: array("tensor", [1, 2], (3, 3)), "tensor must be numbers of shape (3, 3), all finite"),
        (lambda: array("M", [[math.nan]]), "M must be finite"),
        (lambda: array("M", "no", words="a matrix of numbers"), "M must be a matrix of numbers, got 'no'"),
        (lambda: names_of("states", 2.5, "x"), "states must be names or a number, got 2.5"),
        (lambda: names_of("states", True, "x"), "states must be names or a number"),
        (lambda: names_of("states", "a b a", "x"), "states: 'a' is named twice"),
        (lambda: names_of("states", "a b a", "x", one="state"), "state 'a' is named twice"),
    ],
)
def test_sentences(call, words):
    with pytest.raises(lv.InputError) as error:
        call()
    assert words in str(error.value)


@given(anything)
def test_whatever_is_given_it_is_used_or_refused(value):
    for check in (
        lambda: number("n", value),
        lambda: positive("n", value),
        lambda: whole_number("n", value, least=0, most=2**52),
        lambda: vector("n", value, ["a", "b"]),
        lambda: array("n", value),
    ):
        try:
            assert np.all(np.isfinite(check()))
        except lv.InputError as error:
            assert str(error).startswith("n ")


def test_numbers_are_new_arrays():
    mine = np.array([1.0, 2.0])
    assert vector("q0", mine, "xy") is not mine and array("q0", mine) is not mine
