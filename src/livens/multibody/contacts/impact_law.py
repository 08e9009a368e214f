"""Impact law with joints: response to contact impulses, Newton restitution with Coulomb friction, normal forces.

Relative velocities c of the contacts respond to impulses P by the Delassus matrix, ``c+ = c- + W P`` with
``W = G (A - A J^T (J A J^T)^-1 J A) G^T``: the joints J respond with reaction impulses. A is the inverse mass matrix.
"""

from __future__ import annotations

import numpy as np

#: Relative rank tolerance of Delassus matrices, of contacts and of joints.
RANK_RTOL = 1e-12
#: Relative velocities below this fraction of the largest are round-off.
VELOCITY_RTOL = 1e-12


def joint_reactions(joint_delassus: np.ndarray, joint_velocities: np.ndarray) -> np.ndarray:
    """Return the reactions ``(J A J^T)^-1 J A x`` of the joints, which may be redundant, by columns."""
    return np.asarray(np.linalg.lstsq(joint_delassus, joint_velocities, rcond=RANK_RTOL)[0])


def joint_space_delassus(
    contact_jacobian: np.ndarray, joint_jacobian: np.ndarray, mass: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the Delassus matrix with the joints eliminated, and the velocity response to contact impulses."""
    response, joint_response = np.split(
        np.linalg.solve(mass, np.vstack([contact_jacobian, joint_jacobian]).T), [len(contact_jacobian)], axis=1
    )
    if len(joint_jacobian):
        response = response - joint_response @ joint_reactions(
            joint_jacobian @ joint_response, joint_jacobian @ response
        )
    return contact_jacobian @ response, response


def least_norm_solution(matrix: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """Return the solution of least norm; joints may prevent motion in a contact direction."""
    return np.asarray(np.linalg.lstsq(matrix, rhs, rcond=RANK_RTOL)[0])


def impact_impulse(delassus: np.ndarray, velocity: np.ndarray, e: float, mu: float) -> np.ndarray:
    """Return the impulse of one impact (Newton restitution, Coulomb friction), normal component first.

    The impulse is that of sticking if it lies in the friction cone. Otherwise the tangential impulse is on the cone and
    opposes the slip after the impact, which may have another direction than that of the approach.
    """
    approach_velocity, normal = float(velocity[0]), np.eye(len(velocity))[0]
    sticking_impulse = least_norm_solution(delassus, -velocity - e * approach_velocity * normal)
    if len(velocity) == 1 or np.linalg.norm(sticking_impulse[1:]) <= mu * sticking_impulse[0]:
        return sticking_impulse
    # without the normal velocity, slip = S (P - P_stick) and the normal impulse is a - b P; on the cone slip = -x P
    a, b = -(1 + e) * approach_velocity / delassus[0, 0], delassus[0, 1:] / delassus[0, 0]
    S = delassus[1:, 1:] - np.outer(delassus[1:, 0], b)
    eigenvalues, axes = np.linalg.eigh((S + S.T) / 2)
    eigenvalues = np.maximum(eigenvalues, 0.0)
    sticking = axes.T @ sticking_impulse[1:]

    def tangential(x: float) -> np.ndarray:
        return np.asarray(axes @ (eigenvalues / (eigenvalues + x) * sticking))

    if len(velocity) == 2:  # in the plane the direction is known
        direction = np.sign(sticking_impulse[1:])
        normal_impulse = a / (1 + mu * float(b @ direction))
        return np.concatenate([[normal_impulse], mu * normal_impulse * direction])
    scale = float(eigenvalues.max())
    low, high = 0.0, 1.0  # of x / (x + scale): outside of the cone at 0, inside at 1
    for _ in range(100):
        middle = (low + high) / 2
        trial = tangential(scale * middle / (1 - middle))
        low, high = (middle, high) if np.linalg.norm(trial) > mu * (a - b @ trial) else (low, middle)
    result = tangential(scale * low / (1 - low))
    return np.concatenate([[a - b @ result], result])


def dissipative_impulse(delassus: np.ndarray, velocity: np.ndarray, e: float, mu: float) -> np.ndarray:
    """Return the impulse of one impact with the largest restitution up to e that does not increase kinetic energy.

    Newton restitution with friction may supply energy in eccentric impacts (Kane and Levinson 1985).
    """
    impulse = impact_impulse(delassus, velocity, e, mu)
    scale = float(np.abs(impulse) @ np.abs(velocity))
    if not e or _energy_change(delassus, velocity, impulse) <= VELOCITY_RTOL * scale:
        return impulse
    low, high = 0.0, e
    for _ in range(60):
        middle = (low + high) / 2
        impulse = impact_impulse(delassus, velocity, middle, mu)
        low, high = (low, middle) if _energy_change(delassus, velocity, impulse) > 0 else (middle, high)
    return impact_impulse(delassus, velocity, low, mu)


def _energy_change(delassus: np.ndarray, velocity: np.ndarray, impulse: np.ndarray) -> float:
    """Return the change of kinetic energy by an impulse: ``P.(v + W P/2)``."""
    return float(impulse @ (velocity + delassus @ impulse / 2))


def solve_normal_lcp(delassus: np.ndarray, free_accelerations: np.ndarray) -> np.ndarray:
    """Solve the normal contact problem ``0 <= f, W f + a >= 0`` by dropping tensile contacts one at a time."""
    active, forces = list(range(len(free_accelerations))), np.zeros(len(free_accelerations))
    while active:
        trial_forces = np.linalg.lstsq(delassus[np.ix_(active, active)], -free_accelerations[active], rcond=RANK_RTOL)[
            0
        ]
        if trial_forces.min() > 0:
            forces[active] = trial_forces
            break
        active.pop(int(np.argmin(trial_forces)))
    return forces
