"""Short runs of a prepared step: all steps in one call of the compiled loop, and nothing on the way to look at.

A hundred steps of a pendulum take ten microseconds, and a `Run` with everybody who may look on takes twenty times that.
Here is what is left of it where nothing can happen on the way. Whatever does not go smoothly is left to a `Run`, which
takes the same steps again, bit for bit, and knows what to do.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from livens.engine import loop
from livens.engine.compiled import CompiledStep
from livens.engine.newton import DONE, SLOW_ITERATIONS
from livens.engine.pivots import SingularMatrixError
from livens.engine.step_size import NO_CONTROL
from livens.engine.steps import Buffers, step_constants
from livens.expressions.numbers import all_finite
from livens.results.checkpoint import Checkpoint
from livens.results.record import Record, Statistics
from livens.results.recorder import side_by_side
from livens.results.result import Result
from livens.run.extremes import Extremes
from livens.run.march import NO_FLOW, equal_policy, whole_steps
from livens.run.plan import Plan
from livens.run.run import TYPICAL_STEP, Run, chunk_of

#: Under this name a plan shares it with those that differ from it only in where they start and in parameters.
_NAME = "short run"


def remember(plan: Plan, compiled: CompiledStep) -> None:
    """A run of this plan went well: the next ones like it may be short."""
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
    """A short run, if one like it was made before and nothing is wrong with this one; else None.

    `begun` is when getting ready began. From where a longer run goes on is hardly ever asked: `checkpoint` says it.
    """
    short: ShortRun | None = plan.shared.get(_NAME)
    compiled = None if short is None else short.compiled()
    return None if short is None or compiled is None else short.run(plan, compiled, begun, checkpoint)


class ShortRun:
    """What short runs of a plan, and of plans that differ only in where they start, have in common."""

    def __init__(self, plan: Plan, compiled: CompiledStep) -> None:
        self.compiled = weakref.ref(compiled)
        self._facts = plan.facts(compiled)
        self._steps, _ = whole_steps(plan.h, plan.t0, plan.t_end)
        self._policy = equal_policy(plan.h, plan.t0, 0)
        self._names, self._every = plan.variables(compiled), int(plan.every)
        self._places, self._columns, _ = side_by_side(tuple(compiled.layout.sizes.items()), self._names)
        self._typical = step_constants(TYPICAL_STEP, plan.t0, plan.model.parameter_vector())

    def run(
        self, plan: Plan, compiled: CompiledStep, begun: float, checkpoint: Callable[[], Checkpoint]
    ) -> Result | None:
        """None if not all of its steps were taken at once, or something is wrong with them."""
        k, steps, known = plan.k, self._steps, self._facts
        initial = compiled.model.start(plan.start, k, plan.t0, plan.project, plan.redundant)
        if initial.dropped:
            return None
        carry, c = Run.first_carry(plan, compiled, initial)
        try:
            order = compiled.first_order(carry.x[-1], carry.z, c, self._typical)
        except SingularMatrixError:
            return None
        kernels = compiled.kernels(order)
        buffers = Buffers(k, compiled.flat.kind_sizes, 0, compiled.spare)
        w = buffers.filled(carry, steps)
        ready = time.perf_counter()
        try:
            status, _ = loop.advance(kernels, self._policy, NO_CONTROL, NO_FLOW, w, 0, steps, SLOW_ITERATIONS)
            if status != DONE or not all_finite(w.Z[steps]):
                return None
            times, sizes, counts = np.empty(steps + 1), np.empty(steps + 1), np.empty(steps + 1, dtype=np.int64)
            corrections = loop.told(w.iterations, plan.t0, plan.h, times, sizes, counts)
            states = w.Z[: steps + 1]
            extremes = Extremes(compiled, k)
            extremes.take(times, states)
            if extremes.exploded():
                return None
            rows = states[:: self._every, self._columns].copy()
        finally:
            buffers.release()
        kept = {"t": times, "step_size": sizes, "newton_iterations": counts}
        if self._every > 1:
            kept = {name: array[:: self._every].copy() for name, array in kept.items()}
        statistics = Statistics(steps, corrections, time.perf_counter() - ready, ready - begun)
        statistics.count_forces(plan.scheme)
        record = Record(
            lambda: plan.facts_like(known),  # type: ignore[arg-type]  # a record asks for what it is asked
            extremes.summary_later(),  # type: ignore[arg-type]
            statistics,
            "complete",
            "",
            checkpoint,  # type: ignore[arg-type]
        )
        result = Result(_Columns(self._names, kept, rows, self._places), record, system=plan.model)
        result._scheme = plan.scheme
        return result


class _Columns(Mapping[str, np.ndarray]):
    """The variables of a run by name: those of the state are columns of one array."""

    def __init__(
        self, names: tuple[str, ...], kept: dict[str, np.ndarray], rows: np.ndarray, places: Mapping[str, slice | int]
    ) -> None:
        self._names, self._kept, self._rows, self._places = names, kept, rows, places

    def __getitem__(self, name: str) -> np.ndarray:
        return self._rows[:, self._places[name]] if name in self._places else self._kept[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
