"""Fast path of prepared fixed-step runs: all steps in one call of the compiled loop.

A hundred steps of a pendulum take ten microseconds, and a `Run` with its observers takes twenty times that. The fast
path is used if nothing needs to be observed between steps. If anything fails, the run is repeated by a `Run`, which
takes the same steps, bit for bit, and handles the failure.
"""

from __future__ import annotations

import functools
import math
import time
import weakref
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from livens.engine.compiled import CompiledStep
from livens.engine.newton import CORRECTIONS, DONE, SLOW_ITERATIONS
from livens.engine.pivots import SingularMatrixError
from livens.engine.short import Rows, short_run
from livens.engine.steps import Buffers, step_constants
from livens.results.checkpoint import Checkpoint
from livens.results.record import Record, Statistics
from livens.results.recorder import side_by_side
from livens.results.result import Result
from livens.run.beginning import TYPICAL_STEP, chunk_of, first_unknowns
from livens.run.extremes import explosion, summary_from, watched
from livens.run.march import whole_steps
from livens.run.plan import Plan

#: Key of the `FastRun` in the cache of a plan.
_NAME = "short run"
#: Index of the variables that are not part of the state.
_BESIDE = {"t": 0, "step_size": 1, "newton_iterations": 2}


def remember(plan: Plan, compiled: CompiledStep) -> None:
    """Enable the fast path for further runs of a plan after a successful run."""
    if _nothing_on_the_way(plan, compiled):
        plan.shared[_NAME] = ShortRun(plan, compiled)


def _nothing_on_the_way(plan: Plan, compiled: CompiledStep) -> bool:
    if plan.tier != "fused" or not plan.equal_steps or not compiled.size or compiled.dropped:
        return False
    controllers = getattr(plan.model, "controllers", ())
    if compiled.model.guards or controllers:
        return False
    steps, rest = whole_steps(plan.h, plan.t0, plan.t_end)
    most = chunk_of(plan.tier, compiled.layout.size + compiled.flat.size)
    return not rest and 0 < steps <= most and steps % plan.every == 0


def run_again(plan: Plan, begun: float, checkpoint: Callable[[], Checkpoint]) -> Result | None:
    """Return the result of the fast path, or None if it is not enabled or fails.

    `t_start` is the time at which preparation started. `checkpoint` computes the checkpoint for a longer run, lazily.
    """
    short: ShortRun | None = plan.shared.get(_NAME)
    compiled = None if short is None else short.compiled()
    return None if short is None or compiled is None else short.run(plan, compiled, begun, checkpoint)


class ShortRun:
    """Common data of the fast-path runs of a plan and of plans with other initial values or parameters."""

    def __init__(self, plan: Plan, compiled: CompiledStep) -> None:
        self.compiled = weakref.ref(compiled)
        self._facts = plan.facts(compiled)
        self._names = plan.variables(compiled)
        self._places, self._columns, _ = side_by_side(tuple(compiled.layout.sizes.items()), self._names)
        steps, _ = whole_steps(plan.h, plan.t0, plan.t_end)
        in_order = self._columns.stop if isinstance(self._columns, slice) else 0
        self._rows = Rows(plan.h, plan.t0, steps, int(plan.every), in_order, SLOW_ITERATIONS)
        self._count = steps // self._rows.every + 1
        self._typical = step_constants(TYPICAL_STEP, plan.t0, plan.model.parameter_vector())

    def run(
        self, plan: Plan, compiled: CompiledStep, begun: float, checkpoint: Callable[[], Checkpoint]
    ) -> Result | None:
        """Return the result, or None if not all steps were taken at once or a monitored value is invalid."""
        k, rows, known = plan.k, self._rows, self._facts
        initial = compiled.model.start(plan.start, k, plan.t0, plan.project, plan.redundant)
        of = watched(compiled, k)
        if initial.dropped or of.columns is None:
            return None
        z, x, c = first_unknowns(plan, compiled, initial)
        try:
            order = compiled.first_order(x, z, c, self._typical)
        except SingularMatrixError:
            return None
        seen, kept = np.zeros(of.columns.numbers), np.empty(self._count * (3 + rows.width))
        buffers = Buffers(k, compiled.flat.kind_sizes, 0, compiled.spare)
        w = buffers.begun(z, x, rows.steps)
        ready = time.perf_counter()
        try:
            if short_run(compiled.kernels(order), w, rows, of.columns, seen, kept) != DONE:
                return None
            corrections = w.told.item(CORRECTIONS)
            states = None if rows.width else w.Z[: rows.steps + 1 : rows.every, self._columns].copy()
        finally:
            buffers.release()
        found = seen.tolist()
        trusted, start = found[of.columns.largest + 1 : of.columns.largest + 3]
        # a sum is finite only if all terms are finite
        if not math.isfinite(sum(found[: of.columns.largest])) or explosion(of, start, trusted, found[0], found[2]):
            return None
        statistics = Statistics(rows.steps, corrections, time.perf_counter() - ready, ready - begun)
        statistics.count_forces(plan.scheme)
        record = Record(
            lambda: plan.facts_like(known),  # type: ignore[arg-type]  # evaluated lazily by the record
            functools.partial(  # type: ignore[arg-type]
                summary_from, of.energy, of.momenta, start, trusted, seen[: of.columns.largest]
            ),
            statistics,
            "complete",
            "",
            checkpoint,  # type: ignore[arg-type]
        )
        result = Result(_Columns(self._names, self._places, self._count, kept, states), record, system=plan.model)
        result._scheme = plan.scheme
        return result


class _Columns(Mapping[str, np.ndarray]):
    """Variables of a run by name, as views of the packed output of `livens.engine.short.short_run`."""

    def __init__(
        self,
        names: tuple[str, ...],
        places: Mapping[str, slice | int],
        count: int,
        kept: np.ndarray,
        states: np.ndarray | None,
    ) -> None:
        self._names, self._places, self._count, self._kept, self._states = names, places, count, kept, states

    def __getitem__(self, name: str) -> np.ndarray:
        count = self._count
        if name not in self._places:
            first = _BESIDE[name] * count
            part = self._kept[first : first + count]
            return part.view(np.int64) if name == "newton_iterations" else part
        if self._states is None:
            self._states = self._kept[3 * count :].reshape(count, -1)
        return self._states[:, self._places[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
