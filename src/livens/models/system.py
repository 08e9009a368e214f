"""Mechanical systems in Livens form: sums of elements on dof maps."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from livens.errors import InputError, ModelError, explain_call_errors, suggestion
from livens.expressions.name_parsing import Names, parse_names
from livens.expressions.parameters import Parameters, ParameterTable
from livens.expressions.state_layout import Layout
from livens.expressions.tracing import ModelFunction
from livens.models.base import ConservationGuarantees, InitialState, Model, SymbolicState, check_initial_value_names
from livens.models.controller import Controller
from livens.models.director_bodies import director_bodies
from livens.models.element import Element, ElementType, InvariantForm, element_type, resolve_indices
from livens.models.element_groups import ElementGroup, group_elements
from livens.models.external_force import ExternalForce
from livens.models.guarded_event import GuardedEvent
from livens.models.input_entry import InputEntry
from livens.models.mass_signs import MassSigns
from livens.models.quantity import Quantity
from livens.models.symmetry import keeps_momentum, trace_generator
from livens.models.system_properties import SystemProperties
from livens.models.velocity_constraints import AngleRateConstraint
from livens.scene.scene import Visual, default_visuals
from livens.types import Expr, IndexTable

if TYPE_CHECKING:
    from livens.models.element_sums import ElementSums


#: Number of coordinates above which a system is set up with sparse matrices and one kernel per element type.
SPARSE_THRESHOLD = 250


@functools.cache
def _initial_state() -> Callable[..., InitialState]:
    """Return `initial_state`; the import is deferred (circular) and cached for speed."""
    from livens.models.initialization.dense import initial_state

    return initial_state


@explain_call_errors
class System(SystemProperties, Model):
    """Mechanical system, given by energies and constraints.

    Model functions take any of ``q v t k`` (coordinates, velocities, time, parameters) by argument name. Derivatives
    are computed automatically. Instead of model functions, a list of `elements` may be given, each on a few
    coordinates.

    Parameters
    ----------
    coordinates : str, sequence of str or int
        Names ("x y z"), or the number of coordinates.
    kinetic : callable or InvariantForm, optional
        Kinetic energy T, a function of ``q v k``, in joules.
    mass : callable, optional
        Mass matrix M, a function of ``q k``, instead of `kinetic`; the kinetic energy is ``v.M v/2``.
    potential : callable or InvariantForm, optional
        Potential energy V, a function of ``q t k``, in joules.
    constraints : callable, optional
        Position constraints g = 0: a function of ``q t k`` that returns a list.
    dissipation : callable, optional
        Rayleigh dissipation function R of ``q v t k``, in watts; the force is ``-dR/dv``.
    forces : callable, optional
        Generalized forces F: a function of ``q v t k`` that returns one value per coordinate.
    velocity_constraints : callable or AngleRateConstraint, optional
        Velocity-level constraints: a function of ``q v t k``, affine in v, that returns a list of residuals.
    parameters : mapping, optional
        Parameter values by name, available to model functions as ``k``.
    elements : sequence of Element, optional
        Elements, instead of the model functions above.
    symmetries : mapping of str to callable, optional
        Momentum maps by name: functions of q that return one generator ``xi(q)`` or a list of generators. The momentum
        is ``p . xi(q)``. See `livens.symmetry` for translations and rotations.
    constraint_names : sequence of str, optional
        Names of the constraints in messages and results.
    quaternions : sequence of sequence of int or str, optional
        Coordinates of the unit quaternions, four each, scalar first. Default: those declared by the elements.
    frames : bool, default False
        Treat bodies with directors as rigid frames: schemes such as `lie-em` and `livens-em` then have six unknowns per
        body (three in the plane) instead of its coordinates and internal rigidity constraints.
    visual : callable, optional
        Function of ``q t k`` that returns shapes (see `livens.shapes`), drawn in addition to the visuals of the
        elements. Visuals do not influence the motion.
    external_force : ExternalForce, optional
        Compiled force on all coordinates: expensive for split-force schemes such as `semi-explicit:0.5,0.5`, applied at
        the midpoint by `lie-em`, `livens-em` and `livens-midpoint`.

    Raises
    ------
    InputError
        If there is no coordinate, or a coordinate is unknown.
    ModelError
        If a model function or element is invalid, or there is no kinetic energy.

    Examples
    --------
    >>> import livens as lv
    >>> oscillator = lv.System(
    ...     coordinates="x",
    ...     kinetic=lambda v, k: 0.5 * k.m * v[0] ** 2,
    ...     potential=lambda q, k: 0.5 * k.c * q[0] ** 2,
    ...     parameters=dict(m=1.0, c=4.0),
    ... )
    >>> print(oscillator)
    System with 1 coordinate (x) and no constraints
      mass matrix      constant, regular
      separable        yes
      conservative     yes
      parameters       m = 1.0, c = 4.0
    """

    type_label = "System"
    _external_force: ExternalForce | None = None

    def __init__(
        self,
        coordinates: Names,
        *,
        kinetic: ModelFunction | InvariantForm | None = None,
        mass: ModelFunction | None = None,
        potential: ModelFunction | InvariantForm | None = None,
        constraints: ModelFunction | None = None,
        dissipation: ModelFunction | None = None,
        forces: ModelFunction | None = None,
        velocity_constraints: ModelFunction | AngleRateConstraint | None = None,
        parameters: Mapping[str, object] | None = None,
        elements: Sequence[Element] | None = None,
        symmetries: Mapping[str, ModelFunction] | None = None,
        constraint_names: Sequence[str] | None = None,
        quaternions: Sequence[Sequence[int | str]] | None = None,
        frames: bool = False,
        visual: ModelFunction | None = None,
        external_force: ExternalForce | None = None,
    ) -> None:
        self.coordinates = parse_names("coordinates", coordinates, "q", singular="coordinate")
        if external_force is not None and not isinstance(external_force, ExternalForce):
            raise ModelError(f"external_force must be a livens.ExternalForce, got {external_force!r}")
        self.external_force = external_force
        self.n = len(self.coordinates)
        if not self.n:
            raise InputError("a system needs at least one coordinate")
        functions: dict[str, Any] = dict(
            kinetic=kinetic,
            mass=mass,
            potential=potential,
            constraints=constraints,
            dissipation=dissipation,
            forces=forces,
            velocity_constraints=velocity_constraints,
        )
        if quaternions is not None and not isinstance(quaternions, (list, tuple)):
            raise ModelError(f"quaternions must be a list of four coordinates each, got {quaternions!r}")
        if elements is not None and not isinstance(elements, (list, tuple)):
            raise ModelError(f"elements must be a list of elements, got {elements!r}")
        if elements is None:
            quaternion_dofs = [resolve_indices(quat, self.coordinates, "a quaternion") for quat in quaternions or ()]
            element_arguments: dict[str, Any] = dict(
                constraint_names=constraint_names, quaternions=quaternion_dofs, visual=visual
            )
            elements = [Element(range(self.n), **element_arguments, **functions)]
            quaternions = visual = None  # now declared by the element
        elif any(f is not None for f in functions.values()) or constraint_names is not None:
            raise ModelError(
                "give either model functions or elements, not both: add further functions as an element, such as "
                "lv.Element(coordinates, potential=...)"
            )
        if not elements:
            raise ModelError("a system needs at least one element")
        if invalid := [element for element in elements if not isinstance(element, Element)]:
            raise ModelError(f"elements must be a list of elements, but one is {invalid[0]!r}")
        self.elements = tuple(elements)
        self._visual = visual
        self.model_parameters = Parameters(parameters)
        self.element_types = self._trace_types()
        index_by_name = {name: i for i, name in enumerate(self.coordinates)}
        self.element_dofs = tuple(
            resolve_indices(e.coordinates, index_by_name, e.name or f"element {i}") for i, e in enumerate(self.elements)
        )
        if all(model.T.is_zero() for model in self.element_types):
            raise ModelError("the system has no kinetic energy: give kinetic or mass")
        self.constraint_names = self._constraint_names()
        self.m = len(self.constraint_names)
        self.quaternions = self._quaternions(quaternions)
        #: Index of the unit-norm constraint of each quaternion.
        self.quaternion_constraints = self._unit_norm_constraints()
        if symmetries is not None and not isinstance(symmetries, Mapping):
            raise ModelError(f"symmetries must map names to functions, got {symmetries!r}")
        if not isinstance(frames, bool):
            raise ModelError(f"frames must be True or False, got {frames!r}")
        self.frames = director_bodies(self) if frames else ()
        #: Named outputs in results, in addition to the coordinates.
        self.quantities: dict[str, Quantity] = {}
        #: Default treatment of redundant constraints in a run: "error" or "auto".
        self.redundancy_policy = "error"
        #: Pairs of bounding spheres of bodies in contact, checked for tunnelling during a run.
        self.swept_pairs: tuple[Any, ...] = ()
        #: Coordinate and velocity constraint of every state of a controller or an actuator.
        self.controller_states: tuple[tuple[int, int], ...] = ()
        #: Constraints of the joints of a spanning tree of bodies, which are independent.
        self.tree_constraints: Callable[[], Sequence[int]] = tuple
        #: Parameter indices of the commands of sampled controllers; the commands are part of the state.
        self.control_indices: tuple[int, ...] = ()
        self.controllers: tuple[Controller, ...] = ()
        self.inputs: dict[str, InputEntry] = {}
        #: Events of the model, such as impacts at joint stops and rigid contacts.
        self.model_events: tuple[GuardedEvent, ...] = ()
        self.symmetries = {
            name: trace_generator(name, function, self.n) for name, function in (symmetries or {}).items()
        }

    # -- parts --------------------------------------------------------------------------------------------------------
    @property
    def external_force(self) -> ExternalForce | None:
        """Compiled external force on all coordinates.

        Returns
        -------
        ExternalForce or None
            The force, which may be set after construction, before the next run.
        """
        return self._external_force

    @external_force.setter
    def external_force(self, force: ExternalForce | None) -> None:
        self._external_force = force
        for name in ("fingerprint", "conservative", "_nonconservative_terms"):  # cached, and dependent on the force
            self.__dict__.pop(name, None)

    def _trace_types(self) -> tuple[ElementType, ...]:
        """Return the type of each element; elements with the same functions are traced once."""
        types_by_key: dict[Any, ElementType] = {}
        types = []
        for e in self.elements:
            key = tuple(e.functions.items()), e.type_key
            if key not in types_by_key:
                types_by_key[key] = element_type(e, self.model_parameters)
            types.append(types_by_key[key])
        return tuple(types)

    def _constraint_names(self) -> tuple[str, ...]:
        names: list[str] = []
        for i, (element, model) in enumerate(zip(self.elements, self.element_types, strict=True)):
            element_names = element.constraint_names
            if element_names is not None and len(element_names) != model.m:
                raise ModelError(f"{len(element_names)} constraint names for {model.m} constraints")
            if len(self.elements) == 1:
                names += element_names or [f"g[{j}]" for j in range(model.m)]
            else:
                prefix = element.name or f"element {i}"
                names += [f"{prefix}: {element_names[j] if element_names else f'g[{j}]'}" for j in range(model.m)]
        return tuple(names)

    def _quaternions(self, quaternions: Sequence[Sequence[int | str]] | None) -> tuple[tuple[int, ...], ...]:
        if quaternions is None:
            declared = zip(self.elements, self.element_dofs, strict=True)
            dofs = [tuple(index[i] for i in quat) for element, index in declared for quat in element.quaternions]
        else:
            dofs = [resolve_indices(quat, self.coordinates, "a quaternion") for quat in quaternions]
        if any(len(quat) != 4 for quat in dofs):
            raise ModelError("a quaternion has four coordinates, scalar first")
        return tuple(dofs)

    def _unit_norm_constraints(self) -> tuple[int, ...]:
        """Return the index of the unit-norm constraint (q.q - 1)/2 = 0 of each quaternion."""
        if not self.quaternions:
            return ()
        elements_at_dof: dict[int, list[int]] = {}  # elements with constraints, by coordinate
        for e, (model, index) in enumerate(zip(self.element_types, self.element_dofs, strict=True)):
            for i in index if model.m else ():
                elements_at_dof.setdefault(i, []).append(e)
        return tuple(self._unit_norm_constraint(quat, elements_at_dof.get(quat[0], [])) for quat in self.quaternions)

    def _unit_norm_constraint(self, quat: tuple[int, ...], elements: Sequence[int]) -> int:
        for e in elements:
            index = self.element_dofs[e]
            if set(quat) <= set(index):
                constraint = self.element_types[e].unit_norm_constraint([index.index(i) for i in quat])
                if constraint is not None:
                    return self.element_constraints[e].start + constraint
        names = " ".join(self.coordinates[i] for i in quat)
        raise ModelError(f"the quaternion ({names}) needs the unit-norm constraint (q.q - 1)/2 = 0")

    @functools.cached_property
    def element_constraints(self) -> tuple[slice, ...]:
        """Slices of the constraints of each element."""
        offsets = np.cumsum([0] + [model.m for model in self.element_types])
        return tuple(slice(int(a), int(b)) for a, b in itertools.pairwise(offsets))

    @property
    def uses_sparse_path(self) -> bool:
        return self.n > SPARSE_THRESHOLD and not self.has_velocity_constraints

    @property
    def is_nbody(self) -> bool:
        """True if the system is a gravitational N-body problem without other forces, see `PointMasses`."""
        return False

    @functools.cached_property
    def element_groups(self) -> tuple[ElementGroup, ...]:
        """Elements grouped by type, with dof maps."""
        return group_elements(self)

    @functools.cached_property
    def position_constraints(self) -> tuple[int, ...]:
        """Indices of the position-level constraints; all other constraints are at velocity level."""
        types_and_constraints = zip(self.element_types, self.element_constraints, strict=True)
        return tuple(
            constraints.start + i
            for model, constraints in types_and_constraints
            for i in range(model.n_position_constraints)
        )

    # -- parameters ---------------------------------------------------------------------------------------------------
    @functools.cached_property
    def parameter_table(self) -> ParameterTable:
        """Table of the model parameters, followed by the parameters of each element."""
        return ParameterTable(self.model_parameters, [(e.name, e.parameters) for e in self.elements])

    @functools.cached_property
    def element_parameters(self) -> tuple[tuple[int, ...], ...]:
        """Indices of each element's parameters in the parameter vector."""
        offset, indices = self.model_parameters.size, []
        for element in self.elements:
            indices.append((*range(self.model_parameters.size), *range(offset, offset + element.parameters.size)))
            offset += element.parameters.size
        return tuple(indices)

    @functools.cached_property
    def _mass_signs(self) -> MassSigns:
        return MassSigns(self)

    def check_parameters(self, changes: Mapping[str, object], k: np.ndarray) -> None:
        if changes:
            self._mass_signs.check(changes, k)

    # -- interface to a run -------------------------------------------------------------------------------------------
    @property
    def layout(self) -> Layout:
        parts = Layout(q=self.n, v=self.n, p=self.n, supplied_energy=1, dissipated_energy=1, multipliers=self.m)
        return parts.extended(control=len(self.control_indices)) if self.control_indices else parts

    @property
    def view(self) -> SymbolicState:
        from livens.models.equations_of_motion import equations_of_motion

        return equations_of_motion(self)

    def initial_state(
        self, initial_values: Mapping[str, object], k: np.ndarray, t0: float, project: bool, redundant: str
    ) -> InitialState:
        check_initial_value_names(initial_values, ("q0", "v0"), "mechanical system")
        redundant = self.redundancy_policy if redundant == "error" else redundant
        return _initial_state()(
            self, initial_values.get("q0"), initial_values.get("v0"), k, t0=t0, project=project, redundant=redundant
        )

    def monitored_energy(self, conserved: tuple[str, ...]) -> str:
        energies = ("generalized_energy", "hamiltonian", "total_energy")
        invariant = "total_energy" if self.homogeneous_kinetic_energy else "generalized_energy"
        return next((name for name in energies if name in conserved), invariant)

    def energy_scale(self) -> Expr:
        return self.view.observable("kinetic_energy")

    def monitored_constraints(self) -> tuple[Expr, Expr]:
        return self.view.observable("constraint"), self.view.observable("velocity_constraint")

    def velocity_expression(self) -> Expr:
        return self.view.symbols["v"]

    def observable_element_sums(self, name: str) -> ElementSums | None:
        from livens.models import element_sums

        return element_sums.observable_sums(self, name) if self.uses_sparse_path else None

    def monitored_element_sums(self, energy: str, momenta: tuple[str, ...]) -> tuple[ElementSums, IndexTable] | None:
        from livens.models import element_sums

        return element_sums.monitored_sums(self, energy, momenta) if self.uses_sparse_path else None

    def roundoff_element_sums(self, names: Sequence[str]) -> Any:
        from livens.models import element_sums

        return element_sums.roundoff_sums(self, names) if self.uses_sparse_path else None

    def energy_round_off_sums(self) -> ElementSums | None:
        from livens.models import element_sums

        return element_sums.energy_round_off_sums(self) if self.uses_sparse_path else None

    error_norm_variables = ("q", "v")
    #: Key and redundant constraints of the last start with such constraints, see `initialization.redundancy`.
    last_redundancy: tuple[tuple[Hashable, ...], tuple[int, ...]] | None = None

    @functools.cached_property
    def bodies(self) -> dict[str, list[str]]:
        """Coordinate names of the named elements with kinetic energy."""
        return {
            element.name: [self.coordinates[i] for i in index]
            for element, model, index in zip(self.elements, self.element_types, self.element_dofs, strict=True)
            if element.name and not model.T.is_zero()
        }

    def visuals(self, k: np.ndarray) -> list[Visual]:
        """Return the visuals of the elements; moving elements with coordinates x and y are spheres by default."""
        shared = self.model_parameters.unpack(k[: self.model_parameters.size])
        visuals = []
        for element, model, index, parameter_indices in zip(
            self.elements, self.element_types, self.element_dofs, self.element_parameters, strict=True
        ):
            if element.visual is not None:
                local_parameters = element.parameters.unpack(k[list(parameter_indices[self.model_parameters.size :])])
                visuals.append(Visual(element.visual, index, shared | local_parameters, element.name))
            elif not model.T.is_zero():
                visuals += default_visuals(self.coordinates, index)
        return visuals if self._visual is None else [*visuals, Visual(self._visual, range(self.n), shared)]

    def velocity_derivatives(self, state: InitialState, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the derivatives of v(q, p), defined by ``p = dT/dv(q, v)``, with respect to q and p.

        Parameters
        ----------
        state : InitialState
            State with q, v, p and t.
        k : ndarray of shape (parameter_count,)
            Parameter vector.

        Returns
        -------
        tuple of ndarray
            Partial derivatives dv/dq and dv/dp, each of shape (n, n).

        Raises
        ------
        InputError
            If the mass matrix is singular.
        """
        from livens.models.equations_of_motion import equations_of_motion

        if not self.regular_mass:
            raise InputError("symplecticity is not defined: the mass matrix is singular, (q, p) does not determine v")
        d = equations_of_motion(self)
        derivatives = d.function(ca.horzcat(ca.jacobian(d.fibre_derivative, d.v), ca.jacobian(d.fibre_derivative, d.q)))
        mass, dp_dq = np.split(np.array(derivatives(state["q"], state["v"], state["p"], state.t, k)), 2, axis=1)
        return -np.linalg.solve(mass, dp_dq), np.linalg.inv(mass)

    def is_invariant(self, name: str, k: np.ndarray) -> bool:
        from livens.models.symmetry_check import has_symmetry

        return has_symmetry(self, name, k)

    def is_guaranteed_by(self, scheme: ConservationGuarantees | None, name: str, k: np.ndarray | None = None) -> bool:
        """Return whether an observable is conserved, by name or as a momentum map with generators linear in q."""
        if self.has_rotors and name.endswith("energy"):
            return False  # the conserved energy contains the corrected kinetic energy of the rotors
        if scheme is None or name in scheme.conserves or "momentum_maps" not in scheme.conserves:
            return super().is_guaranteed_by(scheme, name, k)
        return name in self.symmetries and keeps_momentum(scheme, self, name)

    def fingerprint_data(self) -> Sequence[object]:
        """Return the element types, their dof maps, the symmetry generators and the quaternions."""
        type_index = {
            digest: i for i, digest in enumerate(dict.fromkeys(model.fingerprint for model in self.element_types))
        }
        elements = [
            (
                type_index[model.fingerprint],
                index,
                element.name,
                bool(getattr(element, "expensive", False)),
                element.extra_fingerprint(),
            )
            for element, model, index in zip(self.elements, self.element_types, self.element_dofs, strict=True)
        ]
        symmetries = [generator.serialize() for generator in self.symmetries.values()]
        data: tuple[Any, ...] = (
            list(type_index),
            elements,
            symmetries,
            self.quaternions,
            bool(self.frames),
            self.redundancy_policy,
        )
        if any(element.beta is not None for element in self.elements):
            data = (*data, [element.beta for element in self.elements])
        if self.external_force is not None:
            data = (*data, *self.external_force.fingerprint_data())
        return (*data, self.control_indices) if self.control_indices else data

    @functools.cached_property
    def formulations(self) -> tuple[str, ...]:
        """Formulations: elements, and phase space for unconstrained systems with quadratic T and regular mass."""
        if self.m or not self.quadratic_kinetic_energy or not self.regular_mass:
            return ("elements",)
        return ("elements", "phase space")

    @property
    def default_scheme(self) -> str:  # type: ignore[override]
        return "lie-em" if self.frames else "livens-em"

    @property
    def assembly_size(self) -> int:
        return self.n + self.m

    def symmetry_generator(self, name: str) -> ca.Function:
        """Return the generator of a named symmetry.

        Parameters
        ----------
        name : str
            Name among `symmetries`.

        Returns
        -------
        casadi.Function
            Generators ``xi(q)`` as columns.

        Raises
        ------
        InputError
            If the system has no symmetry of this name.
        """
        if name not in self.symmetries:
            if not self.symmetries:
                raise InputError(f"the system declares no symmetry, so '{name}' is not defined")
            raise InputError(f"the system has no symmetry named '{name}'{suggestion(name, self.symmetries)}")
        return self.symmetries[name]

    def __str__(self) -> str:
        names = " ".join(self.coordinates) if self.n <= 12 else f"{self.coordinates[0]} ... {self.coordinates[-1]}"
        head = f"System with {_count(self.n, 'coordinate')} ({names}) and {_count(self.m, 'constraint')}"
        lines = [head]
        if len(self.elements) > 1:
            lines.append(f"  elements         {len(self.elements)} of {_count(len(self.distinct_types), 'type')}")
        mass = f"{'constant' if self.constant_mass else 'configuration-dependent'}, "
        lines.append(f"  mass matrix      {mass}{'regular' if self.regular_mass else 'singular'}")
        lines.append(f"  separable        {'yes' if self.separable else 'no'}")
        lines.append(f"  conservative     {self._conservative_text()}")
        if self.symmetries:
            lines.append(f"  symmetries       {', '.join(self.symmetries)}")
        if self.model_parameters.values:
            values = ", ".join(f"{name} = {value}" for name, value in self.model_parameters.to_python().items())
            lines.append(f"  parameters       {values}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<livens.System: {_count(self.n, 'coordinate')}, {_count(self.m, 'constraint')}>"


def _count(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"


def coordinate_scale_groups(system: System) -> tuple[int, ...]:
    """Return for every coordinate the first coordinate of its group, whose largest magnitude is the scale of errors.

    Positions of rigid bodies, directors, unit quaternions and all other coordinates are one group each: a coordinate
    that passes through zero does not need a smaller error than its neighbours.
    """
    groups = np.zeros(system.n, dtype=np.int64)
    for frame in system.frames:
        groups[list(frame.position)] = 1
        for director in frame.directors:
            groups[list(director)] = 2
    for quaternion in system.quaternions:
        groups[list(quaternion)] = 3
    return tuple(int(np.argmax(groups == group)) for group in groups)
