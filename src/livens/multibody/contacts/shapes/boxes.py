"""Boxes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from livens.errors import InputError, explain_call_errors
from livens.multibody.body import Body
from livens.multibody.body_constraint import snap_to_axes
from livens.multibody.contacts.geometry.box import BoxDistance
from livens.multibody.contacts.shapes.base import CollisionShape, solid_sizes
from livens.validation import check_array, check_bool, check_nonnegative


@explain_call_errors
class Box(CollisionShape):
    """Box.

    On another shape it is sampled at its corners. Two boxes also touch with crossing edges.

    Parameters
    ----------
    body : Body
        Body or ground that the box belongs to.
    size : array_like, optional
        Edge lengths in m; by default those of a body created by `Multibody.box`.
    at : array_like or Marker, optional
        Centre in the reference configuration, in m; by default the centre of the body.
    rotation : array_like of shape (d, d), optional
        Axes of the box as columns; by default those of the body.
    rounding : float, default 0
        Radius in m of the inscribed spheres at the corners.
    edges : bool, default True
        Whether crossing edges of two boxes touch. Without it, as for boxes that lie flat on each other, the
        equations of a pair are about half as long.
    """

    label = "a box"
    surface = BoxDistance()

    def __init__(
        self,
        body: Body,
        size: Any = None,
        at: Any = None,
        rotation: Any = None,
        rounding: float = 0.0,
        edges: bool = True,
    ) -> None:
        value = size if size is not None else solid_sizes(body, "box", self.label)
        d = body.dimension if isinstance(body, Body) else 3
        half = check_array("the size of a box", value, (d,)) / 2
        if not np.all(half > 0):
            raise InputError(f"the edges of a box in contact must be greater than 0, got {list(value)}")
        axes = None if rotation is None else check_array("the rotation of a box", rotation, (d, d))
        super().__init__(body, at, axes, half=half)
        self.rounding = check_nonnegative("the rounding of a box", rounding)
        if self.rounding > half.min():
            raise InputError(f"a rounding of {self.rounding:g} is more than half of the shortest edge of the box")
        self.edges = check_bool("edges", edges)

    @property
    def characteristic_size(self) -> float:
        """Characteristic size: shortest edge."""
        return 2 * float(self.sizes["half"].min())

    def sample_spheres(self) -> list[tuple[np.ndarray, float]]:
        """Return the sample spheres: spheres at the corners."""
        inner_half = self.sizes["half"] - self.rounding
        corners = itertools.product((-1.0, 1.0), repeat=len(inner_half))
        return [
            (snap_to_axes(self.local_position + self.axes @ (np.array(signs) * inner_half)), self.rounding)
            for signs in corners
        ]

    def curvatures(self, other: CollisionShape) -> Sequence[float]:
        """Return the principal curvatures at the contact: zero on a face."""
        if other.sample_spheres() and not isinstance(other, Box):
            return 0.0, 0.0  # a face
        return super().curvatures(other)
