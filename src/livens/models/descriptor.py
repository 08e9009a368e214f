"""Models of first order in descriptor form: ``residual(t, x, x', k) = 0`` with the terms of a power balance."""

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
    """All that integrating in time needs: ``residual(t, x, x', k) = 0`` and the terms of the power balance.

    Expressions of the symbols x, xdot, t, k; inputs are inserted. Along solutions
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
    """A model of first order. Its state is x, of which the last may be algebraic variables y."""

    forms: tuple[str, ...] = ("descriptor",)

    @property
    def usual_scheme(self) -> str:  # type: ignore[override]  # a property of the instance here
        """Gauss' methods where all derivatives follow; else one that damps what is infinitely stiff."""
        return "gauss-2" if self.regular_flow else "radau-iia-3"

    @property
    def descriptor(self) -> Descriptor:
        raise NotImplementedError

    @functools.cached_property
    def regular_flow(self) -> bool:
        """``x'`` follows from x: the derivative of the residual by x' is regular at a generic state."""
        d = self.descriptor
        probe = Probe([d.x, d.xdot, d.t, d.k], seed=1, given={3: self.parameter_vector()})
        values = probe.first(ca.jacobian(d.residual, d.xdot))
        return values is not None and bool(np.linalg.matrix_rank(values) == d.x.numel())

    @functools.cached_property
    def pencil(self) -> Pencil:
        """Which variables are algebraic, and their indices."""
        return pencil_of(self)

    @functools.cached_property
    def derivative_array(self) -> ca.Function:
        """The equations and their rates, up to the index; see `models.consistent`."""
        return derivative_array(self)

    @property
    def unmeasured(self) -> tuple[str, ...]:
        """Variables that mean nothing by themselves: no error of theirs shortens a step."""
        return ()

    #: States that are the second part of a system in two parts, by their places.
    second: tuple[int, ...] = ()
    #: Velocities are part of the state, or follow from it.
    known_velocities = True

    @property
    def index(self) -> int:
        """How far the equations are from determining x': 0 if they do, else the largest index of a variable."""
        return 0 if self.regular_flow else max(self.pencil.indices, default=0)

    @functools.cached_property
    def field(self) -> Any:
        """``x'`` as an expression of the state, where it follows from x and the residual is linear in it."""
        d = self.descriptor
        still = ca.substitute(d.residual, d.xdot, ca.SX.zeros(d.x.numel()))
        return ca.solve(ca.jacobian(d.residual, d.xdot), -still)

    @functools.cached_property
    def autonomous(self) -> bool:
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
        """From x0, for models without algebraic variables."""
        only(given, ("x0",), self.kind)
        x, d = vector("x0", given.get("x0"), self.coordinates, "state"), self.descriptor
        right = ca.Function("f", [d.x, d.xdot, d.t, d.k], [d.residual])
        if not np.all(np.isfinite(np.array(right(x, np.zeros(x.size), t0, k)))):
            raise InputError("the equations cannot be evaluated at the initial values: the result is not finite")
        return InitialState(t0, {"x": self.consistent(x, range(x.size), k, t0, project)})

    def consistent(self, x: np.ndarray, given: Sequence[int], k: np.ndarray, t0: float, project: bool) -> np.ndarray:
        """A consistent start from x, whose variables `given` are moved with `project` only; see `models.consistent`."""
        return x if self.pencil.regular else ConsistentStart(self, t0, k).checked(x, given, project)

    def without(self, dropped: Collection[int]) -> DescriptorModel:
        """The model without redundant constraints, for kinds of models that have such."""
        return self

    def equation_name(self, i: int) -> str:
        """What messages call an equation."""
        return f"equation {i} (row of '{(*self.coordinates, *self.algebraic)[i]}')"

    @functools.cached_property
    def view(self) -> View:
        return DescriptorView(self, self.observables)

    @property
    def observables(self) -> Mapping[str, Any]:
        """Expressions of the descriptor's symbols that can be asked for by name."""
        return {}

    def watched_energy(self, conserved: tuple[str, ...]) -> str:
        return "hamiltonian" if self.descriptor.stored is not None else ""

    def magnitude(self) -> Any:
        stored = self.descriptor.stored
        return 0.0 if stored is None else size_of_terms(stored, self.descriptor.x)

    def promised(self, scheme: Promising | None, name: str, k: np.ndarray | None = None) -> bool:
        """By its name, or as one of the quadratic invariants that a scheme promises, if it is quadratic in x.

        The balance of a quadratic Hamiltonian is such a quantity, whatever is supplied and dissipated (S002 thm. 4.2);
        all others must be invariants of this model.
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
        """Whether its rate vanishes; no proof is possible where x does not determine its own rate."""
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
        # a mass of zero makes other equations of some steps, such as those that estimate their error
        return list(terms), serialized([d.x, d.xdot, d.t, d.k], list(terms.values())), self.regular_flow


class DescriptorView(View):
    """The symbols of a descriptor, x and y apart, and its observables."""

    def __init__(self, model: DescriptorModel, observables: Mapping[str, Any]) -> None:
        d, n = model.descriptor, len(model.coordinates)
        self.symbols = {"x": d.x[:n]} | ({"y": d.x[n:]} if model.algebraic else {})
        self.t, self.k = d.t, d.k
        self._expressions = dict(observables)
        if d.stored is not None:
            self._expressions["hamiltonian"] = d.stored

    # the descriptor's x may be one symbol: the parts of it are not symbols, so functions are made of the whole
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
