"""Quasi-velocities of a System: velocities of translational coordinates, and angular velocities of rigid bodies.

The twist of a body with directors has six entries (three in the plane): velocity of the centre and angular velocity.
All other coordinates use their time derivative. A step along a twist is a translation of translational coordinates and
a rotation of the directors by the exponential map, which preserves orthonormality.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import casadi as ca

from livens.models.frames import Frame, mass_and_euler
from livens.models.summed import Dynamics, dynamics
from livens.models.system import System
from livens.schemes.recipes.frame_bodies import cross, quarter, solved


class Twists:
    """Quasi-velocities u of a system: translational velocities first, then angular velocities, body by body."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.turning = tuple(frame for frame in system.frames if frame.directors)
        inside = {i for frame in self.turning for director in frame.directors for i in director}
        #: Coordinates whose quasi-velocity is their time derivative, and their indices in u.
        self.plain = tuple(i for i in range(system.n) if i not in inside)
        self.place = {i: j for j, i in enumerate(self.plain)}
        self.size = len(self.plain) + sum(frame.turning for frame in self.turning)

    def rates(self) -> Iterator[tuple[Frame, slice]]:
        """Yield the rotating bodies with the slices of their angular velocities in u."""
        first = len(self.plain)
        for frame in self.turning:
            yield frame, slice(first, first + frame.turning)
            first += frame.turning

    @functools.cached_property
    def of_coordinate(self) -> tuple[tuple[int, ...], ...]:
        """Indices in u of the quasi-velocities that change each coordinate."""
        found: dict[int, tuple[int, ...]] = {i: (j,) for i, j in self.place.items()}
        for frame, own in self.rates():
            found |= {i: tuple(range(own.start, own.stop)) for director in frame.directors for i in director}
        return tuple(found[i] for i in range(self.system.n))

    # -- kinematics ---------------------------------------------------------------------------------------------------
    def twist(self, q: Any, v: Any) -> Any:
        """Return u from velocities of the coordinates: ``w = sum d_i x d_i' / 2``."""
        parts = [v[list(self.plain)]]
        for frame, _ in self.rates():
            pairs = [(q[list(d)], v[list(d)]) for d in frame.directors]
            parts.append(sum((_turn(x, y) for x, y in pairs), ca.SX(0)) / 2)
        return ca.vertcat(*parts)

    def lifted(self, q: Any, u: Any) -> Any:
        """Return the velocities of all coordinates at q."""
        v = self._spread(u)
        for frame, own in self.rates():
            for d in frame.directors:
                i = list(d)
                v[i] = cross(u[own], q[i]) if frame.dimension == 3 else u[own] * quarter(q[i])
        return v

    def moved(self, q: Any, step: Any) -> Any:
        """Return the coordinates after a step along u (retraction), with `step` = h u."""
        found = ca.SX(q) + self._spread(step)
        for frame, own in self.rates():
            turn = rotation(step[own])
            for d in frame.directors:
                i = list(d)
                found[i] = turn @ q[i]
        return found

    def straightened(self, q: Any) -> Any:
        """Restore the orthonormality of the directors to round-off."""
        for frame in self.turning:
            D = ca.horzcat(*(q[list(d)] for d in frame.directors))
            D = D @ (3 * ca.SX.eye(len(frame.directors)) - D.T @ D) / 2
            for d, column in zip(frame.directors, ca.horzsplit(D), strict=True):
                q[list(d)] = column
        return q

    def contracted(self, q: Any, force: Any) -> Any:
        """Return the generalized forces on u from forces on coordinates: ``tau = sum d_i x F_i``."""
        parts = [force[list(self.plain)]]
        for frame, _ in self.rates():
            pairs = [(q[list(d)], force[list(d)]) for d in frame.directors]
            parts.append(sum((_turn(x, y) for x, y in pairs), ca.SX(0)))
        return ca.densify(ca.vertcat(*parts))

    def _spread(self, u: Any) -> Any:
        v = ca.SX.zeros(self.system.n)
        v[list(self.plain)] = u[: len(self.plain)]
        return v

    # -- inertia ------------------------------------------------------------------------------------------------------
    @functools.cached_property
    def _dynamics(self) -> Dynamics:
        """Dynamics of the system, stored here so that all expressions share one set of symbols."""
        return dynamics(self.system)

    @functools.cached_property
    def _mass(self) -> Any:
        """Mass matrix of translational coordinates, in the symbols of the system's dynamics."""
        d, i = self._dynamics, list(self.plain)
        return ca.jacobian(d.fibre_derivative, d.v)[i, i]

    @functools.cached_property
    def simple(self) -> tuple[bool, ...]:
        """Mask of the entries of u with a constant, decoupled mass or inertia tensor."""
        d, M, count = self._dynamics, self._mass, len(self.plain)
        slopes = ca.jacobian_sparsity(ca.vec(ca.densify(M)), ca.vertcat(d.q, d.v))
        changing, good = set(slopes.get_triplet()[0]), [True] * self.size
        for i, j in zip(*M.sparsity().get_triplet(), strict=True):
            if i != j or j * count + i in changing:
                good[i] = good[j] = False
        return tuple(good)

    def masses(self, k: Any) -> Any:
        """Return the diagonal masses of translational coordinates, valid for entries with constant diagonal mass."""
        d = self._dynamics
        diagonal = ca.Function("m", [d.q, d.v, d.k], [ca.densify(ca.diag(self._mass))])
        return diagonal(ca.DM.zeros(self.system.n), ca.DM.zeros(self.system.n), k)

    def mass_matrix(self, q: Any, v: Any, k: Any) -> Any:
        """Return the mass matrix of translational coordinates."""
        d = self._dynamics
        return ca.Function("M", [d.q, d.v, d.k], [self._mass])(q, v, k)

    def inertial_force(self, q: Any, v: Any, k: Any) -> Any:
        """Return ``dT/dq - (dT/dv)'`` without acceleration terms, of translational coordinates."""
        d, i = self._dynamics, list(self.plain)
        force = ca.gradient(d.T, d.q) - ca.jtimes(d.fibre_derivative, d.q, d.v)
        return ca.Function("c", [d.q, d.v, d.k], [ca.densify(force[i])])(q, v, k)

    def tensor(self, frame: Frame, q: Any, k: Any) -> Any:
        """Return the spatial inertia tensor; a scalar in the plane."""
        where = list(self.system.parameter_indices[frame.element])
        _, euler = mass_and_euler(self.system, frame)(k[where])
        if frame.dimension == 2:
            return ca.trace(euler)
        D = ca.horzcat(*(q[list(d)] for d in frame.directors))
        return ca.trace(euler) * ca.SX.eye(3) - D @ euler @ D.T

    def accelerations(self, q: Any, u: Any, force: Any, k: Any, gyroscopic: bool) -> Any:
        """Return ``M^-1 F`` for entries with constant diagonal mass, and F for all others, which need a solve."""
        simple, masses = self.simple, self.masses(k)
        found = [force[j] / masses[j] if simple[j] else force[j] for j in range(len(self.plain))]
        for frame, own in self.rates():
            tensor, torque = self.tensor(frame, q, k), force[own]
            if frame.dimension == 3 and gyroscopic:
                torque = torque - cross(u[own], tensor @ u[own])
            found.append(solved(tensor, torque) if frame.dimension == 3 else torque / tensor)
        return ca.vertcat(*found)

    def momenta(self, q: Any, v: Any, k: Any) -> Any:
        """Return the momenta of all coordinates."""
        d = self._dynamics
        return ca.Function("p", [d.q, d.v, d.k], [ca.densify(d.fibre_derivative)])(q, v, k)

    def of_momenta(self, q: Any, p: Any, k: Any) -> Any:
        """Return u from the momenta of all coordinates."""
        still = ca.DM.zeros(self.system.n)
        own = (p - self.momenta(q, still, k))[list(self.plain)]
        parts = [own / self.masses(k) if all(self.simple) else ca.solve(self.mass_matrix(q, still, k), own)]
        for frame, _ in self.rates():
            spin = sum((_turn(q[list(d)], p[list(d)]) for d in frame.directors), ca.SX(0))
            tensor = self.tensor(frame, q, k)
            parts.append(solved(tensor, spin) if frame.dimension == 3 else spin / tensor)
        return ca.vertcat(*parts)


