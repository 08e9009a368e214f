"""Compiled time loop of an ensemble in SIMD lanes, one trajectory per lane.

Entry i of a vector is a row of one number per lane; arrays are consecutive rows. Lanes are independent: the values of a
lane, or its failure, do not change a bit of another lane.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from livens.engine.floor import SMALL, at_the_floor
from livens.engine.loop import REFRESH
from livens.engine.lowering.function import lowered, together
from livens.engine.lowering.kinds import Doubles, Integers, Record
from livens.engine.lowering.words import call
from livens.engine.newton import MOST_ITERATIONS, PAST, SUSPICIOUS

#: Newton iterations after which a lane with moderate pivot growth falls back to the scalar stepper with another pivot
#: order. A few more slowly converging iterations cost far less than a new pivot order.
PATIENCE = 10
#: Indices into `LaneWorkspace.counters`: phase of the group (0 regular steps, 1 final shorter step), steps completed
#: before the current chunk, and size of the chunk; then the number of counters.
PART, DONE, COUNT, TOLD = range(4)


@dataclass(frozen=True, eq=False)
class LaneKernels(Record):
    """Addresses of the native functions of one step in SIMD lanes; 0 for functions that a scheme does not have."""

    first: int
    further: int
    residual: int
    predict: int
    floor: int
    guess: int
    end: int
    begin: int  # monitor initialisation
    watch: int  # monitor update


@dataclass(frozen=True, eq=False)
class Lanes(Record):
    """Workspace of a chunk of steps; the SIMD version of `livens.engine.newton.iteration.Workspace`."""

    width: int
    states: int  # size of a state
    unknowns: int
    chunk: int  # number of steps
    c: Doubles
    Z: Doubles
    X: Doubles
    work: Doubles
    work_rows: int
    counts: Integers  # Newton iterations of each lane
    dead: Integers  # lanes that require a scalar fallback
    died: Integers  # their failed step, or -1
    until: Integers  # last valid state of a lane in the chunk
    members: Integers  # member of each lane; -1 for unused lanes
    seen: Doubles  # monitor, see `livens.engine.ensemble.monitor_kernel.MonitorOffsets`
    unseen: Doubles  # monitor before the first state
    seen_rows: int
    told: Integers


@dataclass(frozen=True, eq=False)
class Members(Record):
    """Initial states and parameters; the first axis is the member."""

    count: int
    z: Doubles
    parameters: int
    k: Doubles


@dataclass(frozen=True, eq=False)
class Histograms(Record):
    """Histograms of reduced columns with equally spaced edges; the first and last count collect the outliers."""

    size: int  # number of histograms
    columns: Integers  # rows of the monitor
    low: Doubles
    scale: Doubles  # reciprocal bin width
    bins: Integers
    most: int  # number of counts per histogram
    counts: Integers  # (member, histogram, bin)


@dataclass(frozen=True, eq=False)
class Kept(Record):
    """Output arrays of an ensemble; the first axis is the member."""

    column_count: int
    columns: Integers  # stored entries of the state
    rows: int
    states: Doubles
    corrections: Integers
    steps: Integers
    seen: Doubles
    histograms: Histograms


@dataclass(frozen=True, eq=False)
class Times(Record):
    """Time grid and output rows, see `livens.engine.ensemble.stepper.TimeGrid`."""

    h: float
    t0: float
    steps: int
    rest: float  # size of a last, shorter step; 0 if there is none
    every: int
    rows: int


# -- steps ------------------------------------------------------------------------------------------------------------
@lowered
def _measure_guess(kernels: LaneKernels, w: Lanes, z: Doubles, guess: Doubles, before: Doubles) -> None:
    """Evaluate the scaled residual norms of the initial guess in all lanes. NaN propagates."""
    n, width, left = w.unknowns, w.width, guess + w.unknowns * w.width
    call(kernels.residual, guess, z, w.c, left, left)
    for i in range(width):
        worst, total = 0.0, 0.0
        for j in range(n):
            a = abs(left[j * width + i]) * w.work[j * width + i]
            total += a
            if a > worst:
                worst = a
        before[i] = worst if total == total else total


@lowered
def _more_corrections(kernels: LaneKernels, w: Lanes, x: Doubles, z: Doubles, out: Doubles) -> None:
    """Iterate further in the lanes that one Newton iteration did not converge."""
    n, width, work, dead = w.unknowns, w.width, w.work, w.dead
    active, first = work + n * width, work + (n + 1) * width
    worst, growth = work + (n + 2) * width, work + (n + 3) * width
    dx, scratch = work + (n + 4) * width, work + (2 * n + 5) * width
    last = work + (3 * n + 5) * width
    before, stalls, guess = last + width, last + 2 * width, last + 3 * width
    for j in range(n * width):
        guess[j] = x[j] + dx[j]
    for i in range(width):
        last[i], before[i], stalls[i] = np.inf, 0.0, 0.0
        active[i] = 0.0 if dead[i] or worst[i] <= 1.0 else 1.0
    for iteration in range(2, MOST_ITERATIONS + 1):
        left = False
        for i in range(width):
            left = left or active[i] != 0.0
        if not left:
            break
        call(kernels.further, x, z, w.c, work, out)
        refreshed = False
        if iteration == 2:  # as in `newton_solve`: the test for quadratic convergence needs the norm of the guess
            close = False
            for i in range(width):
                close = close or (active[i] != 0.0 and SMALL < worst[i] <= 1.0)
            if close:
                _measure_guess(kernels, w, z, guess, before)
        for i in range(width):
            if active[i] == 0.0:
                continue
            w.counts[i] += 1
            if iteration == 2:  # residual norm after the first iteration
                last[i] = first[i]
            if worst[i] <= 1.0 and (stalls[i] > 0.0 or at_the_floor(worst[i], last[i], before[i], iteration)):
                active[i] = 0.0
            elif not worst[i] < np.inf:
                active[i], dead[i] = 0.0, 1
            elif worst[i] > 0.5 * last[i]:  # stagnation: the next iteration uses updated round-off bounds
                stalls[i] += 1.0
                if not refreshed:
                    call(kernels.floor, x, z, w.c, dx, scratch)
                    refreshed = True
                for j in range(n):
                    work[j * width + i] = scratch[j * width + i]
                if stalls[i] > 2.0:
                    active[i], dead[i] = 0.0, 1
            elif growth[i] > SUSPICIOUS and iteration >= PATIENCE:
                active[i], dead[i] = 0.0, 1
            before[i], last[i] = last[i], worst[i]
    for i in range(width):
        if active[i] != 0.0:
            dead[i] = 1


@lowered
def advance(kernels: LaneKernels, w: Lanes, steps: int, number: int, h: float, origin: float) -> None:
    """Take fixed steps; a lane that fails is flagged in `failed`, with the number of its step in `failed_at`."""
    n, width, c, work, dead = w.unknowns, w.width, w.c, w.work, w.dead
    verdict, dx = work + (n + 2) * width, work + (n + 4) * width
    trusted, scratch = work + (2 * n + 4) * width, work + (2 * n + 5) * width
    for i in range(width):
        c[i] = h
        w.counts[i] += steps if n > 0 else 0
    for s in range(steps):
        t = origin + (number + s) * h
        for i in range(width):
            c[width + i] = t
        z, out = w.Z + s * w.states * width, w.Z + (s + 1) * w.states * width
        if n == 0:
            call(kernels.end, z, z, c, work, out)
            continue
        past, x = w.X + s * n * width, w.X + (s + PAST) * n * width
        call(kernels.predict, past, z, c, work, trusted)
        rough = 0
        for i in range(width):
            rough += trusted[i] == 0.0
        if rough > 0:
            # the initial guess may read the unknowns, and lanes with accepted predictions must keep theirs
            call(kernels.guess, x, z, c, work, scratch)
            for j in range(n):
                for i in range(width):
                    if trusted[i] == 0.0:
                        x[j * width + i] = scratch[j * width + i]
        if (number + s) % REFRESH == 0:
            call(kernels.floor, x, z, c, dx, work)
        call(kernels.first, x, z, c, work, out)
        bad = 0
        for i in range(width):
            bad += (not verdict[i] <= 1.0) & (dead[i] == 0)
        if bad > 0:
            _more_corrections(kernels, w, x, z, out)
            for i in range(width):
                if dead[i] and w.died[i] < 0:
                    w.died[i] = s


# -- states -----------------------------------------------------------------------------------------------------------
@lowered
def _look(kernel: int, w: Lanes, s: int, t: float) -> None:
    """Update the monitor with state s of the chunk."""
    for i in range(w.width):
        w.c[w.width + i] = t
    z = w.Z + s * w.states * w.width
    call(kernel, z, z, w.c, w.seen, z)


@lowered
def _sort_in(histograms: Histograms, w: Lanes) -> None:
    """Update the histograms with the current state, in the lanes of the mask."""
    for j in range(w.width):
        if w.members[j] < 0 or w.seen[j] == 0.0:
            continue
        for i in range(histograms.size):
            value = w.seen[histograms.columns[i] * w.width + j]
            place = (value - histograms.low[i]) * histograms.scale[i]
            if place != place:  # NaN belongs to no bin
                continue
            last = histograms.bins[i] + 1
            k = 0 if not place >= 0.0 else last if place >= histograms.bins[i] else 1 + int(place)
            histograms.counts[(w.members[j] * histograms.size + i) * histograms.most + k] += 1


@lowered
def _keep_row(w: Lanes, s: int, row: int, kept: Kept) -> None:
    """Store state s of the chunk as an output row, in the lanes where it is valid."""
    z = w.Z + s * w.states * w.width
    for j in range(w.width):
        if w.members[j] >= 0 and s <= w.until[j]:
            out = kept.states + (w.members[j] * kept.rows + row) * kept.column_count
            for i in range(kept.column_count):
                out[i] = z[kept.columns[i] * w.width + j]


@lowered
def hand_on(
    kernels: LaneKernels, w: Lanes, kept: Kept, done: int, count: int, every: int, h: float, origin: float
) -> None:
    """Update the monitors with the chunk, store output rows, and move the last state and history to the front."""
    width, least = w.width, count
    for i in range(width):
        least = min(least, w.until[i])
    for s in range(1, count + 1):
        if s > least:  # mask the lanes whose state is not valid
            for i in range(width):
                w.seen[i] = 1.0 if s <= w.until[i] else 0.0
        _look(kernels.watch, w, s, origin + (done + s) * h)
        if kept.histograms.size > 0:
            _sort_in(kept.histograms, w)
        if (done + s) % every == 0:
            _keep_row(w, s, (done + s) // every, kept)
    size = w.states * width
    for i in range(size):
        w.Z[i] = w.Z[count * size + i]
    size = w.unknowns * width
    for i in range(PAST * size):  # ascending, as source and target may overlap
        w.X[i] = w.X[count * size + i]


@lowered
def _at_the_end(w: Lanes, count: int) -> bool:
    """Return True if all lanes completed the chunk with finite values."""
    z, lost = w.Z + count * w.states * w.width, 0
    for i in range(w.width):
        lost += w.dead[i]
    for i in range(w.states * w.width):
        lost += z[i] - z[i] != 0.0
    return lost == 0


@lowered
def advance_far(
    kernels: LaneKernels, w: Lanes, kept: Kept, done: int, steps: int, every: int, h: float, origin: float
) -> bool:
    """Advance chunk by chunk until all steps are taken, or a lane of the current chunk requires the scalar fallback.

    The workspace contains one chunk, which fits into the cache. Returns True if all steps are taken.
    """
    while done < steps:
        count = min(w.chunk, steps - done)
        w.told[DONE], w.told[COUNT] = done, count
        advance(kernels, w, count, done, h, origin)
        if not _at_the_end(w, count):
            return False
        for i in range(w.width):
            w.until[i] = count
        hand_on(kernels, w, kept, done, count, every, h, origin)
        done += count
    return True


# -- members ----------------------------------------------------------------------------------------------------------
@lowered
def _fill(kernels: LaneKernels, w: Lanes, given: Members, first: int, times: Times) -> None:
    """Load the members from number `first_member` into the lanes; unused lanes repeat the last member."""
    n, width = w.unknowns, w.width
    for j in range(width):
        m = min(first + j, given.count - 1)
        w.members[j] = m if first + j < given.count else -1
        for i in range(w.states):
            w.Z[i * width + j] = given.z[m * w.states + i]
        for i in range(given.parameters):
            w.c[(2 + i) * width + j] = given.k[m * given.parameters + i]
        w.c[j], w.c[width + j] = times.h, times.t0
        w.counts[j], w.dead[j], w.died[j] = 0, 0, -1
    if n > 0:
        size, scratch = n * width, w.work + (2 * n + 5) * width
        for i in range(PAST * size):
            w.X[i] = 0.0
        call(kernels.guess, w.X, w.Z, w.c, w.work, scratch)
        for s in range(PAST):
            for i in range(size):
                w.X[s * size + i] = scratch[i]
        for i in range(w.work_rows * width):
            w.work[i] = np.inf if i < size else 0.0  # infinite reciprocal bounds until the first evaluation


@lowered
def _begin(kernels: LaneKernels, w: Lanes, times: Times, kept: Kept) -> None:
    """Initialise the monitor with the initial state, and store it as the first row."""
    for i in range(w.seen_rows * w.width):
        w.seen[i] = w.unseen[i]
    _look(kernels.begin, w, 0, times.t0)
    _look(kernels.watch, w, 0, times.t0)
    if kept.histograms.size > 0:
        _sort_in(kept.histograms, w)
    for i in range(w.width):
        w.until[i] = 0
    _keep_row(w, 0, 0, kept)


@lowered
def note(w: Lanes, j: int, steps: int, kept: Kept) -> None:
    """Store the monitor and the counters of the member in lane j at the end of its integration."""
    m = w.members[j]
    kept.steps[m], kept.corrections[m] = steps, w.counts[j]
    for i in range(w.seen_rows):
        kept.seen[m * w.seen_rows + i] = w.seen[i * w.width + j]


@lowered
def finish(w: Lanes, times: Times, kept: Kept) -> None:
    """Store the last row and the summaries of all completed members."""
    for i in range(w.width):
        w.until[i] = 0
    _keep_row(w, 0, times.rows - 1, kept)
    for j in range(w.width):
        if w.members[j] >= 0:
            note(w, j, times.steps + (1 if times.rest > 0.0 else 0), kept)


@lowered
def run_groups(kernels: LaneKernels, w: Lanes, given: Members, first: int, last: int, times: Times, kept: Kept) -> int:
    """Integrate groups of members from `first_group` to `last_group` - 1, until a lane requires the scalar fallback.

    Returns the current group, or `last_group` when all groups are finished.
    """
    for group in range(first, last):
        _fill(kernels, w, given, group * w.width, times)
        _begin(kernels, w, times, kept)
        w.told[PART] = 0
        if not advance_far(kernels, w, kept, 0, times.steps, times.every, times.h, times.t0):
            return group
        if times.rest > 0.0:
            w.told[PART] = 1
            origin = times.t0 + times.steps * times.h
            if not advance_far(kernels, w, kept, 0, 1, times.rows, times.rest, origin):
                return group
        finish(w, times, kept)
    return last


together(run_groups, advance_far, hand_on, note, finish)
