"""Net of rigid rods in space, of any size: knots on a lattice, rods along rows and columns, diagonal springs.

The connectivity is two-dimensional, so the sparse factorisation of the equations has fill-in, unlike that of chains and
trees.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from livens import math as m
from livens.errors import InputError
from livens.models.element import Element, of_invariants
from livens.models.problem import Problem
from livens.models.system import System
from livens.problems import problem
from livens.scene import shapes
from livens.types import ScalarLike, Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


def _kinetic(v: Vector, k: ParameterNamespace) -> ScalarLike:
    return 0.5 * k.m * m.dot(v, v)


def _weight(q: Vector, k: ParameterNamespace) -> ScalarLike:
    return k.m * k.g * q[2]


def _square(q: Vector) -> list[ScalarLike]:
    """Return the squared distance of two knots."""
    d = q[3:] - q[:3]
    return [m.dot(d, d)]


def _rod(q: Vector, k: ParameterNamespace) -> list[ScalarLike]:
    return [0.5 * (_square(q)[0] - k.l**2)]


def _stretch(w: Vector, k: ParameterNamespace) -> ScalarLike:
    """Return the energy of a diagonal spring, which is stress-free in a square cell."""
    return k.c / 8 * (w[0] - 2 * k.l**2) ** 2


def _fixed_point(q: Vector) -> Any:
    return q


def _rod_visual(q: Vector) -> shapes.Shape:
    return shapes.rod(q[:3], q[3:])


_SPRING = of_invariants(_square, _stretch)


@problem(
    "net",
    summary="square net of N x N knots and rigid rods, fixed at a corner, falls",
    source="livens",
    scheme="livens-em",
)
def net(N: int = 12, m: float = 0.01, l: float = 1.0, g: float = 9.81, c: float = 50.0, speed: float = 1.0) -> Problem:  # noqa: E741
    """Build rods of length `l` between knots of mass `m`; diagonal springs of stiffness `c` resist shear.

    The initial configuration is plane; `speed` (m/s) is the amplitude of the initial transverse velocity.
    """
    if N < 2:
        raise InputError(f"option 'N' must be at least 2, got {N}")
    knot = np.arange(N * N).reshape(N, N)
    names = [f"knot{n}.{axis}" for n in range(N * N) for axis in "xyz"]

    def pair_coordinates(a: int, b: int) -> list[int]:
        return [*range(3 * a, 3 * a + 3), *range(3 * b, 3 * b + 3)]

    elements = [
        Element(range(3 * n, 3 * n + 3), kinetic=_kinetic, potential=_weight, name=f"knot{n}") for n in range(N * N)
    ]
    for from_knots, to_knots in ((knot[:, :-1], knot[:, 1:]), (knot[:-1], knot[1:])):
        elements += [
            Element(
                pair_coordinates(a, b),
                constraints=_rod,
                name=f"rod{a}-{b}",
                constraint_names=["length"],
                visual=_rod_visual,
            )
            for a, b in zip(from_knots.ravel().tolist(), to_knots.ravel().tolist(), strict=True)
        ]
    for from_knots, to_knots in ((knot[:-1, :-1], knot[1:, 1:]), (knot[1:, :-1], knot[:-1, 1:])):
        elements += [
            Element(pair_coordinates(a, b), potential=_SPRING, name=f"spring{a}-{b}")
            for a, b in zip(from_knots.ravel().tolist(), to_knots.ravel().tolist(), strict=True)
        ]
    elements.append(Element(range(3), constraints=_fixed_point, name="nail", constraint_names=["x", "y", "z"]))
    system = System(names, elements=elements, parameters=dict(m=m, l=l, g=g, c=c))
    row, column = np.divmod(np.arange(N * N), N)
    q, v = np.zeros((N * N, 3)), np.zeros((N * N, 3))
    q[:, 0], q[:, 1] = l * column, l * row
    v[:, 2] = speed * np.sin(2 * np.pi * row / N) * np.cos(3 * np.pi * column / N)
    v[0] = 0.0
    return Problem("net", system, q.ravel(), v.ravel(), "livens-em", 1e-3, 0.5)
