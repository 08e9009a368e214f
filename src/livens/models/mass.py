"""Structure of the mass matrix of a system: rank and left invariance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from livens.errors import ModelError
from livens.expressions.evaluate import BatchEvaluator
from livens.expressions.probe import HIGH, Probe
from livens.models.disjoint_sets import connected_components

if TYPE_CHECKING:
    from livens.models.element import ElementType
    from livens.models.system import System


def left_invariant_mass(system: System) -> bool:
    """Return whether M depends on unit quaternions only, as ``Q_l M Q_l^T``, with disjoint masses of elements."""
    for model in system.distinct_types:
        if model.T.is_zero():
            continue
        quat_dofs = [i for quat in model.quaternions for i in quat]
        other_dofs = [i for i in range(model.n) if i not in quat_dofs]
        M = model.mass
        other_symbols = ca.vertcat(model.q[other_dofs], model.v)
        mixed = M[quat_dofs, other_dofs] if quat_dofs and other_dofs else ca.SX(0, 0)
        if ca.depends_on(M, other_symbols) or mixed.nnz():
            return False
        if other_dofs and ca.depends_on(M[other_dofs, other_dofs], model.q):
            return False
    massive_dofs = [group.coordinates.ravel() for group in system.element_groups if not group.element_type.T.is_zero()]
    return bool(np.bincount(np.concatenate(massive_dofs)).max() <= 1)


def is_pure_quadratic(model: ElementType) -> bool:
    """Return whether the kinetic energy of an element has no terms of order 0 and 1 in v."""
    zero_velocity = ca.SX.zeros(model.n)
    lower_terms = ca.substitute(ca.vertcat(model.T, ca.gradient(model.T, model.v)), model.v, zero_velocity)
    return Probe([model.q, model.k], seed=7, low=-HIGH).is_zero(lower_terms) is not False


def mass_rank(system: System, augmented: bool, constrained: bool = False, damped: bool = False) -> int:
    """Return the rank of the mass matrix at a generic state, as the sum of the ranks of its diagonal blocks.

    `augmented` adds ``q q^T`` of unit quaternions. `constrained` adds ``G^T G``: full rank then means that M is
    positive definite on ker G. `damped` adds the derivatives of velocity-dependent forces.
    """
    k, size = system.parameter_vector(), ca.SX.sym("n", system.n)
    for q, v in Probe([size, size], seed=1).points():
        blocks = _diagonal_blocks(system, q.ravel(), v.ravel(), k, augmented, constrained, damped)
        if all(np.isfinite(stack).all() for stack in blocks):
            return sum(_total_rank(stack) for stack in blocks)
    raise ModelError("the mass matrix is not finite at any of the sample configurations")


def _diagonal_blocks(
    system: System, q: np.ndarray, v: np.ndarray, k: np.ndarray, augmented: bool, constrained: bool, damped: bool
) -> list[np.ndarray]:
    """Return the diagonal blocks of the mass matrix, blocks of equal size as one stack.

    Coordinates that share kinetic energy belong to one block.
    """
    parts: list[tuple[np.ndarray, np.ndarray]] = []  # (dofs, matrices), one row per matrix
    if augmented and system.quaternions:
        quats = np.array(system.quaternions)
        parts.append((quats, 2 * q[quats][:, :, None] * q[quats][:, None, :]))
    for group in system.element_groups:
        dofs, n = group.coordinates, group.element_type.n
        if not group.element_type.T.is_zero():
            (matrices,) = BatchEvaluator(group.element_type.mass_function, group.count)(
                q[dofs], v[dofs], k[group.parameters]
            )
            parts.append((dofs, matrices.reshape(-1, n, n)))
        if damped:
            m = group.element_type
            damping = ca.jacobian(ca.gradient(m.R, m.v) - m.F, m.v)
            if damping.nnz():
                damping_function = ca.Function("damping", [m.q, m.v, m.t, m.k], [ca.densify(damping.T)])
                (matrices,) = BatchEvaluator(damping_function, group.count)(q[dofs], v[dofs], 0.0, k[group.parameters])
                parts.append((dofs, matrices.reshape(-1, m.n, m.n)))
        if constrained and group.element_type.m:
            m = group.element_type
            G = ca.jacobian(m.g, m.q)
            square = ca.Function("GG", [m.q, m.t, m.k], [ca.densify(G.T @ G)])
            (matrices,) = BatchEvaluator(square, group.count)(q[group.coordinates], 0.0, k[group.parameters])
            parts.append((group.coordinates, matrices.reshape(-1, m.n, m.n)))
    blocks = connected_components([row for part_dofs, _ in parts for row in part_dofs.tolist()], system.n)
    block_index, index_in_block = np.zeros(system.n, dtype=np.int64), np.zeros(system.n, dtype=np.int64)
    sizes: dict[int, int] = {}
    for block in blocks:
        block_index[block], index_in_block[block] = sizes.get(len(block), 0), np.arange(len(block))
        sizes[len(block)] = sizes.get(len(block), 0) + 1
    block_size = np.zeros(system.n, dtype=np.int64)
    for block in blocks:
        block_size[block] = len(block)
    stacks = {size: np.zeros((count, size, size)) for size, count in sizes.items()}
    for part_dofs, matrices in parts:
        for size in np.unique(block_size[part_dofs[:, 0]]):
            chosen = block_size[part_dofs[:, 0]] == size
            i = index_in_block[part_dofs[chosen]]
            np.add.at(
                stacks[size],
                (block_index[part_dofs[chosen][:, :1], None], i[:, :, None], i[:, None, :]),
                matrices[chosen],
            )
    return list(stacks.values())


def _total_rank(masses: np.ndarray) -> int:
    """Return the sum of the ranks of matrices of equal size."""
    size = np.sqrt(np.abs(np.diagonal(masses, axis1=1, axis2=2)))  # scaling: a mass of 1e-40 is not zero
    size = np.where(size == 0, 1.0, size)
    return int(np.linalg.matrix_rank(masses / (size[:, :, None] * size[:, None, :])).sum())
