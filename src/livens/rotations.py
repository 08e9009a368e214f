"""Rotations by unit quaternions, scalar first: ``q = (q0, q1, q2, q3)``.

See Kinon and Betsch 2024, sect. 3 and appendix C.

``R(q) = E(q) G(q)^T`` maps convective (body-fixed) components to spatial ones; the angular velocity is
``Omega = 2 G(q) v`` in the body frame and ``omega = 2 E(q) v`` in space, where v is the time derivative of q.
Polynomials in q stay polynomials (``to_matrix(q)`` is not divided by ``q.q``): discrete gradients of polynomials of
second degree need no correction.

>>> from livens import rotations as rot
>>> quarter = rot.from_axis_angle([0, 0, 1], 3.141592653589793 / 2)
>>> rot.rotate(quarter, [1.0, 0.0, 0.0]).round(12).tolist()
[0.0, 1.0, 0.0]

Functions accept numbers and symbols, except `from_matrix`, `to_axis_angle` and `to_euler_angles`, which require
numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from livens import math as m
from livens.errors import InputError
from livens.types import ArrayLike, FloatArray, Vector

identity: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)

#: Threshold on the square of half the angle below which two terms of the series are exact to round-off.
_SERIES_THRESHOLD = 1e-8


# -- algebra ----------------------------------------------------------------------------------------------------------
def product(a: Vector, b: Vector) -> np.ndarray:
    """Return the quaternion product ``a o b`` (28): rotation b followed by rotation a.

    Parameters
    ----------
    a, b : array_like of shape (4,)
        Quaternions, scalar first.

    Returns
    -------
    numpy.ndarray of shape (4,)
        The product.

    Examples
    --------
    >>> product([0, 1, 0, 0], [0, 0, 1, 0]).tolist()
    [0.0, 0.0, 0.0, 1.0]
    """
    a, b = _components(a, 4), _components(b, 4)
    vector = a[0] * b[1:] + b[0] * a[1:] + m.cross(a[1:], b[1:])
    return m.array([a[0] * b[0] - m.dot(a[1:], b[1:]), *vector])


def conjugate(q: Vector) -> np.ndarray:
    """Return the conjugate ``(q0, -q1, -q2, -q3)``, the inverse of a unit quaternion.

    Parameters
    ----------
    q : array_like of shape (4,)
        Quaternion, scalar first.

    Returns
    -------
    numpy.ndarray of shape (4,)
        The conjugate quaternion.

    Examples
    --------
    >>> product(conjugate([0.6, 0, 0.8, 0]), [0.6, 0, 0.8, 0]).tolist()
    [1.0, 0.0, 0.0, 0.0]
    """
    q = _components(q, 4)
    return m.array([q[0], *(-q[1:])])


def normalized(q: ArrayLike) -> np.ndarray:
    """Return the unit quaternion ``q/|q|``.

    Parameters
    ----------
    q : array_like of shape (4,)
        Nonzero quaternion, scalar first.

    Returns
    -------
    numpy.ndarray of shape (4,)
        The unit quaternion.

    Examples
    --------
    >>> normalized([3, 0, 0, 4]).tolist()
    [0.6, 0.0, 0.0, 0.8]
    """
    q = _components(q, 4)
    return q / m.norm(q)


def skew(a: FloatArray) -> np.ndarray:
    """Return the skew-symmetric matrix of the cross product: ``skew(a) b = a x b`` (2).

    Parameters
    ----------
    a : array_like of shape (3,)
        Vector.

    Returns
    -------
    numpy.ndarray of shape (3, 3)
        The skew-symmetric matrix.

    Examples
    --------
    >>> (skew([1, 2, 3]) @ [0, 0, 1]).tolist()
    [2.0, -1.0, 0.0]
    """
    a = _components(a, 3)
    return m.array([[0.0, -a[2], a[1]], [a[2], 0.0, -a[0]], [-a[1], a[0], 0.0]])


def Q_l(a: Any) -> np.ndarray:
    """Return the matrix of quaternion multiplication from the left: ``Q_l(a) b = a o b`` (33a).

    Parameters
    ----------
    a : array_like of shape (4,)
        Left factor, scalar first.

    Returns
    -------
    numpy.ndarray of shape (4, 4)
        The multiplication matrix.

    Examples
    --------
    >>> (Q_l([0, 1, 0, 0]) @ [0, 0, 1, 0]).tolist()
    [0.0, 0.0, 0.0, 1.0]
    """
    a = _components(a, 4)
    return np.column_stack([a, G(a).T])


def Q_r(b: Vector) -> np.ndarray:
    """Return the matrix of quaternion multiplication from the right: ``Q_r(b) a = a o b`` (33b).

    Parameters
    ----------
    b : array_like of shape (4,)
        Right factor, scalar first.

    Returns
    -------
    numpy.ndarray of shape (4, 4)
        The multiplication matrix.

    Examples
    --------
    >>> (Q_r([0, 0, 1, 0]) @ [0, 1, 0, 0]).tolist()
    [0.0, 0.0, 0.0, 1.0]
    """
    b = _components(b, 4)
    return np.column_stack([b, E(b).T])


def E(q: Vector) -> np.ndarray:
    """Return the 3x4 matrix E of (35b): spatial angular velocity ``omega = 2 E(q) v``.

    Parameters
    ----------
    q : array_like of shape (4,)
        Unit quaternion, scalar first.

    Returns
    -------
    numpy.ndarray of shape (3, 4)
        The matrix E(q).

    Examples
    --------
    >>> E([1, 0, 0, 0]).tolist()
    [[-0.0, 1.0, -0.0, 0.0], [-0.0, 0.0, 1.0, -0.0], [-0.0, -0.0, 0.0, 1.0]]
    """
    a, b, c, d = _components(q, 4)
    return m.array([[-b, a, -d, c], [-c, d, a, -b], [-d, -c, b, a]])


def G(q: Vector) -> np.ndarray:
    """Return the 3x4 matrix G of (35a): convective angular velocity ``Omega = 2 G(q) v``.

    Parameters
    ----------
    q : array_like of shape (4,)
        Unit quaternion, scalar first.

    Returns
    -------
    numpy.ndarray of shape (3, 4)
        The matrix G(q).

    Examples
    --------
    >>> G([0, 1, 0, 0]).tolist()
    [[-1.0, 0.0, 0.0, -0.0], [-0.0, -0.0, 0.0, 1.0], [-0.0, 0.0, -1.0, 0.0]]
    """
    a, b, c, d = _components(q, 4)
    return m.array([[-b, a, d, -c], [-c, -d, a, b], [-d, c, -b, a]])


# -- angular velocity -------------------------------------------------------------------------------------------------
def convective_velocity(q: Vector, v: Vector) -> np.ndarray:
    """Return the angular velocity in the body frame, ``Omega = 2 G(q) v`` (43).

    Parameters
    ----------
    q : array_like of shape (4,)
        Unit quaternion, scalar first.
    v : array_like of shape (4,)
        Time derivative of q, in 1/s.

    Returns
    -------
    numpy.ndarray of shape (3,)
        Convective angular velocity, in rad/s.

    Examples
    --------
    >>> convective_velocity([1, 0, 0, 0], [0, 5, 10, 10]).tolist()
    [10.0, 20.0, 20.0]
    """
    return 2 * (G(q) @ _components(v, 4))


def spatial_velocity(q: FloatArray, v: FloatArray) -> np.ndarray:
    """Return the angular velocity in the spatial frame, ``omega = 2 E(q) v`` (43).

    Parameters
    ----------
    q : array_like of shape (4,)
        Unit quaternion, scalar first.
    v : array_like of shape (4,)
        Time derivative of q, in 1/s.

    Returns
    -------
    numpy.ndarray of shape (3,)
        Spatial angular velocity, in rad/s.

    Examples
    --------
    >>> spatial_velocity([1, 0, 0, 0], [0, 5, 10, 10]).tolist()
    [10.0, 20.0, 20.0]
    """
    return 2 * (E(q) @ _components(v, 4))


def rate_from_convective(q: FloatArray, Omega: ArrayLike) -> np.ndarray:
    """Return the time derivative of q from the angular velocity in the body frame (44).

    Parameters
    ----------
    q : array_like of shape (4,)
        Unit quaternion, scalar first.
    Omega : array_like of shape (3,)
        Convective angular velocity, in rad/s.

    Returns
    -------
    numpy.ndarray of shape (4,)
        Time derivative of q, in 1/s.

    Examples
    --------
    >>> rate_from_convective([1, 0, 0, 0], [10, 20, 20]).tolist()
    [0.0, 5.0, 10.0, 10.0]
    """
    return (G(q).T @ _components(Omega, 3)) / 2


def rate_from_spatial(q: FloatArray, omega: FloatArray) -> np.ndarray:
    """Return the time derivative of q from the angular velocity in the spatial frame (44).

    Parameters
    ----------
    q : array_like of shape (4,)
        Unit quaternion, scalar first.
    omega : array_like of shape (3,)
        Spatial angular velocity, in rad/s.

    Returns
    -------
    numpy.ndarray of shape (4,)
        Time derivative of q, in 1/s.

    Examples
    --------
    >>> rate_from_spatial([1, 0, 0, 0], [10, 20, 20]).tolist()
    [0.0, 5.0, 10.0, 10.0]
    """
    return (E(q).T @ _components(omega, 3)) / 2


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
    half = _components(vector, 3) / 2
    square = m.dot(half, half)
    small = square < _SERIES_THRESHOLD
    angle = m.sqrt(m.where(small, 1.0, square))  # avoids the infinite derivative of the root at zero
    sinc = m.where(small, 1 - square / 6, m.sin(angle) / angle)
    cosine = m.where(small, 1 - square / 2 + square**2 / 24, m.cos(angle))
    return m.array([_unwrap_0d(cosine), *(_unwrap_0d(sinc) * half)])


def logarithm(q: Any) -> np.ndarray:
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
    q = _components(q, 4)
    square = m.dot(q[1:], q[1:])
    small = square < _SERIES_THRESHOLD
    sine = m.sqrt(m.where(small, 1.0, square))
    sign = m.where(q[0] < 0, -1.0, 1.0)
    # asin(s)/s = 1 + s^2/6 near zero
    factor = m.where(small, 2 + square / 3, 2 * m.atan2(sine, abs(q[0])) / sine)
    return _unwrap_0d(sign * factor) * q[1:]


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
    axis = _components(axis, 3)
    length = m.norm(axis)
    if not isinstance(length, m.Scalar) and not length > 0:
        raise InputError("the axis of a rotation must not be zero")
    return m.array([m.cos(angle / 2), *(m.sin(angle / 2) * axis / length)])


def to_axis_angle(q: Any) -> tuple[np.ndarray, float]:
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
    vector = logarithm(_numeric_components(q, 4))
    angle = float(np.linalg.norm(vector))
    return (vector / angle, angle) if angle > 0 else (np.array([1.0, 0.0, 0.0]), 0.0)


# -- matrices ---------------------------------------------------------------------------------------------------------
def to_matrix(q: Any) -> np.ndarray:
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
    a, b, c, d = _components(q, 4)
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
    return to_matrix(q) @ _components(x, 3)


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


def from_euler_angles(angles: Sequence[Any], axes: str = "zxz") -> np.ndarray:
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


def to_euler_angles(q: Any, axes: str = "zxz") -> EulerAngles:
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
    q = _numeric_components(q, 4)
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
    _, b, c = _components(angles, 3)
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


# -- input ------------------------------------------------------------------------------------------------------------
def _components(value: Any, count: int) -> np.ndarray:
    items = m.array(value)
    if items.shape != (count,):
        requirement = (
            "a quaternion has 4 components, scalar first" if count == 4 else "a vector in space has 3 components"
        )
        raise InputError(f"{requirement}; got an array of shape {items.shape}")
    return items


def _numeric_components(value: Any, count: int) -> np.ndarray:
    items = _components(value, count)
    if items.dtype == object:
        raise InputError("this conversion needs numbers, not symbols")
    return items


def _unwrap_0d(value: FloatArray) -> float:
    """Return a 0-d array (a result of `numpy.where`) as a number."""
    return value.item() if isinstance(value, np.ndarray) else value
