"""Many trajectories of one model at once: eight or sixteen of them go through the same instructions side by side."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from livens.engine import lanes
from livens.engine.compiled import CompiledStep
from livens.engine.correction import first_kernel, further_kernel
from livens.engine.factors import Order
from livens.engine.kernels import end_kernel, floor_kernel, guess_kernel
from livens.engine.lanes import LaneKernels, Lanes
from livens.engine.loop import Policy
from livens.engine.native import Code
from livens.engine.newton import PAST
from livens.engine.places import places
from livens.engine.predictor import predictor_kernel
from livens.engine.step_size import flow
from livens.engine.steps import Carry
from livens.engine.watch import Watched, unseen, watch_kernel
from livens.engine.watch import first_kernel as first_watch_kernel

#: Bytes of states and unknowns per chunk, which stay in the second-level cache with room to spare.
_CHUNK_BYTES = 400_000
#: Steps of up to this many instructions go in sixteen lanes, which hide latencies; longer ones would spill registers.
_SHORT = 1000


@dataclass(frozen=True)
class Schedule:
    """Which steps are taken, and which states are kept."""

    h: float
    t0: float
    steps: int
    rest: float  # the size of a last, shorter step; 0 if there is none
    every: int
    columns: np.ndarray  # the entries of the state that are kept

    @property
    def rows(self) -> int:
        """Every so many states, and the last one in any case."""
        regular = self.steps // self.every + 1
        return regular + bool(self.rest > 0.0 or self.steps % self.every)

    @property
    def times(self) -> np.ndarray:
        t = self.t0 + np.arange(self.steps // self.every + 1) * self.every * self.h
        if self.rest > 0.0:
            return np.append(t, self.t0 + self.steps * self.h + self.rest)
        return np.append(t, self.t0 + self.steps * self.h) if self.steps % self.every else t


@dataclass
class Outcome:
    """What is left of all members; the member is the first axis of every array."""

    states: np.ndarray
    corrections: np.ndarray
    steps: np.ndarray
    first: np.ndarray  # the watched columns of the first state
    largest: np.ndarray
    sums: np.ndarray
    lowest: np.ndarray
    highest: np.ndarray
    reasons: dict[int, str] = field(default_factory=dict)  # of members that failed
    left: int = 0  # how often a trajectory went on by itself for a while


def width_of(compiled: CompiledStep) -> int:
    """How many trajectories go side by side; that depends on the equations and on nothing else."""
    e = compiled.flat
    graphs = (e.newton_function, e.end_function, e.residual_function) if e.size else (e.end_function,)
    return 16 if sum(graph.n_instructions() for graph in graphs) < _SHORT else 8


class Batch:
    """A compiled step for many trajectories at once. It may be used from several threads."""

    def __init__(self, compiled: CompiledStep, order: Order | None, watched: Watched, width: int) -> None:
        self.compiled, self.order, self.watched, self.width = compiled, order, watched, width
        e, codes = compiled.flat, dict[str, Code]()
        if e.size:
            assert order is not None
            codes = {
                "first": first_kernel(e, order, width),
                "further": further_kernel(e, order, width),
                "predict": predictor_kernel(e, width),
                "floor": floor_kernel(e, width),
                "guess": guess_kernel(e, width),
            }
        else:
            codes = {"end": end_kernel(e, width)}
        codes |= {"watch": watch_kernel(watched, width), "begin": first_watch_kernel(watched, width)}
        self._codes = codes  # the addresses are good as long as these live
        self._kernels = LaneKernels(*(codes[name].address if name in codes else 0 for name in LaneKernels._fields))

    def run(self, z: np.ndarray, k: np.ndarray, schedule: Schedule, threads: int = 1) -> Outcome:
        """Take all members from their states z, with their parameters k, through the schedule."""
        members, m = len(z), self.watched
        outcome = Outcome(
            states=np.full((members, schedule.rows, len(schedule.columns)), np.nan),
            corrections=np.zeros(members, dtype=np.int64),
            steps=np.zeros(members, dtype=np.int64),
            first=np.zeros((members, m.columns)),
            largest=np.zeros((members, 5 + 2 * len(m.sizes))),
            sums=np.zeros((members, m.reduced)),
            lowest=np.full((members, m.reduced), np.inf),
            highest=np.full((members, m.reduced), -np.inf),
        )
        groups = [np.arange(i, min(i + self.width, members)) for i in range(0, members, self.width)]
        lock = threading.Lock()

        def one(group: np.ndarray) -> None:
            _Group(self, group, z, k, schedule, outcome, lock).run()

        if threads == 1 or len(groups) == 1:
            for group in groups:
                one(group)
        else:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(one, groups))
        return outcome


class _Group:
    """The trajectories that share their lanes."""

    def __init__(
        self,
        batch: Batch,
        group: np.ndarray,
        z: np.ndarray,
        k: np.ndarray,
        schedule: Schedule,
        outcome: Outcome,
        lock: threading.Lock,
    ) -> None:
        self._batch, self._schedule, self._outcome, self._lock = batch, schedule, outcome, lock
        width, n, nz = batch.width, batch.compiled.flat.size, z.shape[1]
        #: Which member a lane belongs to; -1 if its numbers count for nobody.
        self._members = np.full(width, -1)
        self._members[: len(group)] = group
        filled = np.concatenate([group, np.full(width - len(group), group[-1])])
        self._k = k[filled]
        chunk = max(1, min(max(schedule.steps, 1), _CHUNK_BYTES // (8 * width * (n + nz))))
        w = self._w = Lanes(
            c=_aligned(2 + k.shape[1], width),
            Z=_aligned(chunk + 1, nz, width),
            X=_aligned(chunk + PAST, n, width),
            work=_aligned(places(n).rows, width),
            counts=np.zeros(width, dtype=np.int64),
            dead=np.zeros(width, dtype=np.bool_),
            died=np.full(width, -1),
        )
        w.Z[0], w.c[2:] = z[filled].T, self._k.T
        w.c[0], w.c[1] = schedule.h, schedule.t0
        w.work[:n] = np.inf  # bounds that accept nothing, until they are computed
        for lane in range(width if n else 0):
            w.X[:PAST, :, lane] = batch.compiled.first_guess(w.Z[0, :, lane], w.c[:, lane])
        m = batch.watched
        self._seen = unseen(m, width, _aligned(m.places.rows, width))
        self._everything = np.full(width, np.iinfo(np.int64).max)

    def run(self) -> None:
        schedule, w = self._schedule, self._w
        self._begin()
        lanes.keep_row(w, 0, 0, self._everything, self._members, schedule.columns, self._outcome.states)
        self._take(schedule.steps, schedule.h, schedule.t0, 0, schedule.every)
        if schedule.rest > 0.0:
            # one row of its own at the end: its number is 1, and no other row is kept
            t = schedule.t0 + schedule.steps * schedule.h
            self._take(1, schedule.rest, t, schedule.steps, schedule.rows)
        lanes.keep_row(w, 0, schedule.rows - 1, self._everything, self._members, schedule.columns, self._outcome.states)
        for lane in np.flatnonzero(self._members >= 0):
            self._note(int(lane), schedule.steps + (schedule.rest > 0.0))

    def _begin(self) -> None:
        """The first state is what later ones are compared with."""
        kernels, w, t = self._batch._kernels, self._w, self._schedule.t0
        lanes.look(kernels.begin, w, 0, t, self._seen)
        lanes.look(kernels.watch, w, 0, t, self._seen)

    def _take(self, steps: int, h: float, origin: float, before: int, every: int) -> None:
        """Take equal steps; `before` is how many there were of another size."""
        batch, w, out, columns = self._batch, self._w, self._outcome.states, self._schedule.columns
        done = 0
        while np.any(self._members >= 0):
            done, count = lanes.advance_far(
                batch._kernels, w, done, steps, every, h, origin, self._members, columns, out, self._seen
            )
            if not count:
                return
            until = np.full(batch.width, count)
            for lane in np.flatnonzero(w.dead):
                until[lane] = self._alone(int(lane), done, count, h, origin)
            for lane in np.flatnonzero(until == count):
                finite = np.isfinite(w.Z[: count + 1, :, lane]).all(axis=1)
                if not finite[-1]:
                    until[lane] = int(np.argmin(finite)) - 1
                    entry = int(np.argmin(np.isfinite(w.Z[until[lane] + 1, :, lane])))
                    name = batch.compiled.layout.name_of(entry)
                    t = origin + (done + until[lane]) * h
                    self._fail(int(lane), f"the step from t = {t:.9g} failed: {name} is not finite any more")
            w.dead[:], w.died[:] = False, -1
            self._replace(until, count)
            lanes.hand_on(
                batch._kernels, w, done, count, every, h, origin, until, self._members, columns, out, self._seen
            )
            for lane in np.flatnonzero(until < count):
                if self._members[lane] >= 0:
                    self._note(int(lane), before + done + int(until[lane]))
                    self._members[lane] = -1
            done += count

    def _alone(self, lane: int, done: int, count: int, h: float, origin: float) -> int:
        """Take one trajectory by itself to the end of the chunk; how far it got."""
        w, compiled, n = self._w, self._batch.compiled, self._batch.compiled.flat.size
        at = int(w.died[lane])
        if self._members[lane] < 0:
            return 0
        carry = Carry(
            origin + (done + at) * h,
            w.Z[at, :, lane].copy(),
            w.X[at : at + PAST, :, lane].copy(),
            np.zeros(n),
            np.full(n, np.inf),  # the bounds of the lane may be of what it did after it failed
        )
        with self._lock:
            self._outcome.left += 1
            stepper = compiled.stepper("fused", self._k[lane], self._batch.order)
            policy = Policy(False, h, origin, done + at, -1, np.inf, np.inf, True)
            steps = stepper.advance(carry, count - at, policy, flow(h))
        taken = at + steps.taken
        w.Z[at + 1 : taken + 1, :, lane] = steps.Z
        w.X[at + PAST : taken + PAST, :, lane] = steps.X
        w.counts[lane] += int(steps.iterations.sum()) - (count - at)  # the lane has counted one for each of its steps
        where = places(n)
        w.work[where.scale : where.scale + n, lane] = steps.carry.scale
        w.work[where.dx : where.dx + n, lane] = steps.carry.dx
        if steps.trouble is not None:
            self._fail(lane, f"the step from t = {steps.carry.t:.9g} failed: {steps.trouble.reason}")
        return taken

    def _fail(self, lane: int, reason: str) -> None:
        member = int(self._members[lane])
        if member >= 0:
            with self._lock:
                self._outcome.reasons[member] = reason

    def _replace(self, until: np.ndarray, count: int) -> None:
        """Lanes that failed go on as copies of one that did not: numbers that are not finite would hold up the rest."""
        good = np.flatnonzero(until == count)
        if good.size:
            w = self._w
            for lane in np.flatnonzero(until < count):
                w.Z[count, :, lane] = w.Z[count, :, good[0]]
                w.X[count:, :, lane] = w.X[count:, :, good[0]]
                w.c[:, lane], w.work[:, lane] = w.c[:, good[0]], w.work[:, good[0]]

    def _note(self, lane: int, steps: int) -> None:
        """Write down what was seen of a member that is at its end."""
        member, outcome, seen = int(self._members[lane]), self._outcome, self._seen
        outcome.steps[member], outcome.corrections[member] = steps, self._w.counts[lane]
        at = self._batch.watched.places
        for name, end in (("first", "largest"), ("largest", "sums"), ("sums", "lowest"), ("lowest", "highest")):
            getattr(outcome, name)[member] = seen[getattr(at, name) : getattr(at, end), lane]
        outcome.highest[member] = seen[at.highest : at.rows, lane]


def _aligned(*shape: int) -> np.ndarray:
    """Zeros at an address that 64 divides."""
    size = int(np.prod(shape))
    raw = np.zeros(size + 8)
    return raw[(-raw.ctypes.data // 8) % 8 :][:size].reshape(shape)


def ordered_members(z: np.ndarray, k: np.ndarray) -> np.ndarray:
    """Members with like numbers side by side: they need as many corrections, and none waits for another."""
    numbers = np.hstack([k, z])
    varying = np.flatnonzero((numbers != numbers[:1]).any(axis=0))
    return np.lexsort(numbers[:, varying[::-1]].T) if varying.size else np.arange(len(z))


def in_order(outcome: Outcome, order: Sequence[int] | np.ndarray) -> Outcome:
    """The outcome of members that were run in another order, in their own."""
    back = np.argsort(order)
    arrays = {
        name: getattr(outcome, name)[back]
        for name in ("states", "corrections", "steps", "first", "largest", "sums", "lowest", "highest")
    }
    reasons = {int(order[member]): reason for member, reason in outcome.reasons.items()}
    return dataclasses.replace(outcome, reasons=reasons, **arrays)
