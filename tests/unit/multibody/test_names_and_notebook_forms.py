"""Names of mechanisms in titles, and the notebook forms of mechanisms and their reports."""

import re

import pytest

import livens as lv


def leg(**options):
    mb = lv.Multibody(gravity=[0, -9.81], planar=True, **options)
    rod = mb.rod("rod", a=[0, 0], b=[1, 0], mass=1.0)
    mb.revolute("hinge", mb.ground, rod, at=rod.a)
    return mb


def test_the_name_of_a_mechanism_is_the_title_of_its_report_its_animation_and_its_file(tmp_path):
    run = leg(name="Theo's <leg>").simulate(t_end=0.1, h=0.01, out=tmp_path / "run.h5")
    for shown in (run, lv.load(tmp_path / "run.h5")):
        assert shown.info.title == "Theo's <leg>"
        assert str(shown.report()).startswith("Theo's <leg> with lie-em")
        assert "Theo's <leg>" in repr(shown)
        page = shown.animate(tmp_path / "leg.html").read_text(encoding="utf-8")
        assert "<title>Theo&#x27;s &lt;leg&gt;: livens</title>" in page
    assert leg(name="leg").problem().name == "leg"


def test_a_mechanism_without_a_name_is_called_mechanism():
    mb = leg()
    assert mb.simulate(t_end=0.1, h=0.01).info.title == mb.problem().name == "mechanism"
    assert (
        lv.simulate(lv.System("x", kinetic=lambda v: v @ v / 2), q0=[0], v0=[1], h=0.1, t_end=0.2).info.title
        == "user-defined system"
    )


@pytest.mark.parametrize("name", ["", " ", "two\nlines", 3])
def test_names_that_are_no_line_of_text_are_rejected(name):
    with pytest.raises(lv.InputError, match="name of a mechanism"):
        lv.Multibody(name=name)


def test_notebooks_show_a_mechanism_as_a_picture_with_its_parts_and_the_report_as_a_table():
    mb = leg(name="leg")
    shown = mb._repr_html_()
    assert "<svg" in shown
    assert "hinge" in shown
    table = re.sub(r"<[^>]+>", " ", mb.check()._repr_html_())
    assert "mobility" in table
    assert "1 by rank" in table
    assert "<svg" not in lv.Multibody()._repr_html_()  # nothing to draw yet


def test_an_equilibrium_is_printed_in_one_line():
    rest = leg().equilibrium()
    assert re.fullmatch(r"<Equilibrium: stable, residual \S+, \d+ iterations, 6 coordinates in \.position>", repr(rest))
