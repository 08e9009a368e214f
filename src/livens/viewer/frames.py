"""Which rows of a run a film shows, and what stands in them."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import numpy as np

from livens.analysis.named import at_nodes
from livens.errors import InputError

if TYPE_CHECKING:
    from livens.results.result import Result

#: Numbers that one page may hold by default: some megabytes.
_NUMBERS = 1_500_000
_FEWEST, _MOST = 200, 6000
#: Numbers of a block that stays in the cache.
_CACHED = 50_000


def check_frames(frames: int | None) -> int | None:
    """A number of frames that somebody asks for."""
    if frames is not None and (isinstance(frames, bool) or not isinstance(frames, (int, np.integer)) or frames < 2):
        raise InputError(f"frames must be a whole number of at least 2, got {frames!r}")
    return frames


def chosen_rows(t: np.ndarray, moving: int, frames: int | None = None) -> np.ndarray:
    """Rows at equal distances in time: at most `frames`, or as many as a page can hold of so many moving numbers.

    >>> chosen_rows(np.linspace(0, 1, 1001), 10, 5).tolist()
    [0, 250, 500, 750, 1000]
    """
    count = check_frames(frames) or int(np.clip(_NUMBERS // max(1, moving), _FEWEST, _MOST))
    if len(t) <= count:
        return np.arange(len(t))
    times = np.linspace(t[0], t[-1], count)
    after = np.searchsorted(t, times).clip(1, len(t) - 1)
    nearer = np.where(times - t[after - 1] < t[after] - times, after - 1, after)
    return np.unique(nearer)


def where(result: Result) -> np.ndarray:
    """What the scene of a run is a function of: its coordinates, or the states of a model of these."""
    return np.asarray(result.q if "q" in result.stored else result.x)


def by_column(rows: np.ndarray) -> np.ndarray:
    """The same numbers column by column in memory; in blocks of rows, as the whole does not fit into the cache."""
    found = np.empty(rows.shape[::-1], dtype=rows.dtype)
    size = max(8, _CACHED // max(1, rows.shape[1]))
    for first in range(0, len(rows), size):
        found[:, first : first + size] = rows[first : first + size].T
    return found.T


def part(result: Result, rows: np.ndarray) -> Result:
    """A run with some of its rows only; multipliers, which belong to steps, are brought to the rows before."""
    chosen = slice(None) if len(rows) == len(result.t) else rows  # all of a long run are not copied
    arrays = {name: np.asarray(getattr(result, name))[chosen] for name in result.stored if name != "multipliers"}
    if "multipliers" in result.stored:
        arrays["multipliers"] = at_nodes(result).T[chosen]
    record = copy.copy(result.record)
    record.facts = copy.copy(result.facts)
    record.facts.every = max(2, result.facts.every)
    return type(result)(arrays, record, system=result._system, path=result.path)
