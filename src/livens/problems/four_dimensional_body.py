"""Free rigid body in four dimensions as an isospectral flow (Manakov 1976)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from livens.errors import InputError
from livens.models.poisson.isospectral import IsospectralFlow
from livens.models.problem import Problem
from livens.problems import problem
from livens.scene import shapes
from livens.types import ScalarLike, Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace

_PAIRS = [(i, j) for i in range(4) for j in range(i)]


def _energy(W: Any, k: ParameterNamespace) -> ScalarLike:
    return sum((W[i, j] ** 2 + W[j, i] ** 2) / (2 * (k.weights[i] + k.weights[j])) for i, j in _PAIRS)


def _visual(x: Vector) -> list[shapes.Shape]:
    """Return the two vectors of the angular momentum: of rotations about and into the fourth axis."""
    about, into = [x[9], -x[8], x[4]], [x[12], x[13], x[14]]
    tips = [shapes.sphere(about, 0.08), shapes.sphere(into, 0.06)]
    return [shapes.rod([0, 0, 0], about), shapes.rod([0, 0, 0], into), *tips]


@problem(
    "four-dimensional-body",
    summary="free rigid body in four dimensions: an isospectral flow of skew-symmetric matrices",
    source="Manakov 1976; Modin and Viviani 2020",
    scheme="isospectral-midpoint",
)
def four_dimensional_body(weights: tuple[float, float, float, float] = (1.0, 2.0, 3.0, 4.0)) -> Problem:
    """Build the body with second moments `weights` along its axes."""
    moments = np.array(weights, dtype=float)
    if moments.shape != (4,) or not np.all(moments > 0):
        raise InputError(f"option 'weights' must be four numbers greater than 0, got {weights!r}")
    model = IsospectralFlow(4, hamiltonian=_energy, parameters=dict(weights=moments), visual=_visual)
    W = np.zeros((4, 4))
    for value, (i, j) in zip([0.8, -0.5, 0.6, 0.9, 0.2, -0.7], _PAIRS, strict=True):
        W[i, j], W[j, i] = value, -value
    return Problem(
        "four-dimensional-body",
        model,
        None,
        None,
        "isospectral-midpoint",
        0.1,
        50.0,
        initial_values={"x0": W.ravel()},
    )
