"""Schemes that are written element by element: what one element adds to the equations of a step."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import casadi as ca
import numpy as np

from livens.models.element import ElementModel
from livens.models.system import System
from livens.schemes.base import Scheme
from livens.schemes.step import StepEquations


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


class ElementScheme(Scheme):
    """How one step's equations follow from a System, element by element.

    The unknowns of a step are blocks of one entry per coordinate (`unknowns`) and blocks of one entry per constraint
    (`multipliers`). The equations are the coordinates' own part (`rows`) plus the sum of the elements' shares
    (`share`), as many per coordinate and per constraint as there are unknowns. `end` gives positions and velocities
    at the end of the step from the unknowns of the same coordinate; the momenta there are the coordinates' own part
    (`momentum`) plus the sum of the elements' shares.

    The methods without "element" in their description are for one coordinate: they are called with all coordinates at
    once and must not mix them, so that a tier may also call them for one coordinate after the other.
    """

    unknowns: tuple[str, ...]
    multipliers: tuple[str, ...]
    #: The block of unknowns whose equations are the balance of momentum, if a unit quaternion's multiplier is to be
    #: guessed from that: such multipliers are large and change their sign from step to step.
    balance: str = ""

    @property
    def onward(self) -> np.ndarray | None:
        """How the first blocks of unknowns of the next step follow from all blocks of this one, if the motion is a
        polynomial: a matrix, or nothing if the scheme says nothing."""
        return None

    def equations(self, model: System, dropped: Collection[int] = ()) -> StepEquations:
        from livens.schemes.recipes.element_equations import ElementEquations  # it is made of such schemes

        return ElementEquations(model, self, tuple(dropped))

    # -- the recipe -----------------------------------------------------------------------------------------------
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

    def values(self, old: State, x: Any, h: Any) -> dict[str, Any]:
        """What may be asked of a step by name beside its unknowns, such as its stages."""
        return {}

    # -- where Newton's method starts at the first step, and where steps are long ----------------------------------
    def guess(self, old: State, h: Any) -> Sequence[Any]:
        """The unknowns to start from, one block per unknown."""
        raise NotImplementedError

    def quaternion_guess(self, old: State, h: Any) -> Sequence[Any] | None:
        """The same for the four coordinates of a unit quaternion, where it differs; nothing if it does not."""
        return None

    def multiplier_guess(self, name: str, lam: Any) -> Any:
        """A block of multipliers to start from, given those that the state shows.

        The first block starts from these; others, such as those of hidden constraints, start from zero.
        """
        return lam if name == self.multipliers[0] else 0 * lam

    def refine(self, x: Any, r: Any) -> dict[str, Any]:
        """Blocks of the guess that follow from the residual r at it (r has a block for each unknown); mostly none."""
        return {}

    # -- elimination -----------------------------------------------------------------------------------------------
    def reductions(self, system: System) -> Sequence[Reduction]:
        """Unknowns to be replaced by fewer ones, with as many equations; most schemes eliminate nothing."""
        return ()

    def without_reductions(self) -> ElementScheme:
        """A scheme with the same trajectory that eliminates nothing, for tiers that eliminate body by body anyway."""
        return self


@dataclass(frozen=True)
class Reduction:
    """A few new unknowns y in place of some old ones, with as many new equations: an elimination within one body.

    ``lift(q0, y, h)`` gives the replaced velocities, ``contract(q0, v, r, h)`` the new equations from the old ones r of
    the same coordinates at these velocities v, ``recover(q0, v, r, h)`` the eliminated multipliers. r is evaluated with
    the eliminated multipliers set to zero. ``start(q0, v)`` gives y from the guess of the velocities.
    """

    coordinates: tuple[int, ...]  # whose first block of unknowns is replaced, and whose first equations are contracted
    constraints: tuple[int, ...]  # whose multipliers and equations are eliminated
    size: int  # of y
    row_names: tuple[str, ...]
    lift: Callable[[Any, Any, Any], Any]
    contract: Callable[[Any, Any, Any, Any], Any]
    recover: Callable[[Any, Any, Any, Any], Any]
    start: Callable[[Any, Any], Any]
