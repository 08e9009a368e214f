"""Clamped inextensible beam of n segments with a tip force (Hairer and Wanner IV.1; IVP test set, Bari)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from livens import math as m
from livens.errors import InputError
from livens.models.first_order import FirstOrder
from livens.models.problem import Problem
from livens.problems import problem
from livens.scene import shapes
from livens.types import ModelFunction, ScalarLike, Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


class _SegmentedBeam:
    """Equations of motion of n segment angles, with the tridiagonal matrices C and D of the angle differences."""

    def __init__(self, n: int, released: bool) -> None:
        self.n, self._released = n, released

    def _segment_moments(self, angle: Vector, t: ScalarLike, k: ParameterNamespace) -> list[ScalarLike]:
        """Return the moments of the springs between segments and of the tip force ``(-phi, phi)``."""
        n = self.n
        load = k.F * m.sin(t) ** 2
        if self._released:
            load = m.where(t < np.pi, load, 0.0)
        moments = []
        for i in range(n):
            before = angle[i - 1] if i else -angle[0]
            after = angle[i + 1] if i < n - 1 else angle[n - 1]
            moments.append(n**4 * (before - 2 * angle[i] + after) + n**2 * load * (m.cos(angle[i]) + m.sin(angle[i])))
        return moments

    def _matrix_products(self, angle: Vector) -> tuple[ModelFunction, ModelFunction]:
        """Return the functions x -> C x and x -> D x."""
        n = self.n
        angle_differences = [b - a for a, b in itertools.pairwise(angle[i] for i in range(n))]
        cosine, sine = [m.cos(a) for a in angle_differences], [m.sin(a) for a in angle_differences]
        diagonal = [1.0, *[2.0] * (n - 2), 3.0]

        def product(
            C: list[float] | None, subdiagonal: list[Any], superdiagonal: list[Any], x: Sequence[ScalarLike] | Vector
        ) -> list[ScalarLike]:
            entries = []
            for i in range(n):
                total = C[i] * x[i] if C is not None else 0.0
                total = total - subdiagonal[i - 1] * x[i - 1] if i else total
                entries.append(total + superdiagonal[i] * x[i + 1] if i < n - 1 else total)
            return entries

        def c_product(x: Sequence[ScalarLike] | Vector) -> list[ScalarLike]:
            return product(diagonal, cosine, [-c for c in cosine], x)

        def d_product(x: Sequence[ScalarLike] | Vector) -> list[ScalarLike]:
            return product(None, sine, sine, x)

        return c_product, d_product

    def rates(self, x: Vector, y: Vector, t: ScalarLike, k: ParameterNamespace) -> list[ScalarLike]:
        """Return ``theta'`` and ``theta'' = C v + D w``."""
        angle = x[: self.n]
        v = self._segment_moments(angle, t, k)
        c_product, d_product = self._matrix_products(angle)
        return [
            *(x[self.n + i] for i in range(self.n)),
            *(a + b for a, b in zip(c_product(v), d_product(y), strict=True)),
        ]

    def forces(self, x: Vector, y: Vector, t: ScalarLike, k: ParameterNamespace) -> list[ScalarLike]:
        """Return the residual of the internal forces w, ``C w = D v + theta'^2``."""
        angle = x[: self.n]
        v = self._segment_moments(angle, t, k)
        c_product, d_product = self._matrix_products(angle)
        transverse = d_product(v)
        return [a - b - x[self.n + i] ** 2 for i, (a, b) in enumerate(zip(c_product(y), transverse, strict=True))]

    def visual(self, x: Vector) -> list[shapes.Shape]:
        position = m.array([0.0, 0.0])
        line = [position]
        for i in range(self.n):
            position = position + m.array([m.cos(x[i]), m.sin(x[i])]) / self.n
            line.append(position)
        return [
            shapes.ground([0.0, 0.0]),
            shapes.cable(line, name="beam"),
            shapes.sphere(position, 0.02, name="tip"),
        ]


@problem(
    "beam-bari",
    summary="clamped inextensible beam of n segments, loaded at its tip and released: stiff, 2 n states",
    source="Hairer and Wanner IV.1; IVP test set (Bari)",
    scheme="radau-iia-2",
)
def beam_bari(n: int = 40, released: bool = True) -> Problem:
    """Build the beam: states are angles and their rates, algebraic variables are internal forces; dimensionless.

    The force ``F sin(t)^2`` in the direction (-1, 1) ends at ``t = pi``. With ``released=False`` it continues, and the
    solution is smooth.
    """
    if n < 3:
        raise InputError(f"option 'n' must be at least 3, got {n}")
    beam = _SegmentedBeam(n, released)
    model = FirstOrder(
        [*(f"theta{i + 1}" for i in range(n)), *(f"rate{i + 1}" for i in range(n))],
        rhs=beam.rates,
        algebraic=[f"w{i + 1}" for i in range(n)],
        constraints=beam.forces,
        parameters=dict(F=1.5),
        visual=beam.visual,
    )
    return Problem("beam-bari", model, None, None, "radau-iia-2", 1e-3, 5.0, initial_values={"x0": np.zeros(2 * n)})
