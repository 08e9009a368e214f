"""A run with its derivatives: what the way back needs is kept, or computed again from checkpoints."""

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

#: Steps between two checkpoints: at least so many, and of small systems as many as have these bytes.
CHUNK, CHUNK_BYTES = 2500, 1_000_000
#: Of a run that is computed again from checkpoints, this many bytes are kept all the same: those of its last steps,
#: with which the way back begins. Short runs are kept as a whole.
KEPT_BYTES = 16_000_000


@dataclass
class Chunk:
    """Equal steps, from a checkpoint: number `first` on, counted from `origin`."""

    first: int
    count: int
    h: float
    origin: float
    carry: Carry
    stepper: dict[str, Any]
    #: How fast h of the run changes that of the steps, and their times: by `offset` plus this times their number.
    stretch: float = 1.0
    offset: int = 0
    Z: np.ndarray | None = None  # states before the steps, and unknowns, if they are kept
    X: np.ndarray | None = None


@dataclass
class Tape:
    """A run that was taken, and derivatives of its states by its initial state and by c = (h, t, parameters)."""

    compiled: CompiledStep
    k: np.ndarray
    steps: int
    stepper: Stepper
    chunks: list[Chunk] = field(default_factory=list)
    #: Numbers of the states that are observed, and the states.
    at: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    t: np.ndarray = field(default_factory=lambda: np.zeros(0))
    states: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    #: How fast the times of observed states move if h changes.
    t_by_h: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @property
    def c(self) -> np.ndarray:
        return np.concatenate([[0.0, 0.0], self.k])

    def steps_of(self, chunk: Chunk) -> tuple[np.ndarray, np.ndarray]:
        """States before each step of a chunk, and its unknowns: kept, or computed again, bit for bit.

        What was computed again stands in arrays of the stepper, until it takes other steps.
        """
        if chunk.Z is not None and chunk.X is not None:
            return chunk.Z, chunk.X
        self.stepper.restore(chunk.stepper)
        taken = self.stepper.advance(chunk.carry, chunk.count, _policy(chunk), flow(chunk.h))
        return np.ascontiguousarray(taken.states[:-1]), np.ascontiguousarray(taken.X)

    # -- derivatives --------------------------------------------------------------------------------------------------
    def back(self, bars: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Derivatives of a sum by the initial state and by c, from those by the observed states.

        c = (h, t, parameters): h is that of all steps, whose times go with it, t moves all of them alike.
        """
        nz, c = self.compiled.layout.size, self.c
        a, g, left, by_h, times = np.zeros(nz), np.zeros(c.size + 1), len(self.at), 0.0, np.zeros(2)
        bars = np.ascontiguousarray(bars, dtype=float)
        for chunk in reversed(self.chunks):
            Z, X = self.steps_of(chunk)
            at, g[0] = self.at - chunk.offset, 0.0
            order, todo, tried = self._order(chunk), chunk.count, set[Order | None]()
            limit = GROWTH_LIMIT if order is not None else np.inf  # where nothing is solved, nothing grows
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
        """Derivatives of the observed states along directions: (observed, direction, entry)."""
        out = np.empty((len(self.at), *dz.shape))
        out[self.at == 0] = dz
        for chunk, kept in self.directions_through(dz, dc):
            before = chunk.offset + chunk.first
            here = (self.at > before) & (self.at <= before + chunk.count)
            out[here] = kept[self.at[here] - before - 1]
        return out

    def directions_through(self, dz: np.ndarray, dc: np.ndarray) -> Iterator[tuple[Chunk, np.ndarray]]:
        """Every chunk, and the directions behind each of its steps."""
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
        """What `back` gives, and its tangents along one direction: a, g, da, dg.

        The tangent is taken forth once to know it at the beginning of every chunk, and once more in each chunk.
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
        """A pivot order for the numbers of a step, and the growth that is allowed with it."""
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
    """Numbers of the states that a run observes: those that `every` divides and the last one, or that one alone."""
    regular, rest = whole_steps(plan.h, plan.t0, plan.t_end)
    steps = regular + bool(rest)
    numbers = [] if every is None else list(range(0, regular + 1, every))
    return np.array(numbers if numbers and numbers[-1] == steps else [*numbers, steps], dtype=np.int64)


def recorded(plan: Plan, compiled: CompiledStep, carry: Carry, stepper: Stepper, at: np.ndarray, keep: bool) -> Tape:
    """Take the steps of a plan and keep what derivatives need; states with the numbers `at` are observed.

    With `keep` everything is kept, else checkpoints and the last steps.
    """
    regular, rest = whole_steps(plan.h, plan.t0, plan.t_end)
    tape = Tape(compiled, plan.k, regular + bool(rest), stepper)
    tape.at, tape.t = at, np.where(at <= regular, plan.t0 + at * plan.h, plan.t_end)
    # the end stays where it is if the last step is shortened: the longer the others, the shorter that one
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
    """Take the steps of a chunk, and keep with it what derivatives need: where it ends, and the states behind steps.

    If these are the `last` steps that the stepper ever takes, they may stay where they are.
    """
    taken = stepper.advance(chunk.carry, chunk.count, _policy(chunk), flow(chunk.h))
    if taken.trouble is not None:
        raise IntegrationError(f"the step from t = {taken.carry.t:.9g} failed: {taken.trouble.reason}")
    if keep and last:
        chunk.Z, chunk.X = np.ascontiguousarray(taken.states[:-1]), np.ascontiguousarray(taken.X)
    elif keep:
        chunk.Z, chunk.X = taken.states[:-1].copy(), taken.X.copy()
    return taken.carry, taken.Z
