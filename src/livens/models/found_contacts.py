"""Contacts that are found while bodies move: which shapes there are, and what two of them do to each other.

They are no elements, of which n bodies would have n(n - 1)/2: schemes that evaluate expensive forces once per step ask
for all of them at once, as they do with a black box. The engine looks only at shapes that are near each other.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from livens.models.black_box import BlackBox

#: What a group of contacts has accounts of: the energy stored, and the powers that are lost.
ACCOUNTS = ("stored", "damping", "sliding", "pivoting", "rolling")
#: A shape that is larger than this many usual ones is compared with all others, so that cells need not be as large.
_WIDE = 4.0


@dataclass(frozen=True, eq=False)
class Member:
    """A shape that may touch others of its group: where its body's coordinates are, and a ball that it lies in."""

    body: int
    group: int
    kind: int  # shapes of one kind differ in nothing but their bodies
    first: int  # of the coordinates
    count: int  # none, if it belongs to the ground
    lever: np.ndarray  # from the centre of the body to that of the ball, along the directors
    reach: float
    #: Of a plane in space: its normal, and how far from the origin it is along that.
    plane: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Touch:
    """One place where shapes of two kinds may touch: a function of both bodies' coordinates and rates, its numbers.

    The function is one of ``(q, v, k)``; it says the forces on these coordinates, then what `ACCOUNTS` has. Its k are
    the numbers, then those of the group.
    """

    function: int
    turned: bool  # the body of the second kind comes first
    numbers: np.ndarray


@dataclass(frozen=True, eq=False)
class Group:
    """Contacts with one law: its name, how near shapes are looked at, and where its numbers are among parameters."""

    name: str
    margin: float
    where: tuple[int, ...]


