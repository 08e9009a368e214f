"""Heisenberg chain of spins with an axis of easy magnetisation."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from livens.models.poisson.spins import Spins
from livens.models.problem import Problem
from livens.problems import problem
from livens.scene import shapes
from livens.types import ScalarLike, Vector
from livens.validation import check_integer

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


def _exchange(a: Vector, b: Vector, k: ParameterNamespace) -> ScalarLike:
    return -k.exchange * (a @ b)


def _anisotropy(s: Vector, k: ParameterNamespace) -> ScalarLike:
    return -k.anisotropy * s[2] ** 2


def _visual(N: int, x: Vector) -> list[shapes.Shape]:
    """Return one needle per spin, on a ring."""
    angles = 2 * np.pi * np.arange(N) / N
    centres = [np.array([np.cos(a), np.sin(a), 0.0]) * N / 4 for a in angles]
    spins = [x[3 * i : 3 * i + 3] for i in range(N)]
    rods = [shapes.rod(c - s / 2, c + s / 2) for c, s in zip(centres, spins, strict=True)]
    return [*rods, *(shapes.sphere(c + s / 2, 0.12) for c, s in zip(centres, spins, strict=True))]


@problem(
    "spin-chain",
    summary="ring of spins with exchange between neighbours: a Lie-Poisson system",
    source="McLachlan, Modin and Verdier 2014",
    scheme="spherical-midpoint",
)
def spin_chain(N: int = 12, exchange: float = 1.0, anisotropy: float = 0.5) -> Problem:
    """Build a ring of `N` spins in a smooth, tilted initial arrangement."""
    check_integer("option 'N'", N, 3, 100_000)
    angle = 2 * np.pi * np.arange(N) / N
    tilt = 0.4 + 0.3 * np.cos(2 * angle)
    spins = np.stack([np.sin(tilt) * np.cos(angle), np.sin(tilt) * np.sin(angle), np.cos(tilt)], axis=1)
    model = Spins(
        N,
        spin_energy=_anisotropy,
        pair_energy=_exchange,
        pairs=[(i, (i + 1) % N) for i in range(N)],
        parameters=dict(exchange=exchange, anisotropy=anisotropy),
        invariants=dict(spin_z=lambda s: s[:, 2].sum()),
        visual=functools.partial(_visual, N),
    )
    return Problem(
        "spin-chain", model, None, None, "spherical-midpoint", 0.02, 20.0, initial_values={"x0": spins.ravel()}
    )
