"""The contract of a scheme: how one step's equations follow from the energies of one element."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, ClassVar

import casadi as ca

from livens.element import ElementModel
from livens.engine.equations import StepEquations
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


@dataclass(frozen=True)
class Scheme:
    """How one step's equations follow from a System, element by element.

    The unknowns of a step are blocks of one entry per coordinate (`unknowns`) and blocks of one entry per constraint
    (`multipliers`). The equations are the coordinates' own part (`rows`) plus the sum of the elements' shares
    (`share`), as many per coordinate and per constraint as there are unknowns. `end` gives positions and velocities
    at the end of the step from the unknowns of the same coordinate; the momenta there are the coordinates' own part
    (`momentum`) plus the sum of the elements' shares.

    To write a scheme, subclass this in a file of its own in `livens/schemes`: it is found by its name.
    """

    name: ClassVar[str]
    order: ClassVar[int]
    symplectic: ClassVar[bool]
    symmetric: ClassVar[bool]
    conserves: ClassVar[tuple[str, ...]]  # names of observables, exactly conserved (energies: without forces)
    summary: ClassVar[str]
    source: ClassVar[str]
    requires: ClassVar[tuple[Requirement, ...]] = ()
    unknowns: ClassVar[tuple[str, ...]]
    multipliers: ClassVar[tuple[str, ...]]

    _registry: ClassVar[dict[str, type[Scheme]]] = field(default={}, init=False, repr=False)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "name" in cls.__dict__:
            Scheme._registry[cls.name] = cls

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

    def reduce(self, equations: StepEquations, system: System) -> StepEquations:
        """The equations of the whole system with some unknowns eliminated; most schemes eliminate nothing."""
        return equations

    # -- what fits ------------------------------------------------------------------------------------------------
    def missing(self, system: System) -> list[str]:
        """What the scheme needs and the system has not, in words."""
        return [r.words for r in self.requires if not getattr(system, r.attribute)]
