"""Two coupled oscillators with a stiff, strongly damped coupling (Modin 2009, paper V, 6.1)."""

from __future__ import annotations

import numpy as np
from scipy.linalg import expm

from livens.errors import InputError
from livens.models.hamiltonian.model import Force, Hamiltonian
from livens.models.problem import Problem
from livens.problems import problem
from livens.scene import shapes
from livens.types import Vector


def _visual(q: Vector) -> list[shapes.Shape]:
    """Return two boxes, at distance 1 when the spring between them is relaxed."""
    first_mass, second_mass = [q[0], 0.0], [q[1] + 1.0, 0.0]
    return [
        shapes.path([[-2, -0.3], [-2, 0.3]], name="wall"),
        shapes.spring([-2, 0], first_mass),
        shapes.spring(first_mass, second_mass),
        shapes.damper([q[0], -0.12], [q[1] + 1.0, -0.12], 0.08),
        shapes.box(first_mass, [0.35, 0.4], name="first"),
        shapes.box(second_mass, [0.35, 0.4], name="second"),
    ]


@problem(
    "two-oscillators",
    summary="two masses with a soft spring and a stiff damped coupling",
    source="Modin 2009, paper V, 6.1",
    source_run="semi-explicit:0.5,0.8, h = 1 s",
    scheme="semi-explicit:0.5,0.8",
)
def two_oscillators(k: float = 1.0, stiffness: float = 1e3, damping: float = 1e2) -> Problem:
    """Build unit masses: soft spring `k` on the first mass (expensive force), stiff damped coupling (cheap force)."""
    if min(k, stiffness, damping) < 0:
        raise InputError("k, stiffness and damping must not be negative")
    model = Hamiltonian(
        "q1 q2",
        kinetic=lambda p: 0.5 * (p @ p),
        potential=lambda q, k: 0.5 * k.stiffness * (q[0] - q[1]) ** 2,
        forces=[
            Force(lambda q, k: 0.5 * k.k * q[0] ** 2, expensive=True, conservative=True),
            Force(lambda v, k: k.damping * (v[1] - v[0]) * np.array([1.0, -1.0])),
        ],
        parameters=dict(k=k, stiffness=stiffness, damping=damping),
        visual=_visual,
    )
    pair = np.array([[1.0, -1.0], [-1.0, 1.0]])
    rates = np.block([[np.zeros((2, 2)), np.eye(2)], [-stiffness * pair - k * np.diag([1.0, 0.0]), -damping * pair]])
    initial_state = np.array([1.0, 1.1, 0.0, 0.0])

    def reference(t: float) -> dict[str, np.ndarray]:
        state = expm(t * rates) @ initial_state
        return {"q": state[:2], "v": state[2:], "p": state[2:]}

    return Problem(
        "two-oscillators",
        model,
        initial_state[:2],
        initial_state[2:],
        "semi-explicit:0.5,0.8",
        1e-3,
        20.0,
        reference=reference,
    )
