"""Quoting of user text in messages: single-line, printable, of limited length, with a caret at a column."""

from __future__ import annotations

_CHARACTERS_BEFORE, _CHARACTERS_AFTER = 60, 40


def quoted(text: object, limit: int = 80) -> str:
    """Return printable text of limited length."""
    full = str(text)
    short = full if len(full) <= limit else full[: limit - 3] + "..."
    return "".join(map(_printable, short))


def _printable(character: str) -> str:
    # control characters would act on the terminal, and a lone surrogate cannot be printed
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")


def with_caret(text: str, column: int) -> str:
    """Return the line of `text` that contains character number `column`, with a caret below it."""
    start = text.rfind("\n", 0, column) + 1
    end = text.find("\n", column)
    line, offset = text[start : len(text) if end < 0 else end], column - start
    left, right = max(0, offset - _CHARACTERS_BEFORE), offset + _CHARACTERS_AFTER
    before = ("..." if left else "") + "".join(map(_printable, line[left:offset]))
    after = "".join(map(_printable, line[offset:right])) + ("..." if len(line) > right else "")
    return f"    {before}{after}\n    {' ' * len(before)}^"


def join_names(names: list[str]) -> str:
    """Join names, as ``a, b and c``."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
