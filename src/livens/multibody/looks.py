"""Default visual geometry of bodies, joints, springs and contacts."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from livens.expressions.read import ModelFunction
from livens.models import shapes
from livens.models.shapes import Shape
from livens.multibody.placement import Placement

#: Edge length of a box side without inertia, relative to the longest edge.
_THIN = 0.04


def of_body(placement: Placement, reference: np.ndarray, drawn: Callable[[Any], Sequence[Shape]]) -> ModelFunction:
    """Return the visual of a body from shapes in the body frame, which may depend on its parameters."""

    def look(q: Any, k: Any) -> list[Shape]:
        def point(X: Any) -> Any:
            return placement.point(q, np.asarray(X, dtype=float) - reference)

        def turned(frame: Any) -> Any:
            return placement.frame(q) @ np.asarray(frame, dtype=float)

        return [shape.placed(point, turned) for shape in drawn(k)]

    return look


def ball(dimension: int) -> list[Shape]:
    """Return the visual of a particle."""
    return [shapes.sphere(np.zeros(dimension))]


def box_of(mass: float, tensor: np.ndarray, centre: np.ndarray) -> list[Shape]:
    """Return the box with a given inertia about its centre.

    >>> (box,) = box_of(12.0, np.diag([13.0, 10.0, 5.0]), np.zeros(3))  # m/12 (b^2 + c^2) and so on
    >>> [round(float(box.sizes[side]), 9) for side in ("length", "width", "depth")]
    [1.0, 2.0, 3.0]
    """
    euler = 0.5 * np.trace(tensor) * np.eye(3) - tensor
    squares, axes = np.linalg.eigh(euler)
    # permute and flip the principal axes to be closest to the body axes
    order = _nearest(axes)
    squares, axes = squares[order], axes[:, order]
    axes = axes * np.where(np.diag(axes) < 0, -1.0, 1.0)
    if np.linalg.det(axes) < 0:
        axes[:, 2] *= -1
    sides = np.sqrt(12 * np.maximum(squares, 0) / mass)
    longest = float(sides.max())
    return [shapes.box(centre, np.maximum(sides, _THIN * longest), axes)] if longest > 0 else [shapes.sphere(centre)]


def _nearest(axes: np.ndarray) -> list[int]:
    left, order = [0, 1, 2], []
    for i in range(3):
        best = max(left, key=lambda j: abs(axes[i, j]))
        order.append(best)
        left.remove(best)
    return order


def bar_of(mass: float, moment: float, centre: np.ndarray) -> list[Shape]:
    """Return the bar along the first axis with a given moment of inertia about its centre."""
    half = float(np.sqrt(3 * moment / mass))
    return [shapes.rod(centre - [half, 0], centre + [half, 0], trace=0.5)]


@functools.cache
def between(a: Placement, b: Placement, kind: str) -> ModelFunction:
    """Return the visual of a spring, damper or rod between two body-fixed points k.X and k.Y."""
    draw: Callable[..., Shape] = {"spring": shapes.spring, "damper": shapes.damper, "rod": shapes.rod}[kind]
    n = len(a.names)
    return lambda q, k: draw(a.point(q[:n], k.X), b.point(q[n:], k.Y))


@functools.cache
def joint(a: Placement, b: Placement) -> ModelFunction:
    """Return the visual of a point constraint: a support on the ground, or a small sphere between two bodies."""
    n = len(a.names)

    def look(q: Any, k: Any) -> Any:
        if not a.names:
            return shapes.ground(k.X)
        return shapes.ground(k.Y) if not b.names else shapes.sphere(a.point(q[:n], k.X), trace=None)

    return look


# -- model bodies -----------------------------------------------------------------------------------------------------
def drawn(shape: tuple[Any, ...], dimension: int) -> list[Shape] | None:
    """Return the visual of a body in its body frame, from the type and the sizes of its solid shape."""
    kind, *sizes = shape
    if kind == "shapes":  # already visual shapes
        return sizes
    origin, x, z = np.zeros(dimension), np.eye(dimension)[0], np.eye(dimension)[-1]
    frame = np.eye(dimension)
    if kind == "rod":
        half = sizes[0] / 2 * x
        return [shapes.rod(-half, half, 2 * sizes[1], trace=1.0)]
    if kind == "box":
        return [shapes.box(origin, sizes[:dimension], frame)]
    if kind == "sphere":
        return [shapes.sphere(origin, sizes[0], frame)]
    if kind == "cylinder" and dimension == 3:
        half = sizes[0] / 2 * z
        return [shapes.cylinder(-half, half, sizes[1], trace=0.5)]
    if kind == "ring":
        return [shapes.ring(origin, sizes[0], frame, 2 * sizes[1] or None)]
    return [shapes.sphere(origin, sizes[1], frame)] if kind == "cylinder" else None


def hinge(a: Placement, b: Placement, levers: Any) -> ModelFunction:
    """Return the visual of a joint: a support on the ground, or a small sphere between two bodies."""
    n = len(a.names)

    def look(q: Any) -> list[Shape]:
        if not a.names:
            return [shapes.ground(levers[0])]
        if not b.names:
            return [shapes.ground(levers[1])]
        return [shapes.sphere(a.point(q[:n], levers[0]), trace=None)]

    return look


# -- contacts ---------------------------------------------------------------------------------------------------------
def _round(at: Any, radius: float) -> list[Shape]:
    """Return a sphere; a sphere of radius zero is not displayed."""
    return [shapes.sphere(at, radius, trace=None)] if radius > 0 else []


@functools.cache
def balls(a: Placement, b: Placement, radius: float, other: float) -> ModelFunction:
    """Return two spheres about the points of a pair."""
    n = len(a.names)
    return lambda q, k: [*_round(a.point(q[:n], k.X), radius), *_round(b.point(q[n:], k.Y), other)]


@functools.cache
def ball_on_plane(a: Placement) -> ModelFunction:
    """Return a sphere and the plane below it."""

    def look(q: Any, k: Any) -> list[Shape]:
        n = k.normal
        if len(n) == 2:
            frame = np.array([[n[1], n[0]], [-n[0], n[1]]])
        else:
            side = np.cross(n, np.eye(3)[np.abs(n).argmin()])
            side = side / np.linalg.norm(side)
            frame = np.column_stack([side, np.cross(n, side), n])
        return [shapes.ground(k.origin, 20 * k.reach or 1.0, frame), *_round(a.point(q, k.X), k.reach)]

    return look


@functools.cache
def ball_in_box(a: Placement) -> ModelFunction:
    """Return a sphere and the edges of the box around it."""
    return lambda q, k: [*outline(k.lower, k.upper), *_round(a.point(q, k.X), k.reach)]


def outline(lower: Any, upper: Any) -> list[Shape]:
    """Return the edges of a box, or of a rectangle, between two corners."""
    (x, y), (X, Y) = lower[:2], upper[:2]
    flat = [(x, y), (X, y), (X, Y), (x, Y), (x, y)]
    if len(lower) == 2:
        return [shapes.path(flat)]
    z, Z = lower[2], upper[2]
    ends = [shapes.path([(*corner, height) for corner in flat]) for height in (z, Z)]
    return [*ends, *(shapes.path([(*corner, z), (*corner, Z)]) for corner in flat[:4])]
