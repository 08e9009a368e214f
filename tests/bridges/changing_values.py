"""Values that change between calls of `livens.solve_ivp`, and the state at the end of a run."""

import operator

import numpy as np
import pytest

import livens as lv

TIGHT = dict(rtol=1e-9, atol=1e-12)


def end(function, t_end=1.0, **options):
    """Return the first state at the end of a run from 1."""
    return lv.solve_ivp(function, (0, t_end), [1.0], **TIGHT, **options).y[0, -1]


def assert_changed_value_is_used(case):
    """Assert that a right-hand side is ``-y`` before and ``-2 y`` after a change; `case` returns both functions."""
    function, change = case()
    assert [end(function), end(function)] == pytest.approx([np.exp(-1)] * 2)
    change()
    assert end(function) == pytest.approx(np.exp(-2))


class Cases(dict):
    """Functions by name, collected by a decorator."""

    def __call__(self, case):
        self[case.__name__] = case
        return case


def setter(owner, name, value=-2.0):
    """Return a function that sets an attribute."""
    return lambda: setattr(owner, name, value)


def item_setter(container, key, value=-2.0):
    """Return a function that sets an item."""
    return lambda: operator.setitem(container, key, value)


def executed(text, **scope):
    """Return the globals of a text in which `f` is defined."""
    exec(text, scope)
    return scope


def linear(gain):
    """Return a right-hand side whose solution from 1 is ``exp(-t - gain() * t**2 / 2)``: equal rates at t = 0."""
    return lambda t, y: -(1 + gain() * t) * y
