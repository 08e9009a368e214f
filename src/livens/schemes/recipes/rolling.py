"""Discrete velocity-level constraints: enforced for the mean velocity of a step, with workless constraint forces.

Angle couplings are enforced for the increments of the angles. With cosine and sine ``w = (c, s)``, at most
quadratic in q, and ``x = c0 Ds - s0 Dc``, ``y = c0 c1 + s0 s1``::

    Dtheta = atan2(x, y),     D = Dtheta/x (-s_m, c_m),     D . Dw = Dtheta

so ``D`` is a discrete gradient of the angle, and ``Dw(q_m)^T D`` one in q that preserves all symmetries of c and s.
"""

from __future__ import annotations

from typing import Any

import casadi as ca

from livens.models.rates import Angles
from livens.schemes.recipes.elements import ElementEnergies

#: Tangent of the rotation angle of a step below which the series of atan2(x, y)/x is used.
_SHORT = 1e-2


def rolling(e: ElementEnergies, q0: Any, v_m: Any, lam: Any, closed: Any, t: Any, h: Any) -> tuple[Any, Any, Any, Any]:
    """Return forces of the velocity-level constraints, their work, the friction loss, and all constraint residuals.

    `position_residual` is the residual of the constraints on position level.
    """
    first = e.model.on_position
    rows, slopes = held_rates(e, q0, v_m, t, h)
    force = -slopes.T @ lam[first:]
    work = h * ca.dot(force, v_m) if e.model.driven else 0.0
    lost: Any = 0.0
    m, rates = e.model, e.model.rates
    if rates is not None and rates.drag is not None:
        drag = ca.Function("drag", [m.q, m.v, m.k], [rates.drag])(q0 + h / 2 * v_m, v_m, e.k)
        force -= lam[0] * drag
        lost = h * lam[0] * ca.dot(drag, v_m)
    return force, work, lost, ca.vertcat(*([closed[:first]] if first else []), rows)


def held_rates(e: ElementEnergies, q0: Any, v_m: Any, t: Any, h: Any) -> tuple[Any, Any]:
    """Return the velocity-level constraints of an element in a step, and their Jacobian in the mean velocity."""
    model = e.model
    assert model.rates is not None
    q_m, t_m = q0 + h / 2 * v_m, t + h / 2
    if model.rates.angles is None:
        both = ca.Function(
            "rates", [model.q, model.v, model.t, model.k], [model.rates.a, ca.jacobian(model.rates.a, model.v)]
        )
        a, slopes = both(q_m, v_m, t_m, e.k)
        return a, slopes
    angles = model.rates.angles
    turned, directions = _increments(model, angles, q0, v_m, q_m, h, e.k)
    slopes = [ca.jacobian(angles.law, x) for x in (angles.w, model.v)]
    law = ca.Function("law", [angles.w, model.q, model.v, model.t, model.k], [angles.law, *slopes])
    a, by_w, by_v = law(turned, q_m, v_m, t_m, e.k)
    return a, by_w @ directions + by_v


def _increments(model: Any, angles: Angles, q0: Any, v_m: Any, q_m: Any, h: Any, k: Any) -> tuple[Any, Any]:
    """Return ``Dtheta/h`` of every angle, and the discrete gradients of the angles, one row per angle."""
    of = ca.Function("of", [model.q, model.k], [angles.of, ca.jacobian(angles.of, model.q)])
    w0, _ = of(q0, k)
    _, W = of(q_m, k)
    change = W @ v_m
    turned, directions = [], []
    for j in range(angles.w.numel()):
        c, s = 2 * j, 2 * j + 1
        x = w0[c] * change[s] - w0[s] * change[c]  # over h
        w1 = w0 + h * change
        slope = _over(h * x, w0[c] * w1[c] + w0[s] * w1[s])
        turned.append(slope * x)
        mid = (w0 + w1) / 2
        directions.append(slope * (mid[c] * W[s, :] - mid[s] * W[c, :]))
    return ca.vertcat(*turned), ca.vertcat(*directions)


def _over(x: Any, y: Any) -> Any:
    """Return ``atan2(x, y)/x``, by its series where x is small relative to a positive y."""
    short = ca.logic_and(y > 0, ca.fabs(x) < _SHORT * y)
    z = ca.if_else(short, x / ca.if_else(short, y, 1), 0) ** 2
    series = (1 - z * (1 / 3 - z * (1 / 5 - z * (1 / 7 - z * (1 / 9 - z / 11))))) / ca.if_else(short, y, 1)
    safe = ca.if_else(short, 1, x)
    return ca.if_else(short, series, ca.atan2(safe, y) / safe)
