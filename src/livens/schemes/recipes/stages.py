"""A Runge-Kutta method on a model in descriptor form, ``residual(t, x, x') = 0`` at every stage (S002 sect. 5.3)."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from livens.models.descriptor import DescriptorModel
from livens.schemes.step import FlatEquations
from livens.schemes.tableaus import Tableau
from livens.schemes.tableaus.polynomials import Interpolant


def stage_equations(model: DescriptorModel, tableau: Tableau) -> FlatEquations:
    """The unknowns are the derivatives X'_i at the stages.

    ``X_i = x0 + h sum_j a_ij X'_j``, ``residual(t_i, X_i, X'_i) = 0``, ``x1 = x0 + h sum_i b_i X'_i``. No mass and no E
    is ever inverted. Energies supplied and dissipated are summed with the weights of the method.
    """
    d, layout, s = model.descriptor, model.layout, tableau.s
    n = int(d.x.numel())
    x, z, c = ca.SX.sym("x", s * n), ca.SX.sym("z", layout.size), ca.SX.sym("c", 2 + model.parameter_count)
    h, t, k = c[0], c[1], c[2:]
    x0 = z[:n]
    slopes = [x[i * n : (i + 1) * n] for i in range(s)]
    terms = ca.Function("stage", [d.x, d.xdot, d.t, d.k], [d.residual, d.supplied, d.dissipated])
    rows, work = [], [ca.SX(0), ca.SX(0)]
    for i in range(s):
        state = x0 + h * sum((tableau.A[i, j] * slopes[j] for j in range(s) if tableau.A[i, j]), ca.SX(n, 1))
        residual, supplied, dissipated = terms(state, slopes[i], t + tableau.c[i] * h, k)
        rows.append(ca.densify(residual))
        work[0] += h * tableau.b[i] * supplied
        work[1] += h * tableau.b[i] * dissipated
    residual = ca.vertcat(*rows)
    end = x0 + h * sum((tableau.b[i] * slopes[i] for i in range(s)), ca.SX(n, 1))
    if d.stored is not None:
        end = ca.vertcat(end, z[n] + work[0], z[n + 1] + work[1])
    theta, first = ca.SX.sym("theta"), _first_slope(model, x0, t, k)
    within = x0 + h * combined(integral_weights(tableau.c, theta), slopes)
    parts = {name: within[layout[name]] for name in ("x", "y") if name in layout}
    return FlatEquations.of(
        x,
        z,
        c,
        residual=residual,
        end=ca.densify(end),
        guess=ca.SX.zeros(s * n) if first is None else ca.densify(ca.repmat(first, s, 1)),
        kinds=(n,) * s,
        layout=layout,
        row_names=tuple(f"equation {i} of stage {j + 1}" for j in range(s) for i in range(n)),
        inside=(theta, parts),
        error=_estimate(model, tableau, slopes, first, x0, end[:n], h),
    )


def _first_slope(model: DescriptorModel, x0: Any, t: Any, k: Any) -> Any:
    """``x'`` at the beginning of the step, where it follows from the state."""
    d = model.descriptor
    E = ca.jacobian(d.residual, d.xdot)
    if not model.regular_flow or ca.depends_on(E, d.xdot):
        return None
    slope = ca.solve(E, -ca.substitute(d.residual, d.xdot, ca.SX.zeros(d.x.numel())))
    return ca.Function("slope", [d.x, d.t, d.k], [slope])(x0, t, k)


def _estimate(model: DescriptorModel, tableau: Tableau, slopes: list[Any], first: Any, x0: Any, x1: Any, h: Any) -> Any:
    """The difference of the method to another one of order s on the same slopes and that at the beginning.

    Where the latter is not known, or is that of the first stage anyway, the other method is of order s - 1. Variables
    without a derivative in the equations, such as multipliers, are left out: they are not integrated.
    """
    if first is None and tableau.s == 1:
        return None
    new = first is not None and bool(tableau.A[0].any())
    weights = estimate_weights(tableau.c, tableau.b, new)
    error = h * combined(weights, [x0 if first is None else first, *slopes])
    d = model.descriptor
    moving = [j for j, column in enumerate(ca.horzsplit(ca.jacobian(d.residual, d.xdot))) if column.nnz()]
    return error[moving], ca.fmax(ca.fabs(x0), ca.fabs(x1))[moving]


def estimate_weights(c: np.ndarray, b: np.ndarray, new: bool) -> np.ndarray:
    """Of the slope at the beginning and those of the stages, for the difference to a quadrature of order s.

    The one at the beginning gets the weight of the first stage, and the polynomial through the stages takes it away. If
    it is not `new`, the difference is that to a quadrature of order s - 1 on the stages alone.
    """
    if new:
        return b[0] * np.concatenate([[1.0], -Interpolant.through(c).lagrange(0.0)])
    V, right = np.vander(c, increasing=True).T, 1.0 / np.arange(1, len(c) + 1)
    right[-1] *= 0.5
    return np.concatenate([[0.0], b - np.linalg.solve(V, right)])


def combined(weights: Any, terms: Any) -> Any:
    """``sum_i weights_i terms_i``."""
    return sum((weight * term for weight, term in zip(weights, terms, strict=True)), 0 * terms[0])


def lagrange_weights(nodes: np.ndarray, theta: Any) -> list[Any]:
    """``l_i(theta)`` of Lagrange's polynomials for these nodes, as expressions."""
    return [combined(row, _legendre(len(nodes), theta)) for row in Interpolant.through(nodes).weights]


def integral_weights(nodes: np.ndarray, theta: Any) -> list[Any]:
    """Their integrals from 0 to theta: ``x0 + h sum_i b_i(theta) X'_i`` is the polynomial within a step."""
    P = _legendre(len(nodes) + 1, theta)
    integrals = [theta] + [(P[k + 1] - P[k - 1]) / (2 * (2 * k + 1)) for k in range(1, len(nodes))]
    return [combined(row, integrals) for row in Interpolant.through(nodes).weights]


def _legendre(count: int, theta: Any) -> list[Any]:
    """Legendre's polynomials on [0, 1]."""
    P = [ca.SX(1), 2 * theta - 1]
    for k in range(1, count - 1):
        P.append(((2 * k + 1) * (2 * theta - 1) * P[k] - k * P[k - 1]) / (k + 1))
    return P[:count]


def polynomial_onward(nodes: np.ndarray) -> np.ndarray:
    """From the deviations ``(q(c_i) - q(0))/h - c_i q'(0)`` at the nodes of a step to those of the next step.

    By the polynomial with these values and with the slopes of q at both ends; ``q'(1) - q'(0)`` comes last.

    >>> polynomial_onward(np.array([1.0])) @ [0.5, 1.0]  # q'' = 1
    array([0.5])
    """
    power = np.arange(2, len(nodes) + 3)
    rows = np.vstack([nodes[:, None] ** power, power])
    next_ones = (1 + nodes[:, None]) ** power - 1 - nodes[:, None] * power
    return np.asarray(np.linalg.solve(rows.T, next_ones.T).T)
