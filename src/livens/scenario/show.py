"""Quoting of user text in messages: single-line, printable, of limited length, with a caret at a column."""

from __future__ import annotations

_BEFORE, _AFTER = 60, 40


def shown(text: object, limit: int = 80) -> str:
    """Return printable text of limited length."""
    full = str(text)
    short = full if len(full) <= limit else full[: limit - 3] + "..."
    return "".join(map(_printable, short))


def _printable(character: str) -> str:
    # control characters would act on the terminal, and a lone surrogate cannot be printed
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")


def pointed(text: str, column: int) -> str:
    """Return the line of `text` that contains character number `column`, with a caret below it."""
    first = text.rfind("\n", 0, column) + 1
    last = text.find("\n", column)
    line, at = text[first : len(text) if last < 0 else last], column - first
    left, right = max(0, at - _BEFORE), at + _AFTER
    before = ("..." if left else "") + "".join(map(_printable, line[left:at]))
    after = "".join(map(_printable, line[at:right])) + ("..." if len(line) > right else "")
    return f"    {before}{after}\n    {' ' * len(before)}^"


def listed(names: list[str]) -> str:
    """Join names, as ``a, b and c``."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
