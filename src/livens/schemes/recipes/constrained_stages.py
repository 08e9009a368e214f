"""Lobatto pair on a Hamiltonian H(q, p) with holonomic constraints (S002 def. 6.2)."""

from __future__ import annotations

from typing import Any

import casadi as ca

from livens.models.constrained_hamiltonian import ConstrainedHamiltonian
from livens.schemes.recipes.stages import combined, integral_weights
from livens.schemes.step import ErrorEstimate, FlatEquations
from livens.schemes.tableaus import Pair


def constrained_stages(model: ConstrainedHamiltonian, pair: Pair, estimate_order: int) -> FlatEquations:
    """Return the step graph with one method for coordinates, another for momenta, and a multiplier per stage::

        Q_i = q0 + h sum_j a_ij V_j,     V_i = dH/dp(Q_i, P_i)
        P_i = p0 + h sum_j A_ij F_j,     F_i = -dH/dq(Q_i, P_i) + F - G(Q_i)^T L_i
        0   = g(Q_i), i = 2 .. s         0   = G(q1) dH/dp(q1, p1)

    The unknowns are the deviations of the stage derivatives from the initial derivatives, the L_i, and the multipliers
    at t + h. The latter follow from the time derivative of the hidden constraints; no other equation contains them.
    """
    n, m, s, layout = len(model.names), model.m, pair.s, model.layout
    x, z = ca.SX.sym("x", 2 * s * n + (s + 1) * m), ca.SX.sym("z", layout.size)
    c = ca.SX.sym("c", 2 + model.parameter_count)
    h, t, k = c[0], c[1], c[2:]
    M = model
    hidden_rate = (
        ca.jtimes(M.hidden, M.q, M.velocity) + ca.jtimes(M.hidden, M.p, M.momentum_rate) + ca.jacobian(M.hidden, M.t)
    )
    power = ca.dot(M.F, M.velocity) + ca.gradient(M.H, M.t) + ca.dot(M.lam, ca.jacobian(M.g, M.t))
    arguments = [M.q, M.p, M.lam, M.t, M.k]
    outputs = [M.velocity, M.momentum_rate, M.g, M.hidden, hidden_rate, power]
    there = ca.Function("there", arguments, [ca.densify(one) for one in outputs])
    q0, p0, lam0 = z[:n], z[n : 2 * n], z[layout["y"]]
    v0, f0 = there(q0, p0, lam0, t, k)[:2]
    K, L = ([x[(2 * i + j) * n : (2 * i + j + 1) * n] for i in range(s)] for j in (0, 1))
    first = 2 * s * n
    lam = [x[first + i * m : first + (i + 1) * m] for i in range(s + 1)]
    rows, constraints, values, work = [], [], dict[str, Any](), ca.SX(0)
    for i in range(s):
        Q = q0 + h * (float(pair.first.A[i].sum()) * v0 + combined(pair.first.A[i], K))
        P = p0 + h * (float(pair.second.A[i].sum()) * f0 + combined(pair.second.A[i], L))
        when = t if pair.first.c[i] == 0 else t + (h if pair.first.c[i] == 1 else pair.first.c[i] * h)
        V, force, g, _, _, supplied = there(Q, P, lam[i], when, k)
        rows += [K[i] - (V - v0), L[i] - (force - f0)]
        constraints += [g / h] if i else []
        values |= {f"Q{i + 1}": Q, f"P{i + 1}": P, f"V{i + 1}": V, f"L{i + 1}": lam[i]}
        work += h * pair.first.b[i] * supplied
    q1, p1 = q0 + h * (v0 + combined(pair.first.b, K)), p0 + h * (f0 + combined(pair.second.b, L))
    v1, _, _, hidden, second, _ = there(q1, p1, lam[s], t + h, k)
    new = {"x": ca.vertcat(q1, p1), "y": lam[s], "supplied_energy": z[layout["supplied_energy"]] + work}
    new["dissipated_energy"] = z[layout["dissipated_energy"]]
    theta = ca.SX.sym("theta")
    weights = integral_weights(pair.first.c, theta)
    within = ca.vertcat(q0 + h * (theta * v0 + combined(weights, K)), p0 + h * (theta * f0 + combined(weights, L)))
    names = [
        f"{what} of {name} at stage {i + 1}" for i in range(s) for what in ("velocity", "force") for name in M.names
    ]
    names += [f"constraint {j} at stage {i + 1}" for i in range(1, s) for j in range(m)]
    names += [f"{what} of constraint {j} at the end" for what in ("rate", "second rate") for j in range(m)]
    return FlatEquations.of(
        x,
        z,
        c,
        residual=ca.densify(ca.vertcat(*rows, *constraints, hidden, h * second)),
        end=ca.densify(ca.vertcat(*(new[name] for name in layout.sizes))),
        guess=ca.densify(ca.vertcat(ca.SX.zeros(2 * s * n), *[lam0] * (s + 1))),
        kinds=(n,) * (2 * s) + (m,) * (s + 1),
        layout=layout,
        row_names=tuple(names),
        inside=(theta, {"x": within}),
        error=ErrorEstimate(
            errors=ca.densify(h * pair.first.b[0] * (v1 - v0 - K[0] - K[-1])),
            sizes=ca.fmax(ca.fabs(q0), ca.fabs(q1)),
            order=estimate_order,
            names=M.names,
        ),
        values=values,
    )
