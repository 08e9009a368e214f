"""Tokeniser of expressions (first stage): from text to numbers, names and operators."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from livens.errors import InputError
from livens.scenario.quoting import quoted, with_caret

MAX_LENGTH = 10_000
MAX_NAME = 60

_TOKEN = re.compile(
    r"(?P<space>\s+)"
    r"|(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[^\W\d]\w*)"
    r"|(?P<operator>\*\*|//|<=|>=|==|!=|[-+*/(),<>])"
)
#: Common mistakes and their corrections.
_INSTEAD = {
    "^": "write x**2 for a power",
    "=": "write == to compare",
    "'": "strings are not available, and the velocity of x is v_x",
    '"': "strings are not available in expressions",
    ".": "attributes are not available",
    "[": "subscripts are not available: use a separate name for every number",
    "%": "the remainder is not available: write a - b*floor(a/b)",
    "&": "write (a > 0)*(b > 0) for 'and'",
    "|": "write maximum(a > 0, b > 0) for 'or'",
    "!": "write != to compare, or 1 - c for 'not'",
    ":": "colons are not available",
}


class ExpressionError(InputError):
    """Syntax or name error in an expression; the message shows its column."""

    def __init__(self, reason: str, text: str, column: int) -> None:
        super().__init__(f"{reason}\n{with_caret(text, column)}")
        self.reason, self.column = reason, column


@dataclass(frozen=True)
class Token:
    """Token of type "number", "name", "operator" or "end"; `column` counts characters from 0."""

    token_type: str
    text: str
    column: int
    value: float = math.nan


def tokens(text: str) -> list[Token]:
    """Split an expression into tokens; the last one has type "end"."""
    if len(text) > MAX_LENGTH:
        reason = f"an expression may have at most {MAX_LENGTH} characters, this one has {len(text)}; use `let`"
        raise ExpressionError(reason, text, MAX_LENGTH)
    token_list, column = [], 0
    while column < len(text):
        match = _TOKEN.match(text, column)
        if match is None:
            raise _unexpected(text, column)
        if match.lastgroup != "space":
            token_list.append(_token(str(match.lastgroup), match.group(), text, column))
        column = match.end()
    return [*token_list, Token("end", "", len(text))]


def _token(token_type: str, lexeme: str, text: str, column: int) -> Token:
    if token_type == "name" and len(lexeme) > MAX_NAME:
        raise ExpressionError(f"a name may have at most {MAX_NAME} characters", text, column)
    if lexeme == "//":
        raise ExpressionError("'//' is not part of the language: write floor(a/b)", text, column)
    if token_type != "number":
        return Token(token_type, lexeme, column)
    value = float(lexeme)
    if not math.isfinite(value):
        raise ExpressionError(f"the number {quoted(lexeme, 30)} is too large", text, column)
    return Token(token_type, lexeme, column, value)


def _unexpected(text: str, column: int) -> ExpressionError:
    character = text[column]
    hint = f": {_INSTEAD[character]}" if character in _INSTEAD else ""
    return ExpressionError(f"'{quoted(character)}' is not part of the language{hint}", text, column)
