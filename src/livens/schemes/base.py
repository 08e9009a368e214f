"""The contract of a scheme: what it says about itself, and that it can write down the equations of a step."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from livens.errors import InputError
from livens.schemes.patterns import pattern
from livens.schemes.step import StepEquations

#: The forms that the equations of a model can be written in, in words that complete "the scheme needs ...".
FORMS = {
    "elements": "a mechanical system made of elements (System)",
    "phase space": "a model in coordinates and momenta (Hamiltonian, or a System without constraints)",
    "descriptor": "a model in descriptor form (FirstOrder, PortHamiltonian, ...)",
    "nambu": "a Nambu system (Nambu)",
    "partitioned": "a model in two parts (FirstOrder with `second`)",
    "constrained phase space": "coordinates and momenta with constraints (ConstrainedHamiltonian)",
    "crowd": "many balls in a box (Crowd)",
}


@dataclass(frozen=True)
class Requirement:
    """A property of a model without which a scheme makes no sense."""

    attribute: str  # of the model, true or false
    words: str  # completes "the scheme needs ..."


@dataclass(frozen=True)
class Traits:
    """What a scheme says about itself, in one record: lists, tables, files and tests are made of this."""

    name: str
    #: The pattern of the names of its family, if it is one of many.
    family: str | None
    #: Other names it is found by, such as short names in the literature.
    aliases: tuple[str, ...]
    #: What kind of scheme it is: lists show those of one group together.
    group: str
    summary: str
    source: str
    order: int
    symplectic: bool
    symmetric: bool
    #: Something has to be solved in every step.
    implicit: bool
    #: Its step is one of a fictive time, and time is part of the state.
    fictive: bool
    #: Names of observables that are conserved exactly (energies: without forces).
    conserves: tuple[str, ...]
    #: Forms of a model's equations that it can take, among `FORMS`; one of them is enough.
    forms: tuple[str, ...]
    #: Properties that it needs of a model.
    requires: tuple[Requirement, ...]
    #: The order of its estimate of its own error: that is of size h to this plus one. 0 if there is none.
    estimate_order: int
    #: How often a step evaluates the forces; per Newton correction, where something has to be solved.
    evaluations: int

    def as_object(self) -> dict[str, Any]:
        """The record in plain numbers, words and lists, as for JSON; requirements are the words for them."""
        found = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return found | {"requires": [requirement.words for requirement in self.requires]}


class Scheme:
    """What every scheme says about itself, and the one thing it can do: write down the equations of a step.

    A class with a `name` is one scheme. A class with a `family`, such as ``"gauss-<s>"``, stands for as many as there
    are values of what is in brackets: they are the arguments of its constructor, which sets `name`, `order` and what
    else depends on them. ``<s>`` and ``<order>`` are whole numbers, ``<scheme>`` is the name of another scheme,
    ``<gradient>`` that of a discrete gradient, everything else is a number. `examples` are the arguments of those
    members that lists show.

    Schemes are found by their names from the moment their class is defined, in a file of `livens/schemes` or anywhere
    else; a later definition with the same name takes the place of the earlier one. `aliases` are other names, of a
    family other patterns with the same brackets; `nicknames` are names of single members of a family, each with its
    arguments. Both belong to the class that declares them, and are not inherited by schemes with other names.

    To write a scheme for mechanical systems, subclass `ElementScheme`.
    """

    name: str
    order: int
    symplectic: bool = False
    symmetric: bool = False
    conserves: tuple[str, ...] = ()
    summary: str = ""
    source: str = ""
    group: str = "Other schemes"
    forms: tuple[str, ...] = ("elements",)
    requires: tuple[Requirement, ...] = ()
    estimate_order: int = 0
    #: Parts of its memory that change their sign where a motion is turned around, as momenta do.
    opposite: tuple[str, ...] = ()
    implicit: bool = True
    fictive: bool = False
    evaluations: int = 1
    #: It chooses the sizes of its steps by itself, unless they are given.
    own_steps: bool = False
    #: The relative error of such a step.
    tolerance: float = 0.0
    #: It can hold constraints on velocity level, such as those of rolling.
    rolls: bool = False
    #: It takes forces that are compiled elsewhere, as it never differentiates them.
    takes_black_boxes: bool = False
    #: It can hold what sampled controllers say over a step.
    sampled: bool = False
    aliases: ClassVar[tuple[str, ...]] = ()
    family: ClassVar[str]
    examples: ClassVar[tuple[tuple[Any, ...], ...]] = ()
    nicknames: ClassVar[Mapping[str, tuple[Any, ...]]] = {}

    _registry: ClassVar[dict[str, type[Scheme]]] = {}
    _families: ClassVar[dict[str, type[Scheme]]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
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
        """What the scheme says about itself, as one record.

        >>> from livens import schemes
        >>> record = schemes.get("gauss-2").traits
        >>> record.order, record.symplectic, record.family, record.forms
        (4, True, 'gauss-<s>', ('elements', 'phase space', 'descriptor'))
        """
        declared = declaring(type(self))
        found: dict[str, Any] = {"family": None, "aliases": declared.__dict__.get("aliases", ())}
        if "family" in declared.__dict__:
            found = {"family": declared.family, "aliases": member_aliases(declared, self.name)}
        for field in dataclasses.fields(Traits):
            if field.name in found:
                continue
            if not hasattr(self, field.name):
                raise InputError(f"scheme {type(self).__name__} does not say what its {field.name} is")
            found[field.name] = getattr(self, field.name)
        return Traits(**found)

    def equations(self, model: Any, dropped: Collection[int] = ()) -> StepEquations:
        """The equations of one step of a model; constraints in `dropped` are left out."""
        raise NotImplementedError

    def scaled(self, scaling: Any) -> Scheme:
        """The same scheme with its steps scaled by this function of the state; see `livens.scaling`."""
        raise InputError(f"scheme '{self.name}' takes equal steps, it has no use for a scaling function")

    def counted(self, steps: int, corrections: int) -> tuple[int, int]:
        """How often forces and their Jacobians were evaluated, for a number of steps and of Newton corrections.

        A correction needs both at its beginning; after the last one of a step, forces tell whether it was. Schemes that
        tell expensive forces apart count these.
        """
        return (corrections + steps, corrections) if corrections else (steps * self.evaluations, 0)

    def controlled(self) -> Scheme:
        """The same, made for steps whose sizes follow a tolerance: it may remember more of the steps before."""
        return self

    def composed(self) -> Scheme:
        """The same as a part of a composition, whose steps differ in size: it remembers nothing of the next step."""
        return self

    def for_tolerance(self, tolerance: float) -> Scheme:
        """The same, made for this relative error of a step; for schemes that choose their steps by themselves."""
        return self

    def memory(self, model: Any, values: Mapping[str, Any], k: Any, t: float, h: float) -> dict[str, Any]:
        """What the scheme adds to the state of the model, at the start; by the names its equations lay it out with."""
        return {}

    def following(self, model: Any, q: Any, p: Any, t: Any, k: Any, h: Any) -> dict[str, Any]:
        """Parts of its memory that belong to a step of size h from (q, p), as expressions of these.

        All others a step of size 0 computes anew, if they follow (q, p) at all.
        """
        return {}

    def memory_expressions(self, model: Any, q: Any, p: Any, k: Any, t: float, h: float) -> dict[str, Any]:
        """The same as expressions of symbols q, p and k, for derivatives by the start, where they are known."""
        return {}

    def missing(self, model: Any) -> list[str]:
        """What the scheme needs and the model has not, in words."""
        if not set(self.forms) & set(model.forms):
            wanted = " or ".join(FORMS.get(form, f"a model in the form '{form}'") for form in self.forms)
            return [f"{wanted}, not a {model.kind}"]
        found = [r.words for r in self.requires if not getattr(model, r.attribute)]
        if getattr(model, "rolls", False) and not self.rolls:
            found.append("constraints on positions, not on velocities (rolling, gears)")
        if getattr(model, "controls", ()) and not self.sampled:
            found.append("a model without sampled controllers")
        return [*found, *self.no_black_box(model)]

    def no_black_box(self, model: Any) -> list[str]:
        """Words for a scheme that needs to see into its forces."""
        closed = getattr(model, "box", None) is not None and not self.takes_black_boxes
        return ["forces it can look into and differentiate, not a black box"] if closed else []


def declaring(kind: type[Scheme]) -> type[Scheme]:
    """The class that gives a scheme its name, or the pattern of its names: itself, or one it is derived from."""
    return next((cls for cls in kind.__mro__ if {"name", "family"} & cls.__dict__.keys()), kind)


def member_aliases(kind: type[Scheme], name: str) -> tuple[str, ...]:
    """The other names of the member of a family that has this name."""
    texts = pattern(kind.family).texts(name) or ()
    arguments = pattern(kind.family).arguments(name)
    own = kind.__dict__
    filled = [pattern(alias).filled(texts) for alias in own.get("aliases", ()) if texts]
    return (*filled, *(alias for alias, those in own.get("nicknames", {}).items() if those == arguments))
