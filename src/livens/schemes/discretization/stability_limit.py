"""Linear stability limit of the step size for explicit forces: theorem 3 of Modin 2009, paper V for all velocities."""

from __future__ import annotations

import casadi as ca
import numpy as np

from livens.errors import InputError
from livens.models.system import System
from livens.schemes.discretization.phase_space_map import as_hamiltonian
from livens.schemes.discretization.quasi_velocities import quasi_velocities
from livens.schemes.discretization.semi_explicit_step import ExplicitPoint, force_split

#: Number of bisections, which is the number of binary digits of the limit.
_BISECTIONS = 12


def force_jacobians(
    model: object, q: np.ndarray, v: np.ndarray, t: float, k: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return ``-K`` and ``-C``: Jacobians of the accelerations by expensive forces in positions and velocities."""
    if isinstance(model, System) and not (
        "phase space" in model.formulations and model.constant_mass and model.separable
    ):
        forces, velocities = force_split(model), quasi_velocities(model)
        displacement, u, q_ref = ca.SX.sym("way", velocities.size), ca.SX.sym("u", velocities.size), ca.DM(q)
        q_displaced = velocities.retract(q_ref, displacement)
        force_terms = forces.evaluate(forces.expensive, q_displaced, u, t, ca.DM(k))
        a = velocities.accelerations(q_displaced, u, force_terms.force, ca.DM(k), gyroscopic=True)
        u_ref = ca.evalf(velocities.from_qdot(q_ref, ca.DM(v)))
        evaluation_point = np.zeros(velocities.size), np.array(u_ref).ravel()
        jacobians = ca.Function("slopes", [displacement, u], [ca.jacobian(a, displacement), ca.jacobian(a, u)])(
            *evaluation_point
        )
    else:
        phase = as_hamiltonian(model)
        if phase.external_force is not None:
            raise InputError(
                "the stable step size with an external force cannot be estimated, as it has no derivatives; pass h"
            )
        a = phase.inverse_mass @ phase.explicit_force
        symbols = [phase.q, phase.v, phase.t, phase.k]
        jacobians = ca.Function("slopes", symbols, [ca.jacobian(a, phase.q), ca.jacobian(a, phase.v)])(q, v, t, k)
    da_dq, da_dv = (np.array(jacobian) for jacobian in jacobians)
    return da_dq, da_dv


def stability_limit(da_dq: np.ndarray, da_dv: np.ndarray, explicit_point: ExplicitPoint) -> float:
    """Return the longest step for which no alternating mode of the linearized motion grows.

    Cheap forces do not reduce it if they are evaluated at the midpoint of a step or later (theorem 6).
    """
    if not (np.isfinite(da_dq).all() and np.isfinite(da_dv).all()):
        return np.inf
    stiffness, damping = (float(np.abs(np.linalg.eigvals(matrix)).max(initial=0.0)) for matrix in (da_dq, da_dv))
    if not stiffness + damping:
        return np.inf
    # the limits of stiffness only, 2/sqrt(k), and of damping only, 2/c
    decoupled_limit = min(2 / np.sqrt(stiffness) if stiffness else np.inf, 2 / damping if damping else np.inf)
    low, high = 1e-3 * decoupled_limit, 2 * decoupled_limit
    if _is_stable(da_dq, da_dv, high, explicit_point):
        return np.inf
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if _is_stable(da_dq, da_dv, middle, explicit_point) else (low, middle)
    return float(low)


def _is_stable(da_dq: np.ndarray, da_dv: np.ndarray, h: float, explicit_point: ExplicitPoint) -> bool:
    """Return True if no eigenvalue with negative real part exceeds 1 in modulus.

    The variables are positions over h, velocities, and the last velocity increment, so that all have one unit.
    """
    n = len(da_dq)
    identity, zeros = np.eye(n), np.zeros((n, n))
    h2K, hC = h * h * da_dq, h * da_dv
    if explicit_point.alpha:
        coupling = np.hstack(
            [
                h2K,
                explicit_point.alpha * h2K + hC,
                explicit_point.alpha * hC if explicit_point.extrapolate_velocity else zeros,
            ]
        )
        step = np.vstack(
            [
                np.hstack([identity, identity, zeros]) + coupling / 2,
                np.hstack([zeros, identity, zeros]) + coupling,
                coupling,
            ]
        )
    else:  # half kick, drift, half kick
        kick = np.block([[identity, zeros], [h2K / 2, identity + hC / 2]])
        step = kick @ np.block([[identity, identity], [zeros, identity]]) @ kick
    values = np.linalg.eigvals(step)
    return bool(np.abs(values[values.real < 0]).max(initial=0.0) <= 1 + 1e-9)
