"""Gauss, Radau and Lobatto methods with any number of stages, computed with high precision and rounded once.

The nodes are zeros of sums of shifted Legendre polynomials. All methods on given nodes follow from integrals of
Lagrange polynomials (condition C), conjugates ``b_j (1 - a_ji / b_i)`` (condition D instead of C), and averages.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import cache
from numbers import Real

import numpy as np

from livens.errors import InputError
from livens.schemes.tableaus import multiprecision as d
from livens.schemes.tableaus.tableau import PartitionedTableau, Tableau

#: Maximum number of stages; more stages take seconds to compute and are not useful in simulations.
MAX_STAGES = 60


def check_stage_count(s: int, minimum: int, name: str) -> int:
    """Return s as an int; raise InputError if it is not a valid number of stages."""
    is_number = isinstance(s, Real) and not isinstance(s, bool)
    if not is_number or not minimum <= s <= MAX_STAGES or s != int(s):
        raise InputError(f"{name} needs a whole number of stages s from {minimum} to {MAX_STAGES}, not {s!r}")
    return int(s)


def gauss(s: int) -> Tableau:
    """Return the Gauss-Legendre collocation method: order 2s, symplectic, symmetric.

    Parameters
    ----------
    s : int
        Number of stages, from 1.

    Returns
    -------
    Tableau
        The method.

    Examples
    --------
    >>> gauss(1)
    Tableau(name='gauss-1', c=array([0.5]), A=array([[0.5]]), b=array([1.]))
    """
    return _gauss(check_stage_count(s, 1, "gauss"))


def radau_ia(s: int) -> Tableau:
    """Return the Radau IA method: order 2s-1, the conjugate of collocation at nodes with ``c_1 = 0``.

    Parameters
    ----------
    s : int
        Number of stages, from 1.

    Returns
    -------
    Tableau
        The method.

    Examples
    --------
    >>> radau_ia(2).order, radau_ia(2).C, radau_ia(2).D
    (3, 1, 2)
    """
    return _radau_ia(check_stage_count(s, 1, "radau_ia"))


def radau_iia(s: int) -> Tableau:
    """Return the Radau IIA method: collocation at nodes with ``c_s = 1``; order 2s-1, stiffly accurate.

    Parameters
    ----------
    s : int
        Number of stages, from 1.

    Returns
    -------
    Tableau
        The method.

    Examples
    --------
    >>> radau_iia(1).A, radau_iia(2).stability_at_infinity
    (array([[1.]]), 0.0)
    """
    return _radau_iia(check_stage_count(s, 1, "radau_iia"))


def lobatto_iiia(s: int) -> Tableau:
    """Return the Lobatto IIIA method: collocation with ``c_1 = 0``, ``c_s = 1``; order 2s-2, stiffly accurate.

    Parameters
    ----------
    s : int
        Number of stages, from 2.

    Returns
    -------
    Tableau
        The method.

    Examples
    --------
    >>> lobatto_iiia(2).A
    array([[0. , 0. ],
           [0.5, 0.5]])
    """
    return _lobatto(check_stage_count(s, 2, "lobatto_iiia"))["iiia"]


def lobatto_iiib(s: int) -> Tableau:
    """Return the Lobatto IIIB method: the conjugate of IIIA; order 2s-2.

    Parameters
    ----------
    s : int
        Number of stages, from 2.

    Returns
    -------
    Tableau
        The method.

    Examples
    --------
    >>> lobatto_iiib(2).A
    array([[0.5, 0. ],
           [0.5, 0. ]])
    """
    return _lobatto(check_stage_count(s, 2, "lobatto_iiib"))["iiib"]


def lobatto_iiic(s: int) -> Tableau:
    """Return the Lobatto IIIC method: ``a_i1 = b_1`` and C(s-1); order 2s-2, stiffly accurate, ``R(inf) = 0``.

    Parameters
    ----------
    s : int
        Number of stages, from 2.

    Returns
    -------
    Tableau
        The method.

    Examples
    --------
    >>> lobatto_iiic(2).A
    array([[ 0.5, -0.5],
           [ 0.5,  0.5]])
    """
    return _lobatto(check_stage_count(s, 2, "lobatto_iiic"))["iiic"]


def lobatto_iiid(s: int) -> Tableau:
    """Return the Lobatto IIID method: the average of IIIC and its conjugate; order 2s-2, symplectic, symmetric.

    Parameters
    ----------
    s : int
        Number of stages, from 2.

    Returns
    -------
    Tableau
        The method.

    Examples
    --------
    >>> lobatto_iiid(2).A
    array([[ 0.25, -0.25],
           [ 0.75,  0.25]])
    """
    return _lobatto(check_stage_count(s, 2, "lobatto_iiid"))["iiid"]


def lobatto_iiie(s: int) -> Tableau:
    """Return the Lobatto IIIE method: the average of IIIA and IIIB; order 2s-2, symplectic, symmetric.

    Parameters
    ----------
    s : int
        Number of stages, from 2.

    Returns
    -------
    Tableau
        The method.

    Examples
    --------
    >>> lobatto_iiie(2).A
    array([[0.25, 0.  ],
           [0.5 , 0.25]])
    """
    return _lobatto(check_stage_count(s, 2, "lobatto_iiie"))["iiie"]


@cache
def _lobatto_pair(s: int) -> PartitionedTableau:
    return PartitionedTableau(f"lobatto-iiia-iiib-{s}", lobatto_iiia(s), lobatto_iiib(s))


def lobatto_iiia_iiib(s: int) -> PartitionedTableau:
    """Return the Lobatto IIIA-IIIB pair: IIIA for coordinates, IIIB for momenta; order 2s-2, symplectic, symmetric.

    See Symank 2025, 6.2.

    Parameters
    ----------
    s : int
        Number of stages, from 2.

    Returns
    -------
    PartitionedTableau
        The pair.

    Examples
    --------
    >>> lobatto_iiia_iiib(3).order, lobatto_iiia_iiib(3).symplectic
    (4, True)
    """
    return _lobatto_pair(check_stage_count(s, 2, "lobatto_iiia_iiib"))


#: Functions that return the tableau of a family for s stages, by name of the family.
FAMILIES: dict[str, Callable[[int], Tableau]] = {
    "gauss": gauss,
    "radau-ia": radau_ia,
    "radau-iia": radau_iia,
    "lobatto-iiia": lobatto_iiia,
    "lobatto-iiib": lobatto_iiib,
    "lobatto-iiic": lobatto_iiic,
    "lobatto-iiid": lobatto_iiid,
    "lobatto-iiie": lobatto_iiie,
}


def gauss_nodes(s: int) -> d.Vector:
    """Return the zeros of ``P_s``."""
    return d.legendre_roots([0] * s + [1])


def lobatto_nodes(s: int) -> d.Vector:
    """Return the zeros of ``P_s - P_(s-2)``; the first is 0, the last is 1."""
    return [Decimal(0), *d.legendre_roots([0] * (s - 2) + [-1, 0, 1])[1:-1], Decimal(1)]


def collocation(c: d.Vector, upper: d.Vector) -> d.Matrix:
    """Return the integrals of the Lagrange polynomials on the nodes c from 0 to each upper limit."""
    W = d.lagrange_coefficients(c)
    return [d.matvec(W, d.legendre_integrals(len(c) - 1, u)) for u in upper]


def _conjugate(A: d.Matrix, b: d.Vector) -> d.Matrix:
    return [[b[j] * (1 - A[j][i] / b[i]) for j in range(len(b))] for i in range(len(b))]


def _average(A: d.Matrix, B: d.Matrix) -> d.Matrix:
    return [[(x + y) / 2 for x, y in zip(p, q, strict=True)] for p, q in zip(A, B, strict=True)]


def _tableau(name: str, c: d.Vector, A: d.Matrix, b: d.Vector) -> Tableau:
    return Tableau(f"{name}-{len(b)}", d.to_doubles(c), d.to_doubles(A), d.to_doubles(b))


@cache
def _gauss(s: int) -> Tableau:
    with d.precision(s):
        c = gauss_nodes(s)
        *A, b = collocation(c, [*c, Decimal(1)])
        return _tableau("gauss", c, A, b)


@cache
def gauss_weight_residuals(s: int) -> np.ndarray:
    """Return the rounding errors of the Gauss weights, which would accumulate to a drift over many steps.

    >>> bool(abs(gauss_weight_residuals(8)).max() < 1e-16), gauss_weight_residuals(1)
    (True, array([0.]))
    """
    with d.precision(s):
        (b,) = collocation(gauss_nodes(s), [Decimal(1)])
        return d.to_doubles([exact - Decimal(float(exact)) for exact in b])


@cache
def _radau_ia(s: int) -> Tableau:
    with d.precision(s):
        c = [Decimal(0), *d.legendre_roots([0] * (s - 1) + [1, 1])[1:]]
        *A, b = collocation(c, [*c, Decimal(1)])
        return _tableau("radau-ia", c, _conjugate(A, b), b)


@cache
def _radau_iia(s: int) -> Tableau:
    with d.precision(s):
        c = [*d.legendre_roots([0] * (s - 1) + [-1, 1])[:-1], Decimal(1)]
        A = collocation(c, c)
        return _tableau("radau-iia", c, A, A[-1])


@cache
def _lobatto(s: int) -> dict[str, Tableau]:
    with d.precision(s):
        c = lobatto_nodes(s)
        A = collocation(c, c)
        b = A[-1]
        iiib, iiic = _conjugate(A, b), _lobatto_iiic(c, b)
        matrices = dict(iiia=A, iiib=iiib, iiic=iiic, iiid=_average(iiic, _conjugate(iiic, b)), iiie=_average(A, iiib))
        return {name: _tableau(f"lobatto-{name}", c, matrix, b) for name, matrix in matrices.items()}


def _lobatto_iiic(c: d.Vector, b: d.Vector) -> d.Matrix:
    """Return the matrix with ``a_i1 = b_1``; the rest integrates ``p - b_1 p(0)`` for p of degree s-2, by C(s-1)."""
    W = d.lagrange_coefficients(c[1:])
    at_zero = d.matvec(W, d.legendre(len(c) - 2, Decimal(0)))
    rows = collocation(c[1:], c)
    return [[b[0], *(x - b[0] * z for x, z in zip(row, at_zero, strict=True))] for row in rows]
