"""Expressions as plain data: a list of operations that anyone may carry out, and that a file can keep.

Each entry of a tape is a number, ``["q", i]`` for a coordinate, ``["t"]`` for time, or an operation on earlier entries,
such as ``["ADD", 3, 5]``. A tape from a file of strangers can do nothing but arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import casadi as ca
import numpy as np

from livens.errors import ModelError
from livens.expressions.graph.walk import walk

#: What can be done, by the names that CasADi has for it.
OPERATIONS: dict[str, Callable[..., Any]] = {
    "ADD": np.add,
    "SUB": np.subtract,
    "MUL": np.multiply,
    "DIV": np.divide,
    "NEG": np.negative,
    "SIN": np.sin,
    "COS": np.cos,
    "TAN": np.tan,
    "ASIN": np.arcsin,
    "ACOS": np.arccos,
    "ATAN": np.arctan,
    "ATAN2": np.arctan2,
    "SINH": np.sinh,
    "COSH": np.cosh,
    "TANH": np.tanh,
    "EXP": np.exp,
    "LOG": np.log,
    "SQRT": np.sqrt,
    "SQ": np.square,
    "TWICE": lambda a: 2 * a,
    "INV": lambda a: 1 / a,
    "POW": np.power,
    "CONSTPOW": np.power,
    "FABS": np.abs,
    "SIGN": np.sign,
    "FLOOR": np.floor,
    "CEIL": np.ceil,
    "FMIN": np.minimum,
    "FMAX": np.maximum,
    "FMOD": np.fmod,
    "HYPOT": np.hypot,
    "LT": lambda a, b: np.where(a < b, 1.0, 0.0),
    "LE": lambda a, b: np.where(a <= b, 1.0, 0.0),
    "EQ": lambda a, b: np.where(a == b, 1.0, 0.0),
    "NE": lambda a, b: np.where(a != b, 1.0, 0.0),
    "NOT": lambda a: np.where(a == 0, 1.0, 0.0),
    "AND": lambda a, b: np.where((a != 0) & (b != 0), 1.0, 0.0),
    "OR": lambda a, b: np.where((a != 0) | (b != 0), 1.0, 0.0),
    "IF_ELSE_ZERO": lambda a, b: np.where(a != 0, b, 0.0),
    "ASSIGN": lambda a: a,
}
_TWO = frozenset("ADD SUB MUL DIV ATAN2 POW CONSTPOW FMIN FMAX FMOD HYPOT LT LE EQ NE AND OR IF_ELSE_ZERO".split())

Entry = float | list[Any]


class Tape:
    """A tape that grows; what is on it already is not put there again."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._known: dict[Any, int] = {}

    def put(self, *entry: Any) -> int:
        """The place of a number, a coordinate, time or an operation."""
        key = entry if isinstance(entry[0], str) else ("number", *entry)
        place = self._known.get(key)
        if place is None:
            place = self._known[key] = len(self.entries)
            self.entries.append(list(entry) if isinstance(entry[0], str) else entry[0])
        return place

    def extended(self, tape: Sequence[Entry], coordinates: Sequence[int]) -> list[int]:
        """Put all of another tape here, whose coordinates are these; where each of its entries is."""
        places: list[int] = []
        for entry in tape:
            if not isinstance(entry, list):
                places.append(self.put(entry))
            elif entry[0] == "q":
                places.append(self.put("q", int(coordinates[entry[1]])))
            else:
                places.append(self.put(entry[0], *(places[i] for i in entry[1:])))
        return places


def recorded(q: Any, t: Any, expressions: Sequence[Any]) -> tuple[list[Entry], list[int]]:
    """A tape that computes all expressions of the symbols q and t, or numbers, and the entry where each is found."""
    tape = Tape()
    put = tape.put

    def apply(name: str, *operands: int) -> int:
        if name not in OPERATIONS:
            raise ModelError(f"a place cannot be computed with '{name}'")
        return put(name, *operands)

    written = [e for e in expressions if not isinstance(e, float)]
    lazy = [[("q", i) for i in range(q.numel())], [("t",)]]  # coordinates that nothing needs are no entries

    def entry(value: Any) -> int:
        return put(*value) if isinstance(value, tuple) else int(value)

    found: list[Any] = []
    if written:
        function = ca.Function("places", [q, t], [ca.densify(ca.vertcat(*written))])
        (found,) = walk(function, lazy, lambda c: (float(c),), lambda name, *a: apply(name, *map(entry, a)))  # type: ignore[arg-type]
    values = iter(found)
    places = [put(e) if isinstance(e, float) else entry(next(values)) for e in expressions]
    return tape.entries, places


def checked(tape: Any, coordinates: int) -> list[Entry]:
    """A tape from a file, if it is one: known operations on earlier entries."""
    for place, entry in enumerate(tape):
        if isinstance(entry, (int, float)):
            continue
        name, *operands = entry
        if name == "q":
            right = len(operands) == 1 and isinstance(operands[0], int) and 0 <= operands[0] < coordinates
        elif name == "t":
            right = not operands
        else:
            right = name in OPERATIONS and len(operands) == (2 if name in _TWO else 1)
            right = right and all(isinstance(i, int) and 0 <= i < place for i in operands)
        if not right:
            raise ValueError(f"'{entry}' is no operation on a scene's places")
    return list(tape)


def evaluated(tape: Sequence[Entry], q: np.ndarray, t: np.ndarray) -> list[Any]:
    """The values of all entries: a number where nothing moves, else one for every row of q.

    >>> evaluated([["q", 0], 2.0, ["MUL", 0, 1]], np.array([[1.0], [3.0]]), np.zeros(2))[2].tolist()
    [2.0, 6.0]
    """
    values: list[Any] = []
    with np.errstate(all="ignore"):  # what is nowhere is not drawn
        for entry in tape:
            if not isinstance(entry, list):
                values.append(float(entry))
            elif entry[0] == "q":
                values.append(q[:, entry[1]])
            elif entry[0] == "t":
                values.append(t)
            else:
                values.append(OPERATIONS[entry[0]](*(values[i] for i in entry[1:])))
    return values
