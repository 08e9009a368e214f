"""Compliant contact of two shapes as elements of a system: contact potential and dissipative forces."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from livens.errors import InputError, explain_call_errors, suggestion
from livens.expressions.parameters import TiedParameter, shared
from livens.expressions.tracing import ModelFunction
from livens.models.element import Element, InvariantForm, of_invariants
from livens.multibody.body import Body
from livens.multibody.contacts import dissipation as resisting
from livens.multibody.contacts.dissipation import Friction
from livens.multibody.contacts.geometry.pair_geometry import PairGeometry
from livens.multibody.contacts.narrow_phase import ContactPoint, contact_points
from livens.multibody.contacts.normal_laws import Hertz, Linear
from livens.multibody.contacts.normal_laws.base import NormalLaw
from livens.multibody.contacts.shapes import CollisionShape
from livens.multibody.contacts.visuals import static_visual
from livens.multibody.parametrisation import DirectorParametrisation, GroundParametrisation, Parametrisation
from livens.types import FloatArray, ScalarLike, Vector
from livens.validation import check_nonnegative, check_positive

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


#: Laws by name for `gap_contact`; the stiffness is a parameter of the element.
_UNIT_LAWS: dict[str, NormalLaw] = {"linear": Linear(1.0), "hertz": Hertz(1.0)}
#: Largest initial penetration depth, relative to the characteristic size of the smaller shape.
MAX_INITIAL_PENETRATION = 0.2


class ContactElement(Element):
    """Element of a compliant contact."""

    def __init__(self, *arguments: Any, expensive: bool = True, **functions: Any) -> None:
        super().__init__(*arguments, **functions)
        #: Contact detection is the most expensive part of models with many contacts (Modin 2009, 4.1.1).
        self.expensive = expensive


class NormalForceElement(ContactElement):
    """Normal-force element of one or several gaps; its stiffness can control the step size (Modin 2009, paper II)."""

    def __init__(
        self,
        *arguments: Any,
        law: NormalLaw,
        gap_function: ModelFunction,
        law_fingerprint: tuple[str, ...] = (),
        **functions: Any,
    ) -> None:
        self.law, self._gap_function, self._law_fingerprint = law, gap_function, law_fingerprint
        super().__init__(*arguments, **functions)

    def extra_fingerprint(self) -> tuple[str, ...] | None:
        return self._law_fingerprint or None

    def gaps(self, q: Vector, k: ParameterNamespace) -> list[ScalarLike]:
        """Return the gaps between the surfaces, negative in penetration."""
        return list(self._gap_function(q, k))

    def stiffness(self, gap: ScalarLike, k: ParameterNamespace, smoothing_length: float) -> Any:
        """Return the contact stiffness, the derivative of the force by the depth, smoothed around zero (eq. 28)."""
        return self.law.smoothed_stiffness(gap, k, smoothing_length)


@functools.cache
def contact_potential(invariants: ModelFunction, gaps: ModelFunction, law: NormalLaw) -> InvariantForm:
    """Return the contact potential, the sum over gaps that are functions of invariants."""

    def energy(w: Vector, k: ParameterNamespace) -> Any:
        return sum(law.energy(resisting.penetration(gap), k) for gap in gaps(w, k))

    return of_invariants(invariants, energy)


@functools.cache
def _pair_functions(
    geometry: PairGeometry, a: Parametrisation, b: Parametrisation
) -> tuple[ModelFunction, ModelFunction, ModelFunction]:
    """Return the invariants of a pair, its gap as a function of them, and its gap as a function of the coordinates."""
    return (
        lambda q, k: list(geometry.invariants(a, b, q, k)),
        lambda w, k: [geometry.gap(w, k)],
        lambda q, k: [geometry.gap_at(a, b, q, k)],
    )


@functools.cache
def _gaps_at(invariants: ModelFunction, gaps: ModelFunction) -> ModelFunction:
    return lambda q, k: gaps(invariants(q, k), k)


def gap_contact(
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
) -> NormalForceElement:
    """Return a compliant contact whose gaps are functions of k and of invariants of the coordinates.

    The invariants are at most quadratic in q, see `of_invariants`. The law is "linear" or "hertz", with the stiffness
    in N/m or N/m^1.5; the dissipation in s/m is that of Hunt and Crossley.
    """
    label = name or "a contact"
    if law not in _UNIT_LAWS:
        raise InputError(f"{label}: unknown law '{law}'{suggestion(law, _UNIT_LAWS)}")
    normal_law = _UNIT_LAWS[law]
    law_parameters = dict(stiffness=check_positive(f"{label}: the stiffness", stiffness))
    if check_nonnegative(f"{label}: the dissipation", dissipation):
        law_parameters["damping"] = float(dissipation)
    gap_function = _gaps_at(invariants, gaps)
    return NormalForceElement(
        coordinates,
        potential=contact_potential(invariants, gaps, normal_law),
        dissipation=resisting.damping_of_gaps(gap_function, normal_law) if dissipation else None,
        parameters=dict(parameters or {}) | law_parameters,
        name=name,
        visual=visual,
        law=normal_law,
        gap_function=gap_function,
        law_fingerprint=("contact", type(normal_law).__name__),
    )


@dataclass(frozen=True)
class ContactPointElements:
    """Contact point with its law parameters and elements."""

    contact_point: ContactPoint
    parameters: Mapping[str, Any]
    elements: tuple[ContactElement, ...]

    @property
    def parametrisations(self) -> tuple[Parametrisation, Parametrisation]:
        return self.contact_point.body_a.parametrisation, self.contact_point.body_b.parametrisation

    @property
    def coordinates(self) -> tuple[Any, ...]:
        return (*self.contact_point.body_a.coordinates, *self.contact_point.body_b.coordinates)


@explain_call_errors
class PairContact:
    """Compliant contact of two shapes, created by `Multibody.contact`.

    Its elements are called ``name`` (contact potential), ``name damping``, ``name sliding``, ``name pivoting`` and
    ``name rolling``; ``run.observe(..., by="element")`` returns the energy of each.

    Parameters
    ----------
    name : str
        Name of the contact.
    shape_a, shape_b : CollisionShape
        Shapes of two different bodies, or of a body and the ground.
    law : NormalLaw
        Normal force as a function of the penetration depth.
    dissipation : float, default 0
        Hunt-Crossley dissipation in s/m.
    friction : Friction, optional
        Friction parameters.
    expensive : bool, default True
        Whether IMEX schemes treat the contact as an expensive force: explicitly, evaluated once per step.

    Raises
    ------
    InputError
        If both shapes belong to the same body or to the ground, or the pair of shapes is not supported.
    """

    def __init__(
        self,
        name: str,
        shape_a: CollisionShape,
        shape_b: CollisionShape,
        law: NormalLaw,
        dissipation: float = 0.0,
        friction: Friction | None = None,
        expensive: bool = True,
    ) -> None:
        if shape_a.body is shape_b.body or (shape_a.body.element is None and shape_b.body.element is None):
            raise InputError(f"{name}: a contact needs two different bodies, or a body and the ground")
        self.name, self.shape_a, self.shape_b = name, shape_a, shape_b
        self.law, self.dissipation, self.friction, self.expensive = law, dissipation, friction, expensive
        self._law_parameters: dict[str, Any] = law.parameters(name, shape_a, shape_b)
        self._parameter_owner: ContactElement | None = None
        self._dissipation_owner: dict[str, TiedParameter] = {}  # owner element of each dissipation parameter
        self.points = [self._build_point(contact_point) for contact_point in contact_points(name, shape_a, shape_b)]

    @property
    def elements(self) -> Iterator[ContactElement]:
        """Elements of all contact points.

        Yields
        ------
        ContactElement
            Contact potential and dissipative elements.
        """
        for point in self.points:
            yield from point.elements

    def _build_point(self, contact_point: ContactPoint) -> ContactPointElements:
        """Build the elements of one contact point; common parameters belong to the first element and are shared:
        sizes within a contact point, law and dissipation parameters within the contact."""
        law, law_parameters, f = self.law, self._law_parameters, self.friction
        if self._parameter_owner is not None:
            law_parameters = {name: shared(self._parameter_owner, name) for name in law_parameters}
        a, b = (
            _contact_body(contact_point.body_a, contact_point.uses_rotation_a),
            _contact_body(contact_point.body_b, contact_point.uses_rotation_b),
        )
        visual = None if self._parameter_owner is not None else static_visual(self.shape_a, self.shape_b)
        invariants, gaps, gap_function = _pair_functions(contact_point.geometry, a[0], b[0])
        normal_element = NormalForceElement(
            [*a[1], *b[1]],
            parameters={**contact_point.parameters, **law_parameters},
            constants=contact_point.constants,
            name=self.name,
            expensive=self.expensive,
            potential=contact_potential(invariants, gaps, law),
            visual=visual,
            law=law,
            gap_function=gap_function,
        )
        self._parameter_owner = self._parameter_owner or normal_element
        values = {name: x.value if isinstance(x, TiedParameter) else x for name, x in law_parameters.items()}
        shared_parameters = {name: shared(normal_element, name) for name in contact_point.parameters}
        shared_parameters |= {name: shared(self._parameter_owner, name) for name in law_parameters}
        elements: list[ContactElement] = [normal_element]
        if self.dissipation:
            elements.append(
                self._dissipation_element("damping", contact_point, a, b, shared_parameters, damping=self.dissipation)
            )
        end_a, end_b = (
            (body.parametrisation, body.coordinates) for body in (contact_point.body_a, contact_point.body_b)
        )
        if f is not None and f.coefficient:
            elements.append(
                self._dissipation_element(
                    "sliding",
                    contact_point,
                    end_a,
                    end_b,
                    shared_parameters,
                    friction=f.coefficient,
                    smooth=f.slip_tolerance,
                )
            )
            if f.spinning:
                spinning_parameters = dict(friction=f.coefficient, pivoting=f.spinning, smooth_rate=f.rate_tolerance)
                elements.append(
                    self._dissipation_element(
                        "pivoting", contact_point, end_a, end_b, shared_parameters, **spinning_parameters
                    )
                )
        if f is not None and f.rolling:
            elements.append(
                self._dissipation_element(
                    "rolling",
                    contact_point,
                    end_a,
                    end_b,
                    shared_parameters,
                    rolling=f.rolling,
                    smooth_rate=f.rate_tolerance,
                )
            )
        return ContactPointElements(contact_point, values, tuple(elements))

    def _dissipation_element(
        self,
        term: str,
        contact_point: ContactPoint,
        a: Any,
        b: Any,
        shared_parameters: Mapping[str, TiedParameter],
        **parameters: float,
    ) -> ContactElement:
        dissipation = getattr(resisting, term)(contact_point.geometry, self.law, a[0], b[0])
        element_parameters: dict[str, Any] = {
            name: self._dissipation_owner.get(name, value) for name, value in parameters.items()
        }
        element = self._element(
            f"{self.name} {term}",
            {**shared_parameters, **element_parameters},
            contact_point,
            a,
            b,
            dissipation=dissipation,
        )
        self._dissipation_owner |= {
            name: shared(element, name) for name in parameters if name not in self._dissipation_owner
        }
        return element

    def _element(
        self,
        name: str,
        parameters: Mapping[str, TiedParameter | float] | Mapping[str, TiedParameter],
        contact_point: ContactPoint,
        a: Any,
        b: Any,
        **functions: Any,
    ) -> ContactElement:
        return ContactElement(
            [*a[1], *b[1]],
            parameters=parameters,
            constants=contact_point.constants,
            name=name,
            expensive=self.expensive,
            **functions,
        )

    def __repr__(self) -> str:
        return f"<contact {self.name}>"


def _contact_body(body: Body, with_orientation: bool) -> tuple[Parametrisation, tuple[Any, ...]]:
    """Return parametrisation and coordinates of a body, or of its centre alone if its orientation has no effect."""
    parametrisation = body.parametrisation
    if isinstance(parametrisation, GroundParametrisation) or with_orientation or not parametrisation.has_orientation:
        return parametrisation, body.coordinates
    d = body.dimension
    return DirectorParametrisation(d, 0), body.coordinates[:d]


def reduced_mass(body_a: Body, body_b: Body) -> float:
    """Return the reduced mass of a central collision of two bodies."""
    inverse_masses = [1 / body.element.mass for body in (body_a, body_b) if body.element is not None]
    return 1 / float(np.sum(inverse_masses))
