"""Grouping of import notes: notes that differ in one quoted name become one note with a list of names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from livens.errors import abbreviate

_NAME = re.compile(r"(?<!\w)'[^']*'")  # an apostrophe follows a letter
_LINE = re.compile(r"line \d+")
#: Largest number of names in a note.
_MAX_NAMES = 6


def names_of_note(names: Sequence[str]) -> str:
    """Return an enumeration of at most six names."""
    return abbreviate(names, _MAX_NAMES)


def group_notes(notes: Iterable[str]) -> list[str]:
    """Return notes in the order of their first occurrence, grouped by their text without the first quoted name.

    Line numbers are not compared; the note has that of the first one.
    """
    groups: dict[str, tuple[str, list[str]]] = {}
    for note in notes:
        key = _LINE.sub("line", _NAME.sub("''", note, count=1))
        name = _NAME.search(note)
        _, names = groups.setdefault(key, (note, []))
        names += [name.group()] if name is not None and name.group() not in names else []
    return [
        _NAME.sub(lambda _, names=names: names_of_note(names), note, count=1)  # type: ignore[misc]
        for note, names in groups.values()
    ]
