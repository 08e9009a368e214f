"""Abstract base class of dynamical models: names, parameters, state layout, initial state, observables, fingerprint."""

from __future__ import annotations

import functools
import hashlib
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import casadi as ca
import numpy as np

from livens.errors import InputError, abbreviate
from livens.expressions.parameters import Parameters, ParameterTable
from livens.expressions.state_layout import Layout
from livens.expressions.tracing import ModelFunction
from livens.models.angle_branches import AngleBranches
from livens.models.input_entry import InputEntry
from livens.scene import html
from livens.scene.scene import Scene, Visual, build_scene
from livens.types import Expr


@dataclass(slots=True)
class InitialState:
    """Consistent and complete initial state of a run: the parts of the state by name."""

    t: float
    values: dict[str, np.ndarray]
    removed_constraints: tuple[int, ...] = ()  # redundant constraints that were removed

    def __getitem__(self, name: str) -> np.ndarray:
        return self.values[name]


class SymbolicState:
    """Symbols of a model's state by name, in the order of its layout, with t and k; the arguments of observables."""

    symbols: dict[str, Any]
    t: Any
    k: Any

    @property
    def state(self) -> Expr:
        """State vector: all symbols of the state as one column."""
        return ca.vertcat(*self.symbols.values())

    def function(self, expression: Expr) -> ca.Function:
        """Return a CasADi function of (state..., t, k) for an expression of these symbols."""
        return ca.Function("f", [*self.symbols.values(), self.t, self.k], [expression])

    def observable(self, name: str) -> Any:
        """Return the expression of an observable by its name."""
        raise NotImplementedError

    @property
    def observable_names(self) -> tuple[str, ...]:
        """Names of the available observables."""
        raise NotImplementedError

    def constraint_forces(self, multipliers: Any) -> Expr:
        """Return the generalized constraint forces, for models whose state has multipliers."""
        raise NotImplementedError


class ConservationGuarantees(Protocol):
    """Protocol of a scheme: names of the quantities it is guaranteed to conserve."""

    @property
    def conserves(self) -> tuple[str, ...]: ...


