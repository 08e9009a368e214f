"""Partitioned Runge-Kutta methods on first-order systems: ``x' = f(x, y)``, ``y' = g(x, y)``.

See Symank 2025, def. 6.1.
"""

from __future__ import annotations

from typing import Any

import casadi as ca

from livens.models.descriptor import DescriptorModel
from livens.schemes.core.step_equations import ErrorEstimate, StepGraph
from livens.schemes.discretization.dae_runge_kutta import (
    embedded_error_weights,
    lagrange_basis,
    lagrange_integrals,
    linear_combination,
)
from livens.schemes.tableaus import PartitionedTableau, Tableau
from livens.types import Expr


def partitioned_first_order_stages(model: DescriptorModel, pair: PartitionedTableau, error_order: int) -> StepGraph:
    """Return the step graph with the second method on the states in `model.second`, and the first on all others::

        X_i = x0 + h sum_j a_ij X'_j    X'_i = f(X_i, Y_i)       x1 = x0 + h sum_i b_i X'_i
        Y_i = y0 + h sum_j A_ij Y'_j    Y'_i = g(X_i, Y_i)       y1 = y0 + h sum_i b_i Y'_i

    As in `partitioned_hamiltonian_stages`, the unknowns are deviations from the initial derivatives.
    """
    d, layout, s, n = model.descriptor, model.layout, pair.s, len(model.coordinates)
    state_parts = [j for j in range(n) if j not in model.partition], list(model.partition)
    tableaus = pair.q, pair.p
    x, z, c = ca.SX.sym("x", s * n), ca.SX.sym("z", layout.size), ca.SX.sym("c", 2 + model.parameter_count)
    h, t, k = c[0], c[1], c[2:]
    field = ca.Function("field", [d.x, d.t, d.k], [ca.densify(model.vector_field)])
    x0 = z[layout["x"]]
    f0 = field(x0, t, k)
    dK = [x[i * n : (i + 1) * n] for i in range(s)]

    def partitioned_sum(weight_rows: tuple[Any, Any], terms: list[Any]) -> Expr:
        """Return linear combinations of these terms, each part with the weights of its method."""
        total = ca.SX.zeros(n)
        for weights, indices in zip(weight_rows, state_parts, strict=True):
            if indices:
                total[indices] = linear_combination(weights, [term[indices] for term in terms])
        return total

    residuals, values = [], dict[str, Any]()
    for i in range(s):
        row_sum = ca.SX.zeros(n)
        for method, indices in zip(tableaus, state_parts, strict=True):
            row_sum[indices] = float(method.A[i].sum())
        X = x0 + h * (row_sum * f0 + partitioned_sum((tableaus[0].A[i], tableaus[1].A[i]), dK))
        residuals.append(dK[i] - (field(X, t + pair.q.c[i] * h, k) - f0))
        values |= {f"X{i + 1}": X, f"slope{i + 1}": f0 + dK[i]}
    x1 = x0 + h * (f0 + partitioned_sum((tableaus[0].b, tableaus[1].b), dK))
    f1 = field(x1, t + h, k)
    theta, ratio = ca.SX.sym("theta"), ca.SX.sym("ratio")
    nodes = pair.q.c
    dense = x0 + h * (theta * f0 + linear_combination(lagrange_integrals(nodes, theta), dK))
    extrapolated = [f0 + linear_combination(lagrange_basis(nodes, 1 + node * ratio), dK) - f1 for node in nodes]
    return StepGraph.from_residual(
        x,
        z,
        c,
        residual=ca.densify(ca.vertcat(*residuals)),
        final_state=ca.densify(x1),
        initial_guess=ca.SX.zeros(s * n),
        block_sizes=(n,) * s,
        layout=layout,
        equation_labels=tuple(f"slope of {name} at stage {i + 1}" for i in range(s) for name in model.coordinates),
        dense_output=(theta, {"x": dense}),
        stage_extrapolation=(ratio, ca.densify(ca.vertcat(*extrapolated))),
        error_estimate=_error_estimate(model, pair, error_order, [*dK, f1 - f0], (x0, x1), h),
        named_values=values,
    )


def pair_error_order(pair: PartitionedTableau) -> int:
    """Return the order of the error estimate, which is even for pairs with stages at both ends."""
    has_end_stages = abs(pair.q.c[0]) < 1e-12 and abs(pair.q.c[-1] - 1) < 1e-12
    if pair.symmetric and has_end_stages and pair.s > 1:
        return pair.s - pair.s % 2
    return 0


def _error_estimate(
    model: DescriptorModel,
    pair: PartitionedTableau,
    order: int,
    stage_derivatives: list[Any],
    end_states: tuple[Expr, Expr],
    h: Expr,
) -> ErrorEstimate | None:
    """Return the error estimate: derivatives at both ends minus those of the first and the last stage."""
    if not order:
        return None
    tableau_q: Tableau = pair.q
    error = tableau_q.b[0] * (stage_derivatives[-1] - stage_derivatives[0] - stage_derivatives[-2])
    if pair.q is pair.p:
        error = linear_combination(
            embedded_error_weights(tableau_q.c, tableau_q.b, bool(tableau_q.A[0].any()))[1:],
            stage_derivatives[:-1],
        )
    return ErrorEstimate(
        errors=ca.densify(h * error),
        scales=ca.fmax(*(ca.fabs(state) for state in end_states)),
        order=order,
        names=model.coordinates,
    )
