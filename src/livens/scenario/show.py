"""Text from a file, as it can stand in a message: one line, printable, not too long, with a caret where it matters."""

from __future__ import annotations

_BEFORE, _AFTER = 60, 40


def shown(text: object, limit: int = 80) -> str:
    """Printable and of limited length, whatever a file holds."""
    full = str(text)
    short = full if len(full) <= limit else full[: limit - 3] + "..."
    return "".join(map(_printable, short))


def _printable(character: str) -> str:
    # a terminal obeys control characters, and a lone surrogate cannot be printed at all
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")


def pointed(text: str, column: int) -> str:
    """The line of `text` that holds the character number `column`, with a caret below that character."""
    first = text.rfind("\n", 0, column) + 1
    last = text.find("\n", column)
    line, at = text[first : len(text) if last < 0 else last], column - first
    left, right = max(0, at - _BEFORE), at + _AFTER
    before = ("..." if left else "") + "".join(map(_printable, line[left:at]))
    after = "".join(map(_printable, line[at:right])) + ("..." if len(line) > right else "")
    return f"    {before}{after}\n    {' ' * len(before)}^"


def listed(names: list[str]) -> str:
    """``a, b and c``."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
