"""Runge-Kutta methods on models in descriptor form, ``residual(t, x, x') = 0`` at every stage.

See Symank 2025, sect. 5.3.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

from livens.models.descriptor import DescriptorModel
from livens.schemes.core.step_equations import StepGraph
from livens.schemes.discretization.collocation import lagrange_basis, lagrange_integrals, linear_combination
from livens.schemes.discretization.radau_error_estimate import radau_error_estimate
from livens.schemes.tableaus import Tableau
from livens.types import Expr

#: Residual, supplied power and dissipated power of the stage of a one-stage method, from ``x0, X, X', t0, h, k``.
StageTerms = Callable[[Expr, Expr, Expr, Expr, Expr, Expr], tuple[Expr, Expr, Expr]]


def dae_runge_kutta(model: DescriptorModel, tableau: Tableau, stage_terms: StageTerms | None = None) -> StepGraph:
    """Return the step graph of a Runge-Kutta method on a DAE, with the stage derivatives X'_i as unknowns.

    ``X_i = x0 + h sum_j a_ij X'_j``, ``residual(t_i, X_i, X'_i) = 0``, ``x1 = x0 + h sum_i b_i X'_i``. Neither a mass
    matrix nor E is inverted. Energies supplied and dissipated are summed with the weights of the method.

    Algebraic variables are not integrated: with a method that is not stiffly accurate, an error of y0 would persist,
    ``y1 = R(inf) y0 + ...``. At t + h they are solved for if the algebraic equations determine them there, or if all
    equations determine them together with the derivatives (index-1 formulation). Otherwise they are taken from the
    polynomial through the stages. Without distinct nodes there is no such polynomial, and no dense output.

    `stage_terms` replaces the equations at the stage of a one-stage method, for schemes that differ from it there.
    """
    d, layout, s = model.descriptor, model.layout, tableau.s
    n = int(d.x.numel())
    solved, equations = _algebraic_solved_at_end(model, tableau)
    # derivatives of the other variables are unknowns as well if the equations of the algebraic variables contain them
    derivatives = [j for j in range(n) if j not in solved] if len(equations) > len(solved) else []
    n_end = len(solved) + len(derivatives)
    x = ca.SX.sym("x", s * n + n_end)
    z, c = ca.SX.sym("z", layout.size), ca.SX.sym("c", 2 + model.parameter_count)
    h, t, k = c[0], c[1], c[2:]
    x0 = z[:n]
    stage_derivatives = [x[i * n : (i + 1) * n] for i in range(s)]
    terms = ca.Function("stage", [d.x, d.xdot, d.t, d.k], [d.residual, d.supplied, d.dissipated])
    states, residuals, energy_work = [], [], [ca.SX(0), ca.SX(0)]
    for i in range(s):
        state = x0 + h * sum((tableau.A[i, j] * stage_derivatives[j] for j in range(s) if tableau.A[i, j]), ca.SX(n, 1))
        residual, supplied, dissipated = (
            terms(state, stage_derivatives[i], t + tableau.c[i] * h, k)
            if stage_terms is None
            else stage_terms(x0, state, stage_derivatives[i], t, h, k)
        )
        states.append(state)
        residuals.append(ca.densify(residual))
        energy_work[0] += h * tableau.b[i] * supplied
        energy_work[1] += h * tableau.b[i] * dissipated
    x1 = x0 + h * sum((tableau.b[i] * stage_derivatives[i] for i in range(s)), ca.SX(n, 1))
    x1_consistent = _interpolated_algebraic(model, tableau, ca.SX(1), states, x1)
    initial_derivative = _initial_derivative(model, x0, t, k)
    initial_guess = [
        ca.SX.zeros(s * n) if initial_derivative is None else ca.densify(ca.repmat(initial_derivative, s, 1))
    ]
    equation_labels = [f"equation {i} of stage {j + 1}" for j in range(s) for i in range(n)]
    if solved:
        x1_consistent = ca.SX(ca.densify(x1_consistent))
        x1_consistent[solved] = x[s * n : s * n + len(solved)]
        final_derivative = ca.SX.zeros(n)
        final_derivative[derivatives] = x[s * n + len(solved) :]
        final_residual = terms(x1_consistent, final_derivative, t + h, k)[0]
        residuals.append(ca.densify(final_residual[equations]))
        initial_guess += [x0[solved], ca.SX.zeros(len(derivatives))]
        equation_labels += [f"equation {i} at the end of the step" for i in equations]
    polynomial: dict[str, Any] = {}
    if tableau.has_distinct_nodes:
        theta, ratio = ca.SX.sym("theta"), ca.SX.sym("ratio")
        dense = x0 + h * linear_combination(lagrange_integrals(tableau.c, theta), stage_derivatives)
        if not tableau.stiffly_accurate:
            dense = _interpolated_algebraic(model, tableau, theta, states, dense)
        extrapolated = [
            linear_combination(lagrange_basis(tableau.c, 1 + node * ratio), stage_derivatives) for node in tableau.c
        ]
        polynomial = {
            "dense_output": (theta, {name: dense[layout[name]] for name in ("x", "y") if name in layout}),
            "stage_extrapolation": (ratio, ca.densify(ca.vertcat(*extrapolated, x[s * n :]))),
        }
    x0_consistent = x0
    if not tableau.stiffly_accurate and (not solved or len(solved) < len(model.pencil.algebraic_variables)):
        x0_consistent = ca.SX(ca.densify(_interpolated_algebraic(model, tableau, ca.SX(0), states, x0)))
        if solved:
            x0_consistent[solved] = x0[solved]
    state = (
        ca.vertcat(x1_consistent, z[n] + energy_work[0], z[n + 1] + energy_work[1])
        if d.stored is not None
        else x1_consistent
    )
    return StepGraph.from_residual(
        x,
        z,
        c,
        residual=ca.vertcat(*residuals),
        final_state=ca.densify(state),
        initial_guess=ca.densify(ca.vertcat(*initial_guess)),
        block_sizes=(n,) * s + ((n_end,) if solved else ()),
        layout=layout,
        equation_labels=tuple(equation_labels),
        **polynomial,
        error_estimate=radau_error_estimate(model, tableau, stage_derivatives, x0_consistent, x1_consistent, h, t, k),
        named_values=stage_values(X=states, slope=stage_derivatives, time=[t + c_i * h for c_i in tableau.c]),
    )


def stage_values(**parts: list[Expr]) -> dict[str, Expr]:
    """Return stage values by name and stage number."""
    return {f"{name}{i + 1}": value for name, stages in parts.items() for i, value in enumerate(stages)}


def _algebraic_solved_at_end(model: DescriptorModel, tableau: Tableau) -> tuple[list[int], list[int]]:
    """Return the indices of the algebraic variables that are solved for at t + h, and of the equations used."""
    pencil = model.pencil
    if tableau.stiffly_accurate:
        return [], []
    if pencil.is_index_one:
        return list(pencil.algebraic_variables), list(pencil.algebraic_equations)
    if pencil.is_index_one_with_derivatives:
        return list(pencil.algebraic_variables), list(range(len(pencil.indices)))
    if not pencil.determines_index:
        return [], []
    return list(pencil.determined_variables), list(pencil.determining_equations)


def _interpolated_algebraic(model: DescriptorModel, tableau: Tableau, theta: Expr, states: list[Expr], x: Expr) -> Expr:
    """Return the state x with its algebraic part on the polynomial through the stages, at ``t0 + theta h``."""
    projector = model.pencil.projector
    if tableau.stiffly_accurate or projector is None or not projector.any():
        return x
    interpolated = linear_combination(lagrange_basis(tableau.c, theta), states)
    if np.count_nonzero(projector - np.diag(np.diag(projector))) == 0:
        chosen = [int(j) for j in np.flatnonzero(np.diag(projector))]
        x_algebraic = ca.SX(ca.densify(x))
        x_algebraic[chosen] = interpolated[chosen]
        return x_algebraic
    return x + projector @ (interpolated - x)


def _initial_derivative(model: DescriptorModel, x0: Expr, t: Expr, k: Expr) -> Expr | None:
    """Return ``x'`` at the beginning of the step, if it is a function of the state; else None."""
    d = model.descriptor
    E = ca.jacobian(d.residual, d.xdot)
    if not model.is_ode or ca.depends_on(E, d.xdot):
        return None
    derivative = ca.solve(E, -ca.substitute(d.residual, d.xdot, ca.SX.zeros(d.x.numel())))
    return ca.Function("slope", [d.x, d.t, d.k], [derivative])(x0, t, k)
