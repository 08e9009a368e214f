"""One way to call a user's function: by the names of its arguments, and with its fault named."""

import functools

import casadi as ca
import pytest

import livens as lv
from livens.expressions.parameters import ParameterNamespace
from livens.expressions.tracing import FunctionTracer, argument_names

x, t = ca.SX.sym("x", 2), ca.SX.sym("t")


def reader(**options):
    return FunctionTracer({"x": x, "t": t, "k": ParameterNamespace({"c": 3.0})}, **options)


def value(expression):
    return ca.Function("f", [x, t], [expression])([2.0, 5.0], 7.0)


def test_functions_get_what_they_name_in_any_order():
    for function in (
        lambda x, t, k: k.c * x[0] + t,
        lambda k, t, x: k.c * x[0] + t,
        lambda t, x, factor=3.0, **k: factor * x[0] + t,
        lambda *, x, t, k: k.c * x[0] + t,
        functools.partial(lambda c, x, t: c * x[0] + t, 3.0),
    ):
        assert float(value(reader()("energy", function, ()))) == 13.0


def test_a_default_of_ones_own_stays_what_it_is():
    """An argument with a default between those that are asked for is no place to put a symbol."""
    functions = [lambda x, i=i, k=None: k.c * x[i] for i in range(2)]
    assert [float(value(reader()("energy", f, ()))) for f in functions] == [6.0, 15.0]


def test_arguments_by_place():
    def place(x, /, k):
        return k.c * x[1]

    assert float(value(reader()("energy", place, ()))) == 15.0


def test_numbers_are_taken_as_they_are():
    assert reader()("matrix", [[1, 2], [3, 4]], (2, 2)).shape == (2, 2)
    assert reader()("matrix", lambda x: [[x[0], 0, 0], [0, 1, 2]], (2, None)).shape == (2, 3)
    assert reader()("empty", list, (0,)).shape == (0, 1)


@pytest.mark.parametrize(
    ("function", "options", "words"),
    [
        (lambda y: y, {}, "energy has an argument 'y'; a energy function may have the arguments x, t, k"),
        (lambda *all_of_it: 1.0, {}, "energy has an argument 'all_of_it'"),
        (lambda x: x, {}, "energy must be one number, got an array of shape (2,)"),
        (lambda x: x, dict(verb="return"), "energy must return one number"),
        (lambda x: None, {}, "energy must be one number, got an array of shape ()"),
        (lambda x: "much", {}, "energy must be one number, got str 'much'"),
        (lambda x: x[9], dict(context=" of element 'door'"), "energy of element 'door': IndexError"),
        (lambda k: k.d, dict(context=" of element 'door'"), "energy of element 'door': unknown parameter 'k.d'"),
        (lambda x: [1.0, 2.0][int(x[0])], {}, "energy: TypeError: int() argument must be"),
    ],
)
def test_faults_are_named(function, options, words):
    with pytest.raises(lv.ModelError) as error:
        reader(**options)("energy", function, ())
    assert words in str(error.value)


def test_roles_of_several_words():
    with pytest.raises(lv.ModelError, match="the observable has an argument 'y'; it may have the arguments x, t, k"):
        reader().trace("the observable", lambda y: y)
    with pytest.raises(lv.ModelError, match="must be a Python function of x, k"):
        argument_names("energy", 3, "", "xk")


def test_lists_are_flattened():
    column = reader().as_column("constraints", [1.0, [2.0, [3]]])
    assert column.elements()[2].is_constant() and column.shape == (3, 1)
    assert reader().as_column("constraints", []).shape == (0, 1)
    with pytest.raises(lv.ModelError, match="constraints must be a list of numbers"):
        reader().as_column("constraints", "tight")
