"""Parsing of names of coordinates, states and ports."""

from __future__ import annotations

from collections.abc import Sequence

from livens.errors import InputError

#: Upper bound on the number of names.
_MAX_NAMES = 10_000_000
#: Names in one string, in a sequence, or their number.
Names = str | int | Sequence[str]


def parse_names(label: str, value: Names, prefix: str, singular: str = "") -> tuple[str, ...]:
    """Return names parsed from "a b c", from a sequence, or generated from their number; names must be unique.

    `label` is the plural noun of the error messages, `singular` its singular.

    >>> parse_names("states", "a b, c", "x"), parse_names("states", ["a", "b"], "x"), parse_names("states", 2, "x")
    (('a', 'b', 'c'), ('a', 'b'), ('x0', 'x1'))
    """
    if isinstance(value, bool) or not isinstance(value, (str, int, list, tuple)):
        raise InputError(f"{label} must be names or a number, got {value!r}")
    if isinstance(value, int):
        if not 0 <= value <= _MAX_NAMES:
            raise InputError(f"{label}: the number of names must be between 0 and {_MAX_NAMES}")
        return tuple(f"{prefix}{i}" for i in range(value))
    names = split_names(value)
    if len(set(names)) < len(names):
        duplicate = next(name for i, name in enumerate(names) if name in names[:i])
        raise InputError(f"{singular or f'{label}:'} '{duplicate}' is named twice")
    return names


def split_names(names: str | Sequence[str]) -> tuple[str, ...]:
    """Split "a b, c" into names; return a sequence of names as a tuple."""
    return tuple(names.replace(",", " ").split()) if isinstance(names, str) else tuple(str(name) for name in names)
