"""Tapes: expressions as plain data, a list of elementary operations that can be stored in a file.

Each entry of a tape is a number, ``["q", i]`` for a coordinate, ``["t"]`` for time, ``["table", x0, x1, ...]``, or an
operation on preceding entries, such as ``["ADD", 3, 5]``. Evaluation of a tape from an untrusted file executes
arithmetic only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np

from livens.errors import ModelError
from livens.expressions.graph.interpreter import interpret
from livens.lookup_tables import LOOKUP_OPERATION, table_of
from livens.types import Expr, ModelFunction

#: Elementary operations by their CasADi names.
OPERATIONS: dict[str, ModelFunction] = {
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
    LOOKUP_OPERATION: lambda index, table: table[np.clip(np.nan_to_num(index), 0, table.size - 1).astype(int)],
}
_BINARY_OPS = frozenset(
    "ADD SUB MUL DIV ATAN2 POW CONSTPOW FMIN FMAX FMOD HYPOT LT LE EQ NE AND OR IF_ELSE_ZERO".split()
) | {LOOKUP_OPERATION}

Entry = float | list[Any]


class Tape:
    """Growing tape without duplicate entries."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._index_of: dict[Any, int] = {}

    def append(self, *entry: Any) -> int:
        """Append a number, a coordinate, time or an operation unless it exists; return its index."""
        key = entry if isinstance(entry[0], str) else ("number", *entry)
        index = self._index_of.get(key)
        if index is None:
            index = self._index_of[key] = len(self.entries)
            self.entries.append(list(entry) if isinstance(entry[0], str) else entry[0])
        return index

    def inline(self, tape: Sequence[Entry], coordinates: Sequence[int]) -> list[int]:
        """Inline another tape with its coordinates mapped to these; return the indices of its entries."""
        indices: list[int] = []
        for entry in tape:
            if not isinstance(entry, list):
                indices.append(self.append(entry))
            elif entry[0] == "table":
                indices.append(self.append(*entry))
            elif entry[0] == "q":
                indices.append(self.append("q", int(coordinates[entry[1]])))
            else:
                indices.append(self.append(entry[0], *(indices[i] for i in entry[1:])))
        return indices


def record(q: Expr, t: Expr, expressions: Sequence[Any]) -> tuple[list[Entry], list[int]]:
    """Record expressions of the symbols q and t, or numbers; return the tape and the index of each expression."""
    tape = Tape()
    append = tape.append

    def apply(name: str, *operands: int) -> int:
        if name not in OPERATIONS:
            raise ModelError(f"a position cannot be computed with '{name}'")
        if name == LOOKUP_OPERATION:  # of an index and the number of a table
            index, number = operands
            values = table_of(float(tape.entries[number])).values  # type: ignore[arg-type]
            return append(name, index, append("table", *values.tolist()))
        return append(name, *operands)

    symbolic = [e for e in expressions if not isinstance(e, float)]
    inputs = [[("q", i) for i in range(q.numel())], [("t",)]]  # unused coordinates are not recorded

    def entry(value: Any) -> int:
        return append(*value) if isinstance(value, tuple) else int(value)

    results: list[Any] = []
    if symbolic:
        function = ca.Function("places", [q, t], [ca.densify(ca.vertcat(*symbolic))])
        (results,) = interpret(function, inputs, lambda c: (float(c),), lambda name, *a: apply(name, *map(entry, a)))  # type: ignore[arg-type]
    values = iter(results)
    indices = [append(e) if isinstance(e, float) else entry(next(values)) for e in expressions]
    return tape.entries, indices


def validate(tape: Any, coordinates: int) -> list[Entry]:
    """Return a validated tape from a file: only known operations on preceding entries."""
    for index, entry in enumerate(tape):
        if isinstance(entry, (int, float)):
            continue
        name, *operands = entry
        if name == "q":
            is_valid = len(operands) == 1 and isinstance(operands[0], int) and 0 <= operands[0] < coordinates
        elif name == "t":
            is_valid = not operands
        elif name == "table":
            is_valid = bool(operands) and all(isinstance(x, (int, float)) for x in operands)
        else:
            is_valid = name in OPERATIONS and len(operands) == (2 if name in _BINARY_OPS else 1)
            is_valid = is_valid and all(isinstance(i, int) and 0 <= i < index for i in operands)
            if name == LOOKUP_OPERATION:
                is_valid = is_valid and isinstance(tape[operands[1]], list) and tape[operands[1]][0] == "table"
        if not is_valid:
            raise ValueError(f"'{entry}' is not a valid operation of a scene")
    return list(tape)


def evaluate(tape: Sequence[Entry], q: np.ndarray, t: np.ndarray) -> list[Any]:
    """Evaluate a tape; return one value per row of q for each entry, or a number for constant entries.

    >>> evaluate([["q", 0], 2.0, ["MUL", 0, 1]], np.array([[1.0], [3.0]]), np.zeros(2))[2].tolist()
    [2.0, 6.0]
    """
    values: list[Any] = []
    with np.errstate(all="ignore"):  # points that are not finite are not drawn
        for entry in tape:
            if not isinstance(entry, list):
                values.append(float(entry))
            elif entry[0] == "q":
                values.append(q[:, entry[1]])
            elif entry[0] == "t":
                values.append(t)
            elif entry[0] == "table":
                values.append(np.array(entry[1:], dtype=float))
            else:
                values.append(OPERATIONS[entry[0]](*(values[i] for i in entry[1:])))
    return values
