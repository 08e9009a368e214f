"""What a run needs to know of a model, whatever its kind: names, parameters, parts of its state, where it starts."""

from __future__ import annotations

import functools
import hashlib
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import casadi as ca
import numpy as np

from livens.errors import InputError
from livens.expressions.layout import Layout
from livens.expressions.parameters import Parameters, ParameterTable
from livens.expressions.read import ModelFunction
from livens.models import html
from livens.models.scene import Look, Scene, scene_of


@dataclass(slots=True)
class InitialState:
    """Where a run starts: the parts of the state by name, consistent and complete."""

    t: float
    values: dict[str, np.ndarray]
    dropped: tuple[int, ...] = ()  # redundant constraints left out

    def __getitem__(self, name: str) -> np.ndarray:
        return self.values[name]


class View:
    """A model as observables see it: symbols of its state by name, in the order of its layout, with t and k."""

    symbols: dict[str, Any]
    t: Any
    k: Any

    @property
    def state(self) -> Any:
        """All symbols of the state as one column."""
        return ca.vertcat(*self.symbols.values())

    def function(self, expression: Any) -> ca.Function:
        """Any expression of this object's symbols as a function of (state..., t, k)."""
        return ca.Function("f", [*self.symbols.values(), self.t, self.k], [expression])

    def expression(self, name: str) -> Any:
        """An observable of the state by its name."""
        raise NotImplementedError

    @property
    def names(self) -> tuple[str, ...]:
        """The observables there are."""
        raise NotImplementedError

    def constraint_forces(self, multipliers: Any) -> Any:
        """The forces of the constraints, of models whose state has multipliers."""
        raise NotImplementedError


class Promising(Protocol):
    """What a model asks of a scheme: the names of what it conserves."""

    @property
    def conserves(self) -> tuple[str, ...]: ...


