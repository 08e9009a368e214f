"""Differentiation index of a linear DAE along time, where the matrix pencil at a fixed time does not determine it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from livens.models.initialization.derivative_array import derivative_array
from livens.models.linalg import EXACT_RTOL, numerical_rank

if TYPE_CHECKING:
    from livens.models.descriptor import DescriptorModel

#: Largest number of variables, and largest index, for which the derivative array is evaluated.
_MAX_VARIABLES, _MAX_INDEX = 24, 5
#: Times at which the ranks of the array are compared, in seconds.
_TIMES = (0.37, 1.91, 7.3)


def differentiation_index(model: DescriptorModel) -> int | None:
    """Return the differentiation index of linear equations ``E(t) x' + F(t) x + f(t) = 0`` (Kunkel and Mehrmann 2006).

    It is the smallest number k of differentiations by time for which the derivative array determines x': its matrix of
    ``x', ..., x^(k+1)`` has n more independent columns than that of ``x'', ..., x^(k+1)``.

    Parameters
    ----------
    model : DescriptorModel
        Model with its parameter values.

    Returns
    -------
    int or None
        None for nonlinear equations, more than 24 variables, an index above 5, and if ranks change with time.

    Examples
    --------
    >>> import livens as lv
    >>> kunkel = lv.FirstOrder("x y", mass=lambda t: [[0, 0], [1, -t]], rhs=lambda x, t: [-x[0] + t * x[1], 0])
    >>> differentiation_index(kunkel)
    2
    """
    d = model.descriptor
    n = int(d.x.numel())
    matrices = ca.vertcat(ca.vec(ca.jacobian(d.residual, d.xdot)), ca.vec(ca.jacobian(d.residual, d.x)))
    if n > _MAX_VARIABLES or ca.depends_on(matrices, ca.vertcat(d.x, d.xdot)):
        return None
    for k in range(_MAX_INDEX + 1):
        array, u = derivative_array(model, k + 1), np.zeros(n * (k + 1))
        at_times = [np.array(array(np.zeros(n), u, t, model.parameter_vector())[2]) for t in _TIMES]
        if not np.isfinite(at_times).all():
            return None
        determined = {_rank(matrix) == n + _rank(matrix[:, n:]) for matrix in at_times}
        if determined != {False}:
            return k if determined == {True} else None
    return None


def _rank(matrix: np.ndarray) -> int:
    """Return the rank after scaling of the rows."""
    if not matrix.size:
        return 0
    size = np.abs(matrix).max(axis=1, keepdims=True)
    values = np.linalg.svd(matrix / np.where(size > 0, size, 1.0), compute_uv=False)
    return numerical_rank(values, EXACT_RTOL)
