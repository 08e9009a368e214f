"""Quasi-velocities of a System: velocities of translational coordinates, and angular velocities of rigid bodies.

The twist of a body with directors has six entries (three in the plane): velocity of the centre and angular velocity.
All other coordinates use their time derivative. A step along a twist is a translation of translational coordinates and
a rotation of the directors by the exponential map, which preserves orthonormality.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import casadi as ca

from livens.models.director_bodies import DirectorBodyDofs, inertia_function
from livens.models.equations_of_motion import EquationsOfMotion, equations_of_motion
from livens.models.system import System
from livens.schemes.discretization.so3 import (
    cross,
    cross_in_space_or_plane,
    orthonormalize,
    perp,
    rotation_matrix,
    solve_3x3,
)
from livens.types import Expr


class QuasiVelocities:
    """Quasi-velocities u of a system: translational velocities first, then angular velocities, body by body."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.rotating_bodies = tuple(frame for frame in system.frames if frame.directors)
        director_dofs = {i for frame in self.rotating_bodies for director in frame.directors for i in director}
        #: Coordinates whose quasi-velocity is their time derivative, and their indices in u.
        self.translational = tuple(i for i in range(system.n) if i not in director_dofs)
        self.index_of = {i: j for j, i in enumerate(self.translational)}
        self.size = len(self.translational) + sum(frame.n_rot for frame in self.rotating_bodies)

    def rotational_blocks(self) -> Iterator[tuple[DirectorBodyDofs, slice]]:
        """Yield the rotating bodies with the slices of their angular velocities in u."""
        start = len(self.translational)
        for frame in self.rotating_bodies:
            yield frame, slice(start, start + frame.n_rot)
            start += frame.n_rot

    @functools.cached_property
    def dofs_of_coordinate(self) -> tuple[tuple[int, ...], ...]:
        """Indices in u of the quasi-velocities that change each coordinate."""
        dofs: dict[int, tuple[int, ...]] = {i: (j,) for i, j in self.index_of.items()}
        for frame, block in self.rotational_blocks():
            dofs |= {i: tuple(range(block.start, block.stop)) for director in frame.directors for i in director}
        return tuple(dofs[i] for i in range(self.system.n))

    # -- kinematics ---------------------------------------------------------------------------------------------------
    def from_qdot(self, q: Expr | ca.DM, v: Expr | ca.DM) -> Expr:
        """Return u from velocities of the coordinates: ``w = sum d_i x d_i' / 2``."""
        blocks = [v[list(self.translational)]]
        for frame, _ in self.rotational_blocks():
            pairs = [(q[list(d)], v[list(d)]) for d in frame.directors]
            blocks.append(sum((cross_in_space_or_plane(x, y) for x, y in pairs), ca.SX(0)) / 2)
        return ca.vertcat(*blocks)

    def to_qdot(self, q: Any, u: Any) -> Expr:
        """Return the velocities of all coordinates at q."""
        v = self._scatter_translational(u)
        for frame, block in self.rotational_blocks():
            for d in frame.directors:
                i = list(d)
                v[i] = cross(u[block], q[i]) if frame.dimension == 3 else u[block] * perp(q[i])
        return v

    def retract(self, q: Expr | ca.DM, step: Expr) -> Expr:
        """Return the coordinates after a step along u (retraction), with `step` = h u."""
        q1 = ca.SX(q) + self._scatter_translational(step)
        for frame, block in self.rotational_blocks():
            R = rotation_matrix(step[block])
            for d in frame.directors:
                i = list(d)
                q1[i] = R @ q[i]
        return q1

    def orthonormalize(self, q: Expr) -> Expr:
        """Restore the orthonormality of the directors to round-off."""
        for frame in self.rotating_bodies:
            D = ca.horzcat(*(q[list(d)] for d in frame.directors))
            for d, column in zip(frame.directors, ca.horzsplit(orthonormalize(D)), strict=True):
                q[list(d)] = column
        return q

    def generalized_force(self, q: Expr, force: Expr) -> Expr:
        """Return the generalized forces on u from forces on coordinates: ``tau = sum d_i x F_i``."""
        blocks = [force[list(self.translational)]]
        for frame, _ in self.rotational_blocks():
            pairs = [(q[list(d)], force[list(d)]) for d in frame.directors]
            blocks.append(sum((cross_in_space_or_plane(x, y) for x, y in pairs), ca.SX(0)))
        return ca.densify(ca.vertcat(*blocks))

    def _scatter_translational(self, u: Expr) -> Expr:
        v = ca.SX.zeros(self.system.n)
        v[list(self.translational)] = u[: len(self.translational)]
        return v

    # -- inertia ------------------------------------------------------------------------------------------------------
    @functools.cached_property
    def _dynamics(self) -> EquationsOfMotion:
        """Dynamics of the system, stored here so that all expressions share one set of symbols."""
        return equations_of_motion(self.system)

    @functools.cached_property
    def _mass(self) -> Expr:
        """Mass matrix of translational coordinates, in the symbols of the system's dynamics."""
        d, i = self._dynamics, list(self.translational)
        return ca.jacobian(d.fibre_derivative, d.v)[i, i]

    @functools.cached_property
    def has_constant_diagonal_mass(self) -> tuple[bool, ...]:
        """Mask of the entries of u with a constant, decoupled mass or inertia tensor, and without inertial forces.

        A coordinate of constant mass has inertial forces if masses of other coordinates depend on it, or if the
        kinetic energy has terms linear in v or of q alone.
        """
        d, M = self._dynamics, self._mass
        count = len(self.translational)
        mass_dependence = ca.jacobian_sparsity(ca.vec(ca.densify(M)), ca.vertcat(d.q, d.v))
        changing, is_constant_diagonal = set(mass_dependence.get_triplet()[0]), [True] * self.size
        for i, j in zip(*M.sparsity().get_triplet(), strict=True):
            if i != j or j * count + i in changing:
                is_constant_diagonal[i] = is_constant_diagonal[j] = False
        if changing or not self.system.homogeneous_kinetic_energy:
            for i in self._inertial_force.sparsity().row():
                is_constant_diagonal[i] = False
        return tuple(is_constant_diagonal)

    def diagonal_mass(self, k: Expr | ca.DM) -> Expr | ca.DM:
        """Return the diagonal masses of translational coordinates, valid for entries with constant diagonal mass."""
        d = self._dynamics
        diagonal = ca.Function("m", [d.q, d.v, d.k], [ca.densify(ca.diag(self._mass))])
        return diagonal(ca.DM.zeros(self.system.n), ca.DM.zeros(self.system.n), k)

    def mass_matrix(
        self, q: Expr | Sequence[float], v: Expr | Sequence[float] | ca.DM, k: Expr | ca.DM
    ) -> Expr | ca.DM:
        """Return the mass matrix of translational coordinates."""
        d = self._dynamics
        return ca.Function("M", [d.q, d.v, d.k], [self._mass])(q, v, k)

    def inertial_force(self, q: Expr, v: Expr, k: Expr) -> Expr:
        """Return ``dT/dq - (dT/dv)'`` without acceleration terms, of translational coordinates."""
        d = self._dynamics
        return ca.Function("c", [d.q, d.v, d.k], [ca.densify(self._inertial_force)])(q, v, k)

    @functools.cached_property
    def _inertial_force(self) -> Expr:
        """Inertial forces of translational coordinates, in the symbols of the system's dynamics."""
        d, i = self._dynamics, list(self.translational)
        return ca.sparsify((ca.gradient(d.T, d.q) - ca.jtimes(d.fibre_derivative, d.q, d.v))[i])

    def inertia_tensor(self, frame: DirectorBodyDofs, q: Expr, k: Expr | ca.DM) -> Expr:
        """Return the spatial inertia tensor; a scalar in the plane."""
        euler = self._euler_tensor(frame, k)
        if frame.dimension == 2:
            return ca.trace(euler)
        D = self.directors(frame, q)
        return ca.trace(euler) * ca.SX.eye(3) - D @ euler @ D.T

    def body_inertia_tensor(self, frame: DirectorBodyDofs, k: Expr) -> Expr:
        """Return the inertia tensor of a body in space, in the frame of its directors."""
        euler = self._euler_tensor(frame, k)
        return ca.trace(euler) * ca.SX.eye(3) - euler

    def _euler_tensor(self, frame: DirectorBodyDofs, k: Any) -> Any:
        parameter_dofs = list(self.system.element_parameters[frame.element_index])
        return inertia_function(self.system, frame)(k[parameter_dofs])[1]

    def accelerations(self, q: Expr, u: Expr, force: Expr, k: Expr | ca.DM, gyroscopic: bool) -> Expr:
        """Return ``M^-1 F`` for entries with constant diagonal mass, and F for all others, which need a solve."""
        constant_diagonal, masses = self.has_constant_diagonal_mass, self.diagonal_mass(k)
        accelerations = [
            force[j] / masses[j] if constant_diagonal[j] else force[j] for j in range(len(self.translational))
        ]
        for frame, block in self.rotational_blocks():
            tensor, torque = self.inertia_tensor(frame, q, k), force[block]
            if frame.dimension == 3 and gyroscopic:
                torque = torque - cross(u[block], tensor @ u[block])
            accelerations.append(solve_3x3(tensor, torque) if frame.dimension == 3 else torque / tensor)
        return ca.vertcat(*accelerations)

    def explicit_rates(self, q: Expr, force: Expr, k: Expr) -> Expr:
        """Return `accelerations` without gyroscopic terms, but torques for bodies in space.

        The angular momentum of a body in space has the rate of change ``l' = tau``.
        """
        rates = ca.SX(self.accelerations(q, ca.SX.zeros(self.size), force, k, gyroscopic=False))
        for _, block in self.spatial_blocks():
            rates[block] = force[block]
        return rates

    def spatial_blocks(self) -> Iterator[tuple[DirectorBodyDofs, slice]]:
        """Yield the rotating bodies in space with the slices of their angular velocities in u."""
        for frame, block in self.rotational_blocks():
            if frame.dimension == 3:
                yield frame, block

    def directors(self, frame: DirectorBodyDofs, q: Expr) -> Expr:
        """Return the directors of a body as columns."""
        return ca.horzcat(*(q[list(d)] for d in frame.directors))

    def momenta(self, q: Expr, v: Expr | ca.DM, k: Expr | ca.DM) -> Expr:
        """Return the momenta of all coordinates."""
        d = self._dynamics
        return ca.Function("p", [d.q, d.v, d.k], [ca.densify(d.fibre_derivative)])(q, v, k)

    def from_momenta(self, q: Expr, p: Expr, k: ca.DM) -> Expr:
        """Return u from the momenta of all coordinates."""
        zero_velocity = ca.DM.zeros(self.system.n)
        translational_momenta = (p - self.momenta(q, zero_velocity, k))[list(self.translational)]
        blocks = [
            translational_momenta / self.diagonal_mass(k)
            if all(self.has_constant_diagonal_mass)
            else ca.solve(self.mass_matrix(q, zero_velocity, k), translational_momenta)
        ]
        for frame, _ in self.rotational_blocks():
            angular_momentum = sum((cross_in_space_or_plane(q[list(d)], p[list(d)]) for d in frame.directors), ca.SX(0))
            tensor = self.inertia_tensor(frame, q, k)
            blocks.append(solve_3x3(tensor, angular_momentum) if frame.dimension == 3 else angular_momentum / tensor)
        return ca.vertcat(*blocks)


@functools.lru_cache(maxsize=32)
def quasi_velocities(system: System) -> QuasiVelocities:
    """Return the quasi-velocities of a system, cached."""
    return QuasiVelocities(system)
