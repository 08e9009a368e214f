"""Slider-crank of `benchmarks.crank` in three coordinates with two constraints."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks import crank
from livens import math as m
from livens.models.problem import Problem
from livens.models.system import System


def _kinetic(q: Any, v: Any) -> Any:
    """Return the kinetic energy of crank, rod and slider."""
    (of_crank, of_rod), (crank_mass, rod, slider) = crank.moments(), crank.MASSES
    crossed = crank.CRANK * crank.ROD * m.cos(q[0] - q[1]) * v[0] * v[1]
    of_centre = crank.CRANK**2 * v[0] ** 2 + crank.ROD**2 * v[1] ** 2 / 4 + crossed
    rotational = (of_crank + crank_mass * crank.CRANK**2 / 4) * v[0] ** 2 + of_rod * v[1] ** 2
    return 0.5 * (rotational + rod * of_centre + slider * v[2] ** 2)


def _potential(q: Any) -> Any:
    crank_mass, rod, _ = crank.MASSES
    height = crank_mass * crank.CRANK / 2 * m.sin(q[0]) + rod * (
        crank.CRANK * m.sin(q[0]) + crank.ROD / 2 * m.sin(q[1])
    )
    return crank.GRAVITY * height


def _joints(q: Any) -> list[Any]:
    return [
        crank.CRANK * m.sin(q[0]) + crank.ROD * m.sin(q[1]),
        q[2] - crank.CRANK * m.cos(q[0]) - crank.ROD * m.cos(q[1]),
    ]


def _position(angle: float) -> np.ndarray:
    """Return all coordinates for a given crank angle."""
    rod_angle = crank.rod_angle(angle)
    return np.array([angle, rod_angle, crank.CRANK * math.cos(angle) + crank.ROD * math.cos(rod_angle)])


def problem() -> Problem:
    """Build the problem; the reference is known at the end only."""
    system = System(
        "crank rod slider",
        kinetic=_kinetic,
        potential=_potential,
        constraints=_joints,
        forces=lambda t: [0.5 * m.sin(3 * t), 0.0, 0.0],
    )

    def reference(t: float) -> dict[str, np.ndarray]:
        assert t == crank.T_END
        return {"q": _position(crank.exact())}

    initial = _position(crank.ANGLE), np.zeros(3)
    return Problem("slider-crank", system, *initial, "livens-em", crank.H, crank.T_END, reference=reference)
