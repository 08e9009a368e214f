"""Conversion between unit quaternions and rotation vectors, axis and angle, rotation matrices, and directors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from livens import math as m
from livens.errors import InputError
from livens.rotations.quaternions import components, numeric_components, unwrap_0d
from livens.types import FloatArray, Vector, VectorLike

#: Threshold on the square of half the angle below which two terms of the series are exact to round-off.
_SERIES_THRESHOLD = 1e-8


# -- rotation vectors -------------------------------------------------------------------------------------------------
def exponential(vector: FloatArray) -> np.ndarray:
    """Return the unit quaternion of a rotation vector (exponential map) (40); smooth at zero.

    Parameters
    ----------
    vector : array_like of shape (3,)
        Rotation vector: axis times angle, in radians.

    Returns
    -------
    numpy.ndarray of shape (4,)
        Unit quaternion, scalar first.

    Examples
    --------
    >>> exponential([0, 0, 0]).tolist()
    [1.0, 0.0, 0.0, 0.0]
    """
    half = components(vector, 3) / 2
    square = m.dot(half, half)
    small = square < _SERIES_THRESHOLD
    angle = m.sqrt(m.where(small, 1.0, square))  # avoids the infinite derivative of the root at zero
    sinc = m.where(small, 1 - square / 6, m.sin(angle) / angle)
    cosine = m.where(small, 1 - square / 2 + square**2 / 24, m.cos(angle))
    return m.array([unwrap_0d(cosine), *(unwrap_0d(sinc) * half)])


def logarithm(q: VectorLike) -> np.ndarray:
    """Return the rotation vector of a unit quaternion (logarithm map), of length at most pi.

    Parameters
    ----------
    q : array_like of shape (4,)
        Unit quaternion, scalar first. q and -q have the same rotation vector.

    Returns
    -------
    numpy.ndarray of shape (3,)
        Rotation vector: axis times angle, in radians.

    Examples
    --------
    >>> logarithm([0, 0, 1, 0]).round(12).tolist()
    [0.0, 3.14159265359, 0.0]
    """
    q = components(q, 4)
    square = m.dot(q[1:], q[1:])
    small = square < _SERIES_THRESHOLD
    sine = m.sqrt(m.where(small, 1.0, square))
    sign = m.where(q[0] < 0, -1.0, 1.0)
    # asin(s)/s = 1 + s^2/6 near zero
    factor = m.where(small, 2 + square / 3, 2 * m.atan2(sine, abs(q[0])) / sine)
    return unwrap_0d(sign * factor) * q[1:]


def from_axis_angle(axis: Any, angle: Any) -> np.ndarray:
    """Return the unit quaternion of a rotation about an axis.

    Parameters
    ----------
    axis : array_like of shape (3,)
        Axis of rotation, of any length except zero.
    angle : float or Scalar
        Angle, in radians.

    Returns
    -------
    numpy.ndarray of shape (4,)
        Unit quaternion, scalar first.

    Raises
    ------
    InputError
        If the axis is zero.

    Examples
    --------
    >>> from_axis_angle([0, 0, 2], 0.0).tolist()
    [1.0, 0.0, 0.0, 0.0]
    """
    axis = components(axis, 3)
    length = m.norm(axis)
    if not isinstance(length, m.Scalar) and not length > 0:
        raise InputError("the axis of a rotation must not be zero")
    return m.array([m.cos(angle / 2), *(m.sin(angle / 2) * axis / length)])


def to_axis_angle(q: VectorLike) -> tuple[np.ndarray, float]:
    """Return axis and angle in [0, pi] of a unit quaternion.

    Parameters
    ----------
    q : array_like of shape (4,)
        Unit quaternion, scalar first, of numbers.

    Returns
    -------
    axis : numpy.ndarray of shape (3,)
        Unit vector; (1, 0, 0) if the angle is zero.
    angle : float
        Angle, in radians.

    Examples
    --------
    >>> to_axis_angle([1, 0, 0, 0])
    (array([1., 0., 0.]), 0.0)
    """
    vector = logarithm(numeric_components(q, 4))
    angle = float(np.linalg.norm(vector))
    return (vector / angle, angle) if angle > 0 else (np.array([1.0, 0.0, 0.0]), 0.0)


# -- matrices ---------------------------------------------------------------------------------------------------------
def to_matrix(q: object) -> np.ndarray:
    """Return the rotation matrix ``R(q) = E(q) G(q)^T`` (50), which maps convective to spatial components.

    Parameters
    ----------
    q : array_like of shape (4,)
        Unit quaternion, scalar first.

    Returns
    -------
    numpy.ndarray of shape (3, 3)
        Rotation matrix; its columns are the directors.

    Examples
    --------
    >>> to_matrix([0, 0, 0, 1]).tolist()
    [[-1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    a, b, c, d = components(q, 4)
    return m.array(
        [
            [a * a + b * b - c * c - d * d, 2 * (b * c - a * d), 2 * (b * d + a * c)],
            [2 * (b * c + a * d), a * a - b * b + c * c - d * d, 2 * (c * d - a * b)],
            [2 * (b * d - a * c), 2 * (c * d + a * b), a * a - b * b - c * c + d * d],
        ]
    )


def rotate(q: Vector, x: Sequence[float] | Vector) -> np.ndarray:
    """Rotate a body-fixed vector into space: ``R(q) x``.

    Parameters
    ----------
    q : array_like of shape (4,)
        Unit quaternion, scalar first.
    x : array_like of shape (3,)
        Components in the body frame.

    Returns
    -------
    numpy.ndarray of shape (3,)
        Components in the spatial frame.

    Examples
    --------
    >>> rotate([0, 0, 0, 1], [1, 2, 3]).tolist()
    [-1.0, -2.0, 3.0]
    """
    return to_matrix(q) @ components(x, 3)


def directors(q: FloatArray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the directors (axes of the body frame in space), the columns of R(q).

    Parameters
    ----------
    q : array_like of shape (4,)
        Unit quaternion, scalar first.

    Returns
    -------
    tuple of three numpy.ndarray of shape (3,)
        The directors.

    Examples
    --------
    >>> [d.tolist() for d in directors([0, 1, 0, 0])]
    [[1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, -1.0]]
    """
    R = to_matrix(q)
    return R[:, 0], R[:, 1], R[:, 2]


def from_directors(d1: Any, d2: Any, d3: Any) -> np.ndarray:
    """Return the unit quaternion of a body frame given by its directors.

    Parameters
    ----------
    d1, d2, d3 : array_like of shape (3,)
        Orthonormal directors.

    Returns
    -------
    numpy.ndarray of shape (4,)
        Unit quaternion, scalar first, with ``q0 >= 0``.

    Raises
    ------
    InputError
        If the directors are not orthonormal and right-handed.

    Examples
    --------
    >>> from_directors([1, 0, 0], [0, 1, 0], [0, 0, 1]).tolist()
    [1.0, 0.0, 0.0, 0.0]
    """
    return from_matrix(np.column_stack([d1, d2, d3]))


def from_matrix(R: FloatArray) -> np.ndarray:
    """Return the unit quaternion with ``q0 >= 0`` of a rotation matrix.

    The quaternion is computed by division by its largest component.

    Parameters
    ----------
    R : array_like of shape (3, 3)
        Rotation matrix of numbers.

    Returns
    -------
    numpy.ndarray of shape (4,)
        Unit quaternion, scalar first.

    Raises
    ------
    InputError
        If `R` is not orthogonal with determinant 1.

    Examples
    --------
    >>> from_matrix([[-1, 0, 0], [0, 1, 0], [0, 0, -1]]).tolist()
    [0.0, 0.0, 1.0, 0.0]
    """
    R = np.asarray(R, dtype=float)
    if R.shape != (3, 3) or not np.allclose(R.T @ R, np.eye(3), rtol=0, atol=1e-8) or np.linalg.det(R) < 0:
        raise InputError("not a rotation matrix: it must be orthogonal, 3x3, with determinant 1")
    # four times the outer product q q^T: each row is a multiple of q
    diagonal, symmetric = np.diag(R), R + R.T
    axial = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    outer = np.empty((4, 4))
    outer[0, 0], outer[0, 1:], outer[1:, 0] = 1 + diagonal.sum(), axial, axial
    outer[1:, 1:] = symmetric + (1 - diagonal.sum()) * np.eye(3)
    q = outer[int(np.argmax(np.diag(outer)))]
    q = q / np.linalg.norm(q)
    return np.asarray(-q if q[0] < 0 else q)
