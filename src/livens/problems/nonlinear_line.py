"""Transmission line with nonlinear capacitors: a port-Hamiltonian network with a Hamiltonian that is not quadratic."""

from __future__ import annotations

from typing import Any

import numpy as np

from livens import math as m
from livens.models.port_hamiltonian import PortHamiltonian, interconnect_all
from livens.models.problem import Problem
from livens.problems import problem
from livens.scene import shapes
from livens.types import Vector
from livens.validation import check_integer


def _capacitor() -> PortHamiltonian:
    """Return a capacitor whose voltage grows faster than its charge: ``sinh(q)``."""
    return PortHamiltonian("q", H=lambda x: m.cosh(x[0]) - 1, B=[[1]], ports="i")


def _coil(resistance: float) -> PortHamiltonian:
    return PortHamiltonian("flux", H=lambda x: x[0] ** 2 / 2, R=[[resistance]], B=[[1]], ports="v")


def _visual(x: Vector) -> list[shapes.Shape]:
    """Return a bar per capacitor, with the height of its charge."""
    bars = [shapes.rod([i / 2, 0], [i / 2, x[i]], 0.1) for i in range(0, len(x), 2)]
    return [
        shapes.path([[-0.5, 0], [len(x) / 2, 0]]),
        *bars,
        *(shapes.sphere([i / 2, x[i]], 0.12) for i in range(0, len(x), 2)),
    ]


@problem(
    "nonlinear-line",
    summary="line of coils and nonlinear capacitors: a port-Hamiltonian network whose energy is not quadratic",
    source="Kinon, Morandin and Schulze 2025 (the class of systems)",
    scheme="discrete-gradient-pair",
)
def nonlinear_line(N: int = 5, resistance: float = 0.1) -> Problem:
    """Build `N` cells, each with a coil of this resistance; the first capacitor is charged."""
    check_integer("option 'N'", N, 2, 200)
    parts: dict[str, PortHamiltonian] = {}
    for i in range(N):
        parts |= {f"C{i}": _capacitor(), f"L{i}": _coil(resistance)}

    def relations(y: Any, u: Any) -> list[Any]:
        kirchhoff = []
        for i in range(N):
            outgoing = y[f"L{i + 1}.v"] if i + 1 < N else 0
            kirchhoff.append(u[f"C{i}.i"] - y[f"L{i}.v"] + outgoing)
            kirchhoff.append(u[f"L{i}.v"] + y[f"C{i}.i"] - (y[f"C{i - 1}.i"] if i else 0))
        return kirchhoff

    model = interconnect_all(parts, relations)
    model.visual = _visual
    x0 = np.zeros(model.n)
    x0[0] = 1.5
    initial = {"x0": x0}
    return Problem("nonlinear-line", model, None, None, "discrete-gradient-pair", 0.05, 40.0, initial_values=initial)
