"""Symmetries of systems of bodies, to be given as ``System(symmetries=...)``: linear and angular momentum."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from livens import math as m
from livens.errors import InputError
from livens.multibody.bodies import Body, all_bodies


def linear_momentum(bodies: Sequence[Body]) -> Callable[[Any], Any]:
    """The shift of all bodies along each axis. The bodies must be all of the system, in the order of its coordinates.

    >>> from livens.bodies import particle
    >>> linear_momentum([particle("a", 1.0), particle("b", 1.0)])(np.zeros(6)).tolist()[0]
    [1.0, 0.0, 0.0, 1.0, 0.0, 0.0]
    """
    bodies = all_bodies(bodies)
    fixed = [body.name for body in bodies if not body.placement.translates]
    if fixed:
        raise InputError(f"linear momentum is not conserved: '{fixed[0]}' turns about a fixed point")
    d = bodies[0].placement.dimension
    blocks = [np.eye(d, len(body.coordinates)) for body in bodies]
    return lambda q: np.hstack(blocks)


def angular_momentum(bodies: Sequence[Body], axis: Any = None) -> Callable[[Any], Any]:
    """The rotation of all bodies about each axis through the origin, or about one axis only (S004 eq. 65).

    The bodies must be all of the system, in the order of its coordinates.

    >>> from livens.bodies import particle
    >>> angular_momentum([particle("a", 1.0)], axis=[0, 0, 1])(np.array([2.0, 3.0, 5.0])).tolist()
    [-3.0, 2.0, 0.0]
    """

    def generator(q: Any) -> Any:
        blocks, first = [], 0
        for body in bodies:
            blocks.append(body.placement.turned(q[first : first + len(body.coordinates)]))
            first += len(body.coordinates)
        rows = m.array(np.hstack(blocks))
        return rows if axis is None else np.asarray(axis, dtype=float) @ rows

    return generator
