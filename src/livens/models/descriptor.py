"""Models in descriptor form, ``residual(t, x, x', k) = 0`` (DAEs), with the terms of a power balance."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from livens.errors import InputError, suggestion
from livens.expressions.probe import Probe
from livens.expressions.state_layout import Layout
from livens.models.base import (
    ConservationGuarantees,
    InitialState,
    Model,
    SymbolicState,
    check_initial_value_names,
    energy_term_scale,
    serialize_expressions,
)
from livens.models.dae_index import Pencil, matrix_pencil
from livens.models.differentiation_index import differentiation_index
from livens.models.initialization.derivative_array import ConsistentInitialization, derivative_array
from livens.types import Expr
from livens.validation import check_vector


@dataclass(frozen=True, eq=False)
class Descriptor:
    """Descriptor system ``residual(t, x, x', k) = 0`` and the terms of its power balance.

    All fields are expressions of the symbols x, xdot, t, k, with the inputs inserted. Along solutions
    ``d/dt stored = supplied - dissipated`` (Symank 2025, thm. 4.2).
    """

    x: Any
    xdot: Any
    t: Any
    k: Any
    residual: Any
    stored: Any = None  # energy, if the model has one
    dissipated: Any = 0.0
    supplied: Any = 0.0
    u: Any = None
    y: Any = None


class DescriptorModel(Model):
    """Base class of first-order models in descriptor form; the last states may be algebraic variables y."""

    formulations: tuple[str, ...] = ("descriptor",)

    @property
    def default_scheme(self) -> str:  # type: ignore[override]  # a property of the instance here
        """Default scheme: a Gauss method for ODEs, a stiffly accurate Radau IIA method for DAEs."""
        return "gauss-2" if self.is_ode else "radau-iia-3"

    @property
    def descriptor(self) -> Descriptor:
        """Residual and power balance as expressions."""
        raise NotImplementedError

    @functools.cached_property
    def is_ode(self) -> bool:
        """True if the model is an ODE: ``d residual / d x'`` is regular at a generic state."""
        d = self.descriptor
        probe = Probe([d.x, d.xdot, d.t, d.k], seed=1, fixed={3: self.parameter_vector()})
        values = probe.evaluate_once(ca.jacobian(d.residual, d.xdot))
        return values is not None and bool(np.linalg.matrix_rank(values) == d.x.numel())

    @functools.cached_property
    def pencil(self) -> Pencil:
        """Matrix pencil of the linearised equations: algebraic variables and their indices."""
        return matrix_pencil(self)

    @functools.cached_property
    def derivative_array(self) -> ca.Function:
        """Derivative array: the equations and their time derivatives up to the index."""
        return derivative_array(self)

    @property
    def excluded_from_error_norm(self) -> tuple[str, ...]:
        """Names of the variables that are excluded from error norms and step size control."""
        return ()

    #: Indices of the states that form the second part of a partitioned system.
    partition: tuple[int, ...] = ()
    #: Whether velocities are part of the state or follow from it.
    velocities_from_state = True

    @property
    def index(self) -> int | None:
        """Differentiation index of the equations: 0 for an ODE, otherwise the largest index of a variable.

        If the pencil of time-dependent equations is singular, or the kernel of E moves, it is that of the derivative
        array; None if that does not determine it either.
        """
        if self.is_ode:
            return 0
        return max(self.pencil.indices, default=0) if self.pencil.determines_index else self._index_along_time

    @functools.cached_property
    def _index_along_time(self) -> int | None:
        return differentiation_index(self)

    @functools.cached_property
    def vector_field(self) -> Expr:
        """Vector field ``x' = f(x, t)`` of an ODE whose residual is linear in x'."""
        d = self.descriptor
        residual_at_zero = ca.substitute(d.residual, d.xdot, ca.SX.zeros(d.x.numel()))
        return ca.solve(ca.jacobian(d.residual, d.xdot), -residual_at_zero)

    @functools.cached_property
    def autonomous(self) -> bool:
        """True if the equations do not depend on time explicitly."""
        d = self.descriptor
        return not ca.depends_on(d.residual, d.t)

    @property
    def layout(self) -> Layout:
        parts = {"x": len(self.coordinates)} | ({"y": len(self.algebraic_names)} if self.algebraic_names else {})
        if self.descriptor.stored is not None:
            parts |= {"supplied_energy": 1, "dissipated_energy": 1}
        return Layout(**parts)

    @property
    def error_norm_variables(self) -> tuple[str, ...]:
        return ("x",)

    def initial_values_from(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {f"{name}0": values[name] for name in ("x", "y") if name in values}

    def initial_state(
        self, initial_values: Mapping[str, object], k: np.ndarray, t0: float, project: bool, redundant: str
    ) -> InitialState:
        """Return the initial state for x0, for models without algebraic variables."""
        check_initial_value_names(initial_values, ("x0",), self.type_label)
        x, d = check_vector("x0", initial_values.get("x0"), self.coordinates, "state"), self.descriptor
        residual = ca.Function("f", [d.x, d.xdot, d.t, d.k], [d.residual])
        if not np.all(np.isfinite(np.array(residual(x, np.zeros(x.size), t0, k)))):
            raise InputError("the equations cannot be evaluated at the initial values: the result is not finite")
        return InitialState(t0, {"x": self.consistent_initial_values(x, range(x.size), k, t0, project)})

    def consistent_initial_values(
        self, x: np.ndarray, prescribed: Sequence[int], k: np.ndarray, t0: float, project: bool
    ) -> np.ndarray:
        """Return consistent initial values of a DAE near x.

        Parameters
        ----------
        x : ndarray of shape (n,)
            Initial values of all variables.
        prescribed : sequence of int
            Indices of the values given by the user; these change only with `project`.
        k : ndarray of shape (parameter_count,)
            Parameter vector.
        t0 : float
            Initial time, in seconds.
        project : bool
            Replace inconsistent values by the nearest consistent ones instead of raising an error.

        Returns
        -------
        ndarray of shape (n,)
            Consistent values.

        Raises
        ------
        InputError
            If the prescribed values are inconsistent and `project` is False.
        """
        return (
            x if self.pencil.is_ode else ConsistentInitialization(self, t0, k).check_or_project(x, prescribed, project)
        )

    def without_constraints(self, removed_constraints: Collection[int]) -> DescriptorModel:
        """Return the model without redundant constraints, for model types that have constraints.

        Parameters
        ----------
        removed_constraints : collection of int
            Indices of the redundant constraints.

        Returns
        -------
        DescriptorModel
            The reduced model.
        """
        return self

    def equation_label(self, i: int) -> str:
        """Return the label of an equation in messages.

        Parameters
        ----------
        i : int
            Index of the equation.

        Returns
        -------
        str
            Label.
        """
        return f"equation {i} (row of '{(*self.coordinates, *self.algebraic_names)[i]}')"

    @functools.cached_property
    def view(self) -> SymbolicState:
        return DescriptorSymbols(self, self.observables)

    @property
    def observables(self) -> Mapping[str, Any]:
        """Observables by name, as expressions of the descriptor's symbols."""
        return {}

    def monitored_energy(self, conserved: tuple[str, ...]) -> str:
        return "hamiltonian" if self.descriptor.stored is not None else ""

    def energy_scale(self) -> Expr | float:
        stored = self.descriptor.stored
        return 0.0 if stored is None else energy_term_scale(stored, self.descriptor.x)

    def is_guaranteed_by(self, scheme: ConservationGuarantees | None, name: str, k: np.ndarray | None = None) -> bool:
        """Return whether a scheme is guaranteed to conserve an observable, by name or as a quadratic invariant.

        Schemes with "quadratic_invariants" conserve every invariant that is quadratic in x. They also preserve the
        energy balance of a quadratic Hamiltonian, with supplied and dissipated power (Symank 2025, thm. 4.2).
        """
        if super().is_guaranteed_by(scheme, name, k):
            return True
        if scheme is None or "quadratic_invariants" not in scheme.conserves or name not in self.view.observable_names:
            return False
        x, value = self.view.state, self.view.observable(name)
        if ca.depends_on(value, self.view.t) or ca.depends_on(ca.hessian(value, x)[0], x):
            return False
        return name == "hamiltonian" or self._is_invariant(value, self.parameter_vector() if k is None else k)

    def _is_invariant(self, value: Expr, k: np.ndarray) -> bool:
        """Return whether the time derivative along the vector field vanishes; False for DAEs, where it is undecided."""
        if not self.is_ode:
            return False
        d = self.descriptor
        terms = ca.densify(ca.gradient(value, d.x)) * self.vector_field
        probe = Probe([d.x, d.t, d.k], seed=7, fixed={2: k})
        return probe.is_zero(ca.sum1(terms), 1 + ca.sum1(ca.fabs(terms)), 1e-10) is True

    def fingerprint_data(self) -> Sequence[object]:
        d = self.descriptor
        symbols = ("x", "xdot", "t", "k")
        terms = {name: term for name, term in vars(d).items() if name not in symbols and term is not None}
        terms |= self.observables
        terms |= {f"guard: {condition}": guard for condition, guard in self.guards.items()}
        # a zero mass changes the step equations, for example those of the error estimate
        return list(terms), serialize_expressions([d.x, d.xdot, d.t, d.k], list(terms.values())), self.is_ode


class DescriptorSymbols(SymbolicState):
    """Symbols of a descriptor model, with x and y separate, and its observables."""

    def __init__(self, model: DescriptorModel, observables: Mapping[str, Expr]) -> None:
        d, n = model.descriptor, len(model.coordinates)
        self.symbols = {"x": d.x[:n]} | ({"y": d.x[n:]} if model.algebraic_names else {})
        self.t, self.k = d.t, d.k
        self._expressions = dict(observables)
        if d.stored is not None:
            self._expressions["hamiltonian"] = d.stored

    # x of the descriptor may be one symbol, and slices of it are not symbols: functions take the whole vector
    @property
    def state(self) -> Expr:
        return ca.vertcat(*self.symbols.values())

    def observable(self, name: str) -> Expr | None:
        if name not in self._expressions:
            raise InputError(f"unknown observable '{name}'{suggestion(str(name), self._expressions)}")
        return self._expressions[name]

    @property
    def observable_names(self) -> tuple[str, ...]:
        return tuple(self._expressions)
