"""Constraints by penalty: what a joint would lock is held by stiff springs and dampers instead (S003 4.1.1)."""

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
from livens.multibody.parts import Part


@functools.cache
def _energy(constraints: ModelFunction) -> Through:
    """``sum stiffness_i g_i^2/2``: constraints of joints are at most quadratic, so all momenta are kept."""

    def energy(w: Any, k: Any) -> Any:
        return sum(0.5 * stiffness * x**2 for stiffness, x in zip(k.stiffness, w, strict=True))

    return through(lambda q, k: list(constraints(q, k)), energy)


@functools.cache
def _loss(constraints: ModelFunction) -> ModelFunction:
    def dissipation(q: Any, v: Any, k: Any) -> Any:
        gaps = m.expression(m.array(list(constraints(q, k))))
        rates = m.symbols(ca.densify(ca.jtimes(gaps, m.expression(q), m.expression(v))))
        return sum(0.5 * damping * x**2 for damping, x in zip(k.damping, rates, strict=True))

    return dissipation


@dataclass(frozen=True, eq=False)
class Hold:
    """A joint whose constraints are held by penalty: the joint says what, the element how."""

    joint: Joint
    element: Element

    @property
    def name(self) -> str:
        return self.joint.name


def held(joint: Joint, frequency: float, ratio: float, beta: float) -> Hold:
    """Every locked direction as a spring and damper, with the mass that it moves: ``k = m w^2``, ``c = 2 ratio m w``.

    The element has its own `beta`: schemes that tell forces apart take it that part of the way through a step.
    """
    constraints: Any = joint.element.functions["constraints"]
    given = joint.element.parameters.values
    masses = effective_masses(joint, constraints, given)
    rate = 2 * np.pi * frequency
    numbers = dict(stiffness=masses * rate**2, damping=2 * ratio * masses * rate)
    element = Element(
        joint.coordinates,
        potential=_energy(constraints),
        dissipation=_loss(constraints) if ratio else None,
        parameters={**given, **numbers},
        name=joint.name,
        look=joint.element.look,
        beta=beta,
    )
    return Hold(joint, element)


def effective_masses(joint: Joint, constraints: ModelFunction, given: Any) -> np.ndarray:
    """What each constraint has to move, all others left alone: ``1/(G M^-1 G^T)`` in the drawing."""
    parts = [part for part in (joint.first, joint.second) if part.element is not None]
    start = np.concatenate([_drawn(part) for part in parts])
    q = ca.SX.sym("q", start.size)
    gaps = m.expression(m.array(list(constraints(m.symbols(q), Namespace(dict(given))))))
    slopes = np.array(ca.DM(ca.Function("G", [q], [ca.densify(ca.jacobian(gaps, q))])(start)))
    total, first = np.zeros(slopes.shape[0]), 0
    for part in parts:
        own = slopes[:, first : first + len(part.coordinates)]
        first += len(part.coordinates)
        moved, inverse = _moves(part)
        turned = own @ moved
        total += np.einsum("ij,jk,ik->i", turned, inverse, turned)
    return 1 / total


def _drawn(part: Part) -> np.ndarray:
    return np.concatenate([part.position, part.rotation.T.ravel()]) if part.turns else part.position


def _moves(part: Part) -> tuple[np.ndarray, np.ndarray]:
    """Velocities of a body's coordinates for unit velocities of its centre and unit rates, and its inverse mass."""
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