class Model:
    """Anything that moves. Subclasses say what it is made of.

    A new kind of model says which `forms` of equations it offers, names its `coordinates` and `shared` parameters, and
    has the methods below that raise NotImplementedError; `livens.models.descriptor.DescriptorModel` has most of them.
    """

    kind: ClassVar[str] = "model"  # a word for people, in lists and messages
    coordinates: tuple[str, ...]
    constraint_names: tuple[str, ...] = ()
    algebraic: tuple[str, ...] = ()  # names of algebraic variables
    #: What it looks like, of a model of states: a function of ``x t k`` that returns shapes, see `livens.shapes`.
    look: ModelFunction | None = None
    #: Names of what is conserved beside energy: momentum maps, other invariants.
    symmetries: Mapping[str, Any] = {}
    shared: Parameters
    usual_scheme: ClassVar[str] = "livens-em"

    @property
    def forms(self) -> tuple[str, ...]:
        """The forms its equations can be written in; a scheme runs every model that offers the form it works on.

        "elements" are sums of energies and constraints on a few coordinates each, "phase space" are coordinates and
        momenta with a Hamiltonian, "descriptor" is ``residual(t, x, x') = 0``, "nambu" has n - 1 Hamiltonians.
        """
        return ()

    @property
    def large(self) -> bool:
        """Whether one graph of the whole model, or a dense matrix, is to be avoided."""
        return False

    @property
    def conservative(self) -> bool:
        """Nothing supplies or takes energy."""
        return False

    # -- parameters ---------------------------------------------------------------------------------------------------
    @functools.cached_property
    def parameter_table(self) -> ParameterTable:
        """All parameters with their names, and where they stand in the vector that the compiled step reads."""
        return ParameterTable(self.shared)

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters by name."""
        return self.parameter_table.plain()

    @property
    def parameter_count(self) -> int:
        return self.parameter_table.size

    def parameter_vector(self, changes: Mapping[str, Any] | None = None) -> np.ndarray:
        """All parameters as the compiled step reads them, some of them changed."""
        return self.parameter_table.vector(changes)

    def parameter_values(self, changed: Collection[str], k: np.ndarray) -> dict[str, Any]:
        """What a file has to say of the parameters k of a run: the shared ones, and what else was changed.

        There may be thousands of elements, whose values the model knows: names that are missing have those.
        """
        return self.parameter_table.noted(changed, k)

    # -- what a run asks for ------------------------------------------------------------------------------------------
    @property
    def layout(self) -> Layout:
        """The parts of the state that belong to the model; a scheme may add some."""
        raise NotImplementedError

    @property
    def view(self) -> View:
        """The model as observables see it."""
        raise NotImplementedError

    def start(self, given: Mapping[str, Any], k: np.ndarray, t0: float, project: bool, redundant: str) -> InitialState:
        """Check and complete initial values: `given` has what the user gave of ``q0 v0 p0 x0 y0``."""
        raise NotImplementedError

    @property
    def guards(self) -> Mapping[str, Any]:
        """Expressions of the view that must not cross zero in a run, each with what it means if they do."""
        return {}

    def watched_energy(self, conserved: tuple[str, ...]) -> str:
        """The energy to watch in a run with a scheme that conserves this; an empty name if there is none."""
        return ""

    def magnitude(self) -> Any:
        """How large energies are where the watched one is nearly zero: an expression, such as the kinetic energy."""
        return 0.0

    def watched_constraints(self) -> tuple[Any, Any]:
        """Constraints on position and on velocity level, as expressions of the view; empty ones if there are none."""
        return ca.SX(0, 1), ca.SX(0, 1)

    def observable_sums(self, name: str) -> Any:
        """An observable as `livens.models.columns.ElementColumns`, where one expression of it would be too long."""
        return None

    def watched_sums(self, energy: str, momenta: tuple[str, ...]) -> Any:
        """What is watched in every step of a run, likewise, with the sizes of the momenta."""
        return None

    def term_sums(self, names: Sequence[str]) -> Any:
        """The sizes of the terms that make up observables, likewise, with the columns of each."""
        return None

    def velocities(self) -> Any:
        """What the constraints on velocity level are relative to, an expression of the view; empty if there is none."""
        return ca.SX(0, 1)

    @property
    def error_variables(self) -> tuple[str, ...]:
        """The parts of the state that errors are measured in."""
        return tuple(self.view.symbols)

    def start_from(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """What to give to `start` in order to begin in a state, whose parts are given by name."""
        return {f"{name}0": values[name] for name in self.error_variables if name in values}

    @property
    def bodies(self) -> dict[str, list[str]]:
        """The bodies there are, by name, and their coordinates."""
        return {}

    # -- in a notebook ------------------------------------------------------------------------------------------------
    def _repr_html_(self) -> str:
        """What it is made of."""
        parameters = [f"{name} = {html.cell(value)}" for name, value in self.parameters.items()]
        return html.listing(
            {
                "model": self.kind,
                "coordinates": f"{len(self.coordinates)}: {html.some(self.coordinates)}",
                "bodies": html.some(list(self.bodies)),
                "constraints": f"{len(self.constraint_names)}: {html.some(self.constraint_names)}"
                if self.constraint_names
                else "",
                "algebraic variables": html.some(self.algebraic),
                "parameters": html.some(parameters),
                "usual scheme": self.usual_scheme,
            }
        )

    # -- what it looks like -------------------------------------------------------------------------------------------
    @functools.cached_property
    def scene(self) -> Scene:
        """What it looks like, with its own parameters; empty for a model without geometry."""
        return self.scene_with(self.parameter_vector())

    def scene_with(self, k: np.ndarray) -> Scene:
        """What it looks like with other parameters."""
        return scene_of(len(self.coordinates), self.looks(k))

    def looks(self, k: np.ndarray) -> list[Look]:
        """What its parts look like; a model without geometry has nothing to say."""
        if self.look is None:
            return []
        return [Look(self.look, range(len(self.coordinates)), self.shared.named(k[: self.shared.size]))]

    # -- what is conserved --------------------------------------------------------------------------------------------
    def conserves(self, name: str, k: np.ndarray) -> bool:
        """Whether the motion conserves what one of the `symmetries` stands for."""
        return True

    def promised(self, scheme: Promising | None, name: str, k: np.ndarray | None = None) -> bool:
        """Whether a scheme promises to conserve the observable `name` of this model (with parameters k).

        A scheme that is not known, None, promises nothing.
        """
        return scheme is not None and name in scheme.conserves

    # -- identity -----------------------------------------------------------------------------------------------------
    @functools.cached_property
    def digest(self) -> str:
        """A fingerprint of everything that the equations of a step depend on, but for the values of parameters.

        Models with one digest have the same equations: what is compiled for one of them serves the others.
        """
        content = self.content()
        if content is None:  # nobody knows what the equations are made of: this model is like no other
            return uuid.uuid4().hex
        kind = type(self).__module__, type(self).__qualname__
        names = self.coordinates, self.constraint_names, self.algebraic, tuple(self.symmetries)
        return digest_of([kind, names, self.parameter_table.layout, *content])

    def content(self) -> Sequence[Any] | None:
        """What the digest is made of beside names and parameters: functions (as `serialized`), numbers, words."""
        return None


def size_of_terms(energy: Any, state: Any) -> Any:
    """How large the terms of an energy are that may cancel in it: ``|dH/dx_i x_i|`` summed up, half of it.

    That is the energy itself if it is quadratic, and never zero just because a level was chosen so.
    """
    terms = ca.sum1(ca.fabs(ca.densify(ca.gradient(energy, state)) * state)) / 2
    return ca.fmax(ca.fabs(energy), terms)


def digest_of(parts: Any) -> str:
    """The SHA-256 of nested tuples and lists of words and numbers."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def serialized(inputs: Sequence[Any], outputs: Sequence[Any]) -> str:
    """Expressions of symbols as text: the same for the same operations, whatever the symbols are called."""
    expressions = [e if isinstance(e, ca.SX) else ca.SX(e) for e in outputs]
    text: str = ca.Function("f", list(inputs), expressions).serialize()
    return text


def only(given: Mapping[str, Any], names: tuple[str, ...], kind: str) -> None:
    """Refuse initial values that a kind of model does not have."""
    for name, value in given.items():
        if value is not None and name not in names:
            raise InputError(f"a {kind} starts from {' and '.join(names)}, not from {name}")
