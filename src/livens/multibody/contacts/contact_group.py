"""Contact groups: compliant contacts of many bodies, detected during the run (`livens.Multibody.contact_group`)."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from livens import math as m
from livens.errors import InputError
from livens.expressions.graph.interpreter import common_subexpressions
from livens.expressions.parameters import ParameterNamespace, Parameters
from livens.models.contact_detection import (
    ENERGY_TERMS,
    SPHERE_PARAMETERS,
    ClassPairPoint,
    CollisionProxy,
    ContactGroupData,
    DetectedContacts,
    SphereContact,
)
from livens.models.element import Element
from livens.models.system import System
from livens.multibody.body import Body
from livens.multibody.contacts import dissipation as resisting
from livens.multibody.contacts.checks import GOOD_STEPS_PER_COLLISION, MIN_CHECKED_SPEED, MIN_STEPS_PER_COLLISION
from livens.multibody.contacts.dissipation import Friction
from livens.multibody.contacts.geometry.half_space import HalfSpaceDistance
from livens.multibody.contacts.geometry.signed_distance import SphereOnSurface
from livens.multibody.contacts.geometry.sphere import SphereDistance
from livens.multibody.contacts.narrow_phase import ContactPoint, contact_points
from livens.multibody.contacts.normal_laws.base import NormalLaw
from livens.multibody.contacts.normal_laws.power import PowerLaw
from livens.multibody.contacts.pair_contact import MAX_INITIAL_PENETRATION, reduced_mass
from livens.multibody.contacts.shapes import CollisionShape, HalfSpace
from livens.multibody.contacts.visuals import static_visual
from livens.types import FloatArray, ModelFunction

if TYPE_CHECKING:
    from livens.multibody.builder.base import ModelBase

#: Default margin of the neighbour list (Verlet skin), relative to the median bounding radius.
_RELATIVE_SKIN = 0.3
#: Largest number of shape classes of a group; every pair of classes has its own parameters.
_MAX_SHAPE_CLASSES = 200


class ContactGroup:
    """Contact group of a model, with energy and forces of its contacts in a run.

    Only pairs in the neighbour list are evaluated.
    """

    def __init__(
        self,
        name: str,
        shapes: Sequence[CollisionShape],
        law: NormalLaw,
        dissipation: float,
        friction: Friction | None,
        margin: float | None,
    ) -> None:
        self.name, self.shapes = name, tuple(shapes)
        self.law, self.dissipation, self.friction = law, dissipation, friction
        bounding_radii = np.array([shape.bounding_radius for shape in self.shapes])
        finite = bounding_radii[np.isfinite(bounding_radii)]
        if not finite.size:
            raise InputError(f"{name}: a contact group needs bodies of finite size, not only planes")
        self.margin = _RELATIVE_SKIN * float(np.median(finite)) if margin is None else margin
        self._shape_classes: dict[Any, int] = {}
        self.shape_classes = [self._shape_class(shape) for shape in self.shapes]
        if len(self._shape_classes) > _MAX_SHAPE_CLASSES:
            raise InputError(
                f"{name}: {len(self._shape_classes)} different shapes exceed the limit of a contact group "
                f"({_MAX_SHAPE_CLASSES}): use bodies of fewer different sizes"
            )
        self._law_parameters = self._class_pair_parameters()
        #: Placeholder element that owns the shared parameters and the static visuals; it applies no force.
        self.element = Element(
            [next(shape for shape in self.shapes if shape.body.element is not None).body.coordinates[0]],
            parameters=self._shared_parameters(),
            name=name,
            visual=self._static_visual(),
        )

    # -- shape classes and parameters ---------------------------------------------------------------------------------
    def _shape_class(self, shape: CollisionShape) -> int:
        return self._shape_classes.setdefault(_geometry_key(shape), len(self._shape_classes))

    def representative_pair(self, a: int, b: int) -> tuple[CollisionShape, CollisionShape]:
        """Return two shapes of these classes that may collide, else raise LookupError."""
        classified = list(zip(self.shapes, self.shape_classes, strict=True))
        shapes_a, shapes_b = (
            [shape for shape, shape_class in classified if shape_class == selected] for selected in (a, b)
        )
        for shape_a, shape_b in itertools.product(shapes_a[:2], shapes_b):
            if shape_a.body is not shape_b.body and (
                shape_a.body.element is not None or shape_b.body.element is not None
            ):
                return shape_a, shape_b
        raise LookupError("no two of these shapes can collide")

    def _class_pair_parameters(self) -> dict[tuple[int, int], dict[str, Any]]:
        """Return the law parameters of every pair of shape classes that may collide."""
        parameters: dict[tuple[int, int], dict[str, Any]] = {}
        for a, b in itertools.combinations_with_replacement(range(len(self._shape_classes)), 2):
            try:
                shape_a, shape_b = self.representative_pair(a, b)
            except LookupError:
                continue
            parameters[a, b] = self.law.parameters(
                f"{self.name}: {shape_a.body.name}-{shape_b.body.name}", shape_a, shape_b
            )
        if not parameters:
            raise InputError(f"{self.name}: a contact group needs at least two bodies, or one body and the ground")
        return parameters

    def _shared_parameters(self) -> dict[str, float]:
        """Return the parameters that all contacts share: dissipation, and the law unless it depends on shapes."""
        law_parameters = list(self._law_parameters.values())
        shared = (
            dict(law_parameters[0]) if all(parameters == law_parameters[0] for parameters in law_parameters) else {}
        )
        f = self.friction
        if self.dissipation:
            shared["damping"] = self.dissipation
        if f is not None and f.coefficient:
            shared |= dict(friction=f.coefficient, smooth=f.slip_tolerance)
            shared |= dict(pivoting=f.spinning) if f.spinning else {}
        if f is not None and f.rolling:
            shared["rolling"] = f.rolling
        if f is not None and (f.spinning or f.rolling):
            shared["smooth_rate"] = f.rate_tolerance
        return shared

    def _static_visual(self) -> ModelFunction | None:
        """Return the visual of the static shapes: floors and walls."""
        static_shapes = [shape for shape in self.shapes if shape.body.element is None]
        body_shape = next(shape for shape in self.shapes if shape.body.element is not None)
        visuals = [
            visual
            for visual in (static_visual(static_shape, body_shape) for static_shape in static_shapes)
            if visual is not None
        ]
        return None if not visuals else lambda: [shape for visual in visuals for shape in visual()]

    def pair_parameters(
        self, a: int, b: int, contact_point: ContactPoint
    ) -> dict[str, FloatArray | float] | dict[str, float]:
        """Return the parameters specific to a pair of shape classes."""
        law_parameters = (
            {} if set(self._law_parameters[a, b]) <= set(self.element.parameters.values) else self._law_parameters[a, b]
        )
        return {**contact_point.parameters, **law_parameters}

    @property
    def class_pairs(self) -> list[tuple[int, int]]:
        """Pairs of shape classes that may collide."""
        return list(self._law_parameters)

    # -- forces -------------------------------------------------------------------------------------------------------
    def contact_kernel(
        self, contact_point: ContactPoint, pair_parameters: Parameters
    ) -> tuple[ca.Function, ca.Function]:
        """Return force and energy kernel of a contact point, and its gap, as functions of ``(q, v, k)``."""
        a, b = contact_point.body_a.parametrisation, contact_point.body_b.parametrisation
        n, shared = len(a.names) + len(b.names), self.element.parameters
        q, v, k = ca.SX.sym("q", n), ca.SX.sym("v", n), ca.SX.sym("k", pair_parameters.size + shared.size)
        named = pair_parameters.unpack_symbols(k[: pair_parameters.size]) | shared.unpack_symbols(
            k[pair_parameters.size :]
        )
        K = ParameterNamespace({**named, **contact_point.constants})
        Q, V = m.from_casadi(q), m.from_casadi(v)
        gap = contact_point.geometry.gap_at(a, b, Q, K)
        stored = m.to_casadi(self.law.energy(resisting.penetration(gap), K))
        force, dissipated = -ca.gradient(stored, q), []
        for term in ENERGY_TERMS[1:]:
            power = ca.SX(0)
            if term in shared.values or (term == "sliding" and "friction" in shared.values):
                dissipation = getattr(resisting, term)(contact_point.geometry, self.law, a, b)(Q, V, K)
                dissipative_force = ca.gradient(m.to_casadi(dissipation), v)
                force, power = force - dissipative_force, ca.dot(dissipative_force, v)
            dissipated.append(power)
        out = common_subexpressions(ca.densify(ca.vertcat(force, stored, *dissipated)))
        return ca.Function("touch", [q, v, k], [out]), ca.Function("gap", [q, v, k], [m.to_casadi(gap)])

    def sphere_contact(
        self, contact_point: ContactPoint, plane: np.ndarray | None, pair_parameters: Parameters
    ) -> SphereContact | None:
        """Return the parameters of the hand-written kernel of spheres; None for other contacts."""
        a, b, shared = contact_point.body_a, contact_point.body_b, self.element.parameters
        geometry, law = contact_point.geometry, self.law
        if (
            not isinstance(geometry, SphereOnSurface)
            or not isinstance(law, PowerLaw)
            or law.exponent not in (1.0, 1.5)
            or a.dimension != 3
            or contact_point.uses_rotation_a
            or any(len(body.coordinates) not in (0, 12) for body in (a, b))
            or {"pivoting", "rolling"} & set(shared.values)
        ):
            return None
        if plane is None and (
            geometry.surface != SphereDistance() or contact_point.uses_rotation_b or b.element is None
        ):
            return None
        if plane is not None and geometry.surface != HalfSpaceDistance():
            return None
        names = [*pair_parameters.values, *shared.values]
        if any(np.size(value) != 1 for value in (*pair_parameters.values.values(), *shared.values.values())):
            return None
        indices = tuple(names.index(name) if name in names else -1 for name in SPHERE_PARAMETERS)
        return SphereContact(law.exponent, indices, plane)

    # -- evaluation in a run ------------------------------------------------------------------------------------------
    def _contacts_of(self, run: Any) -> tuple[DetectedContacts, int]:
        contacts = getattr(run.system, "external_force", None)
        groups = [group.name for group in contacts.groups] if isinstance(contacts, DetectedContacts) else []
        if self.name not in groups:
            raise InputError(f"the run does not belong to a mechanism with the contact group '{self.name}'")
        assert isinstance(contacts, DetectedContacts)
        return contacts, groups.index(self.name)

    def energy_terms(self, run: Any) -> dict[str, np.ndarray]:
        """Return the ``stored`` energy of all contacts (J), and the powers (W) dissipated by ``damping``, ``sliding``,
        ``pivoting`` and ``rolling``, each of shape (n_stored,)."""
        contacts, group = self._contacts_of(run)
        rows = [contacts.energy_rates(q, v, run.parameter_vector, group)[1:] for q, v in zip(run.q, run.v, strict=True)]
        return dict(zip(ENERGY_TERMS, np.array(rows).reshape(-1, len(ENERGY_TERMS)).T, strict=True))

    def stored_energy(self, run: Any) -> np.ndarray:
        """Return the elastic energy of all contacts in J, of shape (n_stored,)."""
        return self.energy_terms(run)["stored"]

    def forces(self, run: Any, row: int = -1) -> dict[str, np.ndarray]:
        """Return the contact forces at one stored time: ``first-second`` to the force on the second body, in space."""
        contacts, group = self._contacts_of(run)
        offset = sum(proxy.group < group for proxy in contacts.proxies)
        names = {offset + i: shape.body.name for i, shape in enumerate(self.shapes)}
        forces = contacts.pair_forces(np.asarray(run.q[row]), np.asarray(run.v[row]), run.parameter_vector, group)
        return {f"{names[i]}-{names[j]}": force for (i, j), force in forces.items()}

    def __repr__(self) -> str:
        return f"<contact group {self.name}: {len(self.shapes)} shapes>"


def _shape_key(shape: CollisionShape) -> tuple[Body, object]:
    """Return a key that is equal for shapes of equal geometry on one body."""
    return shape.body, _geometry_key(shape)


def _geometry_key(shape: CollisionShape) -> tuple[object, ...]:
    """Return a key that is equal for shapes of equal geometry in the frames of their bodies."""
    sizes = {name: np.asarray(value).tobytes() for name, value in shape.sizes.items()}
    attributes = (
        getattr(shape, "local_positions", None),
        getattr(shape, "rounding", 0.0),
        getattr(shape, "radius", 0.0),
        getattr(shape, "edges", None),
    )
    points = None if attributes[0] is None else np.array(attributes[0]).tobytes()
    surface = shape.surface if shape.surface is not None else type(shape)
    return (
        type(shape),
        surface,
        shape.body.parametrisation,
        (shape.local_position + 0.0).tobytes(),  # -0.0 is 0.0
        (shape.axes + 0.0).tobytes(),
        *sizes.items(),
        (points, *attributes[1:]),
    )


def _check_duplicate_pairs(model: ModelBase, detected: DetectedContacts) -> None:
    """Raise InputError if two shapes touch in a contact group and in a contact of their own, or twice in groups.

    Different shapes of the same bodies may touch in several contacts.
    """
    groups, first = list[tuple[str, dict[tuple[Body, object], int]]](), 0
    for group in model._contact_groups.values():
        proxies: dict[tuple[Body, object], int] = {}
        for proxy, shape in enumerate(group.shapes, first):
            if proxies.setdefault(_shape_key(shape), proxy) != proxy:
                raise InputError(
                    f"{group.name}: the same shape of '{shape.body.name}' is in the contact group twice, so that its "
                    "contacts would act twice: leave one of them out"
                )
        groups.append((group.name, proxies))
        first += len(group.shapes)
    problem = "touch in the contact group '{}' too, so that their contact would act twice"
    for contact, (name, proxies) in itertools.product(model._pair_contacts.values(), groups):
        i, j = (proxies.get(_shape_key(shape)) for shape in (contact.shape_a, contact.shape_b))
        if i is not None and j is not None and detected.may_collide(i, j):
            raise InputError(
                f"{contact.name}: the same shapes of '{contact.shape_a.body.name}' and '{contact.shape_b.body.name}' "
                f"{problem.format(name)}: remove this contact, or leave one of the shapes out of the group"
            )
    for (name, proxies), (other_name, other_proxies) in itertools.combinations(groups, 2):
        common = [(key[0], i) for key, i in proxies.items() if key in other_proxies]
        for (body_a, i), (body_b, j) in itertools.combinations(common, 2):
            if detected.may_collide(i, j):
                raise InputError(
                    f"{other_name}: the same shapes of '{body_a.name}' and '{body_b.name}' {problem.format(name)}: "
                    "leave one of the shapes out of one group"
                )


def build_detected_contacts(system: System, model: ModelBase) -> DetectedContacts | None:
    """Return the contact groups of a model as one external force on its system."""
    contact_groups = list(model._contact_groups.values())
    if not contact_groups:
        return None
    index = {name: i for i, name in enumerate(system.coordinates)}
    element_index = {id(element): i for i, element in enumerate(system.elements)}
    bodies = {id(body): i for i, body in enumerate([model.ground, *model.bodies.values()])}
    groups, proxies, first_class = list[ContactGroupData](), list[CollisionProxy](), 0
    functions: dict[Any, int] = {}
    kernels: list[ca.Function] = []
    gaps: list[ca.Function] = []
    class_pair_points: dict[tuple[int, int], list[ClassPairPoint]] = {}
    for number, contact_group in enumerate(contact_groups):
        parameter_indices = system.element_parameters[element_index[id(contact_group.element)]][
            system.model_parameters.size :
        ]
        groups.append(ContactGroupData(contact_group.name, contact_group.margin, tuple(parameter_indices)))
        for shape, shape_class in zip(contact_group.shapes, contact_group.shape_classes, strict=True):
            proxies.append(_collision_proxy(shape, first_class + shape_class, number, bodies[id(shape.body)], index))
        for a, b in contact_group.class_pairs:
            shape_a, shape_b = contact_group.representative_pair(a, b)
            for contact_point in contact_points(
                f"{contact_group.name}: {shape_a.body.name}-{shape_b.body.name}", shape_a, shape_b
            ):
                swapped = contact_point.body_a is shape_b.body
                pair_parameters = Parameters(contact_group.pair_parameters(a, b, contact_point))
                fixed = tuple((name, np.asarray(value).tobytes()) for name, value in contact_point.constants.items())
                key = (
                    number,
                    contact_point.geometry,
                    contact_point.body_a.parametrisation,
                    contact_point.body_b.parametrisation,
                    pair_parameters.shapes,
                    fixed,
                )
                if key not in functions:
                    functions[key] = len(kernels)
                    function, gap = contact_group.contact_kernel(contact_point, pair_parameters)
                    kernels.append(function)
                    gaps.append(gap)
                pair = first_class + a, first_class + b
                other_shape = shape_a if swapped else shape_b
                sphere = contact_group.sphere_contact(contact_point, _plane(other_shape), pair_parameters)
                class_pair_points.setdefault(pair, []).append(
                    ClassPairPoint(functions[key], swapped, pair_parameters.vector(), sphere)
                )
                if a != b:
                    class_pair_points.setdefault((pair[1], pair[0]), []).append(
                        ClassPairPoint(functions[key], not swapped, pair_parameters.vector(), sphere)
                    )
        first_class += len(contact_group._shape_classes)
    connected = [(bodies[id(shape_a.body_a)], bodies[id(shape_a.body_b)]) for shape_a in model.connections.values()]
    excluded_pairs = frozenset((min(pair), max(pair)) for pair in connected)
    detected = DetectedContacts(
        system.n, model.dimension, groups, proxies, kernels, gaps, class_pair_points, excluded_pairs
    )
    _check_duplicate_pairs(model, detected)
    return detected


def _plane(shape: CollisionShape) -> np.ndarray | None:
    """Return normal and offset of a fixed plane; None for other shapes."""
    if not isinstance(shape, HalfSpace) or shape.body.element is not None:
        return None
    normal = shape.reference_axes[:, -1]
    return np.append(normal, normal @ shape.reference_position)


def _collision_proxy(
    shape: CollisionShape, shape_class: int, group: int, body: int, index: Mapping[str, int]
) -> CollisionProxy:
    plane = _plane(shape)
    dofs = [index[str(c)] for c in shape.body.coordinates]
    first_dof = dofs[0] if dofs else 0
    assert dofs == list(range(first_dof, first_dof + len(dofs)))
    return CollisionProxy(
        body,
        group,
        shape_class,
        first_dof,
        len(dofs),
        np.asarray(shape.local_position, dtype=float),
        float(shape.bounding_radius),
        plane,
    )


def check_group_penetration(groups: Mapping[str, ContactGroup], system: System, q: np.ndarray) -> None:
    """Raise InputError if the initial penetration of two bodies in a group exceeds the limit."""
    contacts, k = system.external_force, system.parameter_vector()
    if not isinstance(contacts, DetectedContacts):
        return
    shapes = [shape for group in groups.values() for shape in group.shapes]
    for i, j in contacts.candidate_pairs(q):
        limit = MAX_INITIAL_PENETRATION * min(shapes[i].characteristic_size, shapes[j].characteristic_size)
        for gap in contacts.pair_gaps(i, j, q, k):
            if -gap > limit:
                group_name = contacts.groups[contacts.proxies[i].group].name
                raise InputError(
                    f"{group_name}: '{shapes[i].body.name}' and '{shapes[j].body.name}' "
                    f"overlap by {-gap:.3g} at the start, which exceeds the allowed initial penetration ({limit:.3g}): "
                    "move them apart"
                )


def check_group_step_size(
    groups: Mapping[str, ContactGroup], system: System, q: np.ndarray, v: np.ndarray, h: float, gravity: np.ndarray
) -> None:
    """Raise InputError if a collision at the initial velocity plus free fall lasts less than two steps.

    The height of the fall is the largest one between the bodies, or from a body to a fixed plane.
    """
    contacts = system.external_force
    if not isinstance(contacts, DetectedContacts) or not isinstance(h, (int, float)) or not h > 0:
        return
    centres, d = contacts.bounding_centres(q), contacts.dimension
    moving_proxies = [i for i, proxy in enumerate(contacts.proxies) if proxy.n_dofs]
    fast = max(float(np.linalg.norm(v[contacts.proxies[i].first_dof :][:d])) for i in moving_proxies)
    falls = [float(np.linalg.norm(gravity) * np.ptp(centres[moving_proxies], axis=0).max())]
    for shape in (shape for group in groups.values() for shape in group.shapes):
        plane = _plane(shape)
        if plane is not None:
            heights = centres[moving_proxies] @ plane[:-1] - plane[-1]
            falls.append(float(-gravity @ plane[:-1] * heights.max()))
    speed = float(np.hypot(fast, np.sqrt(2 * max(falls))))
    if speed < MIN_CHECKED_SPEED:
        return
    for group in groups.values():
        for (a, b), law_parameters in group._law_parameters.items():
            proxy, other = group.representative_pair(a, b)
            duration = np.pi / group.law.collision_frequency(
                law_parameters, reduced_mass(proxy.body, other.body), speed
            )
            if duration < MIN_STEPS_PER_COLLISION * h:
                recommended_step = duration / GOOD_STEPS_PER_COLLISION
                raise InputError(
                    f"{group.name}: a collision of {proxy.body.name} and {other.body.name} at {speed:.3g} m/s lasts "
                    f"{duration:.2g} s, too short for steps of h = {h:g}: use h <= {recommended_step:.1g}, or a "
                    "smaller stiffness"
                )
