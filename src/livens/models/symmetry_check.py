"""Symmetry check by Noether's theorem: momentum maps of true symmetries are constants of the motion."""

from __future__ import annotations

import casadi as ca
import numpy as np

from livens.expressions.probe import Probe
from livens.models.equations_of_motion import equations_of_motion
from livens.models.initialization.dense import DenseAssembly, gauss_newton_to_constraints
from livens.models.sparse_symmetry_check import TIMES, TOLERANCE, has_elementwise_symmetry
from livens.models.system import System
from livens.types import Expr


def has_symmetry(system: System, name: str, parameters: np.ndarray | None = None) -> bool:
    """Return whether a declared symmetry leaves the Lagrangian and the constraints invariant and no force breaks it.

    The check is done at random states: the change of L along ``(xi, D xi v)`` and of g along xi must vanish, and forces
    must do no work along xi. Constraints need to be invariant only where they hold (``g = 0`` of two joined points
    rotates with them). The states are therefore projected onto the constraints; states where the projection fails do
    not test the constraints. Large systems are checked element by element.
    """
    if system.external_force is not None and system.external_force.evaluates_within_steps:
        return False  # a compiled force is not known; contacts act in pairs
    k = system.parameter_vector() if parameters is None else parameters
    if system.uses_sparse_path:
        elementwise = has_elementwise_symmetry(system, name, k)
        if elementwise is not None:
            return elementwise
    d = equations_of_motion(system)
    generators = system.symmetry_generator(name)(d.q)
    unconstrained, constraint_terms = [], []
    L_q, L_v = ca.gradient(d.T - d.V, d.q), ca.gradient(d.T - d.V, d.v)
    force = d.F - ca.gradient(d.R, d.v)
    for j in range(generators.shape[1]):
        xi = generators[:, j]
        xi_dot = ca.jtimes(xi, d.q, d.v)
        unconstrained.append(
            _change_and_scale(ca.dot(L_q, xi) + ca.dot(L_v, xi_dot), _abs_dot(L_q, xi) + _abs_dot(L_v, xi_dot))
        )
        unconstrained.append(_change_and_scale(ca.dot(force, xi), _abs_dot(force, xi)))
        constraint_terms.append(ca.horzcat(d.G @ xi, ca.fabs(d.G) @ ca.fabs(xi)))
    assembly = DenseAssembly(d, TIMES[0], k)
    state_table, constraint_table = ca.vertcat(*unconstrained), ca.vertcat(*constraint_terms)
    later = TIMES[1:] if ca.depends_on(state_table, d.t) else ()
    n_checks = 0
    for q, v in Probe([d.q, d.v], seed=2).points():
        table = assembly.matrix(state_table, q.ravel(), v.ravel())
        if not np.all(np.isfinite(table)):
            continue
        if _is_violated(table):  # cheap test first: gravity breaks most symmetries
            return False
        tables = (d.evaluator(state_table)(q.ravel(), v.ravel(), t, k)[0] for t in later)
        if any(np.all(np.isfinite(table)) and _is_violated(table) for table in tables):
            return False
        position = gauss_newton_to_constraints(assembly, q.ravel()) if system.m else None
        if position is not None and _is_violated(assembly.matrix(constraint_table, position, v.ravel())):
            return False
        n_checks += 1
        if n_checks == 4:
            break
    return n_checks > 0


def _change_and_scale(change: Expr, scale: Expr) -> Expr:
    return ca.horzcat(change, scale)


def _abs_dot(a: Expr, b: Expr) -> Expr:
    return ca.dot(ca.fabs(a), ca.fabs(b))


def _is_violated(table: np.ndarray) -> bool:
    change, scale = table.T
    return not np.all(np.abs(change) <= TOLERANCE * (scale + 1e-12))
