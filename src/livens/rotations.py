"""Rotations by unit quaternions, scalar first: ``q = (q0, q1, q2, q3)`` (S004 sect. 3 and appendix C).

``R(q) = E(q) G(q)^T`` maps convective (body-fixed) components to spatial ones; the angular velocity is
``Omega = 2 G(q) v`` in the body frame and ``omega = 2 E(q) v`` in space, where v is the rate of q. What is a polynomial
in q is left one (``matrix(q)`` is not divided by ``q.q``): for polynomials of second degree, discrete gradients need no
correction.

>>> from livens import rotations as rot
>>> quarter = rot.from_axis_angle([0, 0, 1], 3.141592653589793 / 2)
>>> rot.rotate(quarter, [1.0, 0.0, 0.0]).round(12).tolist()
[0.0, 1.0, 0.0]

Functions take numbers and symbols alike, except where they have to look at the numbers: `from_matrix`, `axis_angle` and
`euler_angles`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from livens import math as m
from livens.errors import InputError

identity: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)

#: Below this square of half the angle, two terms of the series are exact to the last digit.
_SMALL = 1e-8


# -- algebra ----------------------------------------------------------------------------------------------------------
def product(a: Any, b: Any) -> np.ndarray:
    """The quaternion product ``a o b`` (28): first b, then a, as rotations.

    >>> product([0, 1, 0, 0], [0, 0, 1, 0]).tolist()
    [0.0, 0.0, 0.0, 1.0]
    """
    a, b = _items(a, 4), _items(b, 4)
    vector = a[0] * b[1:] + b[0] * a[1:] + m.cross(a[1:], b[1:])
    return m.array([a[0] * b[0] - m.dot(a[1:], b[1:]), *vector])


def conjugate(q: Any) -> np.ndarray:
    """``(q0, -q1, -q2, -q3)``: the inverse of a unit quaternion.

    >>> product(conjugate([0.6, 0, 0.8, 0]), [0.6, 0, 0.8, 0]).tolist()
    [1.0, 0.0, 0.0, 0.0]
    """
    q = _items(q, 4)
    return m.array([q[0], *(-q[1:])])


def normalized(q: Any) -> np.ndarray:
    """The unit quaternion in the direction of q.

    >>> normalized([3, 0, 0, 4]).tolist()
    [0.6, 0.0, 0.0, 0.8]
    """
    q = _items(q, 4)
    return q / m.norm(q)


def skew(a: Any) -> np.ndarray:
    """The matrix of the vector product: ``skew(a) b = a x b`` (2).

    >>> (skew([1, 2, 3]) @ [0, 0, 1]).tolist()
    [2.0, -1.0, 0.0]
    """
    a = _items(a, 3)
    return m.array([[0.0, -a[2], a[1]], [a[2], 0.0, -a[0]], [-a[1], a[0], 0.0]])


def Q_l(a: Any) -> np.ndarray:
    """Multiplication from the left: ``Q_l(a) b = a o b`` (33a).

    >>> (Q_l([0, 1, 0, 0]) @ [0, 0, 1, 0]).tolist()
    [0.0, 0.0, 0.0, 1.0]
    """
    a = _items(a, 4)
    return np.column_stack([a, G(a).T])


def Q_r(b: Any) -> np.ndarray:
    """Multiplication from the right: ``Q_r(b) a = a o b`` (33b).

    >>> (Q_r([0, 0, 1, 0]) @ [0, 1, 0, 0]).tolist()
    [0.0, 0.0, 0.0, 1.0]
    """
    b = _items(b, 4)
    return np.column_stack([b, E(b).T])


def E(q: Any) -> np.ndarray:
    """The 3x4 matrix of (35b): spatial angular velocity ``omega = 2 E(q) v``.

    >>> E([1, 0, 0, 0]).tolist()
    [[-0.0, 1.0, -0.0, 0.0], [-0.0, 0.0, 1.0, -0.0], [-0.0, -0.0, 0.0, 1.0]]
    """
    a, b, c, d = _items(q, 4)
    return m.array([[-b, a, -d, c], [-c, d, a, -b], [-d, -c, b, a]])


def G(q: Any) -> np.ndarray:
    """The 3x4 matrix of (35a): convective angular velocity ``Omega = 2 G(q) v``.

    >>> G([0, 1, 0, 0]).tolist()
    [[-1.0, 0.0, 0.0, -0.0], [-0.0, -0.0, 0.0, 1.0], [-0.0, 0.0, -1.0, 0.0]]
    """
    a, b, c, d = _items(q, 4)
    return m.array([[-b, a, d, -c], [-c, -d, a, b], [-d, c, -b, a]])


# -- angular velocity -------------------------------------------------------------------------------------------------
def convective_velocity(q: Any, v: Any) -> np.ndarray:
    """``Omega = 2 G(q) v``, the angular velocity in the body frame (43).

    >>> convective_velocity([1, 0, 0, 0], [0, 5, 10, 10]).tolist()
    [10.0, 20.0, 20.0]
    """
    return 2 * (G(q) @ _items(v, 4))


def spatial_velocity(q: Any, v: Any) -> np.ndarray:
    """``omega = 2 E(q) v``, the angular velocity in space (43).

    >>> spatial_velocity([1, 0, 0, 0], [0, 5, 10, 10]).tolist()
    [10.0, 20.0, 20.0]
    """
    return 2 * (E(q) @ _items(v, 4))


def rate_from_convective(q: Any, Omega: Any) -> np.ndarray:
    """The rate of q of a body that turns with Omega, in the body frame (44).

    >>> rate_from_convective([1, 0, 0, 0], [10, 20, 20]).tolist()
    [0.0, 5.0, 10.0, 10.0]
    """
    return (G(q).T @ _items(Omega, 3)) / 2


def rate_from_spatial(q: Any, omega: Any) -> np.ndarray:
    """The rate of q of a body that turns with omega, in space (44).

    >>> rate_from_spatial([1, 0, 0, 0], [10, 20, 20]).tolist()
    [0.0, 5.0, 10.0, 10.0]
    """
    return (E(q).T @ _items(omega, 3)) / 2


# -- rotation vectors -------------------------------------------------------------------------------------------------
def exponential(vector: Any) -> np.ndarray:
    """The unit quaternion of a rotation vector (axis times angle) (40); smooth at zero.

    >>> exponential([0, 0, 0]).tolist()
    [1.0, 0.0, 0.0, 0.0]
    """
    half = _items(vector, 3) / 2
    square = m.dot(half, half)
    small = square < _SMALL
    angle = m.sqrt(m.where(small, 1.0, square))  # never the root of zero, whose derivative is infinite
    sinc = m.where(small, 1 - square / 6, m.sin(angle) / angle)
    cosine = m.where(small, 1 - square / 2 + square**2 / 24, m.cos(angle))
    return m.array([_plain(cosine), *(_plain(sinc) * half)])


def logarithm(q: Any) -> np.ndarray:
    """The rotation vector of a unit quaternion, of length at most pi; q and -q have the same.

    >>> logarithm([0, 0, 1, 0]).round(12).tolist()
    [0.0, 3.14159265359, 0.0]
    """
    q = _items(q, 4)
    square = m.dot(q[1:], q[1:])
    small = square < _SMALL
    sine = m.sqrt(m.where(small, 1.0, square))
    sign = m.where(q[0] < 0, -1.0, 1.0)
    # asin(s)/s = 1 + s^2/6 near zero
    factor = m.where(small, 2 + square / 3, 2 * m.atan2(sine, abs(q[0])) / sine)
    return _plain(sign * factor) * q[1:]


def from_axis_angle(axis: Any, angle: Any) -> np.ndarray:
    """The rotation by an angle about an axis of any length but zero.

    >>> from_axis_angle([0, 0, 2], 0.0).tolist()
    [1.0, 0.0, 0.0, 0.0]
    """
    axis = _items(axis, 3)
    length = m.norm(axis)
    if not isinstance(length, m.Scalar) and not length > 0:
        raise InputError("the axis of a rotation must not be zero")
    return m.array([m.cos(angle / 2), *(m.sin(angle / 2) * axis / length)])


def axis_angle(q: Any) -> tuple[np.ndarray, float]:
    """Axis and angle in [0, pi] of a unit quaternion; without a rotation, the first axis.

    >>> axis_angle([1, 0, 0, 0])
    (array([1., 0., 0.]), 0.0)
    """
    vector = logarithm(_numbers(q, 4))
    angle = float(np.linalg.norm(vector))
    return (vector / angle, angle) if angle > 0 else (np.array([1.0, 0.0, 0.0]), 0.0)


# -- matrices ---------------------------------------------------------------------------------------------------------
def matrix(q: Any) -> np.ndarray:
    """The rotation matrix ``R(q) = E(q) G(q)^T`` (50), convective to spatial; its columns are the directors.

    >>> matrix([0, 0, 0, 1]).tolist()
    [[-1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    a, b, c, d = _items(q, 4)
    return m.array(
        [
            [a * a + b * b - c * c - d * d, 2 * (b * c - a * d), 2 * (b * d + a * c)],
            [2 * (b * c + a * d), a * a - b * b + c * c - d * d, 2 * (c * d - a * b)],
            [2 * (b * d - a * c), 2 * (c * d + a * b), a * a - b * b - c * c + d * d],
        ]
    )


def rotate(q: Any, x: Any) -> np.ndarray:
    """``R(q) x``: a body-fixed vector, in space.

    >>> rotate([0, 0, 0, 1], [1, 2, 3]).tolist()
    [-1.0, -2.0, 3.0]
    """
    return matrix(q) @ _items(x, 3)


def directors(q: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The body frame in space: the columns of R(q).

    >>> [d.tolist() for d in directors([0, 1, 0, 0])]
    [[1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, -1.0]]
    """
    R = matrix(q)
    return R[:, 0], R[:, 1], R[:, 2]


def from_directors(d1: Any, d2: Any, d3: Any) -> np.ndarray:
    """The unit quaternion of a body frame.

    >>> from_directors([1, 0, 0], [0, 1, 0], [0, 0, 1]).tolist()
    [1.0, 0.0, 0.0, 0.0]
    """
    return from_matrix(np.column_stack([d1, d2, d3]))


def from_matrix(R: Any) -> np.ndarray:
    """The unit quaternion with ``q0 >= 0`` of a rotation matrix.

    Of the four ways to compute it (one per component to divide by), the one with the largest divisor is taken.

    >>> from_matrix([[-1, 0, 0], [0, 1, 0], [0, 0, -1]]).tolist()
    [0.0, 0.0, 1.0, 0.0]
    """
    R = np.asarray(R, dtype=float)
    if R.shape != (3, 3) or not np.allclose(R.T @ R, np.eye(3), rtol=0, atol=1e-8) or np.linalg.det(R) < 0:
        raise InputError("not a rotation matrix: it must be orthogonal, 3x3, with determinant 1")
    # four times the outer product of q with itself: each row is a multiple of q
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
    """Three angles, and whether they are singular.

    Where they are, the first and the third axis coincide: only the sum or the difference of their angles is
    determined, and the third angle is set to zero.
    """

    first: float
    second: float
    third: float
    singular: bool


def from_euler_angles(angles: Sequence[Any], axes: str = "zxz") -> np.ndarray:
    """Three rotations one after the other, each about an axis of the frame turned so far (intrinsic).

    "zxz" (precession, nutation, spin) is what tops are described with, "zyx" (yaw, pitch, roll) vehicles. Any axes
    will do, if neighbours differ.

    >>> from_euler_angles([0.0, 3.141592653589793, 0.0]).round(12).tolist()
    [0.0, 1.0, 0.0, 0.0]
    """
    first, second, third = _axes(axes)
    if len(angles) != 3:
        raise InputError(f"Euler angles are three, got {len(angles)}")
    turns = [from_axis_angle(np.eye(3)[i], angle) for i, angle in zip((first, second, third), angles, strict=True)]
    return product(product(turns[0], turns[1]), turns[2])


def euler_angles(q: Any, axes: str = "zxz") -> EulerAngles:
    """The intrinsic Euler angles of a unit quaternion; see `from_euler_angles` for the convention.

    With equal outer axes the second angle is in [0, pi], singular at both ends; with three different axes it is in
    [-pi/2, pi/2], again singular at both ends.

    >>> euler_angles(from_euler_angles([0.3, 0.5, 0.2], "zyx"), "zyx").singular
    False
    """
    i, j, k = _axes(axes)
    q = _numbers(q, 4)
    third_axis = 3 - i - j
    parity = 1.0 if (j - i) % 3 == 1 else -1.0
    if i != k:
        # turning axis k about axis j by a quarter brings it to axis i: equal outer axes, the second angle shifted
        quarter = from_axis_angle(np.eye(3)[j], -parity * m.pi / 2)
        q = product(q, quarter)
    # q_i(a) o q_j(b) o q_i(c) = (cos b/2 cos (a+c)/2, cos b/2 sin (a+c)/2, sin b/2 cos (a-c)/2, sin b/2 sin (a-c)/2)
    scalar, along, across, last = q[0], q[1 + i], q[1 + j], parity * q[1 + third_axis]
    second = 2 * np.arctan2(np.hypot(across, last), np.hypot(scalar, along))
    half_sum, half_difference = np.arctan2(along, scalar), np.arctan2(last, across)
    singular = bool(min(second, m.pi - second) < 1e-7)
    if singular:
        first = 2 * half_sum if second < 1 else 2 * half_difference
        third = 0.0
    else:
        first, third = half_sum + half_difference, half_sum - half_difference
    if i != k and parity > 0:
        # the shifted second angle is negative: q_j(-b) = q_i(pi) o q_j(b) o q_i(-pi)
        second = m.pi / 2 - second
        if not singular:  # else the half turns cancel in what is determined
            first, third = first - m.pi, third + m.pi
    elif i != k:
        second -= m.pi / 2
    return EulerAngles(_wrapped(first), float(second), _wrapped(third), singular)


def euler_rates(angles: Any, axes: str = "zxz") -> np.ndarray:
    """The matrix Z of ``angles' = Z Omega`` for intrinsic Euler angles and angular velocities in body-fixed axes.

    It is what `livens.MultibodyEquations` asks for as `kinematics`, and singular where the angles are.

    >>> euler_rates([0.4, 0.5, 0.0], "xyz").round(3).tolist()
    [[1.139, 0.0, 0.0], [0.0, 1.0, 0.0], [-0.546, 0.0, 1.0]]
    """
    i, j, k = _axes(axes)
    _, b, c = _items(angles, 3)
    parity, other = (1.0 if (j - i) % 3 == 1 else -1.0), 3 - i - j
    # before the last turn the angular velocity is a' (cos b e_i + parity sin b e_other) + b' e_j + c' e_k
    S: list[list[Any]] = [[0.0] * 3 for _ in range(3)]
    S[1][j] = S[2][k] = 1.0
    if k == i:
        S[0][other] = parity / m.sin(b)
        S[2][other] = -parity * m.cos(b) / m.sin(b)
    else:
        S[0][i] = 1 / m.cos(b)
        S[2][i] = -parity * m.sin(b) / m.cos(b)
    turn: list[list[Any]] = [[float(row == column) for column in range(3)] for row in range(3)]
    x, y = (k + 1) % 3, (k + 2) % 3
    turn[x][x] = turn[y][y] = m.cos(c)
    turn[x][y], turn[y][x] = -m.sin(c), m.sin(c)
    return m.array([[sum(S[row][n] * turn[n][column] for n in range(3)) for column in range(3)] for row in range(3)])


def _wrapped(angle: float) -> float:
    """In (-pi, pi]."""
    return float(-((-angle + m.pi) % (2 * m.pi) - m.pi))


def _axes(axes: str) -> tuple[int, int, int]:
    if len(axes) != 3 or set(axes) - set("xyz") or axes[0] == axes[1] or axes[1] == axes[2]:
        raise InputError(
            f"axes must be three letters of x, y, z with different neighbours, such as 'zxz', got {axes!r}"
        )
    i, j, k = ("xyz".index(letter) for letter in axes)
    return i, j, k


# -- input ------------------------------------------------------------------------------------------------------------
def _items(value: Any, count: int) -> np.ndarray:
    items = m.array(value)
    if items.shape != (count,):
        what = "a quaternion has 4 components, scalar first" if count == 4 else "a vector in space has 3 components"
        raise InputError(f"{what}; got an array of shape {items.shape}")
    return items


def _numbers(value: Any, count: int) -> np.ndarray:
    items = _items(value, count)
    if items.dtype == object:
        raise InputError("this conversion needs numbers, not symbols")
    return items


def _plain(value: Any) -> Any:
    """A 0-d array (NumPy's `where` gives one) as a number."""
    return value.item() if isinstance(value, np.ndarray) else value
