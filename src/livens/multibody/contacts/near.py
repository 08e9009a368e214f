"""Broad phase in the reference configuration: a cell grid with cost linear in the number of bodies."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from livens.multibody.contacts.shape import Shape


def near_pairs(shapes: Sequence[Shape], within: float) -> list[tuple[int, int]]:
    """Return the sorted index pairs of shapes whose bounding spheres have a gap of at most `within` metres.

    The cells are as large as the diameter of the largest bounding sphere plus the gap, so that only neighbouring cells
    are tested.
    """
    places, reach = np.array([shape.at for shape in shapes]), np.array([shape.reach for shape in shapes])
    cell = 2 * float(reach.max()) + within
    cells: dict[tuple[int, ...], list[int]] = defaultdict(list)
    keys = [tuple(int(x) for x in np.floor(place / cell)) for place in places]
    for i, key in enumerate(keys):
        cells[key].append(i)
    found = []
    for i, key in enumerate(keys):
        for shift in itertools.product((-1, 0, 1), repeat=len(key)):
            for j in cells.get(tuple(x + s for x, s in zip(key, shift, strict=True)), ()):
                if i < j and np.linalg.norm(places[i] - places[j]) <= reach[i] + reach[j] + within:
                    found.append((i, j))
    return sorted(found)
