"""The contract of a scheme: what it says about itself, and that it can write down the equations of a step."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from livens.errors import InputError
from livens.schemes.step import StepEquations


@dataclass(frozen=True)
class Requirement:
    """A property of a system without which a scheme makes no sense."""

    attribute: str  # of System
    words: str  # completes "the scheme needs ..."


class Scheme:
    """What every scheme says about itself, and the one thing it can do: write down the equations of a step.

    A class with a `name` is one scheme. A class with a `family`, such as ``"gauss-<s>"``, stands for as many as there
    are values of what is in brackets: they are the arguments of its constructor, which sets `name`, `order` and what
    else depends on them. ``<s>`` and ``<order>`` are whole numbers, ``<scheme>`` is the name of another scheme,
    everything else is a number.

    To write a scheme for mechanical systems, subclass `ElementScheme`. Schemes are found by their names, and by the
    pattern of their family, if their file is in `livens/schemes`.
    """

    name: str
    order: int
    symplectic: bool
    symmetric: bool
    conserves: tuple[str, ...]  # names of observables, exactly conserved (energies: without forces)
    summary: str
    source: str
    requires: tuple[Requirement, ...] = ()
    models: tuple[str, ...] = ("System",)  # names of the classes of models it is for
    #: The order of its estimate of its own error: that is of size h to this plus one. 0 if there is none.
    estimate_order: int = 0
    #: Something has to be solved in every step.
    implicit: bool = True
    #: Its step is one of a fictive time, and time is part of the state.
    fictive: bool = False
    family: ClassVar[str]
    examples: ClassVar[tuple[tuple[Any, ...], ...]]  # arguments of the members of a family that lists show

    _registry: ClassVar[dict[str, type[Scheme]]] = {}
    _families: ClassVar[dict[str, type[Scheme]]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "name" in cls.__dict__:
            Scheme._registry[cls.name] = cls
        if "family" in cls.__dict__:
            Scheme._families[cls.family] = cls

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scheme) and type(self) is type(other) and self.name == other.name

    def __hash__(self) -> int:
        return hash((type(self), self.name))

    def __repr__(self) -> str:
        return f"<livens scheme {self.name}>"

    def equations(self, model: Any, dropped: Collection[int] = ()) -> StepEquations:
        """The equations of one step of a model; constraints in `dropped` are left out."""
        raise NotImplementedError

    def scaled(self, scaling: Any) -> Scheme:
        """The same scheme with its steps scaled by this function of the state; see `livens.scaling`."""
        raise InputError(f"scheme '{self.name}' takes equal steps, it has no use for a scaling function")

    def memory(self, model: Any, values: Mapping[str, Any], k: Any, t: float, h: float) -> dict[str, Any]:
        """What the scheme adds to the state of the model, at the start; by the names its equations lay it out with."""
        return {}

    def missing(self, model: Any) -> list[str]:
        """What the scheme needs and the model has not, in words."""
        if model.kind not in self.models:
            return [f"a model of the kind {' or '.join(self.models)}, not {model.kind}"]
        return [r.words for r in self.requires if not getattr(model, r.attribute)]
