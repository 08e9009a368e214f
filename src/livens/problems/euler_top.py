"""Euler top: free rotation of a rigid body in the body frame (Modin 2009, paper IV, 4.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from livens.errors import InputError
from livens.models.nambu import Nambu
from livens.models.problem import Problem
from livens.problems import port_hamiltonian_visuals, problem
from livens.problems.elliptic import jacobi, quarter_period
from livens.schemes.scaling import speed
from livens.types import ModelFunction, ScalarLike, Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


@problem(
    "euler-top",
    summary="free rotation of a rigid body as a Nambu system",
    source="Modin 2009, paper IV, 4.1",
    source_run="nambu-t, nambu-mt, nambu-t-g and nambu-mt-g, h = 0.15",
    scheme="nambu-t",
)
def euler_top(I: tuple[float, float, float] = (0.5, 1.0, 2.0), angle: float = 0.2) -> Problem:  # noqa: E741
    """Build the problem; the angular momentum starts at `angle` (rad) from the middle axis towards the third axis."""
    inertia = np.array(I, dtype=float)
    if inertia.shape != (3,) or not np.all(inertia > 0):
        raise InputError(f"option 'I' must be three numbers greater than 0, got {I!r}")
    if not 0 < angle < np.pi / 2:
        raise InputError(f"option 'angle' must be between 0 and pi/2, got {angle:g}")

    def kinetic(x: Vector, k: ParameterNamespace) -> ScalarLike:
        return sum(x**2 / k.I) / 2

    model = Nambu(
        "x1 x2 x3",
        hamiltonians=dict(momentum=lambda x: x @ x / 2, kinetic_energy=kinetic),
        parameters=dict(I=inertia),
        visual=port_hamiltonian_visuals.momentum,
    )
    initial_momentum = np.array([0.0, np.cos(angle), np.sin(angle)])
    return Problem(
        "euler-top",
        model,
        None,
        None,
        "nambu-t",
        0.05,
        150.0,
        scaling=speed(0.01),
        initial_values={"x0": initial_momentum},
        reference=_exact_motion(inertia, initial_momentum) if inertia[0] < inertia[1] < inertia[2] else None,
    )


def _exact_motion(inertia: np.ndarray, initial_momentum: np.ndarray) -> ModelFunction:
    """Return the exact motion for ``I1 < I2 < I3`` by Jacobi elliptic functions: x1, x2, x3 vary as cn, sn, dn."""
    rate = 1 / np.roll(inertia, 1) - 1 / np.roll(inertia, -1)  # x1' = (1/I3 - 1/I2) x2 x3 and so on
    _, c, s = initial_momentum
    x3_squared_max = s**2 - rate[2] / rate[1] * c**2  # maximum of x3^2
    frequency, modulus = np.sqrt(-rate[0] * rate[1] * x3_squared_max), -rate[2] / rate[1] * c**2 / x3_squared_max

    def reference(t: float) -> dict[str, np.ndarray]:
        sn, cn, dn = jacobi(frequency * t + quarter_period(modulus), modulus)
        return {"x": np.array([np.sqrt(-rate[0] / rate[1]) * c * cn, c * sn, np.sqrt(x3_squared_max) * dn])}

    return reference
