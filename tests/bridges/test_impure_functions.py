"""Functions that are not pure: random numbers, clocks and counters are not traced, and data of users is unchanged."""

import array
import collections
import contextlib
import contextvars
import datetime
import itertools
import random
import types

import numpy as np
import pytest
from changing_values import Cases, executed
from ivp_corpus import CASES as CASE_LIST

import livens as lv
from livens.expressions.numpy_tracing import TracingError

CASES = {case.name: case for case in CASE_LIST}
#: Functions that return a right-hand side whose values or data change from call to call, by name.
IMPURE = impure = Cases()


@impure
def random_generator_in_a_closure():
    generator = np.random.default_rng(0)
    return lambda t, y: -y + 1e-3 * generator.normal()


@impure
def method_of_a_random_generator():
    normal = np.random.default_rng(0).normal
    return lambda t, y: -y + 1e-3 * normal()


@impure
def random_numbers_imported_by_name():
    from numpy.random import normal

    return lambda t, y: -y + 1e-3 * normal()


@impure
def random_numbers_imported_in_the_function():
    def f(t, y):
        import numpy as np

        return -y + 1e-3 * np.random.normal()

    return f


@impure
def random_generator_of_python():
    generator = random.Random(0)
    return lambda t, y: -y + 1e-3 * generator.random()


@impure
def random_numbers_of_python():
    uniform = random.uniform
    return lambda t, y: -y + 1e-3 * uniform(0, 1)


@impure
def random_variates_of_scipy():
    from scipy import stats

    return lambda t, y: -y + 1e-3 * stats.norm.rvs()


@impure
def clock():
    from time import perf_counter

    return lambda t, y: -y + 0 * perf_counter()


@impure
def present_time():
    from datetime import datetime

    return lambda t, y: -y + 0 * datetime.now().timestamp()


@impure
def present_time_of_the_module():
    return lambda t, y: -y + 0 * datetime.datetime.now().timestamp()


@impure
def iterator():
    counter = itertools.count()
    return lambda t, y: -y + 0 * next(counter)


@impure
def generator_object():
    rates = (-1.0 for _ in itertools.count())
    return lambda t, y: next(rates) * y


def counted(count):
    """Return a right-hand side that changes at the second call of a function that counts its calls."""
    return lambda t, y: -y if count() < 2 else -2 * y


@impure
def counter_in_a_closure():
    calls = 0

    def count():
        nonlocal calls
        calls += 1
        return calls

    return counted(count)


@impure
def counter_in_a_global_name():
    return counted(executed("n = 0\ndef f():\n    global n\n    n += 1\n    return n")["f"])


@impure
def counter_in_a_context_variable():
    calls = contextvars.ContextVar("calls", default=0)

    def count():
        calls.set(calls.get() + 1)
        return calls.get()

    return counted(count)


class Calls:
    n = 0

    @staticmethod
    def count_in_class():
        Calls.n += 1
        return Calls.n

    def count(self):
        self.n += 1
        return self.n

    def count_in_type(self):
        type(self).n += 1
        return self.n


@impure
def counter_in_a_class():
    return counted(Calls.count_in_class)


@impure
def counter_in_an_object():
    return counted(Calls().count)


@impure
def counter_in_the_type_of_an_object():
    return counted(Calls().count_in_type)


def count_in(owner):
    def count():
        owner.n += 1
        return owner.n

    owner.n = 0
    return counted(count)


@impure
def counter_in_an_object_without_methods():
    return count_in(type("Empty", (), {})())


@impure
def counter_in_slots():
    return count_in(type("Slotted", (), {"__slots__": ("n",)})())


@impure
def counter_in_a_namespace():
    return count_in(types.SimpleNamespace())


@impure
def counter_in_a_class_without_methods():
    return count_in(type("Empty", (), {}))


@impure
def counter_in_a_module():
    return count_in(types.ModuleType("livens_test_counter"))


@impure
def counter_in_a_function():
    return count_in(lambda: None)


@impure
def method_of_a_list_that_appends():
    append = [].append

    def f(t, y):
        append(t)
        return -y

    return f


def log_of(log):
    def f(t, y):
        log.append(0.0)
        return -y if len(log) < 2 else -2 * y

    return f


@impure
def growing_list():
    return log_of([])


@impure
def growing_queue():
    return log_of(collections.deque())


@impure
def growing_array():
    return log_of(array.array("d"))


