"""Spatial chain or random tree of N rods: scalable problem for performance measurements.

Rods are rigid bodies with the position of the centre and three directors, the first along the rod: 12 coordinates
each, or 6 unknowns if the directors are treated as frames. Initially the chain is folded in zigzag, at rest; with
``fold=0`` it is straight, with a right angle it goes up and down in place. In a random tree, each rod hangs at the end
of a rod with a smaller index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from livens import math as m
from livens.errors import InputError
from livens.models.element import Element
from livens.models.problem import Problem
from livens.models.system import System
from livens.problems import problem
from livens.scene import shapes
from livens.types import ScalarLike, Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


_COORDINATES = tuple(f"{part}{axis}" for part in ("", "d1", "d2", "d3") for axis in "xyz")


def _kinetic(v: Vector, k: ParameterNamespace) -> ScalarLike:
    """Return the kinetic energy of a cylinder of length l, radius l/10; director inertia m l^2/12 and m r^2/4."""
    along, across = k.l**2 / 12, (k.l / 10) ** 2 / 4
    rotation = along * m.dot(v[3:6], v[3:6]) + across * m.dot(v[6:], v[6:])
    return 0.5 * k.m * (m.dot(v[:3], v[:3]) + rotation)


def _weight(q: Vector, k: ParameterNamespace) -> ScalarLike:
    return k.m * k.g * q[2]


def _orthonormality(q: Vector) -> list[ScalarLike]:
    d = [q[3:6], q[6:9], q[9:12]]
    lengths = [0.5 * (m.dot(di, di) - 1) for di in d]
    return [*lengths, m.dot(d[0], d[1]), m.dot(d[0], d[2]), m.dot(d[1], d[2])]


def _fixed_end(q: Vector, k: ParameterNamespace) -> Vector:
    """Return the constraint that fixes the first end of a rod, with coordinates (x, d1), at the origin."""
    return q[:3] - k.l / 2 * q[3:6]


def _spherical_joint(q: Vector, k: ParameterNamespace) -> Any:
    """Return the spherical joint between second and first end of two rods, each with coordinates (x, d1)."""
    return q[:3] + k.l / 2 * q[3:6] - q[6:9] + k.l / 2 * q[9:12]


def _ground_hinge(q: Vector, k: ParameterNamespace) -> list[ScalarLike]:
    """Return the revolute joint of a rod, with coordinates (x, d1, d2), about the y axis through the origin."""
    return [*_fixed_end(q, k), q[3 + 1], q[6 + 0]]


def _hinge(q: Vector, k: ParameterNamespace) -> list[ScalarLike]:
    """Return the revolute joint about d2 of the first rod (x, d1, d2); the second rod has coordinates (x, d1, d3)."""
    axis, d1, d3 = q[6:9], q[12:15], q[15:18]
    ends = q[:3] + k.l / 2 * q[3:6] - q[9:12] + k.l / 2 * d1
    return [*ends, m.dot(axis, d1), m.dot(axis, d3)]


def _rod(q: Vector, k: ParameterNamespace) -> shapes.Shape:
    arm = k.l / 2 * q[3:6]
    return shapes.rod(q[:3] - arm, q[:3] + arm, trace=1.0)


def _system(parents: list[int], revolute: bool, frames: bool, parameters: dict[str, float]) -> System:
    N = len(parents)
    rods = [f"rod{i}" for i in range(N)]
    names = [f"{rod}.{c}" for rod in rods for c in _COORDINATES]
    rigid = ["|d1| = 1", "|d2| = 1", "|d3| = 1", "d1.d2 = 0", "d1.d3 = 0", "d2.d3 = 0"]
    frame = [[(0, 1, 2), (3, 4, 5), (6, 7, 8), (9, 10, 11)]]
    joint = ["x", "y", "z", "axis.d1", "axis.d3"] if revolute else ["x", "y", "z"]
    parent_dofs, child_dofs = ([*range(9)], [*range(6), 9, 10, 11]) if revolute else ([*range(6)], [*range(6)])
    elements = [
        Element(
            range(12 * i, 12 * i + 12),
            kinetic=_kinetic,
            potential=_weight,
            constraints=_orthonormality,
            name=rod,
            constraint_names=rigid,
            frames=frame,
            visual=_rod,
        )
        for i, rod in enumerate(rods)
    ]
    ground_joint = _ground_hinge if revolute else _fixed_end
    ground_joint_names = ["x", "y", "z", "d1.y", "d2.x"] if revolute else joint
    elements.append(
        Element(parent_dofs, constraints=ground_joint, name="ground-rod0", constraint_names=ground_joint_names)
    )
    body_joint = _hinge if revolute else _spherical_joint
    elements += [
        Element(
            [*(12 * parents[i] + c for c in parent_dofs), *(12 * i + c for c in child_dofs)],
            constraints=body_joint,
            name=f"{rods[parents[i]]}-{rods[i]}",
            constraint_names=joint,
        )
        for i in range(1, N)
    ]
    return System(names, elements=elements, parameters=parameters, frames=frames)


def _initial_configuration(parents: list[int], l: float, angle: np.ndarray) -> np.ndarray:  # noqa: E741
    """Return positions and directors of all rods; rod i has the angle ``angle[i]`` below x in the x, z plane."""
    zeros, ones = np.zeros(len(parents)), np.ones(len(parents))
    d1 = np.stack([np.cos(angle), zeros, -np.sin(angle)], axis=1)
    d2 = np.stack([zeros, ones, zeros], axis=1)
    ends = l * d1
    for i in range(1, len(parents)):
        ends[i] += ends[parents[i]]
    return np.hstack([ends - l / 2 * d1, d1, d2, np.cross(d1, d2)]).ravel()


@problem("chain", summary="N rods in space with ball joints or hinges, from a zigzag", source="livens", scheme="lie-em")
def chain(
    N: int = 10,
    m: float = 1.0,
    l: float = 1.0,  # noqa: E741
    g: float = 9.81,
    fold: float = 1.2,
    spin: float = 0.5,
    revolute: int = 0,
    frames: int = 1,
    tree: int = 0,
) -> Problem:
    """Build a chain fixed at one end; `spin` is the initial rate of all rods about their axes.

    ``revolute=1`` replaces spherical joints by hinges about the y axis, without spin. ``frames=0`` uses the directors
    as coordinates. ``tree=1``, ``tree=2``, ... select random trees instead of a chain, with random angles of at most
    `fold`.
    """
    if N < 1:
        raise InputError(f"option 'N' must be at least 1, got {N}")
    if tree < 0 or tree != int(tree):
        raise InputError(f"option 'tree' must be a whole number of at least 0, got {tree}")
    parents, angle = list(range(-1, N - 1)), fold * np.where(np.arange(N) % 2 == 0, 1.0, -1.0)
    if tree:
        random = np.random.default_rng(int(tree))
        parents[1:] = (random.random(N - 1) * np.arange(1, N)).astype(int).tolist()
        angle = fold * random.uniform(-1.0, 1.0, N)
    q = _initial_configuration(parents, l, angle).reshape(N, 4, 3)
    v = np.zeros_like(q)
    if not revolute:  # about d1: d2' = spin d1 x d2 = spin d3, d3' = -spin d2
        v[:, 2], v[:, 3] = spin * q[:, 3], -spin * q[:, 2]
    system = _system(parents, bool(revolute), bool(frames), dict(m=m, l=l, g=g))
    return Problem("chain", system, q.ravel(), v.ravel(), "lie-em" if frames else "livens-em", 1e-3, 2.0)
