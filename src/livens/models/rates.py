"""Constraints on velocity level: rolling, knife edges, and couplings of angles that go round and round.

They are affine in the velocities, ``a(q, v, t) = A(q, t) v + b(q, t) = 0``, and their forces are ``-A^T mu``. Where no
b is, they do no work. Most of them cannot be integrated to constraints on positions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca

from livens.errors import ModelError
from livens.expressions.read import ModelFunction, Reader


@dataclass(frozen=True)
class Turning:
    """Constraints on the rates of angles; see `turning`."""

    angles: ModelFunction
    rates: ModelFunction


def turning(angles: ModelFunction, rates: ModelFunction) -> Turning:
    """Constraints on the rates of angles, to be given as `velocity_constraints`.

    ``angles`` is a function of q and k that returns cosine and sine of each angle, at most quadratic in q;
    ``rates`` one of ``w q v t k``, affine in the rates w of the angles and in v. Energy-momentum schemes then hold the
    constraint for the exact increments of the angles, over any number of turns: a pair of gears never loses a tooth.
    """
    return Turning(angles, rates)


@dataclass(frozen=True)
class Rubbing:
    """Constraints on velocity level beside a constraint on positions that rubs.

    ``drag`` is a function of ``q v k`` that returns one number for each coordinate: the force ``-lam dg/dq`` of the
    first constraint on positions comes with ``-lam drag``. What that takes is lost.
    """

    rates: ModelFunction
    drag: ModelFunction


@dataclass(frozen=True, eq=False)
class Angles:
    """Angles by cosines and sines, and constraints in their rates, as expressions."""

    of: Any  # cosine, sine, cosine, ...
    w: Any
    law: Any  # of w, q, v


@dataclass(frozen=True, eq=False)
class Rates:
    """Constraints on velocity level of one type of element, as expressions of q, v, t, k."""

    a: Any
    angles: Angles | None = None
    #: Where the force of the first constraint on positions pushes beside its slope, see `Rubbing`.
    drag: Any = None

    @property
    def count(self) -> int:
        return int(self.a.numel())


def read_rates(read: Reader, given: ModelFunction | Turning | Rubbing, q: Any, v: Any, where: str) -> Rates:
    """What a model function says, a `Turning` or a `Rubbing`."""
    name = "velocity_constraints"
    if isinstance(given, Rubbing):
        held = read_rates(read, given.rates, q, v, where)
        return Rates(held.a, drag=read(f"drag of {name}", given.drag, (q.numel(),), "qvk"))
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
