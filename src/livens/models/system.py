"""A mechanical system in Livens form: a sum of elements on index maps."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np

from livens.errors import InputError, ModelError, suggestion
from livens.expressions.layout import Layout
from livens.expressions.parameters import Parameters
from livens.models.element import Element, ElementModel, ModelFunction, Through, resolve
from livens.models.model import InitialState, Model, View, only
from livens.models.symmetry import momentum_generator


class System(Model):
    """A mechanical system, written as energies and constraints.

    A model function names what it needs among ``q v t k`` (coordinates, velocities, time, parameters) and gets just
    that. Derivatives are never asked for. `coordinates` are names ("x y z") or a number. Instead of the functions, a
    list of `elements` may be given, each on its own few coordinates.

    `symmetries` name momentum maps: each is a function of q that returns one generator ``xi(q)`` or a list of them;
    the momentum is ``p . xi(q)``. See `livens.symmetry` for translations and rotations.

    `quaternions` says which coordinates, four by four, are unit quaternions; by default those the elements declare.

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

    def __init__(
        self,
        coordinates: str | int | Sequence[str],
        *,
        kinetic: ModelFunction | Through | None = None,
        mass: ModelFunction | None = None,
        potential: ModelFunction | Through | None = None,
        constraints: ModelFunction | None = None,
        dissipation: ModelFunction | None = None,
        forces: ModelFunction | None = None,
        parameters: Mapping[str, Any] | None = None,
        elements: Sequence[Element] | None = None,
        symmetries: Mapping[str, Callable[..., Any]] | None = None,
        constraint_names: Sequence[str] | None = None,
        quaternions: Sequence[Sequence[int | str]] | None = None,
    ) -> None:
        self.coordinates = _coordinate_names(coordinates)
        self.n = len(self.coordinates)
        functions: dict[str, Any] = dict(
            kinetic=kinetic, mass=mass, potential=potential, constraints=constraints, dissipation=dissipation,
            forces=forces,
        )  # fmt: skip
        if elements is None:
            fours = [resolve(four, self.coordinates, "a quaternion") for four in quaternions or ()]
            elements = [Element(range(self.n), constraint_names=constraint_names, quaternions=fours, **functions)]
            quaternions = None  # now declared by the element
        elif any(f is not None for f in functions.values()) or constraint_names is not None:
            raise ModelError("give either model functions or elements, not both")
        if not elements:
            raise ModelError("a system needs at least one element")
        self.elements = tuple(elements)
        self.shared = Parameters(parameters)
        self._types: dict[Any, ElementModel] = {}
        self.models = tuple(self._model(e) for e in self.elements)
        self.indices = tuple(
            resolve(e.coordinates, self.coordinates, e.name or f"element {i}") for i, e in enumerate(self.elements)
        )
        if all(model.T.is_zero() for model in self.models):
            raise ModelError("the system has no kinetic energy: give kinetic or mass")
        self.constraint_names = self._constraint_names()
        self.m = len(self.constraint_names)
        self.quaternions = self._quaternions(quaternions)
        #: The number of each quaternion's constraint of unit length.
        self.quaternion_constraints = tuple(self._unit_length(four) for four in self.quaternions)
        self.symmetries = {
            name: momentum_generator(name, function, self.n) for name, function in (symmetries or {}).items()
        }

    # -- parts --------------------------------------------------------------------------------------------------------
    def _model(self, element: Element) -> ElementModel:
        """Elements with the same functions are of one type and are read once."""
        key = (
            tuple(element.functions.items()), len(element.coordinates), element.parameters.shapes, element.quaternions,
        )  # fmt: skip
        if key not in self._types:
            self._types[key] = ElementModel(element, self.shared)
        return self._types[key]

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

    def _unit_length(self, four: tuple[int, ...]) -> int:
        """The number of the constraint (q.q - 1)/2 = 0 of a quaternion."""
        for model, index, place in zip(self.models, self.indices, self.multiplier_slices, strict=True):
            if not set(four) <= set(index):
                continue
            q = model.q[[index.index(i) for i in four]]
            gap = ca.Function("gap", [model.q, model.t, model.k], [model.g - (ca.dot(q, q) - 1) / 2])
            random = np.random.default_rng(4)
            samples = [[random.uniform(0.5, 1.5, s.shape) for s in (model.q, model.t, model.k)] for _ in range(3)]
            gaps = np.abs([np.array(gap(*sample)).ravel() for sample in samples]).max(axis=0)
            for j in np.flatnonzero(gaps < 1e-13):
                return place.start + int(j)
        names = " ".join(self.coordinates[i] for i in four)
        raise ModelError(f"the quaternion ({names}) needs the constraint (q.q - 1)/2 = 0 of unit length")

    @functools.cached_property
    def multiplier_slices(self) -> tuple[slice, ...]:
        """Which of the system's constraints belong to which element."""
        ends = np.cumsum([0] + [model.m for model in self.models])
        return tuple(slice(int(a), int(b)) for a, b in itertools.pairwise(ends))

    # -- parameters ---------------------------------------------------------------------------------------------------
    @property
    def parameter_count(self) -> int:
        return self.shared.size + sum(e.parameters.size for e in self.elements)

    def parameter_vector(self, changes: Mapping[str, Any] | None = None) -> np.ndarray:
        """All parameters as the compiled step reads them: the system's, then each element's."""
        shared = self.shared.changed(changes or {})
        return np.concatenate([shared.vector(), *(e.parameters.vector() for e in self.elements)])

    @functools.cached_property
    def parameter_indices(self) -> tuple[tuple[int, ...], ...]:
        """Where each element finds its k in the parameter vector."""
        first, found = self.shared.size, []
        for element in self.elements:
            found.append((*range(self.shared.size), *range(first, first + element.parameters.size)))
            first += element.parameters.size
        return tuple(found)

    # -- what a run asks for ------------------------------------------------------------------------------------------
    @property
    def layout(self) -> Layout:
        return Layout(q=self.n, v=self.n, p=self.n, supplied_energy=1, dissipated_energy=1, multipliers=self.m)

    @property
    def view(self) -> View:
        from livens.models.summed import dynamics

        return dynamics(self)

    def start(self, given: Mapping[str, Any], k: np.ndarray, t0: float, project: bool, redundant: str) -> InitialState:
        from livens.models.start import initial_state

        only(given, ("q0", "v0"), "mechanical system")
        return initial_state(self, given["q0"], given["v0"], k, t0=t0, project=project, redundant=redundant)

    def watched_energy(self, conserved: tuple[str, ...]) -> str:
        energies = ("generalized_energy", "hamiltonian", "total_energy")
        return next((name for name in energies if name in conserved), "total_energy")

    def magnitude(self) -> Any:
        return self.view.expression("kinetic_energy")

    def watched_constraints(self) -> tuple[Any, Any]:
        return self.view.expression("constraint"), self.view.expression("velocity_constraint")

    def conserves(self, name: str, k: np.ndarray) -> bool:
        from livens.models.noether import is_symmetry

        return is_symmetry(self, name, k)

    # -- properties ---------------------------------------------------------------------------------------------------
    @functools.cached_property
    def constant_mass(self) -> bool:
        """The mass matrix depends on no coordinate (and the kinetic energy is quadratic in v)."""
        return all(
            not ca.depends_on(ca.hessian(model.T, model.v)[0], ca.vertcat(model.q, model.v)) for model in self._distinct
        )

    @property
    def has_quaternions(self) -> bool:
        return bool(self.quaternions)

    @functools.cached_property
    def regular_mass(self) -> bool:
        """The mass matrix has full rank at generic configurations."""
        return self._mass_rank(augmented=False) == self.n

    @functools.cached_property
    def regular_augmented_mass(self) -> bool:
        """The mass matrix has full rank, with ``q q^T`` added for every unit quaternion (S004 eq. 140)."""
        return self._mass_rank(augmented=True) == self.n

    @functools.cached_property
    def left_invariant_mass(self) -> bool:
        """M depends on unit quaternions only, as ``Q_l M Q_l^T``, and no two elements have mass on one coordinate."""
        moved: set[int] = set()
        for model, index in zip(self.models, self.indices, strict=True):
            if model.T.is_zero():
                continue
            inside = [i for four in model.quaternions for i in four]
            outside = [i for i in range(model.n) if i not in inside]
            M = ca.hessian(model.T, model.v)[0]
            rest = ca.vertcat(model.q[outside], model.v)
            mixed = M[inside, outside] if inside and outside else ca.SX(0, 0)
            if moved & set(index) or ca.depends_on(M, rest) or mixed.nnz():
                return False
            if outside and ca.depends_on(M[outside, outside], model.q):
                return False
            moved |= set(index)
        return True

    def _mass_rank(self, augmented: bool) -> int:
        q, v, k = ca.SX.sym("q", self.n), ca.SX.sym("v", self.n), ca.SX.sym("k", self.parameter_count)
        kinetic = ca.SX(0)
        for model, index, where in zip(self.models, self.indices, self.parameter_indices, strict=True):
            local = ca.Function("T", [model.q, model.v, model.k], [model.T])
            kinetic += local(q[list(index)], v[list(index)], k[list(where)])
        if augmented:
            kinetic += sum(ca.dot(q[list(four)], v[list(four)]) ** 2 for four in self.quaternions)
        mass = ca.Function("M", [q, v, k], [ca.hessian(kinetic, v)[0]])
        values, random = self.parameter_vector(), np.random.default_rng(1)
        for _ in range(5):
            matrix = np.array(mass(random.uniform(0.5, 1.5, self.n), random.uniform(0.5, 1.5, self.n), values))
            if np.all(np.isfinite(matrix)):
                size = np.sqrt(np.abs(np.diag(matrix)))  # a mass of 1e-40 beside one of 1 is small, not none
                size[size == 0] = 1.0
                return int(np.linalg.matrix_rank(matrix / np.outer(size, size)))
        raise ModelError("the mass matrix is not finite at any of five sample configurations")

    @functools.cached_property
    def separable(self) -> bool:
        """The kinetic energy depends on v alone, so energy is a sum of a part in v and a part in q."""
        return all(not ca.depends_on(model.T, model.q) for model in self._distinct)

    @functools.cached_property
    def autonomous(self) -> bool:
        """Nothing depends on time."""
        return not any(
            ca.depends_on(ca.vertcat(model.V, model.R, model.F, model.g), model.t) for model in self._distinct
        )

    @functools.cached_property
    def scleronomic(self) -> bool:
        """No constraint depends on time."""
        return not any(ca.depends_on(model.g, model.t) for model in self._distinct)

    @functools.cached_property
    def conservative(self) -> bool:
        """No dissipation, no applied forces, nothing depends on time."""
        return self.autonomous and all(model.R.is_zero() and model.F.nnz() == 0 for model in self._distinct)

    @property
    def _distinct(self) -> list[ElementModel]:
        return list(self._types.values())

    def momentum_symmetry(self, name: str) -> Any:
        """The generator of a named symmetry."""
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
            lines.append(f"  elements         {len(self.elements)} of {_count(len(self._types), 'type')}")
        mass = f"{'constant' if self.constant_mass else 'configuration-dependent'}, "
        lines.append(f"  mass matrix      {mass}{'regular' if self.regular_mass else 'singular'}")
        lines.append(f"  separable        {'yes' if self.separable else 'no'}")
        lines.append(f"  conservative     {self._why_not_conservative()}")
        if self.symmetries:
            lines.append(f"  symmetries       {', '.join(self.symmetries)}")
        if self.shared.values:
            values = ", ".join(f"{name} = {value}" for name, value in self.parameters.items())
            lines.append(f"  parameters       {values}")
        return "\n".join(lines)

    def _why_not_conservative(self) -> str:
        reasons = [
            word
            for word, holds in {
                "dissipation": any(not model.R.is_zero() for model in self._distinct),
                "applied forces": any(model.F.nnz() > 0 for model in self._distinct),
                "time-dependent": not self.autonomous,
            }.items()
            if holds
        ]
        return f"no ({', '.join(reasons)})" if reasons else "yes"

    def __repr__(self) -> str:
        return f"<livens.System: {_count(self.n, 'coordinate')}, {_count(self.m, 'constraint')}>"


def _count(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"


def _coordinate_names(coordinates: str | int | Sequence[str]) -> tuple[str, ...]:
    if isinstance(coordinates, bool) or not isinstance(coordinates, (str, int, list, tuple)):
        raise InputError(f"coordinates must be names or a number, got {coordinates!r}")
    if isinstance(coordinates, int):
        names = tuple(f"q{i}" for i in range(coordinates))
    elif isinstance(coordinates, str):
        names = tuple(coordinates.replace(",", " ").split())
    else:
        names = tuple(str(c) for c in coordinates)
    if not names:
        raise InputError("a system needs at least one coordinate")
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        raise InputError(f"coordinate '{twice[0]}' is named twice")
    return names
