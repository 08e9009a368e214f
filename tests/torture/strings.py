"""Random expressions and damaged texts."""

from __future__ import annotations

import math
import random

NUMBERS = ("0", "1", "2", "3", "0.5", "2.5e-1", "7.", "1e3", "12345.678")
#: The functions of one argument that are finite everywhere.
FUNCTIONS = {"sin": math.sin, "cos": math.cos, "atan": math.atan, "abs": abs, "tanh": math.tanh, "exp": math.exp}
PIECES = (
    *"+-*/%()[]{},.:;<>=!&|^~@#$?\\'\"`_ \t\n",
    "**",
    "==",
    "<=",
    ">=",
    "!=",
    "//",
    "->",
    ":=",
    "...",
    "lambda",
    "import",
    "__class__",
    "eval",
    "None",
    "True",
    "if",
    "else",
    "for",
    "x.y",
    "1e",
    "1e999",
    "-1e-999",
    "0x1f",
    "1_000",
    "1j",
    "nan",
    "inf",
    "é",
    "π",
    "\u202e",
    "\x00",
    "\ud7ff",
    "x",
    "y",
    "t",
    "pi",
    "e",
    "where",
    "maximum",
    "min",
    "sqrt",
    "log",
    "hypot",
)


def expression(chance: random.Random, names: tuple[str, ...], depth: int = 4) -> str:
    """Return an expression of the grammar."""
    if depth == 0 or chance.random() < 0.2:
        return chance.choice((*NUMBERS, *names, *names))
    inner = lambda: expression(chance, names, depth - 1)  # noqa: E731
    match chance.randrange(6):
        case 0 | 1:
            return f"{inner()} {chance.choice('+-*/')} {inner()}"
        case 2:
            return f"({inner()})"
        case 3:
            return f"-({inner()})"
        case 4:
            return f"({inner()})**{chance.choice('123')}"
    return f"{chance.choice(list(FUNCTIONS))}({inner()})"


def damaged(chance: random.Random, text: str, most: int = 4) -> str:
    """Return a text with pieces inserted, removed, doubled or exchanged."""
    for _ in range(chance.randint(1, most)):
        first = chance.randrange(len(text) + 1)
        last = min(len(text), first + chance.choice((1, 1, 2, 5, 20)))
        match chance.randrange(5):
            case 0:
                text = text[:first] + chance.choice(PIECES) + text[first:]
            case 1:
                text = text[:first] + text[last:]
            case 2:
                text = text[:last] + text[first:last] + text[last:]
            case 3:
                text = text[:first] + chance.choice(PIECES) + text[last:]
            case 4:
                other = chance.randrange(len(text) + 1)
                text = text[:first] + text[other : other + last - first] + text[last:]
    return text


def nonsense(chance: random.Random) -> str:
    """Return pieces in random order, sometimes very many or deeply nested."""
    if chance.random() < 0.02:
        piece = chance.choice(("(", "-", "sin(", "1+", "9**", "x*", "[", "not "))
        return piece * chance.choice((50, 500, 5000)) + "1" + chance.choice(("", ")" * 50, ")" * 5000))
    return "".join(chance.choice(PIECES) for _ in range(chance.randint(0, 12)))
