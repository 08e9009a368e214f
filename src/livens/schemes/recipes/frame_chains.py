"""Factored tangents ``U H V`` of energies and forces that are functions of invariants.

An element between two bodies has 24 coordinates, while a motor acts on a single angle. The transformation to body
unknowns is applied to the factors U and V instead of a dense 24 x 24 matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import casadi as ca

from livens.models.element import ElementModel, Invariants
from livens.schemes.gradients.equivariant import Equivariant
from livens.schemes.gradients.gonzalez import Gonzalez
from livens.schemes.recipes.elements import ElementEnergies, State


@dataclass(frozen=True)
class Slopes:
    """Derivatives of a kernel's functions; they follow from the functions and are not part of the fingerprint."""

    of: ca.Function


#: Minimum number of invariants for which the factored derivative of an energy is used.
_MANY_INVARIANTS = 1


@dataclass(frozen=True)
class Chain:
    """Derivative of an element's residual with respect to v_m as ``sum U_i H_i V_i + S``.

    `factors` returns U, H and V of each product, then the remainder S.
    """

    of: Slopes

    def __call__(self, *arguments: Any) -> tuple[list[tuple[Any, Any, Any]], Any]:
        """Return the products as (U, H, V) and the remainder S."""
        *found, rest = self.of.of(*arguments)
        return [(found[i], found[i + 1], found[i + 2]) for i in range(0, len(found), 3)], rest


def chained(scheme: Any, model: ElementModel, arguments: list[Any]) -> Chain | None:
    """Return the factored tangent with respect to v_m for energies and forces of invariants; None if there are none."""
    parts, rest, left = list[Any](), ca.SX(model.n, model.n), dict(model.through)
    gradient, potential = getattr(scheme, "gradient", None), left.get("potential")
    gonzalez = isinstance(gradient, Equivariant) and isinstance(gradient.inner, Gonzalez)
    if potential is not None and potential.w.numel() >= _MANY_INVARIANTS and gonzalez:
        found, bent = _of_energy(gradient, left.pop("potential"), model, arguments)
        parts, rest = parts + found, rest + bent
    for role in ("dissipation", "forces"):
        if role in left:
            found, bent = _of_forces(role, left.pop(role), model, arguments)
            parts, rest = parts + found, rest + bent
    if not parts:
        return None
    others = _other_forces(scheme, model, left, arguments)
    outputs = [*parts, rest + others]
    return Chain(Slopes(ca.Function("chain", arguments, [ca.sparsify(part) for part in outputs])))


def _of_energy(gradient: Any, given: Invariants, model: ElementModel, arguments: list[Any]) -> tuple[list[Any], Any]:
    """Return the factors and the geometric stiffness of an energy of invariants.

    Forces are ``D^T f`` with the Jacobian D of the invariants at the midpoint and the discrete gradient f of the energy
    with respect to the invariants. U is ``h D^T``, H the derivative of f with respect to the increment of the
    invariants, V the derivative of this increment with respect to v_m. The remainder is the derivative of D.
    """
    v_m, _, q, h, _, k = arguments
    D = ca.Function("D", [model.q, model.k], [ca.jacobian(given.of, model.q)])
    of, energy = ca.Function("of", [model.q, model.k], [given.of]), ca.Function("F", [given.w, model.k], [given.energy])
    w, f = ca.SX.sym("w", given.w.numel()), ca.SX.sym("f", given.w.numel())
    by_w = gradient.inner(energy, of(q, k), w, k)
    middle, increment = D(q + h / 2 * v_m, k), D(q + h / 2 * v_m, k) @ (h * v_m)
    slope = gradient.inner.derivative(energy, of(q, k), w, k)
    force, H = ca.substitute([by_w, slope], [w], [ca.densify(increment)])
    bent = ca.substitute(ca.jacobian(h * middle.T @ f, v_m), f, ca.densify(force))
    # invariants are quadratic: the derivative of their increment is their Jacobian at t + h
    return [h * middle.T, H, h * D(q + h * v_m, k)], bent


def _of_forces(role: str, given: Invariants, model: ElementModel, arguments: list[Any]) -> tuple[list[Any], Any]:
    """Return the factors and the geometric stiffness of forces ``D^T f(w, D v_m, t)`` at the midpoint.

    For a dissipation function R, f is ``-R_u``. At the midpoint, the derivative of w with respect to v_m is ``h/2 D``;
    as the invariants are quadratic, the derivative of their rate ``D v_m`` is their Jacobian at t + h.
    """
    v_m, _, q, h, t, k = arguments
    law = -ca.gradient(given.energy, given.u) if role == "dissipation" else given.energy
    D = ca.Function("D", [model.q, model.k], [ca.jacobian(given.of, model.q)])
    of = ca.Function("of", [model.q, model.k], [given.of])
    slopes = [law, ca.jacobian(law, given.w), ca.jacobian(law, given.u)]
    at = ca.Function("f", [given.w, given.u, model.t, model.k], slopes)
    q_m, f = q + h / 2 * v_m, ca.SX.sym("f", given.w.numel())
    middle = D(q_m, k)
    force, by_w, by_u = at(of(q_m, k), middle @ v_m, t + h / 2, k)
    bent = ca.substitute(ca.jacobian(-h * middle.T @ f, v_m), f, ca.densify(force))
    return [-h * middle.T, ca.horzcat(h / 2 * by_w, by_u), ca.vertcat(middle, D(q + h * v_m, k))], bent


def _other_forces(scheme: Any, model: ElementModel, through: Any, arguments: list[Any]) -> Any:
    """Return the tangent of the terms without factored form; `through` contains their functions of invariants."""
    v_m, lam, q, h, t, _ = arguments
    gone = model.through.keys() - through.keys()
    V, R = (ca.SX(0) if role in gone else x for role, x in (("potential", model.V), ("dissipation", model.R)))
    F = ca.SX(model.n, 1) if "forces" in gone else model.F
    parts = model.q, model.v, model.t, model.k, model.quaternions
    g = model.g[: model.on_position] if model.on_position else ca.SX(0, 1)
    rest = ElementModel(*parts, ca.SX(0), V, R, F, g, through, model.rates)
    unknown = SimpleNamespace(v_m=v_m, lam=lam)
    share = scheme.share(ElementEnergies(rest), State(q=q, v=v_m, p=v_m), State(q=q + h * v_m), unknown, h, t)
    return ca.jacobian(ca.densify(ca.vertcat(*share.rows)), v_m)
