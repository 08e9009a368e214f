"""A folded cable whose one end is let go: it falls faster than a stone."""

from __future__ import annotations

import numpy as np

from livens.errors import InputError
from livens.models.problem import Problem
from livens.multibody.builder import Multibody
from livens.problems import problem


def folded(N: int = 40, length: float = 1.0, gap: float = 0.02, EA: float = 2e3, mass: float = 1.0) -> Multibody:
    """Both ends at the same height, the bight below; the first end is held, the other free.

    The cable is made of bars without bending stiffness, relaxed as it is drawn.
    """
    if N < 4 or N % 2:
        raise InputError(f"option 'N' must be an even number of at least 4, got {N}")
    half = N // 2
    step = (length - gap) / (N - 1) if N > 1 else length
    down = [[0.0, -step * i] for i in range(half)]
    up = [[gap, -step * i] for i in reversed(range(half))]
    mb = Multibody(planar=True, gravity=[0, -9.81])
    points = np.array([*down, *up])
    bars = [(i, i + 1) for i in range(len(points) - 1)]
    mb.truss("cable", points=points, bars=bars, EA=EA, mass=mass, fixed=[0])
    return mb


@problem(
    "cable-drop",
    summary="a folded cable of N points, one end of which is let go, falls faster than a stone",
    source="Calkin and March 1989",
    scheme="lie-em",
)
def cable_drop(N: int = 24, length: float = 1.0, gap: float = 0.02, EA: float = 2e3) -> Problem:
    """Energy says how fast the end falls: ``v^2 = g x (2 L - x)/(L - x)`` after the way x."""
    return folded(N, length, gap, EA).problem("cable-drop", h=1.25e-4, t_end=0.4)
