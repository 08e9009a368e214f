"""Models in descriptor form, ``residual(t, x, x', k) = 0`` (DAEs), with the terms of a power balance."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from livens.errors import InputError, suggestion
from livens.expressions.layout import Layout
from livens.expressions.numbers import vector
from livens.expressions.probe import Probe
from livens.models.consistent import ConsistentStart, derivative_array
from livens.models.index import Pencil, pencil_of
from livens.models.model import InitialState, Model, Promising, View, only, serialized, size_of_terms


@dataclass(frozen=True, eq=False)
class Descriptor:
    """Descriptor system ``residual(t, x, x', k) = 0`` and the terms of its power balance.

    All fields are expressions of the symbols x, xdot, t, k, with the inputs inserted. Along solutions
    ``d/dt stored = supplied - dissipated`` (S002 thm. 4.2).
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

    forms: tuple[str, ...] = ("descriptor",)

    @property
    def usual_scheme(self) -> str:  # type: ignore[override]  # a property of the instance here
        """Default scheme: a Gauss method for ODEs, a stiffly accurate Radau IIA method for DAEs."""
        return "gauss-2" if self.regular_flow else "radau-iia-3"

    @property
    def descriptor(self) -> Descriptor:
        """Residual and power balance as expressions."""
        raise NotImplementedError

    @functools.cached_property
    def regular_flow(self) -> bool:
        """Whether the model is an ODE: ``d residual / d x'`` is regular at a generic state."""
        d = self.descriptor
        probe = Probe([d.x, d.xdot, d.t, d.k], seed=1, given={3: self.parameter_vector()})
        values = probe.first(ca.jacobian(d.residual, d.xdot))
        return values is not None and bool(np.linalg.matrix_rank(values) == d.x.numel())

    @functools.cached_property
    def pencil(self) -> Pencil:
        """Matrix pencil of the linearised equations: algebraic variables and their indices."""
        return pencil_of(self)

    @functools.cached_property
    def derivative_array(self) -> ca.Function:
        """Derivative array: the equations and their time derivatives up to the index."""
        return derivative_array(self)

    @property
    def unmeasured(self) -> tuple[str, ...]:
        """Names of the variables that are excluded from error norms and step size control."""
        return ()

    #: Indices of the states that form the second part of a partitioned system.
    second: tuple[int, ...] = ()
    #: Whether velocities are part of the state or follow from it.
    known_velocities = True

    @property
    def index(self) -> int:
        """Differentiation index of the equations: 0 for an ODE, otherwise the largest index of a variable."""
        return 0 if self.regular_flow else max(self.pencil.indices, default=0)

    @functools.cached_property
    def field(self) -> Any:
        """Vector field ``x' = f(x, t)`` of an ODE whose residual is linear in x'."""
        d = self.descriptor
        still = ca.substitute(d.residual, d.xdot, ca.SX.zeros(d.x.numel()))
        return ca.solve(ca.jacobian(d.residual, d.xdot), -still)

    @functools.cached_property
    def autonomous(self) -> bool:
        """Whether the equations do not depend on time explicitly."""
        d = self.descriptor
        return not ca.depends_on(d.residual, d.t)

    @property
    def layout(self) -> Layout:
        parts = {"x": len(self.coordinates)} | ({"y": len(self.algebraic)} if self.algebraic else {})
        if self.descriptor.stored is not None:
            parts |= {"supplied_energy": 1, "dissipated_energy": 1}
        return Layout(**parts)

    @property
    def error_variables(self) -> tuple[str, ...]:
        return ("x",)

    def start_from(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {f"{name}0": values[name] for name in ("x", "y") if name in values}

    def start(self, given: Mapping[str, Any], k: np.ndarray, t0: float, project: bool, redundant: str) -> InitialState:
        """Return the initial state for x0, for models without algebraic variables."""
        only(given, ("x0",), self.kind)
        x, d = vector("x0", given.get("x0"), self.coordinates, "state"), self.descriptor
        right = ca.Function("f", [d.x, d.xdot, d.t, d.k], [d.residual])
        if not np.all(np.isfinite(np.array(right(x, np.zeros(x.size), t0, k)))):
            raise InputError("the equations cannot be evaluated at the initial values: the result is not finite")
        return InitialState(t0, {"x": self.consistent(x, range(x.size), k, t0, project)})

    def consistent(self, x: np.ndarray, given: Sequence[int], k: np.ndarray, t0: float, project: bool) -> np.ndarray:
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
        return x if self.pencil.regular else ConsistentStart(self, t0, k).checked(x, given, project)

    def without(self, dropped: Collection[int]) -> DescriptorModel:
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

    def equation_name(self, i: int) -> str:
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
        return f"equation {i} (row of '{(*self.coordinates, *self.algebraic)[i]}')"

    @functools.cached_property
    def view(self) -> View:
        return DescriptorView(self, self.observables)

    @property
    def observables(self) -> Mapping[str, Any]:
        """Observables by name, as expressions of the descriptor's symbols."""
        return {}

    def watched_energy(self, conserved: tuple[str, ...]) -> str:
        return "hamiltonian" if self.descriptor.stored is not None else ""

    def magnitude(self) -> Any:
        stored = self.descriptor.stored
        return 0.0 if stored is None else size_of_terms(stored, self.descriptor.x)

    def promised(self, scheme: Promising | None, name: str, k: np.ndarray | None = None) -> bool:
        """Return whether a scheme is guaranteed to conserve an observable, by name or as a quadratic invariant.

        Schemes with "quadratic_invariants" conserve every invariant that is quadratic in x. They also preserve the
        energy balance of a quadratic Hamiltonian, with supplied and dissipated power (S002 thm. 4.2).
        """
        if super().promised(scheme, name, k):
            return True
        if scheme is None or "quadratic_invariants" not in scheme.conserves or name not in self.view.names:
            return False
        x, value = self.view.state, self.view.expression(name)
        if ca.depends_on(value, self.view.t) or ca.depends_on(ca.hessian(value, x)[0], x):
            return False
        return name == "hamiltonian" or self._invariant(value, self.parameter_vector() if k is None else k)

    def _invariant(self, value: Any, k: np.ndarray) -> bool:
        """Return whether the time derivative along the vector field vanishes; False for DAEs, where it is undecided."""
        if not self.regular_flow:
            return False
        d = self.descriptor
        terms = ca.densify(ca.gradient(value, d.x)) * self.field
        probe = Probe([d.x, d.t, d.k], seed=7, given={2: k})
        return probe.vanishes(ca.sum1(terms), 1 + ca.sum1(ca.fabs(terms)), 1e-10) is True

    def content(self) -> Sequence[Any]:
        d = self.descriptor
        symbols = ("x", "xdot", "t", "k")
        terms = {name: term for name, term in vars(d).items() if name not in symbols and term is not None}
        terms |= self.observables
        terms |= {f"guard: {words}": guard for words, guard in self.guards.items()}
        # a zero mass changes the step equations, for example those of the error estimate
        return list(terms), serialized([d.x, d.xdot, d.t, d.k], list(terms.values())), self.regular_flow


class DescriptorView(View):
    """Symbols of a descriptor model, with x and y separate, and its observables."""

    def __init__(self, model: DescriptorModel, observables: Mapping[str, Any]) -> None:
        d, n = model.descriptor, len(model.coordinates)
        self.symbols = {"x": d.x[:n]} | ({"y": d.x[n:]} if model.algebraic else {})
        self.t, self.k = d.t, d.k
        self._expressions = dict(observables)
        if d.stored is not None:
            self._expressions["hamiltonian"] = d.stored

    # x of the descriptor may be one symbol, and slices of it are not symbols: functions take the whole vector
    @property
    def state(self) -> Any:
        return ca.vertcat(*self.symbols.values())

    def expression(self, name: str) -> Any:
        if name not in self._expressions:
            raise InputError(f"unknown observable '{name}'{suggestion(str(name), self._expressions)}")
        return self._expressions[name]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._expressions)
