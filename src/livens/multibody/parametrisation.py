"""Kinematic parametrisation of bodies: points, velocities and generalised forces as functions of the coordinates.

Parametrisations are values: equal ones are interchangeable, so that elements built on them share their functions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from livens import math as m
from livens import rotations as rot
from livens.types import ArrayLike, FloatArray, Vector


@dataclass(frozen=True)
class Parametrisation:
    """Kinematic parametrisation of a body. X is a body-fixed point relative to the reference point, in body axes."""

    dimension: int = 3

    @property
    def names(self) -> tuple[str, ...]:
        """Short names of the coordinates of a body."""
        raise NotImplementedError

    @property
    def is_linear(self) -> bool:
        """True if points depend linearly on the coordinates."""
        return True

    @property
    def has_translation(self) -> bool:
        """True if the first coordinates are those of the reference point."""
        return True

    @property
    def has_orientation(self) -> bool:
        """True if the body has an orientation."""
        return True

    def point(self, q: Vector, X: Any) -> Any:
        """Return the position of the body-fixed point X in space."""
        raise NotImplementedError

    def vector(self, q: Vector, X: Vector) -> Any:
        """Return a body-fixed vector in space."""
        return self.rotation_matrix(q) @ X

    def velocity(self, q: Vector, v: Vector, X: Vector) -> Any:
        """Return the velocity of the body-fixed point X."""
        raise NotImplementedError

    def generalised_force(self, q: Vector, X: Vector, f: Vector) -> Any:
        """Return the generalised force of a force f at the point X; its power is ``f . velocity(q, v, X)``."""
        raise NotImplementedError

    def generalised_force_on_vector(self, X: Vector, f: Vector) -> Any:
        """Return the generalised force on a body-fixed vector X; its power is ``f . d/dt vector(q, X)``."""
        raise NotImplementedError

    def generalised_torque(self, q: ArrayLike, tau: ArrayLike) -> Vector:
        """Return the generalised force of a spatial torque; its power is ``tau . omega``."""
        raise NotImplementedError

    def rotation_matrix(self, q: Vector) -> Vector:
        """Return the rotation matrix from body axes to space."""
        raise NotImplementedError

    def rotation_generator(self, q: Vector) -> Vector:
        """Return the infinitesimal generators of rotations about the spatial axes, one row per axis (plane: one)."""
        raise NotImplementedError

    def from_pose(self, position: FloatArray, R: np.ndarray) -> np.ndarray:
        """Return the coordinates q of a pose; the columns of R are the body axes."""
        raise NotImplementedError

    def from_twist(self, q: np.ndarray, velocity: Any, omega: Any) -> np.ndarray:
        """Return the velocities v of a twist: velocity of the reference point and angular velocity."""
        raise NotImplementedError


@dataclass(frozen=True)
class GroundParametrisation(Parametrisation):
    """Inertial frame: no coordinates."""

    @property
    def names(self) -> tuple[str, ...]:
        return ()

    def point(self, q: Vector, X: Vector) -> Any:
        return X

    def velocity(self, q: Vector, v: Vector, X: Vector) -> Any:
        return np.zeros(self.dimension)

    def vector(self, q: Vector, X: Vector) -> Any:
        return X

    def generalised_force_on_vector(self, X: Vector, f: Vector) -> Any:
        return np.zeros(0)


@dataclass(frozen=True)
class DirectorParametrisation(Parametrisation):
    """Director parametrisation: reference point and body-fixed vectors, ``x = phi + X_i d_i``.

    See Kinon et al. 2023, eq. 58.

    A particle has no directors.
    """

    directors: int = 3

    @property
    def names(self) -> tuple[str, ...]:
        axes = "xyz"[: self.dimension]
        return (*axes, *(f"d{i + 1}{axis}" for i in range(self.directors) for axis in axes))

    @property
    def has_orientation(self) -> bool:
        return self.directors > 0

    def split(self, q: Vector) -> list[Vector]:
        """Return the reference point and the directors."""
        d = self.dimension
        return [q[d * i : d * (i + 1)] for i in range(1 + self.directors)]

    def point(self, q: Vector, X: Any) -> Any:
        origin, *directors = self.split(q)
        return sum((X[i] * d for i, d in enumerate(directors)), origin)

    def velocity(self, q: Vector, v: Vector, X: Vector) -> Any:
        return self.point(v, X)

    def generalised_force(self, q: Vector, X: Vector, f: Vector) -> Vector:
        return np.concatenate([f, *(X[i] * f for i in range(self.directors))])

    def generalised_force_on_vector(self, X: Vector, f: Vector) -> Any:
        return np.concatenate([0.0 * f, *(X[i] * f for i in range(self.directors))])

    def generalised_torque(self, q: Any, tau: Any) -> Vector:
        # forces (A^-1 tau) x d_i with A = sum (d_i.d_i I - d_i d_i^T): their moment is tau and their power tau.omega,
        # also at the midpoint of a step, where the directors are shorter than one and not exactly orthogonal
        origin, *directors = self.split(q)
        squares = sum((m.dot(d, d) for d in directors), 0.0)
        if self.dimension == 2:
            omega_like = m.array(np.atleast_1d(tau)) / squares
        else:
            A = squares * np.eye(3) - sum(np.outer(d, d) for d in directors)
            omega_like = _solve3(A, m.array(tau))
        return np.concatenate([0.0 * origin, *(_cross(omega_like, d) for d in directors)])

    def rotation_matrix(self, q: Vector) -> Vector:
        return np.column_stack(self.split(q)[1:])

    def vector(self, q: Vector, X: Vector) -> Any:
        directors = self.split(q)[1:]
        return sum((X[i] * d for i, d in enumerate(directors[1:], 1)), X[0] * directors[0])

    def rotation_generator(self, q: Vector) -> Vector:
        if self.dimension == 2:
            return m.array([np.concatenate([_cross(1.0, vector) for vector in self.split(q)])])
        generators: list[list[Any]] = [[], [], []]  # e_i x part, without products by zero and one
        for x, y, z in self.split(q):
            for row, cross_terms in zip(generators, ((0.0, -z, y), (z, 0.0, -x), (-y, x, 0.0)), strict=True):
                row += cross_terms
        return m.array(generators)

    def from_pose(self, position: FloatArray, R: np.ndarray) -> np.ndarray:
        return np.concatenate([position, *(R[: self.dimension, i] for i in range(self.directors))])

    def from_twist(self, q: np.ndarray, velocity: ArrayLike, omega: FloatArray | float) -> np.ndarray:
        return np.concatenate([velocity, *(_cross(omega, d) for d in self.split(q)[1:])])


@dataclass(frozen=True)
class QuaternionParametrisation(Parametrisation):
    """Euler parameters: ``x = phi + R(q) X`` with a unit quaternion, or ``x = R(q) X``.

    See Kinon and Betsch 2024, 3.3, 5.5.
    """

    fixed: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        return ("q0", "q1", "q2", "q3") if self.fixed else ("x", "y", "z", "q0", "q1", "q2", "q3")

    @property
    def is_linear(self) -> bool:
        return False

    @property
    def has_translation(self) -> bool:
        return not self.fixed

    def _split(self, q: Vector) -> tuple[Any, Any]:
        return (np.zeros(3), q) if self.fixed else (q[:3], q[3:])

    def _join(self, translation: Vector, rotation: Vector) -> Vector:
        return rotation if self.fixed else np.concatenate([translation, rotation])

    def point(self, q: Vector, X: Vector) -> Any:
        origin, quaternion = self._split(q)
        return origin + rot.rotate(quaternion, X)

    def velocity(self, q: Vector, v: Vector, X: Vector) -> Any:
        # E(q) G(v)^T = E(v) G(q)^T (136), so d/dt R(q) X = 2 E(q) G(v)^T X
        (_, quaternion), (rate, v4) = self._split(q), self._split(v)
        return rate + 2 * (rot.E(quaternion) @ (rot.G(v4).T @ X))

    def generalised_force(self, q: Vector, X: Vector, f: Vector) -> Vector:
        # (126): the transpose of 2 E(q) Xbar, with G(v)^T X = Xbar v (137) and Xbar skew
        _, quaternion = self._split(q)
        return self._join(f, -2 * (rot.G(rot.E(quaternion).T @ f).T @ X))

    def generalised_torque(self, q: Any, tau: Any) -> Vector:
        # (128), divided by q.q = 1: at the midpoint of a step |q| < 1, and the torque must not change
        origin, quaternion = self._split(q)
        return self._join(0.0 * origin, 2 / m.dot(quaternion, quaternion) * (rot.E(quaternion).T @ tau))

    def rotation_matrix(self, q: Vector) -> Vector:
        return rot.to_matrix(self._split(q)[1])

    def rotation_generator(self, q: Vector) -> Vector:
        # (61): q -> exp(a/2 xi) o q, so xi(q) = E(q)^T xi/2 and the momentum is L = E(q) p/2 (64)
        origin, quaternion = self._split(q)
        half = rot.E(quaternion) / 2
        if self.fixed:
            return half
        return np.hstack([m.array([_cross(axis, origin) for axis in np.eye(3)]), half])

    def from_pose(self, position: FloatArray, R: np.ndarray) -> np.ndarray:
        return np.asarray(self._join(position, rot.from_matrix(R)))

    def from_twist(self, q: np.ndarray, velocity: FloatArray, omega: FloatArray) -> np.ndarray:
        return np.asarray(self._join(velocity, rot.rate_from_spatial(self._split(q)[1], omega)))


def _solve3(A: Vector, b: Vector) -> Vector:
    """Solve a symmetric 3x3 system by cofactors."""
    cofactors = [m.cross(A[(i + 1) % 3], A[(i + 2) % 3]) for i in range(3)]
    return m.array([m.dot(c, b) for c in cofactors]) / m.dot(A[0], cofactors[0])


def _cross(omega: Any, d: Any) -> Vector:
    """Return ``omega x d``; in the plane omega is a scalar."""
    if len(d) == 3:
        return m.cross(omega, d)
    (rate,) = np.atleast_1d(omega)
    return m.array([-rate * d[1], rate * d[0]])
