"""Kinematics and dynamics in joint coordinates: methods of `livens.Multibody` for robots with tree structure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from livens.errors import InputError, suggestion
from livens.models.system import System
from livens.multibody.body import Body, Marker
from livens.multibody.builder.base import ModelBase
from livens.multibody.joint_space_dynamics import JointSpaceDynamics
from livens.rotations import skew
from livens.types import ArrayLike, FloatArray
from livens.validation import check_integer, check_positive

if TYPE_CHECKING:
    from livens.multibody.imports.robot_description import RigidTransform

#: Joint coordinates, rates or accelerations: by joint name, or an array in the order of `joint_coordinate_names`.
JointValues = Mapping[str, float] | ArrayLike


class JointSpaceMethods(ModelBase):
    """Methods of `livens.Multibody` for kinematics and dynamics in joint coordinates."""

    _joint_space: JointSpaceDynamics | None = None

    if TYPE_CHECKING:

        @property
        def system(self) -> System: ...

    def _joint_space_dynamics(self) -> JointSpaceDynamics:
        system = self.system
        if self._joint_space is None or self._joint_space.system is not system:
            self._joint_space = JointSpaceDynamics(self, system)
        return self._joint_space

    @property
    def joint_coordinate_names(self) -> tuple[str, ...]:
        """Names of the joints with independent joint coordinates, in the order of arrays of joint values.

        Returns
        -------
        tuple of str
            Joint names, from the ground outwards. The last joint of a coupling follows the others and is not listed.

        Raises
        ------
        InputError
            If the mechanism has closed loops, free bodies, or joints other than revolute, prismatic and fixed ones.
        """
        return self._joint_space_dynamics().names

    def mass_matrix(self, q: JointValues) -> FloatArray:
        """Return the mass matrix in joint coordinates (joint-space inertia matrix).

        Parameters
        ----------
        q : mapping of str to float, or array_like of shape (n,)
            Joint coordinates in rad or m: by joint name (other joints are at zero), or in the order of
            `joint_coordinate_names`.

        Returns
        -------
        ndarray of shape (n, n)
            Symmetric positive definite matrix, with the armatures of the joints.

        Raises
        ------
        InputError
            If a joint is unknown, or if the mechanism is not a tree of revolute and prismatic joints on the ground.

        Examples
        --------
        >>> import livens as lv
        >>> mb = lv.Multibody(gravity=[0, 0, -9.81])
        >>> arm = mb.body("arm", mass=3.0, inertia=[0.1, 0.25, 0.25], position=[0.5, 0, 0])
        >>> hinge = mb.revolute("hinge", mb.ground, arm, at=[0, 0, 0], axis="y")
        >>> mb.mass_matrix({"hinge": 0.3}).round(9)
        array([[1.]])
        """
        model = self._joint_space_dynamics()
        return model.mass_matrix(model.values("q", q))

    def inverse_dynamics(self, q: JointValues, v: JointValues, a: JointValues) -> FloatArray:
        """Return the joint torques and forces of a motion (inverse dynamics): ``mass_matrix(q) a + bias(q, v)``.

        Inertia and gravity are included. Springs, dampers, motors, contacts and applied loads are not included.

        Parameters
        ----------
        q : mapping of str to float, or array_like of shape (n,)
            Joint coordinates in rad or m.
        v : mapping of str to float, or array_like of shape (n,)
            Joint rates in rad/s or m/s.
        a : mapping of str to float, or array_like of shape (n,)
            Joint accelerations in rad/s^2 or m/s^2.

        Returns
        -------
        ndarray of shape (n,)
            Torques in N m and forces in N, in the order of `joint_coordinate_names`.

        Raises
        ------
        InputError
            If a joint is unknown, or if the mechanism is not a tree of revolute and prismatic joints on the ground.
        """
        model = self._joint_space_dynamics()
        return model.inverse_dynamics(model.values("q", q), model.values("v", v), model.values("a", a))

    def bias(self, q: JointValues, v: JointValues) -> FloatArray:
        """Return the bias forces: Coriolis, centrifugal and gravity terms in joint coordinates.

        Parameters
        ----------
        q : mapping of str to float, or array_like of shape (n,)
            Joint coordinates in rad or m.
        v : mapping of str to float, or array_like of shape (n,)
            Joint rates in rad/s or m/s.

        Returns
        -------
        ndarray of shape (n,)
            Torques in N m and forces in N: those of `inverse_dynamics` without joint accelerations.

        Raises
        ------
        InputError
            If a joint is unknown, or if the mechanism is not a tree of revolute and prismatic joints on the ground.
        """
        return self.inverse_dynamics(q, v, {})

    def gravity_compensation(self, q: JointValues) -> FloatArray:
        """Return the joint torques and forces that balance gravity at rest.

        Parameters
        ----------
        q : mapping of str to float, or array_like of shape (n,)
            Joint coordinates in rad or m.

        Returns
        -------
        ndarray of shape (n,)
            Torques in N m and forces in N, in the order of `joint_coordinate_names`.

        Raises
        ------
        InputError
            If a joint is unknown, or if the mechanism is not a tree of revolute and prismatic joints on the ground.
        """
        return self.inverse_dynamics(q, {}, {})

    def forward_kinematics(self, q: JointValues) -> dict[str, RigidTransform]:
        """Return the poses of all bodies and of their named points and frames (forward kinematics).

        Parameters
        ----------
        q : mapping of str to float, or array_like of shape (n,)
            Joint coordinates in rad or m.

        Returns
        -------
        dict of str to RigidTransform
            Poses with ``position`` (m) and ``rotation`` (matrix; columns are axes) in space. The key ``"body"`` is the
            centre of mass with the body axes, ``"body.name"`` a point or frame of the body.

        Raises
        ------
        InputError
            If a joint is unknown, or if the mechanism is not a tree of revolute and prismatic joints on the ground.
        """
        from livens.multibody.imports.robot_description import RigidTransform

        model = self._joint_space_dynamics()
        coordinates, _ = model.kinematics(model.values("q", q))
        poses = {}
        for body in self.bodies.values():
            for name in (body.name, *(f"{body.name}.{marker}" for marker in body.markers)):
                C, c, D, d = model.frame_rows(self._frame("forward_kinematics", name))
                poses[name] = RigidTransform(C @ coordinates + c, (D @ coordinates + d).reshape(3, 3).T)
        return poses

    def jacobian(self, point: Marker | Body | str, q: JointValues) -> FloatArray:
        """Return the geometric Jacobian of a point: its velocity and angular velocity per joint rate.

        Parameters
        ----------
        point : Marker, Body or str
            Point of a body; for a body, its centre of mass. Names are ``"body"`` and ``"body.point"``.
        q : mapping of str to float, or array_like of shape (n,)
            Joint coordinates in rad or m.

        Returns
        -------
        ndarray of shape (6, n)
            Rows 0 to 2: velocity of the point; rows 3 to 5: angular velocity of its body; components in space.

        Raises
        ------
        InputError
            If the point or a joint is unknown, or if the mechanism is not a tree of revolute and prismatic joints.
        """
        model = self._joint_space_dynamics()
        C, _, D, d = model.frame_rows(self._frame("jacobian", point))
        coordinates, J = model.kinematics(model.values("q", q))
        axes, axis_rates = (D @ coordinates + d).reshape(3, 3), (D @ J).reshape(3, 3, -1)
        omega = sum(skew(axis) @ rate for axis, rate in zip(axes, axis_rates, strict=True)) / 2
        return np.vstack([C @ J, omega])

    def inverse_kinematics(
        self,
        target: Mapping[Marker | Body | str, ArrayLike | RigidTransform],
        start: JointValues | None = None,
        *,
        limits: Mapping[str, tuple[float, float]] | None = None,
        tolerance: float = 1e-9,
        max_starts: int = 20,
    ) -> FloatArray:
        """Solve for joint coordinates at which points have given positions or poses (inverse kinematics).

        The residual is minimised by the trust-region method of `scipy.optimize.least_squares`, from `start` first and
        then from pseudo-random configurations, which are the same in every call.

        Parameters
        ----------
        target : mapping of Marker, Body or str to array_like or RigidTransform
            Positions (3 numbers in m) of points, or poses: a pair of position and rotation matrix, or a
            `RigidTransform` as of `forward_kinematics`. Several points may be given.
        start : mapping of str to float, or array_like of shape (n,), optional
            Joint coordinates of the first start in rad or m; by default zero.
        limits : mapping of str to (float, float), optional
            Least and largest coordinate by joint, in rad or m. By default joints have no limits.
        tolerance : float, default 1e-9
            Largest residual: components of positions in m, entries of rotation matrices.
        max_starts : int, default 20
            Largest number of starts.

        Returns
        -------
        ndarray of shape (n,)
            Joint coordinates in the order of `joint_coordinate_names`. Angles of revolute joints without limits are
            within half a turn of `start`.

        Raises
        ------
        InputError
            If no start leads to the target, if a point or a joint is unknown, or if the mechanism is not a tree.

        Examples
        --------
        >>> import livens as lv
        >>> mb = lv.Multibody()
        >>> rod = mb.rod("rod", a=[0, 0, 0], b=[1, 0, 0], mass=3.0)
        >>> hinge = mb.revolute("hinge", mb.ground, rod, at=rod.a, axis="z")
        >>> mb.inverse_kinematics({"rod.b": [0, 1, 0]}, {"hinge": 0.1}).round(6)
        array([1.570796])
        """
        from livens.multibody.inverse_kinematics import inverse_kinematics, parse_limits

        model = self._joint_space_dynamics()
        check_positive("tolerance", tolerance)
        check_integer("max_starts", max_starts, minimum=1, maximum=100_000)
        if not isinstance(target, Mapping) or not target:
            raise InputError(f"target must map points to positions or poses, as {{'hand': [1, 0, 0]}}, got {target!r}")
        targets = [(self._frame("target", point), value) for point, value in target.items()]
        first = model.values("start", {} if start is None else start)
        return inverse_kinematics(model, targets, first, parse_limits(model, limits), tolerance, max_starts)

    def _frame(self, context: str, point: object) -> Marker:
        """Return the frame of a point, of a body (centre of mass and body axes) or of a name."""
        if isinstance(point, str):
            body_name, _, marker_name = point.partition(".")
            bodies = self.bodies | {"ground": self.ground}
            if body_name not in bodies:
                raise InputError(f"{context}: there is no body '{body_name}'{suggestion(body_name, bodies)}")
            body = bodies[body_name]
            if not marker_name:
                return self._frame(context, body)
            if marker_name not in body.markers:
                hint = suggestion(marker_name, body.markers)
                raise InputError(f"{context}: '{body_name}' has no point '{marker_name}'{hint}")
            return body.markers[marker_name]
        if isinstance(point, Body):
            self._check_body(context, point)
            return Marker(point, "centre", np.zeros(3), np.eye(3))
        if not isinstance(point, Marker):
            raise InputError(f"{context}: a point of a body, a body or a name is required, got {point!r}")
        self._check_body(context, point.body)
        return point
