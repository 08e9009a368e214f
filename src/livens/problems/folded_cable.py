"""Folded cable with one end released: the free end falls faster than a free particle."""

from __future__ import annotations

import numpy as np

from livens.errors import InputError
from livens.models.problem import Problem
from livens.multibody.multibody import Multibody
from livens.problems import problem


def folded_cable_mechanism(
    N: int = 40, length: float = 1.0, gap: float = 0.02, EA: float = 2e3, mass: float = 1.0
) -> Multibody:
    """Build the cable with both ends at the same height; the first end is fixed, the other free.

    The cable consists of bars without bending stiffness, stress-free in the reference configuration.
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
    mb.truss("cable", points=points, bars=bars, EA=EA, mass_per_length=mass, fixed=[0])
    return mb


@problem(
    "cable-drop",
    summary="folded cable of N points with one end released: falls faster than a free particle",
    source="Calkin and March 1989",
    scheme="lie-em",
)
def cable_drop(N: int = 24, length: float = 1.0, gap: float = 0.02, EA: float = 2e3) -> Problem:
    """Build the problem; energy conservation gives ``v^2 = g x (2 L - x)/(L - x)`` after the fall height x."""
    return folded_cable_mechanism(N, length, gap, EA).problem("cable-drop", h=1.25e-4, t_end=0.4)
