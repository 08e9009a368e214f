"""Linear algebra and construction of arrays of symbols or numbers, and conversion from and to CasADi."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import casadi as ca
import numpy as np

from livens.math.scalar import Scalar, scalar_to_sx, sqrt, unwrap


def sum(items: object, axis: int | None = None) -> Any:
    """Return the sum of all items, or the sums along one axis of an array.

    Parameters
    ----------
    items : array_like or iterator
        Numbers or Scalars.
    axis : int, optional
        Axis of summation. Default: all axes.

    Returns
    -------
    float, Scalar or numpy.ndarray
        The sum.

    Examples
    --------
    >>> float(sum([1.0, 2.0, 3.0]))
    6.0
    >>> sum([[1.0, 2.0], [3.0, 4.0]], axis=0)
    array([4., 6.])
    """
    return np.sum(array(list(items) if isinstance(items, Iterator) else items), axis=axis)


def dot(a: object, b: object) -> Any:
    """Return the inner product of two vectors.

    Parameters
    ----------
    a, b : array_like of shape (n,)
        Vectors of equal length.

    Returns
    -------
    float or Scalar
        The inner product.

    Raises
    ------
    ValueError
        If the arguments are not vectors of equal length.

    Examples
    --------
    >>> float(dot([1.0, 2.0], [3.0, 4.0]))
    11.0
    """
    lhs, rhs = np.asarray(a), np.asarray(b)
    if lhs.shape != rhs.shape or lhs.ndim != 1:
        raise ValueError(f"dot needs two vectors of one length, got shapes {lhs.shape} and {rhs.shape}")
    return np.dot(lhs, rhs)


def norm(a: object) -> Any:
    """Return the Euclidean norm of a vector.

    Parameters
    ----------
    a : array_like of shape (n,)
        Vector.

    Returns
    -------
    float or Scalar
        The norm.

    Examples
    --------
    >>> float(norm([3.0, 4.0]))
    5.0
    """
    return sqrt(dot(a, a))


def cross(a: object, b: object) -> Any:
    """Return the cross product of two vectors in space, or its scalar value in the plane.

    Parameters
    ----------
    a, b : array_like of shape (3,) or (2,)
        Vectors of equal length.

    Returns
    -------
    numpy.ndarray of shape (3,), float or Scalar
        The cross product; a scalar for vectors in the plane.

    Raises
    ------
    ValueError
        If the arguments are not two vectors of length 2 or 3.

    Examples
    --------
    >>> cross([1, 0, 0], [0, 1, 0])
    array([0., 0., 1.])
    """
    lhs, rhs = np.asarray(a), np.asarray(b)
    if lhs.shape == rhs.shape == (2,):
        return lhs[0] * rhs[1] - lhs[1] * rhs[0]
    if lhs.shape == rhs.shape == (3,):
        components = [lhs[i - 2] * rhs[i - 1] - lhs[i - 1] * rhs[i - 2] for i in range(3)]
        return array(components)
    raise ValueError(f"cross needs two vectors of length 2 or 3, got shapes {lhs.shape} and {rhs.shape}")


def outer(a: object, b: object) -> np.ndarray:
    """Return the outer product of two vectors: the matrix of all products ``a_i b_j``.

    Parameters
    ----------
    a, b : array_like
        Vectors of length m and n.

    Returns
    -------
    numpy.ndarray of shape (m, n)
        The outer product.

    Examples
    --------
    >>> outer([1.0, 2.0], [3.0, 4.0])
    array([[3., 4.],
           [6., 8.]])
    """
    return np.outer(array(a), array(b))


def diag(items: object) -> np.ndarray:
    """Return the diagonal matrix of a vector, or the diagonal of a matrix.

    Parameters
    ----------
    items : array_like of shape (n,) or (n, n)
        Vector or matrix.

    Returns
    -------
    numpy.ndarray
        Matrix of shape (n, n) or vector of shape (n,).

    Raises
    ------
    ValueError
        If `items` is not a vector or a matrix.

    Examples
    --------
    >>> diag([1.0, 2.0])
    array([[1., 0.],
           [0., 2.]])
    >>> diag([[1.0, 5.0], [6.0, 2.0]])
    array([1., 2.])
    """
    values = array(items)
    if values.ndim not in (1, 2):
        raise ValueError(f"diag needs a vector or a matrix, got an array of shape {values.shape}")
    return np.diag(values)


def zeros(shape: int | tuple[int, ...]) -> np.ndarray:
    """Return an array of zeros that can store numbers and symbols.

    Parameters
    ----------
    shape : int or tuple of int
        Shape of the array.

    Returns
    -------
    numpy.ndarray
        Array of zeros with dtype object. The arrays of ``numpy.zeros`` store numbers only.

    Examples
    --------
    >>> A = zeros((2, 2))
    >>> A[0, 1] = Scalar(ca.SX.sym("x"))
    >>> A
    array([[0.0, x],
           [0.0, 0.0]], dtype=object)
    """
    return np.full(shape, 0.0, dtype=object)


def ones(shape: int | tuple[int, ...]) -> np.ndarray:
    """Return an array of ones that can store numbers and symbols.

    Parameters
    ----------
    shape : int or tuple of int
        Shape of the array.

    Returns
    -------
    numpy.ndarray
        Array of ones with dtype object.

    Examples
    --------
    >>> ones(2)
    array([1.0, 1.0], dtype=object)
    """
    return np.full(shape, 1.0, dtype=object)


def eye(n: int) -> np.ndarray:
    """Return the identity matrix as an array that can store numbers and symbols.

    Parameters
    ----------
    n : int
        Number of rows and columns.

    Returns
    -------
    numpy.ndarray of shape (n, n)
        Identity matrix with dtype object.

    Examples
    --------
    >>> eye(2)
    array([[1.0, 0.0],
           [0.0, 1.0]], dtype=object)
    """
    return np.eye(n).astype(object)


def stack(items: Any, axis: int = 0) -> np.ndarray:
    """Stack arrays of equal shape along a new axis.

    Parameters
    ----------
    items : sequence of array_like
        Arrays of equal shape.
    axis : int, default 0
        Index of the new axis.

    Returns
    -------
    numpy.ndarray
        The stacked array.

    Examples
    --------
    >>> stack([[1.0, 2.0], [3.0, 4.0]], axis=1)
    array([[1., 3.],
           [2., 4.]])
    """
    return np.stack([array(item) for item in items], axis=axis)


def concatenate(items: Any, axis: int = 0) -> np.ndarray:
    """Concatenate arrays along an existing axis.

    Parameters
    ----------
    items : sequence of array_like
        Arrays whose shapes are equal except along `axis`.
    axis : int, default 0
        Axis of concatenation.

    Returns
    -------
    numpy.ndarray
        The concatenated array.

    Examples
    --------
    >>> concatenate([[1.0, 2.0], [3.0]])
    array([1., 2., 3.])
    """
    return np.concatenate([array(item) for item in items], axis=axis)


def array(items: object) -> np.ndarray:
    """Return an array of numbers, symbols or nested lists of them.

    Parameters
    ----------
    items : array_like
        Numbers, Scalars or nested lists of them.

    Returns
    -------
    numpy.ndarray
        Array with dtype object if it contains a Scalar, else dtype float.

    Examples
    --------
    >>> array([[1, 2], [3, 4]])
    array([[1., 2.],
           [3., 4.]])
    """
    return np.array(items, dtype=object) if _has_symbol(items) else np.asarray(items, dtype=float)


def _has_symbol(items: object) -> bool:
    if isinstance(items, np.ndarray):
        return items.dtype == object
    if isinstance(items, (list, tuple)):
        return any(_has_symbol(item) for item in items)
    return isinstance(items, Scalar)


def from_casadi(vector: Any) -> np.ndarray:
    """Return a CasADi column vector as an array of Scalars.

    Parameters
    ----------
    vector : casadi.SX
        Column vector of n entries.

    Returns
    -------
    numpy.ndarray of shape (n,)
        Array of Scalars.

    Examples
    --------
    >>> from_casadi(ca.SX.sym("q", 2))
    array([q_0, q_1], dtype=object)
    """
    elements = vector.elements()
    result = np.empty(len(elements), dtype=object)
    for i, element in enumerate(elements):
        result[i] = Scalar(element)
    return result


def to_casadi(value: object) -> Any:
    """Return a Scalar, a number, or an array of them as a CasADi matrix.

    Parameters
    ----------
    value : float, Scalar or array_like
        Scalar, vector or matrix.

    Returns
    -------
    casadi.SX
        Expression; vectors become columns.

    Examples
    --------
    >>> to_casadi([1.0, Scalar(ca.SX.sym("x"))])
    SX([1, x])
    """
    items = array(value)
    if items.ndim == 0:
        return scalar_to_sx(items.item())
    columns = items.reshape(items.shape[0], -1)
    # triplets of the nonzeros in column-major order: setting single entries takes five times as long
    if columns.dtype != object:
        indices = np.argwhere(columns.T != 0)
        values = ca.SX(ca.DM(columns[indices[:, 1], indices[:, 0]]))
    else:
        triplets = [(j, i, unwrap(item)) for (j, i), item in np.ndenumerate(columns.T)]
        nonzeros = [
            entry for entry in triplets if not (entry[2].is_zero() if isinstance(entry[2], ca.SX) else entry[2] == 0)
        ]
        indices = np.array([entry[:2] for entry in nonzeros], dtype=np.int64).reshape(-1, 2)
        values = ca.vertcat(*(entry[2] for entry in nonzeros)) if nonzeros else ca.SX(0, 1)
    return ca.SX.triplet(indices[:, 1].tolist(), indices[:, 0].tolist(), ca.SX(values), *columns.shape)
