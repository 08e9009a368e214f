"""Fermi-Pasta-Ulam-Tsingou chain of slightly nonlinear springs (1955)."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from livens.errors import InputError
from livens.models.problem import Problem
from livens.models.system import System
from livens.problems import problem
from livens.scene import shapes
from livens.types import Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


@problem(
    "fput",
    summary="Fermi-Pasta-Ulam-Tsingou chain, started in its first mode",
    source="Fermi, Pasta, Ulam, Tsingou (1955)",
    scheme="stormer-verlet",
)
def fput(springs: int = 32, alpha: float = 0.25) -> Problem:
    """Build unit masses between fixed ends, forces ``d + alpha d^2``, from the lowest mode of the linear chain."""
    if springs < 3:
        raise InputError(f"option 'springs' must be at least 3, got {springs}")
    n = springs - 1

    def potential(q: Vector, k: ParameterNamespace) -> Any:
        ends = [0.0, *(q[i] for i in range(n)), 0.0]
        total: Any = 0.0
        for a, b in itertools.pairwise(ends):
            total = total + 0.5 * (b - a) ** 2 + k.alpha / 3 * (b - a) ** 3
        return total

    def visual(q: Vector) -> list[shapes.Shape]:
        """Return the masses; displacements are plotted vertically and magnified 10 times."""
        traces = [0.0 if i == n // 2 else None for i in range(n)]
        return [shapes.sphere([i + 1.0, 10.0 * q[i]], 0.3, trace=trace) for i, trace in enumerate(traces)]

    system = System(
        [f"q{i + 1}" for i in range(n)],
        kinetic=lambda v: 0.5 * (v @ v),
        potential=potential,
        parameters=dict(alpha=alpha),
        visual=visual,
    )
    q0 = np.sin(np.pi * np.arange(1, springs) / springs)
    return Problem("fput", system, q0, np.zeros(n), "stormer-verlet", 0.1, 1000.0)


@problem(
    "fput-stiff",
    summary="alternating soft nonlinear and stiff linear springs",
    source="Hairer, Lubich, Wanner, I.5.1",
    scheme="kahan-li-8:stormer-verlet",
)
def fput_stiff(omega: float = 50.0) -> Problem:
    """Build three stiff springs between soft ones; x are their scaled midpoints, y their elongations over ``sqrt(2)``.

    The stiff springs exchange energy, while the sum of their energies is nearly constant.
    """
    if omega <= 0:
        raise InputError(f"option 'omega' must be positive, got {omega:g}")

    def potential(q: Vector, k: ParameterNamespace) -> Any:
        x, y = q[:3], q[3:]
        soft = (x[0] - y[0]) ** 4 + (x[2] + y[2]) ** 4
        for i in range(2):
            soft = soft + (x[i + 1] - y[i + 1] - x[i] - y[i]) ** 4
        return 0.5 * k.omega**2 * (y @ y) + 0.25 * soft

    def visual(q: Vector) -> list[shapes.Shape]:
        masses = []
        for i in range(3):
            masses += [[2.0 * i + 0.7 * (q[i] - q[3 + i]), 0.0], [2.0 * i + 1.0 + 0.7 * (q[i] + q[3 + i]), 0.0]]
        stiff = [shapes.spring(a, b, 0.3) for a, b in zip(masses[::2], masses[1::2], strict=True)]
        return [*stiff, *(shapes.sphere(position, 0.15) for position in masses)]

    system = System(
        "x1 x2 x3 y1 y2 y3",
        kinetic=lambda v: 0.5 * (v @ v),
        potential=potential,
        parameters=dict(omega=omega),
        visual=visual,
    )
    q0, v0 = np.array([1.0, 0, 0, 1 / omega, 0, 0]), np.array([1.0, 0, 0, 1, 0, 0])
    return Problem("fput-stiff", system, q0, v0, "kahan-li-8:stormer-verlet", 0.02, 200.0)
