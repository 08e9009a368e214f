"""Inextensible in-plane bending modes of thin rings: S003 4.3, cases 1b and 3.

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
from livens.multibody.placement import Directors

#: Lower bound of a squared radius in m^2: avoids division by zero at the centre.
_TINY = 1e-300


@dataclass(frozen=True)
class RingModes:
    """Bending modes of a thin ring: radius, in-plane bending stiffness E I, mass per length, numbers of waves.

    >>> ring = RingModes(24e-3, 206e9 * 15e-3 * 3.5e-3**3 / 12, 7800 * 15e-3 * 3.5e-3, (2, 3, 4))
    >>> [round(ring.frequency(n) / 1e3, 2) for n in ring.waves]  # in kHz
    [3.85, 10.89, 20.88]
    """

    radius: float
    bending: float
    line: float
    waves: tuple[int, ...] = ()

    def mass(self, n: int) -> float:
        """Return the modal mass of each of the two coordinates with n waves: ``pi rho A R (1 + 1/n^2)``."""
        return float(np.pi * self.line * self.radius * (1 + 1 / n**2))

    def stiffness(self, n: int) -> float:
        """Return the modal stiffness ``pi E I (n^2 - 1)^2/R^3``."""
        return float(np.pi * self.bending * (n**2 - 1) ** 2 / self.radius**3)

    def frequency(self, n: int) -> float:
        """Return the natural frequency in Hz."""
        return float(np.sqrt(self.stiffness(n) / self.mass(n)) / (2 * np.pi))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the modal coordinates."""
        return tuple(f"{letter}{n}" for n in self.waves for letter in "ab")


def around(c: Any, s: Any, waves: Sequence[int]) -> list[tuple[Any, Any]]:
    """Return ``cos(n theta)`` and ``sin(n theta)`` for every n, by the addition theorem."""
    found, last = [], (c, s)
    for n in range(2, max(waves, default=1) + 1):
        last = last[0] * c - last[1] * s, last[1] * c + last[0] * s
        if n in waves:
            found.append(last)
    return found


def moves(c: Any, s: Any, waves: Sequence[int]) -> list[tuple[Any, Any]]:
    """Return the mode shapes at an angle: radial and tangential displacement per modal coordinate."""
    found = []
    for n, (cosine, sine) in zip(waves, around(c, s, waves), strict=True):
        found += [(cosine, -sine / n), (sine, cosine / n)]
    return found


@dataclass(frozen=True)
class RingPlacement(Directors):
    """Floating frame of a ring with modal coordinates; its first two axes are in the plane of the ring.

    ``x = phi + (X_i + sum_j r_j D_ji(theta)) d_i`` with the modal coordinates r and the angle theta of the point X.
    The centre, which is not a point of the ring, is fixed in the frame.
    """

    waves: tuple[int, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return (*super().names, *(f"{letter}{n}" for n in self.waves for letter in "ab"))

    @property
    def linear(self) -> bool:
        return False

    @property
    def rigid(self) -> int:
        """Number of coordinates of the frame."""
        return self.dimension * (1 + self.directors)

    def _moves(self, X: Any) -> list[Any]:
        """Return the mode shapes at the point X, in the frame."""
        away = m.sqrt(X[0] ** 2 + X[1] ** 2 + _TINY)
        c, s = X[0] / away, X[1] / away
        level = [0.0] * (self.dimension - 2)
        return [m.array([w * c - u * s, w * s + u * c, *level]) for w, u in moves(c, s, self.waves)]

    def _bent(self, r: Any, X: Any) -> Any:
        """Return the modal displacement of the point X."""
        return sum((r[j] * one for j, one in enumerate(self._moves(X))), m.array([0.0] * self.dimension))

    def point(self, q: Any, X: Any) -> Any:
        place = m.array(list(X)) + self._bent(q[self.rigid :], X)
        return super().point(q, place)

    def velocity(self, q: Any, v: Any, X: Any) -> Any:
        place = m.array(list(X)) + self._bent(q[self.rigid :], X)
        return super().point(v, place) + self.vector(q, self._bent(v[self.rigid :], X))

    def force(self, q: Any, X: Any, f: Any) -> Any:
        place = m.array(list(X)) + self._bent(q[self.rigid :], X)
        on_modes = [m.dot(self.vector(q, one), m.array(list(f))) for one in self._moves(X)]
        return np.concatenate([super().force(q, place, f), m.array(on_modes)])

    def pull(self, X: Any, f: Any) -> Any:
        return np.concatenate([super().pull(X, f), np.zeros(2 * len(self.waves))])

    def torque(self, q: Any, tau: Any) -> Any:
        return np.concatenate([super().torque(q, tau), np.zeros(2 * len(self.waves))])

    def turned(self, q: Any) -> Any:
        rows = super().turned(q)
        return np.hstack([rows, np.zeros((len(rows), 2 * len(self.waves)))])

    def coordinates(self, position: Any, R: np.ndarray) -> np.ndarray:
        return np.concatenate([super().coordinates(position, R), np.zeros(2 * len(self.waves))])

    def rates(self, q: np.ndarray, velocity: Any, omega: Any) -> np.ndarray:
        return np.concatenate([super().rates(q, velocity, omega), np.zeros(2 * len(self.waves))])
