"""Port relations ``M y + N u = 0``: power balance and free inputs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from livens.errors import InputError, ModelError
from livens.types import ArrayLike
from livens.validation import check_array

#: Relative tolerance of zero, with respect to the magnitude of the terms.
ZERO_TOLERANCE = 1e-12


@dataclass(frozen=True, eq=False)
class PortRelations:
    """Port relations ``M y + N u = 0`` with M of full rank, and relations ``N2 u = 0`` between inputs only."""

    M: np.ndarray
    N: np.ndarray
    N2: np.ndarray
    ports: tuple[str, ...]

    def recombined(self, Q: np.ndarray) -> PortRelations:
        """Return the relations recombined by a regular matrix."""
        return replace(self, M=Q.T @ self.M, N=Q.T @ self.N)

    def check_power(self) -> None:
        """Raise ModelError unless ``M N^T + N M^T`` is positive semidefinite (zero: lossless)."""
        M, N = np.vstack([self.M, np.zeros_like(self.N2)]), np.vstack([self.N, self.N2])
        power, size = M @ N.T + N @ M.T, np.abs(M) @ np.abs(N).T
        values, vectors = np.linalg.eigh(power)
        if values.size and values[0] < -ZERO_TOLERANCE * size.max():
            ports = self._ports_in(vectors[:, 0] @ M, vectors[:, 0] @ N)
            raise ModelError(
                f"the interconnection creates power at the ports {ports}: M N^T + N M^T has the eigenvalue "
                f"{values[0]:.3g} and must be positive semidefinite; check the signs of M and N"
            )

    def power_split(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the lossless (skew) and the dissipative (semidefinite) part of ``N M^T``, free of roundoff."""
        product, size = self.N @ self.M.T, np.abs(self.N) @ np.abs(self.M.T)
        values, vectors = np.linalg.eigh((product + product.T) / 2)
        is_dissipative = values > ZERO_TOLERANCE * size.max(initial=0.0)
        dissipative = (vectors[:, is_dissipative] * values[is_dissipative]) @ vectors[:, is_dissipative].T
        return (product - product.T) / 2, dissipative

    def ports_in(self, w: np.ndarray) -> str:
        """Return the names of the ports in a combination of the relations, for messages."""
        return self._ports_in(w @ self.M, w @ self.N)

    def _ports_in(self, m: np.ndarray, n: np.ndarray) -> str:
        size = np.abs(m) + np.abs(n)
        return ", ".join(f"'{self.ports[i]}'" for i in np.flatnonzero(size > 1e-6 * size.max()))

    def free_inputs(self) -> tuple[np.ndarray, tuple[str, ...]]:
        """Return F with ``u = M^T lam + F u_e`` for all u with ``N2 u = 0``, single ports where possible, and names."""
        m = len(self.ports)
        _, values, Vt = np.linalg.svd(self.N2) if self.N2.size else (None, np.zeros(0), np.eye(m))
        allowed = Vt[values.size :].T
        has_relation: list[bool] = np.abs(np.vstack([self.M, self.N, self.N2])).max(axis=0).astype(bool).tolist()
        # single ports first, those without relations before the others, then a completion of the space
        single = sorted(np.flatnonzero(~self.N2.any(axis=0)), key=lambda i: (has_relation[i], i))
        candidates = [(np.eye(m)[i], self.ports[i]) for i in single]
        candidates += [(column, f"free_{j}") for j, column in enumerate(allowed.T)]
        basis = [row / np.linalg.norm(row) for row in np.linalg.qr(self.M.T)[0].T]
        chosen: list[tuple[np.ndarray, str]] = []
        for column, name in candidates:
            if len(basis) == allowed.shape[1]:
                break
            remainder = column - sum((b * (b @ column) for b in basis), np.zeros(m))
            remainder -= sum((b * (b @ remainder) for b in basis), np.zeros(m))  # reorthogonalization: twice is enough
            if np.linalg.norm(remainder) > 1e-6 * np.linalg.norm(column):
                basis.append(remainder / np.linalg.norm(remainder))
                chosen.append((column, name))
        order = {name: i for i, name in enumerate(self.ports)}
        chosen.sort(key=lambda item: order.get(item[1], m))
        F = np.column_stack([column for column, _ in chosen]) if chosen else np.zeros((m, 0))
        return F, tuple(name for _, name in chosen)


def parse_relations(M: object, N: ArrayLike, ports: tuple[str, ...], usable: list[int]) -> PortRelations:
    """Return the relations given for the `usable` ports, checked and in the order of all ports."""
    matrices = [_matrix(name, value, len(usable)) for name, value in (("M", M), ("N", N))]
    if matrices[0].shape != matrices[1].shape:
        raise InputError(f"M and N must have the same shape, got {matrices[0].shape} and {matrices[1].shape}")
    padded = np.zeros((2, matrices[0].shape[0], len(ports)))
    padded[:, :, usable] = matrices
    M, N = padded
    _check_independent(np.hstack([M, N]))
    input_only = ~M.any(axis=1)
    U, values, _ = np.linalg.svd(M)
    rank = int((values > ZERO_TOLERANCE * values.max(initial=0.0)).sum())
    while 0 < rank < values.size and values[rank] > values[rank - 1] / 2:
        rank -= 1  # singular values of skew relations come in pairs, which must stay together
    if rank == M.shape[0] - input_only.sum():  # no recombination needed
        return PortRelations(M[~input_only], N[~input_only], N[input_only], ports)
    return PortRelations((U.T @ M)[:rank], (U.T @ N)[:rank], (U.T @ N)[rank:], ports)


def _matrix(name: str, value: object, columns: int) -> np.ndarray:
    matrix = check_array(name, value, description="a matrix of numbers")
    if matrix.ndim != 2 or matrix.shape[1] != columns:
        raise InputError(f"{name} must have {columns} columns, one for each open port, got shape {matrix.shape}")
    if not 0 < matrix.shape[0] <= columns:
        raise InputError(f"there must be 1 to {columns} relations, as there are open ports, got {matrix.shape[0]}")
    return matrix


def _check_independent(rows: np.ndarray) -> None:
    for i in range(rows.shape[0]):
        preceding = rows[:i]
        remainder = rows[i] - np.linalg.lstsq(preceding.T, rows[i], rcond=None)[0] @ preceding if i else rows[i]
        if np.linalg.norm(remainder) <= ZERO_TOLERANCE * max(float(np.linalg.norm(rows[i])), 1e-300):
            raise InputError(f"relation {i} of the interconnection follows from those before it; remove it")
