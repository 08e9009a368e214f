"""Linear stability limit of the step size for explicit forces: theorem 3 of S003 paper V for all velocities."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from livens.errors import InputError
from livens.models.system import System
from livens.schemes.recipes.maps import phase_of
from livens.schemes.recipes.split_forces import Ahead, split_forces
from livens.schemes.recipes.twists import twists

#: Number of bisections, which is the number of binary digits of the limit.
_HALVINGS = 12


def slopes(model: Any, q: np.ndarray, v: np.ndarray, t: float, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ``-K`` and ``-C``: Jacobians of the accelerations by expensive forces in positions and velocities."""
    if isinstance(model, System) and not ("phase space" in model.forms and model.constant_mass):
        forces, bodies = split_forces(model), twists(model)
        way, u, at = ca.SX.sym("way", bodies.size), ca.SX.sym("u", bodies.size), ca.DM(q)
        there = bodies.moved(at, way)
        pushed = forces.pushed(forces.expensive, there, u, t, ca.DM(k))
        a = bodies.accelerations(there, u, pushed.force, ca.DM(k), gyroscopic=True)
        rate = ca.evalf(bodies.twist(at, ca.DM(v)))
        here = np.zeros(bodies.size), np.array(rate).ravel()
        found = ca.Function("slopes", [way, u], [ca.jacobian(a, way), ca.jacobian(a, u)])(*here)
    else:
        phase = phase_of(model)
        if phase.box is not None:
            raise InputError(
                "the stable step size with an external force cannot be estimated, as it has no derivatives; pass h"
            )
        a = phase.inverse_mass @ phase.A
        symbols = [phase.q, phase.v, phase.t, phase.k]
        found = ca.Function("slopes", symbols, [ca.jacobian(a, phase.q), ca.jacobian(a, phase.v)])(q, v, t, k)
    by_q, by_v = (np.array(one) for one in found)
    return by_q, by_v


def longest_stable(by_q: np.ndarray, by_v: np.ndarray, ahead: Ahead) -> float:
    """Return the longest step for which no alternating mode of the linearized motion grows.

    Cheap forces do not reduce it if they are evaluated at the midpoint of a step or later (theorem 6).
    """
    if not (np.isfinite(by_q).all() and np.isfinite(by_v).all()):
        return np.inf
    stiff, damped = (float(np.abs(np.linalg.eigvals(matrix)).max(initial=0.0)) for matrix in (by_q, by_v))
    if not stiff + damped:
        return np.inf
    # the limits of stiffness only, 2/sqrt(k), and of damping only, 2/c
    alone = min(2 / np.sqrt(stiff) if stiff else np.inf, 2 / damped if damped else np.inf)
    low, high = 1e-3 * alone, 2 * alone
    if _stable(by_q, by_v, high, ahead):
        return np.inf
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _stable(by_q, by_v, middle, ahead) else (low, middle)
    return float(low)


def _stable(by_q: np.ndarray, by_v: np.ndarray, h: float, ahead: Ahead) -> bool:
    """Return True if no eigenvalue with negative real part exceeds 1 in modulus.

    The variables are positions over h, velocities, and the last velocity increment, so that all have one unit.
    """
    n = len(by_q)
    one, none = np.eye(n), np.zeros((n, n))
    stiff, damped = h * h * by_q, h * by_v
    if ahead.alpha:
        on = np.hstack([stiff, ahead.alpha * stiff + damped, ahead.alpha * damped if ahead.extrapolated else none])
        step = np.vstack([np.hstack([one, one, none]) + on / 2, np.hstack([none, one, none]) + on, on])
    else:  # half kick, drift, half kick
        kick = np.block([[one, none], [stiff / 2, one + damped / 2]])
        step = kick @ np.block([[one, one], [none, one]]) @ kick
    values = np.linalg.eigvals(step)
    return bool(np.abs(values[values.real < 0]).max(initial=0.0) <= 1 + 1e-9)
