"""Schemes by name: families, their members, and names that are none."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import livens as lv
from livens.expressions.layout import Layout
from livens.schemes.base import Scheme

TRAITS = ("name", "order", "symplectic", "symmetric", "conserves", "summary", "source")


@pytest.mark.parametrize("scheme", lv.schemes.all(), ids=lambda scheme: scheme.name)
def test_every_scheme_says_what_it_is(scheme):
    """And comes back by its name, as an equal one."""
    assert all(hasattr(scheme, trait) for trait in TRAITS) and scheme.order >= 1 and scheme.summary and scheme.source
    again = lv.schemes.get(scheme.name)
    assert again == scheme and hash(again) == hash(scheme) and again.name == scheme.name
    assert lv.schemes.get(scheme) is scheme


def test_names_are_unique_and_patterns_have_examples():
    names = [scheme.name for scheme in lv.schemes.all()]
    assert len(set(names)) == len(names)
    assert all(kind.examples for kind in Scheme._families.values())


@pytest.mark.parametrize(
    "name, canonical",
    [("theta:0.50", "theta:0.5"), ("variational:5e-1", "variational:0.5"), ("gauss-03", "gauss-3")],
)
def test_canonical_names(name, canonical):
    assert lv.schemes.get(name).name == canonical and lv.schemes.get(name) == lv.schemes.get(canonical)


@pytest.mark.parametrize(
    "name",
    ["gauss-0", "gauss-", "gauss", "gauss-2.5", "gauss--1", "gauss-9999999", "lobatto-iiia-1", "murua-0", "theta:nan",
     "theta:", "theta:inf", "variational:0.5,0.5", "yoshida-5:stormer-verlet", "yoshida-4:", "yoshida-4:nothing",
     "yoshida-4:explicit-euler", "adaptive-variational:0.5", "semi-explicit:a,b", "", " ", "livens-em ", "Livens-EM"],
)  # fmt: skip
def test_names_that_are_none(name):
    with pytest.raises(lv.InputError):
        lv.schemes.get(name)


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="abgiklmnorstuv-:<>,.0123456789 ", max_size=24))
def test_any_text_is_a_scheme_or_refused(text):
    try:
        assert isinstance(lv.schemes.get(text), Scheme)
    except lv.InputError as error:
        assert len(str(error)) > 10


@given(st.lists(st.integers(0, 5), min_size=1, max_size=6))
def test_layouts(sizes):
    layout = Layout(**{f"part{i}": size for i, size in enumerate(sizes)})
    assert layout.size == sum(sizes)
    covered = [i for name in layout.sizes for i in range(layout[name].start, layout[name].stop)]
    assert covered == list(range(layout.size))
    for i in covered:
        name = layout.name_of(i).split("[")[0]
        assert layout[name].start <= i < layout[name].stop
