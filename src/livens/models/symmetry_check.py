"""Symmetry check by Noether's theorem: momentum maps of true symmetries are constants of the motion."""

from __future__ import annotations

import functools

import casadi as ca
import numpy as np

from livens.expressions.evaluate import Evaluator
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
    evaluate_changes, evaluate_constraint_changes, depends_on_time = _change_evaluators(system, name)
    assembly = DenseAssembly(d, TIMES[0], k)
    later = TIMES[1:] if depends_on_time else ()
    n_checks = 0
    for q, v in Probe([d.q, d.v], seed=2).points():
        (table,) = evaluate_changes(q.ravel(), v.ravel(), TIMES[0], k)
        if not np.all(np.isfinite(table)):
            continue
        if _is_violated(table):  # cheap test first: gravity breaks most symmetries
            return False
        tables = (evaluate_changes(q.ravel(), v.ravel(), t, k)[0] for t in later)
        if any(np.all(np.isfinite(table)) and _is_violated(table) for table in tables):
            return False
        position = gauss_newton_to_constraints(assembly, q.ravel()) if system.m else None
        if position is not None:
            (table,) = evaluate_constraint_changes(position, v.ravel(), TIMES[0], k)
            if _is_violated(table):
                return False
        n_checks += 1
        if n_checks == 4:
            break
    return n_checks > 0


@functools.lru_cache(maxsize=64)
def _change_evaluators(system: System, name: str) -> tuple[Evaluator, Evaluator, bool]:
    """Return evaluators of changes along a symmetry and their scales, and True if the first depend on time.

    The first evaluator is of the Lagrangian and of the work of forces, the second of the constraints. Both have the
    inputs q, v, t and k.
    """
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
    changes, inputs = ca.vertcat(*unconstrained), [d.q, d.v, d.t, d.k]
    constraint_changes = Evaluator(inputs, [ca.vertcat(*constraint_terms)])
    return Evaluator(inputs, [changes]), constraint_changes, bool(ca.depends_on(changes, d.t))


def _change_and_scale(change: Expr, scale: Expr) -> Expr:
    return ca.horzcat(change, scale)


def _abs_dot(a: Expr, b: Expr) -> Expr:
    return ca.dot(ca.fabs(a), ca.fabs(b))


def _is_violated(table: np.ndarray) -> bool:
    change, scale = table.T
    return not np.all(np.abs(change) <= TOLERANCE * (scale + 1e-12))
