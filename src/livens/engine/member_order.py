"""In which order the members of an ensemble are taken: those that are alike side by side."""

from __future__ import annotations

import numpy as np

#: Members are sorted by at most this many of their numbers; those whose correlation is larger than this say the same.
_AXES, _ALIKE = 3, 0.95


def ordered_members(z: np.ndarray, k: np.ndarray) -> np.ndarray:
    """Members with like numbers side by side: they need as many corrections, and none waits for another.

    They are taken along a curve that stays in one part of the space of their numbers before it goes to the next
    (Morton's): neighbours are alike in all numbers, not only in the first. The order follows from the numbers alone.
    """
    numbers = _varying(z, k)
    if not len(numbers):
        return np.arange(len(z))
    along = _along_the_curve(numbers)
    order = np.argsort(along, kind="stable")
    if np.all(np.diff(along[order]) > 0):
        return order
    return np.lexsort((*numbers[::-1], along))


def first_member(z: np.ndarray, k: np.ndarray) -> int:
    """A member that is the same in whatever order they are given: the one with the least numbers, one after another."""
    ties = np.arange(len(z))
    for column in (*k.T, *z.T):
        values = column[ties]
        least = np.fmin.reduce(values)
        if least == least:
            ties = ties[values == least]
        if len(ties) == 1:
            break
    return int(ties[0])


def _varying(z: np.ndarray, k: np.ndarray) -> np.ndarray:
    """The numbers in which members differ, a row for each of these."""
    columns = [column for part in (k, z) for column in np.ascontiguousarray(part.T)]
    different = [column for column in columns if (column != column[0]).any()]
    return np.array(different) if different else np.zeros((0, len(z)))


def _along_the_curve(numbers: np.ndarray) -> np.ndarray:
    """Where members are along the curve: bits of their numbers in turn, of a few that do not say the same."""
    chosen: list[np.ndarray] = []
    for column in numbers:
        low, high = column.min(), column.max()
        if not np.isfinite(high - low):
            continue
        place = (column - low) / (high - low)
        if all(abs(_correlation(place, other)) < _ALIKE for other in chosen):
            chosen.append(place)
        if len(chosen) == _AXES:
            break
    bits = 62 // max(1, len(chosen))
    along = np.zeros(numbers.shape[1], dtype=np.int64)
    wholes = [np.minimum((place * 2.0**bits).astype(np.int64), 2**bits - 1) for place in chosen]
    for bit in reversed(range(bits)):
        for whole in wholes:
            along = (along << 1) | ((whole >> bit) & 1)
    return along


def _correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Of numbers between 0 and 1, as whole ones: their sums are exact, whatever the order they are taken in."""
    a, b = (np.round(place * 2.0**15).astype(np.int64) for place in (a, b))
    n, x, y = len(a), int(a.sum()), int(b.sum())
    moments = [n * int((c * d).sum()) - e * f for c, d, e, f in ((a, b, x, y), (a, a, x, x), (b, b, y, y))]
    return moments[0] / max(float(moments[1]) * float(moments[2]), 1.0) ** 0.5
