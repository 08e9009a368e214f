"""Penalty contact elements: the contact force is a function of the penetration depth (Modin 2009, paper II, 3.1)."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import casadi as ca

from livens import math as m
from livens.errors import InputError, suggestion
from livens.expressions.tracing import ModelFunction
from livens.models.element import Element, InvariantForm, of_invariants
from livens.types import FloatArray, ScalarLike, Vector
from livens.validation import check_nonnegative, check_positive

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


#: Exponent of the contact force ``stiffness * depth**exponent``.
FORCE_EXPONENTS = {"linear": 1.0, "hertz": 1.5}


class PenaltyContact(Element):
    """Penalty contact with the energy ``stiffness/(e + 1) depth^(e + 1)`` for negative gaps.

    The gaps are a function of k and of invariants w of the coordinates, at most quadratic in q (see `of_invariants`).
    The law is "linear" (e = 1) or "hertz" (e = 3/2, two elastic spheres). `damping` adds the Hunt-Crossley force
    ``damping depth^e`` times the time derivative of the depth, which is continuous at contact and separation.
    """

    #: Collision detection dominates the cost of models with many contacts (Modin 2009, 4.1.1).
    expensive = True

    def __init__(
        self,
        coordinates: Sequence[int | str],
        invariants: ModelFunction,
        gaps: ModelFunction,
        *,
        stiffness: float,
        law: str = "linear",
        damping: float = 0.0,
        parameters: Mapping[str, FloatArray | float] | None = None,
        name: str = "",
        visual: ModelFunction | None = None,
    ) -> None:
        if law not in FORCE_EXPONENTS:
            raise InputError(f"{name or 'a contact'}: unknown law '{law}'{suggestion(law, FORCE_EXPONENTS)}")
        check_positive(f"{name or 'a contact'}: the stiffness", stiffness)
        check_nonnegative(f"{name or 'a contact'}: the damping", damping)
        self.exponent = FORCE_EXPONENTS[law]
        self.invariants, self.gap_function = invariants, gaps
        super().__init__(
            coordinates,
            potential=_penalty_energy(invariants, gaps, self.exponent),
            dissipation=_hunt_crossley_dissipation(invariants, gaps, self.exponent) if damping else None,
            parameters=dict(parameters or {}) | dict(stiffness=stiffness) | (dict(damping=damping) if damping else {}),
            name=name,
            visual=visual,
        )

    def extra_fingerprint(self) -> tuple[str, float]:
        return "contact", self.exponent

    def gaps(self, q: Vector, k: ParameterNamespace) -> list[ScalarLike]:
        """Return the gaps between the surfaces, negative for penetration."""
        return list(self.gap_function(self.invariants(q, k), k))

    def stiffness(self, gap: ScalarLike, k: ParameterNamespace, smooth: float) -> Any:
        """Return the derivative of the force with respect to the depth, smoothed over a length around first contact.

        This is the first term of Modin 2009, paper II, eq. 28: ``V'' D'^2`` with the smoothed depth D. It is
        nonnegative; the complete second derivative of the smoothed energy is negative just outside of the contact.
        """
        depth = -gap
        smoothed_step = smoothed_step_function(depth, smooth)
        if self.exponent == 1:
            return k.stiffness * smoothed_step**2
        positive_depth = positive_ramp(depth, smooth)
        return self.exponent * k.stiffness * positive_depth ** (self.exponent - 1) * smoothed_step**2


@functools.cache
def _penalty_energy(invariants: ModelFunction, gaps: ModelFunction, e: float) -> InvariantForm:
    def energy(w: Vector, k: ParameterNamespace) -> Any:
        return k.stiffness / (e + 1) * sum(m.maximum(0, -gap) ** (e + 1) for gap in gaps(w, k))

    return of_invariants(invariants, energy)


@functools.cache
def _hunt_crossley_dissipation(invariants: ModelFunction, gaps: ModelFunction, e: float) -> ModelFunction:
    def dissipation(q: Vector, v: Vector, k: ParameterNamespace) -> ScalarLike:
        gap_values = gaps(invariants(q, k), k)
        rates = m.from_casadi(ca.jtimes(m.to_casadi(m.array(gap_values)), m.to_casadi(q), m.to_casadi(v)))
        return (
            k.damping / 2 * sum(m.maximum(0, -gap) ** e * rate**2 for gap, rate in zip(gap_values, rates, strict=True))
        )

    return dissipation


def smoothed_ramp(depth: float, c: float) -> float:
    """Return the smoothed ramp ``max(0, depth)`` with length c: the integral of `smoothed_step_function`.

    It is Modin 2009, paper II, eq. 29, used for step size selection only, not for forces.
    >>> round(float(smoothed_ramp(1.0, 1e-9)), 6), float(smoothed_ramp(0.0, 0.1))
    (1.0, 0.0)
    """
    s = depth / c
    return c * (s / 2 + (s * m.atan(s) - m.log(1 + s**2) / 2) / m.pi)


def positive_ramp(depth: ScalarLike, c: float) -> ScalarLike:
    """Return a positive smoothing of ``max(0, depth)``, as required by the root of the Hertz law."""
    return (depth + m.sqrt(depth**2 + c**2)) / 2


def smoothed_step_function(depth: ScalarLike, c: float) -> ScalarLike:
    """Return the smoothed step function, the derivative of `smoothed_ramp`: 0 outside of a contact, 1 inside.

    >>> float(smoothed_step_function(0.0, 0.1))
    0.5
    """
    return 0.5 + m.atan(depth / c) / m.pi
