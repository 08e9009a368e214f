"""The order in which instructions are written: each where it is first needed, and none that nobody needs."""

import pytest

from livens.engine.codegen.instruction_schedule import schedule

LINES = [
    "%1 = getelementptr double, ptr %a, i64 0",
    "%2 = load double, ptr %1",
    "%3 = fadd double %2, %2",
    "%4 = fmul double %3, %2",  # nobody needs it
    "%5 = getelementptr double, ptr %b, i64 0",
    "%6 = load double, ptr %5",
    "%7 = fmul double %6, %3",
    "store double %7, ptr %1",
]


def test_without_anchors_lines_stay_as_they_are():
    assert schedule(LINES) == LINES


def test_with_anchors_instructions_stand_where_they_are_needed():
    """Operands first and from left to right, registers by names that need not be in order."""
    found = schedule([*LINES, ("anchor", "%6"), "ret void"])
    wanted = [LINES[i] for i in (4, 5, 0, 1, 2, 6, 7)]
    assert found == [
        *(line.replace("%", "%v").replace("%va", "%a").replace("%vb", "%b") for line in wanted),
        "ret void",
    ]


def test_an_anchor_comes_before_the_store_behind_it():
    head, store = LINES[:-1], LINES[-1]
    found = schedule([*head, ("anchor", "%4"), store])
    assert found.index("%v4 = fmul double %v3, %v2") < found.index("%v6 = load double, ptr %v5") < len(found) - 1
    assert sorted(line.split(" = ")[0] for line in found if " = " in line) == [f"%v{i}" for i in range(1, 8)]


def test_a_load_behind_a_store_to_its_place_is_refused():
    """Unless it is said to be of the new value."""
    late = ["%1 = getelementptr double, ptr %a, i64 0", "%2 = load double, ptr %1", "%3 = fadd double 0x0, 0x0"]
    both = [*late, "store double %3, ptr %1"]
    assert schedule([*late, ("anchor", "%2"), "store double %3, ptr %1"])[1] == "%v2 = load double, ptr %v1"
    with pytest.raises(AssertionError):
        schedule([*both, ("anchor", "%2")])
    again = ["%4 = load double, ptr %1 ; again"]
    assert schedule([*both, *again, ("anchor", "%4")])[-1] == "%v4 = load double, ptr %v1 ; again"
