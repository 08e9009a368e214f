"""The error of a step on ``r(t, x, x') = 0``, as RADAU5 estimates it, also where ``E = dr/dx'`` is singular::

    (E/(h gamma) + r_x) err = -r(t0, x0, X'(0)),        X'(0) = sum_i l_i(0) X'_i

The right-hand side is what the slope that the stages have at the beginning leaves of the equations there. For
``x' = f(x)`` it makes ``err = gamma h (1 - gamma h f_x)^-1 (f(x0) - X'(0))``: the difference to an embedded formula,
of size h^(s+1), and the matrix takes out of it what is stiff (Hairer and Wanner, sect. IV.8). As gamma serves a real
eigenvalue of A. Where the first stage is the beginning itself, nothing would be left; the difference to a quadrature
of order s - 1 is filtered instead.
"""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from livens.models.descriptor import DescriptorModel
from livens.schemes.step import ErrorEstimate
from livens.schemes.tableaus import Tableau
from livens.schemes.tableaus.polynomials import Interpolant


def filtered_estimate(
    model: DescriptorModel, tableau: Tableau, slopes: list[Any], x0: Any, x1: Any, h: Any, t: Any, k: Any
) -> ErrorEstimate | None:
    """The estimate of a method with these slopes, from x0 to x1; None if one slope at the beginning is all there is."""
    d = model.descriptor
    new = bool(tableau.A[0].any())
    if not new and tableau.s == 1:
        return None
    gamma = real_eigenvalue(tableau)
    at_beginning = _sum(Interpolant.through(tableau.c).lagrange(0.0), slopes)
    E, F = ca.jacobian(d.residual, d.xdot), ca.jacobian(d.residual, d.x)
    terms = ca.Function("terms", [d.x, d.xdot, d.t, d.k], [ca.densify(d.residual), E, F])
    residual, E0, F0 = terms(x0, at_beginning, t, k)
    right = ca.SX(ca.densify(-residual if new else E0 @ _sum(lower_weights(tableau) / gamma, slopes)))
    if not tableau.stiffly_accurate and max(model.pencil.indices) > 1:
        # steps of such a method end beside the constraints: that is no error of the next step
        for i in model.pencil.equations:
            right[i] = 0
    names = (*model.coordinates, *model.algebraic)
    sizes = ca.SX(ca.densify(ca.fmax(ca.fabs(x0), ca.fabs(x1))))
    for name in model.unmeasured:
        sizes[names.index(name)] = ca.inf
    return ErrorEstimate(
        errors=ca.densify(right),
        sizes=sizes,
        order=estimate_order(tableau) - _lost(model, tableau),
        names=names,
        matrix=ca.densify(E0 / (h * gamma) + F0),
        powers=tuple(index - 1 for index in model.pencil.indices),
    )


def estimate_order(tableau: Tableau) -> int:
    """The estimate is of size h to this plus one: one less where a stage that stands for x0 is less accurate."""
    s = tableau.s
    if not tableau.A[0].any():
        return s - 1
    return min(s, tableau.C + 1) if tableau.c[0] == 0 else s


def _lost(model: DescriptorModel, tableau: Tableau) -> int:
    """By how much the order is less where variables are algebraic, as measured (tests/claims/test_dae.py)."""
    pencil, index = model.pencil, max(model.pencil.indices)
    # a first stage that stands for x0 is less accurate in multipliers
    if tableau.s > tableau.C and tableau.A[0].any() and index >= (2 if tableau.stiffly_accurate else 3):
        return 1
    # algebraic variables at the beginning are from the polynomial of the stages, not from equations there
    own = any(pencil.indices[j] == 1 for j in pencil.algebraic)
    return int(own and not tableau.stiffly_accurate and not pencil.solvable)


def real_eigenvalue(tableau: Tableau) -> float:
    """A real and positive one of A, else the first weight: any positive number of that size will do."""
    values = np.linalg.eigvals(tableau.A)
    real = [float(value.real) for value in values if abs(value.imag) < 1e-9 and value.real > 1e-9]
    return max(real) if real else float(tableau.b[0])


def lower_weights(tableau: Tableau) -> np.ndarray:
    """``b - b^``, where b^ is a quadrature of order s - 1 on the same nodes."""
    c, b = tableau.c, tableau.b
    right = 1.0 / np.arange(1, len(c) + 1)
    right[-1] *= 0.5
    return np.asarray(b - np.linalg.solve(np.vander(c, increasing=True).T, right))


def _sum(weights: Any, terms: list[Any]) -> Any:
    return sum((float(w) * term for w, term in zip(weights, terms, strict=True)), 0 * terms[0])
