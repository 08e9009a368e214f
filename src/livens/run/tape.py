"""A run with its derivatives: what the way back needs is kept, or computed again from checkpoints."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from livens.engine.compiled import CompiledStep
from livens.engine.factors import Order
from livens.engine.loop import Policy
from livens.engine.native import Code
from livens.engine.pivots import SingularMatrixError
from livens.engine.step_size import flow
from livens.engine.steps import Carry, Stepper
from livens.engine.tangent import GROWTH_LIMIT, adjoint_kernel, sweep_back, sweep_forth, tangent_kernel
from livens.errors import IntegrationError
from livens.run.march import whole_steps
from livens.run.plan import Plan

#: Steps between two checkpoints.
CHUNK = 1000


@dataclass
class Chunk:
    """Equal steps, from a checkpoint: number `first` on, counted from `origin`."""

    first: int
    count: int
    h: float
    origin: float
    carry: Carry
    stepper: dict[str, Any]
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

    @property
    def c(self) -> np.ndarray:
        return np.concatenate([[0.0, 0.0], self.k])

    def steps_of(self, chunk: Chunk) -> tuple[np.ndarray, np.ndarray]:
        """States before each step of a chunk, and its unknowns: kept, or computed again, bit for bit."""
        if chunk.Z is not None and chunk.X is not None:
            return chunk.Z, chunk.X
        self.stepper.restore(chunk.stepper)
        taken = self.stepper.advance(chunk.carry, chunk.count, _policy(chunk), flow(chunk.h))
        return np.vstack([chunk.carry.z, taken.Z[:-1]]), np.ascontiguousarray(taken.X)

    # -- derivatives --------------------------------------------------------------------------------------------------
    def back(self, bars: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Derivatives of a sum by the initial state and by c, from those by the observed states."""
        nz, c = self.compiled.layout.size, self.c
        a, g, left = np.zeros(nz), np.zeros(c.size + 1), len(self.at)
        bars = np.ascontiguousarray(bars, dtype=float)
        for chunk in reversed(self.chunks):
            Z, X = self.steps_of(chunk)
            # where steps are counted from another origin, states are not
            at = self.at - (self.steps - chunk.count if chunk.origin != self.chunks[0].origin else 0)
            order, todo, tried = self._order(chunk), chunk.count, set[Order | None]()
            limit = GROWTH_LIMIT
            while todo:
                kernel = self._adjoint(order)
                done = todo
                todo, left = sweep_back(
                    kernel.address, todo - 1, chunk.first, chunk.h, chunk.origin, c, Z, X, a, g, at, bars, left, limit
                )
                if todo:
                    tried = tried if todo == done else set()
                    order, limit = self._other(order, tried, X[todo - 1], Z[todo - 1], c)
                    tried.add(order)
        while left > 0:
            left -= 1
            a += bars[left]
        return a, g[:-1]

    def forth(self, dz: np.ndarray, dc: np.ndarray) -> np.ndarray:
        """Derivatives of the observed states along directions: (observed, direction, entry)."""
        c, nz = self.c, dz.shape[1]
        d = np.ascontiguousarray(np.hstack([dz, dc]), dtype=float)
        new = np.empty(dz.size + 1)
        out = np.empty((len(self.at), *dz.shape))
        out[self.at == 0] = dz
        for chunk in self.chunks:
            Z, X = self.steps_of(chunk)
            order, done, tried, limit = self._order(chunk), 0, set[Order | None](), GROWTH_LIMIT
            kept = np.empty((chunk.count, *dz.shape))
            while done < chunk.count:
                before = done
                done = sweep_forth(
                    self._tangent(order, len(d)).address,
                    done,
                    chunk.first,
                    chunk.h,
                    chunk.origin,
                    c,
                    Z,
                    X,
                    d,
                    new,
                    kept,
                    limit,
                )
                if done < chunk.count:
                    tried = tried if done == before else set()
                    order, limit = self._other(order, tried, X[done], Z[done], c)
                    tried.add(order)
            first = self.steps - chunk.count if chunk.origin != self.chunks[0].origin else chunk.first
            here = (self.at > first) & (self.at <= first + chunk.count)
            out[here] = kept[self.at[here] - first - 1]
        assert out.shape[2] == nz
        return out

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


def _policy(chunk: Chunk) -> Policy:
    return Policy(False, chunk.h, chunk.origin, chunk.first, -1, np.inf, np.inf, True)


def recorded(plan: Plan, compiled: CompiledStep, carry: Carry, stepper: Stepper, every: int | None, keep: bool) -> Tape:
    """Take the steps of a plan and keep what derivatives need; every so many states are observed, or the last one."""
    regular, rest = whole_steps(plan.h, plan.t0, plan.t_end)
    steps = regular + bool(rest)
    tape = Tape(compiled, plan.k, steps, stepper)
    numbers = [steps] if every is None else [*range(0, regular + 1, every), *([steps] if rest else [])]
    tape.at = np.array(numbers, dtype=np.int64)
    tape.t = np.where(tape.at <= regular, plan.t0 + tape.at * plan.h, plan.t_end)
    tape.states = np.empty((len(numbers), compiled.layout.size))
    tape.states[tape.at == 0] = carry.z
    todo = [(first, min(CHUNK, regular - first), plan.h, plan.t0) for first in range(0, regular, CHUNK)]
    if rest:
        todo.append((0, 1, rest, plan.t0 + regular * plan.h))
    done = 0
    for first, count, h, origin in todo:
        chunk = Chunk(first, count, h, origin, carry, stepper.state())
        taken = stepper.advance(carry, count, _policy(chunk), flow(h))
        if taken.trouble is not None:
            raise IntegrationError(f"the step from t = {taken.carry.t:.9g} failed: {taken.trouble.reason}")
        if keep:
            chunk.Z, chunk.X = np.vstack([carry.z, taken.Z[:-1]]), taken.X.copy()
        here = (tape.at > done) & (tape.at <= done + count)
        tape.states[here] = taken.Z[tape.at[here] - done - 1]
        tape.chunks.append(chunk)
        carry, done = taken.carry, done + count
    return tape
