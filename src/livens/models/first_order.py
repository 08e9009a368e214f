"""First-order systems: ODEs and semi-explicit DAEs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np

from livens.errors import InputError, ModelError, suggestion
from livens.expressions.names import Names, names_of
from livens.expressions.numbers import vector
from livens.expressions.parameters import Namespace, Parameters
from livens.expressions.read import ModelFunction, Reader
from livens.models.descriptor import Descriptor, DescriptorModel
from livens.models.model import InitialState, only


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
        Names of the states in the second part of a partitioned system, ``x' = f(x, y)`` and ``y' = g(x, y)`` (S002
        def. 6.1). Pairs of methods then apply, such as ``lobatto-iiia-iiib-3`` or `partitioned:<method>,<other>`.

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

    kind = "FirstOrder"

    def __init__(
        self,
        states: Names,
        *,
        rhs: Callable[..., Any],
        algebraic: Names = 0,
        constraints: Callable[..., Any] | None = None,
        mass: Any = None,
        invariants: Mapping[str, Callable[..., Any]] | None = None,
        parameters: Mapping[str, Any] | None = None,
        look: ModelFunction | None = None,
        second: Names = (),
    ) -> None:
        self.look = look
        self.coordinates = names_of("states", states, "x")
        self.second = self._second_part(second)
        self.algebraic = names_of("algebraic", algebraic, "y")
        self.n, self.m = len(self.coordinates), len(self.algebraic)
        if not self.n:
            raise InputError("a system of first order needs at least one state")
        self.shared = Parameters(parameters)
        if self.second:
            if self.m or mass is not None:
                raise ModelError("a partitioned system has no algebraic variables and no mass matrix")
            self.forms = ("descriptor", "partitioned")
        w, self._t, self._k = ca.SX.sym("x", self.n + self.m), ca.SX.sym("t"), ca.SX.sym("k", self.shared.size)
        self._w, self._dot = w, ca.SX.sym("xdot", self.n + self.m)
        named = Namespace(self.shared.symbols(self._k))
        read = Reader({"x": w[: self.n], "y": w[self.n :], "t": self._t, "k": named})
        allowed = "xytk" if self.m else "xtk"
        if not callable(rhs):
            raise ModelError(f"rhs must be a function of {', '.join(allowed)}, got {rhs!r}")
        if bool(self.m) != (constraints is not None):
            raise ModelError("give algebraic variables together with as many constraints")
        self.f = ca.densify(read("rhs", rhs, (self.n,), allowed))
        self.g = ca.densify(read("constraints", constraints, (self.m,), allowed)) if self.m else ca.SX(0, 1)
        self.E = ca.SX.eye(self.n) if mass is None else read("mass", mass, (self.n, self.n), allowed)
        self.symmetries = {name: read(name, function, (), allowed) for name, function in (invariants or {}).items()}

    def _second_part(self, second: Any) -> tuple[int, ...]:
        """Return the indices of the states in the second part."""
        names = second.split() if isinstance(second, str) else list(second) if isinstance(second, Sequence) else None
        if names is None:
            raise InputError(f"partition must name states, such as 'v w', got {second!r}")
        for name in names:
            if name not in self.coordinates:
                raise InputError(f"partition names the unknown state '{name}'{suggestion(str(name), self.coordinates)}")
        if names and len(set(names)) == len(self.coordinates):
            raise InputError("partition names all states: then there is no first part")
        return tuple(i for i, name in enumerate(self.coordinates) if name in names)

    def content(self) -> Sequence[Any]:
        return (*super().content(), *((self.second,) if self.second else ()))

    @functools.cached_property
    def descriptor(self) -> Descriptor:
        residual = ca.vertcat(self.E @ self._dot[: self.n] - self.f, -self.g)
        return Descriptor(self._w, self._dot, self._t, self._k, ca.densify(residual))

    @property
    def observables(self) -> Mapping[str, Any]:
        return {**self.symmetries, "constraint": self.g} if self.m else dict(self.symmetries)

    def watched_constraints(self) -> tuple[Any, Any]:
        return self.g, ca.SX(0, 1)

    def start(self, given: Mapping[str, Any], k: np.ndarray, t0: float, project: bool, redundant: str) -> InitialState:
        only(given, ("x0", "y0") if self.m else ("x0",), "system of first order")
        x = vector("x0", given.get("x0"), self.coordinates, "state")
        y = given.get("y0") if self.m else None
        guess = np.zeros(self.m) if y is None else vector("y0", y, self.algebraic, "algebraic variable")
        w = np.concatenate([x, guess])
        everything = ca.Function("f", [self._w, self._t, self._k], [ca.vertcat(self.f, self.g, ca.vec(self.E))])
        if not np.all(np.isfinite(np.array(everything(w, t0, k)))):
            raise InputError("the right-hand side cannot be evaluated at the initial values: the result is not finite")
        fixed = range(self.n if y is None else self.n + self.m)
        w = self.consistent(w, fixed, k, t0, project)
        return InitialState(t0, {"x": w[: self.n]} | ({"y": w[self.n :]} if self.m else {}))

    def equation_name(self, i: int) -> str:
        return f"constraint {i - self.n}" if i >= self.n else f"equation {i} (of '{self.coordinates[i]}')"
