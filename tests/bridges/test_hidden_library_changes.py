"""Stale traces of `livens.solve_ivp`: changes in libraries without effect at the initial state."""

import builtins
import collections
import collections.abc
import dataclasses
import decimal
import importlib.machinery
import sys
import types
from builtins import vars as contents

import numpy as np
import pytest
import scipy.integrate as si
from changing_values import Cases, assert_changed_value_is_used, executed, item_setter, linear, setter

from livens.expressions.function_key import function_key, value_key

#: Functions that return a right-hand side and a function that changes the gain from 0 to 2, by name.
CHANGES = changes = Cases()
#: A module that counts as a part of NumPy.
LIBRARY = "numpy.livens_test_library"
_LIBRARY_TEXT = """
import contextvars, functools, itertools, types
gain, gains, table = 0.0, [0.0], {"gain": 0.0}
settings, variable = types.SimpleNamespace(gain=0.0), contextvars.ContextVar("gain", default=0.0)
class Settings:
    gain = 0.0
class Law:
    def __call__(self):
        return gain
instance, law = Settings(), Law()
def helper():
    return 0.0
def global_gain():
    return gain
def first_gain():
    return gains[0]
def gain_of_a_table():
    return table["gain"]
def gain_of_a_namespace():
    return settings.gain
def gain_of_an_instance():
    return instance.gain
def gain_of_a_class():
    return Settings.gain
def gain_of_a_context():
    return variable.get()
def gain_of_a_helper():
    return helper()
def gain_of_a_helper_of_a_helper():
    return gain_of_a_helper()
def default_gain(value=0.0):
    return value
def keyword_gain(*, value=0.0):
    return value
def own_gain():
    return own_gain.gain
own_gain.gain = 0.0
@functools.lru_cache
def cached_gain():
    return gain
def gain_of_a_cache():
    return cached_gain()
def gain_by_name():
    return globals()["gain"]
def imported_gain():
    from numpy.livens_test_library import gain
    return gain
def gain_of_builtins():
    return len("")
"""


def library():
    return sys.modules[LIBRARY]


@pytest.fixture(autouse=True)
def changeable_libraries(monkeypatch, tmp_path):
    """Attributes of libraries that the cases change, restored after every test."""
    module = types.ModuleType(LIBRARY)
    module.__spec__, module.path = importlib.machinery.ModuleSpec(LIBRARY, None), tmp_path / "gain"
    exec(_LIBRARY_TEXT, vars(module))
    monkeypatch.setitem(sys.modules, LIBRARY, module)
    for owner, name in ((np, "livens_gain"), (np.sum, "livens_gain"), (si.quad, "livens_gain")):
        monkeypatch.setattr(owner, name, 0.0, raising=False)
    monkeypatch.setattr(np, "livens_library", module, raising=False)
    for owner, name in (
        (np._core.numeric, "multiply"),
        (collections.abc.Mapping, "get"),
        (collections.UserDict, "__contains__"),
        (np, "__getattr__"),
        (builtins, "__import__"),
    ):
        monkeypatch.setattr(owner, name, getattr(owner, name))


# -- private state of library functions ------------------------------------------------------------------------------
@changes
def global_name_of_a_library_function():
    return linear(library().global_gain), setter(library(), "gain", 2.0)


@changes
def list_of_a_library_function():
    return linear(library().first_gain), item_setter(library().gains, 0, 2.0)


@changes
def replaced_list_of_a_library_function():
    return linear(library().first_gain), setter(library(), "gains", [2.0])


@changes
def dictionary_of_a_library_function():
    return linear(library().gain_of_a_table), item_setter(library().table, "gain", 2.0)


@changes
def namespace_of_a_library_function():
    return linear(library().gain_of_a_namespace), setter(library().settings, "gain", 2.0)


@changes
def object_of_a_library_function():
    return linear(library().gain_of_an_instance), setter(library().instance, "gain", 2.0)


@changes
def class_of_a_library_function():
    return linear(library().gain_of_a_class), setter(library().Settings, "gain", 2.0)


@changes
def class_of_an_object_of_a_library_function():
    return linear(library().gain_of_an_instance), setter(library().Settings, "gain", 2.0)


@changes
def context_variable_of_a_library_function():
    return linear(library().gain_of_a_context), lambda: library().variable.set(2.0)


