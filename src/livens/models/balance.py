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
from livens.models.summed import Dynamics, dynamics
from livens.models.system import System

#: Relative tolerance of forces and their time derivatives, with respect to the magnitude of their terms.
TOLERANCE = 1e-10
Onto = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
#: Relative rank tolerance of singular values, with respect to the largest one.
_RANK = 1e-11
#: Absolute tolerance, relative to the largest entries of the terms.
_SHARED = 1e-14
_TRIALS = 60


@functools.lru_cache(maxsize=16)
def _evaluator(d: Dynamics) -> Evaluator:
    """Return the evaluator of M, G, f, df/dq, df/dv and the time derivatives of M, G and f along the motion."""
    matrix, right = d.acceleration_system
    n = d.system.n
    M, f = matrix[:n, :n], ca.densify(right[:n])

    def rate(of: ca.SX) -> ca.SX:
        flat = ca.vec(ca.densify(of))
        return ca.reshape(ca.jtimes(flat, d.q, d.v) + ca.jacobian(flat, d.t), of.shape[0], of.shape[1])

    by_q, by_v = ca.jacobian(f, d.q), ca.jacobian(f, d.v)
    outputs = [M, d.G, f, by_q, by_v, rate(M), rate(d.G), rate(f), right[n:]]
    return Evaluator([d.q, d.v, d.t, d.k], outputs)


