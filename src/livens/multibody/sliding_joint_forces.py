"""Springs and dampers along the axis of a sliding joint."""

from __future__ import annotations

import functools

from livens.models.element import InvariantForm, of_invariants
from livens.multibody.joint_forces import joint_invariants
from livens.multibody.parametrisation import Parametrisation


@functools.cache
def spring(a: Parametrisation, b: Parametrisation) -> InvariantForm:
    """Return the potential ``stiffness/2 (displacement - rest)^2``; the displacement is quadratic in directors."""
    return of_invariants(joint_invariants(a, b, False), lambda w, k: 0.5 * k.stiffness * (w[0] - k.rest) ** 2)


@functools.cache
def damper(a: Parametrisation, b: Parametrisation) -> InvariantForm:
    """Return the Rayleigh function ``damping/2 velocity^2``."""
    return of_invariants(joint_invariants(a, b, False), lambda u, k: 0.5 * k.viscosity * u[0] ** 2)