@changes
def helper_of_a_library_function():
    return linear(library().gain_of_a_helper), setter(library(), "helper", lambda: 2.0)


@changes
def code_of_a_helper_of_a_helper_of_a_library_function():
    code = (lambda: 2.0).__code__
    return linear(library().gain_of_a_helper_of_a_helper), lambda: setattr(library().helper, "__code__", code)


@changes
def code_of_a_library_function():
    code = (lambda: 2.0).__code__
    return linear(library().helper), lambda: setattr(library().helper, "__code__", code)


@changes
def default_argument_of_a_library_function():
    return linear(library().default_gain), setter(library().default_gain, "__defaults__", (2.0,))


@changes
def keyword_argument_of_a_library_function():
    return linear(library().keyword_gain), item_setter(library().keyword_gain.__kwdefaults__, "value", 2.0)


@changes
def attribute_of_a_library_function():
    return linear(library().own_gain), setter(library().own_gain, "gain", 2.0)


@changes
def cache_of_a_library_function():
    library().cached_gain()

    def change():
        library().gain = 2.0
        library().cached_gain.cache_clear()

    return linear(library().gain_of_a_cache), change


@changes
def global_name_of_a_library_function_by_its_text():
    return linear(library().gain_by_name), setter(library(), "gain", 2.0)


@changes
def name_that_a_library_function_imports():
    return linear(library().imported_gain), setter(library(), "gain", 2.0)


@changes
def built_in_function_that_a_library_module_replaces():
    return linear(library().gain_of_builtins), setter(library(), "len", lambda text: 2.0)


@changes
def method_of_an_object_of_a_library():
    return linear(library().law), setter(library(), "gain", 2.0)


@changes
def code_of_a_method_of_a_library_class():
    code = (lambda self: 2.0).__code__
    return linear(library().law), lambda: setattr(library().Law.__call__, "__code__", code)


@changes
def library_module_as_attribute_of_a_library():
    return lambda t, y: -(1 + np.livens_library.global_gain() * t) * y, setter(library(), "gain", 2.0)


@changes
def private_name_in_numpy():
    multiply = np.multiply
    changed = lambda a, b, out=None: multiply(a, b) + 2 * a  # noqa: E731
    return lambda t, y: -(1 + np.outer(t, 0.0)[0, 0]) * y, setter(np._core.numeric, "multiply", changed)


@changes
def attribute_of_a_function_of_numpy():
    return lambda t, y: -(1 + np.sum.livens_gain * t) * y, setter(np.sum, "livens_gain", 2.0)


@changes
def attribute_of_a_function_of_scipy():
    return lambda t, y: -(1 + si.quad.livens_gain * t) * y, setter(si.quad, "livens_gain", 2.0)


@changes
def method_of_a_base_class_in_a_library():
    gains = collections.UserDict(gain=0.0)
    owner = collections.UserDict if "get" in vars(collections.UserDict) else collections.abc.Mapping
    return lambda t, y: -(1 + gains.get("gain") * t) * y, setter(owner, "get", lambda self, key: 2.0)


@changes
def virtual_subclass_of_a_class_in_a_library():
    class Gain:
        pass

    gain = Gain()

    def f(t, y):
        return -(1 + (2 * t if isinstance(gain, collections.abc.Mapping) else 0)) * y

    return f, lambda: collections.abc.Mapping.register(Gain)


@changes
def error_settings_of_numpy():
    def change():
        np.seterr(over="ignore")

    np.seterr(over="warn")
    return lambda t, y: -(1 + (2 * t if np.geterr()["over"] == "ignore" else 0)) * y, change


@changes
def error_settings_of_numpy_that_a_quotient_of_constants_meets():
    zero = np.float64(0.0)

    def gain():
        try:
            return 0.0 * np.isfinite(1.0 / zero)
        except FloatingPointError:
            return 2.0

    np.seterr(divide="ignore")
    return linear(gain), lambda: np.seterr(divide="raise")


@changes
def print_settings_of_numpy():
    np.set_printoptions(precision=8)
    return lambda t, y: -(1 + (8 - np.get_printoptions()["precision"]) * t) * y, lambda: np.set_printoptions(
        precision=6
    )


# -- names that code does not contain ----------------------------------------------------------------------------------
@changes
def alias_of_getattr():
    read, name = getattr, "livens_" + "gain"
    return lambda t, y: -(1 + read(np, name) * t) * y, setter(np, "livens_gain", 2.0)


