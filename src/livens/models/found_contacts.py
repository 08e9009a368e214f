"""Detected contacts: penalty contacts with run-time collision detection.

Contacts are not elements, of which n bodies would have n(n - 1)/2. Schemes that evaluate expensive forces once per step
evaluate all contacts at once, like an external force. The engine tests only neighbouring shapes.
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

#: Energy terms of a contact group: the stored energy and the dissipated powers.
ACCOUNTS = ("stored", "damping", "sliding", "pivoting", "rolling")
#: Bounding radius, relative to the median, above which a shape is tested against all others instead of being binned.
_WIDE = 4.0


@dataclass(frozen=True, eq=False)
class Member:
    """Collision proxy of a shape: coordinate indices of its body and a bounding sphere."""

    body: int
    group: int
    kind: int  # shapes of one class differ only in their bodies
    first: int  # index of the first coordinate of the body
    count: int  # number of coordinates; 0 for the ground
    lever: np.ndarray  # centre of the bounding sphere relative to that of the body, in components along the directors
    reach: float
    #: Normal and offset of a plane; None for other shapes.
    plane: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Touch:
    """Possible contact point of two shape classes: kernel and its parameters.

    The kernel is a function of ``(q, v, k)`` of both bodies. It returns the forces on these coordinates, followed by
    the values of `ENERGY_TERMS`. Its k are `parameters`, followed by those of the group.
    """

    function: int
    turned: bool  # the body of the second class comes first
    numbers: np.ndarray


@dataclass(frozen=True, eq=False)
class Group:
    """Contact group with one contact law: its name, detection margin in metres, and parameter indices."""

    name: str
    margin: float
    where: tuple[int, ...]


def lost_power(accounts: Any) -> Any:
    """Return the dissipated power of all groups: the sum of all energy terms except the stored energy."""
    rows = ca.reshape(accounts, len(ACCOUNTS), accounts.numel() // len(ACCOUNTS))
    return ca.sum1(ca.sum2(rows[1:, :]))


class FoundContacts(BlackBox):
    """Detected contacts of a system as one expensive external force."""

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
        #: Gap functions, with the arguments of the kernels.
        self.gaps = tuple(gaps)
        self.touches = {pair: tuple(some) for pair, some in touches.items()}
        #: Pairs of bodies excluded from collision, such as bodies connected by a joint.
        self.apart = apart
        self.address, self.function = 0, None  # evaluated by dedicated code of the engine
        self.accounts = len(ACCOUNTS) * len(self.groups)

    def content(self) -> Sequence[Any]:
        """Return the fingerprint data: everything the step equations depend on."""
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
        """Unbounded or oversize proxies, which are tested against all others: planes and very large shapes."""
        reach = np.array([one.reach for one in self.members])
        finite = reach[np.isfinite(reach)]
        limit = _WIDE * float(np.median(finite)) if finite.size else 0.0
        return tuple(int(i) for i in np.flatnonzero(~(reach <= limit)))

    def allowed(self, i: int, j: int) -> bool:
        """Return whether two proxies may collide (collision filter)."""
        a, b = self.members[i], self.members[j]
        pair = min(a.body, b.body), max(a.body, b.body)
        return a.group == b.group and a.body != b.body and pair not in self.apart and a.count + b.count > 0

    def centres(self, q: np.ndarray) -> np.ndarray:
        """Return the centres of the bounding spheres, of shape (n_proxies, dimension)."""
        d, found = self.dimension, np.zeros((len(self.members), self.dimension))
        for row, one in zip(found, self.members, strict=True):
            if not one.count:
                row[:] = one.lever
                continue
            own = q[one.first : one.first + one.count].reshape(-1, d)
            row[:] = own[0] + one.lever[: len(own) - 1] @ own[1:]
        return found

    def near(self, q: np.ndarray) -> Iterator[tuple[int, int]]:
        """Yield pairs of proxies with overlapping bounding spheres, in ascending order."""
        from scipy.spatial import cKDTree  # slow import

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
        """Yield the possible contact points of a pair: first proxy, second proxy, kernel index and parameters."""
        for touch in self.touches[self.members[i].kind, self.members[j].kind]:
            a, b = (j, i) if touch.turned else (i, j)
            where = list(self.groups[self.members[i].group].where)
            yield a, b, touch.function, np.concatenate([touch.numbers, k[where]])

    def pushes(self, q: np.ndarray, v: np.ndarray, k: np.ndarray) -> Iterator[tuple[int, int, int, np.ndarray]]:
        """Yield the contributions of all possible contact points: both proxies, dofs of the first, kernel output."""
        for i, j in self.near(q):
            for a, b, function, numbers in self._places(i, j, k):
                where = [*self._own(a), *self._own(b)]
                said = self.functions[function](q[where], v[where], numbers)
                yield a, b, len(self._own(a)), np.array(said).ravel()

    def gaps_of(self, i: int, j: int, q: np.ndarray, k: np.ndarray) -> list[float]:
        """Return the gaps at all possible contact points of a pair; negative for penetration."""
        found = []
        for a, b, function, numbers in self._places(i, j, k):
            where = [*self._own(a), *self._own(b)]
            found.append(float(self.gaps[function](q[where], 0 * q[where], numbers)))
        return found

    def _own(self, i: int) -> range:
        one = self.members[i]
        return range(one.first, one.first + one.count)

    def __call__(self, q: Any, v: Any, t: float, k: Any) -> np.ndarray:
        """Return the forces on all coordinates and the energy terms of all groups (reference implementation)."""
        q, v, k = (np.asarray(x, dtype=float).ravel() for x in (q, v, k))
        found = np.zeros(self.size + self.accounts)
        for a, b, _, said in self.pushes(q, v, k):
            where = [*self._own(a), *self._own(b)]
            found[where] += said[: len(where)]
            first = self.size + len(ACCOUNTS) * self.members[a].group
            found[first : first + len(ACCOUNTS)] += said[len(where) :]
        return found

    def powers(self, q: np.ndarray, v: np.ndarray, k: np.ndarray, group: int) -> np.ndarray:
        """Return the power of the forces of one group, followed by its energy terms."""
        found = np.zeros(1 + len(ACCOUNTS))
        for a, b, _, said in self.pushes(q, v, k):
            if self.members[a].group == group:
                where = [*self._own(a), *self._own(b)]
                found[0] += said[: len(where)] @ v[where]
                found[1:] += said[len(where) :]
        return found

    def forces_on(self, q: np.ndarray, v: np.ndarray, k: np.ndarray, group: int) -> dict[tuple[int, int], np.ndarray]:
        """Return the spatial forces of one group on the second proxy of each touching pair, by pair."""
        found: dict[tuple[int, int], np.ndarray] = {}
        d = self.dimension
        for a, b, count, said in self.pushes(q, v, k):
            if self.members[a].group != group or not said[: len(said) - len(ACCOUNTS)].any():
                continue
            # the first d coordinates of a body are those of its centre
            force = said[count : count + d] if self.members[b].count else -said[:d]
            pair, force = ((a, b), force) if a < b else ((b, a), -force)
            found[pair] = found.get(pair, 0.0) + force
        return found

    def __repr__(self) -> str:
        return f"<detected contacts of {len(self.members)} shapes>"
