"""The lists of schemes are made of their records: the catalogue is up to date and complete."""

import dataclasses
from pathlib import Path

import pytest

import livens as lv
from livens.schemes.core.catalogue import BEGIN, END, GROUPS, all_rows, make_row, markdown, replace_table

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "schemes.md"


def test_the_table_of_the_catalogue_is_up_to_date():
    """If it is not: python -m livens.schemes.core.catalogue."""
    text = PAGE.read_text(encoding="utf-8")
    assert text.count(BEGIN) == text.count(END) == 1
    assert replace_table(text) == text


def test_every_scheme_is_in_one_row():
    names = [member.name for row in all_rows() for member in row.members]
    assert sorted(names) == [scheme.name for scheme in lv.schemes.all()]
    assert sorted(row.name for row in all_rows()) == lv.schemes.names()
    assert list(dict.fromkeys(row.group for row in all_rows())) == list(GROUPS)
    assert len(markdown().splitlines()) <= 85  # families are one row each


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gauss-<s>", dict(order="2s", symplectic="yes", symmetric="yes", step_type="implicit")),
        ("radau-iia-<s>", dict(order="2s - 1", symplectic="no", conserves="constraints")),
        ("lobatto-iiia-iiib-<s>", dict(order="2s - 2", requirements="a regular mass matrix")),
        ("lobatto-iiib-<s>", dict(symplectic="yes for s = 2", conserves="")),
        ("variational:<alpha>", dict(order="1", step_type="explicit for 0 and 1")),
        ("adaptive-variational:<alpha>,<beta>", dict(order="1, 2", symmetric="yes for 0.5,0.5")),
        (
            "yoshida-<order>:<scheme>",
            dict(order="<order>", symplectic="as <scheme>", requirements="a symmetric scheme"),
        ),
        (
            "livens-em",
            dict(order="2", conserves="generalised energy, constraints", formulations="elements", requirements=""),
        ),
        (
            "stormer-verlet",
            dict(step_type="explicit", formulations="phase space", requirements="an energy T(p) + V(q)"),
        ),
    ],
)
def test_rows_in_words(name, words):
    found = next(row for row in all_rows() if row.name == name)
    assert {word: getattr(found, word) for word in words} == words


def test_orders_without_a_formula():
    """Orders that are no line in s are listed."""
    one, two, three = (lv.schemes.get(f"gauss-{s}").traits for s in (1, 2, 3))
    assert make_row("gauss-<s>", [one, two, three]).order == "2s"
    assert make_row("gauss-<s>", [two]).order == "4"
    assert make_row("gauss-<s>", [dataclasses.replace(one, order=3), two, three]).order == "3, 4, 6"
