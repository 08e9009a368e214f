"""Mechanical systems in Livens form: sums of elements on dof maps."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np

from livens.errors import InputError, ModelError, suggestion
from livens.expressions.layout import Layout
from livens.expressions.names import Names, names_of
from livens.expressions.parameters import Parameters, ParameterTable
from livens.expressions.read import ModelFunction
from livens.models.black_box import BlackBox
from livens.models.capabilities import Capabilities
from livens.models.controller import Controller
from livens.models.element import Element, ElementModel, Through, read_type, resolve
from livens.models.frames import frames_of
from livens.models.groups import TypeGroup, grouped
from livens.models.model import InitialState, Model, Promising, View, only
from livens.models.quantity import Quantity
from livens.models.rates import Turning
from livens.models.scene import Look, particles
from livens.models.stop import Stop
from livens.models.symmetry import has_linear_generators, momentum_generator

#: Number of coordinates above which a system is set up with sparse matrices and one kernel per element type.
LARGE = 250


@functools.cache
def _initial_state() -> Callable[..., InitialState]:
    """Return `initial_state`; the import is deferred (circular) and cached for speed."""
    from livens.models.start import initial_state

    return initial_state


class System(Capabilities, Model):
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
        Compiled force on all coordinates, for schemes that treat expensive forces explicitly.

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

    kind = "System"
    #: Compiled external force on all coordinates, treated as expensive.
    box: BlackBox | None = None

    def __init__(
        self,
        coordinates: Names,
        *,
        kinetic: ModelFunction | Through | None = None,
        mass: ModelFunction | None = None,
        potential: ModelFunction | Through | None = None,
        constraints: ModelFunction | None = None,
        dissipation: ModelFunction | None = None,
        forces: ModelFunction | None = None,
        velocity_constraints: ModelFunction | Turning | None = None,
        parameters: Mapping[str, Any] | None = None,
        elements: Sequence[Element] | None = None,
        symmetries: Mapping[str, Callable[..., Any]] | None = None,
        constraint_names: Sequence[str] | None = None,
        quaternions: Sequence[Sequence[int | str]] | None = None,
        frames: bool = False,
        look: ModelFunction | None = None,
        black_box: BlackBox | None = None,
    ) -> None:
        self.coordinates = names_of("coordinates", coordinates, "q", one="coordinate")
        if black_box is not None and not isinstance(black_box, BlackBox):
            raise ModelError(f"external_force must be a livens.ExternalForce, got {black_box!r}")
        self.box = black_box
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
            fours = [resolve(four, self.coordinates, "a quaternion") for four in quaternions or ()]
            given: dict[str, Any] = dict(constraint_names=constraint_names, quaternions=fours, look=look)
            elements = [Element(range(self.n), **given, **functions)]
            quaternions = look = None  # now declared by the element
        elif any(f is not None for f in functions.values()) or constraint_names is not None:
            raise ModelError("give either model functions or elements, not both")
        if not elements:
            raise ModelError("a system needs at least one element")
        if strange := [one for one in elements if not isinstance(one, Element)]:
            raise ModelError(f"elements must be a list of elements, but one is {strange[0]!r}")
        self.elements = tuple(elements)
        self._look = look
        self.shared = Parameters(parameters)
        self.models = self._read()
        places = {name: i for i, name in enumerate(self.coordinates)}
        self.indices = tuple(
            resolve(e.coordinates, places, e.name or f"element {i}") for i, e in enumerate(self.elements)
        )
        if all(model.T.is_zero() for model in self.models):
            raise ModelError("the system has no kinetic energy: give kinetic or mass")
        self.constraint_names = self._constraint_names()
        self.m = len(self.constraint_names)
        self.quaternions = self._quaternions(quaternions)
        #: Index of the unit-norm constraint of each quaternion.
        self.quaternion_constraints = self._unit_lengths()
        if symmetries is not None and not isinstance(symmetries, Mapping):
            raise ModelError(f"symmetries must map names to functions, got {symmetries!r}")
        if not isinstance(frames, bool):
            raise ModelError(f"frames must be True or False, got {frames!r}")
        self.frames = frames_of(self) if frames else ()
        #: Named outputs in results, in addition to the coordinates.
        self.quantities: dict[str, Quantity] = {}
        #: Default treatment of redundant constraints in a run: "error" or "auto".
        self.redundant = "error"
        #: Parameter indices of the commands of sampled controllers; the commands are part of the state.
        self.controls: tuple[int, ...] = ()
        self.controllers: tuple[Controller, ...] = ()
        #: Events of the model, such as impacts at joint stops.
        self.stops: tuple[Stop, ...] = ()
        #: Names of rigid contacts, whose events must be passed to the run.
        self.bounces: Sequence[str] = ()
        self.symmetries = {
            name: momentum_generator(name, function, self.n) for name, function in (symmetries or {}).items()
        }

    # -- parts --------------------------------------------------------------------------------------------------------
    def _read(self) -> tuple[ElementModel, ...]:
        """Return the type of each element; elements with the same functions are traced once."""
        read: dict[Any, ElementModel] = {}
        found = []
        for e in self.elements:
            key = tuple(e.functions.items()), e.kind
            if key not in read:
                read[key] = read_type(e, self.shared)
            found.append(read[key])
        return tuple(found)

    def _constraint_names(self) -> tuple[str, ...]:
        names: list[str] = []
        for i, (element, model) in enumerate(zip(self.elements, self.models, strict=True)):
            own = element.constraint_names
            if own is not None and len(own) != model.m:
                raise ModelError(f"{len(own)} constraint names for {model.m} constraints")
            if len(self.elements) == 1:
                names += own or [f"g[{j}]" for j in range(model.m)]
            else:
                prefix = element.name or f"element {i}"
                names += [f"{prefix}: {own[j] if own else f'g[{j}]'}" for j in range(model.m)]
        return tuple(names)

    def _quaternions(self, given: Sequence[Sequence[int | str]] | None) -> tuple[tuple[int, ...], ...]:
        if given is None:
            declared = zip(self.elements, self.indices, strict=True)
            found = [tuple(index[i] for i in four) for element, index in declared for four in element.quaternions]
        else:
            found = [resolve(four, self.coordinates, "a quaternion") for four in given]
        if any(len(four) != 4 for four in found):
            raise ModelError("a quaternion has four coordinates, scalar first")
        return tuple(found)

    def _unit_lengths(self) -> tuple[int, ...]:
        """Return the index of the unit-norm constraint (q.q - 1)/2 = 0 of each quaternion."""
        if not self.quaternions:
            return ()
        touching: dict[int, list[int]] = {}  # elements with constraints, by coordinate
        for e, (model, index) in enumerate(zip(self.models, self.indices, strict=True)):
            for i in index if model.m else ():
                touching.setdefault(i, []).append(e)
        return tuple(self._unit_length(four, touching.get(four[0], [])) for four in self.quaternions)

    def _unit_length(self, four: tuple[int, ...], elements: Sequence[int]) -> int:
        for e in elements:
            index = self.indices[e]
            if set(four) <= set(index):
                found = self.models[e].unit_length([index.index(i) for i in four])
                if found is not None:
                    return self.multiplier_slices[e].start + found
        names = " ".join(self.coordinates[i] for i in four)
        raise ModelError(f"the quaternion ({names}) needs the unit-norm constraint (q.q - 1)/2 = 0")

    @functools.cached_property
    def multiplier_slices(self) -> tuple[slice, ...]:
        """Slices of the constraints of each element."""
        ends = np.cumsum([0] + [model.m for model in self.models])
        return tuple(slice(int(a), int(b)) for a, b in itertools.pairwise(ends))

    @property
    def large(self) -> bool:
        return self.n > LARGE and not self.rolls

    @property
    def planetary(self) -> bool:
        """Whether the system is a gravitational N-body problem without other forces, see `PointMasses`."""
        return False

    @functools.cached_property
    def groups(self) -> tuple[TypeGroup, ...]:
        """Elements grouped by type, with dof maps."""
        return grouped(self)

    @functools.cached_property
    def position_constraints(self) -> tuple[int, ...]:
        """Indices of the position-level constraints; all other constraints are at velocity level."""
        both = zip(self.models, self.multiplier_slices, strict=True)
        return tuple(own.start + i for model, own in both for i in range(model.on_position))

    # -- parameters ---------------------------------------------------------------------------------------------------
    @functools.cached_property
    def parameter_table(self) -> ParameterTable:
        """Table of the model parameters, followed by the parameters of each element."""
        return ParameterTable(self.shared, [(e.name, e.parameters) for e in self.elements])

    @functools.cached_property
    def parameter_indices(self) -> tuple[tuple[int, ...], ...]:
        """Indices of each element's parameters in the parameter vector."""
        first, found = self.shared.size, []
        for element in self.elements:
            found.append((*range(self.shared.size), *range(first, first + element.parameters.size)))
            first += element.parameters.size
        return tuple(found)

    # -- interface to a run -------------------------------------------------------------------------------------------
    @property
    def layout(self) -> Layout:
        parts = Layout(q=self.n, v=self.n, p=self.n, supplied_energy=1, dissipated_energy=1, multipliers=self.m)
        return parts.with_(control=len(self.controls)) if self.controls else parts

    @property
    def view(self) -> View:
        from livens.models.summed import dynamics

        return dynamics(self)

    def start(self, given: Mapping[str, Any], k: np.ndarray, t0: float, project: bool, redundant: str) -> InitialState:
        only(given, ("q0", "v0"), "mechanical system")
        redundant = self.redundant if redundant == "error" else redundant
        return _initial_state()(self, given.get("q0"), given.get("v0"), k, t0=t0, project=project, redundant=redundant)

    def watched_energy(self, conserved: tuple[str, ...]) -> str:
        energies = ("generalized_energy", "hamiltonian", "total_energy")
        return next((name for name in energies if name in conserved), "total_energy")

    def magnitude(self) -> Any:
        return self.view.expression("kinetic_energy")

    def watched_constraints(self) -> tuple[Any, Any]:
        return self.view.expression("constraint"), self.view.expression("velocity_constraint")

    def velocities(self) -> Any:
        return self.view.symbols["v"]

    def observable_sums(self, name: str) -> Any:
        from livens.models import columns

        return columns.named(self, name) if self.large else None

    def watched_sums(self, energy: str, momenta: tuple[str, ...]) -> Any:
        from livens.models import columns

        return columns.watched(self, energy, momenta) if self.large else None

    def term_sums(self, names: Sequence[str]) -> Any:
        from livens.models import columns

        return columns.term_columns(self, names) if self.large else None

    error_variables = ("q", "v")

    @functools.cached_property
    def bodies(self) -> dict[str, list[str]]:
        """Coordinate names of the named elements with kinetic energy."""
        return {
            element.name: [self.coordinates[i] for i in index]
            for element, model, index in zip(self.elements, self.models, self.indices, strict=True)
            if element.name and not model.T.is_zero()
        }

    def looks(self, k: np.ndarray) -> list[Look]:
        """Return the visuals of the elements; moving elements with coordinates x and y are spheres by default."""
        shared = self.shared.named(k[: self.shared.size])
        found = []
        for element, model, index, where in zip(
            self.elements, self.models, self.indices, self.parameter_indices, strict=True
        ):
            if element.look is not None:
                own = element.parameters.named(k[list(where[self.shared.size :])])
                found.append(Look(element.look, index, shared | own, element.name))
            elif not model.T.is_zero():
                found += particles(self.coordinates, index)
        return found if self._look is None else [*found, Look(self._look, range(self.n), shared)]

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
        dv_dq, dv_dp : ndarray of shape (n, n)
            Partial derivatives of the velocities.

        Raises
        ------
        InputError
            If the mass matrix is singular.
        """
        from livens.models.summed import dynamics

        if not self.regular_mass:
            raise InputError("symplecticity is not defined: the mass matrix is singular, (q, p) does not determine v")
        d = dynamics(self)
        both = d.function(ca.horzcat(ca.jacobian(d.fibre_derivative, d.v), ca.jacobian(d.fibre_derivative, d.q)))
        mass, turning = np.split(np.array(both(state["q"], state["v"], state["p"], state.t, k)), 2, axis=1)
        return -np.linalg.solve(mass, turning), np.linalg.inv(mass)

    def conserves(self, name: str, k: np.ndarray) -> bool:
        from livens.models.noether import is_symmetry

        return is_symmetry(self, name, k)

    def promised(self, scheme: Promising | None, name: str, k: np.ndarray | None = None) -> bool:
        """Return whether an observable is conserved, by name or as a momentum map with generators linear in q."""
        if self.has_rotors and name.endswith("energy"):
            return False  # the conserved energy contains the corrected kinetic energy of the rotors
        if scheme is None or name in scheme.conserves or "momentum_maps" not in scheme.conserves:
            return super().promised(scheme, name, k)
        return name in self.symmetries and has_linear_generators(self.symmetries[name])

    def content(self) -> Sequence[Any]:
        """Return the element types, their dof maps, the symmetry generators and the quaternions."""
        number = {digest: i for i, digest in enumerate(dict.fromkeys(model.digest for model in self.models))}
        elements = [
            (number[model.digest], index, element.name, bool(getattr(element, "expensive", False)), element.more())
            for element, model, index in zip(self.elements, self.models, self.indices, strict=True)
        ]
        symmetries = [generator.serialize() for generator in self.symmetries.values()]
        told: tuple[Any, ...] = list(number), elements, symmetries, self.quaternions, bool(self.frames), self.redundant
        if any(element.beta is not None for element in self.elements):
            told = (*told, [element.beta for element in self.elements])
        if self.box is not None:
            told = (*told, *self.box.content())
        return (*told, self.controls) if self.controls else told

    @functools.cached_property
    def forms(self) -> tuple[str, ...]:
        """Formulations: elements, and phase space for unconstrained systems with quadratic T and regular mass."""
        if self.m or not self.quadratic_kinetic_energy or not self.regular_mass:
            return ("elements",)
        return ("elements", "phase space")

    @property
    def usual_scheme(self) -> str:  # type: ignore[override]
        return "lie-em" if self.frames else "livens-em"

    def momentum_symmetry(self, name: str) -> Any:
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
            lines.append(f"  elements         {len(self.elements)} of {_count(len(self._distinct), 'type')}")
        mass = f"{'constant' if self.constant_mass else 'configuration-dependent'}, "
        lines.append(f"  mass matrix      {mass}{'regular' if self.regular_mass else 'singular'}")
        lines.append(f"  separable        {'yes' if self.separable else 'no'}")
        lines.append(f"  conservative     {self._why_not_conservative()}")
        if self.symmetries:
            lines.append(f"  symmetries       {', '.join(self.symmetries)}")
        if self.shared.values:
            values = ", ".join(f"{name} = {value}" for name, value in self.shared.plain().items())
            lines.append(f"  parameters       {values}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<livens.System: {_count(self.n, 'coordinate')}, {_count(self.m, 'constraint')}>"


def _count(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"
