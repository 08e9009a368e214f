"""Pendulum with a penalty spring instead of a rigid rod (Modin 2009, paper V, 6.2)."""

from __future__ import annotations

import numpy as np

from livens.errors import InputError
from livens.models.hamiltonian.model import Force, Hamiltonian
from livens.models.problem import Problem
from livens.problems import problem
from livens.scene import shapes


@problem(
    "pendulum-penalty",
    summary="pendulum on a stiff spring, with fast oscillations",
    source="Modin 2009, paper V, 6.2",
    source_run="semi-explicit:0.5,0.8, h = 0.01 s",
    scheme="semi-explicit:0.5,0.5",
)
def pendulum_penalty(stiffness: float = 1e4, stretch: float = 0.01) -> Problem:
    """Build ``q'' = (0, -1) - stiffness (|q|^2 - 1) q`` from rest, horizontal; gravity is the expensive force."""
    if stiffness <= 0 or stretch <= -1:
        raise InputError("stiffness must be greater than 0, and stretch greater than -1")
    model = Hamiltonian(
        "x y",
        kinetic=lambda p: 0.5 * (p @ p),
        potential=lambda q, k: 0.25 * k.stiffness * (q @ q - 1) ** 2,
        forces=Force(lambda q, k: k.weight * q[1], expensive=True, conservative=True),
        parameters=dict(stiffness=stiffness, weight=1.0),
        visual=lambda q: [shapes.ground([0, 0]), shapes.spring([0, 0], q), shapes.sphere(q)],
    )
    initial_position = np.array([1.0 + stretch, 0.0])
    return Problem("pendulum-penalty", model, initial_position, np.zeros(2), "semi-explicit:0.5,0.5", 1e-4, 10.0)
