"""Stale traces of `livens.solve_ivp`: changed values in libraries, modules and functions are used in the next call."""

import builtins
import collections
import functools
import importlib
import math
import operator
import sys
import types

import numpy as np
import pytest
import scipy.integrate as si
from changing_values import Cases, assert_changed_value_is_used, end, executed, item_setter, setter

import livens as lv
from livens.expressions.function_key import function_key

#: Functions that return a right-hand side and a function that changes a value, by name.
CHANGES = changes = Cases()


@changes
def attribute_of_a_library_imported_in_the_function():
    def f(t, y):
        import numpy

        return numpy.livens_rate * y

    return f, setter(np, "livens_rate")


@changes
def name_imported_from_a_library_in_the_function():
    def f(t, y):
        from numpy import livens_rate

        return livens_rate * y

    return f, setter(np, "livens_rate")


@changes
def name_imported_from_a_submodule_in_the_function():
    def f(t, y):
        from numpy.linalg import livens_rate

        return livens_rate * y

    return f, setter(np.linalg, "livens_rate")


@changes
def library_in_a_closure():
    def make(xp):
        return lambda t, y: xp.livens_rate * y

    return make(np), setter(np, "livens_rate")


@changes
def library_as_default_argument():
    return lambda t, y, xp=np: xp.livens_rate * y, setter(np, "livens_rate")


@changes
def library_as_attribute():
    class Model:
        def __init__(self):
            self.xp = np

        def __call__(self, t, y):
            return self.xp.livens_rate * y

    return Model(), setter(np, "livens_rate")


@changes
def library_in_a_container():
    libraries = {"xp": [np]}
    return lambda t, y: libraries["xp"][0].livens_rate * y, setter(np, "livens_rate")


@changes
def library_as_argument_of_a_helper():
    def helper(xp, y):
        return xp.livens_rate * y

    return lambda t, y: helper(np, y), setter(np, "livens_rate")


@changes
def submodule_of_a_library():
    return lambda t, y: np.linalg.livens_rate * y, setter(np.linalg, "livens_rate")


@changes
def attribute_by_name():
    return lambda t, y: getattr(np, "livens_rate") * y, setter(np, "livens_rate")  # noqa: B009


@changes
def attribute_by_computed_name():
    return lambda t, y: getattr(np, "_".join(["livens", "rate"])) * y, setter(np, "livens_rate")


@changes
def attribute_by_operator():
    rate = operator.attrgetter("livens_rate")
    return lambda t, y: rate(np) * y, setter(np, "livens_rate")


@changes
def attribute_by_the_dictionary_of_a_module():
    return lambda t, y: np.__dict__["livens_rate"] * y, setter(np, "livens_rate")


@changes
def module_imported_by_name():
    return lambda t, y: __import__("numpy").livens_rate * y, setter(np, "livens_rate")


@changes
def module_imported_by_importlib():
    return lambda t, y: importlib.import_module("numpy").livens_rate * y, setter(np, "livens_rate")


@changes
def object_set_in_a_library():
    np.livens_object = types.SimpleNamespace(rate=-1.0)
    return lambda t, y: np.livens_object.rate * y, setter(np.livens_object, "rate")


@changes
def function_set_in_a_library_that_reads_a_value_there():
    np.livens_function = lambda y: np.livens_rate * y
    return lambda t, y: np.livens_function(y), setter(np, "livens_rate")


@changes
def library_function_exchanged_for_another():
    np.livens_function = math.floor
    return lambda t, y: -np.livens_function(1.5) * y, lambda: setattr(np, "livens_function", math.ceil)


@changes
def replaced_function_of_numpy():
    np.tan = lambda y: -y
    return lambda t, y: np.tan(y), lambda: setattr(np, "tan", lambda y: -2 * y)


@changes
def replaced_constant():
    math.tau = 1.0
    return lambda t, y: -math.tau * y, lambda: setattr(math, "tau", 2.0)


@changes
def name_in_builtins():
    builtins.livens_rate = -1.0
    return executed("def f(t, y):\n    return livens_rate * y")["f"], setter(builtins, "livens_rate")


