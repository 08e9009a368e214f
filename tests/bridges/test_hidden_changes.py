"""Stale traces of `livens.solve_ivp`: changes without effect at the initial state, in values that are hard to read."""

import abc
import array
import collections
import collections.abc
import ctypes
import decimal
import functools
import io
import itertools
import logging
import os
import pathlib
import queue
import random
import sqlite3
import sys
import threading
import types
import weakref

import numpy as np
import pytest
import scipy.interpolate as ip
from changing_values import Cases, assert_changed_value_is_used, item_setter, linear, setter

#: Functions that return a right-hand side and a function that changes the gain from 0 to 2, by name.
CHANGES = changes = Cases()


@pytest.fixture(autouse=True)
def changeable_values(monkeypatch, tmp_path):
    """Values that the cases change, restored after every test."""
    monkeypatch.setattr(sys, "livens_gain", 0.0, raising=False)
    monkeypatch.setenv("LIVENS_GAIN", "0")
    monkeypatch.setenv("LIVENS_PATH", str(tmp_path / "gain"))
    with decimal.localcontext():
        yield


# -- arrays ----------------------------------------------------------------------------------------------------------
@changes
def metadata_of_a_type_of_numbers():
    tables = [np.zeros(1, dtype=np.dtype("f8", metadata={"gain": 0.0}))]
    other = np.zeros(1, dtype=np.dtype("f8", metadata={"gain": 2.0}))
    return lambda t, y: -(1 + tables[0].dtype.metadata["gain"] * t) * y, item_setter(tables, 0, other)


@changes
def flags_of_an_array():
    table = np.zeros(1)
    return lambda t, y: -(1 + (0 if table.flags.writeable else 2 * t)) * y, lambda: table.setflags(write=False)


@changes
def entry_of_a_large_array():
    table = np.zeros(200_000)
    return lambda t, y: -(1 + table[-1] * t) * y, item_setter(table, -1, 2.0)


@changes
def array_that_numpy_does_not_own():
    values = array.array("d", [0.0])
    table = np.frombuffer(values)
    return lambda t, y: -(1 + table[0] * t) * y, item_setter(values, 0, 2.0)


@changes
def interpolant_with_changed_coefficients():
    spline = ip.CubicSpline([0, 1, 2, 3.0], np.zeros(4))
    return lambda t, y: -(1 + spline(t)) * y, lambda: operator_iadd(spline.c, -2, 2.0)


def operator_iadd(coefficients, row, value):
    coefficients[row] += value
    coefficients[-1] += value * np.arange(coefficients.shape[1])


# -- objects of extension modules and of the system --------------------------------------------------------------------
@changes
def number_of_c():
    gain = ctypes.c_double(0.0)
    return lambda t, y: -(1 + gain.value * t) * y, setter(gain, "value", 2.0)


@changes
def database():
    connection = sqlite3.connect(":memory:")
    connection.execute("create table gains (gain real)")
    connection.execute("insert into gains values (0)")

    def f(t, y):
        return -(1 + connection.execute("select gain from gains").fetchone()[0] * t) * y

    weakref.finalize(f, connection.close)  # Python 3.13 warns of open connections
    return f, lambda: connection.execute("update gains set gain = 2")


@changes
def text_stream():
    stream = io.StringIO("0")
    return lambda t, y: -(1 + float(stream.getvalue()) * t) * y, lambda: (stream.seek(0), stream.write("2"))


@changes
def flag_of_threads():
    flag = threading.Event()
    return lambda t, y: -(1 + (2 * t if flag.is_set() else 0)) * y, flag.set


@changes
def length_of_a_queue():
    items = queue.Queue()
    return lambda t, y: -(1 + 2 * items.qsize() * t) * y, lambda: items.put(None)


@changes
def state_of_a_random_generator():
    generator = np.random.default_rng(0)
    before = generator.bit_generator.state["state"]["state"]

    def f(t, y):
        return -(1 + (0 if generator.bit_generator.state["state"]["state"] == before else 2 * t)) * y

    return f, generator.normal


@changes
def global_random_state():
    random.seed(0)
    before = random.getstate()
    return lambda t, y: -(1 + (0 if random.getstate() == before else 2 * t)) * y, random.random


