"""Isotropic torsion springs and dampers of spherical joints, acting on the total rotation angle."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

from livens import math as m
from livens.expressions.tracing import ModelFunction
from livens.models.element import InvariantForm, of_invariants
from livens.multibody.joint_forces import angular_velocity
from livens.multibody.joint_types import split_pair
from livens.multibody.parametrisation import Parametrisation
from livens.types import FloatArray, ScalarLike, Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


#: Upper bound of ``x = sin(angle/2)^2`` for the series of the squared angle, and its number of terms (to round-off).
_SERIES, _TERMS = 0.25, 26
_UNITS = ([1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0])


@functools.cache
def spring(a: Parametrisation, b: Parametrisation) -> InvariantForm:
    """Return the potential ``stiffness/2 angle^2`` as a function of the trace of the relative rotation (bilinear)."""

    def invariants(q: Vector, k: ParameterNamespace) -> list[ScalarLike]:
        qa, qb = split_pair(a, q)
        pairs = [(a.vector(qa, k.A[:, i]), b.vector(qb, k.B[:, i])) for i in range(3)]
        return [sum(m.dot(x, y) for x, y in pairs)]

    return of_invariants(invariants, lambda w, k: 0.5 * k.stiffness * squared_angle((3 - w[0]) / 4))


def squared_angle(x: ScalarLike) -> FloatArray | ScalarLike:
    """Return ``(2 asin(sqrt(x)))^2``, smooth at zero: ``sum 2 (4 x)^n/(n^2 binomial(2 n, n))``."""
    small = x < _SERIES
    near = m.where(small, x, 0.0)
    series = 0.0
    for n in reversed(range(1, _TERMS)):
        series = 4 * near * (2 / (n**2 * math.comb(2 * n, n)) + series)
    far = m.where(small, 0.5, x)
    root = m.sqrt(far)
    return m.where(small, series, 4 * m.atan2(root, m.sqrt(1 - far)) ** 2)


@functools.cache
def damper(a: Parametrisation, b: Parametrisation) -> ModelFunction:
    """Return the Rayleigh function ``damping/2 |omega_b - omega_a|^2``."""

    def dissipation(q: Vector, v: Vector, k: ParameterNamespace) -> ScalarLike:
        (qa, qb), (va, vb) = split_pair(a, q), split_pair(a, v)
        rate = angular_velocity(b, qb, vb) - angular_velocity(a, qa, va)
        return 0.5 * k.viscosity * m.dot(rate, rate)

    return dissipation
