"""Builder methods for joints and penalty joints."""

from __future__ import annotations

import numpy as np

from livens.errors import InputError, suggestion
from livens.multibody.body import Body, PointLike, frame_from_x, frame_from_z, parse_direction, parse_point
from livens.multibody.builder.base import ModelBase
from livens.multibody.joint import Joint
from livens.multibody.joint_types import PLANAR_JOINTS, SPATIAL_JOINTS
from livens.multibody.penalty_joint import PenaltyJoint, penalty_joint
from livens.types import ArrayLike
from livens.validation import check_nonnegative, check_number, check_positive


class JointMethods(ModelBase):
    """Methods of `livens.Multibody` that add constraints between bodies."""

    def joint(
        self,
        joint_type: str,
        name: str,
        body_a: Body,
        body_b: Body,
        *,
        at: PointLike | None = None,
        at_second: PointLike | None = None,
        axis: ArrayLike | None = None,
        second_axis: ArrayLike | None = None,
        lead: float | None = None,
    ) -> Joint:
        """Add a joint of a given type between two bodies.

        The joint coordinates are zero in the reference configuration. Results: ``name.force`` (N) and ``name.torque``
        (N m) on the second body in space, ``name.violation``, and, depending on the type, ``name.angle`` (rad),
        ``name.rate`` (rad/s), ``name.position`` (m), ``name.velocity`` (m/s).

        Parameters
        ----------
        joint_type : str
            One of "fixed", "revolute", "prismatic", "cylindrical", "screw", "universal", "spherical", "planar",
            "point_on_line", "point_on_plane"; in the plane "fixed", "revolute", "prismatic", "point_on_line".
        name : str
            Name of the joint.
        body_a, body_b : Body
            Bodies, one of them possibly the ground.
        at : array_like or Marker, optional
            Joint position in the reference configuration, in m. By default the centre of the second body.
        at_second : array_like or Marker, optional
            Joint position on the second body, if the reference configuration is not assembled; `at` then is the
            position on the first body.
        axis : {"x", "y", "z"} or array_like, optional
            Joint axis in global coordinates; required by most types.
        second_axis : {"x", "y", "z"} or array_like, optional
            Axis of a universal joint on the second body.
        lead : float, optional
            Displacement of a screw per turn, in m.

        Returns
        -------
        Joint
            The joint, for force elements and initial values.

        Raises
        ------
        InputError
            If the type is unknown, an axis is missing, or a particle is used in a joint that locks rotations.
        """
        joint = self.connections[name] = self._joint(
            joint_type, name, body_a, body_b, at, at_second, axis, second_axis, lead
        )
        return joint

    def penalty_joint(
        self,
        name: str,
        body_a: Body,
        body_b: Body,
        *,
        joint_type: str = "fixed",
        frequency: float,
        damping_ratio: float = 1.0,
        beta: float = 0.8,
        at: PointLike | None = None,
        axis: ArrayLike | None = None,
        second_axis: ArrayLike | None = None,
    ) -> PenaltyJoint:
        """Add a penalty joint: the constraints of a joint replaced by stiff springs and dampers.

        Every constraint by itself has the given natural frequency and damping ratio. Results: ``name.force`` (N) on the
        second body in space, and ``name.violation``. An exact joint adds multipliers instead, and is preferable unless
        the scheme is semi-explicit.

        Parameters
        ----------
        name : str
            Name of the penalty joint.
        body_a, body_b : Body
            Bodies, one of them possibly the ground.
        joint_type : str, default "fixed"
            Joint type as in `joint`.
        frequency : float
            Natural frequency in Hz.
        damping_ratio : float, default 1
            Damping relative to critical damping.
        beta : float, default 0.8
            Fraction of the step at which IMEX schemes such as `semi-explicit` evaluate the penalty forces; 0.8 damps
            frequencies that the step does not resolve.
        at : array_like or Marker, optional
            Joint position in the reference configuration, in m. By default the centre of the second body.
        axis : {"x", "y", "z"} or array_like, optional
            Joint axis in global coordinates.
        second_axis : {"x", "y", "z"} or array_like, optional
            Axis of a universal joint on the second body.

        Returns
        -------
        PenaltyJoint
            The joint and its force element.

        Examples
        --------
        >>> import livens as lv
        >>> mb = lv.Multibody(gravity=[0, 0, -9.81])
        >>> ring = mb.ring("ring", at=[0, 0, 0], axis="x", radius=0.02, tube_radius=0.004, mass=0.06)
        >>> housing = mb.penalty_joint("housing", mb.ground, ring, frequency=1e6)
        >>> run = mb.simulate(t_end=1e-4, h=1e-6, scheme="semi-explicit:0.5,0.8")
        >>> round(float(run["housing.force"][-1, 2]), 6)  # its weight, in N
        0.5886
        """
        checked_frequency = check_positive(f"{name}: the frequency", frequency)
        checked_ratio = check_nonnegative(f"{name}: the damping ratio", damping_ratio)
        checked_beta = check_number(f"{name}: beta", beta)
        joint = self._joint(joint_type, name, body_a, body_b, at, None, axis, second_axis, None)
        penalty = penalty_joint(joint, checked_frequency, checked_ratio, checked_beta)
        self._force_elements[name], self._penalty_joints[name] = penalty.element, penalty
        return penalty

    def _joint(
        self,
        joint_type: str,
        name: str,
        body_a: Body,
        body_b: Body,
        at: PointLike | None,
        at_second: PointLike | None,
        axis: ArrayLike | None,
        second_axis: ArrayLike | None,
        lead: float | None,
    ) -> Joint:
        table = SPATIAL_JOINTS if self.dimension == 3 else PLANAR_JOINTS
        if joint_type not in table:
            raise InputError(f"there is no joint type '{joint_type}'{suggestion(joint_type, table)}")
        self._claim_name(name)
        self._check_body_pair(name, body_a, body_b)
        entry = table[joint_type]
        position = (
            at
            if at is not None
            else at_second
            if at_second is not None
            else (body_b if body_b.element else body_a).reference_position
        )
        position_a = parse_point(f"{name}: at", position, self.dimension)
        position_b = position_a if at_second is None else parse_point(f"{name}: to", at_second, self.dimension)
        if entry.axis and axis is None:
            raise InputError(f"{name}: a {joint_type} joint needs an axis")
        if self.dimension == 2:
            axes = frame_from_x(parse_direction(f"{name}: axis", "x" if axis is None else axis, 2))
        elif joint_type == "universal":
            axes = _universal_axes(name, axis, second_axis)
        else:
            axes = frame_from_z(parse_direction(f"{name}: axis", "z" if axis is None else axis))
        if entry.orthogonal_axes and not (body_a.has_orientation and body_b.has_orientation):
            raise InputError(f"{name}: a particle has no orientation; use a spherical joint")
        if entry.lead and lead is None:
            raise InputError(f"{name}: a {joint_type} needs a lead, the displacement per turn")
        pitch = None if lead is None else check_number(f"{name}: the lead", lead)
        return Joint(name, joint_type, entry, body_a, body_b, (position_a, position_b), axes, pitch)

    def fixed(
        self, name: str, body_a: Body, body_b: Body, *, at: PointLike | None = None, at_second: PointLike | None = None
    ) -> Joint:
        """Add a fixed joint (weld): no relative motion.

        Parameters
        ----------
        name : str
            Name of the joint.
        body_a, body_b : Body
            Bodies, one of them possibly the ground.
        at : array_like or Marker, optional
            Joint position in the reference configuration, in m. By default the centre of the second body.
        at_second : array_like or Marker, optional
            Joint position on the second body, if the reference configuration is not assembled.

        Returns
        -------
        Joint
            The joint.
        """
        return self.joint("fixed", name, body_a, body_b, at=at, at_second=at_second)

    def revolute(
        self,
        name: str,
        body_a: Body,
        body_b: Body,
        *,
        axis: ArrayLike | None = None,
        at: PointLike | None = None,
        at_second: PointLike | None = None,
    ) -> Joint:
        """Add a revolute joint: rotation about one axis.

        Results: ``name.angle`` (rad) and ``name.rate`` (rad/s).

        Parameters
        ----------
        name : str
            Name of the joint.
        body_a, body_b : Body
            Bodies, one of them possibly the ground.
        axis : {"x", "y", "z"} or array_like of shape (3,), optional
            Rotation axis in global coordinates; not needed in the plane.
        at : array_like or Marker, optional
            Joint position in the reference configuration, in m. By default the centre of the second body.
        at_second : array_like or Marker, optional
            Joint position on the second body, if the reference configuration is not assembled.

        Returns
        -------
        Joint
            The joint.

        Examples
        --------
        >>> import livens as lv
        >>> mb = lv.Multibody(gravity=[0, 0, -9.81])
        >>> arm = mb.rod("arm", a=[0, 0, 0], b=[1, 0, 0], mass=1.0)
        >>> hinge = mb.revolute("hinge", mb.ground, arm, at=arm.a, axis="y")
        """
        return self.joint("revolute", name, body_a, body_b, axis=axis, at=at, at_second=at_second)

    def prismatic(
        self,
        name: str,
        body_a: Body,
        body_b: Body,
        *,
        axis: ArrayLike,
        at: PointLike | None = None,
        at_second: PointLike | None = None,
    ) -> Joint:
        """Add a prismatic joint: translation along one axis.

        Results: ``name.position`` (m) and ``name.velocity`` (m/s).

        Parameters
        ----------
        name : str
            Name of the joint.
        body_a, body_b : Body
            Bodies, one of them possibly the ground.
        axis : {"x", "y", "z"} or array_like
            Sliding direction in global coordinates, fixed in the first body.
        at : array_like or Marker, optional
            Joint position in the reference configuration, in m. By default the centre of the second body.
        at_second : array_like or Marker, optional
            Joint position on the second body, if the reference configuration is not assembled.

        Returns
        -------
        Joint
            The joint.
        """
        return self.joint("prismatic", name, body_a, body_b, axis=axis, at=at, at_second=at_second)

    def cylindrical(
        self,
        name: str,
        body_a: Body,
        body_b: Body,
        *,
        axis: ArrayLike,
        at: PointLike | None = None,
        at_second: PointLike | None = None,
    ) -> Joint:
        """Add a cylindrical joint: translation along an axis and rotation about it.

        Parameters
        ----------
        name : str
            Name of the joint.
        body_a, body_b : Body
            Bodies, one of them possibly the ground.
        axis : {"x", "y", "z"} or array_like of shape (3,)
            Joint axis in global coordinates.
        at : array_like or Marker, optional
            Joint position in the reference configuration, in m. By default the centre of the second body.
        at_second : array_like or Marker, optional
            Joint position on the second body, if the reference configuration is not assembled.

        Returns
        -------
        Joint
            The joint.
        """
        return self.joint("cylindrical", name, body_a, body_b, axis=axis, at=at, at_second=at_second)

    def screw(
        self,
        name: str,
        body_a: Body,
        body_b: Body,
        *,
        axis: ArrayLike,
        lead: float,
        at: PointLike | None = None,
        at_second: PointLike | None = None,
    ) -> Joint:
        """Add a screw joint: rotation about an axis coupled to translation along it.

        Parameters
        ----------
        name : str
            Name of the joint.
        body_a, body_b : Body
            Bodies, one of them possibly the ground.
        axis : {"x", "y", "z"} or array_like of shape (3,)
            Joint axis in global coordinates.
        lead : float
            Displacement per turn in m.
        at : array_like or Marker, optional
            Joint position in the reference configuration, in m. By default the centre of the second body.
        at_second : array_like or Marker, optional
            Joint position on the second body, if the reference configuration is not assembled.

        Returns
        -------
        Joint
            The joint.
        """
        return self.joint("screw", name, body_a, body_b, axis=axis, lead=lead, at=at, at_second=at_second)

    def universal(
        self,
        name: str,
        body_a: Body,
        body_b: Body,
        *,
        axis: ArrayLike,
        second_axis: ArrayLike,
        at: PointLike | None = None,
        at_second: PointLike | None = None,
    ) -> Joint:
        """Add a universal joint (Cardan joint): two intersecting axes stay orthogonal.

        Parameters
        ----------
        name : str
            Name of the joint.
        body_a, body_b : Body
            Bodies, one of them possibly the ground.
        axis : {"x", "y", "z"} or array_like of shape (3,)
            Axis fixed in the first body, in global coordinates.
        second_axis : {"x", "y", "z"} or array_like of shape (3,)
            Axis fixed in the second body, in global coordinates; normal to `axis`.
        at : array_like or Marker, optional
            Joint position in the reference configuration, in m. By default the centre of the second body.
        at_second : array_like or Marker, optional
            Joint position on the second body, if the reference configuration is not assembled.

        Returns
        -------
        Joint
            The joint.
        """
        return self.joint(
            "universal", name, body_a, body_b, axis=axis, second_axis=second_axis, at=at, at_second=at_second
        )

    def spherical(
        self, name: str, body_a: Body, body_b: Body, *, at: PointLike | None = None, at_second: PointLike | None = None
    ) -> Joint:
        """Add a spherical joint (ball joint): a point of each body coincides; in the plane a revolute joint.

        Parameters
        ----------
        name : str
            Name of the joint.
        body_a, body_b : Body
            Bodies, one of them possibly the ground.
        at : array_like or Marker, optional
            Joint position in the reference configuration, in m. By default the centre of the second body.
        at_second : array_like or Marker, optional
            Joint position on the second body, if the reference configuration is not assembled.

        Returns
        -------
        Joint
            The joint.
        """
        return self.joint(
            "spherical" if self.dimension == 3 else "revolute", name, body_a, body_b, at=at, at_second=at_second
        )

    def planar(
        self,
        name: str,
        body_a: Body,
        body_b: Body,
        *,
        axis: ArrayLike,
        at: PointLike | None = None,
        at_second: PointLike | None = None,
    ) -> Joint:
        """Add a planar joint: translation in a plane and rotation about its normal.

        Parameters
        ----------
        name : str
            Name of the joint.
        body_a, body_b : Body
            Bodies, one of them possibly the ground.
        axis : {"x", "y", "z"} or array_like of shape (3,)
            Normal of the plane in global coordinates, fixed in the first body.
        at : array_like or Marker, optional
            Joint position in the reference configuration, in m. By default the centre of the second body.
        at_second : array_like or Marker, optional
            Joint position on the second body, if the reference configuration is not assembled.

        Returns
        -------
        Joint
            The joint.
        """
        return self.joint("planar", name, body_a, body_b, axis=axis, at=at, at_second=at_second)

    def point_on_line(
        self,
        name: str,
        body_a: Body,
        body_b: Body,
        *,
        axis: ArrayLike,
        at: PointLike | None = None,
        at_second: PointLike | None = None,
    ) -> Joint:
        """Add a point-on-line constraint: a point of the second body stays on a line of the first.

        Parameters
        ----------
        name : str
            Name of the joint.
        body_a, body_b : Body
            Bodies, one of them possibly the ground.
        axis : {"x", "y", "z"} or array_like
            Direction of the line in global coordinates.
        at : array_like or Marker, optional
            Joint position in the reference configuration, in m. By default the centre of the second body.
        at_second : array_like or Marker, optional
            Joint position on the second body, if the reference configuration is not assembled.

        Returns
        -------
        Joint
            The joint.
        """
        return self.joint("point_on_line", name, body_a, body_b, axis=axis, at=at, at_second=at_second)

    def point_on_plane(
        self,
        name: str,
        body_a: Body,
        body_b: Body,
        *,
        axis: ArrayLike,
        at: PointLike | None = None,
        at_second: PointLike | None = None,
    ) -> Joint:
        """Add a point-on-plane constraint: a point of the second body stays on a plane of the first.

        Parameters
        ----------
        name : str
            Name of the joint.
        body_a, body_b : Body
            Bodies, one of them possibly the ground.
        axis : {"x", "y", "z"} or array_like of shape (3,)
            Normal of the plane in global coordinates.
        at : array_like or Marker, optional
            Joint position in the reference configuration, in m. By default the centre of the second body.
        at_second : array_like or Marker, optional
            Joint position on the second body, if the reference configuration is not assembled.

        Returns
        -------
        Joint
            The joint.
        """
        return self.joint("point_on_plane", name, body_a, body_b, axis=axis, at=at, at_second=at_second)


def _universal_axes(name: str, axis: ArrayLike | None, second_axis: ArrayLike | None) -> np.ndarray:
    """Return the axes of a universal joint: the first fixed in the first body, the second in the second body."""
    if axis is None or second_axis is None:
        raise InputError(f"{name}: a universal joint needs axis (first body) and second_axis (second body)")
    axis_a, axis_b = parse_direction(f"{name}: axis", axis), parse_direction(f"{name}: second_axis", second_axis)
    if abs(axis_a @ axis_b) > 1e-9:
        raise InputError(f"{name}: the two axes of a universal joint must be orthogonal")
    return np.column_stack([axis_a, axis_b, np.cross(axis_a, axis_b)])
