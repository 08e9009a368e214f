"""Builder methods for joints, penalty joints, implicit constraints, rolling, and couplings of joints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from livens.errors import InputError, suggestion
from livens.models.element import Element
from livens.multibody import point_constraints
from livens.multibody.armature import JointArmature
from livens.multibody.body import Body, frame_from_x, frame_from_z, parse_direction, parse_point
from livens.multibody.body_constraint import BodyConstraint
from livens.multibody.builder.base import ModelBase
from livens.multibody.couplings import Coupling
from livens.multibody.joint import Joint
from livens.multibody.joint_types import PLANAR_JOINTS, SPATIAL_JOINTS
from livens.multibody.penalty_joint import PenaltyJoint, penalty_joint
from livens.multibody.rolling import KnifeEdge, Rolling
from livens.multibody.surface_constraints import PointOnImplicitSurface
from livens.types import ArrayLike
from livens.validation import check_array, check_nonnegative, check_number, check_positive


class JointMethods(ModelBase):
    """Methods of `livens.Multibody` that add constraints between bodies."""

    def joint(
        self,
        joint_type: str,
        name: str,
        body_a: Body,
        body_b: Body,
        *,
        at: Any = None,
        at_second: Any = None,
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
        at: Any = None,
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
        at: Any,
        at_second: Any,
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

    def fixed(self, name: str, body_a: Body, body_b: Body, **location: Any) -> Joint:
        """Add a fixed joint (weld): no relative motion.

        Parameters
        ----------
        name : str
            Name of the joint.
        body_a, body_b : Body
            Bodies, one of them possibly the ground.
        **location : optional
            `at` and `at_second` as in `joint`.

        Returns
        -------
        Joint
            The joint.
        """
        return self.joint("fixed", name, body_a, body_b, **location)

    def revolute(
        self, name: str, body_a: Body, body_b: Body, *, axis: ArrayLike | None = None, **location: Any
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
        **location : optional
            `at` and `at_second` as in `joint`.

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
        return self.joint("revolute", name, body_a, body_b, axis=axis, **location)

    def prismatic(self, name: str, body_a: Body, body_b: Body, *, axis: ArrayLike, **location: Any) -> Joint:
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
        **location : optional
            `at` and `at_second` as in `joint`.

        Returns
        -------
        Joint
            The joint.
        """
        return self.joint("prismatic", name, body_a, body_b, axis=axis, **location)

    def cylindrical(self, name: str, body_a: Body, body_b: Body, *, axis: ArrayLike, **location: Any) -> Joint:
        """Add a cylindrical joint: translation along an axis and rotation about it.

        Parameters
        ----------
        name : str
            Name of the joint.
        body_a, body_b : Body
            Bodies, one of them possibly the ground.
        axis : {"x", "y", "z"} or array_like of shape (3,)
            Joint axis in global coordinates.
        **location : optional
            `at` and `at_second` as in `joint`.

        Returns
        -------
        Joint
            The joint.
        """
        return self.joint("cylindrical", name, body_a, body_b, axis=axis, **location)

    def screw(self, name: str, body_a: Body, body_b: Body, *, axis: ArrayLike, lead: float, **location: Any) -> Joint:
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
        **location : optional
            `at` and `at_second` as in `joint`.

        Returns
        -------
        Joint
            The joint.
        """
        return self.joint("screw", name, body_a, body_b, axis=axis, lead=lead, **location)

    def universal(
        self, name: str, body_a: Body, body_b: Body, *, axis: ArrayLike, second_axis: ArrayLike, **location: Any
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
        **location : optional
            `at` and `at_second` as in `joint`.

        Returns
        -------
        Joint
            The joint.
        """
        return self.joint("universal", name, body_a, body_b, axis=axis, second_axis=second_axis, **location)

    def spherical(self, name: str, body_a: Body, body_b: Body, **location: Any) -> Joint:
        """Add a spherical joint (ball joint): a point of each body coincides; in the plane a revolute joint.

        Parameters
        ----------
        name : str
            Name of the joint.
        body_a, body_b : Body
            Bodies, one of them possibly the ground.
        **location : optional
            `at` and `at_second` as in `joint`.

        Returns
        -------
        Joint
            The joint.
        """
        return self.joint("spherical" if self.dimension == 3 else "revolute", name, body_a, body_b, **location)

    def planar(self, name: str, body_a: Body, body_b: Body, *, axis: ArrayLike, **location: Any) -> Joint:
        """Add a planar joint: translation in a plane and rotation about its normal.

        Parameters
        ----------
        name : str
            Name of the joint.
        body_a, body_b : Body
            Bodies, one of them possibly the ground.
        axis : {"x", "y", "z"} or array_like of shape (3,)
            Normal of the plane in global coordinates, fixed in the first body.
        **location : optional
            `at` and `at_second` as in `joint`.

        Returns
        -------
        Joint
            The joint.
        """
        return self.joint("planar", name, body_a, body_b, axis=axis, **location)

    def point_on_line(self, name: str, body_a: Body, body_b: Body, *, axis: ArrayLike, **location: Any) -> Joint:
        """Add a point-on-line constraint: a point of the second body stays on a line of the first.

        Parameters
        ----------
        name : str
            Name of the joint.
        body_a, body_b : Body
            Bodies, one of them possibly the ground.
        axis : {"x", "y", "z"} or array_like
            Direction of the line in global coordinates.
        **location : optional
            `at` and `at_second` as in `joint`.

        Returns
        -------
        Joint
            The joint.
        """
        return self.joint("point_on_line", name, body_a, body_b, axis=axis, **location)

    def point_on_plane(self, name: str, body_a: Body, body_b: Body, *, axis: ArrayLike, **location: Any) -> Joint:
        """Add a point-on-plane constraint: a point of the second body stays on a plane of the first.

        Parameters
        ----------
        name : str
            Name of the joint.
        body_a, body_b : Body
            Bodies, one of them possibly the ground.
        axis : {"x", "y", "z"} or array_like of shape (3,)
            Normal of the plane in global coordinates.
        **location : optional
            `at` and `at_second` as in `joint`.

        Returns
        -------
        Joint
            The joint.
        """
        return self.joint("point_on_plane", name, body_a, body_b, axis=axis, **location)

    def distance(self, name: str, point_a: Any, point_b: Any, *, length: float | None = None) -> Element:
        """Add a distance constraint (massless rigid link) between two points.

        The result is ``name.tension`` in N, positive in tension.

        Parameters
        ----------
        name : str
            Name of the link.
        point_a, point_b : Marker, Body or array_like
            Points: of a body (a body stands for its centre of mass), or fixed in space. At least one belongs to a body.
        length : float, optional
            Distance in m. By default that of the reference configuration.

        Returns
        -------
        Element
            Constraint element.
        """
        ends = self._attachments(name, point_a, point_b)
        link = point_constraints.rigid_link(*ends, self._reference_length(point_a, point_b, length))
        self._distance_constraints.append(self._add_force_element(name, link, "distance", point_a, point_b))
        return link

    # -- points on curves, rolling ------------------------------------------------------------------------------------
    def point_on_surface(
        self,
        name: str,
        body_a: Body,
        body_b: Body,
        *,
        surface: Callable[[Any], Any],
        at: Any = None,
        origin: Any = None,
    ) -> BodyConstraint:
        """Add a point-on-surface constraint with an implicit surface ``surface(x) = 0``.

        Parameters
        ----------
        name : str
            Name of the constraint. Results: ``name.force``, ``name.torque``, ``name.violation``.
        body_a, body_b : Body
            Body that carries the surface (or the ground), and body of the point.
        surface : callable
            Function of the position x in the axes of the first body, relative to `origin`; returns one expression.
        at : array_like or Marker, optional
            Point of the second body, in m; by default its centre.
        origin : array_like or Marker, optional
            Origin of x in the reference configuration, in m; by default the centre of the first body.

        Returns
        -------
        BodyConstraint
            The constraint.

        Raises
        ------
        InputError
            If the second body is the ground, or the function does not return one expression.
        """
        return self._implicit_constraint("surface", name, body_a, body_b, surface, at, origin, 1)

    def point_on_curve(
        self, name: str, body_a: Body, body_b: Body, *, curve: Callable[[Any], Any], at: Any = None, origin: Any = None
    ) -> BodyConstraint:
        """Add a point-on-curve constraint with an implicit curve ``curve(x) = 0``.

        Parameters
        ----------
        name : str
            Name of the constraint. Results: ``name.force``, ``name.torque``, ``name.violation``.
        body_a, body_b : Body
            Body that carries the curve (or the ground), and body of the point.
        curve : callable
            Function of the position x in the axes of the first body, relative to `origin`; returns two expressions
            (one in the plane). A parabola is ``lambda x: [x[2] - x[0]**2, x[1]]``.
        at : array_like or Marker, optional
            Point of the second body, in m; by default its centre.
        origin : array_like or Marker, optional
            Origin of x in the reference configuration, in m; by default the centre of the first body.

        Returns
        -------
        BodyConstraint
            The constraint.

        Raises
        ------
        InputError
            If the second body is the ground, or the function returns a wrong number of expressions.
        """
        return self._implicit_constraint("curve", name, body_a, body_b, curve, at, origin, self.dimension - 1)

    def _implicit_constraint(
        self, type_name: str, name: str, body_a: Body, body_b: Body, function: Any, at: Any, origin: Any, count: int
    ) -> BodyConstraint:
        self._claim_name(name)
        self._check_body_pair(name, body_a, body_b)
        if body_b.element is None:
            raise InputError(f"{name}: the point on a {type_name} must belong to a body")
        position = body_b.reference_position if at is None else parse_point(f"{name}: at", at, self.dimension)
        origin_position = (
            body_a.reference_position if origin is None else parse_point(f"{name}: origin", origin, self.dimension)
        )
        constraint = PointOnImplicitSurface(
            name, type_name, body_a, body_b, at=position, origin=origin_position, function=function, count=count
        )
        self.connections[name] = constraint
        return constraint

    def rolling(
        self,
        name: str,
        body_a: Body,
        body_b: Body,
        *,
        radius: float,
        axis: ArrayLike | None = None,
        at: Any = (0.0, 0.0, 0.0),
        normal: ArrayLike = "z",
    ) -> BodyConstraint:
        """Add rolling without slip of a ball or a thin disc on a plane of the ground (nonholonomic).

        Parameters
        ----------
        name : str
            Name of the constraint. Results: ``name.force``, ``name.torque``, ``name.violation``.
        body_a, body_b : Body
            The ground, and the rolling body, which has an orientation.
        radius : float
            Radius in m.
        axis : {"x", "y", "z"} or array_like of shape (3,), optional
            Axis of a thin disc in global coordinates. Without it the body rolls as a ball.
        at : array_like of shape (3,) or Marker, default (0, 0, 0)
            Point of the plane, in m.
        normal : {"x", "y", "z"} or array_like of shape (3,), default "z"
            Normal of the plane; it points to the side of the body.

        Returns
        -------
        BodyConstraint
            The constraint.

        Raises
        ------
        InputError
            If the model is planar, the first body is not the ground, or the body is on the wrong side of the plane.
        """
        self._require_spatial_on_ground(name, "rolling", body_a, body_b)
        size = check_positive(f"{name}: the radius", radius)
        disc_axis = None if axis is None else parse_direction(f"{name}: axis", axis)
        plane_point, plane_normal = parse_point(f"{name}: at", at, 3), parse_direction(f"{name}: normal", normal)
        if plane_normal @ (body_b.reference_position - plane_point) <= 0:
            raise InputError(f"{name}: the centre of '{body_b.name}' is not on the side that the normal points to")
        constraint = Rolling(
            name, body_a, body_b, radius=size, at=plane_point, normal=plane_normal, disc_axis=disc_axis
        )
        self.connections[name] = constraint
        return constraint

    def knife_edge(
        self, name: str, body_a: Body, body_b: Body, *, lateral: ArrayLike, at: Any = None
    ) -> BodyConstraint:
        """Add a knife-edge constraint: a point has no velocity along a body-fixed direction (skate, steered wheel).

        Parameters
        ----------
        name : str
            Name of the constraint. Results: ``name.force``, ``name.torque``.
        body_a, body_b : Body
            The ground, and the constrained body.
        lateral : {"x", "y", "z"} or array_like of shape (3,)
            Lateral direction in global coordinates of the reference configuration, fixed in the body.
        at : array_like of shape (3,) or Marker, optional
            Point of the body, in m; by default its centre.

        Returns
        -------
        BodyConstraint
            The constraint.
        """
        self._require_spatial_on_ground(name, "a knife edge", body_a, body_b)
        position = body_b.reference_position if at is None else parse_point(f"{name}: at", at, 3)
        constraint = KnifeEdge(name, body_a, body_b, at=position, lateral=parse_direction(f"{name}: across", lateral))
        self.connections[name] = constraint
        return constraint

    def _require_spatial_on_ground(self, name: str, constraint_name: str, body_a: Body, body_b: Body) -> None:
        self._claim_name(name)
        self._check_body_pair(name, body_a, body_b)
        if self.dimension != 3 or body_a is not self.ground or not body_b.has_orientation or body_b.element is None:
            raise InputError(
                f"{name}: {constraint_name} needs the ground and a body with an orientation, in a spatial model"
            )

    # -- couplings ----------------------------------------------------------------------------------------------------
    def couple(self, name: str, *terms: tuple[Joint, float], coupling_type: str = "coupling") -> Coupling:
        """Add a linear coupling: a weighted sum of joint coordinates stays constant.

        Results: ``name.violation`` and the coupling torque or force in the last joint, ``name.torque`` or
        ``name.force``.

        Parameters
        ----------
        name : str
            Name of the coupling.
        *terms : tuple of (Joint, float)
            Joints and coefficients. The joint coordinate is the angle, or the displacement of joints that only slide.
        coupling_type : str, default "coupling"
            Name of the type in outputs.

        Returns
        -------
        Coupling
            The coupling.

        Raises
        ------
        InputError
            If there are fewer than two different joints, a coefficient is zero, or a joint has no single coordinate.
        """
        self._claim_name(name)
        checked_terms = []
        for term in terms:
            if not isinstance(term, tuple) or len(term) != 2:
                raise InputError(f"{name}: the terms of a coupling are (joint, coefficient), got {term!r}")
            joint, coefficient = term
            self._check_joint(name, joint)
            if not (joint.joint_type.angle or joint.joint_type.slide):
                raise InputError(
                    f"{name}: the {joint.type_name} joint '{joint.name}' has no single angle or displacement"
                )
            value = check_number(f"{name}: the weight of {joint.name}", coefficient)
            if value == 0:
                raise InputError(f"{name}: the weight of '{joint.name}' is zero; remove the joint from the coupling")
            checked_terms.append((joint, "angle" if joint.joint_type.angle else "position", value))
        if len(checked_terms) < 2 or len({joint.name for joint, _, _ in checked_terms}) < len(checked_terms):
            raise InputError(f"{name}: a coupling needs at least two different joints")
        self.couplings[name] = Coupling(name, coupling_type, checked_terms)
        return self.couplings[name]

    def armature(self, joint: Joint, *, inertia: float, name: str | None = None) -> JointArmature:
        """Add the armature of a joint: the reflected inertia of the rotor of a motor and its gearbox.

        The rotor adds ``inertia rate^2 / 2`` to the kinetic energy, and nothing else. The result ``name.torque`` (N m)
        or ``name.force`` (N) is that of its inertia on the joint.

        Parameters
        ----------
        joint : Joint
            Joint with an angle or a displacement.
        inertia : float
            Rotor inertia times the squared gear ratio in kg m^2, or the reflected mass in kg of a joint that slides.
        name : str, optional
            Name; by default that of the joint with " armature".

        Returns
        -------
        JointArmature
            The armature.

        Raises
        ------
        InputError
            If the joint has no single angle or displacement, or has an armature already.

        Examples
        --------
        >>> import livens as lv
        >>> mb = lv.Multibody(gravity=None)
        >>> rod = mb.rod("rod", a=[0, 0, 0], b=[1, 0, 0], mass=3.0, radius=0.01)
        >>> hinge = mb.revolute("hinge", mb.ground, rod, at=[0, 0, 0], axis="z")
        >>> rotor = mb.armature(hinge, inertia=0.5)
        >>> print(f"{mb.mass_matrix([0.0])[0, 0]:.4f}")
        1.5001
        """
        self._check_joint("armature", joint)
        name = f"{joint.name} armature" if name is None else name
        if not (joint.joint_type.angle or joint.joint_type.slide):
            raise InputError(f"{name}: the {joint.type_name} joint '{joint.name}' has no single angle or displacement")
        if joint.armature is not None:
            raise InputError(f"{name}: the joint '{joint.name}' has the armature '{joint.armature.name}' already")
        moment = check_positive(f"{name}: inertia", inertia)
        self._claim_name(name)
        joint.armature = self.armatures[name] = JointArmature(name, joint, moment)
        return joint.armature

    def gear(self, name: str, joint_a: Joint, joint_b: Joint, *, ratio: float) -> Coupling:
        """Add a gear: the second joint rotates by `ratio` times the angle of the first.

        Parameters
        ----------
        name : str
            Name of the gear. Results: ``name.torque`` (N m) in the second joint, ``name.violation``.
        joint_a, joint_b : Joint
            Driving and driven joint, each with an angle.
        ratio : float
            Transmission ratio; negative for external gears.

        Returns
        -------
        Coupling
            The coupling.
        """
        self._require_angles(name, joint_a, joint_b)
        return self.couple(
            name, (joint_a, check_number(f"{name}: the ratio", ratio)), (joint_b, -1.0), coupling_type="gear"
        )

    def rack(self, name: str, pinion: Joint, slide: Joint, *, radius: float) -> Coupling:
        """Add a rack and pinion: the slide moves by `radius` times the angle of the pinion.

        Parameters
        ----------
        name : str
            Name of the coupling. Results: ``name.force`` (N) in the slide, ``name.violation``.
        pinion : Joint
            Joint with an angle.
        slide : Joint
            Joint that only slides.
        radius : float
            Pitch radius in m; negative if the rack is on the other side.

        Returns
        -------
        Coupling
            The coupling.
        """
        self._require_coordinate(name, pinion, "angle")
        self._require_coordinate(name, slide, "slide")
        if slide.joint_type.angle:
            raise InputError(f"{name}: the rack '{slide.name}' must be a joint that only slides")
        return self.couple(
            name, (pinion, check_number(f"{name}: the radius", radius)), (slide, -1.0), coupling_type="rack"
        )

    def belt(self, name: str, joint_a: Joint, joint_b: Joint, *, radii: ArrayLike, crossed: bool = False) -> Coupling:
        """Add a belt drive between two pulleys, without slip.

        Parameters
        ----------
        name : str
            Name of the belt. Results: ``name.torque`` (N m) in the second joint, ``name.violation``.
        joint_a, joint_b : Joint
            Joints of the pulleys, each with an angle.
        radii : array_like of shape (2,)
            Radii of the pulleys in m.
        crossed : bool, default False
            Whether the belt is crossed, so that the pulleys rotate in opposite directions.

        Returns
        -------
        Coupling
            The coupling.
        """
        self._require_angles(name, joint_a, joint_b)
        r = check_array(f"{name}: radii", radii, (2,))
        if not np.all(r > 0):
            raise InputError(f"{name}: the radii must be positive, got {r.tolist()}")
        return self.couple(name, (joint_a, r[0]), (joint_b, r[1] if crossed else -r[1]), coupling_type="belt")

    def differential(self, name: str, left: Joint, right: Joint, carrier: Joint) -> Coupling:
        """Add a differential: the carrier rotates by the mean of the angles of two joints.

        Parameters
        ----------
        name : str
            Name of the differential. Results: ``name.torque`` (N m) in the carrier, ``name.violation``.
        left, right : Joint
            Joints of the two output shafts.
        carrier : Joint
            Joint of the carrier.

        Returns
        -------
        Coupling
            The coupling.
        """
        self._require_angles(name, left, right, carrier)
        return self.couple(name, (left, 0.5), (right, 0.5), (carrier, -1.0), coupling_type="differential")

    def _require_angles(self, name: str, *joints: Joint) -> None:
        for joint in joints:
            self._require_coordinate(name, joint, "angle")


def _universal_axes(name: str, axis: ArrayLike | None, second_axis: ArrayLike | None) -> np.ndarray:
    """Return the axes of a universal joint: the first fixed in the first body, the second in the second body."""
    if axis is None or second_axis is None:
        raise InputError(f"{name}: a universal joint needs axis (first body) and second_axis (second body)")
    axis_a, axis_b = parse_direction(f"{name}: axis", axis), parse_direction(f"{name}: second_axis", second_axis)
    if abs(axis_a @ axis_b) > 1e-9:
        raise InputError(f"{name}: the two axes of a universal joint must be orthogonal")
    return np.column_stack([axis_a, axis_b, np.cross(axis_a, axis_b)])
