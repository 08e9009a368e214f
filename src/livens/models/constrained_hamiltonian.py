"""Constrained Hamiltonian systems with a general H(q, p) (S002 sect. 3.1 and 6.2)."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np

from livens.errors import InputError, ModelError
from livens.expressions.names import Names, names_of
from livens.expressions.numbers import one_of, vector
from livens.expressions.parameters import Namespace, Parameters
from livens.expressions.read import ModelFunction, Reader
from livens.models.descriptor import Descriptor, DescriptorModel
from livens.models.model import InitialState, Promising, only
from livens.models.scene import Look, particles

FORMULATIONS = ("index-3", "index-2", "ggl")


class ConstrainedHamiltonian(DescriptorModel):
    """Constrained Hamiltonian system for any energy H(q, p), as a DAE.

    The equations are ``q' = dH/dp``, ``p' = -dH/dq + F - G(q)^T lam``, ``0 = g(q)`` with ``G = Dg``. H need be neither
    separable nor quadratic. The state is ``x = (q, p)`` with multipliers ``y = lam``; the initial values are q0 and p0.

    The default scheme is the symplectic Lobatto IIIA-IIIB pair, ``lobatto-iiia-iiib-3``: it preserves g and its time
    derivative. Runge-Kutta methods integrate the chosen formulation.

    Parameters
    ----------
    coordinates : str, sequence of str or int
        Names of the coordinates, or their number.
    hamiltonian : callable
        Hamiltonian, a function of ``q p t k``, in joules.
    constraints : callable
        Position constraints: a function of ``q t k`` that returns a list of residuals.
    forces : callable, optional
        Generalized forces: a function of ``q v t k`` with the velocity v = dH/dp.
    formulation : {"index-3", "index-2", "ggl"}, default "index-3"
        "index-3" imposes g, "index-2" its time derivative, "ggl" both, with multipliers mu of
        ``q' = dH/dp + G^T mu``.
    parameters : mapping, optional
        Parameter values by name, available to model functions as ``k``.

    Raises
    ------
    InputError
        If there is no coordinate, or the formulation is unknown.
    ModelError
        If a model function is invalid, or H does not depend on the momenta.

    Examples
    --------
    >>> import livens as lv
    >>> rod = lv.ConstrainedHamiltonian(
    ...     "x y",
    ...     hamiltonian=lambda q, p: p @ p / (2 * (1 + q[1] ** 2)) + 9.81 * q[1],
    ...     constraints=lambda q: [(q @ q - 1) / 2],
    ... )
    >>> run = lv.simulate(rod, q0=[1.0, 0.0], p0=[0.0, 0.5], h=0.01, t_end=1.0)
    >>> run.facts.scheme, run.summary.max_constraint < 1e-13
    ('lobatto-iiia-iiib-3', True)
    """

    kind = "ConstrainedHamiltonian"
    forms = ("descriptor", "constrained phase space")

    def __init__(
        self,
        coordinates: Names,
        *,
        hamiltonian: ModelFunction,
        constraints: ModelFunction,
        forces: ModelFunction | None = None,
        formulation: str = "index-3",
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        self.formulation = one_of("formulation", formulation, FORMULATIONS)
        self.names = names_of("coordinates", coordinates, "q")
        n = len(self.names)
        if not n:
            raise InputError("a Hamiltonian system needs at least one coordinate")
        self.shared = Parameters(parameters)
        q, p, v = (ca.SX.sym(name, n) for name in "qpv")
        t, k = ca.SX.sym("t"), ca.SX.sym("k", self.shared.size)
        read = Reader({"q": q, "p": p, "v": v, "t": t, "k": Namespace(self.shared.symbols(k))})
        for role, function in (("hamiltonian", hamiltonian), ("constraints", constraints)):
            if not callable(function):
                raise ModelError(f"{role} must be a function, got {function!r}")
        self.H = read("hamiltonian", hamiltonian, (), "qptk")
        if not ca.depends_on(self.H, p):
            raise ModelError("the energy does not depend on the momenta, so nothing moves")
        self.g = ca.densify(read("constraints", constraints, (None,), "qtk"))
        self.velocity = ca.densify(ca.gradient(self.H, p))
        force = ca.SX.zeros(n) if forces is None else read("forces", forces, (n,), "qvtk")
        self.F = ca.densify(ca.substitute(force, v, self.velocity))
        self.q, self.p, self.t, self.k, self.m = q, p, t, k, int(self.g.numel())
        self.lam = ca.SX.sym("lam", self.m)
        both = [f"mu[{i}]" for i in range(self.m)] if formulation == "ggl" else []
        self.algebraic = (*(f"lam[{i}]" for i in range(self.m)), *both)
        self.coordinates = (*self.names, *(f"p_{name}" for name in self.names))
        self.n = len(self.coordinates)

    @property
    def usual_scheme(self) -> str:  # type: ignore[override]
        return "lobatto-iiia-iiib-3" if self.formulation == "index-3" else "radau-iia-3"

    @functools.cached_property
    def G(self) -> Any:
        """Constraint Jacobian ``dg/dq``."""
        return ca.jacobian(self.g, self.q)

    @functools.cached_property
    def hidden(self) -> Any:
        """Hidden constraint: time derivative ``G dH/dp + dg/dt`` of the constraints."""
        return ca.densify(self.G @ self.velocity + ca.jacobian(self.g, self.t))

    @functools.cached_property
    def momentum_rate(self) -> Any:
        """Time derivative of the momenta, including the constraint forces."""
        return ca.densify(self.F - ca.gradient(self.H, self.q) - self.G.T @ self.lam)

    @functools.cached_property
    def descriptor(self) -> Descriptor:
        half = len(self.names)
        mu = ca.SX.sym("mu", self.m if self.formulation == "ggl" else 0)
        x, rate = ca.vertcat(self.q, self.p, self.lam, mu), ca.SX.sym("x'", self.n + len(self.algebraic))
        drift = self.G.T @ mu if self.formulation == "ggl" else 0
        rows = [rate[:half] - self.velocity - drift, rate[half : 2 * half] - self.momentum_rate]
        rows += [self.g] if self.formulation != "index-2" else []
        rows += [self.hidden] if self.formulation != "index-3" else []
        moving = ca.dot(self.lam, ca.jacobian(self.g, self.t))
        supplied = ca.dot(self.F, self.velocity) + ca.gradient(self.H, self.t) + moving
        return Descriptor(x, rate, self.t, self.k, ca.densify(ca.vertcat(*rows)), stored=self.H, supplied=supplied)

    @property
    def unmeasured(self) -> tuple[str, ...]:
        """Multipliers mu of the GGL formulation, which vanish for exact solutions."""
        return tuple(name for name in self.algebraic if name.startswith("mu["))

    @property
    def observables(self) -> Mapping[str, Any]:
        return {"total_energy": self.H, "constraint": self.g, "velocity_constraint": self.hidden}

    def watched_constraints(self) -> tuple[Any, Any]:
        return self.g, self.hidden

    def velocities(self) -> Any:
        return self.velocity

    def looks(self, k: np.ndarray) -> list[Look]:
        """Return default visuals: spheres at coordinates named x and y."""
        return particles(self.coordinates)

    def promised(self, scheme: Promising | None, name: str, k: np.ndarray | None = None) -> bool:
        """Return whether a quantity is guaranteed; constraints only at the levels that the formulation imposes.

        The symplectic pair preserves constraints at both levels.
        """
        imposed = {"constraint": ("index-3", "ggl"), "velocity_constraint": ("index-2", "ggl")}
        if name not in imposed or scheme is None:
            return super().promised(scheme, name, k)
        if "velocity_constraint" in scheme.conserves and self.formulation == "index-3":
            return True
        return "constraint" in scheme.conserves and self.formulation in imposed[name]

    def start_from(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        half = len(self.names)
        return {"q0": values["x"][:half], "p0": values["x"][half:]}

    def start(self, given: Mapping[str, Any], k: np.ndarray, t0: float, project: bool, redundant: str) -> InitialState:
        """Return the initial state for q0 and p0; the multipliers are computed."""
        only(given, ("q0", "p0"), "Hamiltonian system with constraints")
        state = np.concatenate([vector(name, given.get(name), self.names, "coordinate") for name in ("q0", "p0")])
        w = np.concatenate([state, np.zeros(len(self.algebraic))])
        d = self.descriptor
        right = ca.Function("r", [d.x, d.xdot, d.t, d.k], [d.residual])
        if not np.all(np.isfinite(np.array(right(w, np.zeros(w.size), t0, k)))):
            raise InputError("the energy or its derivatives cannot be evaluated at q0, p0: the result is not finite")
        w = self.consistent(w, range(self.n), k, t0, project)
        return InitialState(t0, {"x": w[: self.n], "y": w[self.n :]})

    def equation_name(self, i: int) -> str:
        return f"constraint {(i - self.n) % self.m}" if i >= self.n else f"equation {i} (of '{self.coordinates[i]}')"

    def content(self) -> Sequence[Any]:
        return self.formulation, *super().content()

    def __repr__(self) -> str:
        return f"<livens.ConstrainedHamiltonian: coordinates {' '.join(self.names)}, {self.m} constraints>"
