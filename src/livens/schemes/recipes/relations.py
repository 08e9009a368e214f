"""Elimination of the stages of a Runge-Kutta step: linear relations between unknowns, stages and final state.

The unknowns are not the velocities of the stages but ``D_i = (Q_i - q0)/h - r_i v0`` with ``r_i = sum_j a_ij``, the
deviation of the mean velocity from v0. The equations of stage i then have derivatives with respect to ``D_i`` and
``L_i`` only, except for the momenta; with velocities as unknowns every force would depend on all stages. As the D_i are
of size h, the round-off of the coefficients is multiplied by h too, which limits the drift of invariants.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from livens.errors import InputError

#: Absolute tolerance below which coefficients are treated as zero.
_ROUND_OFF = 1e-12


def stages_with_slope(A: np.ndarray) -> list[int]:
    """Return the stages with nonzero row and column. Lobatto IIIA has a zero first row, IIIB a zero last column."""
    full = np.abs(A) > _ROUND_OFF
    return [i for i in range(len(A)) if full[i].any() and full[:, i].any()]


class Relations:
    """Stage relations of two methods, A for coordinates and `A_p` for momenta, with common weights b and nodes c.

    S002 def. 6.1: ``Q_i = q0 + h sum_j a_ij V_j`` and ``P_i = p0 + h sum_j abar_ij F_j``. Unknowns are
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
        self.reach = _clean(A.sum(axis=1))  # r_i, equal to c_i except for some two-stage methods
        self.with_mean, self.with_force = stages_with_slope(A), stages_with_slope(A_p)
        self.own = [i for i in range(self.s) if i not in self.with_mean]
        self.free = [i for i in range(self.s) if i not in self.with_force]
        for matrix, core in ((A, self.with_mean), (A_p, self.with_force)):
            if np.linalg.matrix_rank(matrix[np.ix_(core, core)]) < len(core):
                raise InputError("a matrix of a Runge-Kutta method is singular where no row and no column is zero")
        inverse = np.linalg.inv(A_p[np.ix_(self.with_force, self.with_force)])
        self.W = inverse
        self.X = _clean(inverse @ A_p[np.ix_(self.with_force, self.free)])
        self.N = np.zeros((len(self.free), self.s))
        self.N[:, self.free] = np.eye(len(self.free))
        self.N[:, self.with_force] = -A_p[np.ix_(self.free, self.with_force)] @ inverse
        #: ``p1 - p0 = sum_i d_i (P_i - p0) + h sum_l f_l F_l``
        self.d = _clean(b[self.with_force] @ inverse)
        self.f = _clean(b[self.free] - b[self.with_force] @ self.X)
        self._solve_for_velocities()

    def _solve_for_velocities(self) -> None:
        """Set S, R, e of ``V - v0 = S U``, ``(Q - q0)/h - r v0 = R U``, ``q1 = q0 + h v0 + h e U`` for unknowns U."""
        s, core, own = self.s, self.with_mean, self.own
        inverse = np.linalg.inv(self.A[np.ix_(core, core)])
        by_mean, by_own = np.zeros((s, len(core))), np.zeros((s, len(own)))
        by_mean[core] = inverse
        by_own[core] = -inverse @ self.A[np.ix_(core, own)]
        by_own[own] = np.eye(len(own))
        self.eliminated = bool(own) and self.constant_mass
        if self.eliminated:
            back = np.linalg.inv(self.N @ by_own)
            by_mean = by_mean - by_own @ back @ self.N @ by_mean
            by_own = np.zeros((s, 0))
        self.S = _clean(np.hstack([by_mean, by_own]))
        self.R = _clean(self.A @ self.S)
        self.R[core] = 0.0
        self.R[core, range(len(core))] = 1.0
        self.e = self.R[-1] if np.allclose(self.A[-1], self.b, atol=_ROUND_OFF) else _clean(self.b @ self.S)

    @property
    def unknowns(self) -> tuple[str, ...]:
        """Names of the unknowns."""
        own = [] if self.eliminated else self.own
        return (*(f"D{i + 1}" for i in self.with_mean), *(f"V{i + 1}" for i in own))

    @cached_property
    def ends_with_stage(self) -> bool:
        """True if the last stage is the final state, for coordinates and momenta."""
        same = [np.allclose(matrix[-1], self.b, atol=_ROUND_OFF) for matrix in (self.A, self.A_p)]
        return all(same) and abs(self.c[-1] - 1) < _ROUND_OFF

    @cached_property
    def velocity_weights(self) -> np.ndarray | None:
        """Weights w of ``v1 = v0 + sum_i w_i (V_i - v0)``; None if v1 is not a combination of stage velocities.

        The weights exist for a last stage at t + h, and for constant M if the formula for p1 contains no force.
        """
        if self.ends_with_stage:
            return np.eye(self.s)[-1]
        if not self.constant_mass or np.any(self.f):
            return None
        w = np.zeros(self.s)
        w[self.with_force] = self.d
        return w


def _clean(numbers: Any) -> Any:
    return np.where(np.abs(numbers) < _ROUND_OFF, 0.0, numbers)


def weighted(weights: Any, terms: Any, start: Any) -> Any:
    """Return ``start + sum_i weights_i terms_i``, without terms of zero weight."""
    for weight, term in zip(weights, terms, strict=True):
        if weight:
            start = start + (term if weight == 1 else weight * term)
    return start
