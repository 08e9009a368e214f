"""Twist coordinates of bodies: velocity of the centre and angular velocity, numerically.

`livens.schemes.discretization.quasi_velocities` has the symbolic form, for step equations.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from livens.models.director_bodies import DirectorBodyDofs
from livens.models.system import System

if TYPE_CHECKING:
    import scipy.sparse as sp


class TwistCoordinates:
    """Twist coordinates of the bodies of a system: six per body in space, three in the plane."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.frames: tuple[DirectorBodyDofs, ...] = system.frames
        self.size = sum(frame.dimension + frame.n_rot for frame in self.frames)

    def blocks(self) -> Iterator[tuple[DirectorBodyDofs, slice, slice]]:
        """Yield the bodies with the slices of their velocities and of their angular velocities."""
        start = 0
        for frame in self.frames:
            middle = start + frame.dimension
            yield frame, slice(start, middle), slice(middle, middle + frame.n_rot)
            start = middle + frame.n_rot

    def kinematic_matrix(self, q: np.ndarray) -> np.ndarray:
        """Return the kinematic matrix N(q) with ``qdot = N u``; for q of shape (..., n), one matrix each."""
        N = np.zeros((*q.shape[:-1], self.system.n, self.size))
        for frame, translation, rotation in self.blocks():
            N[..., list(frame.position), translation] = np.eye(frame.dimension)
            for director in frame.directors:
                N[..., list(director), rotation] = rotation_derivative(q[..., list(director)])
        return N

    def sparse_kinematic_matrix(self, q: np.ndarray) -> sp.csr_array:
        """Return the kinematic matrix N(q) as a sparse matrix."""
        import scipy.sparse as sp

        rows, columns, values = list[int](), list[int](), list[float]()
        for frame, translation, rotation in self.blocks():
            rows += frame.position
            columns += range(translation.start, translation.stop)
            values += [1.0] * frame.dimension
            for director in frame.directors:
                x = q[list(director)].tolist()
                if frame.dimension == 3:
                    rows += [director[i] for i in (0, 0, 1, 1, 2, 2)]
                    columns += [rotation.start + i for i in (1, 2, 0, 2, 0, 1)]
                    values += [x[2], -x[1], -x[2], x[0], x[1], -x[0]]
                else:
                    rows += director
                    columns += [rotation.start] * 2
                    values += [-x[1], x[0]]
        return sp.csr_array((values, (rows, columns)), shape=(self.system.n, self.size))

    def geometric_stiffness(self, q: np.ndarray, force: np.ndarray) -> sp.csr_matrix:
        """Return the derivative of ``N(q)^T F`` with a constant force F: the stiffness of rotating lever arms."""
        import scipy.sparse as sp

        blocks = list[np.ndarray]()
        for frame in self.frames:
            d = frame.dimension
            block = np.zeros((d + frame.n_rot,) * 2)
            for director in frame.directors:
                x, f = q[list(director)], force[list(director)]
                if d == 3:
                    block[3:, 3:] += np.outer(x, f) - (x @ f) * np.eye(3)
                else:
                    block[2, 2] -= x @ f
            blocks.append(block)
        return sp.block_diag(blocks, format="csr")

    def retract(self, q: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the coordinates after a small motion y (retraction); directors stay orthonormal."""
        new = q + self.kinematic_matrix(q) @ y
        for frame in self.frames:
            if frame.directors:
                indices = np.array(frame.directors)
                new[indices] = nearest_rotation(new[indices])
        return new

    def retract_finite(self, q: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the coordinates after a finite motion y (exponential map); directors stay orthonormal."""
        new = q.copy()
        for frame, translation, rotation in self.blocks():
            new[list(frame.position)] += y[translation]
            if frame.directors:
                indices = np.array(frame.directors)
                new[indices] = nearest_rotation(q[indices] @ rotation_matrix(y[rotation]).T)
        return new

    @functools.cached_property
    def joint_constraints(self) -> tuple[int, ...]:
        """Indices of the constraints between bodies."""
        internal = {i for frame in self.frames for i in frame.constraints}
        return tuple(i for i in range(self.system.m) if i not in internal)


def rotation_derivative(x: np.ndarray) -> np.ndarray:
    """Return the matrix of ``omega -> omega x d`` of a director d in space; in the plane, its quarter turn."""
    if x.shape[-1] == 2:
        return np.stack([-x[..., 1], x[..., 0]], axis=-1)[..., None]
    matrix = np.zeros((*x.shape, 3))
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        matrix[..., i, j], matrix[..., j, i] = x[..., k], -x[..., k]
    return matrix


def rotation_matrix(w: np.ndarray) -> np.ndarray:
    """Return the rotation matrix of a rotation vector (Rodrigues); in the plane, of an angle."""
    if len(w) == 1:
        c, s = np.cos(w[0]), np.sin(w[0])
        return np.array([[c, -s], [s, c]])
    hat, angle = -rotation_derivative(w), np.linalg.norm(w)
    return np.asarray(np.eye(3) + np.sinc(angle / np.pi) * hat + np.sinc(angle / 2 / np.pi) ** 2 / 2 * hat @ hat)


def nearest_rotation(D: np.ndarray) -> np.ndarray:
    """Return the nearest orthonormal matrix (polar decomposition), which removes round-off of products."""
    u, _, vh = np.linalg.svd(D)
    return np.asarray(u @ vh)
