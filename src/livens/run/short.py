"""Short runs: all steps in one call of the compiled loop, and nothing on the way to look at.

A run of a hundred steps takes some ten microseconds of stepping, and a `Run` with everybody who may look on takes ten
times that. Here is what is left of it where nothing can happen on the way. Whatever does not go smoothly is left to a
`Run`, which takes the same steps again, bit for bit, and knows what to do.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from livens.engine import loop
from livens.engine.compiled import CompiledStep
from livens.engine.fold import fold_states
from livens.engine.jit import ready
from livens.engine.newton import DONE, SLOW_ITERATIONS
from livens.engine.pivots import SingularMatrixError
from livens.engine.step_size import NO_CONTROL
from livens.engine.steps import Buffers, step_constants
from livens.expressions.numbers import all_finite
from livens.models.model import InitialState
from livens.results.checkpoint import Checkpoint
from livens.results.record import Facts, Record, Statistics
from livens.results.recorder import side_by_side
from livens.results.result import Result
from livens.run.extremes import Extremes
from livens.run.march import NO_FLOW, equal_policy, whole_steps
from livens.run.plan import Plan
from livens.run.run import TYPICAL_STEP, Run, chunk_of


class ShortRun:
    """What short runs of a plan, and of plans that differ only in where they start, have in common."""

    def __init__(self, plan: Plan, compiled: CompiledStep) -> None:
        self._steps, _ = whole_steps(plan.h, plan.t0, plan.t_end)
        self._policy = equal_policy(plan.h, plan.t0, 0)
        self._names = plan.variables(compiled)
        self._places, self._columns, _ = side_by_side(tuple(compiled.layout.sizes.items()), self._names)
        self._every = int(plan.every)
        self._typical = step_constants(TYPICAL_STEP, plan.t0, plan.model.parameter_vector())

    @classmethod
    def of(cls, plan: Plan, compiled: CompiledStep) -> ShortRun | None:
        """None if there is something on the way: events, controllers, a last step that is shorter."""
        if plan.tier != "fused" or not plan.equal_steps or not compiled.flat.size:
            return None
        if compiled.model.guards or getattr(plan.model, "controllers", ()):
            return None
        steps, rest = whole_steps(plan.h, plan.t0, plan.t_end)
        most = chunk_of(plan.tier, compiled.layout.size + compiled.flat.size)
        if rest or not 0 < steps <= most or steps % plan.every:
            return None
        return cls(plan, compiled)

    def run(
        self,
        plan: Plan,
        compiled: CompiledStep,
        facts: Facts,
        initial: InitialState,
        checkpoint: Callable[[], Checkpoint],
        compile_s: float,
    ) -> Result | None:
        """A run from this state; None if not all of its steps were taken at once, or something is wrong with them.

        From where a longer run goes on is hardly ever asked: `checkpoint` says it then.
        """
        if not ready(loop.advance) or not ready(fold_states):
            return None  # a `Run` compiles them before it begins
        k, steps, begun = plan.k, self._steps, time.perf_counter()
        carry, c = Run.first_carry(plan, compiled, initial)
        try:
            order = compiled.first_order(carry.x[-1], carry.z, c, self._typical)
        except SingularMatrixError:
            return None
        buffers = Buffers(k, compiled.flat.kind_sizes, 0, compiled.spare)
        w = buffers.filled(carry, steps)
        try:
            status, _ = loop.advance(
                compiled.kernels(order), self._policy, NO_CONTROL, NO_FLOW, w, 0, steps, SLOW_ITERATIONS
            )
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
        places = self._places
        arrays = {name: rows[:, places[name]] if name in places else kept[name] for name in self._names}
        statistics = Statistics(steps, corrections, time.perf_counter() - begun, compile_s)
        record = Record(facts, extremes.summary_later(), statistics, "complete", "", checkpoint)  # type: ignore[arg-type]
        result = Result(arrays, record, system=plan.model)
        result._scheme = plan.scheme
        return result
