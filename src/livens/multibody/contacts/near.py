"""Which of many bodies are near each other: found by cells, so that n bodies cost n."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from livens.multibody.contacts.shape import Shape


def near_pairs(shapes: Sequence[Shape], within: float) -> list[tuple[int, int]]:
    """Pairs of places in the list whose surfaces may be nearer than `within` in the drawing, in order.

    Every shape lies in a ball about its origin. In cells as large as two of the largest of these balls and what is
    between them, only neighbours need to be looked at.
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