@changes
def replaced_method_of_a_library_class():
    rates = collections.UserDict(rate=-1.0)

    def change():
        collections.UserDict.__getitem__ = lambda self, key: -2.0

    return lambda t, y: rates["rate"] * y, change


# -- modules and names of the user -----------------------------------------------------------------------------------
@changes
def global_name():
    scope = executed("rate = -1.0\ndef f(t, y):\n    return rate * y")
    return scope["f"], lambda: scope.update(rate=-2.0)


@changes
def helper_function():
    scope = executed("def g(y):\n    return -y\ndef f(t, y):\n    return g(y)")
    return scope["f"], lambda: exec("def g(y):\n    return -2 * y", scope)


@changes
def globals_by_name():
    scope = executed("rate = -1.0\ndef f(t, y):\n    return globals()['rate'] * y")
    return scope["f"], lambda: scope.update(rate=-2.0)


@changes
def evaluated_text():
    scope = executed("rate = -1.0\ndef f(t, y):\n    return eval('rate') * y")
    return scope["f"], lambda: scope.update(rate=-2.0)


@changes
def name_in_other_builtins():
    names = {"rate": -1.0}
    return executed("def f(t, y):\n    return rate * y", __builtins__=names)["f"], lambda: names.update(rate=-2.0)


@changes
def module_imported_in_the_function():
    module = sys.modules["livens_test_rates"]

    def f(t, y):
        import livens_test_rates

        return livens_test_rates.rate * y

    return f, setter(module, "rate")


@changes
def reloaded_module():
    module = sys.modules["livens_test_rates"]
    text = "rate = %s\ndef f(t, y):\n    return rate * y"
    exec(text % -1.0, vars(module))
    return lambda t, y: module.f(t, y), lambda: exec(text % -2.0, vars(module))


@changes
def function_with_the_module_name_of_a_library():
    module = sys.modules["numpy.livens_test_rates"]
    exec("rate = -1.0\ndef f(t, y):\n    return rate * y", vars(module))
    return module.f, setter(module, "rate")


@changes
def file():
    path = sys.modules["livens_test_rates"].path
    path.write_text("-1.0")
    name = str(path)
    return lambda t, y: float(np.loadtxt(name)) * y, lambda: path.write_text("-2.0")


# -- functions -------------------------------------------------------------------------------------------------------
@changes
def closure():
    rate = -1.0

    def change():
        nonlocal rate
        rate = -2.0

    return lambda t, y: rate * y, change


@changes
def closure_of_a_closure():
    rates = [-1.0]

    def outer():
        return lambda: rates[0]

    inner = outer()
    return lambda t, y: inner() * y, item_setter(rates, 0)


@changes
def generator_over_a_closure():
    rates = [-1.0]

    def values():
        yield rates[0]

    return lambda t, y: sum(values()) * y, item_setter(rates, 0)


@changes
def default_argument():
    def f(t, y, rate=-1.0):
        return rate * y

    return f, lambda: setattr(f, "__defaults__", (-2.0,))


@changes
def mutable_default_argument():
    rates = [-1.0]
    return lambda t, y, rates=rates: rates[0] * y, item_setter(rates, 0)


@changes
def default_of_a_keyword_argument():
    def f(t, y, *, rate=-1.0):
        return rate * y

    return f, lambda: f.__kwdefaults__.update(rate=-2.0)


@changes
def attribute_of_the_function():
    def f(t, y):
        return f.rate * y

    f.rate = -1.0
    return f, setter(f, "rate")


@changes
def exchanged_code():
    def slow(y):
        return -y

    return lambda t, y: slow(y), lambda: setattr(slow, "__code__", (lambda y: -2 * y).__code__)


@changes
def argument_of_a_partial_function():
    rates = {"rate": -1.0}
    return functools.partial(lambda rates, t, y: rates["rate"] * y, rates), item_setter(rates, "rate")


@changes
def class_derived_from_partial():
    class Partial(functools.partial):
        def __call__(self, t, y):
            return self.rate * y

    f = Partial(lambda t, y: 0 * y)
    f.rate = -1.0
    return f, setter(f, "rate")


