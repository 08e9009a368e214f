"""Algebra of quaternions, their matrices, and the angular velocity of a rotation."""

from __future__ import annotations

import numpy as np

from livens import math as m
from livens.errors import InputError
from livens.types import ArrayLike, FloatArray, Vector, VectorLike

identity: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)


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
    a, b = components(a, 4), components(b, 4)
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
    q = components(q, 4)
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
    q = components(q, 4)
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
    a = components(a, 3)
    return m.array([[0.0, -a[2], a[1]], [a[2], 0.0, -a[0]], [-a[1], a[0], 0.0]])


def Q_l(a: VectorLike) -> np.ndarray:
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
    a = components(a, 4)
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
    b = components(b, 4)
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
    a, b, c, d = components(q, 4)
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
    a, b, c, d = components(q, 4)
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
    return 2 * (G(q) @ components(v, 4))


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
    return 2 * (E(q) @ components(v, 4))


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
    return (G(q).T @ components(Omega, 3)) / 2


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
    return (E(q).T @ components(omega, 3)) / 2


# -- input ------------------------------------------------------------------------------------------------------------
def components(value: object, count: int) -> np.ndarray:
    """Return the components of a vector (`count` = 3) or quaternion (`count` = 4), symbols or numbers."""
    items = m.array(value)
    if items.shape != (count,):
        requirement = (
            "a quaternion has 4 components, scalar first" if count == 4 else "a vector in space has 3 components"
        )
        raise InputError(f"{requirement}; got an array of shape {items.shape}")
    return items


def numeric_components(value: object, count: int) -> np.ndarray:
    """Return the components of a vector or quaternion of numbers."""
    items = components(value, count)
    if items.dtype == object:
        raise InputError("this conversion needs numbers, not symbols")
    return items


def unwrap_0d(value: FloatArray) -> float:
    """Return a 0-d array (a result of `numpy.where`) as a number."""
    return value.item() if isinstance(value, np.ndarray) else value
