"""Look-up tables of compiled functions: arrays of numbers that expressions read at an index.

An expression of CasADi has no array. A look-up is a call of a function with two arguments, the index and the number of
the array, which is derived from its content; the code generator compiles it to one load. Derivatives of look-ups are
zero; in a graph they are calls with more arguments.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from livens.errors import InputError

#: Name of the operation in the instruction list of an expression graph.
LOOKUP_OPERATION = "CALL"
#: Largest number of cells of the search grid of a table with unequal intervals.
_MAX_CELLS = 4_000_000
#: Arrays by their number. They are kept: compiled functions contain their addresses.
_tables: dict[int, LookupTable] = {}


@dataclass(frozen=True, eq=False)
class LookupTable:
    """Array of a look-up with its CasADi function of (index, number)."""

    number: int
    values: np.ndarray
    function: ca.Function

    @property
    def symbol(self) -> str:
        """Name of the array in compiled code."""
        return symbol_name(self.number)


def symbol_name(number: float) -> str:
    """Return the name of an array in compiled code."""
    return f"livens_table_{int(number):013x}"


def table_of(number: float) -> LookupTable:
    """Return the registered table with a number."""
    return _tables[int(number)]


def registered_tables() -> list[LookupTable]:
    """Return all tables of this process."""
    return list(_tables.values())


def lookup(values: np.ndarray, index: Any) -> Any:
    """Return entry `index` of an array of numbers; `index` is an integer expression between 0 and its size minus 1."""
    values = np.ascontiguousarray(values, dtype=float).ravel()
    number = int(hashlib.sha256(values.tobytes()).hexdigest()[:13], 16)  # 52 bits: exact as a double
    table = _tables.get(number)
    if table is None:
        i, which = ca.MX.sym("i"), ca.MX.sym("which")
        function = ca.Function("lookup", [i, which], [ca.MX(ca.DM(values))[i]], {"never_inline": True})
        table = _tables[number] = LookupTable(number, values, function)
    return table.function(index, ca.SX(number))


def operate_lookup(index: Any, number: Any) -> Any:
    """Return the look-up of an expression graph, with the number of the table as a constant expression."""
    return table_of(float(number)).function(index, number)


def interval_index(u: object, breaks: np.ndarray) -> Any:
    """Return the number of breaks that are not greater than u, as an expression; exactly that of `numpy.searchsorted`.

    The interval is found by one comparison in the cell of a uniform grid with at most one break per cell.
    """
    widths = np.diff(breaks)
    n_cells = int(np.ceil((breaks[-1] - breaks[0]) / widths.min() * 1.001)) + 1
    if n_cells > max(_MAX_CELLS, 4 * len(breaks)):
        raise InputError(
            f"the smallest interval of a table of {len(breaks)} points is {widths.min():.1e}, less than 1/{_MAX_CELLS} "
            "of its range: resample the table with more equal intervals"
        )
    scale = n_cells / (breaks[-1] - breaks[0])
    cells = np.clip(np.floor((breaks - breaks[0]) * scale), 0, n_cells)
    before = np.searchsorted(cells, np.arange(n_cells + 1), side="left").astype(float)
    cell = ca.floor(ca.fmin(ca.fmax((u - breaks[0]) * scale, 0.0), float(n_cells)))
    first = lookup(before, cell)
    return first + (u >= lookup(np.append(breaks, np.inf), first))
