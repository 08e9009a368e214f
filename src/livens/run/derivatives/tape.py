"""Tape of a run for derivatives: states are stored, or recomputed from checkpoints, for the adjoint sweep."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from livens.engine.codegen.jit import NativeCode
from livens.engine.codegen.unrolled_lu import PivotOrder
from livens.engine.compiled_step import CompiledStep
from livens.engine.derivatives.kernels import MAX_GROWTH, adjoint_kernel, second_order_adjoint_kernel, tangent_kernel
from livens.engine.derivatives.sweeps import adjoint_sweep, second_order_sweep, tangent_sweep
from livens.engine.newton.markowitz import SingularMatrixError
from livens.engine.newton.step_size_control import initial_controller_state
from livens.engine.newton.time_loop import StepPolicy
from livens.engine.stepper import IntegratorState, Stepper, step_inputs
from livens.errors import IntegrationError
from livens.run.plan import Plan
from livens.run.schedule import BoundSchedule, Schedule
from livens.run.stepping import split_interval

#: Fewest steps between two checkpoints, and bytes of states between two checkpoints of small systems.
MIN_SEGMENT_STEPS, SEGMENT_BYTES = 2500, 1_000_000
#: Bytes of states that are stored even with checkpointing: those of the last steps, where the adjoint sweep starts.
#: Short runs are stored completely.
STORED_BYTES = 16_000_000


@dataclass
class Segment:
    """Fixed steps from a checkpoint: from step index `step0` on, on the time grid with this origin."""

    step0: int
    n_steps: int
    h: float
    origin: float
    state: IntegratorState
    stepper: dict[str, Any]
    #: Derivative of the step size by h of the run; times change by `step_offset` plus this factor times the step index.
    dh_scale: float = 1.0
    step_offset: int = 0
    Z: np.ndarray | None = None  # states before the steps, and unknowns of the steps, if stored
    X: np.ndarray | None = None
    k: np.ndarray | None = None  # parameters of the steps, if inputs change over time

    @property
    def t(self) -> float:
        """Time of the first step."""
        return self.origin + self.step0 * self.h

    @property
    def dt_dh(self) -> float:
        """Derivative of the time of the first step by h of the run."""
        return self.step_offset + self.dh_scale * self.step0


@dataclass
class Tape:
    """Recorded run, with derivatives of its states by the initial state and by c = (h, t, parameters)."""

    compiled: CompiledStep
    k: np.ndarray
    steps: int
    stepper: Stepper
    segments: list[Segment] = field(default_factory=list)
    #: Step indices of the observed states, their times, and the states.
    observed: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    t: np.ndarray = field(default_factory=lambda: np.zeros(0))
    states: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    #: Derivatives of the times of the observed states by h.
    dt_dh: np.ndarray = field(default_factory=lambda: np.zeros(0))
    #: Inputs over time, and the parameters at the observed states: those of the step that ends there.
    inputs: BoundSchedule | None = None
    observed_parameters: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))

    @property
    def c(self) -> np.ndarray:
        return step_inputs(0.0, 0.0, self.k)

    def segments_of_observed(self) -> list[Segment]:
        """Return the segments of the steps that end at the observed states; the first one for the initial state."""
        ends = [segment.step_offset + segment.step0 + segment.n_steps for segment in self.segments]
        return [self.segments[i] for i in np.searchsorted(ends, self.observed)]

    def replay(self, segment: Segment) -> tuple[np.ndarray, np.ndarray]:
        """Return the states before each step and the unknowns of a segment: stored, or recomputed bit for bit.

        Recomputed arrays belong to the stepper and are valid until its next steps.
        """
        if segment.Z is not None and segment.X is not None:
            return segment.Z, segment.X
        self.stepper.restore(segment.stepper)
        if segment.k is not None:
            self.stepper.set_parameters(segment.k)
        taken = self.stepper.advance(
            segment.state, segment.n_steps, _policy(segment), initial_controller_state(segment.h)
        )
        return np.ascontiguousarray(taken.states[:-1]), np.ascontiguousarray(taken.unknowns)

    # -- derivatives --------------------------------------------------------------------------------------------------
    def adjoint(self, cotangents: np.ndarray, samples: list[np.ndarray] | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the cotangents of the initial state and of c from those of the observed states (adjoint sweep).

        c = (h, t, parameters): h is the size of all steps and changes their times; t shifts all times. Cotangents of
        inputs over time are added to their `samples`.
        """
        nz, c = self.compiled.layout.size, self.c
        a, g, n_remaining, grad_h, times = np.zeros(nz), np.zeros(c.size + 1), len(self.observed), 0.0, np.zeros(2)
        cotangents = np.ascontiguousarray(cotangents, dtype=float)
        for segment in reversed(self.segments):
            Z, X = self.replay(segment)
            c = c if segment.k is None else step_inputs(0.0, 0.0, segment.k)
            local_steps, g[0] = self.observed - segment.step_offset, 0.0
            order, steps_left, tried_orders = self._pivot_order(segment), segment.n_steps, set[PivotOrder | None]()
            limit = MAX_GROWTH if order is not None else np.inf  # explicit schemes have no pivot growth
            while steps_left:
                kernel = self._adjoint(order)
                steps_before = steps_left
                grid = segment.step0, segment.h, segment.origin
                time_sensitivity = times, float(segment.step_offset), segment.dh_scale
                steps_left, n_remaining = adjoint_sweep(
                    kernel.address,
                    steps_left - 1,
                    *grid,
                    c,
                    Z,
                    X,
                    a,
                    g,
                    local_steps,
                    cotangents,
                    n_remaining,
                    limit,
                    *time_sensitivity,
                )
                if steps_left:
                    tried_orders = tried_orders if steps_left == steps_before else set()
                    order, limit = self._next_pivot_order(order, tried_orders, X[steps_left - 1], Z[steps_left - 1], c)
                    tried_orders.add(order)
            grad_h += segment.dh_scale * g[0]
            if self.inputs is not None and samples is not None:
                grad_h += self.inputs.pull_back(g[2:-1], segment.t, segment.dt_dh, samples)
        while n_remaining > 0:
            n_remaining -= 1
            a += cotangents[n_remaining]
        g[0], g[1] = grad_h + times[1], times[0]
        return a, g[:-1]

    def tangents(self, dz: np.ndarray, dc: np.ndarray) -> np.ndarray:
        """Return tangents of the observed states, shape (n_observed, n_directions, n_state)."""
        out = np.empty((len(self.observed), *dz.shape))
        out[self.observed == 0] = dz
        for segment, segment_tangents in self.propagate_tangents(dz, dc):
            step0 = segment.step_offset + segment.step0
            in_segment = (self.observed > step0) & (self.observed <= step0 + segment.n_steps)
            out[in_segment] = segment_tangents[self.observed[in_segment] - step0 - 1]
        return out

    def propagate_tangents(self, dz: np.ndarray, dc: np.ndarray) -> Iterator[tuple[Segment, np.ndarray]]:
        """Yield every segment with the tangents after each of its steps."""
        c, d = self.c, np.ascontiguousarray(np.hstack([dz, dc]), dtype=float)
        dc, workspace = np.ascontiguousarray(dc, dtype=float), np.empty(dz.size + 1)
        for segment in self.segments:
            Z, X = self.replay(segment)
            order, done, tried_orders, limit = self._pivot_order(segment), 0, set[PivotOrder | None](), MAX_GROWTH
            tangents = np.empty((segment.n_steps, *dz.shape))
            grid, time_sensitivity = (
                (segment.step0, segment.h, segment.origin),
                (dc, float(segment.step_offset), segment.dh_scale),
            )
            while done < segment.n_steps:
                done_before, kernel = done, self._tangent(order, len(d))
                done = tangent_sweep(
                    kernel.address, done, *grid, c, Z, X, d, workspace, tangents, limit, *time_sensitivity
                )
                if done < segment.n_steps:
                    tried_orders = tried_orders if done == done_before else set()
                    order, limit = self._next_pivot_order(order, tried_orders, X[done], Z[done], c)
                    tried_orders.add(order)
            yield segment, tangents

    def second_order(
        self, cotangents: np.ndarray, d_cotangents: np.ndarray, dz: np.ndarray, dc: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return a, g of `adjoint` and their tangents da, dg along one direction.

        The tangent is propagated once to obtain it at the start of every segment, and again within each segment.
        """
        starts = [dz]
        for _, tangents in self.propagate_tangents(dz[None], dc[None]):
            starts.append(tangents[-1, 0].copy())
        nz, c = self.compiled.layout.size, self.c
        a, da, g, dg, n_remaining = np.zeros(nz), np.zeros(nz), np.zeros(c.size), np.zeros(c.size), len(self.observed)
        cotangents, d_cotangents, dc = (
            np.ascontiguousarray(rows, dtype=float) for rows in (cotangents, d_cotangents, dc)
        )
        for index, segment in reversed(list(enumerate(self.segments))):
            Z, X = self.replay(segment)
            single_segment = replace(self, segments=[replace(segment, Z=Z, X=X)])
            ((_, tangents),) = single_segment.propagate_tangents(starts[index][None], dc[None])
            D = np.ascontiguousarray(np.vstack([starts[index], tangents[:-1, 0]]))
            order, steps_left, tried_orders, limit = (
                self._pivot_order(segment),
                segment.n_steps,
                set[PivotOrder | None](),
                MAX_GROWTH,
            )
            grid, local_steps = (segment.step0, segment.h, segment.origin), self.observed - segment.step_offset
            while steps_left:
                steps_before, kernel = steps_left, self._second(order)
                arrays, time_sensitivity = (
                    (c, Z, X, D, dc, a, da, g, dg, local_steps, cotangents, d_cotangents),
                    (float(segment.step_offset), segment.dh_scale),
                )
                steps_left, n_remaining = second_order_sweep(
                    kernel.address, steps_left - 1, *grid, *arrays, n_remaining, limit, *time_sensitivity
                )
                if steps_left:
                    tried_orders = tried_orders if steps_left == steps_before else set()
                    order, limit = self._next_pivot_order(order, tried_orders, X[steps_left - 1], Z[steps_left - 1], c)
                    tried_orders.add(order)
        for i in range(n_remaining):
            a, da = a + cotangents[i], da + d_cotangents[i]
        return a, g, da, dg

    def _pivot_order(self, segment: Segment) -> PivotOrder | None:
        if not self.compiled.flat_equations.size:
            return None
        rows, columns = (tuple(map(int, segment.stepper[name])) for name in ("row_order", "column_order"))
        return rows, columns

    def _next_pivot_order(
        self,
        order: PivotOrder | None,
        tried_orders: set[PivotOrder | None],
        x: np.ndarray,
        z: np.ndarray,
        c: np.ndarray,
    ) -> tuple[PivotOrder | None, float]:
        """Return a pivot order for the matrix of a step, and the allowed pivot growth."""
        try:
            new_order = self.compiled.pivot_order_for(x, z, c)
        except SingularMatrixError:
            return order, np.inf
        return (new_order, MAX_GROWTH) if new_order != order and new_order not in tried_orders else (new_order, np.inf)

    def _adjoint(self, order: PivotOrder | None) -> NativeCode:
        return self.compiled.cached(("adjoint", order), lambda: adjoint_kernel(self.compiled.flat_equations, order))

    def _tangent(self, order: PivotOrder | None, directions: int) -> NativeCode:
        key = "tangent", order, directions
        return self.compiled.cached(key, lambda: tangent_kernel(self.compiled.flat_equations, order, directions))

    def _second(self, order: PivotOrder | None) -> NativeCode:
        return self.compiled.cached(
            ("second", order), lambda: second_order_adjoint_kernel(self.compiled.flat_equations, order)
        )


def _policy(segment: Segment) -> StepPolicy:
    return StepPolicy(False, segment.h, segment.origin, segment.step0)


def observed_steps(plan: Plan, every: int | None) -> np.ndarray:
    """Return the step indices of the observed states: every `every`-th and the last one, or the last one only."""
    regular, rest = split_interval(plan.h, plan.t0, plan.t_end)
    steps = regular + bool(rest)
    step_indices = [] if every is None else list(range(0, regular + 1, every))
    return np.array(
        step_indices if step_indices and step_indices[-1] == steps else [*step_indices, steps], dtype=np.int64
    )


def record(
    plan: Plan, compiled: CompiledStep, state: IntegratorState, stepper: Stepper, observed: np.ndarray, keep: bool
) -> Tape:
    """Take the steps of a plan and record the tape; `observed` are the step indices of the observed states.

    With `keep` all states are stored, otherwise checkpoints and the last steps.
    """
    regular, rest = split_interval(plan.h, plan.t0, plan.t_end)
    tape = Tape(compiled, plan.k, regular + bool(rest), stepper)
    schedule = Schedule.of_samples(plan.inputs, "a derivative")
    if schedule is not None:
        tape.inputs = BoundSchedule(schedule, plan.model, plan.t0, plan.t_end, plan.h)
    tape.observed, tape.t = observed, np.where(observed <= regular, plan.t0 + observed * plan.h, plan.t_end)
    # a shortened last step ends at t_end: it becomes shorter as the others become longer
    tape.dt_dh = np.where(observed <= regular, observed, 0).astype(float)
    tape.states = np.empty((len(observed), compiled.layout.size))
    tape.states[observed == 0] = state.z
    k = plan.k
    tape.observed_parameters = np.tile(k, (len(observed), 1))
    n_values = compiled.layout.size + compiled.size
    size = max(MIN_SEGMENT_STEPS, SEGMENT_BYTES // (8 * n_values))
    segments = [(n, count, plan.h, plan.t0, 1.0, 0) for n, count in _chunks(plan, tape.inputs, regular, size)]
    if rest:
        segments.append((0, 1, rest, plan.t0 + regular * plan.h, -float(regular), regular))
    done, first_stored_step = 0, 0 if keep else tape.steps - STORED_BYTES // (8 * n_values)
    for step0, n_steps, h, origin, dh_scale, step_offset in segments:
        segment = Segment(step0, n_steps, h, origin, state, stepper.checkpoint(), dh_scale, step_offset)
        if tape.inputs is not None:
            k = segment.k = k.copy()
            tape.inputs.apply(k, segment.t)
            stepper.set_parameters(k)
        state, states = record_segment(
            segment, stepper, done >= first_stored_step, last=first_stored_step <= 0 and done + n_steps == tape.steps
        )
        in_segment = (observed > done) & (observed <= done + n_steps)
        tape.states[in_segment] = states[observed[in_segment] - done - 1]
        tape.observed_parameters[in_segment] = k
        if not done:
            tape.observed_parameters[observed == 0] = k
        tape.segments.append(segment)
        done += n_steps
    return tape


def _chunks(plan: Plan, inputs: BoundSchedule | None, n_steps: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield first step and number of steps of chunks of at most `size` regular steps with constant inputs."""
    n = 0
    while n < n_steps:
        count = min(size, n_steps - n)
        count = count if inputs is None else min(count, inputs.steps_until_change(plan.t0 + n * plan.h))
        yield n, count
        n += count


def record_segment(
    segment: Segment, stepper: Stepper, keep: bool, last: bool = False
) -> tuple[IntegratorState, np.ndarray]:
    """Take the steps of a segment and store its states if `keep`; return the final state and the states after steps.

    If these are the `last` steps of the stepper, its arrays are not copied.
    """
    taken = stepper.advance(segment.state, segment.n_steps, _policy(segment), initial_controller_state(segment.h))
    if taken.failure is not None:
        raise IntegrationError(f"the step from t = {taken.final.t:.9g} failed: {taken.failure.reason}")
    if keep and last:
        segment.Z, segment.X = np.ascontiguousarray(taken.states[:-1]), np.ascontiguousarray(taken.unknowns)
    elif keep:
        segment.Z, segment.X = taken.states[:-1].copy(), taken.unknowns.copy()
    return taken.final, taken.end_states
