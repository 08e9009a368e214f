"""Lobatto pair on a Hamiltonian H(q, p) with holonomic constraints (Symank 2025, def. 6.2)."""

from __future__ import annotations

from typing import Any

import casadi as ca

from livens.models.constrained_hamiltonian import ConstrainedHamiltonian
from livens.schemes.core.step_equations import ErrorEstimate, StepGraph
from livens.schemes.discretization.dae_runge_kutta import lagrange_integrals, linear_combination
from livens.schemes.tableaus import PartitionedTableau


def constrained_lobatto_stages(model: ConstrainedHamiltonian, pair: PartitionedTableau, error_order: int) -> StepGraph:
    """Return the step graph with one method for coordinates, another for momenta, and a multiplier per stage::

        Q_i = q0 + h sum_j a_ij V_j,     V_i = dH/dp(Q_i, P_i)
        P_i = p0 + h sum_j A_ij F_j,     F_i = -dH/dq(Q_i, P_i) + F - G(Q_i)^T L_i
        0   = g(Q_i), i = 2 .. s         0   = G(q1) dH/dp(q1, p1)

    The unknowns are the deviations of the stage derivatives from the initial derivatives, the L_i, and the multipliers
    at t + h. The latter follow from the time derivative of the hidden constraints; no other equation contains them.
    """
    n, m, s, layout = len(model.coordinate_names), model.m, pair.s, model.layout
    x, z = ca.SX.sym("x", 2 * s * n + (s + 1) * m), ca.SX.sym("z", layout.size)
    c = ca.SX.sym("c", 2 + model.parameter_count)
    h, t, k = c[0], c[1], c[2:]
    M = model
    hidden_rate = (
        ca.jtimes(M.hidden_constraint, M.q, M.velocity)
        + ca.jtimes(M.hidden_constraint, M.p, M.momentum_rate)
        + ca.jacobian(M.hidden_constraint, M.t)
    )
    power = ca.dot(M.F, M.velocity) + ca.gradient(M.H, M.t) + ca.dot(M.lam, ca.jacobian(M.g, M.t))
    arguments = [M.q, M.p, M.lam, M.t, M.k]
    outputs = [M.velocity, M.momentum_rate, M.g, M.hidden_constraint, hidden_rate, power]
    evaluate = ca.Function("there", arguments, [ca.densify(output) for output in outputs])
    q0, p0, lam0 = z[:n], z[n : 2 * n], z[layout["y"]]
    v0, f0 = evaluate(q0, p0, lam0, t, k)[:2]
    dK, dL = ([x[(2 * i + j) * n : (2 * i + j + 1) * n] for i in range(s)] for j in (0, 1))
    multiplier_start = 2 * s * n
    lam = [x[multiplier_start + i * m : multiplier_start + (i + 1) * m] for i in range(s + 1)]
    residuals, constraints, values, work = [], [], dict[str, Any](), ca.SX(0)
    for i in range(s):
        Q = q0 + h * (float(pair.q.A[i].sum()) * v0 + linear_combination(pair.q.A[i], dK))
        P = p0 + h * (float(pair.p.A[i].sum()) * f0 + linear_combination(pair.p.A[i], dL))
        t_i = t if pair.q.c[i] == 0 else t + (h if pair.q.c[i] == 1 else pair.q.c[i] * h)
        V, force, g, _, _, supplied = evaluate(Q, P, lam[i], t_i, k)
        residuals += [dK[i] - (V - v0), dL[i] - (force - f0)]
        constraints += [g / h] if i else []
        values |= {f"Q{i + 1}": Q, f"P{i + 1}": P, f"V{i + 1}": V, f"L{i + 1}": lam[i]}
        work += h * pair.q.b[i] * supplied
    q1, p1 = q0 + h * (v0 + linear_combination(pair.q.b, dK)), p0 + h * (f0 + linear_combination(pair.p.b, dL))
    v1, _, _, hidden, hidden_derivative, _ = evaluate(q1, p1, lam[s], t + h, k)
    final = {"x": ca.vertcat(q1, p1), "y": lam[s], "supplied_energy": z[layout["supplied_energy"]] + work}
    final["dissipated_energy"] = z[layout["dissipated_energy"]]
    theta = ca.SX.sym("theta")
    weights = lagrange_integrals(pair.q.c, theta)
    dense = ca.vertcat(
        q0 + h * (theta * v0 + linear_combination(weights, dK)), p0 + h * (theta * f0 + linear_combination(weights, dL))
    )
    names = [
        f"{quantity} of {name} at stage {i + 1}"
        for i in range(s)
        for quantity in ("velocity", "force")
        for name in M.coordinate_names
    ]
    names += [f"constraint {j} at stage {i + 1}" for i in range(1, s) for j in range(m)]
    names += [f"{quantity} of constraint {j} at the end" for quantity in ("rate", "second rate") for j in range(m)]
    return StepGraph.from_residual(
        x,
        z,
        c,
        residual=ca.densify(ca.vertcat(*residuals, *constraints, hidden, h * hidden_derivative)),
        final_state=ca.densify(ca.vertcat(*(final[name] for name in layout.sizes))),
        initial_guess=ca.densify(ca.vertcat(ca.SX.zeros(2 * s * n), *[lam0] * (s + 1))),
        block_sizes=(n,) * (2 * s) + (m,) * (s + 1),
        layout=layout,
        equation_labels=tuple(names),
        dense_output=(theta, {"x": dense}),
        error_estimate=ErrorEstimate(
            errors=ca.densify(h * pair.q.b[0] * (v1 - v0 - dK[0] - dK[-1])),
            scales=ca.fmax(ca.fabs(q0), ca.fabs(q1)),
            order=error_order,
            names=M.coordinate_names,
        ),
        named_values=values,
    )
