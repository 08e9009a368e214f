"""Velocity-level constraints: rolling, knife edges, and couplings of unbounded angles.

They are affine in the velocities, ``a(q, v, t) = A(q, t) v + b(q, t) = 0``, and their forces are ``-A^T mu``. They do
no work for b = 0. Most of them are nonholonomic.
"""

from __future__ import annotations

import itertools
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

    ``angles`` is a function of q and k that returns cosine and sine of each angle, at most quadratic in q: a list of
    numbers, or a list of one list per angle. Of three numbers per angle the cosine is the length of the first two.
    ``rates`` is a function of ``w q v t k``, affine in the rates w of the angles and in v. Energy-momentum schemes
    satisfy the constraint for the exact increments of the angles, over any number of revolutions: gears accumulate no
    error.
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

    invariants: Any  # cosine, sine, cosine, ..., with one or two numbers per cosine
    rates: Any
    law: Any  # of w, q, v
    #: Indices of the invariants of each angle.
    indices: tuple[tuple[int, ...], ...]


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
    traced = trace.trace(label, definition.angles, "qk")
    is_nested = isinstance(traced, list) and all(isinstance(entry, list) for entry in traced)
    invariants = trace.as_column(label, [x for entry in traced for x in entry] if is_nested else traced)
    n = invariants.numel()
    sizes = [len(entry) for entry in traced] if is_nested else [2] * (n // 2)
    if not n or sum(sizes) != n or not set(sizes) <= {2, 3}:
        raise ModelError(f"{label}{where} must return cosine and sine of each angle")
    if ca.depends_on(ca.jacobian(ca.jacobian(invariants, q), q), q):
        raise ModelError(f"{label}{where} must be at most quadratic in q")
    ends = list(itertools.accumulate(sizes))
    indices = tuple(tuple(range(end - size, end)) for size, end in zip(sizes, ends, strict=True))
    w = ca.SX.sym("w", len(sizes))
    law = trace.as_column(name, trace.trace(name, definition.rates, "wqvtk", w=w))
    _check_affine(law, ca.vertcat(w, v), where)
    invariant_rates = ca.jtimes(invariants, q, v)
    rates = [_angle_rate([invariants[i] for i in angle], [invariant_rates[i] for i in angle]) for angle in indices]
    return VelocityConstraints(ca.substitute(law, w, ca.vertcat(*rates)), AngleExpressions(invariants, w, law, indices))


def _angle_rate(w: list[Expr], u: list[Expr]) -> Expr:
    """Return the rate of an angle from its invariants and their rates."""
    c, s, c_dot, s_dot = w[0], w[-1], u[0], u[-1]
    if len(w) == 3:
        c = ca.sqrt(w[0] ** 2 + w[1] ** 2)
        c_dot = (w[0] * u[0] + w[1] * u[1]) / c
    return (c * s_dot - s * c_dot) / (c**2 + s**2)


def _check_affine(a: Expr, v: Expr, where: str) -> Expr | None:
    if ca.depends_on(ca.jacobian(a, v), v):
        raise ModelError(f"velocity_constraints{where} must be affine in the velocities")
    return a
