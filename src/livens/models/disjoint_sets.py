"""Disjoint sets (union-find): connected components of indices, and joints that close loops."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item", bound=Hashable)


class DisjointSets(Generic[Item]):
    """Partition of items into disjoint sets; every item is a set of its own at first.

    >>> sets = DisjointSets()
    >>> sets.union("a", "b"), sets.union("b", "c"), sets.union("a", "c")
    (True, True, False)
    """

    def __init__(self) -> None:
        self._parent: dict[Item, Item] = {}

    def find(self, item: Item) -> Item:
        """Return the representative of the set of an item."""
        parent = self._parent
        while parent.setdefault(item, item) != item:
            parent[item] = item = parent[parent[item]]
        return item

    def union(self, a: Item, b: Item) -> bool:
        """Merge the sets of two items; return False if they are the same set already."""
        root_a, root_b = self.find(a), self.find(b)
        self._parent[root_a] = root_b
        return root_a != root_b


def connected_components(groups: Iterable[Sequence[int]], count: int) -> list[list[int]]:
    """Return the connected components of the indices below `count`, connected by groups, in ascending order.

    >>> connected_components([[0, 2], [2, 4]], 5)
    [[0, 2, 4], [1], [3]]
    """
    sets = DisjointSets[int]()
    for group in groups:
        for i in group:
            sets.union(i, group[0])
    components: dict[int, list[int]] = {}
    for i in range(count):
        components.setdefault(sets.find(i), []).append(i)
    return sorted(components.values())
