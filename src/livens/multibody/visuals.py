"""Default visual geometry of bodies, joints, springs and contacts."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from livens.expressions.tracing import ModelFunction
from livens.multibody.parametrisation import Parametrisation
from livens.scene import shapes
from livens.scene.shapes import Shape
from livens.types import ArrayLike, FloatArray, Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


#: Edge length of a box side without inertia, relative to the longest edge.
_MIN_RELATIVE_EDGE = 0.04


def body_visual(
    parametrisation: Parametrisation, reference: np.ndarray, shapes_of: Callable[[Any], Sequence[Shape]]
) -> ModelFunction:
    """Return the visual of a body from shapes in the body frame, which may depend on its parameters."""

    def visual(q: Vector, k: ParameterNamespace) -> list[Shape]:
        def point(X: ArrayLike) -> Any:
            return parametrisation.point(q, np.asarray(X, dtype=float) - reference)

        def rotated(frame: FloatArray) -> Vector:
            return parametrisation.rotation_matrix(q) @ np.asarray(frame, dtype=float)

        return [shape.transformed(point, rotated) for shape in shapes_of(k)]

    return visual


def particle_visual(dimension: int) -> list[Shape]:
    """Return the visual of a particle."""
    return [shapes.sphere(np.zeros(dimension))]


def inertia_box(mass: float, tensor: np.ndarray, centre: np.ndarray) -> list[Shape]:
    """Return the box with a given inertia about its centre.

    >>> (box,) = inertia_box(12.0, np.diag([13.0, 10.0, 5.0]), np.zeros(3))  # m/12 (b^2 + c^2) and so on
    >>> [round(float(box.sizes[side]), 9) for side in ("length", "width", "depth")]
    [1.0, 2.0, 3.0]
    """
    euler = 0.5 * np.trace(tensor) * np.eye(3) - tensor
    squares, axes = np.linalg.eigh(euler)
    # permute and flip the principal axes to be closest to the body axes
    order = _closest_axis_order(axes)
    squares, axes = squares[order], axes[:, order]
    axes = axes * np.where(np.diag(axes) < 0, -1.0, 1.0)
    if np.linalg.det(axes) < 0:
        axes[:, 2] *= -1
    sides = np.sqrt(12 * np.maximum(squares, 0) / mass)
    longest = float(sides.max())
    return (
        [shapes.box(centre, np.maximum(sides, _MIN_RELATIVE_EDGE * longest), axes)]
        if longest > 0
        else [shapes.sphere(centre)]
    )


def _closest_axis_order(axes: np.ndarray) -> list[int]:
    remaining, order = [0, 1, 2], []
    for i in range(3):
        best = max(remaining, key=lambda j: abs(axes[i, j]))
        order.append(best)
        remaining.remove(best)
    return order


def inertia_bar(mass: float, moment: float, centre: np.ndarray) -> list[Shape]:
    """Return the bar along the first axis with a given moment of inertia about its centre."""
    half = float(np.sqrt(3 * moment / mass))
    return [shapes.rod(centre - [half, 0], centre + [half, 0], trace=0.5)]


@functools.cache
def link_visual(a: Parametrisation, b: Parametrisation, shape_type: str) -> ModelFunction:
    """Return the visual of a spring, damper or rod between two body-fixed points k.X and k.Y."""
    draws: dict[str, Callable[..., Shape]] = {"spring": shapes.spring, "damper": shapes.damper, "rod": shapes.rod}
    draw = draws[shape_type]
    n = len(a.names)
    return lambda q, k: draw(a.point(q[:n], k.X), b.point(q[n:], k.Y))


@functools.cache
def point_joint_visual(a: Parametrisation, b: Parametrisation) -> ModelFunction:
    """Return the visual of a point constraint: a support on the ground, or a small sphere between two bodies."""
    n = len(a.names)

    def visual(q: Vector, k: ParameterNamespace) -> Any:
        if not a.names:
            return shapes.ground(k.X)
        return shapes.ground(k.Y) if not b.names else shapes.sphere(a.point(q[:n], k.X), trace=None)

    return visual


# -- model bodies -----------------------------------------------------------------------------------------------------
def solid_visual(shape: tuple[Any, ...], dimension: int) -> list[Shape] | None:
    """Return the visual of a body in its body frame, from the type and the sizes of its solid shape."""
    shape_type, *sizes = shape
    if shape_type == "shapes":  # already visual shapes
        return sizes
    origin, x, z = np.zeros(dimension), np.eye(dimension)[0], np.eye(dimension)[-1]
    frame = np.eye(dimension)
    if shape_type == "rod":
        half = sizes[0] / 2 * x
        return [shapes.rod(-half, half, 2 * sizes[1], trace=1.0)]
    if shape_type == "box":
        return [shapes.box(origin, sizes[:dimension], frame)]
    if shape_type == "sphere":
        return [shapes.sphere(origin, sizes[0], frame)]
    if shape_type == "cylinder" and dimension == 3:
        half = sizes[0] / 2 * z
        return [shapes.cylinder(-half, half, sizes[1], trace=0.5)]
    if shape_type == "ring":
        return [shapes.ring(origin, sizes[0], frame, 2 * sizes[1] or None)]
    return [shapes.sphere(origin, sizes[1], frame)] if shape_type == "cylinder" else None


def joint_visual(a: Parametrisation, b: Parametrisation, local_positions: Any) -> ModelFunction:
    """Return the visual of a joint: a support on the ground, or a small sphere between two bodies."""
    n = len(a.names)

    def visual(q: Vector) -> list[Shape]:
        if not a.names:
            return [shapes.ground(local_positions[0])]
        if not b.names:
            return [shapes.ground(local_positions[1])]
        return [shapes.sphere(a.point(q[:n], local_positions[0]), trace=None)]

    return visual


# -- contacts ---------------------------------------------------------------------------------------------------------
def _sphere_visual(at: Vector, radius: float) -> list[Shape]:
    """Return a sphere; a sphere of radius zero is not displayed."""
    return [shapes.sphere(at, radius, trace=None)] if radius > 0 else []


@functools.cache
def sphere_pair_visual(a: Parametrisation, b: Parametrisation, radius: float, other_radius: float) -> ModelFunction:
    """Return two spheres about the points of a pair."""
    n = len(a.names)
    return lambda q, k: [
        *_sphere_visual(a.point(q[:n], k.X), radius),
        *_sphere_visual(b.point(q[n:], k.Y), other_radius),
    ]


@functools.cache
def sphere_on_plane_visual(a: Parametrisation) -> ModelFunction:
    """Return a sphere and the plane below it."""

    def visual(q: Vector, k: ParameterNamespace) -> list[Shape]:
        n = k.normal
        if len(n) == 2:
            frame = np.array([[n[1], n[0]], [-n[0], n[1]]])
        else:
            side = np.cross(n, np.eye(3)[np.abs(n).argmin()])
            side = side / np.linalg.norm(side)
            frame = np.column_stack([side, np.cross(n, side), n])
        return [shapes.ground(k.origin, 20 * k.reach or 1.0, frame), *_sphere_visual(a.point(q, k.X), k.reach)]

    return visual


@functools.cache
def sphere_in_box_visual(a: Parametrisation) -> ModelFunction:
    """Return a sphere and the edges of the box around it."""
    return lambda q, k: [*box_outline(k.lower, k.upper), *_sphere_visual(a.point(q, k.X), k.reach)]


def box_outline(lower: FloatArray, upper: FloatArray) -> list[Shape]:
    """Return the edges of a box, or of a rectangle, between two corners."""
    (x, y), (X, Y) = lower[:2], upper[:2]
    corners = [(x, y), (X, y), (X, Y), (x, Y), (x, y)]
    if len(lower) == 2:
        return [shapes.path(corners)]
    z, Z = lower[2], upper[2]
    ends = [shapes.path([(*corner, height) for corner in corners]) for height in (z, Z)]
    return [*ends, *(shapes.path([(*corner, z), (*corner, Z)]) for corner in corners[:4])]
