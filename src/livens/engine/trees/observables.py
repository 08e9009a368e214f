"""Monitored quantities of runs of the tree tier, as a table of the drift monitor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from livens.engine.observables.drift_monitor import accumulate_rows
from livens.engine.trees.lazy_states import LazyStates
from livens.engine.trees.monitor import MONITOR_WIDTH, NET_WORK
from livens.engine.trees.output import monitor_compact_states
from livens.models.system import System

if TYPE_CHECKING:
    from livens.engine.compiled_step import CompiledStep

#: Columns of the momenta that the tree tier evaluates, by the dimension of space.
_MOMENTUM_COLUMNS: dict[int, dict[str, tuple[int, ...]]] = {
    2: dict(linear_momentum=(4, 5), angular_momentum=(9,)),
    3: dict(linear_momentum=(4, 5, 6), angular_momentum=(7, 8, 9)),
}


class TreeObservables:
    """Energy, constraint residuals and momenta of states; those of a chunk of steps are computed by the stepper."""

    def __init__(self, compiled: CompiledStep, momenta: Sequence[str]) -> None:
        self._compiled = compiled
        assert isinstance(compiled.model, System)
        is_planar = any(frame.dimension == 2 for frame in compiled.model.frames)
        columns = [_MOMENTUM_COLUMNS[2 if is_planar else 3][name] for name in momenta]
        #: Monitored columns of `livens.engine.trees.monitor.monitor_state`.
        self.columns = np.array([0, 1, 2, 3, *(i for entries in columns for i in entries)])
        self.width = len(self.columns)
        self.momentum_sizes = np.array([len(entries) for entries in columns], dtype=np.int64)

    @staticmethod
    def supports(momenta: Sequence[str]) -> bool:
        """Return True if the tree tier evaluates all these momenta."""
        return all(name in _MOMENTUM_COLUMNS[3] for name in momenta)

    def _rows(self, t: np.ndarray, Z: np.ndarray | LazyStates, k: np.ndarray) -> np.ndarray:
        if isinstance(Z, LazyStates):
            return Z.monitor
        model, rows = self._compiled.make_tree_model(k), np.zeros((len(t), MONITOR_WIDTH))
        supplied, states = model.output.supplied, model.compact_states(np.asarray(Z))
        times = np.ascontiguousarray(t, dtype=float)
        n_rows, n_state = states.shape
        monitor_compact_states(model.arrays, states, times, rows, n_rows, n_state, MONITOR_WIDTH)
        rows[:, NET_WORK] = Z[:, supplied] - Z[:, supplied + 1]
        self._compiled.release_tree_model(model)
        return rows

    def __call__(self, t: np.ndarray, Z: np.ndarray | LazyStates, k: np.ndarray) -> np.ndarray:
        """Return one row of monitored quantities for each state."""
        return self._rows(t, Z, k)[:, self.columns]

    def accumulate(
        self,
        t: np.ndarray,
        Z: np.ndarray | LazyStates,
        k: np.ndarray,
        supplied_index: int,
        is_start: bool,
        initial_row: np.ndarray,
        last_energy: np.ndarray,
        *monitor: np.ndarray,
    ) -> None:
        """Update the drift monitor, see `livens.engine.observables.drift_monitor.accumulate_states`."""
        rows = self._rows(t, Z, k)
        table, net_work = np.ascontiguousarray(rows[:, self.columns]), np.ascontiguousarray(rows[:, NET_WORK])
        if is_start:
            initial_row[:] = table[0]
            last_energy[0] = table[0, 0] - net_work[0]
        accumulate_rows(table, net_work, initial_row, last_energy, *monitor)
