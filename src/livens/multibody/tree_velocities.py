"""Initial velocities of trees of bodies from joint rates: least kinetic energy in joint coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from livens.models.director_bodies import inertia_function
from livens.models.system import System
from livens.multibody.body import Body
from livens.multibody.joint import Joint
from livens.multibody.spanning_tree import NotATreeError, SpanningTree, TreeJoint, joint_type_name, spanning_tree
from livens.multibody.twist_coordinates import rotation_derivative

if TYPE_CHECKING:
    from livens.multibody.assembly import InitialCondition

#: Rotation axes and sliding axes by joint type: numbers of joint axes, on the first (a) or on the second body (b).
_ROTATIONS = dict(revolute="a3", cylindrical="a3", planar="a3")
_SLIDES = dict(prismatic="a3", cylindrical="a3", planar="a1 a2")


def tree_of(system: System) -> SpanningTree | None:
    """Return the spanning tree of a system in space, or None if it has loops or other constraints."""
    try:
        tree = spanning_tree(system)
    except NotATreeError:
        return None
    rotors = {armature.rotor for armature in tree.armatures}
    has_others = any(joint.dimension < 3 and joint.body not in rotors for joint in tree.joints)
    return None if tree.n_multipliers or has_others else tree


def tree_velocity(
    system: System, tree: SpanningTree, q: np.ndarray, targets: Sequence[InitialCondition]
) -> np.ndarray | None:
    """Return the velocities of least kinetic energy with the required rates; None if they are not independent.

    Parameters
    ----------
    system : System
        System of rigid bodies in space.
    tree : SpanningTree
        Spanning tree of the system.
    q : ndarray of shape (n,)
        Consistent coordinates.
    targets : sequence of InitialCondition
        Rates and velocities of joints, velocities and angular velocities of bodies.

    Returns
    -------
    ndarray of shape (n,) or None
        Velocities.
    """
    kinematics = _TreeKinematics(system, tree, q)
    rows, values = [], []
    for target in targets:
        row = kinematics.row(target)
        if row is None or not target.required:
            return None
        rows.append(row)
        values.append(target.value)
    if not rows:
        return np.zeros(system.n)
    C, d, M = np.vstack(rows), np.concatenate(values), kinematics.mass_matrix()
    weighted = np.linalg.solve(M, C.T)
    compliance = C @ weighted
    if np.linalg.matrix_rank(compliance, tol=1e-10 * np.abs(compliance).max()) < len(d):
        return None
    return kinematics.velocities(weighted @ np.linalg.solve(compliance, d))


class _TreeKinematics:
    """Twists of all bodies as linear functions of the joint rates: matrices of shape (3, n_dof) each."""

    def __init__(self, system: System, tree: SpanningTree, q: np.ndarray) -> None:
        self.system, self.tree, self.n_dof = system, tree, tree.n_dof
        self.phi = [q[list(frame.position)] for frame in system.frames]
        self.R = [np.array([q[list(d)] for d in frame.directors]).T for frame in system.frames]
        self.v = [np.zeros((3, self.n_dof)) for _ in system.frames]
        self.omega = [np.zeros((3, self.n_dof)) for _ in system.frames]
        #: Columns of the angle and of the displacement of each joint, with the sign of the rate.
        self.columns: dict[tuple[int, str], tuple[int, float]] = {}
        self._next = 0
        rotors = {armature.rotor for armature in tree.armatures}
        joint_of_body = {tree_joint.body: tree_joint.joint for tree_joint in tree.joints}
        for tree_joint in tree.joints:
            if tree_joint.body not in rotors:
                self._add(tree_joint)
        #: Column and sign of the rate of the rotor of each armature.
        self.rotors = {
            armature.rotor: self.columns[id(joint_of_body[armature.body]), "angle" if armature.is_angle else "slide"]
            for armature in tree.armatures
        }

    def _column(self) -> int:
        self._next += 1
        return self._next - 1

    def _add(self, tree_joint: TreeJoint) -> None:
        name, body, parent = joint_type_name(tree_joint), tree_joint.body, tree_joint.parent
        v, omega = self.v[body], self.omega[body]
        if tree_joint.joint is None:
            start = self._next
            v[:, start : start + 3], omega[:, start + 3 : start + 6] = np.eye(3), np.eye(3)
            self._next += 6
            return
        geometry = tree_joint.joint.parameters
        Y, A, B = (np.asarray(geometry[name]) for name in ("XBA" if tree_joint.is_reversed else "YAB"))
        phi_a, R_a = (np.zeros(3), np.eye(3)) if parent < 0 else (self.phi[parent], self.R[parent])
        lever_b = self.R[body] @ Y
        point = self.phi[body] + lever_b
        if parent >= 0:
            v += self.v[parent] + rotation_derivative(point - phi_a) @ self.omega[parent]
            omega += self.omega[parent]
        axes = {f"a{i + 1}": R_a @ A[:, i] for i in range(3)} | {"b2": self.R[body] @ B[:, 1]}
        key = id(tree_joint.joint)
        for axis in _SLIDES.get(name, "").split():
            column = self._column()
            v[:, column] += axes[axis]
            self.columns[key, "slide" if name != "planar" else axis] = column, 1.0
        rotations = ["x", "y", "z"] if name == "spherical" else _ROTATIONS.get(name, "").split()
        if name == "universal":
            rotations = ["a1", "b2"]
        axes |= dict(zip("xyz", np.eye(3), strict=True))
        for axis in rotations:
            column = self._column()
            omega[:, column] += axes[axis]
            if name in _ROTATIONS:
                self.columns[key, "angle"] = column, -1.0 if tree_joint.is_reversed else 1.0
        v -= rotation_derivative(lever_b) @ omega

    def row(self, target: InitialCondition) -> np.ndarray | None:
        """Return the rows of a rate or velocity as functions of the joint rates; None if it is not one of these."""
        component = target.component
        if isinstance(component, Body) and component.element is not None:
            body = next(
                i
                for i, f in enumerate(self.system.frames)
                if self.system.elements[f.element_index] is component.element
            )
            return self.v[body] if target.quantity == "velocity" else self.omega[body]
        if not isinstance(component, Joint):
            return None
        entry = self.columns.get((id(component), "angle" if target.quantity == "rate" else "slide"))
        if entry is None:
            return None
        row = np.zeros((1, self.n_dof))
        row[0, entry[0]] = entry[1]
        return row

    def mass_matrix(self) -> np.ndarray:
        """Return the mass matrix in joint coordinates."""
        system, k, M = self.system, self.system.parameter_vector(), np.zeros((self.n_dof, self.n_dof))
        for i, (frame, R, v, omega) in enumerate(zip(system.frames, self.R, self.v, self.omega, strict=True)):
            mass, euler = inertia_function(system, frame)(k[list(system.element_parameters[frame.element_index])])
            if i in self.rotors:
                column, _ = self.rotors[i]
                M[column, column] += float(mass)
                continue
            E = np.array(euler)
            inertia = R @ (np.trace(E) * np.eye(3) - E) @ R.T
            M += float(mass) * v.T @ v + omega.T @ inertia @ omega
        return M

    def velocities(self, rates: np.ndarray) -> np.ndarray:
        """Return the velocities of all coordinates."""
        result = np.zeros(self.system.n)
        for i, (frame, R, v, omega) in enumerate(zip(self.system.frames, self.R, self.v, self.omega, strict=True)):
            if i in self.rotors:
                column, sign = self.rotors[i]
                result[list(frame.position)] = sign * rates[column]
                continue
            result[list(frame.position)] = v @ rates
            for i, director in enumerate(frame.directors):
                result[list(director)] = np.cross(omega @ rates, R[:, i])
        return result