@changes
def environment_variable():
    return lambda t, y: -(1 + float(os.environ["LIVENS_GAIN"]) * t) * y, item_setter(os.environ, "LIVENS_GAIN", "2")


@changes
def attribute_of_the_interpreter():
    return lambda t, y: -(1 + sys.livens_gain * t) * y, setter(sys, "livens_gain", 2.0)


@changes
def file_read_by_an_alias():
    path, read = pathlib.Path(os.environ["LIVENS_PATH"]), np.loadtxt
    path.write_text("0")
    name = str(path)
    return lambda t, y: -(1 + float(read(name)) * t) * y, lambda: path.write_text("2")


@changes
def file_opened_by_an_alias():
    path, read = pathlib.Path(os.environ["LIVENS_PATH"]), open
    path.write_text("0")

    def f(t, y):
        with read(path) as stream:
            return -(1 + float(next(iter(stream))) * t) * y

    return f, lambda: path.write_text("2")


@changes
def precision_of_decimal_numbers():
    decimal.getcontext().prec = 28
    return lambda t, y: -(1 + (28 - decimal.getcontext().prec) * t) * y, lambda: setattr(
        decimal.getcontext(), "prec", 26
    )


@changes
def level_of_a_logger():
    logger = logging.getLogger("livens_test")
    logger.setLevel(10)
    return lambda t, y: -(1 + (logger.level - 10) * t) * y, lambda: logger.setLevel(12)


@changes
def local_variable_of_a_generator():
    def generate(gain):
        while True:
            gain = yield gain

    generator = generate(0.0)
    next(generator)
    return lambda t, y: -(1 + generator.gi_frame.f_locals["gain"] * t) * y, lambda: generator.send(2.0)


# -- objects -----------------------------------------------------------------------------------------------------------
@changes
def attributes_computed_by_a_method():
    gains = {"gain": 0.0}

    class Model:
        def __getattr__(self, name):
            return gains[name]

    model = Model()
    return lambda t, y: -(1 + model.gain * t) * y, item_setter(gains, "gain", 2.0)


@changes
def object_behind_a_weak_proxy():
    class Model:
        gain = 0.0

    model = Model()
    proxy = weakref.proxy(model)
    return lambda t, y: -(1 + proxy.gain * t) * y, setter(model, "gain", 2.0)


@changes
def argument_of_a_partial_class():
    class Gain(functools.partial):
        pass

    gains = [0.0]
    return linear(Gain(lambda: gains[0])), item_setter(gains, 0, 2.0)


@changes
def replaced_bound_method():
    class Model:
        def gain(self):
            return 0.0

    model = Model()
    return linear(lambda: model.gain()), lambda: setattr(model, "gain", types.MethodType(lambda self: 2.0, model))


@changes
def abstract_class():
    class Base(abc.ABC):
        @abc.abstractmethod
        def gain(self): ...

    class Model(Base):
        def gain(self):
            return 0.0

    model = Model()
    return linear(lambda: model.gain()), setter(Model, "gain", lambda self: 2.0)


@changes
def identity_of_an_object():
    objects = [[], []]
    known = id(objects[0])
    return lambda t, y: -(1 + (0 if id(objects[0]) == known else 2 * t)) * y, objects.reverse


@changes
def item_of_an_iterable_that_is_read_in_part():
    rows = collections.deque([0.0, 1.0])
    return lambda t, y: -(1 + next(itertools.islice(rows, 0, None)) * t) * y, item_setter(rows, 0, 2.0)


# -- switches: the changed value is used below a state -----------------------------------------------------------------
@changes
def value_behind_a_branch():
    gains = types.SimpleNamespace(rate=-1.0)

    def f(t, y):
        if y[0] > 1 - 1e-9:
            return -y
        return gains.rate * y

    return f, setter(gains, "rate")


@changes
def hidden_value_behind_a_branch():
    rate = ctypes.c_double(-1.0)
    return lambda t, y: (-1.0 if t < 1e-12 else rate.value) * y, setter(rate, "value", -2.0)


@pytest.mark.filterwarnings("ignore::livens.LivensWarning")
@pytest.mark.parametrize("name", CHANGES)
def test_a_change_without_effect_at_the_initial_state_is_used(name):
    assert_changed_value_is_used(CHANGES[name])
