"""Partitioned Runge-Kutta methods: one tableau for one part of the state, another for the other part.

One builder of stages serves first-order systems and Hamiltonians, without constraints (Symank 2025, def. 6.1) and with
constraints (def. 6.2).
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
import numpy as np

from livens.models.constrained_hamiltonian import ConstrainedHamiltonian
from livens.models.descriptor import DescriptorModel
from livens.models.hamiltonian.model import Hamiltonian
from livens.schemes.core.step_equations import ErrorEstimate, StepGraph
from livens.schemes.discretization.collocation import (
    embedded_error_weights,
    lagrange_basis,
    lagrange_integrals,
    linear_combination,
)
from livens.schemes.discretization.phase_space_map import HamiltonianFunctions
from livens.schemes.tableaus import PartitionedTableau
from livens.types import Expr


class PartitionedStages:
    """Stages of a pair of methods on ``y' = f(t, y)``, with the second method on the entries `second` of y::

        Y_i = y0 + h sum_j a_ij Y'_j        y1 = y0 + h sum_i b_i Y'_i

    The unknowns are the deviations ``Y'_i - f0`` from the initial derivatives. Coefficients then multiply quantities of
    size h, and their round-off does not accumulate to a drift.
    """

    def __init__(
        self, pair: PartitionedTableau, second: Sequence[int], y0: Expr, f0: Expr, h: Expr, unknowns: Expr
    ) -> None:
        self.pair, self.y0, self.f0, self.h = pair, y0, f0, h
        n = int(y0.numel())
        #: Stage derivatives minus the initial derivatives, stage by stage.
        self.deviations: list[Expr] = [unknowns[i * n : (i + 1) * n] for i in range(pair.s)]
        first = [j for j in range(n) if j not in set(second)]
        self._parts = [(method, part) for method, part in ((pair.q, first), (pair.p, list(second))) if part]

    def stage(self, i: int) -> Expr:
        """Return the state at stage i."""
        row_sums = ca.SX.zeros(self.y0.numel())
        for method, part in self._parts:
            row_sums[part] = float(method.A[i].sum())
        return self.y0 + self.h * (row_sums * self.f0 + self._combination([m.A[i] for m, _ in self._parts]))

    @property
    def final(self) -> Expr:
        """State at the end of the step."""
        return self.y0 + self.h * (self.f0 + self._combination([method.b for method, _ in self._parts]))

    def _combination(self, weights: Sequence[np.ndarray]) -> Expr:
        """Return the linear combination of the deviations, every part of y with the weights of its method."""
        total = ca.SX.zeros(self.y0.numel())
        for row, (_, part) in zip(weights, self._parts, strict=True):
            total[part] = linear_combination(row, [deviation[part] for deviation in self.deviations])
        return total

    def dense(self, theta: Expr) -> Expr:
        """Return the collocation polynomial at the fraction theta of the step."""
        weights = lagrange_integrals(self.pair.q.c, theta)
        return self.y0 + self.h * (theta * self.f0 + linear_combination(weights, self.deviations))

    def extrapolation(self, ratio: Expr, f1: Expr) -> Expr:
        """Return the unknowns of the next step, ``ratio`` times as long, by the collocation polynomial."""
        nodes = self.pair.q.c
        bases = [lagrange_basis(nodes, 1 + node * ratio) for node in nodes]
        return ca.densify(ca.vertcat(*(self.f0 + linear_combination(basis, self.deviations) - f1 for basis in bases)))

    def error_estimate(self, f1: Expr, y1: Expr, order: int, names: Sequence[str]) -> ErrorEstimate | None:
        """Return the error estimate of the first entries of y, those with names; None for order 0.

        For one method it is the difference to a quadrature of lower order. For a pair it is the difference between the
        derivatives at both ends and those of the first and the last stage.
        """
        if not order:
            return None
        T, n = self.pair.q, len(names)
        if T is self.pair.p:
            weights = embedded_error_weights(T.c, T.b, bool(T.A[0].any()))[1:]
            error = linear_combination(weights, self.deviations)
        else:
            error = T.b[0] * ((f1 - self.f0) - self.deviations[0] - self.deviations[-1])
        return ErrorEstimate(
            errors=ca.densify(self.h * error[:n]),
            scales=ca.fmax(ca.fabs(self.y0[:n]), ca.fabs(y1[:n])),
            order=order,
            names=tuple(names),
        )


def pair_error_order(pair: PartitionedTableau) -> int:
    """Return the order of the error estimate, which is even for pairs with stages at both ends."""
    if not pair.has_common_nodes:
        return 0
    has_end_stages = abs(pair.q.c[0]) < 1e-12 and abs(pair.q.c[-1] - 1) < 1e-12
    if pair.symmetric and has_end_stages and pair.s > 1:
        return pair.s - pair.s % 2
    return 0


def partitioned_first_order_stages(model: DescriptorModel, pair: PartitionedTableau, error_order: int) -> StepGraph:
    """Return the step graph with the second method on the states in `model.partition`, and the first on all others::

    X_i = x0 + h sum_j a_ij X'_j    X'_i = f(X_i, Y_i)       x1 = x0 + h sum_i b_i X'_i
    Y_i = y0 + h sum_j A_ij Y'_j    Y'_i = g(X_i, Y_i)       y1 = y0 + h sum_i b_i Y'_i
    """
    d, layout, s, n = model.descriptor, model.layout, pair.s, len(model.coordinates)
    x, z, c = ca.SX.sym("x", s * n), ca.SX.sym("z", layout.size), ca.SX.sym("c", 2 + model.parameter_count)
    h, t, k = c[0], c[1], c[2:]
    field = ca.Function("field", [d.x, d.t, d.k], [ca.densify(model.vector_field)])
    x0 = z[layout["x"]]
    stages = PartitionedStages(pair, model.partition, x0, field(x0, t, k), h, x)
    residuals, values = [], dict[str, Expr]()
    for i, deviation in enumerate(stages.deviations):
        X = stages.stage(i)
        residuals.append(deviation - (field(X, t + pair.q.c[i] * h, k) - stages.f0))
        values |= {f"X{i + 1}": X, f"slope{i + 1}": stages.f0 + deviation}
    x1 = stages.final
    f1 = field(x1, t + h, k)
    theta, ratio = ca.SX.sym("theta"), ca.SX.sym("ratio")
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
        dense_output=(theta, {"x": stages.dense(theta)}) if pair.has_common_nodes else None,
        stage_extrapolation=(ratio, stages.extrapolation(ratio, f1)) if pair.has_common_nodes else None,
        error_estimate=stages.error_estimate(f1, x1, error_order, model.coordinates),
        named_values=values,
    )


def partitioned_hamiltonian_stages(model: Hamiltonian, pair: PartitionedTableau, error_order: int) -> StepGraph:
    """Return the step graph for ``q' = dH/dp``, ``p' = -dH/dq + F``, with one method for q and another for p::

    Q_i = q0 + h sum_j a_ij Q'_j,    Q'_i =  dH/dp(Q_i, P_i)
    P_i = p0 + h sum_j A_ij P'_j,    P'_i = -dH/dq(Q_i, P_i) + F
    """
    n, s, layout, T = model.n, pair.s, model.layout, pair.q
    x, z, c = ca.SX.sym("x", 2 * s * n), ca.SX.sym("z", layout.size), ca.SX.sym("c", 2 + model.parameter_count)
    h, t, phase = c[0], c[1], HamiltonianFunctions(model, c[2:])

    def momentum_derivative(q: Expr, p: Expr, v: Expr | ca.DM, t: Expr) -> Expr:
        return phase.F(q, v, t) - phase.H_q(q, p, t)

    q0, p0, v0 = (z[layout[name]] for name in ("q", "p", "v"))
    y0, f0 = ca.vertcat(q0, p0), ca.vertcat(v0, momentum_derivative(q0, p0, v0, t))
    stages = PartitionedStages(pair, range(n, 2 * n), y0, f0, h, x)
    residuals, work, values = [], [ca.SX(0), ca.SX(0)], dict[str, Expr]()
    for i, deviation in enumerate(stages.deviations):
        Q, P = ca.vertsplit(stages.stage(i), n)
        t_i = t + T.c[i] * h
        V = ca.SX(phase.H_p(Q, P, t_i))
        values |= {f"Q{i + 1}": Q, f"P{i + 1}": P, f"V{i + 1}": V}
        residuals.append(deviation - (ca.vertcat(V, momentum_derivative(Q, P, V, t_i)) - f0))
        for j, power in enumerate(phase.work(Q, P, V, t_i)):
            work[j] += h * T.b[i] * power
    y1 = stages.final
    q1, p1 = ca.vertsplit(y1, n)
    v1 = phase.H_p(q1, p1, t + h)
    f1 = ca.vertcat(v1, momentum_derivative(q1, p1, v1, t + h))
    final = {"q": q1, "v": v1, "p": p1}
    final |= {name: z[layout[name]] + work[j] for j, name in enumerate(("supplied_energy", "dissipated_energy"))}
    theta, ratio = ca.SX.sym("theta"), ca.SX.sym("ratio")
    q_dense, p_dense = ca.vertsplit(stages.dense(theta), n)
    return StepGraph.from_residual(
        x,
        z,
        c,
        residual=ca.densify(ca.vertcat(*residuals)),
        final_state=ca.densify(ca.vertcat(*(final[name] for name in layout.sizes))),
        initial_guess=ca.SX.zeros(2 * s * n),
        block_sizes=(n,) * (2 * s),
        layout=layout,
        equation_labels=_stage_labels(model.coordinates, s),
        dense_output=(theta, {"q": q_dense, "v": phase.H_p(q_dense, p_dense, t + theta * h), "p": p_dense})
        if pair.has_common_nodes
        else None,
        stage_extrapolation=(ratio, stages.extrapolation(ratio, f1)) if pair.has_common_nodes else None,
        error_estimate=stages.error_estimate(
            f1, y1, error_order, (*model.coordinates, *(f"p_{name}" for name in model.coordinates))
        ),
        named_values=values,
    )


def _stage_labels(coordinates: Sequence[str], s: int) -> tuple[str, ...]:
    quantities = ("velocity", "force")
    return tuple(
        f"{quantity} of {name} at stage {i + 1}" for i in range(s) for quantity in quantities for name in coordinates
    )


def constrained_lobatto_stages(model: ConstrainedHamiltonian, pair: PartitionedTableau, error_order: int) -> StepGraph:
    """Return the step graph with one method for coordinates, another for momenta, and a multiplier per stage::

        Q_i = q0 + h sum_j a_ij V_j,     V_i = dH/dp(Q_i, P_i)
        P_i = p0 + h sum_j A_ij F_j,     F_i = -dH/dq(Q_i, P_i) + F - G(Q_i)^T L_i
        0   = g(Q_i), i = 2 .. s         0   = G(q1) dH/dp(q1, p1)

    Further unknowns are the L_i and the multipliers at t + h. The latter follow from the time derivative of the hidden
    constraints; no other equation contains them.
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
    outputs = [ca.vertcat(M.velocity, M.momentum_rate), M.g, M.hidden_constraint, hidden_rate, power]
    evaluate = ca.Function("there", [ca.vertcat(M.q, M.p), M.lam, M.t, M.k], [ca.densify(output) for output in outputs])
    y0, lam0 = z[: 2 * n], z[layout["y"]]
    stages = PartitionedStages(pair, range(n, 2 * n), y0, evaluate(y0, lam0, t, k)[0], h, x[: 2 * s * n])
    multiplier_start = 2 * s * n
    lam = [x[multiplier_start + i * m : multiplier_start + (i + 1) * m] for i in range(s + 1)]
    residuals, constraints, values, work = [], [], dict[str, Expr](), ca.SX(0)
    for i, deviation in enumerate(stages.deviations):
        Y = stages.stage(i)
        t_i = t if pair.q.c[i] == 0 else t + (h if pair.q.c[i] == 1 else pair.q.c[i] * h)
        f, g, _, _, supplied = evaluate(Y, lam[i], t_i, k)
        residuals.append(deviation - (f - stages.f0))
        constraints += [g / h] if i else []
        values |= {f"Q{i + 1}": Y[:n], f"P{i + 1}": Y[n:], f"V{i + 1}": f[:n], f"L{i + 1}": lam[i]}
        work += h * pair.q.b[i] * supplied
    y1 = stages.final
    f1, _, hidden, hidden_derivative, _ = evaluate(y1, lam[s], t + h, k)
    final = {"x": y1, "y": lam[s], "supplied_energy": z[layout["supplied_energy"]] + work}
    final["dissipated_energy"] = z[layout["dissipated_energy"]]
    theta = ca.SX.sym("theta")
    names = [f"constraint {j} at stage {i + 1}" for i in range(1, s) for j in range(m)]
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
        equation_labels=(*_stage_labels(M.coordinate_names, s), *names),
        dense_output=(theta, {"x": stages.dense(theta)}),
        error_estimate=stages.error_estimate(f1, y1, error_order, M.coordinate_names),
        named_values=values,
    )
