"""The contract of a scheme: how one step's equations follow from the energies of one element."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar

import casadi as ca

from livens.element import ElementModel
from livens.engine.equations import StepEquations
from livens.errors import InputError
from livens.system import System


class State(SimpleNamespace):
    """Positions, velocities and momenta at one time: ``q v p``."""

    q: Any
    v: Any
    p: Any


@dataclass
class Share:
    """What one element adds to the equations of a step."""

    rows: Sequence[Any]  # one block per block of unknowns, added into the rows of its coordinates
    constraints: Sequence[Any]  # one block per block of multipliers, the element's own rows
    momentum: Any  # its share of the momenta at the end of the step
    supplied: Any = 0.0  # work of applied forces and of moving constraints in this step
    dissipated: Any = 0.0  # energy lost in this step


class ElementEnergies:
    """An element as a scheme sees it: its energies, constraints, forces and their derivatives, callable anywhere."""

    def __init__(self, model: ElementModel) -> None:
        self.model = model
        self.n, self.m, self.k = model.n, model.m, model.k
        self._functions: dict[str, ca.Function] = {}

    def _call(self, key: str, expression: Any, *arguments: Any) -> Any:
        if key not in self._functions:
            m = self.model
            symbols = [m.q, m.v, m.t] if len(arguments) == 3 else [m.q, m.t]
            self._functions[key] = ca.Function(key, [*symbols, m.k], [expression()])
        return self._functions[key](*arguments, self.k)

    def T(self, q: Any, v: Any) -> Any:
        return self._call("T", lambda: self.model.T, q, v, 0)

    def T_q(self, q: Any, v: Any) -> Any:
        return self._call("T_q", lambda: ca.gradient(self.model.T, self.model.q), q, v, 0)

    def T_v(self, q: Any, v: Any) -> Any:
        return self._call("T_v", lambda: ca.gradient(self.model.T, self.model.v), q, v, 0)

    def V(self, q: Any, t: Any) -> Any:
        return self._call("V", lambda: self.model.V, q, t)

    def V_q(self, q: Any, t: Any) -> Any:
        return self._call("V_q", lambda: ca.gradient(self.model.V, self.model.q), q, t)

    def g(self, q: Any, t: Any) -> Any:
        return self._call("g", lambda: self.model.g, q, t)

    def G(self, q: Any, t: Any) -> Any:
        return self._call("G", lambda: ca.jacobian(self.model.g, self.model.q), q, t)

    def V_t(self, q: Any, t: Any) -> Any:
        return self._call("V_t", lambda: ca.gradient(self.model.V, self.model.t), q, t)

    def g_t(self, q: Any, t: Any) -> Any:
        return self._call("g_t", lambda: ca.jacobian(self.model.g, self.model.t), q, t)

    def R_v(self, q: Any, v: Any, t: Any) -> Any:
        """The dissipative force with its sign turned: ``D_2 R``."""
        return self._call("R_v", lambda: ca.gradient(self.model.R, self.model.v), q, v, t)

    def F(self, q: Any, v: Any, t: Any) -> Any:
        return self._call("F", lambda: self.model.F, q, v, t)


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


class ElementScheme(Scheme):
    """How one step's equations follow from a System, element by element.

    The unknowns of a step are blocks of one entry per coordinate (`unknowns`) and blocks of one entry per constraint
    (`multipliers`). The equations are the coordinates' own part (`rows`) plus the sum of the elements' shares
    (`share`), as many per coordinate and per constraint as there are unknowns. `end` gives positions and velocities
    at the end of the step from the unknowns of the same coordinate; the momenta there are the coordinates' own part
    (`momentum`) plus the sum of the elements' shares.
    """

    unknowns: tuple[str, ...]
    multipliers: tuple[str, ...]

    def equations(self, model: System, dropped: Collection[int] = ()) -> StepEquations:
        from livens.schemes.assemble import step_equations

        return step_equations(model, self, dropped)

    # -- the recipe -----------------------------------------------------------------------------------------------
    def guess(self, old: State) -> Sequence[Any]:
        """The unknowns to start Newton from at the first step, and where steps are long; one block per unknown."""
        raise NotImplementedError

    def end(self, old: State, x: Any, h: Any) -> tuple[Any, Any]:
        """Positions and velocities at the end of the step."""
        raise NotImplementedError

    def rows(self, old: State, x: Any, h: Any) -> Sequence[Any]:
        """The coordinates' own part of the equations."""
        raise NotImplementedError

    def momentum(self, old: State, x: Any, h: Any) -> Any:
        """The coordinates' own part of the momenta at the end of the step."""
        raise NotImplementedError

    def share(self, e: ElementEnergies, old: State, new: State, x: Any, h: Any, t: Any) -> Share:
        """What one element adds; `new` has q and v at the end of the step.

        ``old.p`` are momenta of the coordinates, to which other elements may have contributed: a scheme that uses them
        here must require that no two elements have kinetic energy on one coordinate.
        """
        raise NotImplementedError

    def force_multipliers(self, x: Any) -> Any:
        """The multipliers a result shows for the step, from its blocks of them: the first, unless said otherwise."""
        return getattr(x, self.multipliers[0])

    def inside(self, old: State, x: Any, h: Any, theta: Any) -> tuple[Any, Any] | None:
        """Positions and velocities within the step, at ``t + theta h``; nothing if the scheme has no such formula."""
        return None

    def estimate(self, old: State, x: Any, h: Any) -> Any:
        """An estimate of the error of the positions made in the step; nothing if the scheme has none."""
        return None

    def reduce(self, equations: StepEquations, system: System) -> StepEquations:
        """The equations of the whole system with some unknowns eliminated; most schemes eliminate nothing."""
        return equations
