"""Velocity-level constraints: rolling, knife edges, and couplings of unbounded angles.

They are affine in the velocities, ``a(q, v, t) = A(q, t) v + b(q, t) = 0``, and their forces are ``-A^T mu``. They do
no work for b = 0. Most of them are nonholonomic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca

from livens.errors import ModelError
from livens.expressions.read import ModelFunction, Reader


@dataclass(frozen=True)
class Turning:
    """Constraints on angular rates; see `angle_rate_constraint`."""

    angles: ModelFunction
    rates: ModelFunction


def turning(angles: ModelFunction, rates: ModelFunction) -> Turning:
    """Return constraints on the rates of angles, an argument for `velocity_constraints`.

    ``angles`` is a function of q and k that returns cosine and sine of each angle, at most quadratic in q. ``rates`` is
    a function of ``w q v t k``, affine in the rates w of the angles and in v. Energy-momentum schemes satisfy the
    constraint for the exact increments of the angles, over any number of revolutions: gears accumulate no error.
    """
    return Turning(angles, rates)


@dataclass(frozen=True)
class Rubbing:
    """Velocity-level constraints together with friction of a position constraint.

    ``friction_direction`` is a function of ``q v k`` that returns one value per coordinate. The force ``-lam dg/dq`` of
    the first position constraint is accompanied by the dissipative force ``-lam friction_direction``.
    """

    rates: ModelFunction
    drag: ModelFunction


@dataclass(frozen=True, eq=False)
class Angles:
    """Angles given by cosines and sines, and constraints on their rates, as expressions."""

    of: Any  # cosine, sine, cosine, ...
    w: Any
    law: Any  # of w, q, v


@dataclass(frozen=True, eq=False)
class Rates:
    """Velocity-level constraints of one element type, as expressions of q, v, t, k."""

    a: Any
    angles: Angles | None = None
    #: Direction of the friction force of the first position constraint, see `FrictionalConstraint`.
    drag: Any = None

    @property
    def count(self) -> int:
        return int(self.a.numel())


def read_rates(read: Reader, given: ModelFunction | Turning | Rubbing, q: Any, v: Any, where: str) -> Rates:
    """Trace velocity constraints given by a model function, angle rates or a frictional constraint."""
    name = "velocity_constraints"
    if isinstance(given, Rubbing):
        held = read_rates(read, given.rates, q, v, where)
        return Rates(held.a, drag=read(f"friction direction of {name}", given.drag, (q.numel(),), "qvk"))
    if not isinstance(given, Turning):
        a = read.listed(name, read.value(name, given, "qvtk"))
        return Rates(_affine(a, v, where))
    what = f"angles of {name}"
    of = read.listed(what, read.value(what, given.angles, "qk"))
    if not of.numel() or of.numel() % 2:
        raise ModelError(f"{what}{where} must return cosine and sine of each angle")
    if ca.depends_on(ca.jacobian(ca.jacobian(of, q), q), q):
        raise ModelError(f"{what}{where} must be at most quadratic in q")
    w = ca.SX.sym("w", of.numel() // 2)
    law = read.listed(name, read.value(name, given.rates, "wqvtk", w=w))
    _affine(law, ca.vertcat(w, v), where)
    change = ca.jtimes(of, q, v)
    rates = [
        (of[2 * j] * change[2 * j + 1] - of[2 * j + 1] * change[2 * j]) / (of[2 * j] ** 2 + of[2 * j + 1] ** 2)
        for j in range(w.numel())
    ]
    return Rates(ca.substitute(law, w, ca.vertcat(*rates)), Angles(of, w, law))


def _affine(a: Any, v: Any, where: str) -> Any:
    if ca.depends_on(ca.jacobian(a, v), v):
        raise ModelError(f"velocity_constraints{where} must be affine in the velocities")
    return a
