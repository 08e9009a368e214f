"""Step of mutually independent bodies: one function per class of identical bodies.

Interactions are contacts that are detected before the step begins. The step of a body therefore depends on its own
state only, and the generated code does not grow with the number of bodies.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from livens.expressions.state_layout import Layout
from livens.models.base import sha256_of
from livens.models.contact_detection import DetectedContacts
from livens.models.director_bodies import inertia_function
from livens.models.disjoint_sets import connected_components
from livens.models.element import ElementType
from livens.models.external_force import ExternalForce
from livens.models.system import System
from livens.schemes.core.step_equations import StepEquations, StepGraph
from livens.schemes.discretization.quasi_velocities import quasi_velocities
from livens.schemes.discretization.semi_explicit_step import (
    ExplicitPoint,
    SemiExplicitStep,
    cached_force_size,
    initial_force_function,
)
from livens.types import FloatArray

#: Minimum number of bodies for this path.
MIN_BODIES = 8
#: Markers in the index tables of body states for entries that are sums over all bodies.
SUPPLIED_SLOT, DISSIPATED_SLOT, POTENTIAL_POWER_SLOT, DISSIPATED_POWER_SLOT = -1, -2, -3, -4


class DeferredForce(ExternalForce):
    """Placeholder for the external force on one body; the forces are evaluated for all bodies at once."""

    def __init__(self) -> None:
        self.address, self.function, self.depends_on_velocity = 0, None, True


@dataclass(frozen=True, eq=False)
class BodyClass:
    """Class of identical bodies: one body as a System, and coordinates and elements of each body in the full system."""

    system: System
    coordinates: np.ndarray
    elements: np.ndarray

    def parameter_dofs(self, full_system: System) -> np.ndarray:
        """Return the parameter indices of each body."""
        size, parameter_indices = full_system.model_parameters.size, full_system.element_parameters
        return np.array(
            [
                [*range(size), *(i for e in elements for i in parameter_indices[e][size:])]
                for elements in self.elements.tolist()
            ]
        )


@functools.lru_cache(maxsize=32)
def body_classes(system: System) -> tuple[BodyClass, ...]:
    """Return the body classes of a system of independent bodies; () if the system is stepped as one.

    Returns () if a body has joints, sampled controllers or velocity-level constraints.
    """
    if (
        not isinstance(system.external_force, DetectedContacts)
        or system.control_indices
        or system.has_velocity_constraints
    ):
        return ()
    rigidity_constraints = {i for frame in system.frames for i in frame.constraints}
    if len(rigidity_constraints) != system.m:
        return ()
    components = _components(system)
    if len(components) < MIN_BODIES:
        return ()
    components_by_type: dict[Any, list[tuple[list[int], list[int]]]] = {}
    for coordinates, elements in components:
        local_index = {i: j for j, i in enumerate(coordinates)}
        signature = [
            (
                id(system.element_types[e]),
                tuple(local_index[i] for i in system.element_dofs[e]),
                _type_flags(system.elements[e]),
            )
            for e in elements
        ]
        components_by_type.setdefault(tuple(signature), []).append((coordinates, elements))
    classes = []
    for members in components_by_type.values():
        coordinates, elements = members[0]
        names, body_elements = [system.coordinates[i] for i in coordinates], [system.elements[e] for e in elements]
        body_system = System(names, elements=body_elements, parameters=system.model_parameters.values, frames=True)
        body_system.external_force = DeferredForce()
        classes.append(
            BodyClass(
                body_system, np.array([member[0] for member in members]), np.array([member[1] for member in members])
            )
        )
    return tuple(classes)


def isotropic_coordinates(system: System, k: np.ndarray) -> set[int]:
    """Return the coordinates of all bodies in space whose three moments of inertia are equal."""
    coordinates = set[int]()
    for frame in system.frames:
        if frame.dimension == 3 and len(frame.directors) == 3:
            parameters = k[list(system.element_parameters[frame.element_index])]
            euler = np.array(inertia_function(system, frame)(parameters)[1])
            if np.abs(euler - euler[0, 0] * np.eye(3)).max() <= 1e-15 * euler[0, 0]:
                coordinates |= set(frame.coordinates)
    return coordinates


def _has_contribution(model: ElementType) -> bool:
    """Return True if an element has an energy, a force or a constraint; others are visuals or hold parameters."""
    return bool(model.m or model.F.nnz()) or not all(x.is_zero() for x in (model.T, model.V, model.R))


def _type_flags(element: Any) -> tuple[Any, ...]:
    return element.expensive, element.beta, element.rotor


def _components(system: System) -> list[tuple[list[int], list[int]]]:
    """Return coordinates and elements of every connected component, in order."""
    acting = [e for e, model in enumerate(system.element_types) if _has_contribution(model)]
    coordinates = connected_components([system.element_dofs[e] for e in acting], system.n)
    component_of = {i: c for c, indices in enumerate(coordinates) for i in indices}
    elements: list[list[int]] = [[] for _ in coordinates]
    for e in acting:
        elements[component_of[system.element_dofs[e][0]]].append(e)
    return list(zip(coordinates, elements, strict=True))


@dataclass(frozen=True, eq=False)
class IndependentBodyEquations(StepEquations):
    """Step equations by body class."""

    system: System
    body_classes: tuple[BodyClass, ...]
    steps: tuple[StepGraph, ...]
    #: Steps of bodies with equal moments of inertia, such as spheres; a run uses them if its parameters are such.
    isotropic_steps: Callable[[], tuple[StepGraph, ...]]
    system_graph: Callable[[], StepGraph]

    @functools.cached_property
    def layout(self) -> Layout:  # type: ignore[override]  # declared as attribute in the base class
        n, external_force = self.system.n, self.system.external_force
        assert external_force is not None
        return self.system.layout.extended(
            A=cached_force_size(self.system), asked=2 * n + 1, box=n + external_force.n_energy_terms
        )

    @property
    def n_unknowns(self) -> int:
        return 0

    @property
    def loops_over_bodies(self) -> bool:
        return True

    def to_single_graph(self) -> StepGraph:
        return self.system_graph()

    @functools.cached_property
    def fingerprint(self) -> str:
        return sha256_of(["loose parts", self.system.fingerprint, *(step.fingerprint for step in self.steps)])

    @functools.cached_property
    def state_dofs(self) -> tuple[np.ndarray, ...]:
        """State indices of each body in the full state, by body class; sums have negative markers."""
        return tuple(_state_dofs(self.system, body_class, self.layout) for body_class in self.body_classes)


def _state_dofs(system: System, body_class: BodyClass, layout: Layout) -> np.ndarray:
    n, body_system, rows = system.n, body_class.system, []
    body_indices, system_indices = _quasi_velocity_indices(body_system), _quasi_velocity_indices(system)
    for coordinates, elements in zip(body_class.coordinates.tolist(), body_class.elements.tolist(), strict=True):
        slots = [system.element_constraints[e] for e in elements]
        # a quasi-velocity is identified by its coordinates in both systems
        twist = [system_indices[tuple(coordinates[i] for i in dofs), j] for dofs, j in body_indices]
        dofs_by_name: dict[str, list[int]] = {name: [layout[name].start + i for i in coordinates] for name in "qvp"}
        dofs_by_name |= dict(supplied_energy=[SUPPLIED_SLOT], dissipated_energy=[DISSIPATED_SLOT])
        dofs_by_name["multipliers"] = [
            layout["multipliers"].start + i for dofs in slots for i in range(dofs.start, dofs.stop)
        ]
        size, A = len(system_indices), layout["A"].start
        dofs_by_name["A"] = [
            *(A + i for i in twist),
            *(A + size + i for i in twist),
            POTENTIAL_POWER_SLOT,
            DISSIPATED_POWER_SLOT,
        ]
        query_start = layout["asked"].start
        dofs_by_name["asked"] = [
            *(query_start + i for i in coordinates),
            *(query_start + n + i for i in coordinates),
            query_start + 2 * n,
        ]
        dofs_by_name["box"] = [layout["box"].start + i for i in coordinates]
        rows.append(
            [i for name in body_system.layout.sizes for i in dofs_by_name[name]]
            + dofs_by_name["A"]
            + dofs_by_name["asked"]
            + dofs_by_name["box"]
        )
    return np.array(rows, dtype=np.int64)


def _quasi_velocity_indices(system: System) -> dict[tuple[tuple[int, ...], int], int]:
    """Return the indices of quasi-velocities by coordinates: (coordinate,) or the coordinates of a frame."""
    velocities = quasi_velocities(system)
    indices: dict[tuple[tuple[int, ...], int], int] = {((i,), 0): j for i, j in velocities.index_of.items()}
    for frame, block in velocities.rotational_blocks():
        indices |= {(frame.coordinates, j): block.start + j for j in range(block.stop - block.start)}
    return indices


@functools.lru_cache(maxsize=32)
def body_class_steps(
    system: System, explicit_point: ExplicitPoint, beta: float, isotropic: bool = False
) -> tuple[StepGraph, ...]:
    """Return the steps of all body classes; () if there are none, or if a step is implicit."""
    steps = tuple(
        SemiExplicitStep(body_class.system, explicit_point, beta, isotropic=isotropic).equations()
        for body_class in body_classes(system)
    )
    return () if any(step.size for step in steps) else steps


def initial_scheme_state_of_bodies(
    system: System, explicit_point: ExplicitPoint, values: Mapping[str, FloatArray], t: float, h: float, k: FloatArray
) -> dict[str, FloatArray]:
    """Return the initial scheme state: A of the first step, and the contact forces."""
    n, external_force, size = system.n, system.external_force, quasi_velocities(system).size
    assert external_force is not None
    k = np.asarray(k, dtype=float).ravel()
    q, v = np.asarray(values["q"], dtype=float), np.asarray(values["v"], dtype=float)
    A, query = np.zeros(2 * size + 2), np.zeros(2 * n + 1)
    system_indices = _quasi_velocity_indices(system)
    for body_class in body_classes(system):
        function, body_indices = (
            initial_force_function(body_class.system, explicit_point),
            _quasi_velocity_indices(body_class.system),
        )
        count = len(body_indices)
        for coordinates, parameters in zip(body_class.coordinates, body_class.parameter_dofs(system), strict=True):
            cached_force, query_of_body = (
                np.array(x).ravel() for x in function(q[coordinates], v[coordinates], t, h, k[parameters])
            )
            dofs = [system_indices[tuple(int(coordinates[i]) for i in local_dofs), j] for local_dofs, j in body_indices]
            A[dofs], A[[size + i for i in dofs]] = cached_force[:count], cached_force[count : 2 * count]
            A[2 * size :] += cached_force[2 * count :]
            d = len(coordinates)
            query[coordinates], query[n + coordinates], query[2 * n] = (
                query_of_body[:d],
                query_of_body[d : 2 * d],
                query_of_body[2 * d],
            )
    return {"A": A, "asked": query, "box": external_force(query[:n], query[n : 2 * n], query[2 * n], k)}