@changes
def object_with_an_attribute_of_numba():
    class Wrapper:
        py_func, rate = staticmethod(lambda t, y: 0 * y), -1.0

        def __call__(self, t, y):
            return self.rate * y

    return Wrapper(), setter(Wrapper, "rate")


@changes
def cleared_cache():
    rates = {"rate": -1.0}
    rate = functools.lru_cache(lambda: rates["rate"])
    rate()
    rates["rate"] = -2.0
    return lambda t, y: rate() * y, rate.cache_clear


@changes
def dispatched_function():
    @functools.singledispatch
    def rate(x):
        return -1.0

    return lambda t, y: rate(1) * y, lambda: rate.register(int)(lambda x: -2.0)


@changes
def universal_function_made_of_a_python_function():
    rates = [-1.0]
    scaled = np.frompyfunc(lambda y: rates[0] * y, 1, 1)
    return lambda t, y: scaled(y), item_setter(rates, 0)


@changes
def vectorized_function():
    rates = [-1.0]
    scaled = np.vectorize(lambda y: rates[0] * y)
    return lambda t, y: scaled(y), item_setter(rates, 0)


@changes
def method_of_a_list():
    rates = [-1.0]
    item = rates.__getitem__
    return lambda t, y: item(0) * y, item_setter(rates, 0)


@changes
def list_of_functions():
    functions = [lambda y: -y]
    return lambda t, y: functions[0](y), item_setter(functions, 0, lambda y: -2 * y)


# -- tests -------------------------------------------------------------------------------------------------------------
@pytest.fixture(autouse=True)
def changeable_libraries(monkeypatch, tmp_path):
    """Attributes of libraries and modules that the cases change, restored after every test."""
    for module, name in ((np, "livens_rate"), (np.linalg, "livens_rate"), (builtins, "livens_rate")):
        monkeypatch.setattr(module, name, -1.0, raising=False)
    for name in ("livens_object", "livens_function"):
        monkeypatch.setattr(np, name, None, raising=False)
    for owner, name in ((np, "tan"), (math, "tau"), (collections.UserDict, "__getitem__")):
        monkeypatch.setattr(owner, name, getattr(owner, name))
    for name in ("livens_test_rates", "numpy.livens_test_rates"):
        module = types.ModuleType(name)
        module.rate, module.path = -1.0, tmp_path / "rate"
        monkeypatch.setitem(sys.modules, name, module)


@pytest.mark.filterwarnings("ignore::livens.LivensWarning")
@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_value_is_used(name):
    assert_changed_value_is_used(CHANGES[name])


def test_a_cached_trace_is_compared_with_the_function():
    numbers = {"rate": -1.0}
    hidden = type("Hidden", (np.ndarray,), {"rate": property(lambda self: numbers["rate"])})
    table = np.zeros(1).view(hidden)
    assert end(lambda t, y: table.rate * y) == pytest.approx(np.exp(-1))
    numbers["rate"] = -2.0
    assert end(lambda t, y: table.rate * y) == pytest.approx(np.exp(-2))


def test_elements_of_functions_with_changed_libraries_are_not_shared(monkeypatch):
    def potential(q):
        return np.livens_rate * q[0]

    def imported(q):
        import livens_test_rates

        return livens_test_rates.rate * q[0]

    keys = function_key({"potential": potential})
    monkeypatch.setattr(np, "livens_rate", -2.0)
    assert keys is not None and keys != function_key({"potential": potential})
    assert function_key({"potential": imported}) is None


def test_other_arguments_need_no_compilation():
    from livens.engine.codegen import jit

    def fun(t, y, mu):
        return [y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]]

    solve = functools.partial(lv.solve_ivp, fun, (0, 5), [2, 0], rtol=1e-8, atol=1e-11)
    solve(args=(1.0,))
    before = jit.compilations
    for mu in (0.5, 1.5, 2.5):
        expected = si.solve_ivp(fun, (0, 5), [2, 0], args=(mu,), rtol=1e-10, atol=1e-12).y[:, -1]
        np.testing.assert_allclose(solve(args=(mu,)).y[:, -1], expected, atol=1e-6)
    assert jit.compilations == before
