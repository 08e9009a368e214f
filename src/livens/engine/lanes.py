"""The loop over time for many trajectories at once, compiled once per machine: each has a lane of its own.

Entry i of a vector is a row of one number per lane, and arrays are such rows, one behind the other. Lanes share the
instructions and nothing else: what one of them does, or fails to do, changes no bit of another.
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

#: A lane leaves for another pivot order after this many corrections. A few more of them, which converge slowly, take
#: far less time than to find such an order.
PATIENCE = 10
#: Where a call says in which of its two parts a group is, how many steps are done before the chunk at hand, and the
#: size of that chunk. The second part is the last, shorter step.
PART, DONE, COUNT, TOLD = range(4)


@dataclass(frozen=True, eq=False)
class LaneKernels(Record):
    """Addresses of the native functions of one step, for all lanes; 0 for those a scheme has not."""

    first: int
    further: int
    residual: int
    predict: int
    floor: int
    guess: int
    end: int
    begin: int  # look at the first state
    watch: int  # and at every state


@dataclass(frozen=True, eq=False)
class Lanes(Record):
    """The arrays of a chunk of steps, as `livens.engine.newton.Workspace` has them for one trajectory."""

    width: int
    states: int  # entries of a state
    unknowns: int
    chunk: int  # steps
    c: Doubles
    Z: Doubles
    X: Doubles
    work: Doubles
    work_rows: int
    counts: Integers  # corrections of each lane
    dead: Integers  # lanes that wait for somebody to look after them
    died: Integers  # and the step they could not take
    until: Integers  # the last state of the chunk that a lane got to
    members: Integers  # which member a lane belongs to; -1 if its numbers count for nobody
    seen: Doubles  # rows of what was seen, see `livens.engine.watch.SeenPlaces`
    unseen: Doubles  # the same before the first state
    seen_rows: int
    told: Integers


@dataclass(frozen=True, eq=False)
class Members(Record):
    """States and parameters that all members begin with; the member is the first axis."""

    count: int
    z: Doubles
    parameters: int
    k: Doubles


@dataclass(frozen=True, eq=False)
class Histograms(Record):
    """How often the values of reduced columns fall between equally spaced edges; both ends count what lies beyond."""

    size: int  # how many there are
    columns: Integers  # which rows of what is seen
    low: Doubles
    scale: Doubles  # one over the width of a bin
    bins: Integers
    most: int  # counts that each has room for
    counts: Integers  # (member, histogram, bin)


@dataclass(frozen=True, eq=False)
class Kept(Record):
    """What is left of all members; the member is the first axis of every array."""

    column_count: int
    columns: Integers  # the entries of the state that are kept
    rows: int
    states: Doubles
    corrections: Integers
    steps: Integers
    seen: Doubles
    histograms: Histograms


@dataclass(frozen=True, eq=False)
class Times(Record):
    """Which steps are taken, and which rows are kept."""

    h: float
    t0: float
    steps: int
    rest: float  # the size of a last, shorter step; 0 if there is none
    every: int
    rows: int


# -- steps ------------------------------------------------------------------------------------------------------------
@lowered
def _measure_guess(kernels: LaneKernels, w: Lanes, z: Doubles, guess: Doubles, before: Doubles) -> None:
    """The largest residuals before the first correction, in units of their bounds; NaN where one of them is."""
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
    """Correct the lanes again that one correction was not enough for."""
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
        if iteration == 2:  # as for one trajectory: nobody has measured the guess so far
            close = False
            for i in range(width):
                close = close or (active[i] != 0.0 and SMALL < worst[i] <= 1.0)
            if close:
                _measure_guess(kernels, w, z, guess, before)
        for i in range(width):
            if active[i] == 0.0:
                continue
            w.counts[i] += 1
            if iteration == 2:  # what the first correction left has just been measured
                last[i] = first[i]
            if worst[i] <= 1.0 and (stalls[i] > 0.0 or at_the_floor(worst[i], last[i], before[i], iteration)):
                active[i] = 0.0
            elif not worst[i] < np.inf:
                active[i], dead[i] = 0.0, 1
            elif worst[i] > 0.5 * last[i]:  # no gain: the next correction is measured with new bounds
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
    """Take steps; a lane that cannot take one is `dead` from there on and says which one it was in `died`."""
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
            # the guess may look at the unknowns, and the lanes that are smooth must keep theirs
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
    """Take state s of the chunk into account, as `livens.engine.watch` does it."""
    for i in range(w.width):
        w.c[w.width + i] = t
    z = w.Z + s * w.states * w.width
    call(kernel, z, z, w.c, w.seen, z)


@lowered
def _sort_in(histograms: Histograms, w: Lanes) -> None:
    """Count the values of the state at hand, in the lanes that the mask names."""
    for j in range(w.width):
        if w.members[j] < 0 or w.seen[j] == 0.0:
            continue
        for i in range(histograms.size):
            value = w.seen[histograms.columns[i] * w.width + j]
            place = (value - histograms.low[i]) * histograms.scale[i]
            if place != place:  # what is not a number lies nowhere
                continue
            last = histograms.bins[i] + 1
            k = 0 if not place >= 0.0 else last if place >= histograms.bins[i] else 1 + int(place)
            histograms.counts[(w.members[j] * histograms.size + i) * histograms.most + k] += 1


@lowered
def _keep_row(w: Lanes, s: int, row: int, kept: Kept) -> None:
    """Store state s of the chunk as a row of each member, in the lanes that got there."""
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
    """Look at the states of a chunk, keep those that are asked for, and make its end the beginning of the next."""
    width, least = w.width, count
    for i in range(width):
        least = min(least, w.until[i])
    for s in range(1, count + 1):
        if s > least:  # lanes that did not get there are not looked at
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
    for i in range(PAST * size):  # in this order, as the rows may overlap
        w.X[i] = w.X[count * size + i]


@lowered
def _at_the_end(w: Lanes, count: int) -> bool:
    """Whether all lanes got to the end of a chunk, with finite numbers."""
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
    """Chunk after chunk, until all steps are taken, or somebody has to look after a lane in the chunk at hand.

    The arrays hold one chunk, so that they stay in the cache. Returns whether all steps are taken.
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
    """Put the members from number `first` on into the lanes; the last one fills those that are left over."""
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
            w.work[i] = np.inf if i < size else 0.0  # bounds that accept nothing, until they are computed


@lowered
def _begin(kernels: LaneKernels, w: Lanes, times: Times, kept: Kept) -> None:
    """The first state is what later ones are compared with, and the first row."""
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
    """Write down what was seen of the member in lane j, which is at its end."""
    m = w.members[j]
    kept.steps[m], kept.corrections[m] = steps, w.counts[j]
    for i in range(w.seen_rows):
        kept.seen[m * w.seen_rows + i] = w.seen[i * w.width + j]


@lowered
def finish(w: Lanes, times: Times, kept: Kept) -> None:
    """The last row, and what was seen of all members that got to the end."""
    for i in range(w.width):
        w.until[i] = 0
    _keep_row(w, 0, times.rows - 1, kept)
    for j in range(w.width):
        if w.members[j] >= 0:
            note(w, j, times.steps + (1 if times.rest > 0.0 else 0), kept)


@lowered
def run_groups(kernels: LaneKernels, w: Lanes, given: Members, first: int, last: int, times: Times, kept: Kept) -> int:
    """Group after group, from number `first` to before `last`, until somebody has to look after a lane.

    Returns the group at hand, and `last` at the end.
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
