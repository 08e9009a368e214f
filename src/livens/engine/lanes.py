"""The loop over time for many trajectories at once, compiled once per machine: each has a lane of its own.

Entry i of a vector is one number per lane, so arrays have the lane as their last axis. Lanes share the instructions and
nothing else: what one of them does, or fails to do, changes no bit of another.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np

from livens.engine.loop import REFRESH
from livens.engine.newton import (
    MOST_ITERATIONS,
    PAST,
    SUSPICIOUS,
    at_the_floor,
    call,
)

#: A lane leaves for another pivot order after this many corrections. A few more of them, which converge slowly, take
#: far less time than to find such an order.
PATIENCE = 10


class LaneKernels(NamedTuple):
    """Addresses of the native functions of one step, for all lanes; 0 for those a scheme has not."""

    first: int
    further: int
    predict: int
    floor: int
    guess: int
    end: int
    begin: int  # look at the first state
    watch: int  # and at every state


class Lanes(NamedTuple):
    """The arrays of a chunk of steps, as `livens.engine.newton.Workspace` has them for one trajectory."""

    c: np.ndarray
    Z: np.ndarray
    X: np.ndarray
    work: np.ndarray
    counts: np.ndarray  # corrections of each lane
    dead: np.ndarray  # lanes that wait for somebody to look after them
    died: np.ndarray  # and the step they could not take


class Histograms(NamedTuple):
    """How often the values of reduced columns fall between equally spaced edges; both ends count what lies beyond."""

    columns: np.ndarray  # which rows of what is seen
    low: np.ndarray
    scale: np.ndarray  # one over the width of a bin
    bins: np.ndarray
    counts: np.ndarray  # (member, histogram, bin)


class Kept(NamedTuple):
    """What is left of all members; the member is the first axis of every array."""

    states: np.ndarray
    corrections: np.ndarray
    steps: np.ndarray
    seen: np.ndarray  # rows of what was seen, see `livens.engine.watch.SeenPlaces`
    histograms: Histograms


class Times(NamedTuple):
    """Which steps are taken, and which rows are kept."""

    h: float
    t0: float
    steps: int
    rest: float  # the size of a last, shorter step; 0 if there is none
    every: int
    rows: int


@nb.njit(cache=True, nogil=True)
def _more_corrections(kernels: LaneKernels, w: Lanes, s: int, z: int, out: int) -> None:
    """Correct the lanes again that one correction was not enough for."""
    n, width = w.X.shape[1], w.X.shape[2]
    work, x, pc, pw = w.work, w.X[s + PAST], w.c.ctypes.data, w.work.ctypes.data
    px, lane = x.ctypes.data, 8 * width
    active, first, worst, growth = work[n], work[n + 1], work[n + 2], work[n + 3]
    dx, scratch = pw + lane * (n + 4), pw + lane * (2 * n + 5)
    last, before, stalls = work[3 * n + 5], work[3 * n + 6], work[3 * n + 7]
    for i in range(width):
        last[i], before[i], stalls[i] = np.inf, 0.0, 0.0
        active[i] = 0.0 if w.dead[i] or worst[i] <= 1.0 else 1.0
    for iteration in range(2, MOST_ITERATIONS + 1):
        left = False
        for i in range(width):
            left = left or active[i] != 0.0
        if not left:
            break
        call(kernels.further, px, z, pc, pw, out)
        refreshed = False
        for i in range(width):
            if active[i] == 0.0:
                continue
            w.counts[i] += 1
            if iteration == 2:  # what the first correction left has just been measured
                last[i] = first[i]
            if worst[i] <= 1.0 and (stalls[i] > 0.0 or at_the_floor(worst[i], last[i], before[i], iteration)):
                active[i] = 0.0
            elif not worst[i] < np.inf:
                active[i], w.dead[i] = 0.0, True
            elif worst[i] > 0.5 * last[i]:  # no gain: the next correction is measured with new bounds
                stalls[i] += 1.0
                if not refreshed:
                    call(kernels.floor, px, z, pc, dx, scratch)
                    refreshed = True
                for j in range(n):
                    work[j, i] = work[2 * n + 5 + j, i]
                if stalls[i] > 2.0:
                    active[i], w.dead[i] = 0.0, True
            elif growth[i] > SUSPICIOUS and iteration >= PATIENCE:
                active[i], w.dead[i] = 0.0, True
            before[i], last[i] = last[i], worst[i]
    for i in range(width):
        if active[i] != 0.0:
            w.dead[i] = True


@nb.njit(cache=True, nogil=True)
def advance(kernels: LaneKernels, w: Lanes, steps: int, number: int, h: float, origin: float) -> None:
    """Take steps; a lane that cannot take one is `dead` from there on and says which one it was in `died`."""
    n, width = w.X.shape[1], w.X.shape[2]
    c, work, X, dead, died, counts = w.c, w.work, w.X, w.dead, w.died, w.counts
    pc, pw, lane = c.ctypes.data, work.ctypes.data, 8 * width
    zrow, xrow = lane * w.Z.shape[1], lane * n
    trusted, verdict, scratch = work[2 * n + 4], work[n + 2], 2 * n + 5
    for i in range(width):
        c[0, i] = h
    for s in range(steps):
        t = origin + (number + s) * h
        for i in range(width):
            c[1, i] = t
        z = w.Z.ctypes.data + s * zrow
        if not n:
            call(kernels.end, z, z, pc, pw, z + zrow)
            continue
        past = X.ctypes.data + s * xrow
        px = past + PAST * xrow
        call(kernels.predict, past, z, pc, pw, pw + lane * (2 * n + 4))
        rough = False
        for i in range(width):
            rough = rough or trusted[i] == 0.0
            counts[i] += 1
        if rough:
            # the guess may look at the unknowns, and the lanes that are smooth must keep theirs
            call(kernels.guess, px, z, pc, pw, pw + lane * scratch)
            for j in range(n):
                for i in range(width):
                    if trusted[i] == 0.0:
                        X[s + PAST, j, i] = work[scratch + j, i]
        if (number + s) % REFRESH == 0:
            call(kernels.floor, px, z, pc, pw + lane * (n + 4), pw)
        call(kernels.first, px, z, pc, pw, z + zrow)
        good = True
        for i in range(width):
            good = good and (verdict[i] <= 1.0 or dead[i])
        if not good:
            _more_corrections(kernels, w, s, z, z + zrow)
            for i in range(width):
                if dead[i] and died[i] < 0:
                    died[i] = s


@nb.njit(cache=True, nogil=True)
def look(kernel: int, w: Lanes, s: int, t: float, seen: np.ndarray) -> None:
    """Take state s of the chunk into account, as `livens.engine.watch` does it."""
    for i in range(w.X.shape[2]):
        w.c[1, i] = t
    z = w.Z.ctypes.data + s * 8 * w.X.shape[2] * w.Z.shape[1]
    call(kernel, z, z, w.c.ctypes.data, seen.ctypes.data, z)


@nb.njit(cache=True, nogil=True)
def sort_in(histograms: Histograms, seen: np.ndarray, members: np.ndarray) -> None:
    """Count the values of the state at hand, in the lanes that the mask names."""
    for j in range(members.size):
        if members[j] < 0 or seen[0, j] == 0.0:
            continue
        for i in range(histograms.columns.size):
            place = (seen[histograms.columns[i], j] - histograms.low[i]) * histograms.scale[i]
            last = histograms.bins[i] + 1
            k = 0 if not place >= 0.0 else last if place >= histograms.bins[i] else 1 + int(place)
            histograms.counts[members[j], i, k] += 1


@nb.njit(cache=True, nogil=True)
def hand_on(
    kernels: LaneKernels,
    w: Lanes,
    done: int,
    count: int,
    every: int,
    h: float,
    origin: float,
    until: np.ndarray,
    members: np.ndarray,
    columns: np.ndarray,
    kept: Kept,
    seen: np.ndarray,
) -> None:
    """Look at the states of a chunk, keep those that are asked for, and make its end the beginning of the next."""
    n, nz, width = w.X.shape[1], w.Z.shape[1], w.X.shape[2]
    least = until.min()
    for s in range(1, count + 1):
        if s > least:  # lanes that did not get there are not looked at
            for i in range(width):
                seen[0, i] = 1.0 if s <= until[i] else 0.0
        look(kernels.watch, w, s, origin + (done + s) * h, seen)
        if kept.histograms.columns.size:
            sort_in(kept.histograms, seen, members)
        if (done + s) % every == 0:
            keep_row(w, s, (done + s) // every, until, members, columns, kept.states)
    for i in range(nz):
        for j in range(width):
            w.Z[0, i, j] = w.Z[count, i, j]
    for s in range(PAST):  # in this order, as the rows may overlap
        for i in range(n):
            for j in range(width):
                w.X[s, i, j] = w.X[count + s, i, j]


@nb.njit(cache=True, nogil=True)
def keep_row(
    w: Lanes, s: int, row: int, until: np.ndarray, members: np.ndarray, columns: np.ndarray, out: np.ndarray
) -> None:
    """Store state s of the chunk as a row of each member, in the lanes that got there."""
    for j in range(w.X.shape[2]):
        if members[j] >= 0 and s <= until[j]:
            for i in range(columns.size):
                out[members[j], row, i] = w.Z[s, columns[i], j]


@nb.njit(cache=True, nogil=True)
def advance_far(
    kernels: LaneKernels,
    w: Lanes,
    done: int,
    steps: int,
    every: int,
    h: float,
    origin: float,
    members: np.ndarray,
    columns: np.ndarray,
    kept: Kept,
    seen: np.ndarray,
) -> tuple[int, int]:
    """Chunk after chunk, until all steps are taken or somebody has to look after a lane in the chunk at hand.

    The arrays hold one chunk, so that they stay in the cache. Returns (steps done before the chunk at hand, its size);
    the size is 0 at the end.
    """
    chunk, width = w.Z.shape[0] - 1, w.X.shape[2]
    until = np.empty(width, dtype=np.int64)
    while done < steps:
        count = min(chunk, steps - done)
        advance(kernels, w, count, done, h, origin)
        for i in range(width):
            until[i] = count
            if w.dead[i]:
                return done, count
            for j in range(w.Z.shape[1]):
                if not np.isfinite(w.Z[count, j, i]):
                    return done, count
        hand_on(kernels, w, done, count, every, h, origin, until, members, columns, kept, seen)
        done += count
    return done, 0


@nb.njit(cache=True, nogil=True)
def fill(
    kernels: LaneKernels, w: Lanes, z: np.ndarray, k: np.ndarray, first: int, members: np.ndarray, times: Times
) -> None:
    """Put the members from number `first` on into the lanes; the last one fills those that are left over."""
    n, nz, width = w.X.shape[1], w.Z.shape[1], w.X.shape[2]
    for j in range(width):
        m = min(first + j, len(z) - 1)
        members[j] = m if first + j < len(z) else -1
        for i in range(nz):
            w.Z[0, i, j] = z[m, i]
        for i in range(k.shape[1]):
            w.c[2 + i, j] = k[m, i]
        w.c[0, j], w.c[1, j] = times.h, times.t0
        w.counts[j], w.dead[j], w.died[j] = 0, False, -1
    w.work[:] = 0.0
    if n:
        pw, scratch = w.work.ctypes.data, 2 * n + 5
        w.X[:PAST] = 0.0
        call(kernels.guess, w.X.ctypes.data, w.Z.ctypes.data, w.c.ctypes.data, pw, pw + 8 * width * scratch)
        for s in range(PAST):
            for i in range(n):
                for j in range(width):
                    w.X[s, i, j] = w.work[scratch + i, j]
        w.work[:] = 0.0
        w.work[:n] = np.inf  # bounds that accept nothing, until they are computed


@nb.njit(cache=True, nogil=True)
def begin(
    kernels: LaneKernels, w: Lanes, members: np.ndarray, times: Times, columns: np.ndarray, kept: Kept, seen: np.ndarray
) -> None:
    """The first state is what later ones are compared with, and the first row."""
    look(kernels.begin, w, 0, times.t0, seen)
    look(kernels.watch, w, 0, times.t0, seen)
    if kept.histograms.columns.size:
        sort_in(kept.histograms, seen, members)
    until = np.full(members.size, np.iinfo(np.int64).max)
    keep_row(w, 0, 0, until, members, columns, kept.states)


@nb.njit(cache=True, nogil=True)
def note(w: Lanes, j: int, steps: int, members: np.ndarray, kept: Kept, seen: np.ndarray) -> None:
    """Write down what was seen of a member that is at its end."""
    m = members[j]
    kept.steps[m], kept.corrections[m] = steps, w.counts[j]
    for i in range(kept.seen.shape[1]):
        kept.seen[m, i] = seen[i, j]


@nb.njit(cache=True, nogil=True)
def finish(w: Lanes, members: np.ndarray, times: Times, columns: np.ndarray, kept: Kept, seen: np.ndarray) -> None:
    """The last row, and what was seen of all members that got to the end."""
    until = np.full(members.size, np.iinfo(np.int64).max)
    keep_row(w, 0, times.rows - 1, until, members, columns, kept.states)
    for j in range(members.size):
        if members[j] >= 0:
            note(w, j, times.steps + (1 if times.rest > 0.0 else 0), members, kept, seen)


@nb.njit(cache=True, nogil=True)
def run_groups(
    kernels: LaneKernels,
    w: Lanes,
    z: np.ndarray,
    k: np.ndarray,
    first: int,
    last: int,
    members: np.ndarray,
    times: Times,
    columns: np.ndarray,
    kept: Kept,
    seen: np.ndarray,
    unseen: np.ndarray,
) -> tuple[int, int, int, int]:
    """Group after group, from number `first` to before `last`, until somebody has to look after a lane.

    Returns (the group at hand, which of its two parts, steps done before the chunk at hand, its size); at the end the
    group is `last`. The second part is the last, shorter step.
    """
    width = w.X.shape[2]
    for group in range(first, last):
        fill(kernels, w, z, k, group * width, members, times)
        seen[:] = unseen
        begin(kernels, w, members, times, columns, kept, seen)
        done, count = advance_far(
            kernels, w, 0, times.steps, times.every, times.h, times.t0, members, columns, kept, seen
        )
        if count:
            return group, 0, done, count
        if times.rest > 0.0:
            origin = times.t0 + times.steps * times.h
            done, count = advance_far(kernels, w, 0, 1, times.rows, times.rest, origin, members, columns, kept, seen)
            if count:
                return group, 1, done, count
        finish(w, members, times, columns, kept, seen)
    return last, 0, 0, 0
