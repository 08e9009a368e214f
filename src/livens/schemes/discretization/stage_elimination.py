"""Elimination of the stages of a Runge-Kutta step: linear relations between unknowns, stages and final state.

The unknowns are not the velocities of the stages but ``D_i = (Q_i - q0)/h - r_i v0`` with ``r_i = sum_j a_ij``, the
deviation of the mean velocity from v0. The equations of stage i then have derivatives with respect to ``D_i`` and
``L_i`` only, except for the momenta; with velocities as unknowns every force would depend on all stages. As the D_i are
of size h, the round-off of the coefficients is multiplied by h too, which limits the drift of invariants.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from livens.errors import InputError
from livens.types import Expr, FloatArray

#: Absolute tolerance below which coefficients are treated as zero.
_ROUNDOFF = 1e-12


def nonzero_stages(A: np.ndarray) -> list[int]:
    """Return the stages with nonzero row and column. Lobatto IIIA has a zero first row, IIIB a zero last column."""
    is_nonzero = np.abs(A) > _ROUNDOFF
    return [i for i in range(len(A)) if is_nonzero[i].any() and is_nonzero[:, i].any()]


class StageElimination:
    """Stage relations of two methods, A for coordinates and `A_p` for momenta, with common weights b and nodes c.

    Symank 2025, def. 6.1: ``Q_i = q0 + h sum_j a_ij V_j`` and ``P_i = p0 + h sum_j abar_ij F_j``. Unknowns are
    ``D_i = (Q_i - q0)/h - r_i v0`` of the stages in `position_stages`, and ``V_i - v0`` of the stages in
    `velocity_stages`. The equations for momenta are solved for the forces::

        sum_i W_ki (P_i - p0) = h F_k + h sum_l X_kl F_l           l: stages in `undetermined_forces`
        sum_i N_ki (P_i - p0) = 0                                  remaining equations for singular A_p

    For constant M, the second line is an equation for velocities, ``sum_i N_ki (V_i - v0) = 0``, which is independent
    of masses; it is used to eliminate the ``V_i`` from the unknowns.
    """

    def __init__(self, A: np.ndarray, A_p: np.ndarray, b: np.ndarray, c: np.ndarray, constant_mass: bool) -> None:
        self.A, self.A_p, self.b, self.c, self.constant_mass = A, A_p, b, c, constant_mass
        self.s = len(b)
        self.row_sums = _flush_zeros(A.sum(axis=1))  # r_i, equal to c_i except for some two-stage methods
        self.position_stages, self.force_stages = nonzero_stages(A), nonzero_stages(A_p)
        self.velocity_stages = [i for i in range(self.s) if i not in self.position_stages]
        self.undetermined_forces = [i for i in range(self.s) if i not in self.force_stages]
        for matrix, core in ((A, self.position_stages), (A_p, self.force_stages)):
            if np.linalg.matrix_rank(matrix[np.ix_(core, core)]) < len(core):
                raise InputError("a matrix of a Runge-Kutta method is singular where no row and no column is zero")
        inverse = np.linalg.inv(A_p[np.ix_(self.force_stages, self.force_stages)])
        self.W = inverse
        self.X = _flush_zeros(inverse @ A_p[np.ix_(self.force_stages, self.undetermined_forces)])
        self.N = np.zeros((len(self.undetermined_forces), self.s))
        self.N[:, self.undetermined_forces] = np.eye(len(self.undetermined_forces))
        self.N[:, self.force_stages] = -A_p[np.ix_(self.undetermined_forces, self.force_stages)] @ inverse
        #: ``p1 - p0 = sum_i d_i (P_i - p0) + h sum_l f_l F_l``
        self.d = _flush_zeros(b[self.force_stages] @ inverse)
        self.f = _flush_zeros(b[self.undetermined_forces] - b[self.force_stages] @ self.X)
        self._solve_for_velocities()

    def _solve_for_velocities(self) -> None:
        """Set S, R, e of ``V - v0 = S U``, ``(Q - q0)/h - r v0 = R U``, ``q1 = q0 + h v0 + h e U`` for unknowns U."""
        s, core, velocity_stages = self.s, self.position_stages, self.velocity_stages
        inverse = np.linalg.inv(self.A[np.ix_(core, core)])
        d_dmean, d_dvelocity = np.zeros((s, len(core))), np.zeros((s, len(velocity_stages)))
        d_dmean[core] = inverse
        d_dvelocity[core] = -inverse @ self.A[np.ix_(core, velocity_stages)]
        d_dvelocity[velocity_stages] = np.eye(len(velocity_stages))
        self.velocities_eliminated = bool(velocity_stages) and self.constant_mass
        if self.velocities_eliminated:
            back = np.linalg.inv(self.N @ d_dvelocity)
            d_dmean = d_dmean - d_dvelocity @ back @ self.N @ d_dmean
            d_dvelocity = np.zeros((s, 0))
        self.S = _flush_zeros(np.hstack([d_dmean, d_dvelocity]))
        self.R = _flush_zeros(self.A @ self.S)
        self.R[core] = 0.0
        self.R[core, range(len(core))] = 1.0
        self.e = self.R[-1] if np.allclose(self.A[-1], self.b, atol=_ROUNDOFF) else _flush_zeros(self.b @ self.S)

    @property
    def unknowns(self) -> tuple[str, ...]:
        """Names of the unknowns."""
        velocity_stages = [] if self.velocities_eliminated else self.velocity_stages
        return (*(f"D{i + 1}" for i in self.position_stages), *(f"V{i + 1}" for i in velocity_stages))

    @cached_property
    def is_stiffly_accurate(self) -> bool:
        """True if the last stage is the final state, for coordinates and momenta."""
        last_rows_equal = [np.allclose(matrix[-1], self.b, atol=_ROUNDOFF) for matrix in (self.A, self.A_p)]
        return all(last_rows_equal) and abs(self.c[-1] - 1) < _ROUNDOFF

    @cached_property
    def final_velocity_weights(self) -> np.ndarray | None:
        """Weights w of ``v1 = v0 + sum_i w_i (V_i - v0)``; None if v1 is not a combination of stage velocities.

        The weights exist for a last stage at t + h, and for constant M if the formula for p1 contains no force.
        """
        if self.is_stiffly_accurate:
            return np.eye(self.s)[-1]
        if not self.constant_mass or np.any(self.f):
            return None
        w = np.zeros(self.s)
        w[self.force_stages] = self.d
        return w


def _flush_zeros(values: FloatArray) -> FloatArray:
    return np.where(np.abs(values) < _ROUNDOFF, 0.0, values)


def weighted_sum(weights: FloatArray, terms: Sequence[Expr], total: Expr | float) -> Any:
    """Return ``start + sum_i weights_i terms_i``, without terms of zero weight."""
    for weight, term in zip(weights, terms, strict=True):
        if weight:
            total = total + (term if weight == 1 else weight * term)
    return total
