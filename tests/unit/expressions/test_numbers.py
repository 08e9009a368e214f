"""Numbers and names as users give them: what is wrong is said in one sentence, whatever is given."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import livens as lv
from livens.expressions.name_parsing import parse_names
from livens.validation import check_array, check_integer, check_nonnegative, check_number, check_positive, check_vector

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
        (lambda: check_number("h", None), "h is missing: give a number"),
        (lambda: check_number("h", "fast"), "h must be a number, got 'fast'"),
        (lambda: check_number("h", math.nan), "h must be a finite number, got nan"),
        (lambda: check_number("h", True), "h must be a finite number, got True"),
        (lambda: check_number("h", "2", allow_strings=False), "h must be a finite number, got '2'"),
        (lambda: check_number("h", 10**400), "h must be a number"),
        (lambda: check_positive("link: the length", 0), "link: the length must be greater than 0, got 0"),
        (lambda: check_nonnegative("the radius", -1), "the radius must not be negative, got -1"),
        (lambda: check_integer("every", 1.5, minimum=1), "every must be a whole number of at least 1, got 1.5"),
        (lambda: check_integer("every", True, minimum=1), "every must be a whole number"),
        (lambda: check_integer("every", 2**60, minimum=1, maximum=2**52), "at least 1 (and at most 2**52)"),
        (lambda: check_vector("q0", None, "xy", "coordinate"), "q0 is missing: give one number per coordinate (x, y)"),
        (lambda: check_vector("q0", [1, 2, 3], "xy", "state"), "q0 must be 2 numbers (one per state), got 3 numbers"),
        (lambda: check_vector("q0", [[1, 2]], "xy"), "q0 must be 2 numbers (x, y), got an array of shape (1, 2)"),
        (lambda: check_vector("q0", [1, math.inf], "xy"), "q0 must be finite, but q0[y] is inf"),
        (lambda: check_vector("q0", "left", "xy"), "q0 must be 2 numbers, got 'left'"),
        (lambda: check_vector("q0", [1], [f"x{i}" for i in range(40)]), "x11, ...), got 1 numbers"),
        (lambda: check_array("centre", [1, 2], (3,)), "centre must be 3 numbers, all finite, got [1, 2]"),
        (lambda: check_array("tensor", [1, 2], (3, 3)), "tensor must be numbers of shape (3, 3), all finite"),
        (lambda: check_array("M", [[math.nan]]), "M must be finite"),
        (lambda: check_array("M", "no", description="a matrix of numbers"), "M must be a matrix of numbers, got 'no'"),
        (lambda: parse_names("states", 2.5, "x"), "states must be names or a number, got 2.5"),
        (lambda: parse_names("states", True, "x"), "states must be names or a number"),
        (lambda: parse_names("states", "a b a", "x"), "states: 'a' is named twice"),
        (lambda: parse_names("states", "a b a", "x", singular="state"), "state 'a' is named twice"),
    ],
)
def test_sentences(call, words):
    with pytest.raises(lv.InputError) as error:
        call()
    assert words in str(error.value)


@given(anything)
def test_whatever_is_given_it_is_used_or_refused(value):
    for check in (
        lambda: check_number("n", value),
        lambda: check_positive("n", value),
        lambda: check_integer("n", value, minimum=0, maximum=2**52),
        lambda: check_vector("n", value, ["a", "b"]),
        lambda: check_array("n", value),
    ):
        try:
            assert np.all(np.isfinite(check()))
        except lv.InputError as error:
            assert str(error).startswith("n ")


def test_numbers_are_new_arrays():
    mine = np.array([1.0, 2.0])
    assert check_vector("q0", mine, "xy") is not mine and check_array("q0", mine) is not mine
