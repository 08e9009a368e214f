"""Measured coordinate of a joint with several degrees of freedom, usable as the coordinate of any joint."""

from __future__ import annotations

import numpy as np

from livens.multibody.body import Body
from livens.multibody.body_constraint import BodyConstraint, snap_to_axes
from livens.multibody.joint import Joint
from livens.multibody.joint_types import JointType


class JointCoordinate(Joint):
    """Angle or displacement of a multi-dof joint. It adds no constraint; the constraints belong to the joint.

    The angle is that by which the first of `axes`, fixed in the second body, is rotated about the third axis in the
    first body. The displacement is that of the point `at` of the second body along the third axis. The
    second Cardan angle of three hinges is between -90 and 90 degrees. For this angle, `last_axis` is the third hinge
    axis, fixed in the second body; `axes` are the second, the third and the first, fixed in the first body.
    """

    def __init__(
        self,
        name: str,
        body_a: Body,
        body_b: Body,
        at: np.ndarray,
        axes: np.ndarray,
        rotational: bool,
        last_axis: np.ndarray | None = None,
    ) -> None:
        BodyConstraint.__init__(
            self, name, "joint coordinate", JointType((), angle=rotational, slide=not rotational), body_a, body_b
        )
        local_positions = dict(X=snap_to_axes(body_a.to_local(at)), Y=snap_to_axes(body_b.to_local(at)))
        self.parameters = local_positions | dict(
            A=snap_to_axes(body_a.in_body_axes(axes)),
            B=snap_to_axes(body_b.in_body_axes(axes if last_axis is None else last_axis[:, None])),
        )
