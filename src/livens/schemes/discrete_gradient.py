"""Gonzalez' discrete gradient, safe at every increment (S000 def. 5.1, S004 sect. 4.1 and app. A)."""

from __future__ import annotations

from typing import Any

import casadi as ca

from livens.expressions.graph.increments import increments
from livens.expressions.graph.walk import walk
from livens.models.element import Invariants
from livens.schemes.recipes.elements import ElementEnergies

#: Increments shorter than this part of the position leave the correction out, smoothly: it is below round-off there.
_TINY = 1e-10
_TINY_LENGTH = 1e-12
#: Operations whose second derivative says nothing about what happens at their kinks and jumps.
_KINKED = frozenset(
    "FABS FMIN FMAX IF_ELSE_ZERO SIGN FLOOR CEIL FMOD REMAINDER COPYSIGN LT LE EQ NE NOT AND OR".split()
)


def discrete_gradient(function: ca.Function, x: Any, w: Any, *others: Any) -> Any:
    """``DG f(x, x + w)`` of a scalar function f(x, *others) in its first argument, the others frozen.

    ``DG f = grad f(z) + (f(x+w) - f(x) - grad f(z).w) / |w|^2  w`` with ``z = x + w/2``. For functions at most
    quadratic in x this is the midpoint gradient itself, and nothing else is computed. Otherwise the increment of f is
    computed without cancellation, so the correction has a small relative error however short w is; where it drops
    below round-off (``|w| < 1e-10 |z|``) it is faded out, which keeps value and derivative bounded at ``w = 0``.
    """
    z = x + w / 2
    symbol = ca.SX.sym("x", x.numel())
    rest = [ca.SX.sym("y", o.numel()) for o in map(ca.SX, others)]
    gradient_expression = ca.gradient(function(symbol, *rest), symbol)
    gradient = ca.Function("gradient", [symbol, *rest], [gradient_expression])
    midpoint = gradient(z, *others)
    if not ca.depends_on(ca.jacobian(gradient_expression, symbol), symbol) and not _has_kink(function):
        return midpoint
    support = _moved(gradient_expression, symbol)
    defect = increments(function, x, w, [ca.SX(o) for o in others]) - ca.dot(midpoint, w)
    # only the coordinates f depends on enter the length of w; with them all, directionality would hold as well, but
    # the correction would push coordinates that f knows nothing of
    w = w * support
    square = ca.dot(w, w)
    fade = (_TINY**2 * ca.dot(z * support, z * support) + _TINY_LENGTH**2) ** 2
    return midpoint + defect * square / (square**2 + fade) * w


def _has_kink(function: ca.Function) -> bool:
    """Whether the first argument goes through an operation with a kink or jump."""
    kinks: list[str] = []

    def apply(name: str, *operands: bool) -> bool:
        if name in _KINKED and any(operands):
            kinks.append(name)
        return any(operands)

    inputs = [[i == 0] * function.nnz_in(i) for i in range(function.n_in())]
    walk(function, inputs, lambda _: False, apply)
    return bool(kinks)


def _moved(gradient: Any, symbol: Any) -> Any:
    """1 for the coordinates the function depends on, 0 for the others."""
    return ca.DM([0.0 if ca.simplify(gradient[i]).is_zero() else 1.0 for i in range(symbol.numel())])


def kinetic_gradients(e: ElementEnergies, q0: Any, Dq: Any, v0: Any, Dv: Any) -> tuple[Any, Any]:
    """The partitioned discrete gradients of T(q, v) in q and in v: means over the frozen other argument (129)-(131)."""
    m = e.model
    if "kinetic" in m.through:
        return _through(e, m.through["kinetic"], q0, Dq, v0, Dv)
    T_of_q = ca.Function("T", [m.q, m.v, m.k], [m.T])
    T_of_v = ca.Function("T", [m.v, m.q, m.k], [m.T])
    by_q = [discrete_gradient(T_of_q, q0, Dq, v, e.k) for v in (v0, v0 + Dv)]
    by_v = [discrete_gradient(T_of_v, v0, Dv, q, e.k) for q in (q0, q0 + Dq)]
    return sum(by_q) / 2, sum(by_v) / 2


def gradient_in_time(e: ElementEnergies, f: Any, q0: Any, Dq: Any, t: Any, h: Any) -> tuple[Any, Any]:
    """For f(q, t): its partitioned discrete gradient in q and its increment by time alone.

    ``DG_q f . Dq + D_t f = f(q1, t + h) - f(q0, t)``.
    """
    m = e.model
    if f is m.V and "potential" in m.through:
        none = ca.SX(m.n, 1)
        return _through(e, m.through["potential"], q0, Dq, none, none)[0], ca.SX(0)
    if not ca.depends_on(f, m.t):
        return discrete_gradient(ca.Function("f", [m.q, m.k], [f]), q0, Dq, e.k), ca.SX(0)
    of_q = ca.Function("f", [m.q, m.t, m.k], [f])
    of_t = ca.Function("f", [m.t, m.q, m.k], [f])
    by_q = [discrete_gradient(of_q, q0, Dq, time, e.k) for time in (t, t + h)]
    by_t = [increments(of_t, t, h, [q, e.k]) for q in (q0, q0 + Dq)]
    return sum(by_q) / 2, sum(by_t) / 2


def _through(e: ElementEnergies, given: Invariants, q0: Any, Dq: Any, v0: Any, Dv: Any) -> tuple[Any, Any]:
    """The equivariant discrete gradient of an energy given through invariants (87)-(89).

    ``Dpi(q_m, v_m)^T DG F(pi_0, pi_1)``: as the invariants pi are at most quadratic, ``Dpi(q_m, v_m)`` takes the
    increments of q and v to those of pi exactly.
    """
    m = e.model
    of = ca.Function("of", [m.q, m.v, m.k], [given.of])
    slopes = ca.Function("slopes", [m.q, m.v, m.k], [ca.jacobian(given.of, m.q), ca.jacobian(given.of, m.v)])
    by_q, by_v = slopes(q0 + Dq / 2, v0 + Dv / 2, e.k)
    energy = ca.Function("F", [given.w, m.k], [given.energy])
    F_w = discrete_gradient(energy, of(q0, v0, e.k), by_q @ Dq + by_v @ Dv, e.k)
    return by_q.T @ F_w, by_v.T @ F_w
