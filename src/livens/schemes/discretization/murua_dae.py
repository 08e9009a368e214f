"""Murua's method on index-2 models in descriptor form: ``x' = f(x, z)``, ``0 = g(x)``.

See Symank 2025, def. 6.5, thm. 6.7.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from livens.expressions.probe import Probe
from livens.models.descriptor import DescriptorModel
from livens.schemes.core.step_equations import StepGraph
from livens.schemes.discretization.collocation import lagrange_basis, lagrange_integrals, linear_combination
from livens.schemes.discretization.dae_runge_kutta import stage_values
from livens.schemes.discretization.radau_error_estimate import radau_error_estimate
from livens.schemes.tableaus.murua import MuruaTableau
from livens.types import Expr


@dataclass(frozen=True)
class IndexTwoForm:
    """Index-2 form ``E x' = f(x, y, z)``, ``0 = c(x, y, z)``, ``0 = g(x, y)``: indices of variables and equations.

    y has index 1 and z index 2; c depends on z only if g does not depend on y. y may be empty; examples of y are
    positions of contact points, and currents of resistors in networks. Without z the method is Gauss.
    """

    x: list[int]
    y: list[int]
    z: list[int]
    f: list[int]
    c: list[int]
    g: list[int]


def index_two_form(model: DescriptorModel) -> IndexTwoForm | None:
    """Return the index-2 form of a model; None if it does not have this form."""
    pencil, d = model.pencil, model.descriptor
    n = int(d.x.numel())
    x = [j for j in range(n) if j not in pencil.algebraic_variables]
    y = [j for j in pencil.algebraic_variables if pencil.indices[j] == 1]
    z = [j for j in pencil.algebraic_variables if pencil.indices[j] == 2]
    if len(y) + len(z) != n - len(x) or any(pencil.indices[j] != 1 for j in x):
        return None
    f = [i for i in range(n) if i not in pencil.algebraic_equations]
    if len(f) != len(x):
        return None
    c = _index_one_equations(model, y)
    g = [i for i in pencil.algebraic_equations if i not in c]
    if len(c) == len(y) and not (z and ca.depends_on(_select(d.residual, c + g), d.x[z])):
        return IndexTwoForm(x, y, z, f, c, g)
    return _form_with_coupled_multipliers(model, x, f)


def _form_with_coupled_multipliers(model: DescriptorModel, x: list[int], f: list[int]) -> IndexTwoForm | None:
    """Return the form with ``0 = c(x, y, z)`` and ``0 = g(x)``, as in networks; None if the model does not have it.

    Variables that depend on multipliers of index 2 have index 2 as well. Those that the equations c determine, for
    given multipliers, are y.
    """
    pencil, d = model.pencil, model.descriptor
    algebraic = sorted(pencil.algebraic_variables, key=lambda j: (pencil.indices[j], j))
    g = [i for i in pencil.algebraic_equations if not ca.depends_on(d.residual[i], d.x[algebraic])]
    c = [i for i in pencil.algebraic_equations if i not in g]
    probe = Probe([d.x, d.xdot, d.t, d.k], seed=13, fixed={3: model.parameter_vector()})
    jacobian = probe.evaluate_once(ca.jacobian(d.residual, d.x))
    if jacobian is None or not c or not g:
        return None
    y = list[int]()
    for j in algebraic:
        if np.linalg.matrix_rank(jacobian[np.ix_(c, [*y, j])]) > len(y):
            y.append(j)
    z = [j for j in algebraic if j not in y]
    return IndexTwoForm(x, y, z, f, c, g) if len(y) == len(c) and len(z) == len(g) else None


def _index_one_equations(model: DescriptorModel, y: list[int]) -> list[int]:
    """Return the leading algebraic equations that determine the variables y."""
    d, chosen = model.descriptor, list[int]()
    if not y:
        return chosen
    probe = Probe([d.x, d.xdot, d.t, d.k], seed=13, fixed={3: model.parameter_vector()})
    jacobian = probe.evaluate_once(ca.jacobian(d.residual, d.x))
    if jacobian is None:
        return chosen
    for i in model.pencil.algebraic_equations:
        if np.linalg.matrix_rank(jacobian[np.ix_([*chosen, i], y)]) > len(chosen):
            chosen.append(i)
    return chosen


def _select(column: Expr, chosen: list[int]) -> Expr:
    """Return some entries of a column; an empty selection has shape (0, 1)."""
    return column[chosen] if chosen else ca.SX(0, 1)


def murua_step(model: DescriptorModel, coefficients: MuruaTableau) -> StepGraph:
    """Return the step graph: one polynomial for x, with derivatives at Gauss nodes and constraints at Lobatto nodes::

        X_i    = x0 + h sum_k a_ik X'_k       E X'_i = f(X_i, Y_i, Z_i),  0 = c(X_i, Y_i, Z_i)
        Xbar_i = x0 + h sum_k abar_ik X'_k    0 = g(Xbar_i, Ybar_i),      0 = c(Xbar_i, Ybar_i, Zbar_i)

    The final state is the last Xbar_i. The multipliers at t + h are ``gamma_0 z0 + sum_i gamma_i Z_i``, on the
    polynomial through z0 and the Z_i, as are the Zbar_i.
    """
    form = index_two_form(model)
    assert form is not None, "the scheme requires the index-2 form"
    p, d, layout, T, s = form, model.descriptor, model.layout, coefficients.gauss, coefficients.s
    n, (nx, ny, nz) = int(d.x.numel()), (len(p.x), len(p.y), len(p.z))
    x = ca.SX.sym("x", s * (nx + nz + 2 * ny))
    z, const = ca.SX.sym("z", layout.size), ca.SX.sym("c", 2 + model.parameter_count)
    h, t, k = const[0], const[1], const[2:]
    sizes = [nx] * s + [nz] * s + [ny] * (2 * s)
    blocks = [block if block.numel() else ca.SX(0, 1) for block in ca.vertsplit(x, np.cumsum([0, *sizes]).tolist())]
    stage_derivatives, Z, Y, Y_bar = (blocks[i * s : (i + 1) * s] for i in range(4))
    x0 = z[p.x]
    terms = ca.Function("stage", [d.x, d.xdot, d.t, d.k], [d.residual, d.supplied, d.dissipated])

    def full_state(x_part: Expr, y: Any, multipliers: Expr) -> Expr:
        vector = ca.SX.zeros(n)
        vector[p.x] = x_part
        if ny:
            vector[p.y] = y
        if nz:
            vector[p.z] = multipliers
        return vector

    def full_derivative(x_derivative: Expr) -> Expr:
        vector = ca.SX.zeros(n)
        vector[p.x] = x_derivative
        return vector

    residuals, work = [], [ca.SX(0), ca.SX(0)]
    for i in range(s):
        x_stage = x0 + h * linear_combination(T.A[i], stage_derivatives)
        residual, supplied, dissipated = terms(
            full_state(x_stage, Y[i], Z[i]), full_derivative(stage_derivatives[i]), t + T.c[i] * h, k
        )
        residuals.append(_select(residual, p.f + p.c))
        work[0] += h * T.b[i] * supplied
        work[1] += h * T.b[i] * dissipated
    nodes_with_start = np.concatenate([[0.0], T.c])
    through_start = [lagrange_basis(nodes_with_start, ca.SX(float(node))) for node in coefficients.c_bar]
    for i, node in enumerate(coefficients.c_bar):
        x_stage = x0 + h * linear_combination(coefficients.A_bar[i], stage_derivatives)
        multipliers = linear_combination(through_start[i], [_select(z, p.z), *Z]) if nz else ca.SX(0, 1)
        residual = terms(full_state(x_stage, Y_bar[i], multipliers), ca.SX.zeros(n), t + node * h, k)[0]
        residuals.append(ca.vertcat(_select(residual, p.g) / h, _select(residual, p.c)))
    x1 = full_state(
        x0 + h * linear_combination(coefficients.A_bar[-1], stage_derivatives),
        Y_bar[-1],
        coefficients.gamma_0 * _select(z, p.z) + linear_combination(coefficients.gamma, Z),
    )
    x0_full = full_state(x0, z[p.y] if ny else None, linear_combination(lagrange_basis(T.c, ca.SX(0)), Z))
    theta, ratio = ca.SX.sym("theta"), ca.SX.sym("ratio")
    basis = lagrange_basis(T.c, theta)
    dense = full_state(
        x0 + h * linear_combination(lagrange_integrals(T.c, theta), stage_derivatives),
        linear_combination(basis, Y),
        linear_combination(basis, Z),
    )
    extrapolation = [lagrange_basis(T.c, 1 + node * ratio) for node in T.c]
    extrapolation_bar = [lagrange_basis(coefficients.c_bar, 1 + node * ratio) for node in coefficients.c_bar]
    extrapolated = [linear_combination(w, block) for block in (stage_derivatives, Z, Y) for w in extrapolation]
    extrapolated += [linear_combination(w, Y_bar) for w in extrapolation_bar]
    final_state = ca.vertcat(x1, z[n] + work[0], z[n + 1] + work[1]) if d.stored is not None else x1
    names = [f"equation {i} of stage {j + 1}" for j in range(s) for i in p.f + p.c]
    names += [f"equation {i} at node {j + 1} of the constraints" for j in range(s) for i in p.g + p.c]
    return StepGraph.from_residual(
        x,
        z,
        const,
        residual=ca.densify(ca.vertcat(*residuals)),
        final_state=ca.densify(final_state),
        initial_guess=ca.densify(ca.vertcat(ca.SX.zeros(s * nx), *[_select(z, p.z)] * s, *[_select(z, p.y)] * (2 * s))),
        block_sizes=tuple(size for size in sizes if size),
        layout=layout,
        equation_labels=tuple(names),
        dense_output=(theta, {name: dense[layout[name]] for name in ("x", "y") if name in layout}),
        stage_extrapolation=(ratio, ca.densify(ca.vertcat(*extrapolated))),
        error_estimate=radau_error_estimate(
            model, T, [full_derivative(derivative) for derivative in stage_derivatives], x0_full, x1, h, t, k
        ),
        named_values=stage_values(
            X=[x0 + h * linear_combination(row, stage_derivatives) for row in T.A],
            slope=stage_derivatives,
            Z=Z if nz else [],
            Y=Y if ny else [],
        ),
    )
