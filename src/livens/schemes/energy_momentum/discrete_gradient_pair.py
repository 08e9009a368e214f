"""Discrete gradient pairs: energy-conserving steps of port-Hamiltonian descriptor systems with any Hamiltonian."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import casadi as ca

from livens.models.disjoint_sets import connected_components
from livens.models.port_hamiltonian.structure import PHStructure
from livens.schemes.core.scheme import Scheme
from livens.schemes.core.step_equations import StepEquations
from livens.schemes.discretization.dae_runge_kutta import dae_runge_kutta
from livens.schemes.gradients.correction import add_correction, directionality_defect, is_nonsmooth
from livens.schemes.runge_kutta.families import Gauss
from livens.types import Expr


class DiscreteGradientPair(Scheme):
    """Midpoint discrete gradient pair for ``E x' + r = (J - R) z + (B - P) u`` (Kinon, Morandin, Schulze 2025)::

        E_m (x1 - x0) + h r_m = h (J_m - R_m) z_d + h (B_m - P_m) u_m           _m: at (x0 + x1)/2, t0 + h/2
        z_d = z_m + (H(x1, t1) - H(x0, t0) - z_m . w) / |w|^2  w                w = E_m (x1 - x0) + h r_m

    The discrete effort satisfies ``z_d . w = H(x1, t1) - H(x0, t0)``. The increment of H is therefore supplied minus
    dissipated energy to round-off, for every H and every step size. For quadratic H and constant E this is `gauss-1`.
    Algebraic variables are those of the implicit midpoint rule.

    If H is a sum of terms with states and flows of their own, as in a network, each term has its own correction, and
    quadratic terms have none: the equations of a step are as sparse as those of `gauss-1`.
    """

    name = "discrete-gradient-pair"
    group = "Energy-momentum and midpoint schemes"
    formulations = ("port-hamiltonian",)
    order = 2
    symplectic, symmetric = False, True
    conserves = ("hamiltonian",)
    summary = "discrete gradients for port-Hamiltonian descriptor systems: exact energy balance for any Hamiltonian"
    source = "Kinon, Morandin and Schulze 2025; Gonzalez 1996"
    when_to_use = "The energy balance has to be exact for a Hamiltonian that is not quadratic."
    when_to_avoid = "Order above 2 without compositions: use `gauss-<s>`, which conserves quadratic Hamiltonians."

    def __init__(self) -> None:
        self._midpoint = Gauss(1)
        self.error_order = self._midpoint.error_order

    def unmet_requirements(self, model: object) -> list[str]:
        return super().unmet_requirements(model) or self._midpoint.unmet_requirements(model)

    def equations(self, model: Any, removed_constraints: Collection[int] = ()) -> StepEquations:
        reduced = model.without_constraints(removed_constraints)
        return dae_runge_kutta(reduced, self._midpoint.tableau, stage_terms=discrete_effort_terms(model))


def discrete_effort_terms(model: Any) -> Callable[..., tuple[Expr, Expr, Expr]]:
    """Return the stage function of the scheme: residual, supplied power and dissipated power with the discrete effort.

    Its arguments are ``x0, x_m, x'_m, t, h, k`` with ``x_m = x0 + h/2 x'_m``.
    """
    s: PHStructure = model.structure
    u = model.descriptor.u
    xdot, effort, n = ca.SX.sym("xdot", model.n), ca.SX.sym("effort", model.n), model.n
    flow = s.E @ xdot + s.r
    extended_effort = ca.vertcat(effort, u)
    output = (s.B + s.P).T @ effort + (s.S - s.N) @ u
    balance = ca.Function(
        "balance",
        [s.x, xdot, effort, s.t, s.k],
        [
            flow - (s.J - s.R) @ effort - (s.B - s.P) @ u,
            ca.dot(output, u),
            ca.bilin(s.W, extended_effort, extended_effort),
        ],
    )
    midpoint = ca.Function("midpoint", [s.x, xdot, s.t, s.k], [s.z, flow, s.E @ s.x])
    # H as a function of (x, t): its increment includes that of a time-dependent Hamiltonian
    x_and_t = ca.SX.sym("x_and_t", n + 1)
    energy = ca.Function("H", [s.x, s.t, s.k], [s.H])
    hamiltonian = ca.Function("H", [x_and_t, s.k], [energy(x_and_t[:n], x_and_t[n], s.k)])
    corrected = [block for block in _storage_blocks(s, hamiltonian) if not block.is_exact_at_midpoint]

    def terms(x0: Expr, x_m: Expr, xdot_m: Expr, t: Expr, h: Expr, k: Expr) -> tuple[Expr, Expr, Expr]:
        z_m, flow_m, size = midpoint(x_m, xdot_m, t + h / 2, k)
        z_d = z_m
        for block in corrected:
            rows, w = list(block.rows), h * flow_m[list(block.rows)]
            increment = ca.SX.zeros(n + 1)
            increment[list(block.states)] = h * xdot_m[list(block.states)]
            increment[n] = h if block.includes_time else 0
            # directionality of (grad H, dH/dt) over the step, with z_m . w in place of the midpoint gradient
            zero = ca.SX.zeros(n + 1)
            defect = directionality_defect(hamiltonian, zero, ca.vertcat(x0, t), increment, (k,))
            z_d = ca.SX(z_d)
            z_d[rows] = add_correction(z_m[rows], defect - ca.dot(z_m[rows], w), w, size[rows])
        residual, supplied, dissipated = balance(x_m, xdot_m, z_d, t + h / 2, k)
        return residual, supplied, dissipated

    return terms


@dataclass(frozen=True)
class StorageBlock:
    """Term of the Hamiltonian with states and flow equations of its own."""

    states: tuple[int, ...]
    rows: tuple[int, ...]
    includes_time: bool
    #: The effort at the midpoint is a discrete gradient of the term: it is quadratic, with constant rows of E.
    is_exact_at_midpoint: bool


def _storage_blocks(s: PHStructure, hamiltonian: ca.Function) -> list[StorageBlock]:
    """Return the terms of H that share neither states nor rows of E; one term if H depends on time or has kinks."""
    n, x_and_t = s.x.numel(), ca.vertcat(s.x, s.t)
    depends_on_time = bool(ca.depends_on(s.H, s.t) or ca.sparsify(s.r).nnz() or ca.depends_on(s.E, s.t))
    hessian, gradient = ca.hessian(s.H, s.x)
    if not depends_on_time and not is_nonsmooth(hamiltonian):
        # states i, rows n + a: coupled by second derivatives of H, by E, and by states that E depends on
        pairs = [(int(i), int(j)) for i, j in zip(*hessian.sparsity().get_triplet(), strict=True)]
        E = ca.sparsify(s.E)
        for a, i in zip(*E.sparsity().get_triplet(), strict=True):
            used = ca.which_depends(E[a, i], s.x, 1, False)
            pairs += [(n + int(a), int(i)), *((n + int(a), j) for j in range(n) if used[j])]
        columns = connected_components(pairs, 2 * n)
    else:
        columns = [list(range(2 * n))]
    blocks = []
    for members in columns:
        states, rows = tuple(i for i in members if i < n), tuple(i - n for i in members if i >= n)
        if not states or not rows:
            continue
        flow_is_constant = not ca.depends_on(ca.vertcat(ca.vec(s.E[list(rows), :]), s.r[list(rows)]), x_and_t)
        is_affine = not ca.depends_on(ca.jacobian(gradient[list(states)], s.x), s.x) and not is_nonsmooth(hamiltonian)
        blocks.append(
            StorageBlock(states, rows, depends_on_time, flow_is_constant and is_affine and not depends_on_time)
        )
    return blocks