def _turn(x: Any, y: Any) -> Any:
    """Return ``x x y``; a scalar in the plane."""
    return cross(x, y) if x.numel() == 3 else x[0] * y[1] - x[1] * y[0]


def rotation(angle: Any) -> Any:
    """Return the rotation matrix ``exp(skew(angle))``, by Rodrigues' formula."""
    square = ca.dot(angle, angle)
    if angle.numel() == 1:
        c, s = ca.cos(angle), ca.sin(angle)
        return ca.vertcat(ca.horzcat(c, -s), ca.horzcat(s, c))
    short = square < 1e-3
    size = ca.sqrt(ca.if_else(short, 1, square))
    # sin(a)/a and (1 - cos(a))/a^2, by their series for small angles
    first = ca.if_else(short, 1 - square / 6 * (1 - square / 20 * (1 - square / 42)), ca.sin(size) / size)
    half = ca.sin(size / 2) / size
    second = ca.if_else(short, (1 - square / 12 * (1 - square / 30 * (1 - square / 56))) / 2, 2 * half * half)
    hat = ca.skew(angle)
    return ca.SX.eye(3) + first * hat + second * (hat @ hat)


@functools.lru_cache(maxsize=32)
def twists(system: System) -> Twists:
    """Return the quasi-velocities of a system, cached."""
    return Twists(system)
