"""Discrete gradient pairs: energy-conserving steps of port-Hamiltonian descriptor systems with any Hamiltonian."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import casadi as ca

from livens.models.port_hamiltonian.structure import PHStructure
from livens.schemes.core.scheme import Scheme
from livens.schemes.core.step_equations import StepEquations
from livens.schemes.discretization.dae_runge_kutta import dae_runge_kutta
from livens.schemes.gradients.correction import GradientFunction, add_correction, directionality_defect
from livens.schemes.runge_kutta.families import Gauss
from livens.types import Expr


class DiscreteGradientPair(Scheme):
    """Midpoint discrete gradient pair for ``E x' + r = (J - R) z + (B - P) u`` (Kinon, Morandin, Schulze 2025)::

        E_m (x1 - x0) + h r_m = h (J_m - R_m) z_d + h (B_m - P_m) u_m           _m: at (x0 + x1)/2, t0 + h/2
        z_d = z_m + (H(x1, t1) - H(x0, t0) - z_m . w) / |w|^2  w                w = E_m (x1 - x0) + h r_m

    The discrete effort satisfies ``z_d . w = H(x1, t1) - H(x0, t0)``. The increment of H is therefore supplied minus
    dissipated energy to round-off, for every H and every step size. For quadratic H and constant E this is `gauss-1`.
    Algebraic variables are those of the implicit midpoint rule.
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

    def unmet_requirements(self, model: Any) -> list[str]:
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
    has_constant_pair = not ca.depends_on(ca.vertcat(ca.vec(s.E), s.r), ca.vertcat(s.x, s.t))
    needs_correction = not (has_constant_pair and GradientFunction(hamiltonian).is_affine)

    def terms(x0: Expr, x_m: Expr, xdot_m: Expr, t: Expr, h: Expr, k: Expr) -> tuple[Expr, Expr, Expr]:
        z_m, flow_m, size = midpoint(x_m, xdot_m, t + h / 2, k)
        z_d = z_m
        if needs_correction:
            w = h * flow_m
            increment = ca.vertcat(h * xdot_m, h)
            # directionality of (grad H, dH/dt) over the step, with z_m . w in place of the midpoint gradient
            zero = ca.SX.zeros(n + 1)
            defect = directionality_defect(hamiltonian, zero, ca.vertcat(x0, t), increment, (k,)) - ca.dot(z_m, w)
            z_d = add_correction(z_m, defect, w, size)
        residual, supplied, dissipated = balance(x_m, xdot_m, z_d, t + h / 2, k)
        return residual, supplied, dissipated

    return terms
