"""Static equilibrium by Newton's method with an energy line search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from livens.errors import InputError
from livens.models.summed import dynamics
from livens.models.system import System
from livens.multibody.assembly import Assembly, Motion, null_space

#: Largest number of iterations, largest step (rad, m), relative force tolerance, largest number of step halvings.
_STEPS, _STRIDE, _STILL, _HALVINGS = 200, 0.3, 1e-9, 30


@dataclass(frozen=True)
class Equilibrium:
    """Static equilibrium.

    Parameters
    ----------
    position : ndarray of shape (n,)
        Coordinates of the system.
    residual : float
        Largest remaining generalised force in the directions that the joints allow.
    stable : bool
        Whether the potential energy has a minimum on the constraint manifold. For forces without a potential, the
        symmetric part of the tangent stiffness at rest decides.
    iterations : int
        Number of Newton iterations.
    """

    position: np.ndarray
    residual: float
    stable: bool
    steps: int


class Statics:
    """Static residual and tangent stiffness of a system in twist coordinates."""

    def __init__(self, system: System, motion: Motion) -> None:
        self.system, self.motion = system, motion
        d = dynamics(system)
        still = ca.SX.zeros(system.n)
        q, y = ca.SX.sym("q", system.n), ca.SX.sym("y", motion.size)
        lam = ca.SX.sym("lam", system.m) if system.m else ca.SX(0, 1)
        force = d.F - ca.gradient(d.R, d.v) - ca.gradient(d.V, d.q)
        acting = ca.Function("force", [d.q, d.t, d.k], [ca.substitute(force, d.v, still), d.V, d.G])
        moved = self._moved(q, y)
        f, V, _ = acting(moved, d.t, d.k)
        G = acting(moved, d.t, d.k)[2]
        spread = ca.jacobian(moved, y)
        # the retraction is accurate to second order, so forces and their derivatives at y = 0 are exact
        balance = spread.T @ (f - G.T @ lam) if system.m else spread.T @ f
        rows = [balance, ca.jacobian(balance, y), V]
        at_zero = [ca.densify(ca.substitute(row, y, ca.SX.zeros(motion.size))) for row in rows]
        self._function = ca.Function("statics", [q, lam, d.t, d.k], at_zero)
        self._k = system.parameter_vector()

    def at(self, q: np.ndarray, lam: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Return generalised forces, their Jacobian, and the potential energy."""
        balance, slopes, V = self._function(q, lam, 0.0, self._k)
        return np.array(balance).ravel(), np.array(slopes), float(V)

    def _moved(self, q: Any, y: Any) -> Any:
        """Return the coordinates after a small motion, accurate to second order (retraction)."""
        new, first = ca.SX(q), 0
        for frame in self.motion.frames:
            d, turning = frame.dimension, frame.turning
            new[list(frame.position)] += y[first : first + d]
            w = y[first + d : first + d + turning]
            for director in frame.directors:
                x = q[list(director)]
                once = ca.cross(w, x) if d == 3 else w * ca.vertcat(-x[1], x[0])
                twice = ca.cross(w, once) if d == 3 else -(w**2) * x
                new[list(director)] = x + once + twice / 2
            first += d + turning
        return new


def equilibrium(system: System, assembly: Assembly) -> Equilibrium:
    """Solve for a static equilibrium by Newton's method in the null space of the constraints, with |stiffness|."""
    statics, motion = Statics(system, assembly.motion), assembly.motion
    q = assembly.position
    between = list(motion.constraints)
    lam, downhill = np.zeros(system.m), not any(model.F.nnz() for model in system.models)
    for step in range(_STEPS):
        rows = assembly.rows(q)
        free = null_space(rows)
        force, _, V = statics.at(q, np.zeros(system.m))
        if between:
            lam[between] = np.linalg.lstsq(rows.T, force, rcond=1e-9)[0]
        balance, slopes, _ = statics.at(q, lam)
        push, stiffness = free.T @ balance, -(free.T @ slopes @ free)
        scale = max(1.0, float(np.abs(force).max(initial=0.0)))
        values, vectors = np.linalg.eigh((stiffness + stiffness.T) / 2) if free.shape[1] else (np.zeros(0), free)
        if np.abs(push).max(initial=0.0) <= _STILL * scale:
            least = 1e-9 * max(1.0, float(np.abs(values).max(initial=0.0)))
            return Equilibrium(q, float(np.abs(push).max(initial=0.0)), bool(np.all(values > -least)), step)
        floor = 1e-6 * max(float(np.abs(values).max()), 1e-12)
        y = free @ (vectors @ ((vectors.T @ push) / np.maximum(np.abs(values), floor)))
        y *= min(1.0, _STRIDE / float(np.abs(y).max()))
        q = _downhill(statics, assembly, q, y, V) if downhill else assembly.closed(motion.moved(q, y))
    raise InputError(
        f"no equilibrium found in {_STEPS} iterations: the forces may have none, or it is far from the initial "
        "configuration; set other initial values"
    )


def _downhill(statics: Statics, assembly: Assembly, q: np.ndarray, y: np.ndarray, energy: float) -> np.ndarray:
    """Return a step that lowers the energy, by step halving (line search)."""
    found, none = q, np.zeros(statics.system.m)
    for _ in range(_HALVINGS):
        found = assembly.closed(assembly.motion.moved(q, y))
        if statics.at(found, none)[2] <= energy:
            break
        y = y / 2
    return found
