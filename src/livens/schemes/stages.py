"""A Runge-Kutta method on a model in descriptor form, ``residual(t, x, x') = 0`` at every stage (S002 sect. 5.3)."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from livens.descriptor import DescriptorModel
from livens.engine.equations import StepEquations
from livens.tableaus import Tableau


def stage_equations(model: DescriptorModel, tableau: Tableau) -> StepEquations:
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
    jacobian = ca.jacobian(residual, x)
    places = jacobian.sparsity().get_triplet()
    theta = ca.SX.sym("theta")
    weights = polynomial_weights(tableau, theta)
    within = x0 + h * sum((weights[i] * slopes[i] for i in range(s)), ca.SX(n, 1))
    parts = {name: within[layout[name]] for name in ("x", "y") if name in layout}
    return StepEquations(
        x=x, z=z, c=c, residual=residual,
        rows=np.array(places[0], dtype=np.int64), columns=np.array(places[1], dtype=np.int64),
        jacobian=ca.SX(jacobian.nz[:]), end=ca.densify(end), guess=_first_guess(model, x0, t, k, s),
        kinds=(n,) * s, layout=layout,
        row_names=tuple(f"equation {i} of stage {j + 1}" for j in range(s) for i in range(n)),
        inside=(theta, parts), error=_estimate(tableau, slopes, x0, end[:n], h),
    )  # fmt: skip


def _first_guess(model: DescriptorModel, x0: Any, t: Any, k: Any, s: int) -> Any:
    """All slopes as at the beginning, where they follow from the state; else zero."""
    d = model.descriptor
    n = int(d.x.numel())
    E = ca.jacobian(d.residual, d.xdot)
    if not model.regular_flow or ca.depends_on(E, d.xdot):
        return ca.SX.zeros(s * n)
    slope = ca.solve(E, -ca.substitute(d.residual, d.xdot, ca.SX.zeros(n)))
    first = ca.Function("slope", [d.x, d.t, d.k], [slope])(x0, t, k)
    return ca.densify(ca.repmat(first, s, 1))


def _estimate(tableau: Tableau, slopes: list[Any], x0: Any, x1: Any, h: Any) -> Any:
    """What a quadrature of one degree less makes of the slopes, against the method's own; nothing for one stage."""
    s = tableau.s
    if s == 1:
        return None
    weights = tableau.b - lower_weights(tableau)
    error = h * sum((weights[i] * slopes[i] for i in range(s)), ca.SX(slopes[0].shape[0], 1))
    return error, ca.fmax(ca.fabs(x0), ca.fabs(x1))


def polynomial_weights(tableau: Tableau, theta: Any) -> list[Any]:
    """``b_i(theta)`` of the polynomial within a step, as expressions; integrals of Legendre's polynomials on [0, 1]."""
    s = tableau.s
    P = [ca.SX(1), 2 * theta - 1]
    for k in range(1, s):
        P.append(((2 * k + 1) * (2 * theta - 1) * P[k] - k * P[k - 1]) / (k + 1))
    integrals = [theta] + [(P[k + 1] - P[k - 1]) / (2 * (2 * k + 1)) for k in range(1, s)]
    table = tableau.interpolant().weights
    return [sum((table[i, k] * integrals[k] for k in range(s)), ca.SX(0)) for i in range(s)]


def lower_weights(tableau: Tableau) -> np.ndarray:
    """Weights of a quadrature on the same nodes that is exact for polynomials of degree s - 2 only."""
    s = tableau.s
    V = np.vander(tableau.c, s, increasing=True).T
    right = 1.0 / np.arange(1, s + 1)
    right[-1] *= 0.5
    return np.asarray(np.linalg.solve(V, right))
