"""Partitioned Runge-Kutta methods on Hamilton's equations (Symank 2025, def. 6.1, 6.2)."""

from __future__ import annotations

from typing import Any

import casadi as ca

from livens.models.hamiltonian.model import Hamiltonian
from livens.schemes.core.step_equations import ErrorEstimate, StepGraph
from livens.schemes.discretization.dae_runge_kutta import (
    embedded_error_weights,
    lagrange_basis,
    lagrange_integrals,
    linear_combination,
)
from livens.schemes.discretization.phase_space_map import HamiltonianFunctions
from livens.schemes.tableaus import Tableau
from livens.types import Expr


def partitioned_hamiltonian_stages(
    model: Hamiltonian, tableau_q: Tableau, tableau_p: Tableau, error_order: int
) -> StepGraph:
    """Return the step graph for ``q' = dH/dp``, ``p' = -dH/dq + F``, with one method for q and another for p::

        Q_i = q0 + h sum_j a_ij Q'_j,    Q'_i =  dH/dp(Q_i, P_i)
        P_i = p0 + h sum_j A_ij P'_j,    P'_i = -dH/dq(Q_i, P_i) + F

    The unknowns are the deviations of the stage derivatives from the initial derivatives. Coefficients then multiply
    quantities of size h, and their round-off does not accumulate to a drift.
    """
    n, s, layout = model.n, tableau_q.s, model.layout
    x, z, c = ca.SX.sym("x", 2 * s * n), ca.SX.sym("z", layout.size), ca.SX.sym("c", 2 + model.parameter_count)
    h, t, phase = c[0], c[1], HamiltonianFunctions(model, c[2:])
    q0, p0, v0 = (z[layout[name]] for name in ("q", "p", "v"))
    f0 = _momentum_derivative(phase, q0, p0, v0, t)
    dK, dL = ([x[(2 * i + j) * n : (2 * i + j + 1) * n] for i in range(s)] for j in (0, 1))
    residuals, names, work, values = [], [], [ca.SX(0), ca.SX(0)], dict[str, Any]()
    for i in range(s):
        Q = q0 + h * (float(tableau_q.A[i].sum()) * v0 + linear_combination(tableau_q.A[i], dK))
        P = p0 + h * (float(tableau_p.A[i].sum()) * f0 + linear_combination(tableau_p.A[i], dL))
        t_i = t + tableau_q.c[i] * h
        V = phase.H_p(Q, P, t_i)
        values |= {f"Q{i + 1}": Q, f"P{i + 1}": P, f"V{i + 1}": V}
        residuals += [dK[i] - (V - v0), dL[i] - (_momentum_derivative(phase, Q, P, V, t_i) - f0)]
        for j, power in enumerate(phase.work(Q, P, V, t_i)):
            work[j] += h * tableau_q.b[i] * power
        names += [
            f"{quantity} of {name} at stage {i + 1}" for quantity in ("velocity", "force") for name in model.coordinates
        ]
    q1 = q0 + h * (v0 + linear_combination(tableau_q.b, dK))
    p1 = p0 + h * (f0 + linear_combination(tableau_p.b, dL))
    v1 = phase.H_p(q1, p1, t + h)
    f1 = _momentum_derivative(phase, q1, p1, v1, t + h)
    final = {"q": q1, "v": v1, "p": p1}
    final |= {name: z[layout[name]] + work[j] for j, name in enumerate(("supplied_energy", "dissipated_energy"))}
    theta, ratio = ca.SX.sym("theta"), ca.SX.sym("ratio")
    weights = lagrange_integrals(tableau_q.c, theta)
    q_dense, p_dense = (
        q0 + h * (theta * v0 + linear_combination(weights, dK)),
        p0 + h * (theta * f0 + linear_combination(weights, dL)),
    )
    dense = {"q": q_dense, "v": phase.H_p(q_dense, p_dense, t + theta * h), "p": p_dense}
    extrapolated = []
    for node in tableau_q.c:
        basis = lagrange_basis(tableau_q.c, 1 + node * ratio)
        extrapolated += [v0 + linear_combination(basis, dK) - v1, f0 + linear_combination(basis, dL) - f1]
    return StepGraph.from_residual(
        x,
        z,
        c,
        residual=ca.densify(ca.vertcat(*residuals)),
        final_state=ca.densify(ca.vertcat(*(final[name] for name in layout.sizes))),
        initial_guess=ca.SX.zeros(2 * s * n),
        block_sizes=(n,) * (2 * s),
        layout=layout,
        equation_labels=tuple(names),
        dense_output=(theta, dense),
        stage_extrapolation=(ratio, ca.densify(ca.vertcat(*extrapolated))),
        error_estimate=_error_estimate(
            model, (tableau_q, tableau_p), error_order, [[*dK, v1 - v0], [*dL, f1 - f0]], [(q0, p0), (q1, p1)], h
        ),
        named_values=values,
    )


def _momentum_derivative(phase: HamiltonianFunctions, q: Any, p: Any, v: Any, t: Any) -> Expr:
    """Return the momentum derivative ``p'``."""
    return phase.F(q, v, t) - phase.H_q(q, p, t)


def _error_estimate(
    model: Hamiltonian,
    pair: tuple[Tableau, Tableau],
    order: int,
    stage_derivatives: list[list[Any]],
    end_states: list[Any],
    h: Expr,
) -> ErrorEstimate | None:
    """Return the error estimate: difference to a quadrature of lower order, or to the derivatives at both ends.

    `stage_derivatives` are those of q and of p, minus the initial derivatives; the final derivatives come last.
    """
    if not order:
        return None
    tableau_q, tableau_p = pair
    if tableau_q is tableau_p:
        weights = embedded_error_weights(tableau_q.c, tableau_q.b, bool(tableau_q.A[0].any()))[1:]
        errors = [linear_combination(weights, derivatives[:-1]) for derivatives in stage_derivatives]
    else:
        errors = [
            tableau_q.b[0] * (derivatives[-1] - derivatives[0] - derivatives[-2]) for derivatives in stage_derivatives
        ]
    return ErrorEstimate(
        errors=ca.densify(h * ca.vertcat(*errors)),
        scales=ca.fmax(*(ca.fabs(ca.vertcat(*state)) for state in end_states)),
        order=order,
        names=(*model.coordinates, *(f"p_{name}" for name in model.coordinates)),
    )
