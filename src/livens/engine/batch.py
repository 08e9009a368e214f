"""Ensemble integration in SIMD lanes: eight or sixteen trajectories share each instruction, threads share the work."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from livens.engine import lanes
from livens.engine.aligned import aligned
from livens.engine.compiled import CompiledStep
from livens.engine.correction import first_kernel, further_kernel
from livens.engine.factors import Order
from livens.engine.kernels import end_kernel, floor_kernel, guess_kernel, residual_kernel
from livens.engine.lanes import COUNT, DONE, TOLD, Histograms, Kept, LaneKernels, Lanes, Members, Times
from livens.engine.loop import Policy
from livens.engine.native import Code
from livens.engine.newton import PAST
from livens.engine.places import places
from livens.engine.predictor import predictor_kernel
from livens.engine.step_size import flow
from livens.engine.steps import Carry
from livens.engine.watch import Watched, unseen, watch_kernel
from livens.engine.watch import first_kernel as first_watch_kernel
from livens.errors import InputError

#: Bytes of states and unknowns per chunk, well below the size of the second-level cache.
_CHUNK_BYTES = 400_000
#: Largest instruction count of steps in sixteen lanes, which hide latencies; longer steps would spill registers.
_SHORT = 1000
#: Number of members from which `unpermute` uses several threads: it is limited by memory latency.
_MANY = 10_000
#: Number of steps per native call of the lane loop, about a tenth of a second.
_GROUP_STEPS = 200_000


@dataclass(frozen=True)
class Schedule:
    """Fixed time grid and output rows of an ensemble."""

    h: float
    t0: float
    steps: int
    rest: float  # size of a last, shorter step; 0 if there is none
    every: int
    columns: np.ndarray  # stored entries of the state

    @property
    def rows(self) -> int:
        """Number of output rows: steps that `stride` divides, and the last one."""
        regular = self.steps // self.every + 1
        return regular + bool(self.rest > 0.0 or self.steps % self.every)

    @property
    def times(self) -> np.ndarray:
        t = self.t0 + np.arange(self.steps // self.every + 1) * self.every * self.h
        if self.rest > 0.0:
            return np.append(t, self.t0 + self.steps * self.h + self.rest)
        return np.append(t, self.t0 + self.steps * self.h) if self.steps % self.every else t

    @property
    def compiled(self) -> Times:
        """The time grid as a struct for native code."""
        return Times(self.h, self.t0, self.steps, self.rest, self.every, self.rows)


@dataclass
class Outcome:
    """Result arrays of an ensemble; the first axis is the member."""

    states: np.ndarray
    corrections: np.ndarray
    steps: np.ndarray
    first: np.ndarray  # monitored columns of the initial state
    largest: np.ndarray
    trusted: np.ndarray  # reference energy: largest magnitude while the drift is small
    sums: np.ndarray
    lowest: np.ndarray
    highest: np.ndarray
    counts: np.ndarray  # histogram counts: (member, histogram, bin)
    reasons: dict[int, str] = field(default_factory=dict)  # failure messages by member
    left: int = 0  # number of scalar fallbacks


ARRAYS = ("states", "corrections", "steps", "first", "largest", "trusted", "sums", "lowest", "highest", "counts")


@dataclass(frozen=True)
class Bins:
    """Histogram with equally spaced edges of one reduced column."""

    column: int
    low: float
    high: float
    count: int


def width_of(compiled: CompiledStep) -> int:
    """Return the number of SIMD lanes; it depends on the equations only."""
    e = compiled.flat
    graphs = (e.newton_function, e.end_function, e.residual_function) if e.size else (e.end_function,)
    return 16 if sum(graph.n_instructions() for graph in graphs) < _SHORT else 8


class Batch:
    """Compiled step for an ensemble in SIMD lanes; thread-safe."""

    def __init__(self, compiled: CompiledStep, order: Order | None, watched: Watched, width: int) -> None:
        self.compiled, self.order, self.watched, self.width = compiled, order, watched, width
        e, codes = compiled.flat, dict[str, Code]()
        if e.box is not None:
            raise InputError("an ensemble in SIMD lanes requires symbolic forces, but the model has an ExternalForce")
        if e.size:
            assert order is not None
            codes = {
                "first": first_kernel(e, order, width),
                "further": further_kernel(e, order, width),
                "residual": residual_kernel(e, width),
                "predict": predictor_kernel(e, width),
                "floor": floor_kernel(e, width),
                "guess": guess_kernel(e, width),
            }
        else:
            codes = {"end": end_kernel(e, width)}
        codes |= {"watch": watch_kernel(watched, width), "begin": first_watch_kernel(watched, width)}
        self._codes = codes  # keeps the addresses valid
        names = [one.name for one in dataclasses.fields(LaneKernels)]
        self._kernels = LaneKernels(*(codes[name].address if name in codes else 0 for name in names))

    def shapes(self, members: int, schedule: Schedule, bins: Sequence[Bins]) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the result arrays for a number of members."""
        at = self.watched.places
        most = 2 + max((one.count for one in bins), default=-2)
        ends = {"first": at.largest - at.first, "largest": at.sums - at.largest}
        rows = {name: (members, ends.get(name, self.watched.reduced)) for name in (*ends, "sums", "lowest", "highest")}
        single = dict.fromkeys(("corrections", "steps", "trusted"), (members,))
        states, counts = (members, schedule.rows, len(schedule.columns)), (members, len(bins), most)
        return {"states": states, "counts": counts, **rows, **single}

    def run(
        self,
        z: np.ndarray,
        k: np.ndarray,
        schedule: Schedule,
        threads: int = 1,
        bins: Sequence[Bins] = (),
        told: Callable[[int], None] | None = None,
    ) -> Outcome:
        """Integrate all members from states z with parameters k over the time grid.

        `on_progress` is called with the number of completed members.
        """
        members, at = len(z), self.watched.places
        most = 2 + max((one.count for one in bins), default=-2)
        kept = Kept(
            column_count=len(schedule.columns),
            columns=np.ascontiguousarray(schedule.columns, dtype=np.int64),
            rows=schedule.rows,
            states=np.empty((members, schedule.rows, len(schedule.columns))),
            corrections=np.zeros(members, dtype=np.int64),
            steps=np.zeros(members, dtype=np.int64),
            seen=np.zeros((members, at.rows)),
            histograms=Histograms(
                size=len(bins),
                columns=np.array([at.now + one.column for one in bins], dtype=np.int64),
                low=np.array([one.low for one in bins], dtype=float),
                scale=np.array([one.count / (one.high - one.low) for one in bins], dtype=float),
                bins=np.array([one.count for one in bins], dtype=np.int64),
                most=most,
                counts=np.zeros((members, len(bins), most), dtype=np.int64),
            ),
        )
        kept.seen[:, at.lowest : at.highest], kept.seen[:, at.highest : at.now] = np.inf, -np.inf
        z, k = np.ascontiguousarray(z, dtype=float), np.ascontiguousarray(k, dtype=float)
        job = _Job(Members(members, z, k.shape[1], k), schedule, kept)
        groups = -(-members // self.width)
        # few calls, short enough for progress reports, and equally many for every thread
        size = max(1, min(-(-groups // threads), _GROUP_STEPS // max(1, schedule.steps)))
        size = -(-groups // (-(-groups // (size * threads)) * threads))
        spans = [(first, min(first + size, groups)) for first in range(0, groups, size)]
        workers = threading.local()
        done = 0

        def one(span: tuple[int, int]) -> int:
            worker = getattr(workers, "worker", None)
            if worker is None:
                worker = workers.worker = _Worker(self, job)
            # rows of failed members stay NaN; every thread touches its memory pages first
            kept.states[span[0] * self.width : span[1] * self.width] = np.nan
            worker.run(*span)
            return span[1] - span[0]

        pool = ThreadPoolExecutor(threads) if threads > 1 and len(spans) > 1 else None
        try:
            for count in (map if pool is None else pool.map)(one, spans):
                done = min(done + count * self.width, members)
                if told is not None:
                    told(done)
        finally:
            if pool is not None:
                pool.shutdown(cancel_futures=True)
        seen = kept.seen
        return Outcome(
            states=kept.states,
            corrections=kept.corrections,
            steps=kept.steps,
            first=seen[:, at.first : at.largest],
            largest=seen[:, at.largest : at.sums],
            trusted=seen[:, at.trusted],
            sums=seen[:, at.sums : at.lowest],
            lowest=seen[:, at.lowest : at.highest],
            highest=seen[:, at.highest : at.now],
            counts=kept.histograms.counts,
            reasons=job.reasons,
            left=job.left,
        )


@dataclass
class _Job:
    """Data shared by all workers of a run."""

    given: Members
    schedule: Schedule
    kept: Kept
    reasons: dict[int, str] = field(default_factory=dict)
    left: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


class _Worker:
    """Worker that integrates groups of members in SIMD lanes, with its own workspace."""

    def __init__(self, batch: Batch, job: _Job) -> None:
        self._batch, self._job, self._times = batch, job, job.schedule.compiled
        width, n, nz = batch.width, batch.compiled.flat.size, job.given.z.shape[1]
        chunk = max(1, min(max(job.schedule.steps, 1), _CHUNK_BYTES // (8 * width * (n + nz))))
        work_rows, seen_rows = places(n).rows, batch.watched.places.rows
        self._w = Lanes(
            width=width,
            states=nz,
            unknowns=n,
            chunk=chunk,
            c=aligned(2 + job.given.parameters, width),
            Z=aligned(chunk + 1, nz, width),
            X=aligned(chunk + PAST, n, width),
            work=aligned(work_rows, width),
            work_rows=work_rows,
            counts=np.zeros(width, dtype=np.int64),
            dead=np.zeros(width, dtype=np.int64),
            died=np.full(width, -1, dtype=np.int64),
            until=np.zeros(width, dtype=np.int64),
            members=np.full(width, -1, dtype=np.int64),
            seen=aligned(seen_rows, width),
            unseen=unseen(batch.watched, width, aligned(seen_rows, width)),
            seen_rows=seen_rows,
            told=np.zeros(TOLD, dtype=np.int64),
        )

    def run(self, first: int, last: int) -> None:
        """Integrate the groups from number `first_group` to `last_group` - 1."""
        job, w = self._job, self._w
        while first < last:
            first = lanes.run_groups(self._batch._kernels, w, job.given, first, last, self._times, job.kept)
            if first < last:
                self._go_on(*map(int, w.told))
                first += 1

    def _go_on(self, part: int, done: int, count: int) -> None:
        """Replace failed lanes of the current group by scalar steps, and finish the group."""
        schedule = self._job.schedule
        if part == 0:
            self._take(schedule.steps, schedule.h, schedule.t0, 0, schedule.every, done, count)
            done = count = 0
        if schedule.rest > 0.0:
            # the final step: row number 1 of a separate grid, no other row is stored
            t = schedule.t0 + schedule.steps * schedule.h
            self._take(1, schedule.rest, t, schedule.steps, schedule.rows, done, count)
        lanes.finish(self._w, self._times, self._job.kept)

    def _take(
        self, steps: int, h: float, origin: float, before: int, every: int, done: int = 0, count: int = 0
    ) -> None:
        """Take fixed steps with scalar fallback, starting with the current chunk if `count` is not zero.

        `n_before` is the number of previous steps of another size.
        """
        batch, w, kept, members = self._batch, self._w, self._job.kept, self._w.members
        while np.any(members >= 0):
            if not count:
                if lanes.advance_far(batch._kernels, w, kept, done, steps, every, h, origin):
                    return
                done, count = int(w.told[DONE]), int(w.told[COUNT])
            until = w.until
            until[:] = count
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
            w.dead[:], w.died[:] = 0, -1
            self._replace(until, count)
            lanes.hand_on(batch._kernels, w, kept, done, count, every, h, origin)
            for lane in np.flatnonzero(until < count):
                if members[lane] >= 0:
                    lanes.note(w, int(lane), before + done + int(until[lane]), kept)
                    members[lane] = -1
            done, count = done + count, 0

    def _alone(self, lane: int, done: int, count: int, h: float, origin: float) -> int:
        """Integrate one trajectory by the scalar stepper to the end of the chunk; return the number of valid steps."""
        w, compiled, n = self._w, self._batch.compiled, self._batch.compiled.flat.size
        at = int(w.died[lane])
        if w.members[lane] < 0:
            return 0
        carry = Carry(
            origin + (done + at) * h,
            w.Z[at, :, lane].copy(),
            w.X[at : at + PAST, :, lane].copy(),
            np.zeros(n),
            np.full(n, np.inf),  # the bounds of the lane may stem from steps after its failure
        )
        with self._job.lock:
            self._job.left += 1
            stepper = compiled.stepper("fused", w.c[2:, lane].copy(), self._batch.order)
            policy = Policy(False, h, origin, done + at)
            steps = stepper.advance(carry, count - at, policy, flow(h))
        taken = at + steps.taken
        w.Z[at + 1 : taken + 1, :, lane] = steps.Z
        w.X[at + PAST : taken + PAST, :, lane] = steps.X
        w.counts[lane] += int(steps.iterations.sum()) - (count - at)  # the lane counted one iteration for each step
        where = places(n)
        w.work[where.scale : where.scale + n, lane] = steps.carry.scale
        w.work[where.dx : where.dx + n, lane] = steps.carry.dx
        if steps.trouble is not None:
            self._fail(lane, f"the step from t = {steps.carry.t:.9g} failed: {steps.trouble.reason}")
        return taken

    def _fail(self, lane: int, reason: str) -> None:
        member = int(self._w.members[lane])
        if member >= 0:
            with self._job.lock:
                self._job.reasons[member] = reason

    def _replace(self, until: np.ndarray, count: int) -> None:
        """Refill failed lanes with a healthy one: non-finite values would slow all lanes down."""
        good = np.flatnonzero(until == count)
        if good.size:
            w = self._w
            for lane in np.flatnonzero(until < count):
                w.Z[count, :, lane] = w.Z[count, :, good[0]]
                w.X[count:, :, lane] = w.X[count:, :, good[0]]
                w.c[:, lane], w.work[:, lane] = w.c[:, good[0]], w.work[:, good[0]]


def in_order(outcome: Outcome, order: Sequence[int] | np.ndarray, threads: int = 1) -> Outcome:
    """Undo the permutation of the members."""
    back = np.empty(len(order), dtype=np.intp)
    back[order] = np.arange(len(order))
    given = {name: getattr(outcome, name) for name in ARRAYS}
    arrays: dict[str, Any] = {name: np.empty(array.shape, array.dtype) for name, array in given.items()}
    size = -(-len(back) // threads)

    def some(first: int) -> None:
        here = slice(first, first + size)
        for name, array in given.items():
            np.take(array, back[here], axis=0, out=arrays[name][here], mode="clip")

    if threads > 1 and len(back) >= _MANY:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(some, range(0, len(back), size)))
    else:
        for first in range(0, len(back), size):
            some(first)
    reasons = {int(order[member]): reason for member, reason in outcome.reasons.items()}
    return dataclasses.replace(outcome, reasons=reasons, **arrays)
