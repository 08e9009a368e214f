"""Every parameter has a name, and a place in the vector that does not depend on names."""

import numpy as np
import pytest

import livens as lv
from livens.expressions.parameters import Parameters, ParameterTable, shared, unique_labels


def element(name="", **parameters):
    return lv.Element(["x"], kinetic=lambda v: v[0] ** 2, parameters=parameters, name=name)


def table(*elements, **shared):
    return ParameterTable(Parameters(shared), [(e.name, e.parameters) for e in elements])


def test_layout_and_names():
    found = table(
        element("door", mass=2.0, X=[1.0, 2.0]), element(), element("door", mass=3.0), element("", c=4.0), g=9.0
    )
    assert found.names == ("g", "door.mass", "door.X", "door#2.mass", "element3.c")
    assert found.vector().tolist() == [9.0, 2.0, 1.0, 2.0, 3.0, 4.0]
    expected = {"g": 9.0, "door.mass": 2.0, "door.X": [1.0, 2.0], "door#2.mass": 3.0, "element3.c": 4.0}
    assert found.to_python() == expected
    assert found.vector({"door#2.mass": 7, "door.X": [5, 6]}).tolist() == [9.0, 2.0, 5.0, 6.0, 7.0, 4.0]
    changed = {"door.X": [5, 6]}
    assert found.changed_values(changed, found.vector(changed)) == {"g": 9.0, "door.X": [5.0, 6.0]}


def test_labels_are_unique():
    assert unique_labels(["element1", "", "a", "a#2", "a"]) == ("element1", "element1#2", "a", "a#2", "a#3")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"dor.mass": 1.0}, "unknown parameter 'dor.mass'; did you mean 'door.mass'?"),
        ({"mass": 1.0}, "unknown parameter 'mass'"),
        ({"door.X": 1.0}, "parameter 'door.X' must have shape (2,), got ()"),
        ({"door.mass": np.nan}, "parameter 'door.mass' must be finite"),
        ({"door.mass": "heavy"}, "parameter 'door.mass' must be a number"),
        ({"weight.m": 1.0}, "parameter 'weight.m' is shared with 'door.mass': change that parameter instead"),
        ({3: 1.0}, "unknown parameter '3'"),
    ],
)
def test_bad_changes(changes, words):
    door = element("door", mass=2.0, X=[1.0, 2.0])
    with pytest.raises(lv.InputError) as error:
        table(door, element("weight", m=shared(door, "mass"))).vector(changes)
    assert words in str(error.value)


def test_what_is_the_same_follows():
    door = element("door", mass=2.0)
    weight = element("weight", m=shared(door, "mass"))
    again = element("again", n=shared(weight, "m"), c=1.0)
    found = table(weight, door, again)
    assert found.names == ("door.mass", "again.c") and found.vector().tolist() == [2.0, 2.0, 2.0, 1.0]
    assert found.vector({"door.mass": 5.0}).tolist() == [5.0, 5.0, 5.0, 1.0]
    # without the door the weight has a parameter of its own
    assert table(weight).names == ("weight.m",) and table(again, weight).names == ("again.c", "weight.m")
    with pytest.raises(lv.InputError, match="door has no parameter 'mas'; did you mean 'mass'"):
        shared(door, "mas")
