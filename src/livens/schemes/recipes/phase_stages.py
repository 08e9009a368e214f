"""Partitioned Runge-Kutta methods on Hamilton's equations (S002 def. 6.1, 6.2)."""

from __future__ import annotations

from typing import Any

import casadi as ca

from livens.models.hamiltonian.model import Hamiltonian
from livens.schemes.recipes.maps import Phase
from livens.schemes.recipes.stages import combined, estimate_weights, integral_weights, lagrange_weights
from livens.schemes.step import ErrorEstimate, FlatEquations
from livens.schemes.tableaus import Tableau


def phase_stages(model: Hamiltonian, first: Tableau, second: Tableau, estimate_order: int) -> FlatEquations:
    """Return the step graph for ``q' = dH/dp``, ``p' = -dH/dq + F``, with one method for q and another for p::

        Q_i = q0 + h sum_j a_ij Q'_j,    Q'_i =  dH/dp(Q_i, P_i)
        P_i = p0 + h sum_j A_ij P'_j,    P'_i = -dH/dq(Q_i, P_i) + F

    The unknowns are the deviations of the stage derivatives from the initial derivatives. Coefficients then multiply
    quantities of size h, and their round-off does not accumulate to a drift.
    """
    n, s, layout = model.n, first.s, model.layout
    x, z, c = ca.SX.sym("x", 2 * s * n), ca.SX.sym("z", layout.size), ca.SX.sym("c", 2 + model.parameter_count)
    h, t, phase = c[0], c[1], Phase(model, c[2:])
    q0, p0, v0 = (z[layout[name]] for name in ("q", "p", "v"))
    f0 = _rate(phase, q0, p0, v0, t)
    K, L = ([x[(2 * i + j) * n : (2 * i + j + 1) * n] for i in range(s)] for j in (0, 1))
    rows, names, work, values = [], [], [ca.SX(0), ca.SX(0)], dict[str, Any]()
    for i in range(s):
        Q = q0 + h * (float(first.A[i].sum()) * v0 + combined(first.A[i], K))
        P = p0 + h * (float(second.A[i].sum()) * f0 + combined(second.A[i], L))
        when = t + first.c[i] * h
        V = phase.H_p(Q, P, when)
        values |= {f"Q{i + 1}": Q, f"P{i + 1}": P, f"V{i + 1}": V}
        rows += [K[i] - (V - v0), L[i] - (_rate(phase, Q, P, V, when) - f0)]
        for j, power in enumerate(phase.work(Q, P, V, when)):
            work[j] += h * first.b[i] * power
        names += [f"{what} of {name} at stage {i + 1}" for what in ("velocity", "force") for name in model.coordinates]
    q1 = q0 + h * (v0 + combined(first.b, K))
    p1 = p0 + h * (f0 + combined(second.b, L))
    v1 = phase.H_p(q1, p1, t + h)
    f1 = _rate(phase, q1, p1, v1, t + h)
    new = {"q": q1, "v": v1, "p": p1}
    new |= {name: z[layout[name]] + work[j] for j, name in enumerate(("supplied_energy", "dissipated_energy"))}
    theta, ratio = ca.SX.sym("theta"), ca.SX.sym("ratio")
    weights = integral_weights(first.c, theta)
    q_in, p_in = q0 + h * (theta * v0 + combined(weights, K)), p0 + h * (theta * f0 + combined(weights, L))
    inside = {"q": q_in, "v": phase.H_p(q_in, p_in, t + theta * h), "p": p_in}
    onward = []
    for node in first.c:
        there = lagrange_weights(first.c, 1 + node * ratio)
        onward += [v0 + combined(there, K) - v1, f0 + combined(there, L) - f1]
    return FlatEquations.of(
        x,
        z,
        c,
        residual=ca.densify(ca.vertcat(*rows)),
        end=ca.densify(ca.vertcat(*(new[name] for name in layout.sizes))),
        guess=ca.SX.zeros(2 * s * n),
        kinds=(n,) * (2 * s),
        layout=layout,
        row_names=tuple(names),
        inside=(theta, inside),
        carried=(ratio, ca.densify(ca.vertcat(*onward))),
        error=_estimate(
            model, (first, second), estimate_order, [[*K, v1 - v0], [*L, f1 - f0]], [(q0, p0), (q1, p1)], h
        ),
        values=values,
    )


def _rate(phase: Phase, q: Any, p: Any, v: Any, t: Any) -> Any:
    """Return the momentum derivative ``p'``."""
    return phase.F(q, v, t) - phase.H_q(q, p, t)


def _estimate(
    model: Hamiltonian, pair: tuple[Tableau, Tableau], order: int, slopes: list[list[Any]], ends: list[Any], h: Any
) -> ErrorEstimate | None:
    """Return the error estimate: difference to a quadrature of lower order, or to the derivatives at both ends.

    `stage_derivatives` are those of q and of p, minus the initial derivatives; the final derivatives come last.
    """
    if not order:
        return None
    first, second = pair
    if first is second:
        weights = estimate_weights(first.c, first.b, bool(first.A[0].any()))[1:]
        errors = [combined(weights, of_one[:-1]) for of_one in slopes]
    else:
        errors = [first.b[0] * (of_one[-1] - of_one[0] - of_one[-2]) for of_one in slopes]
    return ErrorEstimate(
        errors=ca.densify(h * ca.vertcat(*errors)),
        sizes=ca.fmax(*(ca.fabs(ca.vertcat(*end)) for end in ends)),
        order=order,
        names=(*model.coordinates, *(f"p_{name}" for name in model.coordinates)),
    )