def lost_power(accounts: Any) -> Any:
    """What all groups together lose: of each, all accounts but that of what is stored."""
    rows = ca.reshape(accounts, len(ACCOUNTS), accounts.numel() // len(ACCOUNTS))
    return ca.sum1(ca.sum2(rows[1:, :]))


class FoundContacts(BlackBox):
    """All contacts of a system that are found while it moves, as one expensive force."""

    velocities = True

    def __init__(
        self,
        size: int,
        dimension: int,
        groups: Sequence[Group],
        members: Sequence[Member],
        functions: Sequence[ca.Function],
        gaps: Sequence[ca.Function],
        touches: Mapping[tuple[int, int], Sequence[Touch]],
        apart: frozenset[tuple[int, int]],
    ) -> None:
        self.size, self.dimension = size, dimension
        self.groups, self.members, self.functions = tuple(groups), tuple(members), tuple(functions)
        #: Of the same arguments, how far apart the surfaces are.
        self.gaps = tuple(gaps)
        self.touches = {pair: tuple(some) for pair, some in touches.items()}
        #: Pairs of bodies that never touch, such as those that a joint holds together.
        self.apart = apart
        self.address, self.function = 0, None  # the engine has code of its own for them
        self.accounts = len(ACCOUNTS) * len(self.groups)

    def content(self) -> Sequence[Any]:
        """What the equations of a step depend on."""
        told = hashlib.sha256()
        for group in self.groups:
            told.update(repr((group.name, group.margin, group.where)).encode())
        for one in self.members:
            told.update(repr((one.body, one.group, one.kind, one.first, one.count, one.reach)).encode())
            told.update(one.lever.tobytes())
            told.update(b"" if one.plane is None else one.plane.tobytes())
        for function in self.functions:
            told.update(function.serialize().encode())
        for pair, some in sorted(self.touches.items()):
            for touch in some:
                told.update(repr((pair, touch.function, touch.turned)).encode())
                told.update(touch.numbers.tobytes())
        told.update(repr(sorted(self.apart)).encode())
        return "found contacts", told.hexdigest()

    @functools.cached_property
    def wide(self) -> tuple[int, ...]:
        """The members that are compared with all others: planes, and those that are far larger than most."""
        reach = np.array([one.reach for one in self.members])
        finite = reach[np.isfinite(reach)]
        limit = _WIDE * float(np.median(finite)) if finite.size else 0.0
        return tuple(int(i) for i in np.flatnonzero(~(reach <= limit)))

    def allowed(self, i: int, j: int) -> bool:
        """Whether two members may touch at all."""
        a, b = self.members[i], self.members[j]
        pair = min(a.body, b.body), max(a.body, b.body)
        return a.group == b.group and a.body != b.body and pair not in self.apart and a.count + b.count > 0

    def centres(self, q: np.ndarray) -> np.ndarray:
        """The centres of the balls that members lie in."""
        d, found = self.dimension, np.zeros((len(self.members), self.dimension))
        for row, one in zip(found, self.members, strict=True):
            if not one.count:
                row[:] = one.lever
                continue
            own = q[one.first : one.first + one.count].reshape(-1, d)
            row[:] = own[0] + one.lever[: len(own) - 1] @ own[1:]
        return found

    def near(self, q: np.ndarray) -> Iterator[tuple[int, int]]:
        """Pairs of members whose balls overlap, in order."""
        from scipy.spatial import cKDTree  # it takes long to import, and only these models need it

        x, reach = self.centres(q), np.array([one.reach for one in self.members])
        wide = set(self.wide)
        others = [i for i in range(len(x)) if i not in wide]
        found: set[tuple[int, int]] = set()
        if len(others) > 1:
            tree = cKDTree(x[others])
            found |= {(others[i], others[j]) for i, j in tree.query_pairs(2 * float(reach[others].max()))}
        found |= {(min(i, j), max(i, j)) for i in wide for j in range(len(x)) if i != j}
        for i, j in sorted((min(pair), max(pair)) for pair in found):
            if self.allowed(i, j) and self._overlap(x, reach, i, j):
                yield i, j

    def _overlap(self, x: np.ndarray, reach: np.ndarray, i: int, j: int) -> bool:
        for a, b in ((i, j), (j, i)):
            plane = self.members[a].plane
            if plane is not None:
                return bool(plane[:-1] @ x[b] - plane[-1] < reach[b])
        return bool(np.linalg.norm(x[i] - x[j]) < reach[i] + reach[j])

    def _places(self, i: int, j: int, k: np.ndarray) -> Iterator[tuple[int, int, int, np.ndarray]]:
        """Where two members may touch: which one comes first, which second, the function there, and its numbers."""
        for touch in self.touches[self.members[i].kind, self.members[j].kind]:
            a, b = (j, i) if touch.turned else (i, j)
            where = list(self.groups[self.members[i].group].where)
            yield a, b, touch.function, np.concatenate([touch.numbers, k[where]])

    def pushes(self, q: np.ndarray, v: np.ndarray, k: np.ndarray) -> Iterator[tuple[int, int, int, np.ndarray]]:
        """Of all places that may touch: both members, how many coordinates the first has, what the function says."""
        for i, j in self.near(q):
            for a, b, function, numbers in self._places(i, j, k):
                where = [*self._own(a), *self._own(b)]
                said = self.functions[function](q[where], v[where], numbers)
                yield a, b, len(self._own(a)), np.array(said).ravel()

    def gaps_of(self, i: int, j: int, q: np.ndarray, k: np.ndarray) -> list[float]:
        """How far two members are apart wherever they may touch; negative, where they overlap."""
        found = []
        for a, b, function, numbers in self._places(i, j, k):
            where = [*self._own(a), *self._own(b)]
            found.append(float(self.gaps[function](q[where], 0 * q[where], numbers)))
        return found

    def _own(self, i: int) -> range:
        one = self.members[i]
        return range(one.first, one.first + one.count)

    def __call__(self, q: Any, v: Any, t: float, k: Any) -> np.ndarray:
        """Forces on all coordinates, and the accounts of all groups; compiled steps do the same, and faster."""
        q, v, k = (np.asarray(x, dtype=float).ravel() for x in (q, v, k))
        found = np.zeros(self.size + self.accounts)
        for a, b, _, said in self.pushes(q, v, k):
            where = [*self._own(a), *self._own(b)]
            found[where] += said[: len(where)]
            first = self.size + len(ACCOUNTS) * self.members[a].group
            found[first : first + len(ACCOUNTS)] += said[len(where) :]
        return found

    def powers(self, q: np.ndarray, v: np.ndarray, k: np.ndarray, group: int) -> np.ndarray:
        """Of one group: the power of its forces, then what `ACCOUNTS` has."""
        found = np.zeros(1 + len(ACCOUNTS))
        for a, b, _, said in self.pushes(q, v, k):
            if self.members[a].group == group:
                where = [*self._own(a), *self._own(b)]
                found[0] += said[: len(where)] @ v[where]
                found[1:] += said[len(where) :]
        return found

    def forces_on(self, q: np.ndarray, v: np.ndarray, k: np.ndarray, group: int) -> dict[tuple[int, int], np.ndarray]:
        """The forces of one group on the second of two members, in space, by pairs of members that touch."""
        found: dict[tuple[int, int], np.ndarray] = {}
        d = self.dimension
        for a, b, count, said in self.pushes(q, v, k):
            if self.members[a].group != group or not said[: len(said) - len(ACCOUNTS)].any():
                continue
            # the first d of the coordinates of a body are those of its centre
            force = said[count : count + d] if self.members[b].count else -said[:d]
            pair, force = ((a, b), force) if a < b else ((b, a), -force)
            found[pair] = found.get(pair, 0.0) + force
        return found

    def __repr__(self) -> str:
        return f"<contacts of {len(self.members)} shapes, found while they move>"
