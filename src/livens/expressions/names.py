"""Names of coordinates, states and ports, as users give them."""

from __future__ import annotations

from collections.abc import Sequence

from livens.errors import InputError

#: More than this many coordinates are a slip of the pen.
_MOST = 10_000_000
#: Names in one text or in a list, or how many there are.
Names = str | int | Sequence[str]


def names_of(what: str, given: Names, prefix: str, one: str = "") -> tuple[str, ...]:
    """Names from "a b c", from a list of them, or from their number; each may be used once.

    `what` are they called in messages, and what is `one` of them?

    >>> names_of("states", "a b, c", "x"), names_of("states", ["a", "b"], "x"), names_of("states", 2, "x")
    (('a', 'b', 'c'), ('a', 'b'), ('x0', 'x1'))
    """
    if isinstance(given, bool) or not isinstance(given, (str, int, list, tuple)):
        raise InputError(f"{what} must be names or a number, got {given!r}")
    if isinstance(given, int):
        if not 0 <= given <= _MOST:
            raise InputError(f"{what}: their number must be between 0 and {_MOST}")
        return tuple(f"{prefix}{i}" for i in range(given))
    names = words(given)
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise InputError(f"{one or f'{what}:'} '{twice}' is named twice")
    return names


def words(given: str | Sequence[str]) -> tuple[str, ...]:
    """The words of "a b, c", or of a list as they are."""
    return tuple(given.replace(",", " ").split()) if isinstance(given, str) else tuple(str(name) for name in given)
