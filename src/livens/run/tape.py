"""Tape of a run for derivatives: states are stored, or recomputed from checkpoints, for the adjoint sweep."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from livens.engine.compiled import CompiledStep
from livens.engine.factors import Order
from livens.engine.loop import Policy
from livens.engine.native import Code
from livens.engine.pivots import SingularMatrixError
from livens.engine.step_size import flow
from livens.engine.steps import Carry, Stepper
from livens.engine.sweeps import sweep_back, sweep_forth, sweep_second
from livens.engine.tangent import GROWTH_LIMIT, adjoint_kernel, second_kernel, tangent_kernel
from livens.errors import IntegrationError
from livens.run.march import whole_steps
from livens.run.plan import Plan

#: Fewest steps between two checkpoints, and bytes of states between two checkpoints of small systems.
CHUNK, CHUNK_BYTES = 2500, 1_000_000
#: Bytes of states that are stored even with checkpointing: those of the last steps, where the adjoint sweep starts.
#: Short runs are stored completely.
KEPT_BYTES = 16_000_000


@dataclass
class Chunk:
    """Fixed steps from a checkpoint: from step index `step0` on, on the time grid with this origin."""

    first: int
    count: int
    h: float
    origin: float
    carry: Carry
    stepper: dict[str, Any]
    #: Derivative of the step size by h of the run; times change by `step_offset` plus this factor times the step index.
    stretch: float = 1.0
    offset: int = 0
    Z: np.ndarray | None = None  # states before the steps, and unknowns of the steps, if stored
    X: np.ndarray | None = None


@dataclass
class Tape:
    """Recorded run, with derivatives of its states by the initial state and by c = (h, t, parameters)."""

    compiled: CompiledStep
    k: np.ndarray
    steps: int
    stepper: Stepper
    chunks: list[Chunk] = field(default_factory=list)
    #: Step indices of the observed states, their times, and the states.
    at: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    t: np.ndarray = field(default_factory=lambda: np.zeros(0))
    states: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    #: Derivatives of the times of the observed states by h.
    t_by_h: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @property
    def c(self) -> np.ndarray:
        return np.concatenate([[0.0, 0.0], self.k])

    def steps_of(self, chunk: Chunk) -> tuple[np.ndarray, np.ndarray]:
        """Return the states before each step and the unknowns of a segment: stored, or recomputed bit for bit.

        Recomputed arrays belong to the stepper and are valid until its next steps.
        """
        if chunk.Z is not None and chunk.X is not None:
            return chunk.Z, chunk.X
        self.stepper.restore(chunk.stepper)
        taken = self.stepper.advance(chunk.carry, chunk.count, _policy(chunk), flow(chunk.h))
        return np.ascontiguousarray(taken.states[:-1]), np.ascontiguousarray(taken.X)

    # -- derivatives --------------------------------------------------------------------------------------------------
    def back(self, bars: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the cotangents of the initial state and of c from those of the observed states (adjoint sweep).

        c = (h, t, parameters): h is the size of all steps and changes their times; t shifts all times.
        """
        nz, c = self.compiled.layout.size, self.c
        a, g, left, by_h, times = np.zeros(nz), np.zeros(c.size + 1), len(self.at), 0.0, np.zeros(2)
        bars = np.ascontiguousarray(bars, dtype=float)
        for chunk in reversed(self.chunks):
            Z, X = self.steps_of(chunk)
            at, g[0] = self.at - chunk.offset, 0.0
            order, todo, tried = self._order(chunk), chunk.count, set[Order | None]()
            limit = GROWTH_LIMIT if order is not None else np.inf  # explicit schemes have no pivot growth
            while todo:
                kernel = self._adjoint(order)
                done = todo
                where = chunk.first, chunk.h, chunk.origin
                moving = times, float(chunk.offset), chunk.stretch
                todo, left = sweep_back(kernel.address, todo - 1, *where, c, Z, X, a, g, at, bars, left, limit, *moving)
                if todo:
                    tried = tried if todo == done else set()
                    order, limit = self._other(order, tried, X[todo - 1], Z[todo - 1], c)
                    tried.add(order)
            by_h += chunk.stretch * g[0]
        while left > 0:
            left -= 1
            a += bars[left]
        g[0], g[1] = by_h + times[1], times[0]
        return a, g[:-1]

    def forth(self, dz: np.ndarray, dc: np.ndarray) -> np.ndarray:
        """Return tangents of the observed states, shape (n_observed, n_directions, n_state)."""
        out = np.empty((len(self.at), *dz.shape))
        out[self.at == 0] = dz
        for chunk, kept in self.directions_through(dz, dc):
            before = chunk.offset + chunk.first
            here = (self.at > before) & (self.at <= before + chunk.count)
            out[here] = kept[self.at[here] - before - 1]
        return out

    def directions_through(self, dz: np.ndarray, dc: np.ndarray) -> Iterator[tuple[Chunk, np.ndarray]]:
        """Yield every segment with the tangents after each of its steps."""
        c, d = self.c, np.ascontiguousarray(np.hstack([dz, dc]), dtype=float)
        dc, new = np.ascontiguousarray(dc, dtype=float), np.empty(dz.size + 1)
        for chunk in self.chunks:
            Z, X = self.steps_of(chunk)
            order, done, tried, limit = self._order(chunk), 0, set[Order | None](), GROWTH_LIMIT
            kept = np.empty((chunk.count, *dz.shape))
            where, moving = (chunk.first, chunk.h, chunk.origin), (dc, float(chunk.offset), chunk.stretch)
            while done < chunk.count:
                before, kernel = done, self._tangent(order, len(d))
                done = sweep_forth(kernel.address, done, *where, c, Z, X, d, new, kept, limit, *moving)
                if done < chunk.count:
                    tried = tried if done == before else set()
                    order, limit = self._other(order, tried, X[done], Z[done], c)
                    tried.add(order)
            yield chunk, kept

    def second(
        self, bars: np.ndarray, dbars: np.ndarray, dz: np.ndarray, dc: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return a, g of `adjoint` and their tangents da, dg along one direction.

        The tangent is propagated once to obtain it at the start of every segment, and again within each segment.
        """
        starts = [dz]
        for _, kept in self.directions_through(dz[None], dc[None]):
            starts.append(kept[-1, 0].copy())
        nz, c = self.compiled.layout.size, self.c
        a, da, g, dg, left = np.zeros(nz), np.zeros(nz), np.zeros(c.size), np.zeros(c.size), len(self.at)
        bars, dbars, dc = (np.ascontiguousarray(rows, dtype=float) for rows in (bars, dbars, dc))
        for number, chunk in reversed(list(enumerate(self.chunks))):
            Z, X = self.steps_of(chunk)
            alone = replace(self, chunks=[replace(chunk, Z=Z, X=X)])
            ((_, kept),) = alone.directions_through(starts[number][None], dc[None])
            D = np.ascontiguousarray(np.vstack([starts[number], kept[:-1, 0]]))
            order, todo, tried, limit = self._order(chunk), chunk.count, set[Order | None](), GROWTH_LIMIT
            where, at = (chunk.first, chunk.h, chunk.origin), self.at - chunk.offset
            while todo:
                done, kernel = todo, self._second(order)
                given, moving = (c, Z, X, D, dc, a, da, g, dg, at, bars, dbars), (float(chunk.offset), chunk.stretch)
                todo, left = sweep_second(kernel.address, todo - 1, *where, *given, left, limit, *moving)
                if todo:
                    tried = tried if todo == done else set()
                    order, limit = self._other(order, tried, X[todo - 1], Z[todo - 1], c)
                    tried.add(order)
        for i in range(left):
            a, da = a + bars[i], da + dbars[i]
        return a, g, da, dg

    def _order(self, chunk: Chunk) -> Order | None:
        if not self.compiled.flat.size:
            return None
        rows, columns = (tuple(map(int, chunk.stepper[name])) for name in ("row_order", "column_order"))
        return rows, columns

    def _other(
        self, order: Order | None, tried: set[Order | None], x: np.ndarray, z: np.ndarray, c: np.ndarray
    ) -> tuple[Order | None, float]:
        """Return a pivot order for the matrix of a step, and the allowed pivot growth."""
        try:
            found = self.compiled.order_for(x, z, c)
        except SingularMatrixError:
            return order, np.inf
        return (found, GROWTH_LIMIT) if found != order and found not in tried else (found, np.inf)

    def _adjoint(self, order: Order | None) -> Code:
        return self.compiled.once(("adjoint", order), lambda: adjoint_kernel(self.compiled.flat, order))

    def _tangent(self, order: Order | None, directions: int) -> Code:
        key = "tangent", order, directions
        return self.compiled.once(key, lambda: tangent_kernel(self.compiled.flat, order, directions))

    def _second(self, order: Order | None) -> Code:
        return self.compiled.once(("second", order), lambda: second_kernel(self.compiled.flat, order))


def _policy(chunk: Chunk) -> Policy:
    return Policy(False, chunk.h, chunk.origin, chunk.first)


def observed_numbers(plan: Plan, every: int | None) -> np.ndarray:
    """Return the step indices of the observed states: every `every`-th and the last one, or the last one only."""
    regular, rest = whole_steps(plan.h, plan.t0, plan.t_end)
    steps = regular + bool(rest)
    numbers = [] if every is None else list(range(0, regular + 1, every))
    return np.array(numbers if numbers and numbers[-1] == steps else [*numbers, steps], dtype=np.int64)


def recorded(plan: Plan, compiled: CompiledStep, carry: Carry, stepper: Stepper, at: np.ndarray, keep: bool) -> Tape:
    """Take the steps of a plan and record the tape; `observed` are the step indices of the observed states.

    With `keep` all states are stored, otherwise checkpoints and the last steps.
    """
    regular, rest = whole_steps(plan.h, plan.t0, plan.t_end)
    tape = Tape(compiled, plan.k, regular + bool(rest), stepper)
    tape.at, tape.t = at, np.where(at <= regular, plan.t0 + at * plan.h, plan.t_end)
    # a shortened last step ends at t_end: it becomes shorter as the others become longer
    tape.t_by_h = np.where(at <= regular, at, 0).astype(float)
    tape.states = np.empty((len(at), compiled.layout.size))
    tape.states[at == 0] = carry.z
    numbers = compiled.layout.size + compiled.size
    size = max(CHUNK, CHUNK_BYTES // (8 * numbers))
    todo = [(first, min(size, regular - first), plan.h, plan.t0, 1.0, 0) for first in range(0, regular, size)]
    if rest:
        todo.append((0, 1, rest, plan.t0 + regular * plan.h, -float(regular), regular))
    done, spared = 0, 0 if keep else tape.steps - KEPT_BYTES // (8 * numbers)
    for first, count, h, origin, stretch, offset in todo:
        chunk = Chunk(first, count, h, origin, carry, stepper.state(), stretch, offset)
        carry, states = advanced(chunk, stepper, done >= spared, last=spared <= 0 and done + count == tape.steps)
        here = (at > done) & (at <= done + count)
        tape.states[here] = states[at[here] - done - 1]
        tape.chunks.append(chunk)
        done += count
    return tape


def advanced(chunk: Chunk, stepper: Stepper, keep: bool, last: bool = False) -> tuple[Carry, np.ndarray]:
    """Take the steps of a segment and store its states if `keep`; return the final state and the states after steps.

    If these are the `last` steps of the stepper, its arrays are not copied.
    """
    taken = stepper.advance(chunk.carry, chunk.count, _policy(chunk), flow(chunk.h))
    if taken.trouble is not None:
        raise IntegrationError(f"the step from t = {taken.carry.t:.9g} failed: {taken.trouble.reason}")
    if keep and last:
        chunk.Z, chunk.X = np.ascontiguousarray(taken.states[:-1]), np.ascontiguousarray(taken.X)
    elif keep:
        chunk.Z, chunk.X = taken.states[:-1].copy(), taken.X.copy()
    return taken.carry, taken.Z
