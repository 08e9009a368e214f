"""Branches of continuous angles: joint angles that are counted over any number of revolutions."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

#: Distance in rad between an angle and its reference angle at which the reference angle moves. Steps may rotate a joint
#: by less than half a turn minus this distance.
MOVE_DISTANCE = np.pi / 2
#: Distance in rad at which an angle counts as having left a branch that does not move.
_CROSSING_DISTANCE = 3.0


def branch_parameters(angle: float) -> tuple[float, float, float]:
    """Return the reference angle nearest to an angle, its cosine and its sine.

    Reference angles are multiples of a quarter turn, whose cosine and sine are exact.
    """
    quarter = round(angle / MOVE_DISTANCE)
    cosine, sine = ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))[quarter % 4]
    return quarter * MOVE_DISTANCE, cosine, sine


@dataclass(frozen=True, eq=False)
class AngleBranches:
    """Angles of joints whose forces depend on the continuous angle, with the parameters of their branches."""

    joints: tuple[str, ...]
    #: Angles within half a turn, as expressions of the coordinates q and the parameters k.
    q: Any
    k: Any
    angles: Any
    #: For each joint: starts of the parameters (reference angle, cosine, sine) in the parameter vector.
    starts: tuple[tuple[int, ...], ...]

    @functools.cached_property
    def wrapped_angles(self) -> ca.Function:
        """Angles within half a turn, (n_joints,), as a function of coordinates and parameters."""
        return ca.Function("angles", [self.q, self.k], [ca.densify(self.angles)])

    @functools.cached_property
    def reference_indices(self) -> np.ndarray:
        """Indices of the reference angles in the parameter vector, one per joint."""
        return np.array([starts[0] for starts in self.starts])

    def deviation(self, wrapped: np.ndarray, k: np.ndarray) -> np.ndarray:
        """Return the distances of angles to their reference angles, in (-pi, pi]."""
        distance = wrapped - k[self.reference_indices]
        return np.asarray(distance - 2 * np.pi * np.rint(distance / (2 * np.pi)))

    def crossed(self, wrapped: np.ndarray, k: np.ndarray) -> str:
        """Return the name of a joint whose angle has left its branch in the rows of a run, or an empty string.

        `wrapped` has the shape (n_rows, n_joints), for all steps of the run in order.
        """
        deviation = self.deviation(wrapped, k)
        jumps = np.abs(np.diff(deviation, axis=0)).max(axis=0, initial=0.0) > np.pi
        crossed = jumps | (np.abs(deviation).max(axis=0, initial=0.0) > _CROSSING_DISTANCE)
        return self.joints[int(np.argmax(crossed))] if crossed.any() else ""

    def moved(self, wrapped: np.ndarray, k: np.ndarray) -> np.ndarray:
        """Return the parameter vector with the branches nearest to the angles that have left theirs; k if none has."""
        deviation = self.deviation(wrapped, k)
        if not np.abs(deviation).max(initial=0.0) > MOVE_DISTANCE:
            return k
        left = np.flatnonzero(np.abs(deviation) > MOVE_DISTANCE)
        k = k.copy()
        for j in left:
            branch = branch_parameters(float(k[self.reference_indices[j]] + deviation[j]))
            for start in self.starts[j]:
                k[start : start + 3] = branch
        return k
