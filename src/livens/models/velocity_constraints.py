"""Velocity-level constraints: rolling, knife edges, and couplings of unbounded angles.

They are affine in the velocities, ``a(q, v, t) = A(q, t) v + b(q, t) = 0``, and their forces are ``-A^T mu``. They do
no work for b = 0. Most of them are nonholonomic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca

from livens.errors import ModelError
from livens.expressions.tracing import FunctionTracer, ModelFunction
from livens.types import Expr


@dataclass(frozen=True)
class AngleRateConstraint:
    """Constraints on angular rates; see `angle_rate_constraint`."""

    angles: ModelFunction
    rates: ModelFunction


def angle_rate_constraint(angles: ModelFunction, rates: ModelFunction) -> AngleRateConstraint:
    """Return constraints on the rates of angles, an argument for `velocity_constraints`.

    ``angles`` is a function of q and k that returns cosine and sine of each angle, at most quadratic in q. ``rates`` is
    a function of ``w q v t k``, affine in the rates w of the angles and in v. Energy-momentum schemes satisfy the
    constraint for the exact increments of the angles, over any number of revolutions: gears accumulate no error.
    """
    return AngleRateConstraint(angles, rates)


@dataclass(frozen=True)
class FrictionalConstraint:
    """Velocity-level constraints together with friction of a position constraint.

    ``friction_direction`` is a function of ``q v k`` that returns one value per coordinate. The force ``-lam dg/dq`` of
    the first position constraint is accompanied by the dissipative force ``-lam friction_direction``.
    """

    velocity_constraints: ModelFunction
    friction_direction: ModelFunction


@dataclass(frozen=True, eq=False)
class AngleExpressions:
    """Angles given by cosines and sines, and constraints on their rates, as expressions."""

    cos_sin: Any  # cosine, sine, cosine, ...
    rates: Any
    law: Any  # of w, q, v


@dataclass(frozen=True, eq=False)
class VelocityConstraints:
    """Velocity-level constraints of one element type, as expressions of q, v, t, k."""

    a: Any
    angles: AngleExpressions | None = None
    #: Direction of the friction force of the first position constraint, see `FrictionalConstraint`.
    friction_direction: Any = None

    @property
    def count(self) -> int:
        return int(self.a.numel())


def trace_velocity_constraints(
    trace: FunctionTracer,
    definition: ModelFunction | AngleRateConstraint | FrictionalConstraint,
    q: Expr,
    v: Expr,
    where: str,
) -> VelocityConstraints:
    """Trace velocity constraints given by a model function, angle rates or a frictional constraint."""
    name = "velocity_constraints"
    if isinstance(definition, FrictionalConstraint):
        constraints = trace_velocity_constraints(trace, definition.velocity_constraints, q, v, where)
        return VelocityConstraints(
            constraints.a,
            friction_direction=trace(
                f"friction direction of {name}", definition.friction_direction, (q.numel(),), "qvk"
            ),
        )
    if not isinstance(definition, AngleRateConstraint):
        a = trace.as_column(name, trace.trace(name, definition, "qvtk"))
        return VelocityConstraints(_check_affine(a, v, where))
    label = f"angles of {name}"
    cos_sin = trace.as_column(label, trace.trace(label, definition.angles, "qk"))
    if not cos_sin.numel() or cos_sin.numel() % 2:
        raise ModelError(f"{label}{where} must return cosine and sine of each angle")
    if ca.depends_on(ca.jacobian(ca.jacobian(cos_sin, q), q), q):
        raise ModelError(f"{label}{where} must be at most quadratic in q")
    w = ca.SX.sym("w", cos_sin.numel() // 2)
    law = trace.as_column(name, trace.trace(name, definition.rates, "wqvtk", w=w))
    _check_affine(law, ca.vertcat(w, v), where)
    cos_sin_dot = ca.jtimes(cos_sin, q, v)
    rates = [
        (cos_sin[2 * j] * cos_sin_dot[2 * j + 1] - cos_sin[2 * j + 1] * cos_sin_dot[2 * j])
        / (cos_sin[2 * j] ** 2 + cos_sin[2 * j + 1] ** 2)
        for j in range(w.numel())
    ]
    return VelocityConstraints(ca.substitute(law, w, ca.vertcat(*rates)), AngleExpressions(cos_sin, w, law))


def _check_affine(a: Expr, v: Expr, where: str) -> Expr | None:
    if ca.depends_on(ca.jacobian(a, v), v):
        raise ModelError(f"velocity_constraints{where} must be affine in the velocities")
    return a
