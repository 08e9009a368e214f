"""Pendulum repelled by a magnet (Modin 2009, paper III, example 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from livens import math as m
from livens import scaling
from livens.errors import InputError
from livens.models.hamiltonian.model import Hamiltonian
from livens.models.problem import Problem
from livens.problems import problem
from livens.scene import shapes
from livens.types import Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


def _visual(q: Vector, k: ParameterNamespace) -> list[shapes.Shape]:
    """Return the pendulum and the magnet at the height of the pivot."""
    bob, magnet = [m.sin(q[0]), -m.cos(q[0])], [1 + k.delta + 0.06, 0.0]
    return [
        shapes.ground([0, 0]),
        shapes.rod([0, 0], bob),
        shapes.sphere(bob, name="bob"),
        shapes.box(magnet, [0.12, 0.3], name="magnet", trace=None),
    ]


@problem(
    "magnetic-pendulum",
    summary="pendulum repelled by a magnet beside its path",
    source="Modin 2009, paper III, 4",
    source_run="sundman and step-density, eps = 0.001",
    scheme="stormer-verlet",
)
def magnetic_pendulum(g: float = 1.0, delta: float = 0.05, mu: float = 0.1) -> Problem:
    """Build ``V = g (1 - cos q) + mu/r^2``, with a magnet at the height of the pivot, `delta` outside the bob's circle.

    The gravitational energy is zero at the lowest point. V is then positive, as required by the step-size scaling
    ``V^(-1/2)``.
    """
    if min(g, delta, mu) <= 0:
        raise InputError("g, delta and mu must be greater than 0")
    model = Hamiltonian(
        "q",
        kinetic=lambda p: p[0] ** 2 / 2,
        potential=lambda q, k: k.g * (1 - m.cos(q[0])) + k.mu / (m.cos(q[0]) ** 2 + (1 + k.delta - m.sin(q[0])) ** 2),
        parameters=dict(g=g, delta=delta, mu=mu),
        visual=_visual,
    )
    return Problem(
        "magnetic-pendulum",
        model,
        None,
        None,
        "stormer-verlet",
        1e-4,
        73.0,
        scaling=scaling.potential(0.5, sign=1),
        initial_values={"q0": np.array([np.pi / 2]), "p0": np.array([0.5])},
    )
