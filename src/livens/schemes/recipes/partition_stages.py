"""Partitioned Runge-Kutta methods on first-order systems: ``x' = f(x, y)``, ``y' = g(x, y)`` (S002 def. 6.1)."""

from __future__ import annotations

from typing import Any

import casadi as ca

from livens.models.descriptor import DescriptorModel
from livens.schemes.recipes.stages import combined, estimate_weights, integral_weights, lagrange_weights
from livens.schemes.step import ErrorEstimate, FlatEquations
from livens.schemes.tableaus import Pair, Tableau


def partition_stages(model: DescriptorModel, pair: Pair, estimate_order: int) -> FlatEquations:
    """Return the step graph with the second method on the states in `model.second`, and the first on all others::

        X_i = x0 + h sum_j a_ij X'_j    X'_i = f(X_i, Y_i)       x1 = x0 + h sum_i b_i X'_i
        Y_i = y0 + h sum_j A_ij Y'_j    Y'_i = g(X_i, Y_i)       y1 = y0 + h sum_i b_i Y'_i

    As in `partitioned_hamiltonian_stages`, the unknowns are deviations from the initial derivatives.
    """
    d, layout, s, n = model.descriptor, model.layout, pair.s, len(model.coordinates)
    parts = [j for j in range(n) if j not in model.second], list(model.second)
    both = pair.first, pair.second
    x, z, c = ca.SX.sym("x", s * n), ca.SX.sym("z", layout.size), ca.SX.sym("c", 2 + model.parameter_count)
    h, t, k = c[0], c[1], c[2:]
    field = ca.Function("field", [d.x, d.t, d.k], [ca.densify(model.field)])
    x0 = z[layout["x"]]
    f0 = field(x0, t, k)
    K = [x[i * n : (i + 1) * n] for i in range(s)]

    def weighted(rows: tuple[Any, Any], terms: list[Any]) -> Any:
        """Return linear combinations of these terms, each part with the weights of its method."""
        found = ca.SX.zeros(n)
        for weights, part in zip(rows, parts, strict=True):
            if part:
                found[part] = combined(weights, [term[part] for term in terms])
        return found

    rows, values = [], dict[str, Any]()
    for i in range(s):
        reach = ca.SX.zeros(n)
        for method, part in zip(both, parts, strict=True):
            reach[part] = float(method.A[i].sum())
        X = x0 + h * (reach * f0 + weighted((both[0].A[i], both[1].A[i]), K))
        rows.append(K[i] - (field(X, t + pair.first.c[i] * h, k) - f0))
        values |= {f"X{i + 1}": X, f"slope{i + 1}": f0 + K[i]}
    x1 = x0 + h * (f0 + weighted((both[0].b, both[1].b), K))
    f1 = field(x1, t + h, k)
    theta, ratio = ca.SX.sym("theta"), ca.SX.sym("ratio")
    nodes = pair.first.c
    within = x0 + h * (theta * f0 + combined(integral_weights(nodes, theta), K))
    onward = [f0 + combined(lagrange_weights(nodes, 1 + node * ratio), K) - f1 for node in nodes]
    return FlatEquations.of(
        x,
        z,
        c,
        residual=ca.densify(ca.vertcat(*rows)),
        end=ca.densify(x1),
        guess=ca.SX.zeros(s * n),
        kinds=(n,) * s,
        layout=layout,
        row_names=tuple(f"slope of {name} at stage {i + 1}" for i in range(s) for name in model.coordinates),
        inside=(theta, {"x": within}),
        carried=(ratio, ca.densify(ca.vertcat(*onward))),
        error=_estimate(model, pair, estimate_order, [*K, f1 - f0], (x0, x1), h),
        values=values,
    )


def pair_estimate_order(pair: Pair) -> int:
    """Return the order of the error estimate, which is even for pairs with stages at both ends."""
    ends = abs(pair.first.c[0]) < 1e-12 and abs(pair.first.c[-1] - 1) < 1e-12
    if pair.symmetric and ends and pair.s > 1:
        return pair.s - pair.s % 2
    return 0


def _estimate(
    model: DescriptorModel, pair: Pair, order: int, slopes: list[Any], ends: tuple[Any, Any], h: Any
) -> ErrorEstimate | None:
    """Return the error estimate: derivatives at both ends minus those of the first and the last stage."""
    if not order:
        return None
    first: Tableau = pair.first
    error = first.b[0] * (slopes[-1] - slopes[0] - slopes[-2])
    if pair.first is pair.second:
        error = combined(estimate_weights(first.c, first.b, bool(first.A[0].any()))[1:], slopes[:-1])
    return ErrorEstimate(
        errors=ca.densify(h * error),
        sizes=ca.fmax(*(ca.fabs(end) for end in ends)),
        order=order,
        names=model.coordinates,
    )
