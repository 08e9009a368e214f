"""Structure of the mass matrix of a system: rank and left invariance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from livens.errors import ModelError
from livens.expressions.evaluate import Mapped
from livens.expressions.probe import HIGH, Probe

if TYPE_CHECKING:
    from livens.models.element import ElementModel
    from livens.models.system import System


def left_invariant_mass(system: System) -> bool:
    """Return whether M depends on unit quaternions only, as ``Q_l M Q_l^T``, with disjoint masses of elements."""
    for model in system._distinct:
        if model.T.is_zero():
            continue
        inside = [i for four in model.quaternions for i in four]
        outside = [i for i in range(model.n) if i not in inside]
        M = model.mass
        rest = ca.vertcat(model.q[outside], model.v)
        mixed = M[inside, outside] if inside and outside else ca.SX(0, 0)
        if ca.depends_on(M, rest) or mixed.nnz():
            return False
        if outside and ca.depends_on(M[outside, outside], model.q):
            return False
    moved = [group.coordinates.ravel() for group in system.groups if not group.model.T.is_zero()]
    return bool(np.bincount(np.concatenate(moved)).max() <= 1)


def no_linear_part(model: ElementModel) -> bool:
    """Return whether the kinetic energy of an element has no terms of order 0 and 1 in v."""
    still = ca.SX.zeros(model.n)
    left = ca.substitute(ca.vertcat(model.T, ca.gradient(model.T, model.v)), model.v, still)
    return Probe([model.q, model.k], seed=7, low=-HIGH).vanishes(left) is not False


def mass_rank(system: System, augmented: bool, constrained: bool = False, damped: bool = False) -> int:
    """Return the rank of the mass matrix at a generic state, as the sum of the ranks of its diagonal blocks.

    `augmented` adds ``q q^T`` of unit quaternions. `constrained` adds ``G^T G``: full rank then means that M is
    positive definite on ker G. `damped` adds the derivatives of velocity-dependent forces.
    """
    k, size = system.parameter_vector(), ca.SX.sym("n", system.n)
    for q, v in Probe([size, size], seed=1).states():
        blocks = _mass_blocks(system, q.ravel(), v.ravel(), k, augmented, constrained, damped)
        if all(np.isfinite(same).all() for same in blocks):
            return sum(_rank(same) for same in blocks)
    raise ModelError("the mass matrix is not finite at any of the sample configurations")


def _mass_blocks(
    system: System, q: np.ndarray, v: np.ndarray, k: np.ndarray, augmented: bool, constrained: bool, damped: bool
) -> list[np.ndarray]:
    """Return the diagonal blocks of the mass matrix, blocks of equal size as one stack.

    Coordinates that share kinetic energy belong to one block.
    """
    parts: list[tuple[np.ndarray, np.ndarray]] = []  # (dofs, matrices), one row per matrix
    if augmented and system.quaternions:
        fours = np.array(system.quaternions)
        parts.append((fours, 2 * q[fours][:, :, None] * q[fours][:, None, :]))
    for group in system.groups:
        at, n = group.coordinates, group.model.n
        if not group.model.T.is_zero():
            (matrices,) = Mapped(group.model.mass_at, group.count)(q[at], v[at], k[group.parameters])
            parts.append((at, matrices.reshape(-1, n, n)))
        if damped:
            m = group.model
            damping = ca.jacobian(ca.gradient(m.R, m.v) - m.F, m.v)
            if damping.nnz():
                slopes = ca.Function("damping", [m.q, m.v, m.t, m.k], [ca.densify(damping.T)])
                (matrices,) = Mapped(slopes, group.count)(q[at], v[at], 0.0, k[group.parameters])
                parts.append((at, matrices.reshape(-1, m.n, m.n)))
        if constrained and group.model.m:
            m = group.model
            G = ca.jacobian(m.g, m.q)
            square = ca.Function("GG", [m.q, m.t, m.k], [ca.densify(G.T @ G)])
            (matrices,) = Mapped(square, group.count)(q[group.coordinates], 0.0, k[group.parameters])
            parts.append((group.coordinates, matrices.reshape(-1, m.n, m.n)))
    blocks = connected([row for places, _ in parts for row in places.tolist()], system.n)
    number, local = np.zeros(system.n, dtype=np.int64), np.zeros(system.n, dtype=np.int64)
    sizes: dict[int, int] = {}
    for block in blocks:
        number[block], local[block] = sizes.get(len(block), 0), np.arange(len(block))
        sizes[len(block)] = sizes.get(len(block), 0) + 1
    of_size = np.zeros(system.n, dtype=np.int64)
    for block in blocks:
        of_size[block] = len(block)
    found = {size: np.zeros((count, size, size)) for size, count in sizes.items()}
    for places, matrices in parts:
        for size in np.unique(of_size[places[:, 0]]):
            chosen = of_size[places[:, 0]] == size
            i = local[places[chosen]]
            np.add.at(
                found[size], (number[places[chosen][:, :1], None], i[:, :, None], i[:, None, :]), matrices[chosen]
            )
    return list(found.values())


def _rank(masses: np.ndarray) -> int:
    """Return the sum of the ranks of matrices of equal size."""
    size = np.sqrt(np.abs(np.diagonal(masses, axis1=1, axis2=2)))  # scaling: a mass of 1e-40 is not zero
    size = np.where(size == 0, 1.0, size)
    return int(np.linalg.matrix_rank(masses / (size[:, :, None] * size[:, None, :])).sum())


def connected(groups: Sequence[Sequence[int]], count: int) -> list[list[int]]:
    """Return the connected components of the indices below `count`, connected by groups (union-find).

    >>> connected([[0, 2], [2, 4]], 5)
    [[0, 2, 4], [1], [3]]
    """
    root = list(range(count))

    def find(i: int) -> int:
        while root[i] != i:
            root[i] = i = root[root[i]]
        return i

    for group in groups:
        for i in group:
            root[find(i)] = find(group[0])
    found: dict[int, list[int]] = {}
    for i in range(count):
        found.setdefault(find(i), []).append(i)
    return sorted(found.values())
