"""Points that attract each other by Newton's law, and nothing else: stars, planets, moons."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from livens import math as m
from livens.errors import InputError, ModelError
from livens.expressions.names import Names, words
from livens.expressions.numbers import whole_number
from livens.expressions.read import ModelFunction
from livens.models.symmetry import rotations, translations
from livens.models.system import System

#: More bodies than this are not counted: every pair of them is a term of the energy.
_MOST = 1000


class PointMasses(System):
    """Points in the plane or in space with ``V = -sum G m_i m_j / r_ij``.

    `bodies` are names, with `masses` in the same order; the coordinates of "sun" are "sun.x", "sun.y" and "sun.z".
    Masses and G are parameters, ``G`` and ``masses``. Momentum and angular momentum are conserved. Every scheme for
    systems without constraints runs it, and one is made for it: `wisdom-holman`, for planets about the first of them.

    >>> import livens as lv
    >>> pair = lv.PointMasses("sun earth", [1.0, 3e-6], G=4 * 3.14159265358979**2)
    >>> pair.coordinates
    ('sun.x', 'sun.y', 'sun.z', 'earth.x', 'earth.y', 'earth.z')
    >>> run = lv.simulate(pair, [0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 6.2831853, 0], scheme="wisdom-holman", h=0.1, t_end=1)
    >>> bool(abs(run["earth.x"][-1] - 1) < 1e-8)  # a year later
    True
    """

    def __init__(
        self,
        bodies: Names,
        masses: Sequence[float],
        G: float = 1.0,
        *,
        dimension: int = 3,
        coordinates: Sequence[str] | None = None,
        look: ModelFunction | None = None,
    ) -> None:
        if isinstance(bodies, int):
            bodies = [f"body{i + 1}" for i in range(whole_number("bodies", bodies, 2, _MOST))]
        names = words(bodies)
        count = len(names)
        if dimension not in (2, 3):
            raise InputError(f"dimension must be 2 or 3, got {dimension!r}")
        if count < 2:
            raise ModelError(f"bodies that attract each other are at least two, got {count}")
        if len(masses) != count:
            raise ModelError(f"there are {count} bodies, but {len(masses)} masses")
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
        super().__init__(
            list(coordinates)
            if coordinates is not None
            else [f"{n}.{axis}" for n in names for axis in "xyz"[:dimension]],
            kinetic=kinetic,
            potential=potential,
            parameters=dict(G=G, masses=list(masses)),
            symmetries=dict(momentum=translations(places), angular_momentum=rotations(places)),
            look=look,
        )
        self.count, self.dimension = count, dimension

    @property
    def planetary(self) -> bool:
        return True

    def gravity(self, k: Any) -> tuple[Any, list[Any]]:
        """G and the masses among the numbers, or the symbols, of a parameter vector."""
        return k[0], [k[1 + i] for i in range(self.count)]
