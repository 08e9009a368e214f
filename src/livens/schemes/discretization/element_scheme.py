"""Element-wise schemes: contribution of one element to the equations of a step."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import casadi as ca
import numpy as np

from livens.models.element import ElementType
from livens.models.system import System
from livens.schemes.core.scheme import Scheme
from livens.schemes.core.step_equations import StepEquations
from livens.types import Expr, ModelFunction


class MechanicalState(SimpleNamespace):
    """Coordinates, velocities and momenta at one time: ``q v p``."""

    q: Expr
    v: Expr
    p: Expr


@dataclass
class ElementContribution:
    """Contribution of one element to the equations of a step."""

    residuals: Sequence[Any]  # one block per block of unknowns, added to the equations of the element's coordinates
    constraint_residuals: Sequence[Any]  # one block per block of multipliers: residuals of the element's constraints
    momentum: Any  # contribution to the momenta at t + h
    supplied_work: Any = 0.0  # work of applied forces and of rheonomic constraints in this step
    dissipated_work: Any = 0.0  # energy dissipated in this step


class ElementFunctions:
    """Energies, constraints and forces of an element with their derivatives, as functions of symbols."""

    def __init__(self, model: ElementType) -> None:
        self.model = model
        self.n, self.m, self.k = model.n, model.m, model.k
        self._functions: dict[str, ca.Function] = {}

    def _call(self, key: str, expression: ModelFunction, *arguments: Any) -> Expr:
        if key not in self._functions:
            m = self.model
            symbols = [m.q, m.v, m.t] if len(arguments) == 3 else [m.q, m.t]
            self._functions[key] = ca.Function(key, [*symbols, m.k], [expression()])
        return self._functions[key](*arguments, self.k)

    def T(self, q: Expr, v: Expr) -> Expr:
        return self._call("T", lambda: self.model.T, q, v, 0)

    def T_q(self, q: Expr, v: Expr) -> Expr:
        return self._call("T_q", lambda: ca.gradient(self.model.T, self.model.q), q, v, 0)

    def T_v(self, q: Expr, v: Expr) -> Expr:
        return self._call("T_v", lambda: ca.gradient(self.model.T, self.model.v), q, v, 0)

    def V(self, q: Expr, t: Expr | int) -> Any:
        return self._call("V", lambda: self.model.V, q, t)

    def V_q(self, q: Expr, t: Expr) -> Any:
        return self._call("V_q", lambda: ca.gradient(self.model.V, self.model.q), q, t)

    def g(self, q: Expr, t: Expr) -> Expr:
        return self._call("g", lambda: self.model.g, q, t)

    def G(self, q: Expr, t: Expr | int) -> Expr:
        return self._call("G", lambda: ca.jacobian(self.model.g, self.model.q), q, t)

    def V_t(self, q: Expr, t: Expr) -> Expr:
        return self._call("V_t", lambda: ca.gradient(self.model.V, self.model.t), q, t)

    def g_t(self, q: Expr, t: Expr) -> Expr:
        return self._call("g_t", lambda: ca.jacobian(self.model.g, self.model.t), q, t)

    def R_v(self, q: Expr, v: Expr, t: Expr) -> Expr:
        """Return the negative dissipative force ``D_2 R``."""
        return self._call("R_v", lambda: ca.gradient(self.model.R, self.model.v), q, v, t)

    def F(self, q: Expr, v: Expr, t: object) -> Any:
        return self._call("F", lambda: self.model.F, q, v, t)


class ElementScheme(Scheme):
    """Base class of schemes that are defined by the contribution of one element of a System.

    The unknowns of a step are blocks with one entry per coordinate (`unknowns`) and blocks with one entry per
    constraint (`multipliers`). The residual is a nodal part (`nodal_residual`) plus the sum of the element
    contributions (`element_contribution`), with as many equations per coordinate and constraint as unknowns.
    `kinematic_update` returns coordinates and velocities at t + h from the unknowns of the same coordinate. The momenta
    at t + h are a nodal part (`nodal_momentum`) plus the sum of the element contributions.

    Nodal methods are called with the vectors of all coordinates and must act on each coordinate separately, so that a
    tier may also call them for a single coordinate.
    """

    unknowns: tuple[str, ...]
    multipliers: tuple[str, ...]
    #: Block of unknowns whose equations are the momentum balance, for the initial guess of the unit-norm multiplier of
    #: quaternions: this multiplier is large and changes its sign from step to step. Empty: no such guess.
    momentum_block: str = ""

    @property
    def linear_predictor(self) -> np.ndarray | None:
        """Matrix of the linear predictor: leading blocks of unknowns of the next step from all blocks of this step.

        Exact for polynomial motion; None without a predictor.
        """
        return None

    def equations(self, model: System, removed_constraints: Collection[int] = ()) -> StepEquations:
        from livens.schemes.discretization.element_step import ElementEquations  # circular import

        return ElementEquations(model, self, tuple(removed_constraints))

    # -- discretization -------------------------------------------------------------------------------------------
    def kinematic_update(self, old: MechanicalState, x: SimpleNamespace, h: Expr) -> tuple[Expr, Expr]:
        """Return coordinates and velocities at t + h."""
        raise NotImplementedError

    def nodal_residual(self, old: MechanicalState, x: SimpleNamespace, h: Expr) -> Sequence[Any]:
        """Return the nodal part of the residual."""
        raise NotImplementedError

    def nodal_momentum(self, old: MechanicalState, x: SimpleNamespace, h: Expr) -> Expr:
        """Return the nodal part of the momenta at t + h."""
        raise NotImplementedError

    def element_contribution(
        self, e: ElementFunctions, old: MechanicalState, new: MechanicalState, x: SimpleNamespace, h: Expr, t: Expr
    ) -> ElementContribution:
        """Return the contribution of one element; `new` contains q and v at t + h.

        ``old.p`` are the total momenta of the coordinates, with contributions of other elements. A scheme that uses
        them here must require that no two elements have kinetic energy on one coordinate.
        """
        raise NotImplementedError

    def reported_multipliers(self, x: SimpleNamespace, old_multipliers: Expr) -> Expr:
        """Return the multipliers at t + h, from the unknowns and the multipliers at t; by default the first block."""
        return getattr(x, self.multipliers[0])

    def dense_output(self, old: MechanicalState, x: SimpleNamespace, h: Expr, theta: Expr) -> tuple[Any, Any] | None:
        """Return the dense output: coordinates and velocities at ``t + theta h``; None if not available."""
        return None

    def error_estimate(self, old: MechanicalState, x: object, h: object) -> Any:
        """Return an estimate of the local error of the coordinates; None if not available."""
        return None

    def named_values(self, old: MechanicalState, x: SimpleNamespace, h: Expr) -> dict[str, Any]:
        """Return intermediate values of a step by name, such as its stages."""
        return {}

    # -- initial guess of Newton's method, for the first step and for long steps ------------------------------------
    def initial_guess(self, old: MechanicalState, h: Expr) -> Sequence[Any]:
        """Return the initial guess, one block per block of unknowns."""
        raise NotImplementedError

    def initial_quaternion_guess(self, old: MechanicalState, h: Expr) -> Sequence[Expr] | None:
        """Return the initial guess for the four coordinates of a unit quaternion; None if it is not special."""
        return None

    def initial_multiplier_guess(self, name: str, lam: Expr) -> Expr:
        """Return the initial guess of a block of multipliers from the multipliers in the state.

        The first block starts from these multipliers; other blocks, such as for hidden constraints, start from zero.
        """
        return lam if name == self.multipliers[0] else 0 * lam

    def refine_guess(self, x: SimpleNamespace, r: SimpleNamespace) -> dict[str, Any]:
        """Return blocks of the initial guess that are improved with the residual r (one block per unknown)."""
        return {}

    # -- elimination -----------------------------------------------------------------------------------------------
    def nullspace_reductions(self, system: System) -> Sequence[NullspaceReduction]:
        """Return the null-space reductions of the unknowns; by default none."""
        return ()

    def unreduced(self) -> ElementScheme:
        """Return the scheme without reductions (same trajectory), for tiers with body-wise elimination."""
        return self


@dataclass(frozen=True)
class NullspaceReduction:
    """Null-space reduction of one body: fewer unknowns y in place of velocities and multipliers.

    ``prolong(q0, y, h)`` returns the replaced velocities, ``project_residual(q0, v, r, h)`` the reduced equations from
    the residual r of the same coordinates at the velocities v, ``recover_multipliers(q0, v, r, h)`` the eliminated
    multipliers. r is evaluated with the eliminated multipliers set to zero. ``reduce_guess(q0, v)`` returns y from the
    initial guess of the velocities.
    """

    coordinates: tuple[int, ...]  # their first block of unknowns is replaced, their first equations are projected
    constraints: tuple[int, ...]  # their multipliers and equations are eliminated
    size: int  # number of entries of y
    equation_labels: tuple[str, ...]
    prolong: Callable[[Expr, Expr, Expr], Expr]
    project_residual: Callable[[Expr, Expr, Expr, Expr], Expr]
    recover_multipliers: Callable[[Expr, Expr, Expr, Expr], Expr]
    reduce_guess: Callable[[Expr, Expr], Expr]
