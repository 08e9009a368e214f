"""Murua's method on index-2 models in descriptor form: ``x' = f(x, z)``, ``0 = g(x)`` (S002 def. 6.5, thm. 6.7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from livens.expressions.probe import Probe
from livens.models.descriptor import DescriptorModel
from livens.schemes.recipes.filtered_estimate import filtered_estimate
from livens.schemes.recipes.stages import by_stage, combined, integral_weights, lagrange_weights
from livens.schemes.step import FlatEquations
from livens.schemes.tableaus.murua import Murua


@dataclass(frozen=True)
class Parts:
    """Index-2 form ``E x' = f(x, y, z)``, ``0 = c(x, y)``, ``0 = g(x, y)``: indices of variables and equations.

    y has index 1 and z index 2. y may be empty; an example of y are positions of contact points. Without z the method
    is Gauss.
    """

    x: list[int]
    y: list[int]
    z: list[int]
    f: list[int]
    c: list[int]
    g: list[int]


def parts_of(model: DescriptorModel) -> Parts | None:
    """Return the index-2 form of a model; None if it does not have this form."""
    pencil, d = model.pencil, model.descriptor
    n = int(d.x.numel())
    x = [j for j in range(n) if j not in pencil.algebraic]
    y = [j for j in pencil.algebraic if pencil.indices[j] == 1]
    z = [j for j in pencil.algebraic if pencil.indices[j] == 2]
    if len(y) + len(z) != n - len(x) or any(pencil.indices[j] != 1 for j in x):
        return None
    f = [i for i in range(n) if i not in pencil.equations]
    if len(f) != len(x):
        return None
    c = _determining(model, y)
    g = [i for i in pencil.equations if i not in c]
    if len(c) != len(y) or (z and ca.depends_on(_rows(d.residual, c + g), d.x[z])):
        return None
    return Parts(x, y, z, f, c, g)


def _determining(model: DescriptorModel, y: list[int]) -> list[int]:
    """Return the leading algebraic equations that determine the variables y."""
    d, chosen = model.descriptor, list[int]()
    if not y:
        return chosen
    probe = Probe([d.x, d.xdot, d.t, d.k], seed=13, given={3: model.parameter_vector()})
    slope = probe.first(ca.jacobian(d.residual, d.x))
    if slope is None:
        return chosen
    for i in model.pencil.equations:
        if np.linalg.matrix_rank(slope[np.ix_([*chosen, i], y)]) > len(chosen):
            chosen.append(i)
    return chosen


def _rows(column: Any, chosen: list[int]) -> Any:
    """Return some entries of a column; an empty selection has shape (0, 1)."""
    return column[chosen] if chosen else ca.SX(0, 1)


def index_two_equations(model: DescriptorModel, coefficients: Murua) -> FlatEquations:
    """Return the step graph: one polynomial for x, with derivatives at Gauss nodes and constraints at Lobatto nodes::

        X_i    = x0 + h sum_k a_ik X'_k       E X'_i = f(X_i, Y_i, Z_i),  0 = c(X_i, Y_i)
        Xbar_i = x0 + h sum_k abar_ik X'_k    0 = g(Xbar_i, Ybar_i),      0 = c(Xbar_i, Ybar_i)

    The final state is the last Xbar_i. The multipliers at t + h are on the polynomial through the Z_i; z0 does not
    enter, as its error would persist.
    """
    parts = parts_of(model)
    assert parts is not None, "the scheme requires the index-2 form"
    p, d, layout, T, s = parts, model.descriptor, model.layout, coefficients.dynamics, coefficients.s
    n, (nx, ny, nz) = int(d.x.numel()), (len(p.x), len(p.y), len(p.z))
    x = ca.SX.sym("x", s * (nx + nz + 2 * ny))
    z, const = ca.SX.sym("z", layout.size), ca.SX.sym("c", 2 + model.parameter_count)
    h, t, k = const[0], const[1], const[2:]
    sizes = [nx] * s + [nz] * s + [ny] * (2 * s)
    blocks = [part if part.numel() else ca.SX(0, 1) for part in ca.vertsplit(x, np.cumsum([0, *sizes]).tolist())]
    slopes, Z, Y, Y_bar = (blocks[i * s : (i + 1) * s] for i in range(4))
    x0 = z[p.x]
    terms = ca.Function("stage", [d.x, d.xdot, d.t, d.k], [d.residual, d.supplied, d.dissipated])

    def state(own: Any, y: Any, multipliers: Any) -> Any:
        whole = ca.SX.zeros(n)
        whole[p.x] = own
        if ny:
            whole[p.y] = y
        if nz:
            whole[p.z] = multipliers
        return whole

    def rate(slope: Any) -> Any:
        whole = ca.SX.zeros(n)
        whole[p.x] = slope
        return whole

    rows, work = [], [ca.SX(0), ca.SX(0)]
    for i in range(s):
        own = x0 + h * combined(T.A[i], slopes)
        residual, supplied, dissipated = terms(state(own, Y[i], Z[i]), rate(slopes[i]), t + T.c[i] * h, k)
        rows.append(_rows(residual, p.f + p.c))
        work[0] += h * T.b[i] * supplied
        work[1] += h * T.b[i] * dissipated
    for i, node in enumerate(coefficients.c_bar):
        own = x0 + h * combined(coefficients.A_bar[i], slopes)
        residual = terms(state(own, Y_bar[i], ca.SX.zeros(nz)), ca.SX.zeros(n), t + node * h, k)[0]
        rows.append(ca.vertcat(_rows(residual, p.g) / h, _rows(residual, p.c)))
    end = state(
        x0 + h * combined(coefficients.A_bar[-1], slopes), Y_bar[-1], combined(lagrange_weights(T.c, ca.SX(1)), Z)
    )
    beginning = state(x0, z[p.y] if ny else None, combined(lagrange_weights(T.c, ca.SX(0)), Z))
    theta, ratio = ca.SX.sym("theta"), ca.SX.sym("ratio")
    through = lagrange_weights(T.c, theta)
    within = state(x0 + h * combined(integral_weights(T.c, theta), slopes), combined(through, Y), combined(through, Z))
    onward = [lagrange_weights(T.c, 1 + node * ratio) for node in T.c]
    onward_bar = [lagrange_weights(coefficients.c_bar, 1 + node * ratio) for node in coefficients.c_bar]
    carried = [combined(w, part) for part in (slopes, Z, Y) for w in onward]
    carried += [combined(w, Y_bar) for w in onward_bar]
    whole = ca.vertcat(end, z[n] + work[0], z[n + 1] + work[1]) if d.stored is not None else end
    names = [f"equation {i} of stage {j + 1}" for j in range(s) for i in p.f + p.c]
    names += [f"equation {i} at node {j + 1} of the constraints" for j in range(s) for i in p.g + p.c]
    return FlatEquations.of(
        x,
        z,
        const,
        residual=ca.densify(ca.vertcat(*rows)),
        end=ca.densify(whole),
        guess=ca.densify(ca.vertcat(ca.SX.zeros(s * nx), *[_rows(z, p.z)] * s, *[_rows(z, p.y)] * (2 * s))),
        kinds=tuple(size for size in sizes if size),
        layout=layout,
        row_names=tuple(names),
        inside=(theta, {name: within[layout[name]] for name in ("x", "y") if name in layout}),
        carried=(ratio, ca.densify(ca.vertcat(*carried))),
        error=filtered_estimate(model, T, [rate(slope) for slope in slopes], beginning, end, h, t, k),
        values=by_stage(
            X=[x0 + h * combined(row, slopes) for row in T.A], slope=slopes, Z=Z if nz else [], Y=Y if ny else []
        ),
    )
