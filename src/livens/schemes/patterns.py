"""Patterns of names: ``"gauss-<s>"`` stands for a name for every value of what is in brackets."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

#: What may stand in brackets: a whole number, a name (of another scheme, of a discrete gradient), or else a number.
#: Lengths are limited, so that neither a number of a thousand digits nor a scheme of a scheme of a scheme, without end,
#: is ever begun.
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
    """A pattern and the names that match it.

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
        """What stands for the brackets in a name; None if the name does not match."""
        found = self._expression.fullmatch(name)
        return None if found is None else found.groups()

    def arguments(self, name: str) -> tuple[Any, ...] | None:
        """The same as numbers and names of schemes."""
        texts = self.texts(name)
        if texts is None:
            return None
        return tuple(convert(text) for convert, text in zip(self._converts, texts, strict=True))

    def filled(self, texts: Sequence[str]) -> str:
        """The name with these texts for its brackets.

        >>> Pattern("J-PRK-<s>").filled(["3"])
        'J-PRK-3'
        """
        return _alternating(self._words, texts)


@functools.cache
def pattern(text: str) -> Pattern:
    """The pattern of a text, compiled once."""
    return Pattern(text)


def _alternating(words: Sequence[str], between: Sequence[str]) -> str:
    return words[0] + "".join(part + word for part, word in zip(between, words[1:], strict=True))
