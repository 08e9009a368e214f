"""Name templates of scheme families: ``"gauss-<s>"`` matches one name for every value of the field in brackets."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

#: Regular expression and type of the template fields: integers, names (of schemes, of discrete gradients), floats.
#: The limited lengths bound the size of numbers and the nesting depth of compositions.
_FLOAT: tuple[str, Callable[[str], Any]] = r"([-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]{1,9})?)", float
_FIELD_TYPES: dict[str, tuple[str, Callable[[str], Any]]] = {
    "s": ("([0-9]{1,9})", int),
    "order": ("([0-9]{1,9})", int),
    "scheme": ("(.{1,200})", str),
    "gradient": ("(.{1,200})", str),
    "method": ("([a-z0-9-]{1,100})", str),
    "other": ("([a-z0-9-]{1,100})", str),
}


class NameTemplate:
    """Name template, with matching, parsing and formatting of names.

    >>> family = NameTemplate("adaptive-variational:<alpha>,<beta>")
    >>> family.parse("adaptive-variational:0.5,0"), family.parse("adaptive-variational:0.5")
    ((0.5, 0.0), None)
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.fields = tuple(re.findall("<(.+?)>", text))
        field_types = [_FIELD_TYPES.get(field, _FLOAT) for field in self.fields]
        self._literals = re.split("<.+?>", text)
        self._converts = [convert for _, convert in field_types]
        inner = [expression for expression, _ in field_types]
        self._expression = re.compile(_interleave([re.escape(literal) for literal in self._literals], inner))

    def match(self, name: str) -> tuple[str, ...] | None:
        """Return the texts of the fields in a name; None if the name does not match."""
        matched = self._expression.fullmatch(name)
        return None if matched is None else matched.groups()

    def parse(self, name: str) -> tuple[Any, ...] | None:
        """Return the values of the fields in a name, converted to numbers or names; None if it does not match."""
        texts = self.match(name)
        if texts is None:
            return None
        return tuple(convert(text) for convert, text in zip(self._converts, texts, strict=True))

    def format(self, texts: Sequence[str]) -> str:
        """Return the name with these texts in place of the fields.

        >>> NameTemplate("J-PRK-<s>").format(["3"])
        'J-PRK-3'
        """
        return _interleave(self._literals, texts)


@functools.cache
def name_template(text: str) -> NameTemplate:
    """Return the compiled template of a text, cached."""
    return NameTemplate(text)


def _interleave(literals: Sequence[str], fields: Sequence[str]) -> str:
    return literals[0] + "".join(field + literal for field, literal in zip(fields, literals[1:], strict=True))
