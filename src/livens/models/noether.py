"""Symmetry check by Noether's theorem: momentum maps of true symmetries are constants of the motion."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from livens.expressions.probe import Probe
from livens.models.large_noether import TOLERANCE, is_symmetry_of_elements
from livens.models.start import Numbers, onto_constraints
from livens.models.summed import dynamics
from livens.models.system import System


def is_symmetry(system: System, name: str, parameters: np.ndarray | None = None) -> bool:
    """Return whether a declared symmetry leaves the Lagrangian and the constraints invariant and no force breaks it.

    The check is done at random states: the change of L along ``(xi, D xi v)`` and of g along xi must vanish, and forces
    must do no work along xi. Constraints need to be invariant only where they hold (``g = 0`` of two joined points
    rotates with them). The states are therefore projected onto the constraints; states where the projection fails do
    not test the constraints. Large systems are checked element by element.
    """
    k = system.parameter_vector() if parameters is None else parameters
    if system.large:
        by_elements = is_symmetry_of_elements(system, name, k)
        if by_elements is not None:
            return by_elements
    d = dynamics(system)
    generators = system.momentum_symmetry(name)(d.q)
    free, constrained = [], []
    L_q, L_v = ca.gradient(d.T - d.V, d.q), ca.gradient(d.T - d.V, d.v)
    force = d.F - ca.gradient(d.R, d.v)
    for j in range(generators.shape[1]):
        xi = generators[:, j]
        turned = ca.jtimes(xi, d.q, d.v)
        free.append(_row(ca.dot(L_q, xi) + ca.dot(L_v, turned), _size(L_q, xi) + _size(L_v, turned)))
        free.append(_row(ca.dot(force, xi), _size(force, xi)))
        constrained.append(ca.horzcat(d.G @ xi, ca.fabs(d.G) @ ca.fabs(xi)))
    numbers = Numbers(d, 0.3, k)
    of_state, of_constraints = ca.vertcat(*free), ca.vertcat(*constrained)
    proofs = 0
    for q, v in Probe([d.q, d.v], seed=2).states():
        table = numbers.matrix(of_state, q.ravel(), v.ravel())
        if not np.all(np.isfinite(table)):
            continue
        if _changed(table):  # cheap test first: gravity breaks most symmetries
            return False
        position = onto_constraints(numbers, q.ravel()) if system.m else None
        if position is not None and _changed(numbers.matrix(of_constraints, position, v.ravel())):
            return False
        proofs += 1
        if proofs == 4:
            break
    return proofs > 0


def _row(change: Any, size: Any) -> Any:
    return ca.horzcat(change, size)


def _size(a: Any, b: Any) -> Any:
    return ca.dot(ca.fabs(a), ca.fabs(b))


def _changed(table: np.ndarray) -> bool:
    change, size = table.T
    return not np.all(np.abs(change) <= TOLERANCE * (size + 1e-12))
