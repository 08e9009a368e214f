"""Lotka-Volterra equations as a Poisson system."""

from __future__ import annotations

from livens import math as m
from livens.models.poisson.model import Poisson
from livens.models.problem import Problem
from livens.problems import problem
from livens.scene import shapes
from livens.types import Vector


def _visual(x: Vector) -> list[shapes.Shape]:
    bars = [shapes.rod([0.0, 0.0], [0.0, x[0]]), shapes.rod([1.0, 0.0], [1.0, x[1]])]
    return [*bars, shapes.sphere([0.0, x[0]], 0.1), shapes.sphere([1.0, x[1]], 0.1)]


@problem(
    "lotka-volterra",
    summary="predators and their prey: a Poisson system in the plane",
    source="Hairer, Lubich, Wanner, VII.2",
    scheme="discrete-gradient-pair",
)
def lotka_volterra(prey: float = 2.0, hunters: float = 1.0) -> Problem:
    """Build ``x' = x (1 - y)``, ``y' = y (x - 1)`` with the bracket ``{x, y} = x y`` from an initial population."""
    model = Poisson(
        "prey hunters",
        structure=lambda x: [[0, x[0] * x[1]], [-x[0] * x[1], 0]],
        hamiltonian=lambda x: m.log(x[0]) - x[0] + m.log(x[1]) - x[1],
        visual=_visual,
    )
    initial = {"x0": [prey, hunters]}
    return Problem("lotka-volterra", model, None, None, "discrete-gradient-pair", 0.1, 30.0, initial_values=initial)
