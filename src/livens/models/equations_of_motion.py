"""Equations of motion of a System: symbolic sums over the elements and their derivatives, in q, v, p, t, k."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import casadi as ca

from livens.errors import InputError, suggestion
from livens.expressions.evaluate import Evaluator
from livens.models.base import SymbolicState
from livens.models.element import ElementType
from livens.models.system import System
from livens.types import Expr

#: Observables that depend on the state only.
_EXPRESSIONS: dict[str, Callable[[EquationsOfMotion], Any]] = {
    "kinetic_energy": lambda d: d.T,
    "potential_energy": lambda d: d.V,
    "total_energy": lambda d: d.T + d.V,
    "generalized_energy": lambda d: ca.dot(d.p, d.v) - d.T + d.V,
    "hamiltonian": lambda d: d.hamiltonian,
    "constraint": lambda d: d.g,
    "velocity_constraint": lambda d: d.velocity_constraint,
}
_MOMENTA = ("linear_momentum", "angular_momentum")
OBSERVABLES = (*_EXPRESSIONS, *_MOMENTA)


class EquationsOfMotion(SymbolicState):
    """Assembled equations of motion: energies, momenta, constraints of a system and their derivatives."""

    def __init__(self, system: System) -> None:
        self.system = system
        n = system.n
        self.q: Any = ca.SX.sym("q", n)
        self.v: Any = ca.SX.sym("v", n)
        self.p: Any = ca.SX.sym("p", n)
        self.t, self.k = ca.SX.sym("t"), ca.SX.sym("k", system.parameter_count)
        self.symbols = {"q": self.q, "v": self.v, "p": self.p}
        self._evaluators: dict[int, tuple[Any, Evaluator]] = {}

    # -- sums over the elements ---------------------------------------------------------------------------------------
    @functools.cached_property
    def _assembled(self) -> tuple[Any, ...]:
        """Assembled T, V, R, F, g, velocity-level constraints and friction directions, as one graph.

        The graph of a large system is long; it is built on first use.
        """
        system = self.system
        parts: dict[ElementType, ca.Function] = {}
        total: list[Any] = [ca.SX(0), ca.SX(0), ca.SX(0)]
        forces, constraints, velocity_level = ca.SX.zeros(system.n), [], []
        friction_directions = ca.SX(system.m, system.n)
        index_maps = zip(system.element_dofs, system.element_parameters, system.element_constraints, strict=True)
        for model, (index, parameter_indices, constraint_slice) in zip(system.element_types, index_maps, strict=True):
            if model not in parts:
                outputs = [
                    model.T,
                    model.V,
                    model.R,
                    model.F,
                    model.g,
                    _velocity_level(model),
                    _friction_direction(model),
                ]
                parts[model] = ca.Function("element", [model.q, model.v, model.t, model.k], outputs)
            i = list(index)
            *energies, F, g, rates, friction_direction = parts[model](
                self.q[i], self.v[i], self.t, self.k[list(parameter_indices)]
            )
            total = [old + new for old, new in zip(total, energies, strict=True)]
            forces[i] += F
            constraints.append(g)
            velocity_level.append(rates)
            if model.has_constraint_friction:
                friction_directions[constraint_slice.start, i] = friction_direction.T
        return *total, forces, ca.vertcat(*constraints), ca.vertcat(*velocity_level), friction_directions

    @property
    def T(self) -> Expr:
        return self._assembled[0]

    @property
    def V(self) -> Any:
        return self._assembled[1]

    @property
    def R(self) -> Expr:
        return self._assembled[2]

    @property
    def F(self) -> Any:
        return self._assembled[3]

    @property
    def g(self) -> Expr:
        return self._assembled[4]

    @property
    def velocity_level(self) -> Expr | None:
        """Residual of the velocity-level constraints, zero for position constraints; None if there are none."""
        return self._assembled[5] if self.system.has_velocity_constraints else None

    # -- numeric evaluation -------------------------------------------------------------------------------------------
    def evaluator(self, expression: Expr) -> Evaluator:
        """Return the evaluator of an expression that is an attribute of this object.

        It is cached with its expression as long as this object exists.
        """
        cached = self._evaluators.get(id(expression))
        if cached is None:
            # the expression is kept alive: its id could be reused otherwise
            cached = expression, Evaluator([self.q, self.v, self.t, self.k], [expression])
            self._evaluators[id(expression)] = cached
        return cached[1]

    @functools.cached_property
    def initial_state_evaluator(self) -> Evaluator:
        """Evaluator of all terms of a regular initial state, see `livens.models.initialization.dense`."""
        matrix, rhs = self.kkt_system
        state = [self.T, self.V, self.g, self.F, self.velocity_constraint, self.G, self.fibre_derivative]
        return Evaluator([self.q, self.v, self.t, self.k], [*state, matrix, rhs])

    @functools.cached_property
    def fast_initial_state_evaluator(self) -> Evaluator:
        """Evaluator of `fast_initial_state`."""
        return Evaluator([self.q, self.v, self.t, self.k], list(self.fast_initial_state))

    @property
    def fast_initial_state(self) -> tuple[Expr, Expr, Expr, Expr]:
        """Expressions of the fast path of the initial state: (checks, momenta, KKT matrix, right-hand side).

        The checks are the largest relative constraint residual at position and velocity level, the 1-norm of the KKT
        matrix, and a checksum that is finite only if all terms are finite.
        """
        matrix, rhs = self.kkt_system
        abs_G = ca.fabs(self.G)
        violations = [
            ca.norm_inf(ca.fabs(residual) / (1 + abs_G @ ca.fabs(argument))) if self.g.numel() else ca.SX(0)
            for residual, argument in ((self.g, self.q), (self.velocity_constraint, self.v))
        ]
        momenta = self.fibre_derivative
        checksum = self.T + self.V + ca.sum1(self.g) + ca.sum1(self.F) + ca.sum1(momenta) + ca.sum1(rhs)
        norm = ca.mmax(ca.sum1(ca.fabs(matrix))) if matrix.numel() else ca.SX(0)
        return ca.vertcat(*violations, norm, checksum), momenta, matrix, rhs

    # -- observables --------------------------------------------------------------------------------------------------
    def observable(self, name: str) -> Expr:
        if name in _EXPRESSIONS:
            return _EXPRESSIONS[name](self)
        if name in self.system.symmetries or name in _MOMENTA:
            return self.system.symmetry_generator(name)(self.q).T @ self.p
        raise InputError(f"unknown observable '{name}'{suggestion(str(name), {*OBSERVABLES, *self.observable_names})}")

    @property
    def observable_names(self) -> tuple[str, ...]:
        return (*_EXPRESSIONS, *self.system.symmetries)

    def constraint_forces(self, multipliers: Expr) -> Expr:
        """Return ``W^T lam``, with the force directions W; ``W = G`` without friction."""
        return self.force_directions.T @ multipliers if self.system.m else ca.SX.zeros(self.system.n)

    @property
    def hamiltonian(self) -> Expr:
        """Hamiltonian ``p.M^-1 p/2 + V``, if the mass matrix is regular."""
        if not self.system.regular_augmented_mass:
            raise InputError("the Hamiltonian is not defined: the mass matrix is singular; use 'generalized_energy'")
        M = self.augmented_mass
        if ca.depends_on(M, self.v):
            raise InputError(
                "the Hamiltonian is implemented for kinetic energies quadratic in v; use 'generalized_energy'"
            )
        return ca.dot(self.p, ca.solve(M, self.p)) / 2 + self.V

    # -- derivatives --------------------------------------------------------------------------------------------------
    @functools.cached_property
    def G(self) -> Expr:
        """Constraint Jacobian: ``dg/dq``, plus ``da/dv`` for velocity-level constraints."""
        return (
            self.G_position
            if self.velocity_level is None
            else self.G_position + ca.jacobian(self.velocity_level, self.v)
        )

    @property
    def force_directions(self) -> Expr:
        """Directions W of the constraint forces ``-W^T lam``, including friction."""
        return (
            self.G + self._assembled[6]
            if any(model.has_constraint_friction for model in self.system.element_types)
            else self.G
        )

    @functools.cached_property
    def G_position(self) -> Expr:
        """Jacobian of the position constraints."""
        return ca.jacobian(self.g, self.q)

    @functools.cached_property
    def fibre_derivative(self) -> Expr:
        """Fibre derivative ``p = dT/dv``."""
        return ca.gradient(self.T, self.v)

    @functools.cached_property
    def augmented_mass(self) -> Expr:
        """Mass matrix plus ``a q q^T`` for every unit quaternion: regular for rigid bodies.

        See Kinon and Betsch 2024, eq. 140.

        a is half the trace of the quaternion's block at the identity, which is 2 tr J.
        """
        M = ca.jacobian(self.fibre_derivative, self.v)
        for quat in self.system.quaternions:
            i = list(quat)
            a = ca.substitute(ca.trace(M[i, i]), self.q[i], ca.DM([1, 0, 0, 0])) / 2
            direction = ca.SX(self.system.n, 1)
            direction[i] = self.q[i]
            M = M + a * direction @ direction.T
        return M

    @functools.cached_property
    def velocity_constraint(self) -> Expr:
        """Hidden constraint ``dg/dt = G v + dg/dt`` at velocity level."""
        hidden = ca.jtimes(self.g, self.q, self.v) + ca.jacobian(self.g, self.t)
        return hidden if self.velocity_level is None else hidden + self.velocity_level

    @functools.cached_property
    def kkt_system(self) -> tuple[Expr, Expr]:
        """KKT matrix and right-hand side of ``M a + W^T lam = f, G a = -c`` for accelerations and multipliers.

        The force directions W differ from G for constraints with friction.
        """
        momentum = self.fibre_derivative
        M = ca.jacobian(momentum, self.v)
        force = ca.gradient(self.T - self.V, self.q) - ca.gradient(self.R, self.v) + self.F
        force -= ca.jtimes(momentum, self.q, self.v)
        hidden = self.velocity_constraint
        bias = ca.jtimes(hidden, self.q, self.v) + ca.jacobian(hidden, self.t)
        m = self.system.m
        matrix = ca.vertcat(ca.horzcat(M, self.force_directions.T), ca.horzcat(self.G, ca.SX(m, m)))
        return matrix, ca.vertcat(force, -bias)


def _friction_direction(model: ElementType) -> Expr:
    """Return the friction direction that belongs to the multiplier of the first constraint."""
    return (
        model.velocity_constraints.friction_direction
        if model.velocity_constraints is not None and model.has_constraint_friction
        else ca.SX.zeros(model.n)
    )


def _velocity_level(model: ElementType) -> Expr:
    """Return the velocity-level constraints of an element at the indices of their multipliers."""
    residual = ca.SX.zeros(model.m)
    if model.velocity_constraints is not None:
        residual[model.n_position_constraints :] = model.velocity_constraints.a
    return residual


@functools.lru_cache(maxsize=64)
def equations_of_motion(system: System) -> EquationsOfMotion:
    """Return the equations of motion of a system (cached)."""
    return EquationsOfMotion(system)
