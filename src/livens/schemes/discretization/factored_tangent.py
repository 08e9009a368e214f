"""Factored tangents ``U H V`` of energies and forces that are functions of invariants.

An element between two bodies has 24 coordinates, while a motor acts on a single angle. The transformation to body
unknowns is applied to the factors U and V instead of a dense 24 x 24 matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import casadi as ca

from livens.models.element import ElementType, InvariantExpressions
from livens.schemes.discretization.element_scheme import ElementFunctions, MechanicalState
from livens.schemes.gradients.equivariant import Equivariant
from livens.schemes.gradients.gonzalez import Gonzalez
from livens.types import Expr

if TYPE_CHECKING:
    from livens.schemes.energy_momentum.livens_em import LivensEM


@dataclass(frozen=True)
class DerivativeFunction:
    """Derivatives of a kernel's functions; they follow from the functions and are not part of the fingerprint."""

    function: ca.Function


#: Minimum number of invariants for which the factored derivative of an energy is used.
_MIN_INVARIANTS = 1


@dataclass(frozen=True)
class FactoredTangent:
    """Derivative of an element's residual with respect to v_m as ``sum U_i H_i V_i + S``.

    `factors` returns U, H and V of each product, then the remainder S.
    """

    factors: DerivativeFunction

    def __call__(self, *arguments: object) -> tuple[list[tuple[Any, Any, Any]], Any]:
        """Return the products as (U, H, V) and the remainder S."""
        *factors, remainder = self.factors.function(*arguments)
        return [(factors[i], factors[i + 1], factors[i + 2]) for i in range(0, len(factors), 3)], remainder


def factored_tangent(scheme: Any, model: ElementType, arguments: list[Any]) -> FactoredTangent | None:
    """Return the factored tangent with respect to v_m for energies and forces of invariants; None if there are none."""
    factors, remainder, remaining = list[Any](), ca.SX(model.n, model.n), dict(model.invariant_forms)
    gradient, potential = getattr(scheme, "gradient", None), remaining.get("potential")
    gonzalez = isinstance(gradient, Equivariant) and isinstance(gradient.inner, Gonzalez)
    if potential is not None and potential.w.numel() >= _MIN_INVARIANTS and gonzalez:
        new_factors, geometric_stiffness = _energy_factors(gradient, remaining.pop("potential"), model, arguments)
        factors, remainder = factors + new_factors, remainder + geometric_stiffness
    for role in ("dissipation", "forces"):
        if role in remaining:
            new_factors, geometric_stiffness = _force_factors(role, remaining.pop(role), model, arguments)
            factors, remainder = factors + new_factors, remainder + geometric_stiffness
    if not factors:
        return None
    unfactored = _remaining_tangent(scheme, model, remaining, arguments)
    outputs = [*factors, remainder + unfactored]
    return FactoredTangent(
        DerivativeFunction(ca.Function("chain", arguments, [ca.sparsify(factor) for factor in outputs]))
    )


def _energy_factors(
    gradient: Any, invariants: InvariantExpressions, model: ElementType, arguments: list[Any]
) -> tuple[list[Any], Any]:
    """Return the factors and the geometric stiffness of an energy of invariants.

    Forces are ``D^T f`` with the Jacobian D of the invariants at the midpoint and the discrete gradient f of the energy
    with respect to the invariants. U is ``h D^T``, H the derivative of f with respect to the increment of the
    invariants, V the derivative of this increment with respect to v_m. The remainder is the derivative of D.
    """
    v_m, _, q, h, _, k = arguments
    D = ca.Function("D", [model.q, model.k], [ca.jacobian(invariants.w_of_q, model.q)])
    w_of, energy = (
        ca.Function("of", [model.q, model.k], [invariants.w_of_q]),
        ca.Function("F", [invariants.w, model.k], [invariants.law]),
    )
    w, f = ca.SX.sym("w", invariants.w.numel()), ca.SX.sym("f", invariants.w.numel())
    dF_dw = gradient.inner(energy, w_of(q, k), w, k)
    middle, increment = D(q + h / 2 * v_m, k), D(q + h / 2 * v_m, k) @ (h * v_m)
    dF_dw_derivative = gradient.inner.derivative(energy, w_of(q, k), w, k)
    force, H = ca.substitute([dF_dw, dF_dw_derivative], [w], [ca.densify(increment)])
    geometric_stiffness = ca.substitute(ca.jacobian(h * middle.T @ f, v_m), f, ca.densify(force))
    # invariants are quadratic: the derivative of their increment is their Jacobian at t + h
    return [h * middle.T, H, h * D(q + h * v_m, k)], geometric_stiffness


def _force_factors(
    role: str, invariants: InvariantExpressions, model: ElementType, arguments: list[Expr]
) -> tuple[list[Expr], Expr]:
    """Return the factors and the geometric stiffness of forces ``D^T f(w, D v_m, t)`` at the midpoint.

    For a dissipation function R, f is ``-R_u``. At the midpoint, the derivative of w with respect to v_m is ``h/2 D``;
    as the invariants are quadratic, the derivative of their rate ``D v_m`` is their Jacobian at t + h.
    """
    v_m, _, q, h, t, k = arguments
    law = -ca.gradient(invariants.law, invariants.w_dot) if role == "dissipation" else invariants.law
    D = ca.Function("D", [model.q, model.k], [ca.jacobian(invariants.w_of_q, model.q)])
    w_of = ca.Function("of", [model.q, model.k], [invariants.w_of_q])
    law_and_derivatives = [law, ca.jacobian(law, invariants.w), ca.jacobian(law, invariants.w_dot)]
    evaluate_law = ca.Function("f", [invariants.w, invariants.w_dot, model.t, model.k], law_and_derivatives)
    q_m, f = q + h / 2 * v_m, ca.SX.sym("f", invariants.w.numel())
    middle = D(q_m, k)
    force, d_dw, d_du = evaluate_law(w_of(q_m, k), middle @ v_m, t + h / 2, k)
    geometric_stiffness = ca.substitute(ca.jacobian(-h * middle.T @ f, v_m), f, ca.densify(force))
    return [-h * middle.T, ca.horzcat(h / 2 * d_dw, d_du), ca.vertcat(middle, D(q + h * v_m, k))], geometric_stiffness


def _remaining_tangent(scheme: LivensEM, model: ElementType, remaining: Any, arguments: list[Any]) -> Expr:
    """Return the tangent of the terms without factored form; `through` contains their functions of invariants."""
    v_m, lam, q, h, t, _ = arguments
    factored_roles = model.invariant_forms.keys() - remaining.keys()
    V, R = (ca.SX(0) if role in factored_roles else x for role, x in (("potential", model.V), ("dissipation", model.R)))
    F = ca.SX(model.n, 1) if "forces" in factored_roles else model.F
    symbols = model.q, model.v, model.t, model.k, model.quaternions
    g = model.g[: model.n_position_constraints] if model.n_position_constraints else ca.SX(0, 1)
    remaining_model = ElementType(*symbols, ca.SX(0), V, R, F, g, remaining, model.velocity_constraints)
    unknown = SimpleNamespace(v_m=v_m, lam=lam)
    contribution = scheme.element_contribution(
        ElementFunctions(remaining_model),
        MechanicalState(q=q, v=v_m, p=v_m),
        MechanicalState(q=q + h * v_m),
        unknown,
        h,
        t,
    )
    return ca.jacobian(ca.densify(ca.vertcat(*contribution.residuals)), v_m)
