"""Runge-Kutta methods on models in descriptor form, ``residual(t, x, x') = 0`` at every stage (S002 sect. 5.3)."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from livens.models.descriptor import DescriptorModel
from livens.schemes.recipes.filtered_estimate import filtered_estimate
from livens.schemes.step import FlatEquations
from livens.schemes.tableaus import Tableau
from livens.schemes.tableaus.polynomials import Interpolant


def stage_equations(model: DescriptorModel, tableau: Tableau) -> FlatEquations:
    """Return the step graph of a Runge-Kutta method on a DAE, with the stage derivatives X'_i as unknowns.

    ``X_i = x0 + h sum_j a_ij X'_j``, ``residual(t_i, X_i, X'_i) = 0``, ``x1 = x0 + h sum_i b_i X'_i``. Neither a mass
    matrix nor E is inverted. Energies supplied and dissipated are summed with the weights of the method.

    Algebraic variables are not integrated: with a method that is not stiffly accurate, an error of y0 would persist,
    ``y1 = R(inf) y0 + ...``. At t + h they are solved for if the algebraic equations determine them there; otherwise
    they are taken from the polynomial through the stages.
    """
    d, layout, s = model.descriptor, model.layout, tableau.s
    n = int(d.x.numel())
    solved = _solved_at_the_end(model, tableau)
    x = ca.SX.sym("x", s * n + len(solved))
    z, c = ca.SX.sym("z", layout.size), ca.SX.sym("c", 2 + model.parameter_count)
    h, t, k = c[0], c[1], c[2:]
    x0 = z[:n]
    slopes = [x[i * n : (i + 1) * n] for i in range(s)]
    terms = ca.Function("stage", [d.x, d.xdot, d.t, d.k], [d.residual, d.supplied, d.dissipated])
    states, rows, work = [], [], [ca.SX(0), ca.SX(0)]
    for i in range(s):
        state = x0 + h * sum((tableau.A[i, j] * slopes[j] for j in range(s) if tableau.A[i, j]), ca.SX(n, 1))
        residual, supplied, dissipated = terms(state, slopes[i], t + tableau.c[i] * h, k)
        states.append(state)
        rows.append(ca.densify(residual))
        work[0] += h * tableau.b[i] * supplied
        work[1] += h * tableau.b[i] * dissipated
    end = x0 + h * sum((tableau.b[i] * slopes[i] for i in range(s)), ca.SX(n, 1))
    ends = _algebraic_from_stages(model, tableau, ca.SX(1), states, end)
    first = _first_slope(model, x0, t, k)
    guess = [ca.SX.zeros(s * n) if first is None else ca.densify(ca.repmat(first, s, 1))]
    row_names = [f"equation {i} of stage {j + 1}" for j in range(s) for i in range(n)]
    if solved:
        ends = ca.SX(ca.densify(ends))
        ends[solved] = x[s * n :]
        at_end = terms(ends, ca.SX.zeros(n), t + h, k)[0]
        rows.append(at_end[list(model.pencil.equations)])
        guess.append(x0[solved])
        row_names += [f"equation {i} at the end of the step" for i in model.pencil.equations]
    theta = ca.SX.sym("theta")
    within = x0 + h * combined(integral_weights(tableau.c, theta), slopes)
    if not tableau.stiffly_accurate:
        within = _algebraic_from_stages(model, tableau, theta, states, within)
    parts = {name: within[layout[name]] for name in ("x", "y") if name in layout}
    ratio = ca.SX.sym("ratio")
    onward = [combined(lagrange_weights(tableau.c, 1 + node * ratio), slopes) for node in tableau.c]
    beginning = x0
    if not solved and not tableau.stiffly_accurate:
        beginning = _algebraic_from_stages(model, tableau, ca.SX(0), states, x0)
    state = ca.vertcat(ends, z[n] + work[0], z[n + 1] + work[1]) if d.stored is not None else ends
    return FlatEquations.of(
        x,
        z,
        c,
        residual=ca.vertcat(*rows),
        end=ca.densify(state),
        guess=ca.densify(ca.vertcat(*guess)),
        kinds=(n,) * s + ((len(solved),) if solved else ()),
        layout=layout,
        row_names=tuple(row_names),
        inside=(theta, parts),
        carried=(ratio, ca.densify(ca.vertcat(*onward, x[s * n :]))),
        error=filtered_estimate(model, tableau, slopes, beginning, ends, h, t, k),
        values=by_stage(X=states, slope=slopes),
    )


def by_stage(**parts: list[Any]) -> dict[str, Any]:
    """Return stage values by name and stage number."""
    return {f"{name}{i + 1}": part for name, stages in parts.items() for i, part in enumerate(stages)}


def _solved_at_the_end(model: DescriptorModel, tableau: Tableau) -> list[int]:
    """Return the indices of the algebraic variables that are solved for at t + h."""
    pencil = model.pencil
    return [] if tableau.stiffly_accurate or not pencil.solvable else list(pencil.algebraic)


def _algebraic_from_stages(model: DescriptorModel, tableau: Tableau, theta: Any, states: list[Any], x: Any) -> Any:
    """Return the state x with its algebraic part on the polynomial through the stages, at ``t0 + theta h``."""
    projector = model.pencil.projector
    if tableau.stiffly_accurate or projector is None or not projector.any():
        return x
    through = combined(lagrange_weights(tableau.c, theta), states)
    if np.count_nonzero(projector - np.diag(np.diag(projector))) == 0:
        chosen = [int(j) for j in np.flatnonzero(np.diag(projector))]
        found = ca.SX(ca.densify(x))
        found[chosen] = through[chosen]
        return found
    return x + projector @ (through - x)


def _first_slope(model: DescriptorModel, x0: Any, t: Any, k: Any) -> Any:
    """Return ``x'`` at the beginning of the step, if it is a function of the state; else None."""
    d = model.descriptor
    E = ca.jacobian(d.residual, d.xdot)
    if not model.regular_flow or ca.depends_on(E, d.xdot):
        return None
    slope = ca.solve(E, -ca.substitute(d.residual, d.xdot, ca.SX.zeros(d.x.numel())))
    return ca.Function("slope", [d.x, d.t, d.k], [slope])(x0, t, k)


