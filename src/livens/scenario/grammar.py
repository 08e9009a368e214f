"""Parser of expressions (second stage): from tokens to a syntax tree, without evaluation.

Precedence from low to high: comparisons, ``+ -``, ``* /``, the sign, ``**`` (right-associative), as in Python. Sums
and products are flat nodes, so the depth of a tree is the depth of its parentheses.
"""

from __future__ import annotations

import keyword
from dataclasses import dataclass

from livens.errors import suggestion
from livens.scenario.tokens import ExpressionError, Token, tokens

MAX_DEPTH = 100
COMMA_HINT = "in { } or [ ] of YAML a comma ends a value: quote expressions that contain commas"

#: Functions by name, with the smallest and largest number of arguments.
FUNCTIONS: dict[str, tuple[int, int]] = {
    **dict.fromkeys("sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh".split(), (1, 1)),
    **dict.fromkeys("exp log sqrt abs sign floor ceil".split(), (1, 1)),
    **dict.fromkeys("atan2 minimum maximum".split(), (2, 2)),
    **dict.fromkeys("min max".split(), (2, 100)),
    "where": (3, 3),
}
_COMPARISONS = frozenset("< <= > >= == !=".split())
_STRENGTH = {**dict.fromkeys(_COMPARISONS, 1), "+": 2, "-": 2, "*": 3, "/": 3, "**": 5}
_SIGN = 4


@dataclass(frozen=True)
class Number:
    value: float
    column: int


@dataclass(frozen=True)
class Name:
    name: str
    column: int


@dataclass(frozen=True)
class Negative:
    operand: Node
    column: int


@dataclass(frozen=True)
class Chain:
    """Sum or product, left-associative: first operand, then (operator, operand, column of the operator)."""

    first_operand: Node
    rest: tuple[tuple[str, Node, int], ...]
    column: int


@dataclass(frozen=True)
class Power:
    base: Node
    exponent: Node
    column: int


@dataclass(frozen=True)
class Comparison:
    operator: str
    left: Node
    right: Node
    column: int


@dataclass(frozen=True)
class Call:
    function: str
    arguments: tuple[Node, ...]
    column: int


Node = Number | Name | Negative | Chain | Power | Comparison | Call


def parse(text: str) -> Node:
    """Return the syntax tree of an expression; raise an ExpressionError that points at the wrong character."""
    return _Parser(text).parse_all()


def names(node: Node) -> list[Name]:
    """Return all name nodes of a tree, from left to right."""
    match node:
        case Name():
            return [node]
        case Negative():
            return names(node.operand)
        case Chain():
            return names(node.first_operand) + [name for _, operand, _ in node.rest for name in names(operand)]
        case Power():
            return names(node.base) + names(node.exponent)
        case Comparison():
            return names(node.left) + names(node.right)
        case Call():
            return [name for argument in node.arguments for name in names(argument)]
    return []


class _Parser:
    def __init__(self, text: str) -> None:
        self._text, self._tokens, self._next, self._depth = text, tokens(text), 0, 0

    @property
    def _token(self) -> Token:
        return self._tokens[self._next]

    def _advance(self) -> Token:
        token = self._token
        self._next += 1
        return token

    def _error(self, reason: str, token: Token) -> ExpressionError:
        return ExpressionError(reason, self._text, token.column)

    def parse_all(self) -> Node:
        if self._token.token_type == "end":
            raise self._error("the expression is empty", self._token)
        node = self._expression(1)
        if self._token.token_type != "end":
            raise self._unexpected_token(self._token)
        return node

    def _unexpected_token(self, token: Token) -> ExpressionError:
        if token.text in keyword.kwlist:
            return self._error(f"'{token.text}' is not part of the language", token)
        if token.text == ")":
            return self._error("this ')' has no matching '('", token)
        if token.text == ",":
            return self._error("',' is allowed between the arguments of a function only", token)
        previous = self._tokens[self._next - 1].text
        return self._error(
            f"an operator is missing between '{previous}' and '{token.text}': write * to multiply", token
        )

    def _expression(self, strength: int) -> Node:
        """Parse an expression whose operators have at least this precedence."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._error(
                f"the expression is nested too deeply (at most {MAX_DEPTH} levels); use `let`", self._token
            )
        left = self._operand()
        while self._token.token_type == "operator" and _STRENGTH.get(self._token.text, 0) >= strength:
            operator = self._token
            if operator.text == "**":
                self._advance()
                left = Power(left, self._expression(_SIGN), operator.column)
            elif operator.text in _COMPARISONS:
                self._advance()
                left = Comparison(operator.text, left, self._expression(2), operator.column)
                if self._token.text in _COMPARISONS:
                    raise self._error("comparisons cannot be chained: write (a < b)*(b < c)", self._token)
            else:
                left = self._chain(left, _STRENGTH[operator.text])
        self._depth -= 1
        return left

    def _chain(self, first_operand: Node, strength: int) -> Chain:
        column, rest = self._token.column, []
        while self._token.token_type == "operator" and _STRENGTH.get(self._token.text, 0) == strength:
            operator = self._advance()
            rest.append((operator.text, self._expression(strength + 1), operator.column))
        return Chain(first_operand, tuple(rest), column)

    def _operand(self) -> Node:
        token = self._advance()
        if token.token_type == "number":
            return Number(token.value, token.column)
        if token.token_type == "name":
            return self._call(token) if self._token.text == "(" else self._name(token)
        if token.text == "-":
            return Negative(self._expression(_SIGN), token.column)
        if token.text == "+":
            return self._expression(_SIGN)
        if token.text == "(":
            inner = self._expression(1)
            self._close(token)
            return inner
        reason = (
            "the expression ends too early" if token.token_type == "end" else f"expected a value, got '{token.text}'"
        )
        raise self._error(reason, token)

    def _name(self, token: Token) -> Name:
        if token.text in FUNCTIONS:
            raise self._error(f"'{token.text}' is a function: write {token.text}(...)", token)
        if keyword.iskeyword(token.text):
            raise self._error(f"'{token.text}' is not part of the language", token)
        return Name(token.text, token.column)

    def _call(self, token: Token) -> Call:
        name = token.text
        if name not in FUNCTIONS:
            hint = suggestion(name, FUNCTIONS)
            product = "" if "did you mean" in hint else f"; to multiply, write {name}*(...)"
            raise self._error(f"unknown function '{name}'{product}{hint}", token)
        bracket = self._advance()
        arguments: list[Node] = []
        if self._token.text != ")":
            arguments.append(self._expression(1))
            while self._token.text == ",":
                self._advance()
                arguments.append(self._expression(1))
        self._close(bracket)
        fewest, most = FUNCTIONS[name]
        if not fewest <= len(arguments) <= most:
            expected = str(fewest) if fewest == most else f"{fewest} to {most}"
            plural = "" if most == 1 else "s"
            raise self._error(f"{name} takes {expected} argument{plural}, got {len(arguments)}", token)
        return Call(name, tuple(arguments), token.column)

    def _close(self, bracket: Token) -> None:
        if self._token.token_type == "end":
            raise self._error(
                f"this '(' is never closed ({COMMA_HINT})",
                bracket,
            )
        if self._token.text != ")":
            raise self._unexpected_token(self._token)
        self._advance()