def _null(A: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the null space of A as columns, after row equilibration."""
    size = np.abs(A).max(axis=1, initial=0.0)
    rows = A[size > 0] / size[size > 0, None]
    if not rows.size:
        return np.eye(A.shape[1])
    _, values, right = np.linalg.svd(rows)
    return np.asarray(right[int((values > _RANK * values[0]).sum()) :].T)


def _largest(A: np.ndarray) -> float:
    return float(np.abs(A).max(initial=0.0))


def _split(A: np.ndarray, size: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the pseudo-inverse of A and an orthonormal basis of its left null space as columns.

    `size` is the magnitude of the entries A was computed from; the rank tolerance is relative to it.
    """
    left, values, right = np.linalg.svd(A)
    rank = int((values > _RANK * size).sum())
    return (right[:rank].T / values[:rank]) @ left[:, :rank].T, left[:, rank:]


@dataclass(frozen=True)
class _Gap:
    """Residual forces along massless directions (or their time derivative) with a roundoff tolerance."""

    directions: np.ndarray
    value: np.ndarray
    allowed: np.ndarray

    @property
    def closed(self) -> bool:
        return bool((np.abs(self.value) <= self.allowed).all())

    @property
    def worst(self) -> int:
        return int(np.argmax(np.abs(self.value) - self.allowed))


def _close(one: np.ndarray, other: np.ndarray) -> bool:
    return bool(np.abs(one - other).max() <= 1e-15 * (1 + np.abs(other).max()))


class Balance:
    """Equilibrium conditions of massless coordinates at one time and for one parameter vector."""

    def __init__(self, system: System, t: float, k: np.ndarray, onto: Onto) -> None:
        self.system, self._t, self._k, self._onto = system, t, k, onto
        self._at = _evaluator(dynamics(system))

    def _forces(self, q: np.ndarray, v: np.ndarray) -> tuple[_Gap, np.ndarray, np.ndarray]:
        """Return the force residual and the position and velocity corrections that remove it."""
        M, G, f, by_q, by_v, *_ = self._at(q, v, self._t, self._k)
        W = _null(np.vstack([M, G]))
        on_q, on_v = W.T @ by_q, W.T @ by_v
        terms = np.abs(on_q) @ np.abs(q) + np.abs(on_v) @ np.abs(v) + np.abs(W).T @ np.abs(f.ravel())
        terms += _SHARED / TOLERANCE * (_largest(by_q) * _largest(q) + _largest(by_v) * _largest(v) + _largest(f))
        damping, undamped = _split(on_v @ W, _largest(by_v))
        stiffness = _split(undamped.T @ on_q @ W, _largest(by_q))[0] @ undamped.T
        return _Gap(W, W.T @ f.ravel(), TOLERANCE * terms), W @ stiffness, W @ damping

    def _rates(self, q: np.ndarray, v: np.ndarray) -> tuple[_Gap, np.ndarray]:
        """Return the time derivative of the undamped force residual and the velocity correction that removes it."""
        M, G, f, by_q, by_v, M_rate, G_rate, f_rate, bias = self._at(q, v, self._t, self._k)
        N, right = np.vstack([M, G]), np.concatenate([f.ravel(), bias.ravel()])
        W = _null(N)
        undamped = W @ _split(W.T @ by_v @ W, _largest(by_v))[1]
        n = self.system.n
        A = np.block([[M, G.T], [G, np.zeros((G.shape[0], G.shape[0]))]])
        a = np.linalg.lstsq(A, right, rcond=_RANK)[0][:n]
        # the null directions change along the motion: d/dt (N w) = 0
        turning = -np.linalg.lstsq(N, np.vstack([M_rate, G_rate]) @ undamped, rcond=_RANK)[0]
        value = turning.T @ f.ravel() + undamped.T @ (f_rate.ravel() + by_v @ a)
        terms = np.abs(undamped.T @ by_q) @ np.abs(v) + np.abs(undamped.T @ by_v) @ np.abs(a)
        terms += np.abs(turning).T @ np.abs(f.ravel()) + np.abs(undamped).T @ np.abs(f_rate.ravel())
        terms += _SHARED / TOLERANCE * (_largest(by_q) * _largest(v) + _largest(by_v) * _largest(a))
        stiffness = _split(undamped.T @ by_q @ undamped, _largest(by_q))[0]
        return _Gap(undamped, value, TOLERANCE * terms), undamped @ stiffness

    # -- projection ---------------------------------------------------------------------------------------------------
    def near(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Return a state in equilibrium, moved along massless directions only; None if there is none nearby.

        There is none if the forces do not depend on the massless coordinates.
        """
        for _ in range(_TRIALS):
            gap, by_position, by_velocity = self._forces(q, v)
            if not np.isfinite(gap.value).all():
                return None
            before = q, v
            try:  # the equilibrium is sought on the constraint manifold, which may be curved
                q, v = self._onto(q - by_position @ gap.value, v - by_velocity @ gap.value)
            except InputError:
                return None
            if _close(before[0], q) and _close(before[1], v):
                break
        for _ in range(_TRIALS):
            rate, by_velocity = self._rates(q, v)
            if not np.isfinite(rate.value).all():
                return None
            slower, v = v, v - by_velocity @ rate.value
            if _close(slower, v):
                break
        return (q, v) if self._forces(q, v)[0].closed and self._rates(q, v)[0].closed else None

    # -- check --------------------------------------------------------------------------------------------------------
    def checked(self, q: np.ndarray, v: np.ndarray, project: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return the state if it is in equilibrium, or its projection with `project`; raise InputError otherwise."""
        forces = self._forces(q, v)[0]
        rates = self._rates(q, v)[0] if forces.closed else None
        if rates is not None and rates.closed:
            return q, v
        found = self.near(q, v)
        if project and found is not None:
            return found
        gap = forces if rates is None else rates
        along = gap.directions[:, gap.worst]
        names = [self.system.coordinates[i] for i in np.flatnonzero(np.abs(along) > 0.1 * np.abs(along).max())]
        quoted = ", ".join(f"'{name}'" for name in names[:4])
        where = quoted if len(names) == 1 else f"a combination of {quoted}"
        left = f"{abs(gap.value[gap.worst]):.3g}"
        what = f"{where} has no mass, and the forces along it "
        what += (
            f"are not in equilibrium: residual {left}" if rates is None else f"leave equilibrium with v0: rate {left}"
        )
        if found is None:
            raise InputError(f"inconsistent initial values: {what}, and no equilibrium was found nearby")
        offered = ", ".join(
            f"{name} = ({', '.join(f'{x:.9g}' for x in values[:12])}{', ...' if values.size > 12 else ''})"
            for name, values, given in (("q0", found[0], q), ("v0", found[1], v))
            if not np.array_equal(values, given)
        )
        raise InputError(
            f"inconsistent initial values: {what}; equilibrium holds for {offered}; pass project=True to start there"
        )


def balanced(
    system: System, q: np.ndarray, v: np.ndarray, t: float, k: np.ndarray, project: bool, onto: Onto
) -> tuple[np.ndarray, np.ndarray]:
    """Return initial values that satisfy the equilibrium of massless coordinates: checked, or projected on request.

    `project_constraints` projects positions and velocities onto the constraints.
    """
    if system.frames or not system.quadratic_kinetic_energy or not (system.constant_mass or not system.regular_mass):
        return q, v  # a mass that vanishes at isolated states only gives no condition on the forces
    return Balance(system, t, k, onto).checked(q, v, project)
