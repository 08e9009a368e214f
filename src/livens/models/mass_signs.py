"""Rejection of parameter values that make a mass matrix indefinite."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from livens.errors import InputError
from livens.expressions.evaluate import BatchEvaluator
from livens.expressions.probe import Probe
from livens.models.disjoint_sets import connected_components

if TYPE_CHECKING:
    from livens.models.system import System

#: Eigenvalues below minus this number, relative to the largest one of their block, count as negative.
_RELATIVE_TOLERANCE = 1e-9


class MassSigns:
    """Number of negative eigenvalues of the mass matrix of a system at a generic state, by parameters.

    Kinetic energies of models are positive semidefinite, unless the model itself has negative masses. Values of
    parameters that add negative eigenvalues, such as a negative mass, are errors.
    """

    def __init__(self, system: System) -> None:
        self._system = system
        self._groups = [group for group in system.element_groups if not group.element_type.T.is_zero()]
        indices = [np.zeros(0, dtype=np.int64)]
        for group in self._groups:
            mass, k = ca.densify(group.element_type.mass), group.element_type.k
            indices.append(group.parameters[:, np.flatnonzero(ca.which_depends(mass, k, 1, False))].ravel())
        #: Indices of the parameters of the mass matrix.
        self.indices = np.unique(np.concatenate(indices))
        self._default = system.parameter_vector()
        self._last_values = self._default[self.indices]

    def check(self, changes: Mapping[str, object], k: np.ndarray) -> None:
        """Raise `InputError` if parameters `k`, of which `changes` differ, add negative eigenvalues.

        Parameters
        ----------
        changes : mapping of str to array_like
            Changed parameters by name.
        k : ndarray of shape (parameter_count,) or (n_members, parameter_count)
            Parameter vectors.
        """
        rows = np.unique(np.atleast_2d(k)[:, self.indices], axis=0) if k.ndim > 1 else k[None, self.indices]
        if not self.indices.size or (rows == self._last_values).all():
            return
        invalid = np.flatnonzero(self._negative_eigenvalues(rows) > self._allowed)
        if invalid.size:
            raise InputError(self._message(changes, rows[invalid[0]]))
        self._last_values = rows[-1]

    @functools.cached_property
    def _allowed(self) -> int:
        """Number of negative eigenvalues with the parameters of the model."""
        return int(self._negative_eigenvalues(self._default[None, self.indices])[0])

    @functools.cached_property
    def _blocks(self) -> list[list[int]]:
        """Coordinates that share kinetic energy."""
        members = [dofs for group in self._groups for dofs in group.coordinates.tolist()]
        return connected_components(members, self._system.n)

    @functools.cached_property
    def _state(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Generic state with a finite mass matrix; None if there is none among the samples."""
        size = ca.SX.sym("n", self._system.n)
        for q, v in Probe([size, size], seed=5).points():
            state = q.ravel(), v.ravel()
            if all(np.isfinite(stack).all() for stack in self._masses(*state, self._default[None])):
                return state
        return None

    def _message(self, changes: Mapping[str, object], values: np.ndarray) -> str:
        """Return the message that names the parameters that make the mass matrix indefinite."""
        table, default, culprits = self._system.parameter_table, self._default[self.indices], []
        for name in changes:
            entries = [i for slice_ in table.lookup(name).slices for i in range(slice_.start, slice_.stop)]
            is_changed = np.isin(self.indices, entries)
            alone = np.where(is_changed, values, default)
            if is_changed.any() and self._negative_eigenvalues(alone[None])[0] > self._allowed:
                culprits.append(f"parameter '{name}' = {_text(alone[is_changed])}")
        named = " and ".join(culprits) or "the changed parameters"
        return (
            f"{named}: the kinetic energy is negative, as the mass matrix has a negative eigenvalue. Masses and "
            "moments of inertia must not be negative. If it is intended, build the model itself with this value"
        )

    def _negative_eigenvalues(self, rows: np.ndarray) -> np.ndarray:
        """Return the number of negative eigenvalues for each row of values of the parameters `indices`."""
        counts = np.zeros(len(rows), dtype=np.int64)
        if self._state is None:
            return counts
        k = np.repeat(self._default[None], len(rows), axis=0)
        k[:, self.indices] = rows
        for masses in self._masses(*self._state, k):
            finite = np.isfinite(masses).all(axis=(1, 2))
            values = np.linalg.eigvalsh(np.where(finite[:, None, None], masses, 0.0))
            counts += (values < -_RELATIVE_TOLERANCE * np.abs(values).max(axis=1, keepdims=True)).sum(axis=1)
        return counts

    def _masses(self, q: np.ndarray, v: np.ndarray, k: np.ndarray) -> list[np.ndarray]:
        """Return the diagonal blocks of the mass matrix for rows of parameters, of shape (n_rows, size, size)."""
        masses = [np.zeros((len(k), len(block), len(block))) for block in self._blocks]
        for i, (group, block_indices) in enumerate(zip(self._groups, self._block_indices, strict=True)):
            function, n = group.element_type.mass_function, group.element_type.n
            evaluate = self._single_evaluators[i] if len(k) == 1 else BatchEvaluator(function, len(k))
            for dofs, parameters, (block, entries) in zip(
                group.coordinates, group.parameters, block_indices, strict=True
            ):
                (matrices,) = evaluate(q[dofs], v[dofs], k[:, parameters])
                masses[block][:, entries[:, None], entries] += matrices.reshape(-1, n, n)
        return masses

    @functools.cached_property
    def _single_evaluators(self) -> list[BatchEvaluator]:
        return [BatchEvaluator(group.element_type.mass_function, 1) for group in self._groups]

    @functools.cached_property
    def _block_indices(self) -> list[list[tuple[int, np.ndarray]]]:
        """For each element of each group: the block of its coordinates, and their indices in the block."""
        index = {dof: (b, i) for b, block in enumerate(self._blocks) for i, dof in enumerate(block)}
        return [
            [(index[dofs[0]][0], np.array([index[dof][1] for dof in dofs])) for dofs in group.coordinates.tolist()]
            for group in self._groups
        ]


def _text(values: np.ndarray) -> str:
    """Return a number, or the first entries of an array, as text."""
    return f"{values[0]:g}" if values.size == 1 else np.array2string(values, threshold=6, separator=", ")
