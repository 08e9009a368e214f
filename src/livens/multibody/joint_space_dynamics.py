"""Joint-space kinematics and dynamics of mechanisms with tree structure: mass matrix, bias forces, Jacobians.

Centres and directors ``q`` of all bodies are functions of the joint coordinates ``theta``; their mass matrix ``M`` is
constant. With ``J = dq/dtheta``, the equations of motion are ``J^T (M q'' - f) = tau``, with the weights ``f``.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

import casadi as ca
import numpy as np

from livens.errors import InputError, suggestion
from livens.expressions.evaluate import Evaluator
from livens.models.director_bodies import inertia_function
from livens.models.element import Element
from livens.models.system import System
from livens.multibody.body import Marker
from livens.multibody.builder.base import ModelBase
from livens.multibody.joint import Joint
from livens.multibody.joint_coordinate_system import body_coordinates, tree_joints
from livens.types import FloatArray
from livens.validation import check_array, check_vector


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
        leaders = {leader for _, leader in self.followers.values()}
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

    def values(self, context: str, joint_values: object) -> FloatArray:
        """Return joint coordinates, rates or accelerations as an array; joints that are not named have zero."""
        if not isinstance(joint_values, Mapping):
            return check_vector(context, joint_values, self.names, "joint")
        values = np.zeros(len(self.names))
        for name, value in joint_values.items():
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
    rotors = {id(armature.rotor) for armature in mb.armatures.values()}
    for frame in system.frames:
        element = system.elements[frame.element_index]
        if (frame.dimension != 3 or len(frame.directors) != 3) and id(element) not in rotors:
            name = element.name
            reason = "it moves in the plane" if frame.dimension == 2 else "it has no orientation"
            raise InputError(f"joint coordinates need rigid bodies in space: '{name}' is not supported, as {reason}")
    known: list[Element | None] = [body.element for body in mb.bodies.values()]
    known += [joint.element for joint in mb.connections.values() if isinstance(joint, Joint)]
    known += [coupling.element for coupling in mb.couplings.values()]
    known += [armature.element for armature in mb.armatures.values()]
    allowed = {id(element) for element in known}
    for element, model in zip(system.elements, system.element_types, strict=True):
        if model.m and id(element) not in allowed:
            raise InputError(
                f"'{element.name}' imposes a constraint besides the joints: joint coordinates need a tree of joints"
            )


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
        mass_matrix[position, position] = mass * ca.DM.eye(len(position))
        if frame.dimension == 1:  # the rotor of an armature
            continue
        mass_matrix[directors, directors] = ca.kron(ca.sparsify(euler), ca.DM.eye(3))
        if gravity is not None:
            weight[position] = float(mass) * gravity
    return mass_matrix, ca.DM(weight)
