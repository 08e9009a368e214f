"""Stale traces of `livens.solve_ivp`: changed attributes and items are used in the next call."""

import abc
import array
import collections
import contextvars
import dataclasses
import decimal
import enum
import functools
import operator
import threading
import types
import weakref

import numpy as np
import pytest
import scipy.interpolate as ip
from changing_values import Cases, assert_changed_value_is_used, end, item_setter, setter

import livens as lv

#: Functions that return a right-hand side and a function that changes a value, by name.
CHANGES = changes = Cases()


# -- classes and objects ---------------------------------------------------------------------------------------------
class Model:
    def __init__(self, rate=-1.0):
        self.value = rate

    def rate(self):
        return self.value

    def __call__(self, t, y):
        return self.rate() * y


@changes
def attribute_of_an_object():
    model = Model()
    return model, setter(model, "value")


@changes
def attribute_of_a_class():
    class Fast(Model):
        value = -1.0

        def __init__(self):
            pass

    return Fast(), setter(Fast, "value")


@changes
def replaced_method_of_a_class():
    class Changed(Model):
        pass

    return Changed(), lambda: setattr(Changed, "rate", lambda self: -2.0)


@changes
def replaced_method_of_a_base_class():
    class Base:
        def rate(self):
            return -1.0

    class Derived(Base):
        pass

    model = Derived()
    return lambda t, y: model.rate() * y, lambda: setattr(Base, "rate", lambda self: -2.0)


@changes
def replaced_method_of_an_object():
    model = Model()
    return model, lambda: setattr(model, "rate", lambda: -2.0)


@changes
def replaced_static_method():
    class Laws:
        @staticmethod
        def rate(y):
            return -y

    return lambda t, y: Laws.rate(y), lambda: setattr(Laws, "rate", staticmethod(lambda y: -2 * y))


@changes
def exchanged_class():
    class Fast(Model):
        def rate(self):
            return -2.0

    model = Model()
    return model, setter(model, "__class__", Fast)


@changes
def second_of_two_objects():
    models = [Model(-0.5), Model(-0.5)]
    return lambda t, y: sum(model.value for model in models) * y, setter(models[1], "value", -1.5)


@changes
def objects_that_refer_to_each_other():
    first, second = Model(), Model()
    first.other, second.other = second, first
    return lambda t, y: first.other.value * y, setter(second, "value")


@changes
def one_object_instead_of_two_equal_ones():
    rows = [[0], [0]]
    return lambda t, y: -(1.0 if rows[0] is not rows[1] else 2.0) * y, lambda: operator.setitem(rows, 1, rows[0])


@changes
def attribute_in_slots():
    class Slotted:
        __slots__ = ("rate",)

        def __call__(self, t, y):
            return self.rate * y

    slotted = Slotted()
    slotted.rate = -1.0
    return slotted, setter(slotted, "rate")


@changes
def dataclass():
    @dataclasses.dataclass
    class Rates:
        rate: float = -1.0

    rates = Rates()
    return lambda t, y: rates.rate * y, setter(rates, "rate")


@changes
def cached_property():
    class Cached(Model):
        rate_once = functools.cached_property(Model.rate)

    model = Cached()

    def change():
        model.value = -2.0
        vars(model).pop("rate_once", None)

    return lambda t, y: model.rate_once * y, change


@changes
def descriptor_with_a_table_of_objects():
    class Descriptor:
        def __init__(self):
            self.values = weakref.WeakKeyDictionary()

        def __get__(self, owner, cls):
            return self.values[owner]

        def __set__(self, owner, value):
            self.values[owner] = value

    class Described:
        rate = Descriptor()

    model = Described()
    model.rate = -1.0
    return lambda t, y: model.rate * y, setter(model, "rate")


@changes
def descriptor_that_reads_a_closure():
    rates = {"rate": -1.0}

    class Descriptor:
        def __get__(self, owner, cls):
            return rates["rate"]

    class Described:
        rate = Descriptor()

    model = Described()
    return lambda t, y: model.rate * y, item_setter(rates, "rate")


@changes
def class_derived_from_property():
    class Derived(property):
        def __get__(self, owner, cls=None):
            return self.rate

    class Described:
        rate = Derived(lambda self: 0.0)

    derived, model = vars(Described)["rate"], Described()
    derived.rate = -1.0
    return lambda t, y: model.rate * y, setter(derived, "rate")


@changes
def attribute_of_a_metaclass():
    class Metaclass(type):
        rate = -1.0

    class WithMetaclass(metaclass=Metaclass):
        @classmethod
        def fun(cls, t, y):
            return cls.rate * y

    return WithMetaclass.fun, setter(Metaclass, "rate")


@changes
def attributes_computed_by_a_metaclass():
    rates = {"rate": -1.0}

    class Metaclass(type):
        def __getattr__(cls, name):
            return rates[name]

    class WithMetaclass(metaclass=Metaclass):
        pass

    return lambda t, y: WithMetaclass.rate * y, item_setter(rates, "rate")


@changes
def virtual_subclass():
    class Abstract(abc.ABC):  # noqa: B024
        pass

    class Fast:
        pass

    fast = Fast()
    return lambda t, y: -(2.0 if isinstance(fast, Abstract) else 1.0) * y, lambda: Abstract.register(Fast)


@changes
def attribute_of_an_enumeration_member():
    class Mode(enum.Enum):
        SLOW = 1

    Mode.SLOW.rate = -1.0
    return lambda t, y: Mode.SLOW.rate * y, setter(Mode.SLOW, "rate")


