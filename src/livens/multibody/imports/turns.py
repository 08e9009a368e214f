"""Rotation conventions of file formats: quaternions, axis-angle, roll-pitch-yaw, Euler angles."""

from __future__ import annotations

from typing import Any

import numpy as np

from livens import rotations as rot


def about(axis: np.ndarray, angle: float) -> np.ndarray:
    """Return the rotation matrix of an angle about a unit axis (Rodrigues' formula)."""
    x, y, z = axis
    hat = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.asarray(np.eye(3) + np.sin(angle) * hat + (1 - np.cos(angle)) * hat @ hat)


def of_quaternion(q: Any) -> np.ndarray:
    """Return the rotation matrix of a quaternion, scalar first, which is normalised."""
    q = np.asarray(q, dtype=float)
    return np.asarray(rot.matrix(q / np.linalg.norm(q)), dtype=float)


def of_rpy(angles: Any) -> np.ndarray:
    """Return the rotation matrix of roll, pitch and yaw about the fixed axes x, y, z in this order."""
    x, y, z = np.eye(3)
    roll, pitch, yaw = angles
    return about(z, yaw) @ about(y, pitch) @ about(x, roll)


def of_euler(angles: Any, sequence: str) -> np.ndarray:
    """Return the rotation matrix of Euler angles: lower-case letters are intrinsic, capitals extrinsic rotations."""
    R = np.eye(3)
    for letter, angle in zip(sequence, angles, strict=True):
        turn = about(np.eye(3)["xyz".index(letter.lower())], angle)
        R = R @ turn if letter.islower() else turn @ R
    return R


def to_z(direction: np.ndarray) -> np.ndarray:
    """Return the shortest rotation that maps the third axis to a unit direction."""
    axis = np.cross([0.0, 0.0, 1.0], direction)
    sine = float(np.linalg.norm(axis))
    angle = float(np.arctan2(sine, direction[2]))
    return about(axis / sine if sine > 1e-10 else np.array([1.0, 0.0, 0.0]), angle)
