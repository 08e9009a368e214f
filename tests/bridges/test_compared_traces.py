"""Comparison of traced functions with calls along the solution, for changes that no key contains."""

import ctypes
import functools
import math

import numpy as np
import pytest
import scipy.integrate as si
from changing_values import TIGHT, end, executed

import livens as lv
from livens.expressions.numpy_tracing import TracingError


# -- comparison along the solution: values that no key contains --------------------------------------------------------
@pytest.fixture
def blind_keys(monkeypatch):
    """Keys without values: every function has the key of its code."""
    from livens.run.bridges import traced_ode

    monkeypatch.setattr(traced_ode, "value_key", lambda *functions: tuple(f.__code__ for f in functions) or None)


@pytest.mark.parametrize("t_end", [1.0, 1e-3, 20.0, -1.0])
@pytest.mark.parametrize("rate", [lambda t, y: t, lambda t, y: y[0] - 1, lambda t, y: np.maximum(t - 0.1 * t, -t)])
def test_cached_traces_are_compared_along_the_solution(blind_keys, t_end, rate):
    gains = [0.0]

    def f(t, y):
        return -(1 + gains[0] * rate(t, y)) * y

    assert end(f, t_end) == pytest.approx(np.exp(-t_end), abs=1e-9)
    gains[0] = 0.5
    expected = si.solve_ivp(f, (0, t_end), [1.0], rtol=1e-11, atol=1e-13).y[0, -1]
    assert end(f, t_end) == pytest.approx(expected, rel=1e-7, abs=1e-9)
    gains[0] = 0.0
    assert end(f, t_end) == pytest.approx(np.exp(-t_end), abs=1e-9)


def test_short_intervals_are_compared(blind_keys):
    gains = [0.0]

    def f(t, y):
        return -1e9 * (1 + gains[0] * 1e9 * t) * y

    assert end(f, 1e-9) == pytest.approx(np.exp(-1))
    gains[0] = 2.0
    assert end(f, 1e-9) == pytest.approx(np.exp(-2))


def test_events_are_compared_along_the_solution(blind_keys):
    levels = [0.0]

    def reached(t, y):
        return y[0] - 0.5 + levels[0] * t

    solve = functools.partial(lv.solve_ivp, lambda t, y: -y, (0, 1), [1.0], events=reached, **TIGHT)
    assert solve().t_events[0] == pytest.approx([math.log(2)])
    levels[0] = 0.1
    expected = si.solve_ivp(lambda t, y: -y, (0, 1), [1.0], events=reached, rtol=1e-11, atol=1e-13).t_events[0]
    assert solve().t_events[0] == pytest.approx(expected)


def test_a_function_that_raises_after_a_change_raises(blind_keys):
    allowed = [True]

    def f(t, y):
        if t > 0 and not allowed[0]:
            raise RuntimeError("not allowed")
        return -y

    assert end(f) == pytest.approx(np.exp(-1))
    allowed[0] = False
    with pytest.raises(RuntimeError, match="not allowed"), pytest.warns(lv.LivensWarning):
        end(f)


def test_a_function_that_changes_during_the_solution_is_integrated_by_scipy():
    calls = ctypes.c_int(0)

    def f(t, y):
        calls.value += 1
        return -(1 + 1e-3 * calls.value * t) * y

    with pytest.raises(TracingError, match="more than its arguments"):
        lv.solve_ivp(f, (0, 1), [1.0], fallback="error")


def test_compiled_functions_with_values_of_their_compilation():
    numba = pytest.importorskip("numba")
    scope = executed("gain = 0.0\ndef f(t, y):\n    return -(1 + gain * t) * y")
    compiled = numba.njit(scope["f"])
    assert end(compiled) == pytest.approx(np.exp(-1))
    scope["gain"] = 2.0  # Numba has compiled the earlier value
    with pytest.warns(lv.LivensWarning, match="along the solution|from call to call"):
        assert end(compiled) == pytest.approx(np.exp(-1))


def test_functions_without_a_key_share_their_model():
    from livens.engine.codegen import jit

    gain = ctypes.c_double(0.5)

    def f(t, y):
        return -(1 + gain.value * t) * y

    first = end(f)
    before = jit.compilations
    assert end(f) == first and jit.compilations == before
