"""Two masses and two springs in redundant coordinates: a singular mass matrix.

See Kinon and Betsch 2023, 6.1, Kinon and Betsch 2024, 5.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from livens.models.problem import Problem
from livens.models.system import System
from livens.problems import problem
from livens.scene import shapes
from livens.types import Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


def _visual(q: Vector, k: ParameterNamespace) -> list[shapes.Shape]:
    """Return two springs with the free length l10 and two masses of width w."""
    first_edge, second_edge = k.l10 + q[0], k.l10 + q[1] + q[2] + k.l10
    return [
        shapes.path([[0, -2 * k.w], [0, 2 * k.w]], name="wall"),
        shapes.path([[0, -k.w], [4 * k.l10, -k.w]], name="floor"),
        shapes.spring([0, 0], [first_edge, 0]),
        shapes.spring([first_edge + k.w, 0], [second_edge, 0]),
        shapes.box([first_edge + k.w / 2, 0], [k.w, 2 * k.w], name="first"),
        shapes.box([second_edge + k.w / 2, 0], [k.w, 2 * k.w], name="second"),
    ]


@problem(
    "mass-spring-redundant",
    summary="two masses and two springs in redundant coordinates: singular mass matrix",
    source="Kinon and Betsch 2023, 6.1, Kinon and Betsch 2024, 5.1",
    source_run="livens-em:gonzalez-full, h = 0.1 s, until t = 10 s; potential_factor=0.5 in the figures",
    scheme="livens-em",
)
def mass_spring_redundant(
    m: tuple[float, float] = (2.0, 1.0),
    k: tuple[float, float] = (1.0, 3.0),
    l10: float = 1.0,
    w: float = 0.1,
    potential_factor: float = 0.25,
) -> Problem:
    """Build ``V = potential_factor sum k_i (x_i^2 + x_i^4)``; the figures of the papers use a factor of 1/2."""
    system = System(
        "x1 q2 x2",
        kinetic=lambda v, k: 0.5 * k.m[0] * v[0] ** 2 + 0.5 * k.m[1] * (v[1] + v[2]) ** 2,
        potential=lambda q, k: (
            k.potential_factor * (k.k[0] * (q[0] ** 2 + q[0] ** 4) + k.k[1] * (q[2] ** 2 + q[2] ** 4))
        ),
        constraints=lambda q, k: [0.5 * ((q[1] - q[0]) ** 2 - (k.l10 + k.w) ** 2)],
        constraint_names=["q2 = x1 + l10 + w"],
        parameters=dict(m=m, k=k, l10=l10, w=w, potential_factor=potential_factor),
        visual=_visual,
    )
    return Problem(
        "mass-spring-redundant",
        system,
        np.array([0.0, l10 + w, 0.0]),
        np.array([1.0, 1.0, -1.0]),
        "livens-em",
        0.1,
        10.0,
    )
