"""Builder methods for joints, penalty joints, implicit constraints, rolling, and couplings of joints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from livens.errors import InputError, suggestion
from livens.expressions.numbers import array, not_negative, number, positive
from livens.models.element import Element
from livens.multibody import joints
from livens.multibody.connection import Connection
from livens.multibody.couplings import Coupling
from livens.multibody.curves import OnCurve
from livens.multibody.drawing import Drawing
from livens.multibody.holding import Hold, held
from livens.multibody.joint import Joint
from livens.multibody.joint_table import PLANE, SPACE
from livens.multibody.parts import Part, axes_about, axes_along, direction, point_in_space
from livens.multibody.rolling import KnifeEdge, Rolling


class DrawnJoints(Drawing):
    """Methods of `livens.Multibody` that add constraints between bodies."""

    def joint(
        self,
        what: str,
        name: str,
        first: Part,
        second: Part,
        *,
        at: Any = None,
        to: Any = None,
        axis: Any = None,
        other_axis: Any = None,
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
        found = self.connections[name] = self._joint(what, name, first, second, at, to, axis, other_axis, lead)
        return found

    def hold(
        self,
        name: str,
        first: Part,
        second: Part,
        *,
        what: str = "fixed",
        frequency: float,
        damping: float = 1.0,
        beta: float = 0.8,
        at: Any = None,
        axis: Any = None,
        other_axis: Any = None,
    ) -> Hold:
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
        >>> ring = mb.ring("ring", at=[0, 0, 0], axis="x", radius=0.02, tube=0.004, mass=0.06)
        >>> housing = mb.hold("housing", mb.ground, ring, frequency=1e6)
        >>> run = mb.simulate(t_end=1e-4, h=1e-6, scheme="semi-explicit:0.5,0.8")
        >>> round(float(run["housing.force"][-1, 2]), 6)  # its weight, in N
        0.5886
        """
        rate = positive(f"{name}: the frequency", frequency)
        ratio = not_negative(f"{name}: the damping", damping)
        part = number(f"{name}: beta", beta)
        joint = self._joint(what, name, first, second, at, None, axis, other_axis, None)
        found = held(joint, rate, ratio, part)
        self._acting[name], self._holds[name] = found.element, found
        return found

    def _joint(
        self,
        what: str,
        name: str,
        first: Part,
        second: Part,
        at: Any,
        to: Any,
        axis: Any,
        other_axis: Any,
        lead: float | None,
    ) -> Joint:
        table = SPACE if self.dimension == 3 else PLANE
        if what not in table:
            raise InputError(f"there is no joint type '{what}'{suggestion(what, table)}")
        self._new(name)
        self._between(name, first, second)
        kind = table[what]
        given = at if at is not None else to if to is not None else (second if second.element else first).position
        place = point_in_space(f"{name}: at", given, self.dimension)
        other = place if to is None else point_in_space(f"{name}: to", to, self.dimension)
        if kind.axis and axis is None:
            raise InputError(f"{name}: a {what} joint needs an axis")
        if self.dimension == 2:
            axes = axes_along(direction(f"{name}: axis", "x" if axis is None else axis, 2))
        elif what == "universal":
            axes = _crossed(name, axis, other_axis)
        else:
            axes = axes_about(direction(f"{name}: axis", "z" if axis is None else axis))
        if kind.pairs and not (first.turns and second.turns):
            raise InputError(f"{name}: a particle has no orientation; use a spherical joint")
        if kind.lead and lead is None:
            raise InputError(f"{name}: a {what} needs a lead, the displacement per turn")
        pitch = None if lead is None else number(f"{name}: the lead", lead)
        return Joint(name, what, kind, first, second, (place, other), axes, pitch)

    def fixed(self, name: str, first: Part, second: Part, **where: Any) -> Joint:
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
        return self.joint("fixed", name, first, second, **where)

    def revolute(self, name: str, first: Part, second: Part, *, axis: Any = None, **where: Any) -> Joint:
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
        return self.joint("revolute", name, first, second, axis=axis, **where)

    def prismatic(self, name: str, first: Part, second: Part, *, axis: Any, **where: Any) -> Joint:
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
        return self.joint("prismatic", name, first, second, axis=axis, **where)

    def cylindrical(self, name: str, first: Part, second: Part, *, axis: Any, **where: Any) -> Joint:
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
        return self.joint("cylindrical", name, first, second, axis=axis, **where)

    def screw(self, name: str, first: Part, second: Part, *, axis: Any, lead: float, **where: Any) -> Joint:
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
        return self.joint("screw", name, first, second, axis=axis, lead=lead, **where)

    def universal(self, name: str, first: Part, second: Part, *, axis: Any, other_axis: Any, **where: Any) -> Joint:
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
        return self.joint("universal", name, first, second, axis=axis, other_axis=other_axis, **where)

    def spherical(self, name: str, first: Part, second: Part, **where: Any) -> Joint:
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
        return self.joint("spherical" if self.dimension == 3 else "revolute", name, first, second, **where)

    def planar(self, name: str, first: Part, second: Part, *, axis: Any, **where: Any) -> Joint:
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
        return self.joint("planar", name, first, second, axis=axis, **where)

    def point_on_line(self, name: str, first: Part, second: Part, *, axis: Any, **where: Any) -> Joint:
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
        return self.joint("point_on_line", name, first, second, axis=axis, **where)

    def point_on_plane(self, name: str, first: Part, second: Part, *, axis: Any, **where: Any) -> Joint:
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
        return self.joint("point_on_plane", name, first, second, axis=axis, **where)

    def distance(self, name: str, first: Any, second: Any, *, length: float | None = None) -> Element:
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
        ends = self._ends(name, first, second)
        link = joints.rigid_link(*ends, self._drawn_length(first, second, length))
        self._links.append(self._act(name, link, "distance", first, second))
        return link

    # -- points on curves, rolling ------------------------------------------------------------------------------------
    def point_on_surface(
        self, name: str, first: Part, second: Part, *, surface: Callable[[Any], Any], at: Any = None, origin: Any = None
    ) -> Connection:
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
        return self._on("surface", name, first, second, surface, at, origin, 1)

    def point_on_curve(
        self, name: str, first: Part, second: Part, *, curve: Callable[[Any], Any], at: Any = None, origin: Any = None
    ) -> Connection:
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
        return self._on("curve", name, first, second, curve, at, origin, self.dimension - 1)

    def _on(
        self, what: str, name: str, first: Part, second: Part, function: Any, at: Any, origin: Any, count: int
    ) -> Connection:
        self._new(name)
        self._between(name, first, second)
        if second.element is None:
            raise InputError(f"{name}: the point on a {what} must belong to a body")
        place = second.position if at is None else point_in_space(f"{name}: at", at, self.dimension)
        begin = first.position if origin is None else point_in_space(f"{name}: origin", origin, self.dimension)
        found = OnCurve(name, what, first, second, at=place, origin=begin, function=function, count=count)
        self.connections[name] = found
        return found

    def rolling(
        self,
        name: str,
        first: Part,
        second: Part,
        *,
        radius: float,
        axis: Any = None,
        at: Any = (0.0, 0.0, 0.0),
        normal: Any = "z",
    ) -> Connection:
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
        self._in_space(name, "rolling", first, second)
        size = positive(f"{name}: the radius", radius)
        axle = None if axis is None else direction(f"{name}: axis", axis)
        place, up = point_in_space(f"{name}: at", at, 3), direction(f"{name}: normal", normal)
        if up @ (second.position - place) <= 0:
            raise InputError(f"{name}: the centre of '{second.name}' is not on the side that the normal points to")
        found = Rolling(name, first, second, radius=size, at=place, normal=up, axle=axle)
        self.connections[name] = found
        return found

    def knife_edge(self, name: str, first: Part, second: Part, *, across: Any, at: Any = None) -> Connection:
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
        self._in_space(name, "a knife edge", first, second)
        place = second.position if at is None else point_in_space(f"{name}: at", at, 3)
        found = KnifeEdge(name, first, second, at=place, across=direction(f"{name}: across", across))
        self.connections[name] = found
        return found

    def _in_space(self, name: str, what: str, first: Part, second: Part) -> None:
        self._new(name)
        self._between(name, first, second)
        if self.dimension != 3 or first is not self.ground or not second.turns or second.element is None:
            raise InputError(f"{name}: {what} needs the ground and a body with an orientation, in a spatial model")

    # -- couplings ----------------------------------------------------------------------------------------------------
    def couple(self, name: str, *members: tuple[Joint, float], what: str = "coupling") -> Coupling:
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
        self._new(name)
        found = []
        for member in members:
            if not isinstance(member, tuple) or len(member) != 2:
                raise InputError(f"{name}: the terms of a coupling are (joint, coefficient), got {member!r}")
            joint, weight = member
            self._is_joint(name, joint)
            if not (joint.kind.angle or joint.kind.slide):
                raise InputError(f"{name}: the {joint.what} joint '{joint.name}' has no single angle or displacement")
            value = number(f"{name}: the weight of {joint.name}", weight)
            if value == 0:
                raise InputError(f"{name}: the weight of '{joint.name}' is zero; remove the joint from the coupling")
            found.append((joint, "angle" if joint.kind.angle else "position", value))
        if len(found) < 2 or len({joint.name for joint, _, _ in found}) < len(found):
            raise InputError(f"{name}: a coupling needs at least two different joints")
        self.couplings[name] = Coupling(name, what, found)
        return self.couplings[name]

    def gear(self, name: str, first: Joint, second: Joint, *, ratio: float) -> Coupling:
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
        self._turns(name, first, second)
        return self.couple(name, (first, number(f"{name}: the ratio", ratio)), (second, -1.0), what="gear")

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
        self._needs(name, pinion, "angle")
        self._needs(name, slide, "slide")
        if slide.kind.angle:
            raise InputError(f"{name}: the rack '{slide.name}' must be a joint that only slides")
        return self.couple(name, (pinion, number(f"{name}: the radius", radius)), (slide, -1.0), what="rack")

    def belt(self, name: str, first: Joint, second: Joint, *, radii: Any, crossed: bool = False) -> Coupling:
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
        self._turns(name, first, second)
        r = array(f"{name}: radii", radii, (2,))
        if not np.all(r > 0):
            raise InputError(f"{name}: the radii must be positive, got {r.tolist()}")
        return self.couple(name, (first, r[0]), (second, r[1] if crossed else -r[1]), what="belt")

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
        self._turns(name, left, right, carrier)
        return self.couple(name, (left, 0.5), (right, 0.5), (carrier, -1.0), what="differential")

    def _turns(self, name: str, *joints: Joint) -> None:
        for joint in joints:
            self._needs(name, joint, "angle")


def _crossed(name: str, axis: Any, other: Any) -> np.ndarray:
    """Return the axes of a universal joint: the first fixed in the first body, the second in the second body."""
    if axis is None or other is None:
        raise InputError(f"{name}: a universal joint needs axis (first body) and second_axis (second body)")
    first, second = direction(f"{name}: axis", axis), direction(f"{name}: other_axis", other)
    if abs(first @ second) > 1e-9:
        raise InputError(f"{name}: the two axes of a universal joint must be orthogonal")
    return np.column_stack([first, second, np.cross(first, second)])
