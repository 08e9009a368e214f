"""Penalty contact elements: gaps given as functions of the coordinates, with the common force laws."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import casadi as ca

from livens import math as m
from livens.errors import InputError, suggestion
from livens.expressions.tracing import ModelFunction
from livens.models.element import Element, InvariantForm, of_invariants
from livens.multibody.contacts.dissipation import hunt_crossley_potential, penetration
from livens.multibody.contacts.normal_laws import Hertz, Linear
from livens.multibody.contacts.normal_laws.base import NormalLaw
from livens.types import FloatArray, ScalarLike, Vector
from livens.validation import check_nonnegative, check_positive

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


#: Laws by name; the stiffness is a parameter of the element.
_LAWS: dict[str, NormalLaw] = {"linear": Linear(1.0), "hertz": Hertz()}


class PenaltyContact(Element):
    """Penalty contact with the energy of a normal law for negative gaps (Modin 2009, paper II, 3.1).

    The gaps are a function of k and of invariants w of the coordinates, at most quadratic in q (see `of_invariants`).
    The law is "linear" or "hertz" (two elastic spheres). `dissipation` in s/m is that of Hunt and Crossley.
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
        dissipation: float = 0.0,
        parameters: Mapping[str, FloatArray | float] | None = None,
        name: str = "",
        visual: ModelFunction | None = None,
    ) -> None:
        if law not in _LAWS:
            raise InputError(f"{name or 'a contact'}: unknown law '{law}'{suggestion(law, _LAWS)}")
        check_positive(f"{name or 'a contact'}: the stiffness", stiffness)
        check_nonnegative(f"{name or 'a contact'}: the dissipation", dissipation)
        self.law = _LAWS[law]
        self.invariants, self.gap_function = invariants, gaps
        law_parameters = dict(stiffness=stiffness) | (dict(damping=dissipation) if dissipation else {})
        super().__init__(
            coordinates,
            potential=_penalty_energy(invariants, gaps, self.law),
            dissipation=_penalty_dissipation(invariants, gaps, self.law) if dissipation else None,
            parameters=dict(parameters or {}) | law_parameters,
            name=name,
            visual=visual,
        )

    def extra_fingerprint(self) -> tuple[str, str]:
        return "contact", type(self.law).__name__

    def gaps(self, q: Vector, k: ParameterNamespace) -> list[ScalarLike]:
        """Return the gaps between the surfaces, negative for penetration."""
        return list(self.gap_function(self.invariants(q, k), k))

    def stiffness(self, gap: ScalarLike, k: ParameterNamespace, smooth: float) -> Any:
        """Return the smoothed stiffness of the law (eq. 28)."""
        return self.law.smoothed_stiffness(gap, k, smooth)


@functools.cache
def _penalty_energy(invariants: ModelFunction, gaps: ModelFunction, law: NormalLaw) -> InvariantForm:
    def energy(w: Vector, k: ParameterNamespace) -> Any:
        return sum(law.energy(penetration(gap), k) for gap in gaps(w, k))

    return of_invariants(invariants, energy)


@functools.cache
def _penalty_dissipation(invariants: ModelFunction, gaps: ModelFunction, law: NormalLaw) -> ModelFunction:
    def dissipation(q: Vector, v: Vector, k: ParameterNamespace) -> ScalarLike:
        values = gaps(invariants(q, k), k)
        rates = m.from_casadi(ca.jtimes(m.to_casadi(m.array(values)), m.to_casadi(q), m.to_casadi(v)))
        terms = [
            law.force(penetration(gap), k) * hunt_crossley_potential(k.damping, -rate)
            for gap, rate in zip(values, rates, strict=True)
        ]
        return sum(terms[1:], terms[0])

    return dissipation
