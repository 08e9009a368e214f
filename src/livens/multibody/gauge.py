"""Measured coordinate of a joint with several degrees of freedom, usable as the coordinate of any joint."""

from __future__ import annotations

import numpy as np

from livens.multibody.connection import Connection, clean
from livens.multibody.joint import Joint
from livens.multibody.joint_table import Kind
from livens.multibody.parts import Part


class Gauge(Joint):
    """Angle or displacement of a multi-dof joint. It adds no constraint; the constraints belong to the joint.

    The angle is that by which the first of `axes`, fixed in the second body, is rotated about the third axis in the
    first body. The displacement is that of the point `at` of the second body along the third axis.
    """

    def __init__(self, name: str, first: Part, second: Part, at: np.ndarray, axes: np.ndarray, turns: bool) -> None:
        Connection.__init__(self, name, "gauge", Kind((), angle=turns, slide=not turns), first, second)
        levers = dict(X=clean(first.lever(at)), Y=clean(second.lever(at)))
        self.parameters = levers | dict(A=clean(first.inwards(axes)), B=clean(second.inwards(axes)))
