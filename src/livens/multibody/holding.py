"""Penalty joints: the constraints of a joint replaced by stiff springs and dampers (S003 4.1.1)."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from livens import math as m
from livens.expressions.parameters import Namespace
from livens.expressions.read import ModelFunction
from livens.models.element import Element, Through, through
from livens.multibody.joint import Joint
from livens.multibody.joint_table import Kind, split
from livens.multibody.parts import Part
from livens.multibody.placement import Directors, Placement


@functools.cache
def _gaps(a: Placement, b: Placement, kind: Kind) -> ModelFunction:
    """Return the constraint residuals of a joint type, resolved in the first body.

    The residuals are invariant under rigid motions of both bodies: springs and dampers conserve the momenta.
    """

    def gaps(q: Any, k: Any) -> Any:
        qa, qb = split(a, q)
        apart = b.point(qb, k.Y) - a.point(qa, k.X)
        if isinstance(a, Directors) and not a.turns:  # a particle has no axes: use the global axes
            return [apart[i - 1] for i in kind.directions]
        found = [m.dot(a.vector(qa, k.A[:, i - 1]), apart) for i in kind.directions]
        return found + [m.dot(a.vector(qa, k.A[:, i - 1]), b.vector(qb, k.B[:, j - 1])) for i, j in kind.pairs]

    return gaps


@functools.cache
def _energy(gaps: ModelFunction) -> Through:
    """Return the energy ``sum stiffness_i g_i^2/2`` as a function of invariants that are at most quadratic."""

    def energy(w: Any, k: Any) -> Any:
        return sum(0.5 * stiffness * x**2 for stiffness, x in zip(k.stiffness, w, strict=True))

    return through(gaps, energy)


@functools.cache
def _loss(gaps: ModelFunction) -> ModelFunction:
    def dissipation(q: Any, v: Any, k: Any) -> Any:
        now = m.expression(m.array(list(gaps(q, k))))
        rates = m.symbols(ca.densify(ca.jtimes(now, m.expression(q), m.expression(v))))
        return sum(0.5 * damping * x**2 for damping, x in zip(k.damping, rates, strict=True))

    return dissipation


@dataclass(frozen=True, eq=False)
class Hold:
    """Penalty joint: the joint defines the constraints, the element contains the springs and dampers."""

    joint: Joint
    element: Element

    @property
    def name(self) -> str:
        return self.joint.name


def held(joint: Joint, frequency: float, ratio: float, beta: float) -> Hold:
    """Return a penalty joint with springs and dampers ``k = m w^2``, ``c = 2 ratio m w`` and effective masses m.

    The element has its own `beta`: IMEX schemes evaluate it at the fraction `beta` of a step.
    """
    gaps = _gaps(joint.a, joint.b, joint.kind)
    masses = effective_masses(joint, gaps)
    rate = 2 * np.pi * frequency
    functions: dict[str, Any] = dict(potential=_energy(gaps), look=joint.element.look, beta=beta)
    if ratio:
        functions["dissipation"] = _loss(gaps)
    numbers = dict(stiffness=masses * rate**2, damping=2 * ratio * masses * rate)
    return Hold(joint, joint.acting(joint.name, numbers, **functions))


def effective_masses(joint: Joint, gaps: ModelFunction) -> np.ndarray:
    """Return the effective mass ``1/(G M^-1 G^T)`` of each constraint in the reference configuration."""
    parts = [part for part in (joint.first, joint.second) if part.element is not None]
    start = np.concatenate([_drawn(part) for part in parts])
    q = ca.SX.sym("q", start.size)
    now = m.expression(m.array(list(gaps(m.symbols(q), Namespace(dict(joint.parameters))))))
    slopes = np.array(ca.DM(ca.Function("G", [q], [ca.densify(ca.jacobian(now, q))])(start)))
    total, first = np.zeros(slopes.shape[0]), 0
    for part in parts:
        own = slopes[:, first : first + len(part.coordinates)]
        first += len(part.coordinates)
        moved, inverse = _moves(part)
        turned = own @ moved
        total += np.einsum("ij,jk,ik->i", turned, inverse, turned)
    return np.asarray(1 / total)


def _drawn(part: Part) -> np.ndarray:
    return np.concatenate([part.position, part.rotation.T.ravel()]) if part.turns else part.position


def _moves(part: Part) -> tuple[np.ndarray, np.ndarray]:
    """Return the twist map of a body (velocity of the centre and angular velocity to qdot) and its inverse mass."""
    d, element = part.dimension, part.element
    assert element is not None
    values = element.parameters.values
    if not part.turns:
        return np.eye(d), np.eye(d) / element.mass
    if d == 2:
        turn = np.concatenate([[-y, x] for x, y in part.rotation.T])
        moved = np.block([[np.eye(2), np.zeros((2, 1))], [np.zeros((4, 2)), turn[:, None]]])
        return moved, np.diag([1 / element.mass] * 2 + [1 / float(values["moment"])])
    turns = np.vstack([np.cross(np.eye(3), column).reshape(3, 3).T for column in part.rotation.T])
    moved = np.block([[np.eye(3), np.zeros((3, 3))], [np.zeros((9, 3)), turns]])
    euler = values["euler"]
    tensor = part.rotation @ (np.trace(euler) * np.eye(3) - euler) @ part.rotation.T
    inverse = np.zeros((6, 6))
    inverse[:3, :3], inverse[3:, 3:] = np.eye(3) / element.mass, np.linalg.pinv(tensor, rcond=1e-12)
    return moved, inverse
