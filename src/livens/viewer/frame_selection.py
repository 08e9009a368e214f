"""Selection of the stored rows that are used as animation frames."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import numpy as np

from livens.analysis.signals import multipliers_at_nodes
from livens.errors import InputError

if TYPE_CHECKING:
    from livens.results.result import Result

#: Maximum number of values per page by default: some megabytes.
_MAX_VALUES = 1_500_000
_MIN_FRAMES, _MAX_FRAMES = 200, 6000
#: Number of values per block, which fits into the cache.
_CACHE_VALUES = 50_000


def check_frames(frames: int | None) -> int | None:
    """Check a number of frames."""
    if frames is not None and (isinstance(frames, bool) or not isinstance(frames, (int, np.integer)) or frames < 2):
        raise InputError(f"frames must be a whole number of at least 2, got {frames!r}")
    return frames


def select_rows(t: np.ndarray, n_moving: int, frames: int | None = None) -> np.ndarray:
    """Return rows at equal time intervals: at most `frames`, or as many as a page can hold for `n_moving` values.

    >>> select_rows(np.linspace(0, 1, 1001), 10, 5).tolist()
    [0, 250, 500, 750, 1000]
    """
    count = check_frames(frames) or int(np.clip(_MAX_VALUES // max(1, n_moving), _MIN_FRAMES, _MAX_FRAMES))
    if len(t) <= count:
        return np.arange(len(t))
    times = np.linspace(t[0], t[-1], count)
    after = np.searchsorted(t, times).clip(1, len(t) - 1)
    nearer = np.where(times - t[after - 1] < t[after] - times, after - 1, after)
    return np.unique(nearer)


def scene_coordinates(result: Result) -> np.ndarray:
    """Return the variable that the scene depends on: coordinates, or states of a first-order model."""
    return np.asarray(result.q if "q" in result.stored else result.x)


def to_column_major(rows: np.ndarray) -> np.ndarray:
    """Return the array in column-major order, transposed in blocks of rows that fit into the cache."""
    transposed = np.empty(rows.shape[::-1], dtype=rows.dtype)
    size = max(8, _CACHE_VALUES // max(1, rows.shape[1]))
    for start in range(0, len(rows), size):
        transposed[:, start : start + size] = rows[start : start + size].T
    return transposed.T


def with_rows(result: Result, rows: np.ndarray) -> Result:
    """Return a run with selected rows only; multipliers, which belong to steps, are averaged to the rows before."""
    selection = slice(None) if len(rows) == len(result.t) else rows  # avoids a copy of all rows
    arrays = {name: np.asarray(getattr(result, name))[selection] for name in result.stored if name != "multipliers"}
    if "multipliers" in result.stored:
        arrays["multipliers"] = multipliers_at_nodes(result).T[selection]
    record = copy.copy(result.record)
    record.info = copy.copy(result.info)
    record.info.every = max(2, result.info.every)
    return type(result)(arrays, record, system=result._system, path=result.path)
