"""Rotation conventions of file formats: quaternions, axis-angle, roll-pitch-yaw, Euler angles."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from livens import rotations as rot


def from_axis_angle(axis: np.ndarray, angle: float) -> np.ndarray:
    """Return the rotation matrix of an angle about a unit axis (Rodrigues' formula)."""
    x, y, z = axis
    hat = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.asarray(np.eye(3) + np.sin(angle) * hat + (1 - np.cos(angle)) * hat @ hat)


def from_quaternion(q: ArrayLike) -> np.ndarray:
    """Return the rotation matrix of a quaternion, scalar first, which is normalised."""
    q = np.asarray(q, dtype=float)
    return np.asarray(rot.to_matrix(q / np.linalg.norm(q)), dtype=float)


def from_rpy(angles: Iterable[float]) -> np.ndarray:
    """Return the rotation matrix of roll, pitch and yaw about the fixed axes x, y, z in this order."""
    x, y, z = np.eye(3)
    roll, pitch, yaw = angles
    return from_axis_angle(z, yaw) @ from_axis_angle(y, pitch) @ from_axis_angle(x, roll)


def from_euler(angles: Iterable[float], sequence: str) -> np.ndarray:
    """Return the rotation matrix of Euler angles: lower-case letters are intrinsic, capitals extrinsic rotations."""
    R = np.eye(3)
    for letter, angle in zip(sequence, angles, strict=True):
        rotation = from_axis_angle(np.eye(3)["xyz".index(letter.lower())], angle)
        R = R @ rotation if letter.islower() else rotation @ R
    return R


def align_z(direction: np.ndarray) -> np.ndarray:
    """Return the shortest rotation that maps the third axis to a unit direction."""
    axis = np.cross([0.0, 0.0, 1.0], direction)
    sine = float(np.linalg.norm(axis))
    angle = float(np.arctan2(sine, direction[2]))
    return from_axis_angle(axis / sine if sine > 1e-10 else np.array([1.0, 0.0, 0.0]), angle)