def estimate_weights(c: np.ndarray, b: np.ndarray, new: bool) -> np.ndarray:
    """Return the weights of the initial derivative and of the stage derivatives, for the difference to a quadrature.

    With `uses_initial_derivative`, the initial derivative gets the weight of the first stage and the polynomial through
    the stages the negative weight; the quadrature has order s. Otherwise the quadrature of order s - 1 uses the stages
    only.
    """
    if new:
        return b[0] * np.concatenate([[1.0], -Interpolant.through(c).lagrange(0.0)])
    V, right = np.vander(c, increasing=True).T, 1.0 / np.arange(1, len(c) + 1)
    right[-1] *= 0.5
    return np.concatenate([[0.0], b - np.linalg.solve(V, right)])


def combined(weights: Any, terms: Any) -> Any:
    """Return the linear combination ``sum_i weights_i terms_i``."""
    return sum((weight * term for weight, term in zip(weights, terms, strict=True)), 0 * terms[0])


def lagrange_weights(nodes: np.ndarray, theta: Any) -> list[Any]:
    """Return the Lagrange polynomials ``l_i(theta)`` of these nodes, as expressions."""
    return [combined(row, _legendre(len(nodes), theta)) for row in Interpolant.through(nodes).weights]


def integral_weights(nodes: np.ndarray, theta: Any) -> list[Any]:
    """Return the integrals b_i of the Lagrange polynomials from 0 to theta.

    The collocation polynomial is ``x0 + h sum_i b_i(theta) X'_i``.
    """
    P = _legendre(len(nodes) + 1, theta)
    integrals = [theta] + [(P[k + 1] - P[k - 1]) / (2 * (2 * k + 1)) for k in range(1, len(nodes))]
    return [combined(row, integrals) for row in Interpolant.through(nodes).weights]


def _legendre(count: int, theta: Any) -> list[Any]:
    """Return the shifted Legendre polynomials on [0, 1]."""
    P = [ca.SX(1), 2 * theta - 1]
    for k in range(1, count - 1):
        P.append(((2 * k + 1) * (2 * theta - 1) * P[k] - k * P[k - 1]) / (k + 1))
    return P[:count]


def polynomial_onward(nodes: np.ndarray) -> np.ndarray:
    """Return the matrix from the deviations ``(q(c_i) - q(0))/h - c_i q'(0)`` of a step to those of the next step.

    The extrapolation polynomial has these values and the derivatives of q at both ends; ``q'(1) - q'(0)`` comes last.

    >>> polynomial_onward(np.array([1.0])) @ [0.5, 1.0]  # q'' = 1
    array([0.5])
    """
    power = np.arange(2, len(nodes) + 3)
    rows = np.vstack([nodes[:, None] ** power, power])
    next_ones = (1 + nodes[:, None]) ** power - 1 - nodes[:, None] * power
    return np.asarray(np.linalg.solve(rows.T, next_ones.T).T)
