"""Gravitational N-body problems: point masses that attract each other by Newton's law."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

from livens import math as m
from livens.errors import InputError, ModelError, explain_call_errors
from livens.expressions.name_parsing import Names, split_names
from livens.expressions.tracing import ModelFunction
from livens.models.symmetry import rotations, translations
from livens.models.system import System
from livens.types import Expr, FloatArray, ScalarLike, Vector
from livens.validation import check_integer

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


#: Maximum number of bodies; every pair is a term of the energy.
_MAX_BODIES = 1000


@explain_call_errors
class PointMasses(System):
    """Gravitational N-body problem in the plane or in space, with ``V = -sum G m_i m_j / r_ij``.

    G and the masses are parameters, named ``G`` and ``masses``. Linear and angular momentum are conserved. All schemes
    for unconstrained systems apply; `wisdom-holman` is specific to planets about a dominant first body.

    Parameters
    ----------
    bodies : str, sequence of str or int
        Names of the bodies, or their number. The coordinates of "sun" are "sun.x", "sun.y" and "sun.z".
    masses : sequence of float
        Masses in the order of the bodies, in a unit consistent with `G`.
    G : float, default 1.0
        Gravitational constant.
    dimension : {2, 3}, default 3
        Dimension of space.
    coordinates : sequence of str, optional
        Names of the coordinates, instead of the default names.
    visual : callable, optional
        Function of ``q t k`` that returns shapes, see `livens.shapes`.

    Raises
    ------
    InputError
        If `dimension` is neither 2 nor 3.
    ModelError
        If there are fewer than two bodies, or the number of masses differs.

    Examples
    --------
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
        visual: ModelFunction | None = None,
    ) -> None:
        if isinstance(bodies, int):
            bodies = [f"body{i + 1}" for i in range(check_integer("bodies", bodies, 2, _MAX_BODIES))]
        names = split_names(bodies)
        count = len(names)
        if dimension not in (2, 3):
            raise InputError(f"dimension must be 2 or 3, got {dimension!r}")
        if count < 2:
            raise ModelError(f"a gravitational N-body problem needs at least two bodies, got {count}")
        if len(masses) != count:
            raise ModelError(f"there are {count} bodies, but {len(masses)} masses")
        parts = [slice(i * dimension, (i + 1) * dimension) for i in range(count)]

        def potential(q: Vector, k: ParameterNamespace) -> Any:
            total = 0.0
            for i, j in combinations(range(count), 2):
                d = q[parts[i]] - q[parts[j]]
                total = total - k.G * k.masses[i] * k.masses[j] / m.sqrt(d @ d)
            return total

        def kinetic(v: Vector, k: ParameterNamespace) -> ScalarLike:
            return sum(0.5 * k.masses[i] * (v[part] @ v[part]) for i, part in enumerate(parts))

        point_dofs = [list(range(part.start, part.stop)) for part in parts]
        super().__init__(
            list(coordinates)
            if coordinates is not None
            else [f"{n}.{axis}" for n in names for axis in "xyz"[:dimension]],
            kinetic=kinetic,
            potential=potential,
            parameters=dict(G=G, masses=list(masses)),
            symmetries=dict(momentum=translations(point_dofs), angular_momentum=rotations(point_dofs)),
            visual=visual,
        )
        self.count, self.dimension = count, dimension

    @property
    def is_nbody(self) -> bool:
        """True if the system is a gravitational N-body problem without other forces: always."""
        return True

    def gravity_parameters(self, k: Expr | FloatArray) -> tuple[Any, list[Any]]:
        """Return G and the masses from a parameter vector.

        Parameters
        ----------
        k : array_like or expression
            Parameter vector of numbers or symbols.

        Returns
        -------
        tuple
            G and the list of masses.
        """
        return k[0], [k[1 + i] for i in range(self.count)]
