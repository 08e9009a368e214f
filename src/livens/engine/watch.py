"""Code generation for the drift monitor of an ensemble: running maxima and sums per SIMD lane.

The algorithm is that of `livens.engine.observables.drift_monitor` for one trajectory. NaN propagates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import casadi as ca
import numpy as np

from livens.engine.emit import Emitter, literal
from livens.engine.kernels import writer
from livens.engine.native import Code, find_or_compile

_X, _Z, _C, _SEEN, _ = range(5)


@dataclass(frozen=True)
class Watched:
    """Monitored columns ``(energy, magnitude, |g|, |G v|, momenta..., reduced...)`` of every state."""

    function: ca.Function  # of (x, z, c), the inputs of kernels
    sizes: tuple[int, ...]  # number of columns of each momentum
    reduced: int  # number of columns at the end with streaming statistics (sum, minimum, maximum)
    supplied: int = -1  # index of the supplied energy in the state, or -1

    @property
    def columns(self) -> int:
        return int(self.function.numel_out(0))

    @property
    def places(self) -> SeenPlaces:
        largest = 2 + self.columns
        sums = largest + 5 + 2 * len(self.sizes)
        lowest, highest, now, trusted = (sums + i * self.reduced for i in range(1, 5))
        return SeenPlaces(0, 1, 2, largest, sums, lowest, highest, now, trusted, trusted + 1)


class SeenPlaces(NamedTuple):
    """Offsets in the monitor of an ensemble, in rows of one number per lane."""

    mask: int  # monitored lanes
    last: int  # energy of the last state
    first: int  # columns of the initial state
    largest: int  # maxima as in `livens.engine.observables.drift_monitor`
    sums: int  # sums of the reduced columns over all states
    lowest: int
    highest: int
    now: int  # reduced columns of the current state
    trusted: int  # reference energy as in `livens.engine.observables.drift_monitor`
    rows: int  # number of rows


def unseen(watched: Watched, width: int, array: np.ndarray) -> np.ndarray:
    """Fill a zero array with the monitor before the first state."""
    at = watched.places
    array[at.mask] = 1.0
    array[at.lowest : at.highest], array[at.highest : at.now] = np.inf, -np.inf
    return array


def watch_kernel(watched: Watched, width: int) -> Code:
    """Compile the monitor update by one state, in the lanes of the mask."""
    content = f"{writer()} {width} {watched.sizes} {watched.reduced} {watched.supplied} {watched.function.serialize()}"
    return find_or_compile(content, lambda: _text(watched, width), "watch", 1)


def first_kernel(watched: Watched, width: int) -> Code:
    """Compile the monitor initialisation: columns and energy of the initial state."""
    content = f"{writer()} first {width} {watched.supplied} {watched.function.serialize()}"
    return find_or_compile(content, lambda: _first_text(watched, width), "begin", 1)


def _row(emitter: Emitter, watched: Watched) -> tuple[list[str], str]:
    """Return the columns of a state, and its energy minus the supplied energy."""
    f = watched.function
    (row,) = emitter.graph(f, [emitter.inputs(p, f.nnz_in(p)) for p in (_X, _Z, _C)])
    energy = row[0]
    if watched.supplied >= 0:
        supplied, dissipated = (emitter.load(_Z, watched.supplied + i) for i in range(2))
        energy = emitter.sub(energy, emitter.sub(supplied, dissipated))
    return row, energy


def _first_text(watched: Watched, width: int) -> str:
    emitter, at = Emitter("begin", 5, width), watched.places
    row, energy = _row(emitter, watched)
    for j, value in enumerate(row):
        emitter.store(value, _SEEN, at.first + j)
    emitter.store(energy, _SEEN, at.last)
    return emitter.text()


def _text(watched: Watched, width: int) -> str:
    emitter, at = Emitter("watch", 5, width), watched.places
    row, energy = _row(emitter, watched)
    active = emitter.truth(emitter.load(_SEEN, at.mask))

    def update(place: int, value: str) -> None:
        emitter.store(emitter.select(active, value, emitter.load(_SEEN, place)), _SEEN, place)

    def keep(place: int, found: str, relation: str = "ugt") -> None:
        """Update a running maximum (or minimum). NaN propagates."""
        old = emitter.load(_SEEN, place)
        changed = emitter.both(emitter.compare(relation, found, old), emitter.compare("ord", old, old))
        emitter.store(emitter.select(emitter.both(active, changed), found, old), _SEEN, place)

    drift, magnitude = emitter.fabs(emitter.sub(energy, emitter.load(_SEEN, at.first))), emitter.fabs(row[1])
    keep(at.largest, drift)
    keep(at.largest + 1, emitter.fabs(emitter.sub(energy, emitter.load(_SEEN, at.last))))
    update(at.last, energy)
    for j in range(3):
        keep(at.largest + 2 + j, emitter.fabs(row[1 + j]))
    right = emitter.compare("ole", drift, emitter.mul(literal(0.5), magnitude))
    right = emitter.both(right, emitter.compare("olt", magnitude, literal(math.inf)))
    known = emitter.load(_SEEN, at.trusted)
    larger = emitter.both(emitter.both(active, right), emitter.compare("ogt", magnitude, known))
    emitter.store(emitter.select(larger, magnitude, known), _SEEN, at.trusted)
    column = 4
    for j, size in enumerate(watched.sizes):
        here = range(column, column + size)
        moved = [emitter.sub(row[k], emitter.load(_SEEN, at.first + k)) for k in here]
        keep(at.largest + 5 + 2 * j, _length(emitter, moved))
        keep(at.largest + 6 + 2 * j, _length(emitter, [row[k] for k in here]))
        column += size
    for j in range(watched.reduced):
        value = row[column + j]
        update(at.sums + j, emitter.add(emitter.load(_SEEN, at.sums + j), value))
        keep(at.lowest + j, value, "ult")
        keep(at.highest + j, value)
        update(at.now + j, value)
    return emitter.text()


def _length(emitter: Emitter, vector: list[str]) -> str:
    total = emitter.mul(vector[0], vector[0])
    for value in vector[1:]:
        total = emitter.add(total, emitter.mul(value, value))
    return emitter.intrinsic("sqrt", total)
