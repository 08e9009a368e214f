"""First-order systems: ODEs and semi-explicit DAEs."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np

from livens.errors import InputError, ModelError, explain_call_errors, suggestion
from livens.expressions.evaluate import Evaluator
from livens.expressions.name_parsing import Names, parse_names
from livens.expressions.parameters import ParameterNamespace, Parameters
from livens.expressions.tracing import FunctionTracer, ModelFunction
from livens.models.base import InitialState, check_initial_value_names
from livens.models.descriptor import Descriptor, DescriptorModel
from livens.types import Expr
from livens.validation import all_finite, check_vector


@explain_call_errors
class FirstOrder(DescriptorModel):
    """First-order system ``E x' = f(t, x, y)``, ``0 = g(t, x, y)``: an ODE or a semi-explicit DAE.

    Model functions take any of ``x y t k`` by argument name.

    Parameters
    ----------
    states : str, sequence of str or int
        Names of the states ("a b"), or their number.
    rhs : callable
        Right-hand side f: one value per state.
    algebraic : str, sequence of str or int, default 0
        Names of the algebraic variables y, or their number.
    constraints : callable, optional
        Algebraic equations g: one residual per algebraic variable.
    mass : array_like or callable, optional
        Mass matrix E of shape (n, n). Default: the identity.
    invariants : mapping of str to callable, optional
        Conserved quantities by name, which are monitored in a run.
    parameters : mapping, optional
        Parameter values by name, available to model functions as ``k``.
    visual : callable, optional
        Function of ``x t k`` that returns shapes, see `livens.shapes`.
    partition : str or sequence of str, default ()
        Names of the states in the second part of a partitioned system, ``x' = f(x, y)`` and ``y' = g(x, y)`` (Symank
        2025 def. 6.1). Pairs of methods then apply, such as ``lobatto-iiia-iiib-3`` or `partitioned:<method>,<other>`.

    Raises
    ------
    InputError
        If there is no state, or `partition` is invalid.
    ModelError
        If a model function is invalid, or the number of constraints differs from that of algebraic variables.

    Examples
    --------
    >>> import livens as lv
    >>> lotka = lv.FirstOrder(
    ...     "prey hunters",
    ...     rhs=lambda x: [x[0] * (1 - x[1]), x[1] * (x[0] - 1)],
    ...     invariants=dict(V=lambda x: x[0] - lv.math.log(x[0]) + x[1] - lv.math.log(x[1])),
    ... )
    >>> run = lv.simulate(lotka, x0=[2.0, 1.0], scheme="gauss-2", h=0.1, t_end=10.0)
    >>> run.x.shape, bool(run.summary.momentum_drift["V"] < 1e-4)
    ((101, 2), True)
    """

    type_label = "FirstOrder"

    def __init__(
        self,
        states: Names,
        *,
        rhs: ModelFunction,
        algebraic: Names = 0,
        constraints: ModelFunction | None = None,
        mass: Any = None,
        invariants: Mapping[str, ModelFunction] | None = None,
        parameters: Mapping[str, object] | None = None,
        visual: ModelFunction | None = None,
        partition: Names = (),
    ) -> None:
        self.visual = visual
        self.coordinates = parse_names("states", states, "x")
        self.partition = self._partition_indices(partition)
        self.algebraic_names = parse_names("algebraic", algebraic, "y")
        self.n, self.m = len(self.coordinates), len(self.algebraic_names)
        if not self.n:
            raise InputError("a system of first order needs at least one state")
        self.model_parameters = Parameters(parameters)
        if self.partition:
            if self.m or mass is not None:
                raise ModelError("a partitioned system has no algebraic variables and no mass matrix")
            self.formulations = ("descriptor", "partitioned")
        w, self._t, self._k = (
            ca.SX.sym("x", self.n + self.m),
            ca.SX.sym("t"),
            ca.SX.sym("k", self.model_parameters.size),
        )
        self._xy, self._xdot = w, ca.SX.sym("xdot", self.n + self.m)
        named = ParameterNamespace(self.model_parameters.unpack_symbols(self._k))
        trace = FunctionTracer({"x": w[: self.n], "y": w[self.n :], "t": self._t, "k": named})
        allowed = "xytk" if self.m else "xtk"
        if not callable(rhs):
            raise ModelError(f"rhs must be a function of {', '.join(allowed)}, got {rhs!r}")
        if bool(self.m) != (constraints is not None):
            raise ModelError("give algebraic variables together with as many constraints")
        self.f = ca.densify(trace("rhs", rhs, (self.n,), allowed))
        self.g = ca.densify(trace("constraints", constraints, (self.m,), allowed)) if self.m else ca.SX(0, 1)
        self.E = ca.SX.eye(self.n) if mass is None else trace("mass", mass, (self.n, self.n), allowed)
        self.symmetries = {name: trace(name, function, (), allowed) for name, function in (invariants or {}).items()}

    def _partition_indices(self, partition: object) -> tuple[int, ...]:
        """Return the indices of the states in the second part."""
        names = (
            partition.split()
            if isinstance(partition, str)
            else list(partition)
            if isinstance(partition, Sequence)
            else None
        )
        if names is None:
            raise InputError(f"partition must name states, such as 'v w', got {partition!r}")
        for name in names:
            if name not in self.coordinates:
                raise InputError(f"partition names the unknown state '{name}'{suggestion(str(name), self.coordinates)}")
        if names and len(set(names)) == len(self.coordinates):
            raise InputError("partition names all states: then there is no first part")
        return tuple(i for i, name in enumerate(self.coordinates) if name in names)

    def fingerprint_data(self) -> Sequence[object]:
        return (*super().fingerprint_data(), *((self.partition,) if self.partition else ()))

    @functools.cached_property
    def descriptor(self) -> Descriptor:
        residual = ca.vertcat(self.E @ self._xdot[: self.n] - self.f, -self.g)
        return Descriptor(self._xy, self._xdot, self._t, self._k, ca.densify(residual))

    @functools.cached_property
    def _terms(self) -> Evaluator:
        """Right-hand side, algebraic equations and mass matrix as a function of (x, t, k)."""
        return Evaluator([self._xy, self._t, self._k], [ca.vertcat(self.f, self.g, ca.vec(self.E))])

    @property
    def observables(self) -> Mapping[str, Any]:
        return {**self.symmetries, "constraint": self.g} if self.m else dict(self.symmetries)

    def monitored_constraints(self) -> tuple[Expr, Expr]:
        return self.g, ca.SX(0, 1)

    def initial_state(
        self, initial_values: Mapping[str, object], k: np.ndarray, t0: float, project: bool, redundant: str
    ) -> InitialState:
        check_initial_value_names(initial_values, ("x0", "y0") if self.m else ("x0",), "system of first order")
        x = check_vector("x0", initial_values.get("x0"), self.coordinates, "state")
        y = initial_values.get("y0") if self.m else None
        y_initial = np.zeros(self.m) if y is None else check_vector("y0", y, self.algebraic_names, "algebraic variable")
        w = np.concatenate([x, y_initial])
        if not all_finite(self._terms(w, t0, k)[0].ravel()):
            raise InputError("the right-hand side cannot be evaluated at the initial values: the result is not finite")
        prescribed = range(self.n if y is None else self.n + self.m)
        w = self.consistent_initial_values(w, prescribed, k, t0, project)
        return InitialState(t0, {"x": w[: self.n]} | ({"y": w[self.n :]} if self.m else {}))

    def equation_label(self, i: int) -> str:
        return f"constraint {i - self.n}" if i >= self.n else f"equation {i} (of '{self.coordinates[i]}')"