@impure
def growing_default_argument():
    def f(t, y, log=[]):  # noqa: B006
        log.append(t)
        return -y if len(log) < 2 else -2 * y

    return f


@impure
def array_changed_in_place():
    table = np.zeros((2, 2))
    row = table[0]

    def f(t, y):
        row[0] += 1
        return -y if table[0, 0] < 2 else -2 * y

    return f


@pytest.fixture(autouse=True)
def no_calls(monkeypatch):
    monkeypatch.setattr(Calls, "n", 0)


@pytest.mark.parametrize("name", IMPURE)
def test_a_function_that_is_not_pure_is_not_traced(name):
    with pytest.raises(TracingError, match=r"it changes|it assigns|other values at every use|depends on more than"):
        lv.solve_ivp(IMPURE[name](), (0, 1), [1.0], fallback="error")


def table_with_a_default(t, y):
    try:
        gain = [0.0, 9.0][int(2 * t)]
    except Exception:
        gain = 0.0
    return gain - y


def table_with_any_exception(t, y):
    gain = 0.0
    try:
        gain = [0.0, 9.0][int(2 * t)]
    finally:
        return gain - y  # noqa: B012


def table_with_suppressed_exceptions(t, y):
    gain = 0.0
    with contextlib.suppress(TypeError):
        gain = [0.0, 9.0][int(2 * t)]
    return gain - y


def digits_of_the_time(t, y):
    return (9.0 if str(t).startswith("0.6") else 0.0) - y


def digits_in_a_format(t, y):
    return (9.0 if f"{t}".startswith("0.6") else 0.0) - y


@pytest.mark.parametrize(
    "function",
    [
        *(table_with_a_default, table_with_any_exception, table_with_suppressed_exceptions),
        *(digits_of_the_time, digits_in_a_format),
    ],
)
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_functions_in_which_symbols_differ_from_numbers_unnoticed_are_not_traced(function):
    """The value of a symbol in an exception handler, or as text, has no relation to that of a number."""
    with pytest.raises(TracingError, match=r"catches exceptions|converts a symbol to text"):
        lv.solve_ivp(function, (0, 1), [1.0], fallback="error")


def test_blocks_that_raise_exceptions_again_and_messages_with_symbols_are_traced():
    def f(t, y):
        if y[0] < -1:
            raise ValueError(f"{y[0]} is negative")
        with np.errstate(divide="ignore"):
            try:
                rate = -y
            finally:
                assert t is not None
            try:
                rate = rate * 1.0
            except TypeError as error:
                raise ValueError("no rate") from error
        return rate

    result = lv.solve_ivp(f, (0, 1), [1.0], fallback="error")
    assert result.compiled and result.y[0, -1] == pytest.approx(np.exp(-1))


def test_symbols_stay_out_of_the_data_of_the_user():
    class State:
        last = None

    log, state = [], State()

    def f(t, y):
        State.last = state.last = y[0]
        log.append(y[0])
        return -y

    with pytest.raises(TracingError, match=r"it changes '(State|state|log)'"):
        lv.solve_ivp(f, (0, 1), [1.0], fallback="error")
    assert State.last is None and state.last is None and log == []


def test_the_user_function_and_its_data_are_not_changed():
    case, log = CASES["rossler"], []
    before = case.fun.__globals__["np"]
    lv.solve_ivp(case.fun, (0, 1), case.y0)
    assert case.fun.__globals__["np"] is before is np
    assert case.fun(0, np.array([1.0, 1, 0])).dtype == float

    def logged(t, y):
        log.append(t)
        return -y

    with pytest.warns(lv.LivensWarning, match="it changes 'log', which is defined outside of it"):
        result = lv.solve_ivp(logged, (0, 1), [1.0])
    assert not result.compiled and all(isinstance(t, float) for t in log)


@pytest.mark.filterwarnings("ignore::livens.LivensWarning")
def test_objects_of_extension_modules_are_not_copied():
    """A copy of a Series without its content crashes the interpreter."""
    pd = pytest.importorskip("pandas")
    series = pd.Series([1.0, 2.0])

    def f(t, y):
        return -series.iloc[1] * y

    assert lv.solve_ivp(f, (0, 1), [1.0]).y[0, -1] == pytest.approx(np.exp(-2))
    series.iloc[1] = 3.0
    assert lv.solve_ivp(f, (0, 1), [1.0]).y[0, -1] == pytest.approx(np.exp(-3))
