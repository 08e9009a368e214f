"""Symmetries of systems of bodies for ``System(symmetries=...)``: linear and angular momentum."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from livens import math as m
from livens.errors import InputError, explain_call_errors
from livens.multibody.body_elements import BodyElement, check_bodies
from livens.types import ArrayLike, ModelFunction, Vector


@explain_call_errors
def linear_momentum(bodies: Sequence[BodyElement]) -> ModelFunction:
    """Return the generator of translations of all bodies along each axis (linear momentum).

    Parameters
    ----------
    bodies : sequence of BodyElement
        All bodies of the system, in the order of its coordinates.

    Returns
    -------
    callable
        Function of q that returns the generator, of shape (d, n).

    Raises
    ------
    InputError
        If a body rotates about a fixed point.

    Examples
    --------
    >>> from livens.bodies import particle
    >>> linear_momentum([particle("a", 1.0), particle("b", 1.0)])(np.zeros(6)).tolist()[0]
    [1.0, 0.0, 0.0, 1.0, 0.0, 0.0]
    """
    bodies = check_bodies(bodies)
    fixed = [body.name for body in bodies if not body.parametrisation.has_translation]
    if fixed:
        raise InputError(f"linear momentum is not conserved: '{fixed[0]}' rotates about a fixed point")
    d = bodies[0].parametrisation.dimension
    blocks = [np.eye(d, len(body.coordinates)) for body in bodies]
    return lambda q: np.hstack(blocks)


@explain_call_errors
def angular_momentum(bodies: Sequence[BodyElement], axis: ArrayLike | None = None) -> ModelFunction:
    """Return the generator of rotations of all bodies about the axes through the origin.

    See Kinon and Betsch 2024, eq. 65.

    Parameters
    ----------
    bodies : sequence of BodyElement
        All bodies of the system, in the order of its coordinates.
    axis : array_like of shape (3,), optional
        Single axis of rotation; by default all axes.

    Returns
    -------
    callable
        Function of q that returns the generator, of shape (3, n), or (n,) with `axis`.

    Examples
    --------
    >>> from livens.bodies import particle
    >>> angular_momentum([particle("a", 1.0)], axis=[0, 0, 1])(np.array([2.0, 3.0, 5.0])).tolist()
    [-3.0, 2.0, 0.0]
    """

    def generator(q: Vector) -> Vector:
        blocks, start = [], 0
        for body in bodies:
            blocks.append(body.parametrisation.rotation_generator(q[start : start + len(body.coordinates)]))
            start += len(body.coordinates)
        rows = m.array(np.hstack(blocks))
        return rows if axis is None else np.asarray(axis, dtype=float) @ rows

    return generator
