"""Rows of full states that are computed when they are read: most steps of a run are not stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


class LazyStates:
    """Full states of a chunk of steps as a sequence of rows; an index or a conversion to an array computes them.

    `expand` returns the states with the given numbers. `monitor` contains the monitored quantities of all states.
    """

    def __init__(
        self, expand: Callable[[np.ndarray], np.ndarray], numbers: np.ndarray, n_state: int, monitor: np.ndarray
    ) -> None:
        self._expand, self._numbers, self._n_state, self._monitor = expand, numbers, n_state, monitor

    @property
    def shape(self) -> tuple[int, int]:
        return len(self._numbers), self._n_state

    @property
    def monitor(self) -> np.ndarray:
        """Monitored quantities of these rows."""
        return self._monitor[self._numbers]

    def extended(self, columns: np.ndarray) -> LazyStates:
        """Return the states with further columns, one row of which belongs to each of the states of the chunk."""

        def expand(numbers: np.ndarray) -> np.ndarray:
            return np.hstack([self._expand(numbers), columns[numbers]])

        return LazyStates(expand, self._numbers, self._n_state + columns.shape[1], self._monitor)

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return LazyStates(self._expand, self._numbers[index], self._n_state, self._monitor)
        if isinstance(index, (int, np.integer)):
            return self._expand(self._numbers[int(index)].reshape(1))[0]
        if isinstance(index, np.ndarray) and index.dtype.kind == "i" and index.ndim == 1:
            return self._expand(self._numbers[index])
        return np.asarray(self)[index]

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        rows = self._expand(self._numbers)
        return rows if dtype is None else rows.astype(dtype)

    def copy(self) -> np.ndarray:
        """Return the rows as an array."""
        return np.asarray(self)