@changes
def alias_of_vars():
    return lambda t, y: -(1 + contents(np)["livens_gain"] * t) * y, setter(np, "livens_gain", 2.0)


@changes
def attribute_in_a_format():
    template = "{0.livens_gain}"
    return lambda t, y: -(1 + float(template.format(np)) * t) * y, setter(np, "livens_gain", 2.0)


@changes
def attribute_in_a_pattern():
    module_type = types.ModuleType

    def f(t, y):
        match np:
            case module_type(livens_gain=gain):
                return -(1 + gain * t) * y

    return f, setter(np, "livens_gain", 2.0)


@changes
def attribute_of_a_module_computed_by_a_function():
    gains = [0.0]
    np.__getattr__ = lambda name: gains[0]
    return lambda t, y: -(1 + np.livens_missing_gain * t) * y, item_setter(gains, 0, 2.0)


@changes
def module_with_a_property():
    class Module(types.ModuleType):
        @property
        def gain(self):
            return np.livens_gain

    module = Module("numpy.livens_test_property")
    return lambda t, y: -(1 + module.gain * t) * y, setter(np, "livens_gain", 2.0)


@changes
def import_function():
    module, other = types.ModuleType("numpy"), types.ModuleType("numpy")
    module.livens_gain, other.livens_gain = 0.0, 2.0
    plain, results = builtins.__import__, [module]

    def replaced(name, globals_=None, *more):  # CasADi imports NumPy, too
        is_own = name == "numpy" and (globals_ or {}).get("__name__") == __name__
        return results[0] if is_own else plain(name, globals_, *more)

    builtins.__import__ = replaced

    def f(t, y):
        import numpy

        return -(1 + numpy.livens_gain * t) * y

    return f, item_setter(results, 0, other)


@changes
def documentation_of_the_function():
    def f(t, y):
        """0"""
        return -(1 + float(f.__doc__) * t) * y

    return f, setter(f, "__doc__", "2")


@changes
def name_of_the_function():
    def f(t, y):
        return -(1 + (2 * t if f.__name__ == "changed" else 0)) * y

    return f, setter(f, "__name__", "changed")


@changes
def annotation_of_the_function():
    def f(t, y: 0.0):
        return -(1 + f.__annotations__["y"] * t) * y

    return f, item_setter(f.__annotations__, "y", 2.0)


@changes
def documentation_of_a_class():
    class Model:
        """0"""

        def __call__(self, t, y):
            return -(1 + float(self.__doc__) * t) * y

    return Model(), setter(Model, "__doc__", "2")


@changes
def metadata_of_a_field():
    @dataclasses.dataclass
    class Model:
        gain: float = dataclasses.field(default=0.0, metadata={})

        def __call__(self, t, y):
            return -(1 + self.__dataclass_fields__["gain"].default * t) * y

    return Model(), setter(Model.__dataclass_fields__["gain"], "default", 2.0)


@changes
def names_of_the_caller():
    scope = executed(
        "import sys\ngain = 0.0\ndef read():\n    return sys._getframe(1).f_globals['gain']\n"
        "def f(t, y):\n    return -(1 + read() * t) * y"
    )
    return scope["f"], lambda: scope.update(gain=2.0)


@pytest.mark.filterwarnings("ignore::livens.LivensWarning")
@pytest.mark.parametrize("name", CHANGES)
def test_a_change_in_a_library_is_used(name):
    settings, options = np.geterr(), np.get_printoptions()
    try:
        with decimal.localcontext():
            assert_changed_value_is_used(CHANGES[name])
    finally:
        np.seterr(**settings)
        np.set_printoptions(**options)


def test_elements_of_functions_with_changed_library_functions_are_not_shared():
    def potential(q):
        return np.livens_library.global_gain() * q[0]

    key = function_key({"potential": potential})
    library().gain = 2.0
    assert key is not None and key != function_key({"potential": potential})


def test_traces_of_functions_of_numpy_are_cached():
    names = "sum dot outer cross roll linspace hstack concatenate clip interp mean diff max where zeros_like".split()
    for function in [
        *(getattr(np, name) for name in names),
        np.linalg.norm,
        np.linalg.solve,
        np.linalg.inv,
        type(np.r_),
    ]:
        key = value_key(function)
        assert key is not None and key == value_key(function)
