"""Parsing of names of coordinates, states and ports."""

from __future__ import annotations

from collections.abc import Sequence

from livens.errors import InputError

#: Upper bound on the number of names.
_MOST = 10_000_000
#: Names in one string, in a sequence, or their number.
Names = str | int | Sequence[str]


def names_of(what: str, given: Names, prefix: str, one: str = "") -> tuple[str, ...]:
    """Return names parsed from "a b c", from a sequence, or generated from their number; names must be unique.

    `label` is the plural noun of the error messages, `singular` its singular.

    >>> names_of("states", "a b, c", "x"), names_of("states", ["a", "b"], "x"), names_of("states", 2, "x")
    (('a', 'b', 'c'), ('a', 'b'), ('x0', 'x1'))
    """
    if isinstance(given, bool) or not isinstance(given, (str, int, list, tuple)):
        raise InputError(f"{what} must be names or a number, got {given!r}")
    if isinstance(given, int):
        if not 0 <= given <= _MOST:
            raise InputError(f"{what}: the number of names must be between 0 and {_MOST}")
        return tuple(f"{prefix}{i}" for i in range(given))
    names = words(given)
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise InputError(f"{one or f'{what}:'} '{twice}' is named twice")
    return names


def words(given: str | Sequence[str]) -> tuple[str, ...]:
    """Split "a b, c" into names; return a sequence of names as a tuple."""
    return tuple(given.replace(",", " ").split()) if isinstance(given, str) else tuple(str(name) for name in given)
