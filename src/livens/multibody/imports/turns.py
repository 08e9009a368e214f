"""Rotations as files write them: quaternions, angles about axes, roll, pitch and yaw, pairs of axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from livens import rotations as rot


def about(axis: np.ndarray, angle: float) -> np.ndarray:
    """The matrix of a turn about an axis of length one."""
    x, y, z = axis
    hat = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.asarray(np.eye(3) + np.sin(angle) * hat + (1 - np.cos(angle)) * hat @ hat)


def of_quaternion(q: Any) -> np.ndarray:
    """The matrix of a quaternion, which is made a unit one; its scalar part is the first."""
    q = np.asarray(q, dtype=float)
    return np.asarray(rot.matrix(q / np.linalg.norm(q)), dtype=float)


def of_rpy(angles: Any) -> np.ndarray:
    """Roll, pitch and yaw about the axes x, y, z that stand still, one after the other."""
    x, y, z = np.eye(3)
    roll, pitch, yaw = angles
    return about(z, yaw) @ about(y, pitch) @ about(x, roll)


def of_euler(angles: Any, sequence: str) -> np.ndarray:
    """Turns about the axes of a sequence: those of small letters move along, those of capitals stand still."""
    R = np.eye(3)
    for letter, angle in zip(sequence, angles, strict=True):
        turn = about(np.eye(3)["xyz".index(letter.lower())], angle)
        R = R @ turn if letter.islower() else turn @ R
    return R


def to_z(direction: np.ndarray) -> np.ndarray:
    """The shortest turn that takes the third axis to a direction of length one."""
    axis = np.cross([0.0, 0.0, 1.0], direction)
    sine = float(np.linalg.norm(axis))
    angle = float(np.arctan2(sine, direction[2]))
    return about(axis / sine if sine > 1e-10 else np.array([1.0, 0.0, 0.0]), angle)
