"""Penalty joints: the constraints of a joint replaced by stiff springs and dampers (Modin 2009, 4.1.1)."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from livens import math as m
from livens.expressions.parameters import ParameterNamespace
from livens.expressions.tracing import ModelFunction
from livens.models.element import Element, InvariantForm, of_invariants
from livens.multibody.body import Body
from livens.multibody.joint import Joint
from livens.multibody.joint_types import JointType, split_pair
from livens.multibody.parametrisation import DirectorParametrisation, Parametrisation
from livens.multibody.twist_coordinates import rotation_derivative
from livens.types import ScalarLike, Vector


@functools.cache
def _constraint_residuals(a: Parametrisation, b: Parametrisation, joint_type: JointType) -> ModelFunction:
    """Return the constraint residuals of a joint type, resolved in the first body.

    The residuals are invariant under rigid motions of both bodies: springs and dampers conserve the momenta.
    """

    def residuals(q: Vector, k: ParameterNamespace) -> list[ScalarLike]:
        qa, qb = split_pair(a, q)
        separation = b.point(qb, k.Y) - a.point(qa, k.X)
        if (
            isinstance(a, DirectorParametrisation) and not a.has_orientation
        ):  # a particle has no axes: use the global axes
            return [separation[i - 1] for i in joint_type.locked_translations]
        translations = [m.dot(a.vector(qa, k.A[:, i - 1]), separation) for i in joint_type.locked_translations]
        return translations + [
            m.dot(a.vector(qa, k.A[:, i - 1]), b.vector(qb, k.B[:, j - 1])) for i, j in joint_type.orthogonal_axes
        ]

    return residuals


@functools.cache
def _energy(residuals: ModelFunction) -> InvariantForm:
    """Return the energy ``sum stiffness_i g_i^2/2`` as a function of invariants that are at most quadratic."""

    def energy(w: Vector, k: ParameterNamespace) -> Any:
        return sum(0.5 * stiffness * x**2 for stiffness, x in zip(k.stiffness, w, strict=True))

    return of_invariants(residuals, energy)


@functools.cache
def _dissipation(residuals: ModelFunction) -> ModelFunction:
    def dissipation(q: Vector, v: Vector, k: ParameterNamespace) -> ScalarLike:
        residual = m.to_casadi(m.array(list(residuals(q, k))))
        rates = m.from_casadi(ca.densify(ca.jtimes(residual, m.to_casadi(q), m.to_casadi(v))))
        return sum(0.5 * damping * x**2 for damping, x in zip(k.damping, rates, strict=True))

    return dissipation


@dataclass(frozen=True, eq=False)
class PenaltyJoint:
    """Penalty joint: the joint defines the constraints, the element contains the springs and dampers."""

    joint: Joint
    element: Element

    @property
    def name(self) -> str:
        """Name of the joint."""
        return self.joint.name


def penalty_joint(joint: Joint, frequency: float, ratio: float, beta: float) -> PenaltyJoint:
    """Return a penalty joint with springs and dampers ``k = m w^2``, ``c = 2 ratio m w`` and effective masses m.

    The element has its own `beta`: IMEX schemes evaluate it at the fraction `beta` of a step.
    """
    residuals = _constraint_residuals(joint.a, joint.b, joint.joint_type)
    masses = effective_masses(joint, residuals)
    omega = 2 * np.pi * frequency
    functions: dict[str, Any] = dict(potential=_energy(residuals), visual=joint.element.visual, beta=beta)
    if ratio:
        functions["dissipation"] = _dissipation(residuals)
    parameters = dict(stiffness=masses * omega**2, damping=2 * ratio * masses * omega)
    return PenaltyJoint(joint, joint.force_element(joint.name, parameters, **functions))


def effective_masses(joint: Joint, residuals: ModelFunction) -> np.ndarray:
    """Return the effective mass ``1/(G M^-1 G^T)`` of each constraint in the reference configuration."""
    bodies = [body for body in (joint.body_a, joint.body_b) if body.element is not None]
    q_reference = np.concatenate([_reference_coordinates(body) for body in bodies])
    q = ca.SX.sym("q", q_reference.size)
    residual = m.to_casadi(m.array(list(residuals(m.from_casadi(q), ParameterNamespace(dict(joint.parameters))))))
    jacobian = np.array(ca.DM(ca.Function("G", [q], [ca.densify(ca.jacobian(residual, q))])(q_reference)))
    total, column = np.zeros(jacobian.shape[0]), 0
    for body in bodies:
        body_jacobian = jacobian[:, column : column + len(body.coordinates)]
        column += len(body.coordinates)
        twist_map, inverse = _twist_map(body)
        twist_jacobian = body_jacobian @ twist_map
        total += np.einsum("ij,jk,ik->i", twist_jacobian, inverse, twist_jacobian)
    return np.asarray(1 / total)


def _reference_coordinates(body: Body) -> np.ndarray:
    return (
        np.concatenate([body.reference_position, body.reference_rotation.T.ravel()])
        if body.has_orientation
        else body.reference_position
    )


def _twist_map(body: Body) -> tuple[np.ndarray, np.ndarray]:
    """Return the twist map of a body (velocity of the centre and angular velocity to qdot) and its inverse mass."""
    d, element = body.dimension, body.element
    assert element is not None
    values = element.parameters.values
    if not body.has_orientation:
        return np.eye(d), np.eye(d) / element.mass
    rotation_map = np.vstack(list(rotation_derivative(body.reference_rotation.T)))
    twist_map = np.zeros((d + len(rotation_map), d + rotation_map.shape[1]))
    twist_map[:d, :d], twist_map[d:, d:] = np.eye(d), rotation_map
    if d == 2:
        return twist_map, np.diag([1 / element.mass] * 2 + [1 / float(values["moment"])])
    euler = values["euler"]
    tensor = body.reference_rotation @ (np.trace(euler) * np.eye(3) - euler) @ body.reference_rotation.T
    inverse = np.zeros((6, 6))
    inverse[:3, :3], inverse[3:, 3:] = np.eye(3) / element.mass, np.linalg.pinv(tensor, rcond=1e-12)
    return twist_map, inverse
