"""Numeric assembly of large systems: batched kernels per element type, sparse matrices, no graph of the system."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import casadi as ca
import numpy as np

from livens.expressions.evaluate import Mapped
from livens.models.element import ElementModel
from livens.models.groups import TypeGroup

if TYPE_CHECKING:
    from livens.models.system import System


class Sums(NamedTuple):
    """Energies, constraints, forces and sparse matrices of a system in one state."""

    T: float
    V: float
    g: np.ndarray
    F: np.ndarray
    g_rate: np.ndarray
    G: Any
    p: np.ndarray
    M: Any
    force: np.ndarray  # of ``M a + G^T lam = force, G a = -bias``
    bias: np.ndarray


class ElementNumbers:
    """Numeric assembly of a system: the kernels of each element type, evaluated for all elements of the type."""

    def __init__(self, system: System, t: float, k: np.ndarray) -> None:
        self.system, self._t, self._k = system, t, k
        self._mapped: dict[tuple[int, str], Mapped] = {}

    def _run(self, number: int, name: str, q: np.ndarray, v: np.ndarray | None) -> list[np.ndarray]:
        group = self.system.groups[number]
        if (number, name) not in self._mapped:
            self._mapped[number, name] = Mapped(_FUNCTIONS[name](group.model), group.count)
        at = group.coordinates
        return self._mapped[number, name](q[at], 0.0 if v is None else v[at], self._t, self._k[group.parameters])

    # -- position level -----------------------------------------------------------------------------------------------
    def constraints(self, q: np.ndarray) -> np.ndarray:
        g = np.zeros(self.system.m)
        for number, group in self._constrained():
            g[group.constraints] = self._run(number, "g", q, None)[0]
        return g

    def slopes(self, q: np.ndarray) -> Any:
        """Return the constraint Jacobian G as a sparse matrix."""
        parts = [(group, self._run(number, "G", q, None)[0]) for number, group in self._constrained()]
        return self._matrix_G(parts)

    def position_slopes(self, q: np.ndarray) -> Any:
        """Return G: all constraints of a large system are at position level."""
        return self.slopes(q)

    def rate(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the velocity-level residual ``dg/dt`` of the constraints."""
        rate = np.zeros(self.system.m)
        for number, group in self._constrained():
            rate[group.constraints] = self._run(number, "rate", q, v)[0]
        return rate

    def least(self, G: Any, r: np.ndarray) -> np.ndarray:
        """Return the minimum-norm solution of ``G x = r``, in the least-squares sense if there is none."""
        from livens.models.sparse_rows import SparseRows  # SciPy's sparse matrices take long to import

        return SparseRows(G).least(r)

    # -- states -------------------------------------------------------------------------------------------------------
    def at_start(self, q: np.ndarray, v: np.ndarray) -> Sums:
        n, m = self.system.n, self.system.m
        T = V = 0.0
        g, rate, bias, F, p, force = np.zeros(m), np.zeros(m), np.zeros(m), np.zeros(n), np.zeros(n), np.zeros(n)
        of_G, of_M = [], []
        for number, group in enumerate(self.system.groups):
            values = self._run(number, "start", q, v)
            T, V = T + float(values[0].sum()), V + float(values[1].sum())
            for total, part in ((F, values[2]), (p, values[3]), (force, values[4])):
                total += np.bincount(group.coordinates.ravel(), part.ravel(), minlength=n)
            of_M.append((group, values[5]))
            if group.model.m:
                g[group.constraints], rate[group.constraints], bias[group.constraints] = values[6:9]
                of_G.append((group, values[9]))
        return Sums(T, V, g, F, rate, self._matrix_G(of_G), p, self._matrix_M(of_M), force, bias)

    # -- matrices -----------------------------------------------------------------------------------------------------
    def _constrained(self) -> list[tuple[int, TypeGroup]]:
        return [(number, group) for number, group in enumerate(self.system.groups) if group.model.m]

    def _matrix_G(self, parts: list[tuple[TypeGroup, np.ndarray]]) -> Any:
        placed = []
        for group, values in parts:
            rows, columns = _slopes_of(group.model).sparsity_out(0).get_triplet()
            placed.append((group.constraints[:, rows], group.coordinates[:, columns], values))
        return _sparse(placed, (self.system.m, self.system.n))

    def _matrix_M(self, parts: list[tuple[TypeGroup, np.ndarray]]) -> Any:
        placed = []
        for group, values in parts:
            rows, columns = group.model.mass.sparsity().get_triplet()
            placed.append((group.coordinates[:, rows], group.coordinates[:, columns], values))
        return _sparse(placed, (self.system.n, self.system.n))


def _sparse(parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]], shape: tuple[int, int]) -> Any:
    import scipy.sparse as sp

    if not parts:
        return sp.csr_matrix(shape)
    rows, columns, values = (np.concatenate([part[i].ravel() for part in parts]) for i in range(3))
    return sp.csr_matrix((values, (rows, columns)), shape=shape)


# -- kernels of an element type ---------------------------------------------------------------------------------------
def _arguments(model: ElementModel) -> list[Any]:
    return [model.q, model.v, model.t, model.k]


def _function(model: ElementModel, name: str, outputs: list[Any]) -> ca.Function:
    return ca.Function(name, _arguments(model), outputs)


def _rate(model: ElementModel) -> Any:
    return ca.jtimes(model.g, model.q, model.v) + ca.jacobian(model.g, model.t)


def _constraints_of(model: ElementModel) -> ca.Function:
    return _function(model, "g", [ca.densify(model.g)])


def _slopes_of(model: ElementModel) -> ca.Function:
    return _function(model, "G", [ca.jacobian(model.g, model.q)])


def _rate_of(model: ElementModel) -> ca.Function:
    return _function(model, "rate", [ca.densify(_rate(model))])


def _start_of(model: ElementModel) -> ca.Function:
    p = ca.gradient(model.T, model.v)
    force = ca.gradient(model.T - model.V, model.q) - ca.gradient(model.R, model.v) + model.F
    force -= ca.jtimes(p, model.q, model.v)
    outputs = [*map(ca.densify, (model.T, model.V, model.F, p, force)), model.mass]
    if model.m:
        rate = _rate(model)
        bias = ca.jtimes(rate, model.q, model.v) + ca.jacobian(rate, model.t)
        outputs += [*map(ca.densify, (model.g, rate, bias)), ca.jacobian(model.g, model.q)]
    return _function(model, "start", outputs)


_FUNCTIONS = {
    "g": _constraints_of,
    "G": _slopes_of,
    "rate": _rate_of,
    "start": _start_of,
}