class Speed(enum.IntEnum):
    SLOW, FAST = 1, 2


@changes
def enumeration_member():
    modes = [Speed.SLOW]
    return lambda t, y: -float(modes[0].value) * y, item_setter(modes, 0, Speed.FAST)


@changes
def context_variable():
    rate = contextvars.ContextVar("rate", default=-1.0)
    return lambda t, y: rate.get() * y, lambda: rate.set(-2.0)


@changes
def thread_local_data():
    local = threading.local()
    local.rate = -1.0
    return lambda t, y: local.rate * y, setter(local, "rate")


@changes
def weak_reference():
    class Referenced:
        rate = -1.0

    model = Referenced()
    reference = weakref.ref(model)
    return lambda t, y: reference().rate * y, setter(model, "rate")


# -- containers and numbers ------------------------------------------------------------------------------------------
class Row(list):
    pass


class Number(float):
    pass


class Doubles(array.array):
    pass


class Queue(collections.deque):
    pass


SEQUENCES = [
    [-1.0],
    Row([-1.0]),
    collections.deque([-1.0]),
    array.array("d", [-1.0]),
    Doubles("d", [-1.0]),
    Queue([-1.0]),
]
SEQUENCES += [np.array([-1.0]), np.array([-1.0], dtype=object), np.ma.array([-1.0]), np.full(200_000, -1.0)]
SEQUENCES += [memoryview(array.array("d", [-1.0])), collections.UserList([-1.0])]
MAPPINGS = [collections.OrderedDict, collections.Counter, collections.UserDict, collections.ChainMap, dict]


@pytest.mark.parametrize("row", SEQUENCES, ids=lambda row: type(row).__name__)
def test_changed_items_of_sequences_are_used(row):
    row[0] = -1.0
    assert end(lambda t, y: float(row[0]) * y) == pytest.approx(np.exp(-1))
    row[0] = -2.0
    assert end(lambda t, y: float(row[0]) * y) == pytest.approx(np.exp(-2))


@pytest.mark.parametrize("mapping", MAPPINGS, ids=lambda mapping: mapping.__name__)
def test_changed_items_of_mappings_are_used(mapping):
    rates = mapping({"a": -1})
    assert end(lambda t, y: rates["a"] * y) == pytest.approx(np.exp(-1))
    rates["a"] = -2
    assert end(lambda t, y: rates["a"] * y) == pytest.approx(np.exp(-2))


@changes
def array_of_size_one():
    rate = np.array(-1.0)
    return lambda t, y: rate * y, item_setter(rate, ())


@changes
def array_behind_a_view():
    table = np.full((3, 3), -1.0)
    view = table[1:, 1:]
    return lambda t, y: view[0, 0] * y, item_setter(table, (1, 1))


@changes
def field_of_a_structured_number():
    record = np.array([(-1.0,)], dtype=[("rate", "f8")])[0]
    return lambda t, y: float(record["rate"]) * y, item_setter(record, "rate")


@changes
def names_of_fields():
    tables = [np.array([(-1.0, -2.0)], dtype=[("a", "f8"), ("b", "f8")])]
    other = np.array([(-1.0, -2.0)], dtype=[("b", "f8"), ("a", "f8")])
    return lambda t, y: tables[0]["a"][0] * y, item_setter(tables, 0, other)


@changes
def bytes_that_change():
    rates = bytearray([1])
    return lambda t, y: -rates[0] * y, item_setter(rates, 0, 2)


@changes
def number_of_another_type():
    rates = {"rate": True}
    return lambda t, y: -(1.0 if rates["rate"] is True else 2.0) * y, item_setter(rates, "rate", 1)


@changes
def attribute_of_a_number():
    number = Number(0.0)
    number.rate = -1.0
    return lambda t, y: number.rate * y, setter(number, "rate")


@changes
def decimal_number():
    rates = {"rate": decimal.Decimal(-1)}
    return lambda t, y: float(rates["rate"]) * y, item_setter(rates, "rate", decimal.Decimal(-2))


@changes
def view_of_a_dictionary():
    rates = {"rate": -1.0}
    view = types.MappingProxyType(rates)
    return lambda t, y: view["rate"] * y, item_setter(rates, "rate")


@changes
def coefficients_of_a_spline():
    spline = ip.CubicSpline(np.linspace(0, 3, 4), np.full(4, -1.0))
    return lambda t, y: spline(t) * y, lambda: operator.setitem(spline.c, -1, -2.0)


@changes
def coefficients_of_piecewise_polynomials():
    polynomial = ip.PPoly(np.array([[-1.0]]), [0, 3.0])
    return lambda t, y: polynomial(t) * y, lambda: operator.setitem(polynomial.c, -1, -2.0)


@changes
def coefficients_of_a_polynomial():
    polynomial = np.poly1d([-1.0])
    return lambda t, y: polynomial(t) * y, lambda: operator.setitem(polynomial.coeffs, 0, -2.0)


@pytest.mark.filterwarnings("ignore::livens.LivensWarning")
@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_value_is_used(name):
    assert_changed_value_is_used(CHANGES[name])


def test_an_instance_of_a_class_with_static_methods_is_still_one():
    class Checked(Model):
        @staticmethod
        def scaled(y):
            return -y

        def __call__(self, t, y):
            return Checked.scaled(y) if isinstance(self, Checked) else 0 * y

    solution = lv.solve_ivp(Checked(), (0, 1), [1.0])
    assert solution.compiled and solution.y[0, -1] == pytest.approx(np.exp(-1))
