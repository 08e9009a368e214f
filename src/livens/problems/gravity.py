"""Bodies that attract each other: what Pleiades and the outer solar system have in common."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from livens import math as m
from livens.models.symmetry import rotations, translations
from livens.models.system import System


def attracting(names: Sequence[str], masses: Sequence[float], G: float, look: Any) -> System:
    """Points in the plane or in space with ``V = -sum G m_i m_j / r_ij``; `names` are all coordinates, body by body.

    Masses and G are parameters. Momentum and angular momentum are conserved.
    """
    count = len(masses)
    dimension = len(names) // count
    parts = [slice(i * dimension, (i + 1) * dimension) for i in range(count)]

    def potential(q: Any, k: Any) -> Any:
        total = 0.0
        for i, j in combinations(range(count), 2):
            d = q[parts[i]] - q[parts[j]]
            total = total - k.G * k.masses[i] * k.masses[j] / m.sqrt(d @ d)
        return total

    def kinetic(v: Any, k: Any) -> Any:
        return sum(0.5 * k.masses[i] * (v[part] @ v[part]) for i, part in enumerate(parts))

    places = [list(range(part.start, part.stop)) for part in parts]
    return System(
        list(names),
        kinetic=kinetic,
        potential=potential,
        parameters=dict(G=G, masses=list(masses)),
        symmetries=dict(momentum=translations(places), angular_momentum=rotations(places)),
        look=look,
    )