class Model:
    """Abstract base class of dynamical models.

    A subclass lists its `formulations`, names its `coordinates` and sets `model_parameters`. It implements the methods
    below that raise NotImplementedError; `livens.models.descriptor.DescriptorModel` implements most of them.
    """

    type_label: ClassVar[str] = "model"  # label of the model type in lists and messages
    name: str = ""  # name of the model in titles of reports, plots and animations
    coordinates: tuple[str, ...]
    constraint_names: tuple[str, ...] = ()
    algebraic_names: tuple[str, ...] = ()  # names of algebraic variables
    #: Visual of a model in state-space form: a function of ``x t k`` that returns shapes, see `livens.shapes`.
    visual: ModelFunction | None = None
    #: Conserved quantities other than the energy, by name: momentum maps and other invariants.
    symmetries: Mapping[str, Any] = {}
    model_parameters: Parameters
    #: Inputs by name: parameters that are set from outside during a run; any other parameter may be set as well.
    inputs: Mapping[str, InputEntry] = {}
    #: Branches of continuous angles, which follow the motion of a run.
    angle_branches: AngleBranches | None = None
    default_scheme: ClassVar[str] = "livens-em"

    @property
    def formulations(self) -> tuple[str, ...]:
        """Formulations of the equations; a scheme integrates every model that offers its formulation.

        "elements" are sums of energies and constraints on a few coordinates each, "phase space" are coordinates and
        momenta with a Hamiltonian, "descriptor" is ``residual(t, x, x') = 0``, "nambu" has n - 1 Hamiltonians.
        """
        return ()

    @property
    def uses_sparse_path(self) -> bool:
        """True if sparse matrices and per-type kernels replace a single graph and dense matrices."""
        return False

    @property
    def assembly_size(self) -> int:
        """Number of coordinates and constraints if the equations are sums over elements or energies, otherwise 0."""
        return 0

    @property
    def conservative(self) -> bool:
        """True if no energy is supplied or dissipated."""
        return False

    # -- parameters ---------------------------------------------------------------------------------------------------
    @functools.cached_property
    def parameter_table(self) -> ParameterTable:
        """Table of all parameters: names and their indices in the parameter vector of the compiled step."""
        return ParameterTable(self.model_parameters)

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameter values by name."""
        return self.parameter_table.to_python()

    @property
    def parameter_count(self) -> int:
        """Length of the parameter vector."""
        return self.parameter_table.size

    def parameter_vector(self, changes: Mapping[str, object] | None = None) -> np.ndarray:
        """Return the parameter vector of the compiled step.

        Parameters
        ----------
        changes : mapping of str to array_like, optional
            Parameter values that differ from those of the model, by name.

        Returns
        -------
        ndarray of shape (parameter_count,)
            Parameter vector k.
        """
        return self.parameter_table.vector(changes)

    def check_parameters(self, changes: Mapping[str, object], k: np.ndarray) -> None:
        """Raise `InputError` if changed parameters are invalid, such as a negative mass.

        Parameters
        ----------
        changes : mapping of str to array_like
            Changed parameters by name.
        k : ndarray of shape (parameter_count,) or (n_members, parameter_count)
            Parameter vectors with these changes.
        """

    def stored_parameters(self, changed: Collection[str], k: np.ndarray) -> dict[str, Any]:
        """Return the parameter values that are stored in a result file.

        Parameters of thousands of elements are stored only where they were changed: missing names have the values of
        the model.

        Parameters
        ----------
        changed : collection of str
            Names of the changed parameters.
        k : ndarray of shape (parameter_count,)
            Parameter vector of the run.

        Returns
        -------
        dict
            Values of the model parameters and of all changed parameters, by name.
        """
        return self.parameter_table.changed_values(changed, k)

    # -- interface to a run -------------------------------------------------------------------------------------------
    @property
    def layout(self) -> Layout:
        """Layout of the model's part of the state vector; a scheme may append parts."""
        raise NotImplementedError

    @property
    def view(self) -> SymbolicState:
        """Symbolic state of the model: the symbols and expressions of observables."""
        raise NotImplementedError

    def initial_state(
        self, initial_values: Mapping[str, object], k: np.ndarray, t0: float, project: bool, redundant: str
    ) -> InitialState:
        """Return the consistent, complete initial state of a run.

        Parameters
        ----------
        initial_values : mapping
            Values given by the user, by the names ``q0 v0 p0 x0 y0``.
        k : ndarray of shape (parameter_count,)
            Parameter vector.
        t0 : float
            Initial time, in seconds.
        project : bool
            Replace inconsistent values by the nearest consistent ones instead of raising an error.
        redundant : {"error", "remove", "auto"}
            Treatment of redundant constraints.

        Returns
        -------
        InitialState
            Parts of the state by name, with the removed redundant constraints.

        Raises
        ------
        InputError
            If the initial values are incomplete, inconsistent, or cannot be evaluated.
        """
        raise NotImplementedError

    @property
    def guards(self) -> Mapping[str, Any]:
        """Validity conditions: expressions that must not change sign during a run, by the message if they do."""
        return {}

    def monitored_energy(self, conserved: tuple[str, ...]) -> str:
        """Return the name of the energy monitored in a run; an empty string if there is none.

        Parameters
        ----------
        conserved : tuple of str
            Names of the quantities that the scheme conserves.

        Returns
        -------
        str
            Name of an observable.
        """
        return ""

    def energy_scale(self) -> Any:
        """Return the energy scale for relative errors of the monitored energy: an expression, or 0.

        Returns
        -------
        casadi.SX or float
            Scale in joules; 0 if relative errors refer to the energy itself.
        """
        return 0.0

    def monitored_constraints(self) -> tuple[Expr, Expr]:
        """Return the monitored constraints at position and velocity level as expressions; empty if there are none.

        Returns
        -------
        tuple of casadi.SX
            Residuals at position level and at velocity level.
        """
        return ca.SX(0, 1), ca.SX(0, 1)

    def observable_element_sums(self, name: str) -> Any:
        """Return an observable as a sum over elements.

        Parameters
        ----------
        name : str
            Name of the observable.

        Returns
        -------
        livens.models.element_sums.ElementSums or None
            None if the observable is evaluated as a single expression.
        """
        return None

    def monitored_element_sums(self, energy: str, momenta: tuple[str, ...]) -> Any:
        """Return the quantities monitored in every step as sums over elements, with the magnitudes of the momenta.

        Parameters
        ----------
        energy : str
            Name of the monitored energy.
        momenta : tuple of str
            Names of the monitored momentum maps.

        Returns
        -------
        livens.models.element_sums.ElementSums or None
            None if the quantities are evaluated as single expressions.
        """
        return None

    def roundoff_element_sums(self, names: Sequence[str]) -> Any:
        """Return the magnitudes of the terms of observables as sums over elements, for their roundoff bounds.

        Parameters
        ----------
        names : sequence of str
            Names of the observables.

        Returns
        -------
        tuple or None
            The element sums and the columns of each observable; None if single expressions are used.
        """
        return None

    def energy_round_off_sums(self) -> Any:
        """Return the terms of `energy_round_off_terms` as sums over elements.

        Returns
        -------
        livens.models.element_sums.ElementSums or None
            None if single expressions are used.
        """
        return None

    def velocity_expression(self) -> Expr:
        """Return the velocity expression that scales constraints at velocity level; empty if there is none.

        Returns
        -------
        casadi.SX
            Column of velocities.
        """
        return ca.SX(0, 1)

    @property
    def error_norm_variables(self) -> tuple[str, ...]:
        """Parts of the state that enter error norms."""
        return tuple(self.view.symbols)

    def initial_values_from(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the initial values, as arguments of `initial_state`, that reproduce a state.

        Parameters
        ----------
        values : mapping of str to ndarray
            Parts of the state by name.

        Returns
        -------
        dict of str to ndarray
            Initial values by name, such as ``q0`` and ``v0``.
        """
        return {f"{name}0": values[name] for name in self.error_norm_variables if name in values}

    @property
    def bodies(self) -> dict[str, list[str]]:
        """Coordinate names of each body, by the name of the body."""
        return {}

    # -- in a notebook ------------------------------------------------------------------------------------------------
    def _repr_html_(self) -> str:
        """Return the summary table shown in notebooks."""
        parameters = [f"{name} = {html.escape(value)}" for name, value in self.parameters.items()]
        return html.definition_table(
            {
                "model": self.type_label,
                "coordinates": f"{len(self.coordinates)}: {abbreviate(self.coordinates)}",
                "bodies": abbreviate(list(self.bodies)),
                "constraints": f"{len(self.constraint_names)}: {abbreviate(self.constraint_names)}"
                if self.constraint_names
                else "",
                "algebraic variables": abbreviate(self.algebraic_names),
                "parameters": abbreviate(parameters),
                "default scheme": self.default_scheme,
            }
        )

    # -- visuals ------------------------------------------------------------------------------------------------------
    @functools.cached_property
    def scene(self) -> Scene:
        """Scene of the model with its parameter values; empty for a model without geometry."""
        return self.scene_for(self.parameter_vector())

    def scene_for(self, k: np.ndarray) -> Scene:
        """Return the scene for other parameter values.

        Parameters
        ----------
        k : ndarray of shape (parameter_count,)
            Parameter vector.

        Returns
        -------
        Scene
            Shapes of the model as functions of its state.
        """
        return build_scene(len(self.coordinates), self.visuals(k))

    def visuals(self, k: np.ndarray) -> list[Visual]:
        """Return the visuals of the model's parts; empty for a model without geometry.

        Parameters
        ----------
        k : ndarray of shape (parameter_count,)
            Parameter vector.

        Returns
        -------
        list of Visual
            Visuals with the coordinates and parameters they depend on.
        """
        if self.visual is None:
            return []
        return [
            Visual(
                self.visual, range(len(self.coordinates)), self.model_parameters.unpack(k[: self.model_parameters.size])
            )
        ]

    # -- conservation -------------------------------------------------------------------------------------------------
    def is_invariant(self, name: str, k: np.ndarray) -> bool:
        """Return whether a declared symmetry is an invariant of the exact motion.

        Parameters
        ----------
        name : str
            Name among `symmetries`.
        k : ndarray of shape (parameter_count,)
            Parameter vector.

        Returns
        -------
        bool
            Whether the quantity is conserved by the motion.
        """
        return True

    def is_guaranteed_by(self, scheme: ConservationGuarantees | None, name: str, k: np.ndarray | None = None) -> bool:
        """Return whether a scheme is guaranteed to conserve an observable of this model.

        Parameters
        ----------
        scheme : Scheme or None
            Integration scheme; an unknown scheme, None, guarantees nothing.
        name : str
            Name of the observable.
        k : ndarray of shape (parameter_count,), optional
            Parameter vector. Default: the parameters of the model.

        Returns
        -------
        bool
            Whether conservation up to roundoff is guaranteed.
        """
        return scheme is not None and name in scheme.conserves

    # -- identity -----------------------------------------------------------------------------------------------------
    @functools.cached_property
    def fingerprint(self) -> str:
        """Fingerprint of everything the step equations depend on, except the values of parameters.

        Models with equal fingerprints have equal equations and share compiled code.
        """
        data = self.fingerprint_data()
        if data is None:  # unknown equations: the fingerprint is unique
            return uuid.uuid4().hex
        class_name = type(self).__module__, type(self).__qualname__
        names = self.coordinates, self.constraint_names, self.algebraic_names, tuple(self.symmetries)
        return sha256_of([class_name, names, self.parameter_table.rows, *data])

    def fingerprint_data(self) -> Sequence[object] | None:
        """Return the fingerprint data other than names and parameters: serialized functions, numbers, strings.

        Returns
        -------
        sequence or None
            Data that are hashed; None if models of this type have no fingerprint.
        """
        return None


def energy_term_scale(energy: Expr, state: Expr) -> Expr:
    """Return the magnitude of the terms of an energy: ``sum |dH/dx_i x_i| / 2``, at least ``|H|``.

    The value equals the energy if the energy is quadratic, and does not vanish by the choice of a zero level.
    """
    terms = ca.sum1(ca.fabs(ca.densify(ca.gradient(energy, state)) * state)) / 2
    return ca.fmax(ca.fabs(energy), terms)


def sha256_of(parts: object) -> str:
    """Return the SHA-256 hash of nested tuples and lists of strings and numbers."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def serialize_expressions(inputs: Sequence[Expr], outputs: Sequence[Any]) -> str:
    """Return expressions as text that depends on their operations only, not on the names of the symbols."""
    expressions = [e if isinstance(e, ca.SX) else ca.SX(e) for e in outputs]
    text: str = ca.Function("f", list(inputs), expressions).serialize()
    return text


def check_initial_value_names(initial_values: Mapping[str, object], names: tuple[str, ...], model_type: str) -> None:
    """Raise InputError for initial values that a model type does not have."""
    for name, value in initial_values.items():
        if value is not None and name not in names:
            raise InputError(f"a {model_type} starts from {' and '.join(names)}, not from {name}")
