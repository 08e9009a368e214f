"""Contact by penalty: bodies may overlap a little, and a force grows with the depth (S003 paper II, 3.1)."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import casadi as ca

from livens import math as m
from livens.errors import InputError, suggestion
from livens.expressions.numbers import not_negative, positive
from livens.expressions.read import ModelFunction
from livens.models.element import Element, Through, through

#: The force of a contact is ``stiffness * depth**exponent``.
LAWS = {"linear": 1.0, "hertz": 1.5}


class Contact(Element):
    """An element that pushes where a gap is negative, with the energy ``stiffness/(e + 1) depth^(e + 1)``.

    The gaps are a function of invariants w of the coordinates, at most quadratic in q (see `through`), and of k. The
    law is "linear" (e = 1) or "hertz" (e = 3/2, two elastic spheres). With `damping`, a moving contact also feels
    ``damping depth^e`` times the rate of the depth (Hunt and Crossley): it sets in and ends without a jump.
    """

    #: Finding out which surfaces meet is what costs most in models with many contacts (S003 4.1.1).
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
        parameters: Mapping[str, Any] | None = None,
        name: str = "",
        look: ModelFunction | None = None,
    ) -> None:
        if law not in LAWS:
            raise InputError(f"{name or 'a contact'}: unknown law '{law}'{suggestion(law, LAWS)}")
        positive(f"{name or 'a contact'}: the stiffness", stiffness)
        not_negative(f"{name or 'a contact'}: the damping", damping)
        self.exponent = LAWS[law]
        self.invariants, self.gap_function = invariants, gaps
        super().__init__(
            coordinates,
            potential=_energy(invariants, gaps, self.exponent),
            dissipation=_loss(invariants, gaps, self.exponent) if damping else None,
            parameters=dict(parameters or {}) | dict(stiffness=stiffness) | (dict(damping=damping) if damping else {}),
            name=name,
            look=look,
        )

    def more(self) -> Any:
        return "contact", self.exponent

    def gaps(self, q: Any, k: Any) -> list[Any]:
        """The distances between the surfaces, negative where they overlap."""
        return list(self.gap_function(self.invariants(q, k), k))

    def stiffness(self, gap: Any, k: Any, smooth: float) -> Any:
        """How fast the force grows with the depth, made smooth over a length around the first touch.

        The first term of S003 paper II, eq. 28: ``V'' D'^2`` with the smoothed depth D. It is never negative; the whole
        second derivative of the smoothed energy is, just outside of the contact.
        """
        depth = -gap
        slope = smooth_slope(depth, smooth)
        if self.exponent == 1:
            return k.stiffness * slope**2
        above = smooth_above(depth, smooth)
        return self.exponent * k.stiffness * above ** (self.exponent - 1) * slope**2


@functools.cache
def _energy(invariants: ModelFunction, gaps: ModelFunction, e: float) -> Through:
    def energy(w: Any, k: Any) -> Any:
        return k.stiffness / (e + 1) * sum(m.maximum(0, -gap) ** (e + 1) for gap in gaps(w, k))

    return through(invariants, energy)


@functools.cache
def _loss(invariants: ModelFunction, gaps: ModelFunction, e: float) -> ModelFunction:
    def dissipation(q: Any, v: Any, k: Any) -> Any:
        found = gaps(invariants(q, k), k)
        rates = m.symbols(ca.jtimes(m.expression(m.array(found)), m.expression(q), m.expression(v)))
        return k.damping / 2 * sum(m.maximum(0, -gap) ** e * rate**2 for gap, rate in zip(found, rates, strict=True))

    return dissipation


def smooth_depth(depth: Any, c: float) -> Any:
    """``max(0, depth)`` made smooth over the length c: the integral of `smooth_slope` (S003 paper II, eq. 29).

    For the choice of steps only; a force is never made of it.

    >>> round(float(smooth_depth(1.0, 1e-9)), 6), float(smooth_depth(0.0, 0.1))
    (1.0, 0.0)
    """
    s = depth / c
    return c * (s / 2 + (s * m.atan(s) - m.log(1 + s**2) / 2) / m.pi)


def smooth_above(depth: Any, c: float) -> Any:
    """A depth that stays above zero: `smooth_depth` goes on below it, where the root of a Hertz law has no meaning."""
    return (depth + m.sqrt(depth**2 + c**2)) / 2


def smooth_slope(depth: Any, c: float) -> Any:
    """The derivative of `smooth_depth`: from 0 outside of a contact to 1 inside.

    >>> float(smooth_slope(0.0, 0.1))
    0.5
    """
    return 0.5 + m.atan(depth / c) / m.pi
