"""Non-reversible oscillator between two repelling walls (Modin 2009, paper III, 2 and 3)."""

from __future__ import annotations

import numpy as np

from livens import scaling
from livens.errors import InputError
from livens.models.hamiltonian.model import Hamiltonian
from livens.models.problem import Problem
from livens.problems import problem
from livens.scene import shapes
from livens.types import Vector


def _visual(q: Vector) -> list[shapes.Shape]:
    return [
        shapes.path([[0, -1], [0, 1]], name="wall"),
        shapes.path([[10, -1], [10, 1]], name="wall"),
        shapes.path([[0, 0], [10, 0]], name="line"),
        shapes.sphere([q[0], 0.0], 0.3, name="particle"),
    ]


@problem(
    "non-reversible-oscillator",
    summary="oscillator whose kinetic energy is not even in the momentum: not reversible",
    source="Modin 2009, paper III, 2 and 3",
    source_run="sundman, sundman-doubled and step-density, eps = 0.2",
    scheme="stormer-verlet",
)
def non_reversible_oscillator(eps: float = 0.01) -> Problem:
    """Build ``H = p^2/2 - eps p^3/3 + 1/q^2 + 1/(q - 10)^2 + eps q``; reversible for ``eps=0``.

    The step-size scaling is ``V^(-1/2)``, as in example 2.
    """
    if not 0 <= eps < 0.5:
        raise InputError(f"option 'eps' must be at least 0 and less than 0.5, got {eps:g}")
    model = Hamiltonian(
        "q",
        kinetic=lambda p, k: p[0] ** 2 / 2 - k.eps * p[0] ** 3 / 3,
        potential=lambda q, k: 1 / q[0] ** 2 + 1 / (q[0] - 10) ** 2 + k.eps * q[0],
        parameters=dict(eps=eps),
        visual=_visual,
    )
    return Problem(
        "non-reversible-oscillator",
        model,
        None,
        None,
        "stormer-verlet",
        0.01,
        3600.0,
        scaling=scaling.potential(0.5, sign=1),
        initial_values={"q0": np.ones(1), "p0": np.zeros(1)},
    )
