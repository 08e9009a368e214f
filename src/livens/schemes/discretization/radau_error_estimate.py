"""RADAU5 error estimate of a step on ``r(t, x, x') = 0``, also for singular ``E = dr/dx'``::

    (E/(h gamma) + r_x) err = -r(t0, x0, X'(0)),        X'(0) = sum_i l_i(0) X'_i

The right-hand side is the residual at t0 of the derivative X'(0) of the stage polynomial. For ``x' = f(x)`` it gives
``err = gamma h (1 - gamma h f_x)^-1 (f(x0) - X'(0))``: the difference to an embedded formula, of size h^(s+1), with
stiff components filtered by the matrix (Hairer and Wanner, sect. IV.8). gamma is a real eigenvalue of A. If the first
stage is explicit, this residual vanishes; the difference to a quadrature of order s - 1 is filtered instead.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from livens.models.descriptor import DescriptorModel
from livens.schemes.core.step_equations import ErrorEstimate
from livens.schemes.discretization.collocation import embedded_error_weights, linear_combination
from livens.schemes.tableaus import Tableau
from livens.schemes.tableaus.interpolation import Interpolant
from livens.types import Expr

#: Ratio of the residuals at the end and at the beginning of a step above which the one at the end is estimated.
_SWITCH_RATIO = 4.0


def radau_error_estimate(
    model: DescriptorModel,
    tableau: Tableau,
    stage_derivatives: list[Expr],
    x0: Expr,
    x1: Expr,
    h: Expr,
    t: Expr,
    k: Expr,
) -> ErrorEstimate | None:
    """Return the error estimate of a method with these stage derivatives.

    None for a single explicit stage and for equal nodes.
    """
    d = model.descriptor
    first_stage_implicit = bool(tableau.A[0].any())
    if error_order(tableau) == 0:
        return None
    gamma = real_eigenvalue(tableau)
    xdot_0 = linear_combination(Interpolant.through(tableau.c).lagrange(0.0), stage_derivatives)
    E, F = ca.jacobian(d.residual, d.xdot), ca.jacobian(d.residual, d.x)
    terms = ca.Function("terms", [d.x, d.xdot, d.t, d.k], [ca.densify(d.residual), E, F])
    residual, E0, F0 = terms(x0, xdot_0, t, k)
    rhs = ca.SX(
        ca.densify(
            -residual
            if first_stage_implicit
            else E0
            @ linear_combination(
                embedded_error_weights(tableau.c, tableau.b, uses_initial_derivative=False)[1:] / gamma,
                stage_derivatives,
            )
        )
    )
    if first_stage_implicit and not tableau.stiffly_accurate and model.is_ode:
        # the last node lies before t + h: a force may be switched on behind it
        xdot_1 = linear_combination(Interpolant.through(tableau.c).lagrange(1.0), stage_derivatives)
        residual_1 = terms(x1, xdot_1, t + h, k)[0]
        rhs = ca.densify(ca.if_else(ca.fabs(residual_1) > _SWITCH_RATIO * ca.fabs(rhs), -residual_1, rhs))
    if not tableau.stiffly_accurate and max(model.pencil.indices) > 1:
        # the final states of such methods violate the constraints, which is not an error of the next step
        for i in model.pencil.algebraic_equations:
            rhs[i] = 0
    names = (*model.coordinates, *model.algebraic_names)
    scales = ca.SX(ca.densify(ca.fmax(ca.fabs(x0), ca.fabs(x1))))
    for name in model.excluded_from_error_norm:
        scales[names.index(name)] = ca.inf
    return ErrorEstimate(
        errors=ca.densify(rhs),
        scales=scales,
        order=error_order(tableau) - _order_reduction(model, tableau),
        names=names,
        matrix=ca.densify(E0 / (h * gamma) + F0),
        h_powers=tuple(index - 1 for index in model.pencil.indices),
    )


def error_order(tableau: Tableau) -> int:
    """Return the order p of the estimate, of size h^(p + 1); reduced by one for a less accurate first stage at x0.

    0 without an estimate.
    """
    s = tableau.s
    if not tableau.has_distinct_nodes:
        return 0
    if not tableau.A[0].any():
        return s - 1
    return min(s, tableau.C + 1) if tableau.c[0] == 0 else s


def _order_reduction(model: DescriptorModel, tableau: Tableau) -> int:
    """Return the order reduction for algebraic variables, as measured in tests/claims/test_dae.py."""
    pencil, index = model.pencil, max(model.pencil.indices)
    # a first stage at x0 is less accurate in the multipliers
    if tableau.s > tableau.C and tableau.A[0].any() and index >= (2 if tableau.stiffly_accurate else 3):
        return 1
    # initial algebraic variables are taken from the stage polynomial, not from the equations
    has_index_one = any(pencil.indices[j] == 1 for j in pencil.algebraic_variables)
    solved = pencil.is_index_one or pencil.is_index_one_with_derivatives
    return int(has_index_one and not tableau.stiffly_accurate and not solved)


def real_eigenvalue(tableau: Tableau) -> float:
    """Return a real positive eigenvalue of A, else the first weight (any positive number of that size is suitable)."""
    values = np.linalg.eigvals(tableau.A)
    real = [float(value.real) for value in values if abs(value.imag) < 1e-9 and value.real > 1e-9]
    return max(real) if real else float(tableau.b[0])
