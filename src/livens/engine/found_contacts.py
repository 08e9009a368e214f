"""Broad-phase contact detection: Verlet neighbour list, rebuilt from a cell list when a body has moved half the skin.

The list contains all pairs of shapes whose bounding spheres are closer than the skin. Pairs are sorted by shape, so
that forces are summed in the same order for every list: a resumed run, with another list, reproduces the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from livens.engine.kernels import simple_kernel
from livens.engine.lowering.function import lowered, together
from livens.engine.lowering.kinds import Doubles, Integers, Record
from livens.engine.lowering.words import call
from livens.engine.native import Code
from livens.engine.newton import Kernels
from livens.models.found_contacts import ACCOUNTS, FoundContacts

#: Maximum number of cells per shape; for widely separated shapes cells are larger than necessary.
_CELLS_PER_MEMBER = 2
#: Capacity of the list per shape; if it overflows, all pairs are tested.
_MOST_NEIGHBOURS = 200
#: Indices into `NeighbourListArrays.counters`: number of pairs in the list (-1: overflow), rebuilds, tested pairs, and
#: pairs with overlapping bounding spheres, summed over all evaluations.
COUNT, MADE, LOOKED, MET = 0, 1, 2, 3


@dataclass(frozen=True, eq=False)
class Tables(Record):
    """Parameters of all shapes, neighbour list, and workspace of one evaluation."""

    size: int  # number of coordinates
    accounts: int
    count: int  # number of shapes
    kinds: int
    dimension: int
    first: Integers  # first coordinate of the body of a shape
    entries: Integers  # number of its coordinates
    levers: Doubles
    reach: Doubles
    group: Integers
    kind: Integers
    # small shapes (in cells), and large ones; planes are given by normal and distance from the origin
    narrow: Integers
    narrow_count: int
    wide: Integers
    wide_count: int
    is_plane: Integers
    planes: Doubles
    # CSR lists of the following shapes that a shape never touches
    apart_first: Integers
    apart: Integers
    # CSR lists of the contact kernels of two shape types
    touch_first: Integers
    function: Integers
    turned: Integers
    numbers_first: Integers
    numbers: Doubles
    # neighbour list
    margin: float
    most: int
    x: Doubles
    x_made: Doubles
    near_first: Integers
    near: Integers
    told: Integers
    cells: Integers
    lower: Doubles
    head: Integers
    next: Integers
    cell: Integers
    # workspace of a pair
    q: Doubles
    v: Doubles
    out: Doubles


@lowered
def _centres(t: Tables, q: Doubles) -> float:
    """Update the centres of the bounding spheres; return the largest squared displacement since the last rebuild."""
    d, most = t.dimension, 0.0
    for i in range(t.count):
        square = 0.0
        for axis in range(d):
            x = t.levers[3 * i + axis]
            if t.entries[i] > 0:
                own = t.first[i] + axis
                x = q[own]
                if t.entries[i] > d:
                    for j in range(d):
                        x += t.levers[3 * i + j] * q[own + d * (j + 1)]
            t.x[3 * i + axis] = x
            away = x - t.x_made[3 * i + axis]
            square += away * away
        if most == most and not square <= most:  # NaN counts as moved
            most = square
    return most


@lowered
def _square(t: Tables, i: int, j: int) -> float:
    """Return the squared distance of two centres."""
    found = 0.0
    for axis in range(t.dimension):
        away = t.x[3 * i + axis] - t.x[3 * j + axis]
        found += away * away
    return found


@lowered
def _may_touch(t: Tables, i: int, j: int) -> bool:
    """Return True if contact between shapes i < j is not excluded."""
    if t.group[i] != t.group[j]:
        return False
    for a in range(t.apart_first[i], t.apart_first[i + 1]):  # noqa: SIM110 - compiled code has no generators
        if t.apart[a] == j:
            return False
    return True


@lowered
def _cell_of(t: Tables, i: int, axis: int, size: float) -> int:
    s, last = (t.x[3 * i + axis] - t.lower[axis]) / size, t.cells[axis] - 1
    if not s > 0.0:
        return 0
    if s >= float(last):
        return last
    return int(s)


@lowered
def _sort(t: Tables) -> float:
    """Build the cell list with cells at least as large as two bounding radii and the skin; return the cell size."""
    largest = 0.0
    for axis in range(3):
        t.lower[axis], t.lower[3 + axis] = 0.0, 0.0
    for n in range(t.narrow_count):
        i = t.narrow[n]
        largest = max(largest, t.reach[i])
        for axis in range(t.dimension):
            x = t.x[3 * i + axis]
            if n == 0 or x < t.lower[axis]:
                t.lower[axis] = x
            if n == 0 or x > t.lower[3 + axis]:
                t.lower[3 + axis] = x
    size, most = 2.0 * largest + t.margin, float(_CELLS_PER_MEMBER * t.narrow_count + 8)
    again = True
    while again:
        total = 1.0
        for axis in range(3):
            wanted = (t.lower[3 + axis] - t.lower[axis]) / size
            cells = 1
            if wanted > 1.0:
                cells = int(min(wanted, most)) + 1
            t.cells[axis] = cells
            total *= float(cells)
        again = total > most
        if again:
            size *= 1.2
    for c in range(t.cells[0] * t.cells[1] * t.cells[2]):
        t.head[c] = -1
    for n in range(t.narrow_count):
        i = t.narrow[n]
        c = (_cell_of(t, i, 0, size) * t.cells[1] + _cell_of(t, i, 1, size)) * t.cells[2] + _cell_of(t, i, 2, size)
        t.cell[i], t.next[i] = c, t.head[c]
        t.head[c] = i
    return size


@lowered
def _insert(t: Tables, begin: int, end: int, j: int) -> None:
    """Insert a neighbour into the sorted range from `begin` to `end`."""
    p = end
    while p > begin and t.near[p - 1] > j:
        t.near[p] = t.near[p - 1]
        p -= 1
    t.near[p] = j


@lowered
def _neighbours(t: Tables) -> None:
    """Rebuild the neighbour list: all pairs closer than the skin."""
    _sort(t)
    nx, ny, nz, count = t.cells[0], t.cells[1], t.cells[2], 0
    for i in range(3 * t.count):
        t.x_made[i] = t.x[i]
    t.told[MADE] += 1
    for i in range(t.count):
        t.near_first[i] = count
        c = t.cell[i]
        if c >= 0:
            cz, cy, cx = c % nz, (c // nz) % ny, c // (nz * ny)
            for x in range(max(cx - 1, 0), min(cx + 2, nx)):
                for y in range(max(cy - 1, 0), min(cy + 2, ny)):
                    for z in range(max(cz - 1, 0), min(cz + 2, nz)):
                        j = t.head[(x * ny + y) * nz + z]
                        while j >= 0:
                            within = t.reach[i] + t.reach[j] + t.margin
                            # NaN is close to everything
                            if j > i and not _square(t, i, j) > within * within and _may_touch(t, i, j):
                                if count == t.most:
                                    t.told[COUNT] = -1
                                    return
                                _insert(t, t.near_first[i], count, j)
                                count += 1
                            j = t.next[j]
    t.near_first[t.count] = count
    t.told[COUNT] = count


@lowered
def _touch(t: Tables, i: int, j: int, q: Doubles, v: Doubles, force: Doubles) -> None:
    """Evaluate the contact forces of a pair."""
    pair = t.kind[i] * t.kinds + t.kind[j]
    accounts = t.size + t.accounts * t.group[i]
    for s in range(t.touch_first[pair], t.touch_first[pair + 1]):
        a, b = i, j
        if t.turned[s]:
            a, b = j, i
        na, nb, fa, fb = t.entries[a], t.entries[b], t.first[a], t.first[b]
        for e in range(na):
            t.q[e], t.v[e] = q[fa + e], v[fa + e]
        for e in range(nb):
            t.q[na + e], t.v[na + e] = q[fb + e], v[fb + e]
        call(t.function[s], t.q, t.v, t.numbers + t.numbers_first[s], t.out, t.out)
        for e in range(na):
            force[fa + e] += t.out[e]
        for e in range(nb):
            force[fb + e] += t.out[na + e]
        for e in range(t.accounts):
            force[accounts + e] += t.out[na + nb + e]


@lowered
def _met(t: Tables, i: int, j: int) -> bool:
    """Return True if the bounding spheres of two shapes overlap."""
    t.told[LOOKED] += 1
    within = t.reach[i] + t.reach[j]
    found = not _square(t, i, j) > within * within
    t.told[MET] += found
    return found


@lowered
def _met_wide(t: Tables, i: int, w: int) -> bool:
    """Return True if a shape overlaps a large shape or plane."""
    if t.is_plane[i]:
        return _over(t, i, w)
    if t.is_plane[w]:
        return _over(t, w, i)
    return _met(t, i, w)


@lowered
def _over(t: Tables, plane: int, i: int) -> bool:
    """Return True if the bounding sphere of a shape reaches below a plane."""
    height = -t.planes[4 * plane + 3]
    for axis in range(t.dimension):
        height += t.planes[4 * plane + axis] * t.x[3 * i + axis]
    t.told[LOOKED] += 1
    found = not height > t.reach[i]
    t.told[MET] += found
    return found


@lowered
def contacts(q: Doubles, v: Doubles, time: Doubles, t: Tables, force: Doubles) -> None:
    """Evaluate the forces of all contacts, followed by their energy terms."""
    for e in range(t.size + t.accounts * (t.group[t.count] + 1)):
        force[e] = 0.0
    moved = _centres(t, q)
    if t.told[COUNT] < 0 or not 4.0 * moved <= t.margin * t.margin or not t.told[MADE]:
        _neighbours(t)
    full = t.told[COUNT] < 0
    for i in range(t.count):
        if full and t.cell[i] >= 0:  # the list has overflowed
            for n in range(t.narrow_count):
                j = t.narrow[n]
                if j > i and _met(t, i, j) and _may_touch(t, i, j):
                    _touch(t, i, j, q, v, force)
        elif t.cell[i] >= 0:
            for n in range(t.near_first[i], t.near_first[i + 1]):
                j = t.near[n]
                if _met(t, i, j):
                    _touch(t, i, j, q, v, force)
        for n in range(t.wide_count):
            w = t.wide[n]
            # a large and a small shape are paired once; two large shapes where the first one is i
            if (t.cell[i] >= 0 or w > i) and w != i:
                a, b = min(i, w), max(i, w)
                if _may_touch(t, a, b) and _met_wide(t, i, w):
                    _touch(t, a, b, q, v, force)


together(contacts)


def tables(found: FoundContacts, k: np.ndarray) -> tuple[Tables, list[Code]]:
    """Return the arrays of the compiled loops for the parameters of one run, and the code that they refer to."""
    members, d = found.members, found.dimension
    count, kinds = len(members), max(one.kind for one in members) + 1
    codes = [simple_kernel(function, "touch") for function in found.functions]
    firsts, functions, turned, places, numbers = [0], [], [], [], []
    own = {group: k[list(one.where)] for group, one in enumerate(found.groups)}
    group_of = {one.kind: one.group for one in members}
    at = 0
    for a in range(kinds):
        for b in range(kinds):
            for touch in found.touches.get((a, b), ()):
                row = np.concatenate([touch.numbers, own[group_of[a]]])
                functions.append(codes[touch.function].address)
                turned.append(int(touch.turned))
                places.append(at)
                numbers.append(row)
                at += row.size
            firsts.append(len(functions))
    wide = set(found.wide)
    narrow = [i for i in range(count) if i not in wide]
    apart_first, apart = _apart(found)
    planes = np.zeros((count, 4))
    for row, one in zip(planes, members, strict=True):
        if one.plane is not None:
            row[:d], row[3] = one.plane[:d], one.plane[d]
    most = int(min(count * (count - 1) // 2 + 1, _MOST_NEIGHBOURS * count))
    levers = np.zeros((count, 3))
    levers[:, :d] = [one.lever for one in members]
    width = max(one.count for one in members)
    made = Tables(
        size=found.size,
        accounts=len(ACCOUNTS),
        count=count,
        kinds=kinds,
        dimension=d,
        first=_integers([one.first for one in members]),
        entries=_integers([one.count for one in members]),
        levers=levers,
        reach=np.array([one.reach for one in members]),
        group=_integers([*(one.group for one in members), len(found.groups) - 1]),
        kind=_integers([one.kind for one in members]),
        narrow=_integers(narrow),
        narrow_count=len(narrow),
        wide=_integers(sorted(wide)),
        wide_count=len(wide),
        is_plane=_integers([one.plane is not None for one in members]),
        planes=planes,
        apart_first=apart_first,
        apart=apart,
        touch_first=_integers(firsts),
        function=_integers(functions),
        turned=_integers(turned),
        numbers_first=_integers(places),
        numbers=np.concatenate([*numbers, np.zeros(1)]),
        margin=max(group.margin for group in found.groups),
        most=most,
        x=np.zeros(3 * count),
        x_made=np.zeros(3 * count),
        near_first=np.zeros(count + 1, dtype=np.int64),
        near=np.empty(most + 1, dtype=np.int64),
        told=np.zeros(4, dtype=np.int64),
        cells=np.ones(3, dtype=np.int64),
        lower=np.zeros(6),
        head=np.empty(_CELLS_PER_MEMBER * count + 9, dtype=np.int64),
        next=np.full(count, -1, dtype=np.int64),
        cell=np.full(count, -1, dtype=np.int64),
        q=np.zeros(2 * width + 1),
        v=np.zeros(2 * width + 1),
        out=np.zeros(2 * width + len(ACCOUNTS)),
    )
    return made, codes


def _apart(found: FoundContacts) -> tuple[np.ndarray, np.ndarray]:
    """Return CSR lists of excluded pairs: shapes of the same body, or of bodies connected by a joint."""
    of_body: dict[int, list[int]] = {}
    for i, one in enumerate(found.members):
        of_body.setdefault(one.body, []).append(i)
    others: dict[int, set[int]] = {body: {body} for body in of_body}
    for a, b in found.apart:
        if a in others and b in others:
            others[a].add(b)
            others[b].add(a)
    firsts, listed = [0], list[int]()
    for i, one in enumerate(found.members):
        listed += sorted(j for body in others[one.body] for j in of_body[body] if j > i)
        firsts.append(len(listed))
    return _integers(firsts), _integers(listed)


def _integers(values: object) -> np.ndarray:
    found = np.array(values, dtype=np.int64).ravel()
    return found if found.size else np.zeros(1, dtype=np.int64)


class ContactTables:
    """Neighbour list of the detected contacts of one run."""

    def __init__(self, found: FoundContacts, k: np.ndarray) -> None:
        self.tables, self._codes = tables(found, k)
        self.address = contacts.address  # type: ignore[attr-defined]  # attribute of a lowered function

    def __call__(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the forces on all coordinates in a state, followed by the energy terms."""
        t = self.tables
        found = np.zeros(t.size + t.accounts * (int(t.group[t.count]) + 1))
        contacts(np.ascontiguousarray(q), np.ascontiguousarray(v), np.zeros(1), t, found)
        return found


def joined(kernels: Kernels, own: ContactTables | None) -> Kernels:
    """Return the kernels of a step with the contacts of one run as external force."""
    return kernels if own is None else replace(kernels, box=own.address, box_tables=own.tables.address)
