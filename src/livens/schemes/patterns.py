"""Name templates of scheme families: ``"gauss-<s>"`` matches one name for every value of the field in brackets."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

#: Regular expression and type of the template fields: integers, names (of schemes, of discrete gradients), floats.
#: The limited lengths bound the size of numbers and the nesting depth of compositions.
_NUMBER: tuple[str, Callable[[str], Any]] = r"([-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]{1,9})?)", float
_PARTS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "s": ("([0-9]{1,9})", int),
    "order": ("([0-9]{1,9})", int),
    "scheme": ("(.{1,200})", str),
    "gradient": ("(.{1,200})", str),
    "method": ("([a-z0-9-]{1,100})", str),
    "other": ("([a-z0-9-]{1,100})", str),
}


class Pattern:
    """Name template, with matching, parsing and formatting of names.

    >>> family = Pattern("adaptive-variational:<alpha>,<beta>")
    >>> family.arguments("adaptive-variational:0.5,0"), family.arguments("adaptive-variational:0.5")
    ((0.5, 0.0), None)
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.parts = tuple(re.findall("<(.+?)>", text))
        kinds = [_PARTS.get(part, _NUMBER) for part in self.parts]
        self._words = re.split("<.+?>", text)
        self._converts = [convert for _, convert in kinds]
        inner = [expression for expression, _ in kinds]
        self._expression = re.compile(_alternating([re.escape(word) for word in self._words], inner))

    def texts(self, name: str) -> tuple[str, ...] | None:
        """Return the texts of the fields in a name; None if the name does not match."""
        found = self._expression.fullmatch(name)
        return None if found is None else found.groups()

    def arguments(self, name: str) -> tuple[Any, ...] | None:
        """Return the values of the fields in a name, converted to numbers or names; None if it does not match."""
        texts = self.texts(name)
        if texts is None:
            return None
        return tuple(convert(text) for convert, text in zip(self._converts, texts, strict=True))

    def filled(self, texts: Sequence[str]) -> str:
        """Return the name with these texts in place of the fields.

        >>> Pattern("J-PRK-<s>").filled(["3"])
        'J-PRK-3'
        """
        return _alternating(self._words, texts)


@functools.cache
def pattern(text: str) -> Pattern:
    """Return the compiled template of a text, cached."""
    return Pattern(text)


def _alternating(words: Sequence[str], between: Sequence[str]) -> str:
    return words[0] + "".join(part + word for part, word in zip(between, words[1:], strict=True))
