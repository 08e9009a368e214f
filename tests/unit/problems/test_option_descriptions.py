"""Every option of a built-in problem has a description, and every description belongs to an option."""

from livens import problems
from livens.problems.option_descriptions import _BY_PROBLEM, _COMMON, option_description

OPTIONS = {(entry.name, option) for entry in problems.all() for option in entry.options}


def test_every_option_has_a_description():
    assert {(name, option) for name, option in OPTIONS if not option_description(name, option)} == set()


def test_every_description_belongs_to_an_option():
    described = {(name, option) for name, texts in _BY_PROBLEM.items() for option in texts}
    assert described - OPTIONS == set()
    used = {option for name, option in OPTIONS if (name, option) not in described}
    assert set(_COMMON) - used == set()
