"""Inextensible in-plane bending modes of thin rings: Modin 2009, 4.3, cases 1b and 3.

With the angle theta around a ring, points move outwards by ``w = sum a_n cos(n theta) + b_n sin(n theta)`` and along it
by u with ``u' = -w``, so that its length is constant. Modes begin with n = 2, since n = 1 is a rigid motion. They are
orthogonal in energy, each with its own mass and stiffness of classical thin-ring theory. They have no linear and no
angular momentum. Deflections are small: centrifugal forces do not depend on the deformation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from livens import math as m
from livens.multibody.parametrisation import DirectorParametrisation
from livens.types import ArrayLike, FloatArray, ScalarLike, Vector

#: Lower bound of a squared radius in m^2: avoids division by zero at the centre.
_MIN_SQUARED_RADIUS = 1e-300


@dataclass(frozen=True)
class RingModes:
    """Bending modes of a thin ring: radius, in-plane bending stiffness E I, mass per length, numbers of waves.

    >>> ring = RingModes(24e-3, 206e9 * 15e-3 * 3.5e-3**3 / 12, 7800 * 15e-3 * 3.5e-3, (2, 3, 4))
    >>> [round(ring.frequency(n) / 1e3, 2) for n in ring.wave_numbers]  # in kHz
    [3.85, 10.89, 20.88]
    """

    radius: float
    EI: float
    mass_per_length: float
    wave_numbers: tuple[int, ...] = ()

    def mass(self, n: int) -> float:
        """Return the modal mass of each of the two coordinates with n waves: ``pi rho A R (1 + 1/n^2)``."""
        return float(np.pi * self.mass_per_length * self.radius * (1 + 1 / n**2))

    def stiffness(self, n: int) -> float:
        """Return the modal stiffness ``pi E I (n^2 - 1)^2/R^3``."""
        return float(np.pi * self.EI * (n**2 - 1) ** 2 / self.radius**3)

    def frequency(self, n: int) -> float:
        """Return the natural frequency in Hz."""
        return float(np.sqrt(self.stiffness(n) / self.mass(n)) / (2 * np.pi))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the modal coordinates."""
        return tuple(f"{letter}{n}" for n in self.wave_numbers for letter in "ab")


def harmonics(c: ScalarLike, s: ScalarLike, wave_numbers: Sequence[int]) -> list[tuple[Any, Any]]:
    """Return ``cos(n theta)`` and ``sin(n theta)`` for every n, by the addition theorem."""
    values, harmonic = [], (c, s)
    for n in range(2, max(wave_numbers, default=1) + 1):
        harmonic = harmonic[0] * c - harmonic[1] * s, harmonic[1] * c + harmonic[0] * s
        if n in wave_numbers:
            values.append(harmonic)
    return values


def mode_shapes(c: ScalarLike, s: ScalarLike, wave_numbers: Sequence[int]) -> list[tuple[Any, Any]]:
    """Return the mode shapes at an angle: radial and tangential displacement per modal coordinate."""
    shapes = []
    for n, (cosine, sine) in zip(wave_numbers, harmonics(c, s, wave_numbers), strict=True):
        shapes += [(cosine, -sine / n), (sine, cosine / n)]
    return shapes


@dataclass(frozen=True)
class ModalRingParametrisation(DirectorParametrisation):
    """Floating frame of a ring with modal coordinates; its first two axes are in the plane of the ring.

    ``x = phi + (X_i + sum_j r_j D_ji(theta)) d_i`` with the modal coordinates r and the angle theta of the point X.
    The centre, which is not a point of the ring, is fixed in the frame.
    """

    wave_numbers: tuple[int, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return (*super().names, *(f"{letter}{n}" for n in self.wave_numbers for letter in "ab"))

    @property
    def is_linear(self) -> bool:
        return False

    @property
    def frame_size(self) -> int:
        """Number of coordinates of the frame."""
        return self.dimension * (1 + self.directors)

    def _shapes_at(self, X: Sequence[float] | Vector) -> list[Any]:
        """Return the mode shapes at the point X, in the frame."""
        radius = m.sqrt(X[0] ** 2 + X[1] ** 2 + _MIN_SQUARED_RADIUS)
        c, s = X[0] / radius, X[1] / radius
        out_of_plane = [0.0] * (self.dimension - 2)
        return [m.array([w * c - u * s, w * s + u * c, *out_of_plane]) for w, u in mode_shapes(c, s, self.wave_numbers)]

    def _modal_displacement(self, r: Vector, X: Sequence[float] | Vector) -> Vector:
        """Return the modal displacement of the point X."""
        return sum((r[j] * shape for j, shape in enumerate(self._shapes_at(X))), m.array([0.0] * self.dimension))

    def point(self, q: Vector, X: Sequence[float] | Vector) -> Any:
        deformed_point = m.array(list(X)) + self._modal_displacement(q[self.frame_size :], X)
        return super().point(q, deformed_point)

    def velocity(self, q: Vector, v: Vector, X: Vector) -> Any:
        deformed_point = m.array(list(X)) + self._modal_displacement(q[self.frame_size :], X)
        return super().point(v, deformed_point) + self.vector(q, self._modal_displacement(v[self.frame_size :], X))

    def generalised_force(self, q: Vector, X: Vector, f: FloatArray) -> Vector:
        deformed_point = m.array(list(X)) + self._modal_displacement(q[self.frame_size :], X)
        modal_forces = [m.dot(self.vector(q, shape), m.array(list(f))) for shape in self._shapes_at(X)]
        return np.concatenate([super().generalised_force(q, deformed_point, f), m.array(modal_forces)])

    def generalised_force_on_vector(self, X: Any, f: FloatArray) -> Any:
        return np.concatenate([super().generalised_force_on_vector(X, f), np.zeros(2 * len(self.wave_numbers))])

    def generalised_torque(self, q: ArrayLike, tau: ArrayLike) -> Vector:
        return np.concatenate([super().generalised_torque(q, tau), np.zeros(2 * len(self.wave_numbers))])

    def rotation_generator(self, q: Vector) -> Vector:
        rows = super().rotation_generator(q)
        return np.hstack([rows, np.zeros((len(rows), 2 * len(self.wave_numbers)))])

    def from_pose(self, position: FloatArray, R: np.ndarray) -> np.ndarray:
        return np.concatenate([super().from_pose(position, R), np.zeros(2 * len(self.wave_numbers))])

    def from_twist(self, q: np.ndarray, velocity: Any, omega: Any) -> np.ndarray:
        return np.concatenate([super().from_twist(q, velocity, omega), np.zeros(2 * len(self.wave_numbers))])
