"""Discrete velocity-level constraints: enforced for the mean velocity of a step, with workless constraint forces.

Angle couplings are enforced for the increments of the angles. With cosine and sine ``w = (c, s)``, at most
quadratic in q, and ``x = c0 Ds - s0 Dc``, ``y = c0 c1 + s0 s1``::

    Dtheta = atan2(x, y),     D = Dtheta/x (-s_m, c_m),     D . Dw = Dtheta

so ``D`` is a discrete gradient of the angle, and ``Dw(q_m)^T D`` one in q that preserves all symmetries of c and s.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import casadi as ca

from livens.models.velocity_constraints import AngleExpressions
from livens.schemes.discretization.element_scheme import ElementFunctions
from livens.types import Expr

if TYPE_CHECKING:
    from livens.models.element import ElementType


#: Tangent of the rotation angle of a step below which the series of atan2(x, y)/x is used.
_SERIES_THRESHOLD = 1e-2


def velocity_constraint_forces(
    e: ElementFunctions, q0: Expr, v_m: Expr, lam: Expr, position_residual: Expr, t: Expr, h: Expr
) -> tuple[Any, Any, Any, Any]:
    """Return forces of the velocity-level constraints, their work, the friction loss, and all constraint residuals.

    `position_residual` is the residual of the constraints on position level.
    """
    n_position = e.model.n_position_constraints
    residual, jacobian = velocity_constraint_residual(e, q0, v_m, t, h)
    force = -jacobian.T @ lam[n_position:]
    work = h * ca.dot(force, v_m) if e.model.is_driven else 0.0
    friction_loss: Any = 0.0
    m, rates = e.model, e.model.velocity_constraints
    if rates is not None and rates.friction_direction is not None:
        drag = ca.Function("drag", [m.q, m.v, m.k], [rates.friction_direction])(q0 + h / 2 * v_m, v_m, e.k)
        force -= lam[0] * drag
        friction_loss = h * lam[0] * ca.dot(drag, v_m)
    return force, work, friction_loss, ca.vertcat(*([position_residual[:n_position]] if n_position else []), residual)


def velocity_constraint_residual(e: ElementFunctions, q0: Expr, v_m: Expr, t: Expr, h: Expr) -> tuple[Expr, Expr]:
    """Return the velocity-level constraints of an element in a step, and their Jacobian in the mean velocity."""
    model = e.model
    assert model.velocity_constraints is not None
    q_m, t_m = q0 + h / 2 * v_m, t + h / 2
    if model.velocity_constraints.angles is None:
        rates_and_jacobian = ca.Function(
            "rates",
            [model.q, model.v, model.t, model.k],
            [model.velocity_constraints.a, ca.jacobian(model.velocity_constraints.a, model.v)],
        )
        a, jacobian = rates_and_jacobian(q_m, v_m, t_m, e.k)
        return a, jacobian
    angles = model.velocity_constraints.angles
    angle_rates, angle_gradients = _angle_increments(model, angles, q0, v_m, q_m, h, e.k)
    law_jacobians = [ca.jacobian(angles.law, x) for x in (angles.rates, model.v)]
    law = ca.Function("law", [angles.rates, model.q, model.v, model.t, model.k], [angles.law, *law_jacobians])
    a, d_dw, d_dv = law(angle_rates, q_m, v_m, t_m, e.k)
    return a, d_dw @ angle_gradients + d_dv


def _angle_increments(
    model: ElementType, angles: AngleExpressions, q0: Expr, v_m: Expr, q_m: Expr, h: Expr, k: Expr
) -> tuple[Expr, Expr]:
    """Return ``Dtheta/h`` of every angle, and the discrete gradients of the angles, one row per angle."""
    of_q = [angles.invariants, ca.jacobian(angles.invariants, model.q)]
    w_and_jacobian = ca.Function("of", [model.q, model.k], of_q)
    w0, _ = w_and_jacobian(q0, k)
    _, W = w_and_jacobian(q_m, k)
    w_dot = W @ v_m
    angle_rates, angle_gradients = [], []
    w1 = w0 + h * w_dot
    mid = (w0 + w1) / 2
    for *cosine, s in angles.indices:
        c = cosine[0]
        c0, c1, c_dot, c_mid, c_gradient = w0[c], w1[c], w_dot[c], mid[c], W[c, :]
        if len(cosine) == 2:  # c is a length: Dc = 2 (sum w_m Dw)/(c0 + c1) is exact
            c0, c1 = (ca.sqrt(w[c] ** 2 + w[c + 1] ** 2) for w in (w0, w1))
            c_dot, c_mid = 2 * (mid[c] * w_dot[c] + mid[c + 1] * w_dot[c + 1]) / (c0 + c1), (c0 + c1) / 2
            c_gradient = 2 * (mid[c] * W[c, :] + mid[c + 1] * W[c + 1, :]) / (c0 + c1)
        x = c0 * w_dot[s] - w0[s] * c_dot  # over h
        factor = _atan2_over_x(h * x, c0 * c1 + w0[s] * w1[s])
        angle_rates.append(factor * x)
        angle_gradients.append(factor * (c_mid * W[s, :] - mid[s] * c_gradient))
    return ca.vertcat(*angle_rates), ca.vertcat(*angle_gradients)


def _atan2_over_x(x: Expr, y: Expr) -> Expr:
    """Return ``atan2(x, y)/x``, by its series where x is small relative to a positive y."""
    is_small = ca.logic_and(y > 0, ca.fabs(x) < _SERIES_THRESHOLD * y)
    z = ca.if_else(is_small, x / ca.if_else(is_small, y, 1), 0) ** 2
    series = (1 - z * (1 / 3 - z * (1 / 5 - z * (1 / 7 - z * (1 / 9 - z / 11))))) / ca.if_else(is_small, y, 1)
    safe = ca.if_else(is_small, 1, x)
    return ca.if_else(is_small, series, ca.atan2(safe, y) / safe)
