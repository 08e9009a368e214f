"""Consistent initial values of massless coordinates: force equilibrium on ker M and ker G, and its time derivative.

Along a direction w with ``M w = 0`` and ``G w = 0``, neither accelerations nor multipliers enter the equations of
motion ``M a + G^T lam = f``, which reduce to ``w^T f(q, v, t) = 0``. With damping along w, this condition determines
the velocity along w. Without damping it is a constraint on the position, whose time derivative constrains the velocity.
With inconsistent initial values, energy-conserving schemes oscillate about the equilibrium without decay.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import casadi as ca
import numpy as np

from livens.errors import InputError
from livens.expressions.evaluate import Evaluator
from livens.models.equations_of_motion import EquationsOfMotion, equations_of_motion
from livens.models.linalg import EXACT_RTOL, null_space, pinv_and_left_null_space, scaled_rows
from livens.models.system import System

#: Relative tolerance of forces and their time derivatives, with respect to the magnitude of their terms.
TOLERANCE = 1e-10
ConstraintProjection = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
#: Absolute tolerance, relative to the largest entries of the terms.
_ABSOLUTE_TOLERANCE = 1e-14
_MAX_ITERATIONS = 60


@functools.lru_cache(maxsize=16)
def _evaluator(d: EquationsOfMotion) -> Evaluator:
    """Return the evaluator of M, G, f, df/dq, df/dv and the time derivatives of M, G and f along the motion."""
    matrix, rhs = d.kkt_system
    n = d.system.n
    M, f = matrix[:n, :n], ca.densify(rhs[:n])

    def time_derivative(expression: ca.SX) -> ca.SX:
        flat = ca.vec(ca.densify(expression))
        return ca.reshape(ca.jtimes(flat, d.q, d.v) + ca.jacobian(flat, d.t), expression.shape[0], expression.shape[1])

    df_dq, df_dv = ca.jacobian(f, d.q), ca.jacobian(f, d.v)
    outputs = [M, d.G, f, df_dq, df_dv, time_derivative(M), time_derivative(d.G), time_derivative(f), rhs[n:]]
    return Evaluator([d.q, d.v, d.t, d.k], outputs)


def _max_norm(A: np.ndarray) -> float:
    return float(np.abs(A).max(initial=0.0))


@dataclass(frozen=True)
class _Residual:
    """Residual forces along massless directions (or their time derivative) with a roundoff tolerance."""

    directions: np.ndarray
    value: np.ndarray
    tolerance: np.ndarray

    @property
    def is_zero(self) -> bool:
        return bool((np.abs(self.value) <= self.tolerance).all())

    @property
    def worst(self) -> int:
        return int(np.argmax(np.abs(self.value) - self.tolerance))


def _converged(previous: np.ndarray, current: np.ndarray) -> bool:
    return bool(np.abs(previous - current).max() <= 1e-15 * (1 + np.abs(current).max()))


class MasslessEquilibrium:
    """Equilibrium conditions of massless coordinates at one time and for one parameter vector."""

    def __init__(self, system: System, t: float, k: np.ndarray, project_constraints: ConstraintProjection) -> None:
        self.system, self._t, self._k, self._project_constraints = system, t, k, project_constraints
        self._evaluate = _evaluator(equations_of_motion(system))

    def _force_residual(self, q: np.ndarray, v: np.ndarray) -> tuple[_Residual, np.ndarray, np.ndarray]:
        """Return the force residual and the position and velocity corrections that remove it."""
        M, G, f, df_dq, df_dv, *_ = self._evaluate(q, v, self._t, self._k)
        W = null_space(scaled_rows(np.vstack([M, G])))
        W_df_dq, W_df_dv = W.T @ df_dq, W.T @ df_dv
        terms = np.abs(W_df_dq) @ np.abs(q) + np.abs(W_df_dv) @ np.abs(v) + np.abs(W).T @ np.abs(f.ravel())
        terms += (
            _ABSOLUTE_TOLERANCE
            / TOLERANCE
            * (_max_norm(df_dq) * _max_norm(q) + _max_norm(df_dv) * _max_norm(v) + _max_norm(f))
        )
        damping, undamped = pinv_and_left_null_space(W_df_dv @ W, _max_norm(df_dv))
        stiffness = pinv_and_left_null_space(undamped.T @ W_df_dq @ W, _max_norm(df_dq))[0] @ undamped.T
        return _Residual(W, W.T @ f.ravel(), TOLERANCE * terms), W @ stiffness, W @ damping

    def _force_rate_residual(self, q: np.ndarray, v: np.ndarray) -> tuple[_Residual, np.ndarray]:
        """Return the time derivative of the undamped force residual and the velocity correction that removes it."""
        M, G, f, df_dq, df_dv, M_dot, G_dot, f_dot, bias = self._evaluate(q, v, self._t, self._k)
        N, rhs = np.vstack([M, G]), np.concatenate([f.ravel(), bias.ravel()])
        W = null_space(scaled_rows(N))
        undamped = W @ pinv_and_left_null_space(W.T @ df_dv @ W, _max_norm(df_dv))[1]
        n = self.system.n
        A = np.block([[M, G.T], [G, np.zeros((G.shape[0], G.shape[0]))]])
        a = np.linalg.lstsq(A, rhs, rcond=EXACT_RTOL)[0][:n]
        # the null directions change along the motion: d/dt (N w) = 0
        directions_dot = -np.linalg.lstsq(N, np.vstack([M_dot, G_dot]) @ undamped, rcond=EXACT_RTOL)[0]
        value = directions_dot.T @ f.ravel() + undamped.T @ (f_dot.ravel() + df_dv @ a)
        terms = np.abs(undamped.T @ df_dq) @ np.abs(v) + np.abs(undamped.T @ df_dv) @ np.abs(a)
        terms += np.abs(directions_dot).T @ np.abs(f.ravel()) + np.abs(undamped).T @ np.abs(f_dot.ravel())
        terms += _ABSOLUTE_TOLERANCE / TOLERANCE * (_max_norm(df_dq) * _max_norm(v) + _max_norm(df_dv) * _max_norm(a))
        stiffness = pinv_and_left_null_space(undamped.T @ df_dq @ undamped, _max_norm(df_dq))[0]
        return _Residual(undamped, value, TOLERANCE * terms), undamped @ stiffness

    # -- projection ---------------------------------------------------------------------------------------------------
    def project(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Return a state in equilibrium, moved along massless directions only; None if there is none nearby.

        There is none if the forces do not depend on the massless coordinates.
        """
        for _ in range(_MAX_ITERATIONS):
            residual, position_correction, velocity_correction = self._force_residual(q, v)
            if not np.isfinite(residual.value).all():
                return None
            previous = q, v
            try:  # the equilibrium is sought on the constraint manifold, which may be curved
                q, v = self._project_constraints(
                    q - position_correction @ residual.value, v - velocity_correction @ residual.value
                )
            except InputError:
                return None
            if _converged(previous[0], q) and _converged(previous[1], v):
                break
        for _ in range(_MAX_ITERATIONS):
            rate_residual, velocity_correction = self._force_rate_residual(q, v)
            if not np.isfinite(rate_residual.value).all():
                return None
            previous_v, v = v, v - velocity_correction @ rate_residual.value
            if _converged(previous_v, v):
                break
        return (q, v) if self._force_residual(q, v)[0].is_zero and self._force_rate_residual(q, v)[0].is_zero else None

    # -- check --------------------------------------------------------------------------------------------------------
    def check_or_project(self, q: np.ndarray, v: np.ndarray, project: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return the state if it is in equilibrium, or its projection with `project`; raise InputError otherwise."""
        forces = self._force_residual(q, v)[0]
        rates = self._force_rate_residual(q, v)[0] if forces.is_zero else None
        if rates is not None and rates.is_zero:
            return q, v
        consistent = self.project(q, v)
        if project and consistent is not None:
            return consistent
        residual = forces if rates is None else rates
        direction = residual.directions[:, residual.worst]
        names = [self.system.coordinates[i] for i in np.flatnonzero(np.abs(direction) > 0.1 * np.abs(direction).max())]
        quoted = ", ".join(f"'{name}'" for name in names[:4])
        where = quoted if len(names) == 1 else f"a combination of {quoted}"
        magnitude = f"{abs(residual.value[residual.worst]):.3g}"
        problem = f"{where} has no mass, and the forces along it "
        problem += (
            f"are not in equilibrium: residual {magnitude}"
            if rates is None
            else f"leave equilibrium with v0: rate {magnitude}"
        )
        if consistent is None:
            raise InputError(f"inconsistent initial values: {problem}, and no equilibrium was found nearby")
        proposal = ", ".join(
            f"{name} = ({', '.join(f'{x:.9g}' for x in values[:12])}{', ...' if values.size > 12 else ''})"
            for name, values, initial in (("q0", consistent[0], q), ("v0", consistent[1], v))
            if not np.array_equal(values, initial)
        )
        raise InputError(
            f"inconsistent initial values: {problem}; equilibrium holds for {proposal}; "
            "pass project=True to start there"
        )


def check_massless_equilibrium(
    system: System,
    q: np.ndarray,
    v: np.ndarray,
    t: float,
    k: np.ndarray,
    project: bool,
    project_constraints: ConstraintProjection,
) -> tuple[np.ndarray, np.ndarray]:
    """Return initial values that satisfy the equilibrium of massless coordinates: checked, or projected on request.

    `project_constraints` projects positions and velocities onto the constraints.
    """
    if system.frames or not system.quadratic_kinetic_energy or not (system.constant_mass or not system.regular_mass):
        return q, v  # a mass that vanishes at isolated states only gives no condition on the forces
    return MasslessEquilibrium(system, t, k, project_constraints).check_or_project(q, v, project)
