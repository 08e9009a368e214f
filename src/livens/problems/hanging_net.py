"""Net of elastic cords fixed at its corners, falling from a plane configuration."""

from __future__ import annotations

import numpy as np

from livens.errors import InputError
from livens.models.problem import Problem
from livens.multibody.multibody import Multibody
from livens.problems import problem


def hanging_net_mechanism(N: int = 6, side: float = 1.0, EA: float = 50.0, mass: float = 0.1) -> Multibody:
    """Build N x N knots in a plane square, with cords along rows and columns."""
    if N < 2:
        raise InputError(f"option 'N' must be at least 2, got {N}")
    row, column = np.divmod(np.arange(N * N), N)
    points = np.column_stack([column, row, np.zeros(N * N)]) * (side / (N - 1))
    index = np.arange(N * N).reshape(N, N)
    bars = np.concatenate(
        [np.column_stack([a.ravel(), b.ravel()]) for a, b in ((index[:, :-1], index[:, 1:]), (index[:-1], index[1:]))]
    )
    corners = [0, N - 1, N * N - N, N * N - 1]
    mb = Multibody(gravity=[0, 0, -9.81])
    mb.truss("net", points=points, bars=bars, EA=EA, mass_per_length=mass, fixed=corners, prestrain=0.01)
    return mb


@problem(
    "hanging-net",
    summary="net of N x N knots and elastic cords, fixed at its corners, falls from a plane",
    source="livens",
    scheme="lie-em",
)
def hanging_net(N: int = 5, side: float = 1.0, EA: float = 50.0, mass: float = 0.1) -> Problem:
    """Build the problem; `mass` (kg/m) and `EA` (N) are those of the cords, which have an initial strain of 0.01."""
    return hanging_net_mechanism(N, side, EA, mass).problem("hanging-net", h=5e-4, t_end=2.0)
