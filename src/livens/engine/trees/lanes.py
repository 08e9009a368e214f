"""Members of an ensemble in SIMD lanes on the tree: arrays of a group of members, and their steps and output rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable
from typing import TypeVar, cast

import numpy as np

from livens.engine.arrays import aligned_zeros
from livens.engine.ensemble.lane_run import TimeGrid
from livens.engine.lowering.function import compile_unit
from livens.engine.lowering.types import Struct, signature_of
from livens.engine.newton.iteration import HISTORY
from livens.engine.observables.drift_monitor import maxima_count
from livens.engine.trees.arrays import TreeModel
from livens.engine.trees.lane_steps import (
    LaneData,
    LaneMonitor,
    LaneSteps,
    TreeLaneKernels,
    advance_in_lanes,
    begin_lanes,
    correct_lanes,
    expand_stored_rows,
    finish_lanes,
    start_lanes,
    store_lanes,
)
from livens.engine.trees.monitor import MONITOR_WIDTH
from livens.engine.trees.records import COMPACT

S = TypeVar("S", bound=Struct)
#: Number of lanes.
WIDTH = 8
#: Largest number of output rows between two expansions, and of steps per call of native code.
_MAX_ROWS, _MAX_STEPS = 64, 10_000
START, BEGIN, CORRECT, FINISH, STORE = (
    function.in_lanes(WIDTH)  # type: ignore[attr-defined]
    for function in (start_lanes, begin_lanes, correct_lanes, finish_lanes, store_lanes)
)
compile_unit(START, BEGIN, CORRECT, FINISH, STORE)


def _lane_array(size: int) -> np.ndarray:
    """Return zeros for entries with one number per lane."""
    return aligned_zeros(size * WIDTH)


def _in_lanes(arrays: S) -> S:
    """Return a copy of a struct with the same values in all lanes."""
    values = {}
    for name, native_type in signature_of(cast(Hashable, type(arrays))).items():
        values[name] = value = getattr(arrays, name)
        if native_type.element == "double":
            values[name] = _lane_array(value.size)
            values[name].reshape(-1, WIDTH)[:] = value[:, None]
    return type(arrays)(**values)


class LaneGroup:
    """Members of an ensemble that step together, one per lane; lanes without a member repeat another one.

    Parameters
    ----------
    model : TreeModel
        Tree without closures, used by this group alone.
    columns : ndarray, shape (n_columns,)
        Monitored columns of `livens.engine.trees.monitor.monitor_state`.
    momentum_sizes : ndarray, shape (n_momenta,)
        Number of columns of each momentum.
    """

    def __init__(self, model: TreeModel, columns: np.ndarray, momentum_sizes: np.ndarray) -> None:
        self._model, t = model, model.arrays
        assert t.n_closures == 0
        self._codes = model.kernels(WIDTH)  # keeps the addresses valid
        (laws, law_works), (forces, force_works) = (
            np.array([[code.address for code in pair] for pair in codes], dtype=np.int64).reshape(-1, 2).T.copy()
            for codes in self._codes
        )
        t = dataclasses.replace(
            t, law_kernel=laws, law_work_kernel=law_works, force_kernel=forces, force_work_kernel=force_works
        )
        self._tree, self._output, n = _in_lanes(t), _in_lanes(model.output), t.n_unknowns
        self._parameters = [
            (getattr(model.arrays, name), getattr(self._tree, name).reshape(-1, WIDTH))
            for name in ("records", "law_records", "law_inputs", "force_inputs")
        ]
        self._k = np.full((WIDTH, 0), np.nan)
        n_state = COMPACT * t.n_real
        self._data = LaneData(
            _lane_array(2),
            np.zeros(1, dtype=np.int64),
            _lane_array(model.output.n_state),
            _lane_array(n_state),
            _lane_array(6),
        )
        self.initial_row = _lane_array(len(columns)).reshape(-1, WIDTH)
        self.maxima = _lane_array(maxima_count(len(momentum_sizes))).reshape(-1, WIDTH)
        self.trusted = _lane_array(1)
        self._monitor = LaneMonitor(
            len(columns),
            np.ascontiguousarray(columns, dtype=np.int64),
            np.ascontiguousarray(momentum_sizes, dtype=np.int64),
            len(momentum_sizes),
            _lane_array(MONITOR_WIDTH),
            _lane_array(len(columns)),
            self.initial_row,
            _lane_array(1),
            self.maxima,
            self.trusted,
        )
        self.newton_iterations, self.failed = np.zeros(WIDTH, dtype=np.int64), np.zeros(WIDTH, dtype=np.int64)
        self._row_states, self._row_unknowns, self._row_work = (
            _lane_array((_MAX_ROWS + 1) * size) for size in (2 * n_state, n, 2)
        )
        self._kernels = TreeLaneKernels(*(function.address for function in (START, BEGIN, CORRECT, FINISH, STORE)))
        self._steps = LaneSteps(
            WIDTH,
            self._kernels,
            self._tree,
            self._output,
            self._data,
            self._monitor,
            _lane_array((HISTORY + 1) * n),
            _lane_array(2),
            self.newton_iterations,
            self.failed,
            self._row_states,
            self._row_unknowns,
            self._row_work,
        )

    def _set_parameters(self, k: np.ndarray) -> None:
        """Set the parameters of the members, one row per lane."""
        for lane in np.flatnonzero([not np.array_equal(*rows) for rows in zip(k, self._k, strict=True)]).tolist():
            self._model.set_parameters(k[lane])
            for source, target in self._parameters:
                target[:, lane] = source
        self._k = k

    def integrate(self, z: np.ndarray, k: np.ndarray, grid: TimeGrid, states: np.ndarray) -> None:
        """Integrate members from states z with parameters k over a time grid, and write their output rows.

        ``states[i]`` are the rows of member i after the first one. Lanes that `failed` are not complete.
        """
        lanes = np.minimum(np.arange(WIDTH), len(z) - 1)
        self._set_parameters(k[lanes])
        s, d = self._steps, self._data
        for array in (self.maxima, self.trusted, self.newton_iterations, self.failed):
            array[:] = 0
        d.z.reshape(-1, WIDTH)[:] = z[lanes].T
        d.step_time[WIDTH:] = grid.t0
        START(s.tree, s.output, d, s.monitor, s.X)
        done, rows = 0, grid.stride * _MAX_ROWS
        while done < grid.n_steps:
            n_steps = min(grid.n_steps - done, rows, _MAX_STEPS)
            is_last = done + n_steps == grid.n_steps and not grid.final_h
            if not advance_in_lanes(s, grid.h, grid.t0, done, n_steps, done + 1, grid.stride, is_last):
                return
            first = done // grid.stride + 1
            numbers = grid.steps_of_rows[first:]
            numbers = numbers[numbers <= done + n_steps] - 1
            self._expand(k, grid.h, grid.t0, numbers, states[:, first : first + len(numbers)], grid.stored)
            done += n_steps
        if grid.final_h:
            t = grid.t0 + grid.n_steps * grid.h
            if advance_in_lanes(s, grid.final_h, t, 0, 1, done + 1, 2, True):
                self._expand(k, grid.final_h, t, np.zeros(1, dtype=np.int64), states[:, -1:], grid.stored)

    def _expand(
        self, k: np.ndarray, h: float, t_origin: float, steps: np.ndarray, states: np.ndarray, stored: np.ndarray
    ) -> None:
        """Write the full states at the ends of steps to the output rows of the members."""
        model, n_rows = self._model, len(steps)
        if not n_rows:
            return
        steps, first = np.ascontiguousarray(steps, dtype=np.int64), np.zeros(1, dtype=np.int64)
        by_lane = [
            array.reshape(_MAX_ROWS + 1, -1, WIDTH)[:n_rows]
            for array in (self._row_states, self._row_unknowns, self._row_work)
        ]
        Z = np.zeros((n_rows, model.output.n_state))
        for lane in np.flatnonzero(self.failed[: len(states)] == 0).tolist():
            model.set_parameters(k[lane])
            rows, unknowns, work = (np.ascontiguousarray(array[:, :, lane]) for array in by_lane)
            expand_stored_rows(model.arrays, model.output, rows, unknowns, work, h, t_origin, steps, n_rows, first, Z)
            states[lane] = Z[:, stored]
