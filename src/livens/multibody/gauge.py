"""An angle or a way within a joint that has several freedoms: measured, steered and coupled as that of any joint."""

from __future__ import annotations

import numpy as np

from livens.multibody.connection import Connection, clean
from livens.multibody.joint import Joint
from livens.multibody.joint_table import Kind
from livens.multibody.parts import Part


class Gauge(Joint):
    """It holds nothing together, and so has no element: what does is the joint that it is in.

    The angle of a gauge is that by which an axis of the second part, the first of `axes`, is turned about the third in
    the first part; its position is that of `at` of the second part along the third.
    """

    def __init__(self, name: str, first: Part, second: Part, at: np.ndarray, axes: np.ndarray, turns: bool) -> None:
        Connection.__init__(self, name, "gauge", Kind((), angle=turns, slide=not turns), first, second)
        levers = dict(X=clean(first.lever(at)), Y=clean(second.lever(at)))
        self.parameters = levers | dict(A=clean(first.inwards(axes)), B=clean(second.inwards(axes)))
