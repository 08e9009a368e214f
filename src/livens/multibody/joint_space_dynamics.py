"""Joint-space kinematics and dynamics of mechanisms with tree structure: mass matrix, bias forces, Jacobians.

Centres and directors ``q`` of all bodies are functions of the joint coordinates ``theta``; their mass matrix ``M`` is
constant. With ``J = dq/dtheta``, the equations of motion are ``J^T (M q'' - f) = tau``, with the weights ``f``.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from livens.errors import InputError, suggestion
from livens.expressions.evaluate import Evaluator
from livens.models.director_bodies import inertia_function
from livens.models.element import Element
from livens.models.system import System
from livens.multibody.body import Body, Marker
from livens.multibody.builder.base import ModelBase
from livens.multibody.joint import Joint
from livens.multibody.joint_coordinate_system import body_coordinates, tree_joints
from livens.rotations import skew
from livens.types import ArrayLike, FloatArray
from livens.validation import check_array, check_integer, check_positive, check_vector

if TYPE_CHECKING:
    from livens.multibody.imports.robot_description import RigidTransform

#: Joint coordinates, rates or accelerations: by joint name, or an array in the order of `joint_coordinate_names`.
JointValues = Mapping[str, float] | ArrayLike


class JointSpaceDynamics:
    """Functions of the joint coordinates of one system of rigid bodies with tree structure.

    `names` are the joints with independent coordinates. The coordinates of other joints follow from couplings.
    """

    def __init__(self, mb: ModelBase, system: System) -> None:
        _check_constraints(mb, system)
        self.system = system
        tree = tree_joints(list(mb.bodies.values()), mb.ground, list(mb.joints.values()))
        path = [joint for joint in tree if joint.type_name != "fixed"]
        matrix, offset, self.followers = _follower_map(mb, path)
        self.names = tuple(joint.name for joint in path if joint.name not in self.followers)
        leaders = {leader for name, (_, leader) in self.followers.items() if not _is_armature(mb, name, self.followers)}
        self.is_periodic = np.array(
            [joint.type_name == "revolute" and joint.name not in leaders for joint in path if joint.name in self.names]
        )
        self._theta = ca.SX.sym("theta", len(self.names))
        values = ca.DM(matrix) @ self._theta + ca.DM(offset)
        self._q = body_coordinates(system, mb.ground, tree, {joint.name: values[i] for i, joint in enumerate(path)})
        self._mass, self._weight = _mass_and_weight(system, mb.gravity)

    @functools.cached_property
    def _kinematics(self) -> Evaluator:
        """Function ``theta -> (q, dq/dtheta)``."""
        return Evaluator([self._theta], [self._q, ca.jacobian(self._q, self._theta)])

    @functools.cached_property
    def _mass_matrix(self) -> Evaluator:
        """Function ``theta -> J^T M J``."""
        J = ca.jacobian(self._q, self._theta)
        return Evaluator([self._theta], [J.T @ (self._mass @ J)])

    @functools.cached_property
    def _inverse_dynamics(self) -> Evaluator:
        """Function ``(theta, theta', theta'') -> tau`` (projected Newton-Euler equations)."""
        theta, n = self._theta, len(self.names)
        rates, accelerations = ca.SX.sym("rates", n), ca.SX.sym("accelerations", n)
        v = ca.jtimes(self._q, theta, rates)
        a = ca.jtimes(v, ca.vertcat(theta, rates), ca.vertcat(rates, accelerations))
        tau = ca.jtimes(self._q, theta, self._mass @ a - self._weight, True)
        return Evaluator([theta, rates, accelerations], [tau])

    def kinematics(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the body coordinates of shape (n,) and their derivatives of shape (n, n_joints)."""
        q, J = self._kinematics(theta)
        return q.ravel(), J

    def mass_matrix(self, theta: FloatArray) -> FloatArray:
        """Return the mass matrix ``J^T M J``."""
        M = self._mass_matrix(theta)[0]
        return np.asarray((M + M.T) / 2)

    def inverse_dynamics(self, theta: FloatArray, rates: FloatArray, accelerations: FloatArray) -> FloatArray:
        """Return the joint torques and forces ``tau``."""
        return self._inverse_dynamics(theta, rates, accelerations)[0].ravel()

    def frame_rows(self, marker: Marker) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return matrices and constants of a frame: position ``C q + c`` and column-wise rotation ``D q + d``."""
        C, D = np.zeros((3, self.system.n)), np.zeros((9, self.system.n))
        if marker.body.element is None:
            return C, marker.local_position, D, marker.axes.T.ravel()
        index = {name: i for i, name in enumerate(self.system.coordinates)}
        dofs = [index[name] if isinstance(name, str) else int(name) for name in marker.body.coordinates]
        C[:, dofs] = np.kron([1.0, *marker.local_position], np.eye(3))
        D[:, dofs[3:]] = np.kron(marker.axes.T, np.eye(3))
        return C, np.zeros(3), D, np.zeros(9)

    def values(self, context: str, given: object) -> FloatArray:
        """Return joint coordinates, rates or accelerations as an array; joints that are not named have zero."""
        if not isinstance(given, Mapping):
            return check_vector(context, given, self.names, "joint")
        values = np.zeros(len(self.names))
        for name, value in given.items():
            if name in self.followers:
                coupling, leader = self.followers[name]
                raise InputError(
                    f"{context}: the joint '{name}' follows '{leader}' by the coupling '{coupling}': give the value of "
                    f"'{leader}' only"
                )
            if name not in self.names:
                hint = suggestion(str(name), self.names)
                raise InputError(f"{context}: there is no joint '{name}' with a joint coordinate{hint}")
            values[self.names.index(name)] = float(check_array(f"{context}[{name}]", value, ()))
        return values


def _check_constraints(mb: ModelBase, system: System) -> None:
    """Raise InputError for bodies that are not rigid, and for constraints other than those of joints and couplings."""
    for frame in system.frames:
        if frame.dimension != 3 or len(frame.directors) != 3:
            name = system.elements[frame.element_index].name
            reason = "it moves in the plane" if frame.dimension == 2 else "it has no orientation"
            raise InputError(f"joint coordinates need rigid bodies in space: '{name}' is not supported, as {reason}")
    known: list[Element | None] = [body.element for body in mb.bodies.values()]
    known += [joint.element for joint in mb.connections.values() if isinstance(joint, Joint)]
    known += [coupling.element for coupling in mb.couplings.values()]
    allowed = {id(element) for element in known}
    for element, model in zip(system.elements, system.element_types, strict=True):
        if model.m and id(element) not in allowed:
            raise InputError(
                f"'{element.name}' imposes a constraint besides the joints: joint coordinates need a tree of joints"
            )


def _is_armature(mb: ModelBase, name: str, followers: Mapping[str, tuple[str, str]]) -> bool:
    return mb.couplings[followers[name][0]].coupling_type == "armature"


def _follower_map(mb: ModelBase, path: list[Joint]) -> tuple[FloatArray, FloatArray, dict[str, tuple[str, str]]]:
    """Return all joint coordinates as a linear function of the independent ones, and the followers.

    The last joint of each coupling follows the others, so that its coordinate is not independent. Followers are given
    by name, with the coupling and the first joint in it.
    """
    column = {joint.name: i for i, joint in enumerate(path)}
    rows, phases = np.zeros((len(mb.couplings), len(path))), np.zeros(len(mb.couplings))
    followers: dict[str, tuple[str, str]] = {}
    for i, coupling in enumerate(mb.couplings.values()):
        names = [joint.name for joint, _, _ in coupling.terms]
        for name, (_, _, weight) in zip(names, coupling.terms, strict=True):
            rows[i, column[name]] += weight
        follower = next((name for name in reversed(names) if name not in followers), None)
        if follower is None:
            raise InputError(f"the coupling '{coupling.name}' couples joints that follow others already")
        followers[follower] = coupling.name, names[0]
        phases[i] = _phase(mb, coupling.name)
    dependent = [column[name] for name in followers]
    independent = [i for i in range(len(path)) if i not in dependent]
    matrix, offset = np.zeros((len(path), len(independent))), np.zeros(len(path))
    matrix[independent] = np.eye(len(independent))
    if dependent:
        if np.linalg.matrix_rank(rows[:, dependent]) < len(dependent):
            raise InputError(f"the couplings {', '.join(mb.couplings)} are not independent")
        matrix[dependent] = -np.linalg.solve(rows[:, dependent], rows[:, independent])
        offset[dependent] = np.linalg.solve(rows[:, dependent], phases)
    return matrix, offset, followers


def _phase(mb: ModelBase, name: str) -> float:
    """Return the weighted sum of the joint coordinates of a coupling: as required, or that of the initial values."""
    coupling, initial = mb.couplings[name], dict[tuple[int, str], float]()
    for condition in mb._initial_conditions:
        if condition.component is coupling and condition.quantity == "phase":
            return float(condition.value[0])
        if isinstance(condition.component, Joint):
            initial[id(condition.component), condition.quantity] = float(condition.value[0])
    return sum(weight * initial.get((id(joint), quantity), 0.0) for joint, quantity, weight in coupling.terms)


def _mass_and_weight(system: System, gravity: FloatArray | None) -> tuple[ca.DM, ca.DM]:
    """Return the constant sparse mass matrix of the body coordinates, and the weights."""
    k, mass_matrix, weight = system.parameter_vector(), ca.DM(system.n, system.n), np.zeros(system.n)
    for frame in system.frames:
        mass, euler = inertia_function(system, frame)(k[list(system.element_parameters[frame.element_index])])
        position, directors = list(frame.position), [i for director in frame.directors for i in director]
        mass_matrix[position, position] = mass * ca.DM.eye(3)
        mass_matrix[directors, directors] = ca.kron(ca.sparsify(euler), ca.DM.eye(3))
        if gravity is not None:
            weight[position] = float(mass) * gravity
    return mass_matrix, ca.DM(weight)


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
        >>> rod = mb.rod("rod", a=[0, 0, 0], b=[1, 0, 0], mass=3.0)
        >>> hinge = mb.revolute("hinge", mb.ground, rod, at=rod.a, axis="y")
        >>> round(float(mb.mass_matrix({"hinge": 0.3})[0, 0]), 6)
        1.0
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
