"""Base class of time-stepping schemes, their traits, and their requirements on models."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import casadi as ca

from livens.errors import InputError
from livens.schemes.core.name_template import name_template
from livens.schemes.core.step_equations import StepEquations
from livens.types import Expr, FloatArray

#: Descriptions of the formulations of a model; each completes the sentence "the scheme needs ...".
FORMULATION_DESCRIPTIONS = {
    "elements": "a mechanical system made of elements (System)",
    "phase space": "a model in coordinates and momenta (Hamiltonian, or a System without constraints)",
    "descriptor": "a model in descriptor form (FirstOrder, PortHamiltonian, ...)",
    "port-hamiltonian": "a port-Hamiltonian system (PortHamiltonian)",
    "nambu": "a Nambu system (Nambu)",
    "discrete Lagrangian": "a discrete Lagrangian (DiscreteLagrangian)",
    "spins": "a spin system (Spins)",
    "isospectral": "an isospectral flow (IsospectralFlow)",
    "partitioned": "a model in two parts (FirstOrder with `partition`)",
    "constrained phase space": "coordinates and momenta with constraints (ConstrainedHamiltonian)",
}


@dataclass(frozen=True)
class Requirement:
    """Property that a model must have for a scheme to be applicable."""

    property_name: str  # boolean property of the model
    description: str  # completes "the scheme needs ..."


@dataclass(frozen=True)
class Traits:
    """Properties of a scheme in one record, used by listings, tables, result files and tests.

    Parameters
    ----------
    name : str
        Name of the scheme.
    family : str or None
        Name template of the family, such as ``"gauss-<s>"``; None for a single scheme.
    aliases : tuple of str
        Other names, such as abbreviations used in the literature.
    group : str
        Heading under which listings show the scheme.
    summary : str
        Short description.
    source : str
        Publication.
    when_to_use : str
        Problems for which the scheme is recommended.
    when_to_avoid : str
        Problems for which another scheme is better, with its name.
    order : int
        Order of convergence.
    symplectic : bool
        True if the step is a symplectic map.
    symmetric : bool
        True if the step is time-symmetric (self-adjoint).
    implicit : bool
        True if a system of equations has to be solved in every step.
    fictive : bool
        True if the step size refers to a fictive time, with physical time as part of the state.
    conserves : tuple of str
        Names of the observables that are conserved exactly (energies: in the absence of forces).
    formulations : tuple of str
        Supported formulations, keys of `FORMULATION_DESCRIPTIONS`; a model needs to have one of them.
    requires : tuple of Requirement
        Required properties of the model.
    error_order : int
        Order p of the error estimate, which is of size h^(p + 1); 0 without an estimate.
    evaluations_per_step : int
        Number of force evaluations per step; per Newton iteration for implicit schemes.
    """

    name: str
    family: str | None
    aliases: tuple[str, ...]
    group: str
    summary: str
    source: str
    when_to_use: str
    when_to_avoid: str
    order: int
    symplectic: bool
    symmetric: bool
    implicit: bool
    fictive: bool
    conserves: tuple[str, ...]
    formulations: tuple[str, ...]
    requires: tuple[Requirement, ...]
    error_order: int
    evaluations_per_step: int

    def to_dict(self) -> dict[str, Any]:
        """Return the traits as a JSON-compatible dictionary.

        Returns
        -------
        dict
            Field names and values; requirements are replaced by their descriptions.
        """
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return fields | {"requires": [requirement.description for requirement in self.requires]}


class Scheme:
    """Base class of all schemes: traits, and the equations of one step.

    A class with a `name` is one scheme. A class with a `family`, such as ``"gauss-<s>"``, is a family of schemes.
    The fields in brackets are the arguments of its constructor, which sets `name`, `order` and the dependent traits.
    ``<s>`` and ``<order>`` are integers, ``<scheme>`` is the name of another scheme and ``<gradient>`` the name of a
    discrete gradient; every other field is a float. `examples` contains the arguments of the members shown in listings.

    A scheme is registered when its class is defined, in `livens.schemes` or in user code. A later definition with the
    same name replaces the earlier one. `aliases` are other names (for a family: other templates with the same fields).
    `member_aliases` maps names of single members of a family to their arguments. Both belong to the class that
    declares them and are not inherited by schemes with other names.

    Subclass `ElementScheme` to write a scheme for mechanical systems.
    """

    name: str
    order: int
    symplectic: bool = False
    symmetric: bool = False
    conserves: tuple[str, ...] = ()
    summary: str = ""
    source: str = ""
    #: One sentence each for the scheme catalogue.
    when_to_use: str = ""
    when_to_avoid: str = ""
    group: str = "Other schemes"
    formulations: tuple[str, ...] = ("elements",)
    requires: tuple[Requirement, ...] = ()
    error_order: int = 0
    #: The local error is estimated by a double step; requires a symmetric scheme whose positions at the start of a step
    #: follow from its unknowns and the positions at the end.
    estimates_error_by_doubling: bool = False
    #: Parts of the scheme state that are odd under time reversal, as momenta are.
    odd_under_reversal: tuple[str, ...] = ()
    implicit: bool = True
    fictive: bool = False
    #: True if `initial_scheme_state` also has initial values of variables of the model.
    completes_model_state: bool = False
    evaluations_per_step: int = 1
    #: The scheme selects its step sizes, unless the step size is prescribed.
    selects_step_size: bool = False
    #: Relative local error tolerance of the step-size selection.
    tolerance: float = 0.0
    #: The scheme supports constraints on velocity level, such as rolling constraints.
    supports_velocity_constraints: bool = False
    #: The scheme supports external (compiled) forces, as it does not differentiate them.
    supports_external_forces: bool = False
    #: The scheme evaluates external forces at the midpoint, in every Newton iteration, instead of once per step.
    external_force_at_midpoint: bool = False
    #: The scheme supports sampled controllers with a zero-order hold over the step.
    supports_sampled_control: bool = False
    #: A step of the scheme can be solved on a spanning tree of joints: the tree tier.
    steps_on_trees: bool = False
    aliases: ClassVar[tuple[str, ...]] = ()
    family: ClassVar[str]
    examples: ClassVar[tuple[tuple[Any, ...], ...]] = ()
    member_aliases: ClassVar[Mapping[str, tuple[Any, ...]]] = {}

    _registry: ClassVar[dict[str, type[Scheme]]] = {}
    _families: ClassVar[dict[str, type[Scheme]]] = {}

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        if "family" in cls.__dict__:
            if not cls.examples:
                raise InputError(
                    f"the family '{cls.family}' of schemes needs examples, such as ((2,), (3,)): "
                    "the arguments of the members that lists show"
                )
            Scheme._families[cls.family] = cls
        elif "name" in cls.__dict__:
            Scheme._registry[cls.name] = cls

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scheme) and type(self) is type(other) and self.name == other.name

    def __hash__(self) -> int:
        return hash((type(self), self.name))

    def __repr__(self) -> str:
        return f"<livens scheme {self.name}>"

    @property
    def traits(self) -> Traits:
        """Traits of the scheme.

        Returns
        -------
        Traits
            Record of the properties of the scheme.

        Raises
        ------
        InputError
            If the class of the scheme does not define a required attribute.

        Examples
        --------
        >>> from livens import schemes
        >>> record = schemes.get("gauss-2").traits
        >>> record.order, record.symplectic, record.family, record.formulations
        (4, True, 'gauss-<s>', ('elements', 'phase space', 'descriptor'))
        """
        declared = defining_class(type(self))
        fields: dict[str, Any] = {"family": None, "aliases": declared.__dict__.get("aliases", ())}
        if "family" in declared.__dict__:
            fields = {"family": declared.family, "aliases": aliases_of_member(declared, self.name)}
        for field in dataclasses.fields(Traits):
            if field.name in fields:
                continue
            if not hasattr(self, field.name):
                raise InputError(f"scheme {type(self).__name__} does not define its attribute '{field.name}'")
            fields[field.name] = getattr(self, field.name)
        return Traits(**fields)

    def equations(self, model: Any, removed_constraints: Collection[int] = ()) -> StepEquations:
        """Return the equations of one step.

        Parameters
        ----------
        model : Model
            Model to integrate.
        removed_constraints : collection of int, default ()
            Indices of redundant constraints that are left out of the equations.

        Returns
        -------
        StepEquations
            Residual, Jacobian and final state of a step.
        """
        raise NotImplementedError

    def with_scaling(self, scaling: object) -> Scheme:
        """Return the scheme with steps scaled by a function of the state.

        Parameters
        ----------
        scaling : Scaling
            Scaling function, see `livens.scaling`.

        Returns
        -------
        Scheme
            Scheme with variable steps.

        Raises
        ------
        InputError
            If the scheme has no time transformation.
        """
        raise InputError(f"scheme '{self.name}' takes equal steps and does not support a scaling function")

    def evaluation_counts(self, steps: int, corrections: int) -> tuple[int, int]:
        """Return the number of evaluations of the forces and of their Jacobians.

        A Newton iteration evaluates forces and Jacobian; the convergence check of each step evaluates the forces once
        more. Schemes that split the forces count the expensive forces.

        Parameters
        ----------
        steps : int
            Number of steps.
        corrections : int
            Number of Newton iterations.

        Returns
        -------
        tuple of int
            Number of force evaluations and number of Jacobian evaluations.
        """
        return (corrections + steps, corrections) if corrections else (steps * self.evaluations_per_step, 0)

    def with_error_control(self) -> Scheme:
        """Return the variant for error-controlled steps, which may store more of the previous steps.

        Returns
        -------
        Scheme
            Variant of the scheme, or the scheme itself.
        """
        return self

    def as_substep(self) -> Scheme:
        """Return the variant for substeps of a composition, whose step sizes differ from each other.

        Returns
        -------
        Scheme
            Variant without data for the next step, or the scheme itself.
        """
        return self

    def for_tolerance(self, tolerance: float) -> Scheme:
        """Return the variant for a tolerance, for schemes that select their step sizes.

        Parameters
        ----------
        tolerance : float
            Relative local error tolerance.

        Returns
        -------
        Scheme
            Variant of the scheme, or the scheme itself.
        """
        return self

    def initial_scheme_state(
        self, model: Any, values: Mapping[str, FloatArray], k: FloatArray, t: float, h: float
    ) -> dict[str, Any]:
        """Return the initial scheme state: the variables that the scheme adds to the state of the model.

        Parameters
        ----------
        model : Model
            Model to integrate.
        values : mapping of str to array
            Initial values of the state of the model, by name.
        k : array
            Parameter vector of the model.
        t : float
            Initial time.
        h : float
            Step size.

        Returns
        -------
        dict
            Initial values by name, with the names of the layout of the step equations.
        """
        return {}

    def scheme_state_of(self, model: object, q: Expr, p: Expr, t: float, k: ca.DM, h: float) -> dict[str, Any]:
        """Return the parts of the scheme state that depend on h, as expressions of (q, p).

        All other parts that depend on (q, p) are recomputed by a step of size 0.

        Parameters
        ----------
        model : Model
            Model to integrate.
        q, p : casadi.SX
            Coordinates and momenta.
        t : float
            Time in seconds.
        k : casadi.DM
            Parameter vector of the model.
        h : float
            Step size in seconds.

        Returns
        -------
        dict
            Expressions by name.
        """
        return {}

    def symbolic_scheme_state(self, model: Any, q: Expr, p: Expr, k: Expr, t: float, h: float) -> dict[str, Any]:
        """Return the initial scheme state as expressions of the symbols q, p and k.

        Used for derivatives with respect to initial values.

        Parameters
        ----------
        model : Model
            Model to integrate.
        q, p, k : casadi.SX
            Coordinates, momenta and parameters.
        t : float
            Initial time.
        h : float
            Step size.

        Returns
        -------
        dict
            Expressions by name, as far as they are available.
        """
        return {}

    def unmet_requirements(self, model: Any) -> list[str]:
        """Return the requirements of the scheme that a model does not meet.

        Parameters
        ----------
        model : Model
            Model to integrate.

        Returns
        -------
        list of str
            Descriptions that complete "the scheme needs ..."; empty if the scheme is compatible with the model.
        """
        if not set(self.formulations) & set(model.formulations):
            formulations = " or ".join(
                FORMULATION_DESCRIPTIONS.get(form, f"a model in the form '{form}'") for form in self.formulations
            )
            return [f"{formulations}, not a {model.type_label}"]
        unmet = [r.description for r in self.requires if not getattr(model, r.property_name)]
        if getattr(model, "has_velocity_constraints", False) and not self.supports_velocity_constraints:
            unmet.append("constraints on positions, not on velocities (rolling, gears)")
        if getattr(model, "control_indices", ()) and not self.supports_sampled_control:
            unmet.append("a model without sampled controllers")
        return [*unmet, *self._unsupported_external_force(model)]

    def _unsupported_external_force(self, model: object) -> list[str]:
        """Return the unmet requirement if the model has an external force that the scheme does not support.

        Parameters
        ----------
        model : Model
            Model to integrate.

        Returns
        -------
        list of str
            Description of the requirement, or an empty list.
        """
        force = getattr(model, "external_force", None)
        within_step = getattr(force, "evaluates_within_steps", False) and self.external_force_at_midpoint
        unsupported = force is not None and not (within_step or self.supports_external_forces)
        return ["forces that can be differentiated, not an external force"] if unsupported else []


def defining_class(scheme_class: type[Scheme]) -> type[Scheme]:
    """Return the class in the inheritance chain that defines the name or the name template of a scheme."""
    return next((cls for cls in scheme_class.__mro__ if {"name", "family"} & cls.__dict__.keys()), scheme_class)


def aliases_of_member(scheme_class: type[Scheme], name: str) -> tuple[str, ...]:
    """Return the aliases of the member of a family with this name."""
    texts = name_template(scheme_class.family).match(name) or ()
    arguments = name_template(scheme_class.family).parse(name)
    declared = scheme_class.__dict__
    filled = [name_template(alias).format(texts) for alias in declared.get("aliases", ()) if texts]
    return (
        *filled,
        *(
            alias
            for alias, alias_arguments in declared.get("member_aliases", {}).items()
            if alias_arguments == arguments
        ),
    )
