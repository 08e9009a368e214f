"""Euler angles of any axis sequence, and their kinematic matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from livens import math as m
from livens.errors import InputError
from livens.rotations.conversions import from_axis_angle
from livens.rotations.quaternions import components, numeric_components, product
from livens.types import Vector, VectorLike


# -- Euler angles -----------------------------------------------------------------------------------------------------
class EulerAngles(NamedTuple):
    """Three Euler angles with a singularity flag.

    At a singularity (gimbal lock) the first and the third axis coincide: only the sum or the difference of their angles
    is determined, and the third angle is set to zero.

    Parameters
    ----------
    first, second, third : float
        Angles, in radians.
    singular : bool
        Whether the angles are singular.
    """

    first: float
    second: float
    third: float
    singular: bool


def from_euler_angles(angles: Sequence[object], axes: str = "zxz") -> np.ndarray:
    """Return the unit quaternion of three intrinsic rotations (Euler angles).

    Each rotation is about an axis of the frame rotated so far. "zxz" (precession, nutation, spin) is usual for tops,
    "zyx" (yaw, pitch, roll) for vehicles.

    Parameters
    ----------
    angles : sequence of three float or Scalar
        Euler angles, in radians.
    axes : str, default "zxz"
        Three letters of x, y, z; neighbouring letters must differ.

    Returns
    -------
    numpy.ndarray of shape (4,)
        Unit quaternion, scalar first.

    Raises
    ------
    InputError
        If the number of angles is not three, or the axes are invalid.

    Examples
    --------
    >>> from_euler_angles([0.0, 3.141592653589793, 0.0]).round(12).tolist()
    [0.0, 1.0, 0.0, 0.0]
    """
    axis_1, axis_2, axis_3 = _axes(axes)
    if len(angles) != 3:
        raise InputError(f"there must be three Euler angles, got {len(angles)}")
    rotations = [
        from_axis_angle(np.eye(3)[i], angle) for i, angle in zip((axis_1, axis_2, axis_3), angles, strict=True)
    ]
    return product(product(rotations[0], rotations[1]), rotations[2])


def to_euler_angles(q: VectorLike, axes: str = "zxz") -> EulerAngles:
    """Return the intrinsic Euler angles of a unit quaternion; see `from_euler_angles` for the convention.

    With equal outer axes the second angle is in [0, pi]; with three different axes it is in [-pi/2, pi/2]. The angles
    are singular at both bounds.

    Parameters
    ----------
    q : array_like of shape (4,)
        Unit quaternion, scalar first, of numbers.
    axes : str, default "zxz"
        Three letters of x, y, z; neighbouring letters must differ.

    Returns
    -------
    EulerAngles
        The three angles, in radians, and whether they are singular.

    Raises
    ------
    InputError
        If the axes are invalid, or `q` contains symbols.

    Examples
    --------
    >>> to_euler_angles(from_euler_angles([0.3, 0.5, 0.2], "zyx"), "zyx").singular
    False
    """
    i, j, k = _axes(axes)
    q = numeric_components(q, 4)
    third_axis = 3 - i - j
    parity = 1.0 if (j - i) % 3 == 1 else -1.0
    if i != k:
        # a quarter rotation about axis j maps axis k to axis i: equal outer axes, the second angle is shifted
        quarter = from_axis_angle(np.eye(3)[j], -parity * m.pi / 2)
        q = product(q, quarter)
    # q_i(a) o q_j(b) o q_i(c) = (cos b/2 cos (a+c)/2, cos b/2 sin (a+c)/2, sin b/2 cos (a-c)/2, sin b/2 sin (a-c)/2)
    q_s, q_i, q_j, q_k = q[0], q[1 + i], q[1 + j], parity * q[1 + third_axis]
    angle_2 = 2 * np.arctan2(np.hypot(q_j, q_k), np.hypot(q_s, q_i))
    half_sum, half_difference = np.arctan2(q_i, q_s), np.arctan2(q_k, q_j)
    singular = bool(min(angle_2, m.pi - angle_2) < 1e-7)
    if singular:
        angle_1 = 2 * half_sum if angle_2 < 1 else 2 * half_difference
        angle_3 = 0.0
    else:
        angle_1, angle_3 = half_sum + half_difference, half_sum - half_difference
    if i != k and parity > 0:
        # the shifted second angle is negative: q_j(-b) = q_i(pi) o q_j(b) o q_i(-pi)
        angle_2 = m.pi / 2 - angle_2
        if not singular:  # at a singularity the half rotations cancel
            angle_1, angle_3 = angle_1 - m.pi, angle_3 + m.pi
    elif i != k:
        angle_2 -= m.pi / 2
    return EulerAngles(_wrap_angle(angle_1), float(angle_2), _wrap_angle(angle_3), singular)


def euler_kinematic_matrix(angles: Sequence[float] | Vector, axes: str = "zxz") -> np.ndarray:
    """Return the kinematic matrix Z of ``angles' = Z Omega`` for intrinsic Euler angles and body-fixed Omega.

    Z is the argument `kinematics` of `livens.MultibodyEquations`. It is singular where the angles are.

    Parameters
    ----------
    angles : array_like of shape (3,)
        Euler angles, in radians; numbers or symbols.
    axes : str, default "zxz"
        Three letters of x, y, z; neighbouring letters must differ.

    Returns
    -------
    numpy.ndarray of shape (3, 3)
        The kinematic matrix.

    Raises
    ------
    InputError
        If the axes are invalid.

    Examples
    --------
    >>> euler_kinematic_matrix([0.4, 0.5, 0.0], "xyz").round(3).tolist()
    [[1.139, 0.0, 0.0], [0.0, 1.0, 0.0], [-0.546, 0.0, 1.0]]
    """
    i, j, k = _axes(axes)
    _, b, c = components(angles, 3)
    parity, third_axis = (1.0 if (j - i) % 3 == 1 else -1.0), 3 - i - j
    # before the last rotation the angular velocity is a' (cos b e_i + parity sin b e_other) + b' e_j + c' e_k
    Z_intermediate: list[list[Any]] = [[0.0] * 3 for _ in range(3)]
    Z_intermediate[1][j] = Z_intermediate[2][k] = 1.0
    if k == i:
        Z_intermediate[0][third_axis] = parity / m.sin(b)
        Z_intermediate[2][third_axis] = -parity * m.cos(b) / m.sin(b)
    else:
        Z_intermediate[0][i] = 1 / m.cos(b)
        Z_intermediate[2][i] = -parity * m.sin(b) / m.cos(b)
    R_last: list[list[Any]] = [[float(row == column) for column in range(3)] for row in range(3)]
    x, y = (k + 1) % 3, (k + 2) % 3
    R_last[x][x] = R_last[y][y] = m.cos(c)
    R_last[x][y], R_last[y][x] = -m.sin(c), m.sin(c)
    return m.array(
        [[sum(Z_intermediate[row][n] * R_last[n][column] for n in range(3)) for column in range(3)] for row in range(3)]
    )


def _wrap_angle(angle: float) -> float:
    """Wrap an angle to (-pi, pi]."""
    return float(-((-angle + m.pi) % (2 * m.pi) - m.pi))


def _axes(axes: str) -> tuple[int, int, int]:
    if len(axes) != 3 or set(axes) - set("xyz") or axes[0] == axes[1] or axes[1] == axes[2]:
        raise InputError(
            f"axes must be three letters of x, y, z with different neighbours, such as 'zxz', got {axes!r}"
        )
    i, j, k = ("xyz".index(letter) for letter in axes)
    return i, j, k
