"""Numeric assembly of large systems: batched kernels per element type, sparse matrices, no graph of the system."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import casadi as ca
import numpy as np

from livens.expressions.evaluate import BatchEvaluator
from livens.models.element import ElementType
from livens.models.element_groups import ElementGroup
from livens.types import Expr

if TYPE_CHECKING:
    from livens.models.system import System


class SparseAssembledTerms(NamedTuple):
    """Energies, constraints, forces and sparse matrices of a system in one state."""

    T: float
    V: float
    g: np.ndarray
    F: np.ndarray
    g_dot: np.ndarray
    G: Any
    p: np.ndarray
    M: Any
    force: np.ndarray  # of ``M a + G^T lam = force, G a = -bias``
    bias: np.ndarray


class NumericAssembly:
    """Numeric assembly of a system: the kernels of each element type, evaluated for all elements of the type."""

    def __init__(self, system: System, t: float, k: np.ndarray) -> None:
        self.system, self.t, self.k = system, t, k
        self._batch_evaluators: dict[tuple[int, str], BatchEvaluator] = {}

    def _evaluate(self, group_index: int, name: str, q: np.ndarray, v: np.ndarray | None) -> list[np.ndarray]:
        group = self.system.element_groups[group_index]
        if (group_index, name) not in self._batch_evaluators:
            self._batch_evaluators[group_index, name] = BatchEvaluator(_kernel(group.element_type, name), group.count)
        dofs = group.coordinates
        return self._batch_evaluators[group_index, name](
            q[dofs], 0.0 if v is None else v[dofs], self.t, self.k[group.parameters]
        )

    # -- position level -----------------------------------------------------------------------------------------------
    def constraints(self, q: np.ndarray) -> np.ndarray:
        g = np.zeros(self.system.m)
        for group_index, group in self._constrained():
            g[group.constraints] = self._evaluate(group_index, "g", q, None)[0]
        return g

    def constraint_jacobian(self, q: np.ndarray) -> Any:
        """Return the constraint Jacobian G as a sparse matrix."""
        parts = [(group, self._evaluate(group_index, "G", q, None)[0]) for group_index, group in self._constrained()]
        return self._matrix_G(parts)

    def position_jacobian(self, q: np.ndarray) -> Any:
        """Return G: all constraints of a large system are at position level."""
        return self.constraint_jacobian(q)

    def constraint_velocity(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the velocity-level residual ``dg/dt`` of the constraints."""
        g_dot = np.zeros(self.system.m)
        for group_index, group in self._constrained():
            g_dot[group.constraints] = self._evaluate(group_index, "rate", q, v)[0]
        return g_dot

    def min_norm_solve(self, G: object, r: np.ndarray) -> np.ndarray:
        """Return the minimum-norm solution of ``G x = r``, in the least-squares sense if there is none."""
        from livens.models.initialization.sparse_linalg import (
            SparseConstraintJacobian,  # SciPy's sparse matrices take long to import
        )

        return SparseConstraintJacobian(G).min_norm_solve(r)

    # -- states -------------------------------------------------------------------------------------------------------
    def assemble(self, q: np.ndarray, v: np.ndarray) -> SparseAssembledTerms:
        n, m = self.system.n, self.system.m
        T = V = 0.0
        g, g_dot, bias, F, p, force = np.zeros(m), np.zeros(m), np.zeros(m), np.zeros(n), np.zeros(n), np.zeros(n)
        G_parts, M_parts = [], []
        for group_index, group in enumerate(self.system.element_groups):
            values = self._evaluate(group_index, "start", q, v)
            T, V = T + float(values[0].sum()), V + float(values[1].sum())
            for total, part in ((F, values[2]), (p, values[3]), (force, values[4])):
                total += np.bincount(group.coordinates.ravel(), part.ravel(), minlength=n)
            M_parts.append((group, values[5]))
            if group.element_type.m:
                g[group.constraints], g_dot[group.constraints], bias[group.constraints] = values[6:9]
                G_parts.append((group, values[9]))
        return SparseAssembledTerms(T, V, g, F, g_dot, self._matrix_G(G_parts), p, self._matrix_M(M_parts), force, bias)

    # -- matrices -----------------------------------------------------------------------------------------------------
    def _constrained(self) -> list[tuple[int, ElementGroup]]:
        return [
            (group_index, group) for group_index, group in enumerate(self.system.element_groups) if group.element_type.m
        ]

    def _matrix_G(self, parts: list[tuple[ElementGroup, np.ndarray]]) -> Any:
        triplets = []
        for group, values in parts:
            rows, columns = _kernel(group.element_type, "G").sparsity_out(0).get_triplet()
            triplets.append((group.constraints[:, rows], group.coordinates[:, columns], values))
        return _sparse(triplets, (self.system.m, self.system.n))

    def _matrix_M(self, parts: list[tuple[ElementGroup, np.ndarray]]) -> Any:
        triplets = []
        for group, values in parts:
            rows, columns = group.element_type.mass.sparsity().get_triplet()
            triplets.append((group.coordinates[:, rows], group.coordinates[:, columns], values))
        return _sparse(triplets, (self.system.n, self.system.n))


def _sparse(parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]], shape: tuple[int, int]) -> Any:
    import scipy.sparse as sp

    if not parts:
        return sp.csr_matrix(shape)
    rows, columns, values = (np.concatenate([part[i].ravel() for part in parts]) for i in range(3))
    return sp.csr_matrix((values, (rows, columns)), shape=shape)


# -- kernels of an element type ---------------------------------------------------------------------------------------
def _arguments(model: ElementType) -> list[Expr]:
    return [model.q, model.v, model.t, model.k]


def _function(model: ElementType, name: str, outputs: list[Any]) -> ca.Function:
    return ca.Function(name, _arguments(model), outputs)


def _constraint_kernel(model: ElementType) -> ca.Function:
    return _function(model, "g", [ca.densify(model.g)])


def _jacobian_kernel(model: ElementType) -> ca.Function:
    return _function(model, "G", [ca.jacobian(model.g, model.q)])


def _velocity_kernel(model: ElementType) -> ca.Function:
    return _function(model, "rate", [ca.densify(model.g_dot)])


def _initial_kernel(model: ElementType) -> ca.Function:
    p = ca.gradient(model.T, model.v)
    force = ca.gradient(model.T - model.V, model.q) - ca.gradient(model.R, model.v) + model.F
    force -= ca.jtimes(p, model.q, model.v)
    outputs = [*map(ca.densify, (model.T, model.V, model.F, p, force)), model.mass]
    if model.m:
        bias = ca.jtimes(model.g_dot, model.q, model.v) + ca.jacobian(model.g_dot, model.t)
        outputs += [*map(ca.densify, (model.g, model.g_dot, bias)), ca.jacobian(model.g, model.q)]
    return _function(model, "start", outputs)


_FUNCTIONS = {
    "g": _constraint_kernel,
    "G": _jacobian_kernel,
    "rate": _velocity_kernel,
    "start": _initial_kernel,
}


def _kernel(model: ElementType, name: str) -> ca.Function:
    """Return a kernel of an element type, which is derived once."""
    if name not in model.functions:
        model.functions[name] = _FUNCTIONS[name](model)
    return model.functions[name]
