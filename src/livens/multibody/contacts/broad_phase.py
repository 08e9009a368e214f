"""Broad phase in the reference configuration: a cell grid with cost linear in the number of bodies."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from livens.multibody.contacts.shapes import CollisionShape


def candidate_pairs(shapes: Sequence[CollisionShape], max_gap: float) -> list[tuple[int, int]]:
    """Return the sorted index pairs of shapes whose bounding spheres have a gap of at most `max_gap` metres.

    The cells are as large as the diameter of the largest bounding sphere plus the gap, so that only neighbouring cells
    are tested.
    """
    centres, bounding_radius = (
        np.array([shape.reference_position for shape in shapes]),
        np.array([shape.bounding_radius for shape in shapes]),
    )
    cell = 2 * float(bounding_radius.max()) + max_gap
    cells: dict[tuple[int, ...], list[int]] = defaultdict(list)
    keys = [tuple(int(x) for x in np.floor(centre / cell)) for centre in centres]
    for i, key in enumerate(keys):
        cells[key].append(i)
    pairs = []
    for i, key in enumerate(keys):
        for shift in itertools.product((-1, 0, 1), repeat=len(key)):
            for j in cells.get(tuple(x + s for x, s in zip(key, shift, strict=True)), ()):
                if (
                    i < j
                    and np.linalg.norm(centres[i] - centres[j]) <= bounding_radius[i] + bounding_radius[j] + max_gap
                ):
                    pairs.append((i, j))
    return sorted(pairs)
