"""Where coordinates without mass may start: forces along them have to balance, and go on to do so.

Along a direction w with ``M w = 0`` and ``G w = 0`` no acceleration and no multiplier enters the equations of motion
``M a + G^T lam = f``: they say ``w^T f(q, v, t) = 0`` there. Where a damper acts along w, this gives the velocity along
w. Elsewhere it is a constraint on the position, whose rate in turn is one on the velocity. A run that starts beside
them does not come back: energy-conserving schemes step from one side of the balance to the other for ever.
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

#: Forces and rates up to this size, relative to what enters them, count as rounding of the given values.
TOLERANCE = 1e-10
Onto = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
#: Singular values below this size, relative to the largest, count as zero.
_RANK = 1e-11
#: Nothing is known to more digits than this part of the largest numbers that it comes from.
_SHARED = 1e-14
_TRIALS = 60


@functools.lru_cache(maxsize=16)
def _evaluator(d: Dynamics) -> Evaluator:
    """M, G, f and how f depends on q and v, and the rates of M, G and f along a motion with velocity v."""
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
    """A basis of all x with ``A x = 0``, as columns; rows count by their directions, not by their units."""
    size = np.abs(A).max(axis=1, initial=0.0)
    rows = A[size > 0] / size[size > 0, None]
    if not rows.size:
        return np.eye(A.shape[1])
    _, values, right = np.linalg.svd(rows)
    return np.asarray(right[int((values > _RANK * values[0]).sum()) :].T)


def _largest(A: np.ndarray) -> float:
    return float(np.abs(A).max(initial=0.0))


def _split(A: np.ndarray, size: float) -> tuple[np.ndarray, np.ndarray]:
    """The pseudo-inverse of A, and a basis of all y with ``y^T A = 0``, as columns.

    A comes from numbers of this size, beside which what round-off leaves of it is nothing.
    """
    left, values, right = np.linalg.svd(A)
    rank = int((values > _RANK * size).sum())
    return (right[:rank].T / values[:rank]) @ left[:, :rank].T, left[:, rank:]


@dataclass(frozen=True)
class _Gap:
    """What is left of the forces along directions without mass, or of their rate, and what of it means nothing."""

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
    """The conditions at one time, with one set of parameters."""

    def __init__(self, system: System, t: float, k: np.ndarray, onto: Onto) -> None:
        self.system, self._t, self._k, self._onto = system, t, k, onto
        self._at = _evaluator(dynamics(system))

    def _forces(self, q: np.ndarray, v: np.ndarray) -> tuple[_Gap, np.ndarray, np.ndarray]:
        """The gap of the forces, and how positions and velocities along its directions close it."""
        M, G, f, by_q, by_v, *_ = self._at(q, v, self._t, self._k)
        W = _null(np.vstack([M, G]))
        on_q, on_v = W.T @ by_q, W.T @ by_v
        terms = np.abs(on_q) @ np.abs(q) + np.abs(on_v) @ np.abs(v) + np.abs(W).T @ np.abs(f.ravel())
        terms += _SHARED / TOLERANCE * (_largest(by_q) * _largest(q) + _largest(by_v) * _largest(v) + _largest(f))
        damping, undamped = _split(on_v @ W, _largest(by_v))
        stiffness = _split(undamped.T @ on_q @ W, _largest(by_q))[0] @ undamped.T
        return _Gap(W, W.T @ f.ravel(), TOLERANCE * terms), W @ stiffness, W @ damping

    def _rates(self, q: np.ndarray, v: np.ndarray) -> tuple[_Gap, np.ndarray]:
        """The gap of the rates of forces that no damper holds in balance, and how velocities along them close it."""
        M, G, f, by_q, by_v, M_rate, G_rate, f_rate, bias = self._at(q, v, self._t, self._k)
        N, right = np.vstack([M, G]), np.concatenate([f.ravel(), bias.ravel()])
        W = _null(N)
        undamped = W @ _split(W.T @ by_v @ W, _largest(by_v))[1]
        n = self.system.n
        A = np.block([[M, G.T], [G, np.zeros((G.shape[0], G.shape[0]))]])
        a = np.linalg.lstsq(A, right, rcond=_RANK)[0][:n]
        # the directions turn with the motion: N w = 0 all the time
        turning = -np.linalg.lstsq(N, np.vstack([M_rate, G_rate]) @ undamped, rcond=_RANK)[0]
        value = turning.T @ f.ravel() + undamped.T @ (f_rate.ravel() + by_v @ a)
        terms = np.abs(undamped.T @ by_q) @ np.abs(v) + np.abs(undamped.T @ by_v) @ np.abs(a)
        terms += np.abs(turning).T @ np.abs(f.ravel()) + np.abs(undamped).T @ np.abs(f_rate.ravel())
        terms += _SHARED / TOLERANCE * (_largest(by_q) * _largest(v) + _largest(by_v) * _largest(a))
        stiffness = _split(undamped.T @ by_q @ undamped, _largest(by_q))[0]
        return _Gap(undamped, value, TOLERANCE * terms), undamped @ stiffness

    # -- moving a start ------------------------------------------------------------------------------------------------
    def near(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """A balanced state: positions and velocities are moved along the directions without mass only.

        Nothing if there is none: where the forces do not depend on those coordinates.
        """
        for _ in range(_TRIALS):
            gap, by_position, by_velocity = self._forces(q, v)
            if not np.isfinite(gap.value).all():
                return None
            before = q, v
            try:  # a balance is looked for along the constraints, which may be curved
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

    # -- for users -----------------------------------------------------------------------------------------------------
    def checked(self, q: np.ndarray, v: np.ndarray, project: bool) -> tuple[np.ndarray, np.ndarray]:
        """The start itself if forces balance in it, a balanced one nearby with `project`, and else a sentence."""
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
            f"do not balance: {left} is left" if rates is None else f"leave their balance with v0 at a rate of {left}"
        )
        if found is None:
            raise InputError(f"inconsistent initial values: {what}, and no balance was found nearby")
        offered = ", ".join(
            f"{name} = ({', '.join(f'{x:.9g}' for x in values[:12])}{', ...' if values.size > 12 else ''})"
            for name, values, given in (("q0", found[0], q), ("v0", found[1], v))
            if not np.array_equal(values, given)
        )
        raise InputError(
            f"inconsistent initial values: {what}; they balance with {offered}; pass project=True to start there"
        )


def balanced(
    system: System, q: np.ndarray, v: np.ndarray, t: float, k: np.ndarray, project: bool, onto: Onto
) -> tuple[np.ndarray, np.ndarray]:
    """The start of a system that may have coordinates without mass, checked, and on request moved.

    `onto` moves positions and velocities onto the constraints.
    """
    if system.frames or not system.quadratic_kinetic_energy or not (system.constant_mass or not system.regular_mass):
        return q, v  # a mass that vanishes at single positions or velocities only says nothing about forces
    return Balance(system, t, k, onto).checked(q, v, project)
