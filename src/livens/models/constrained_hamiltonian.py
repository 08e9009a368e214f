"""Constrained Hamiltonian systems with a general H(q, p) (Symank 2025, sect. 3.1 and 6.2)."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np

from livens.errors import InputError, ModelError, explain_call_errors
from livens.expressions.name_parsing import Names, parse_names
from livens.expressions.parameters import ParameterNamespace, Parameters
from livens.expressions.tracing import FunctionTracer, ModelFunction
from livens.models.base import ConservationGuarantees, InitialState, check_initial_value_names
from livens.models.descriptor import Descriptor, DescriptorModel
from livens.scene.scene import Visual, default_visuals
from livens.types import Expr
from livens.validation import check_choice, check_vector

FORMULATIONS = ("index-3", "index-2", "ggl")


@explain_call_errors
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
    >>> run.info.scheme, run.summary.max_constraint < 1e-13
    ('lobatto-iiia-iiib-3', True)
    """

    type_label = "ConstrainedHamiltonian"
    formulations = ("descriptor", "constrained phase space")

    def __init__(
        self,
        coordinates: Names,
        *,
        hamiltonian: ModelFunction,
        constraints: ModelFunction,
        forces: ModelFunction | None = None,
        formulation: str = "index-3",
        parameters: Mapping[str, object] | None = None,
    ) -> None:
        self.formulation = check_choice("formulation", formulation, FORMULATIONS)
        self.coordinate_names = parse_names("coordinates", coordinates, "q")
        n = len(self.coordinate_names)
        if not n:
            raise InputError("a Hamiltonian system needs at least one coordinate")
        self.model_parameters = Parameters(parameters)
        q, p, v = (ca.SX.sym(name, n) for name in "qpv")
        t, k = ca.SX.sym("t"), ca.SX.sym("k", self.model_parameters.size)
        trace = FunctionTracer(
            {"q": q, "p": p, "v": v, "t": t, "k": ParameterNamespace(self.model_parameters.unpack_symbols(k))}
        )
        for role, function in (("hamiltonian", hamiltonian), ("constraints", constraints)):
            if not callable(function):
                raise ModelError(f"{role} must be a function, got {function!r}")
        self.H = trace("hamiltonian", hamiltonian, (), "qptk")
        if not ca.depends_on(self.H, p):
            raise ModelError("the energy does not depend on the momenta, so nothing moves")
        self.g = ca.densify(trace("constraints", constraints, (None,), "qtk"))
        self.velocity = ca.densify(ca.gradient(self.H, p))
        force = ca.SX.zeros(n) if forces is None else trace("forces", forces, (n,), "qvtk")
        self.F = ca.densify(ca.substitute(force, v, self.velocity))
        self.q, self.p, self.t, self.k, self.m = q, p, t, k, int(self.g.numel())
        self.lam = ca.SX.sym("lam", self.m)
        mu_names = [f"mu[{i}]" for i in range(self.m)] if formulation == "ggl" else []
        self.algebraic_names = (*(f"lam[{i}]" for i in range(self.m)), *mu_names)
        self.coordinates = (*self.coordinate_names, *(f"p_{name}" for name in self.coordinate_names))
        self.n = len(self.coordinates)

    @property
    def default_scheme(self) -> str:  # type: ignore[override]
        return "lobatto-iiia-iiib-3" if self.formulation == "index-3" else "radau-iia-3"

    @functools.cached_property
    def G(self) -> Expr:
        """Constraint Jacobian ``dg/dq``."""
        return ca.jacobian(self.g, self.q)

    @functools.cached_property
    def hidden_constraint(self) -> Expr:
        """Hidden constraint: time derivative ``G dH/dp + dg/dt`` of the constraints."""
        return ca.densify(self.G @ self.velocity + ca.jacobian(self.g, self.t))

    @functools.cached_property
    def momentum_rate(self) -> Expr:
        """Time derivative of the momenta, including the constraint forces."""
        return ca.densify(self.F - ca.gradient(self.H, self.q) - self.G.T @ self.lam)

    @functools.cached_property
    def descriptor(self) -> Descriptor:
        n_q = len(self.coordinate_names)
        mu = ca.SX.sym("mu", self.m if self.formulation == "ggl" else 0)
        x, xdot = ca.vertcat(self.q, self.p, self.lam, mu), ca.SX.sym("x'", self.n + len(self.algebraic_names))
        ggl_term = self.G.T @ mu if self.formulation == "ggl" else 0
        residual = [xdot[:n_q] - self.velocity - ggl_term, xdot[n_q : 2 * n_q] - self.momentum_rate]
        residual += [self.g] if self.formulation != "index-2" else []
        residual += [self.hidden_constraint] if self.formulation != "index-3" else []
        rheonomic_power = ca.dot(self.lam, ca.jacobian(self.g, self.t))
        supplied = ca.dot(self.F, self.velocity) + ca.gradient(self.H, self.t) + rheonomic_power
        return Descriptor(x, xdot, self.t, self.k, ca.densify(ca.vertcat(*residual)), stored=self.H, supplied=supplied)

    @property
    def excluded_from_error_norm(self) -> tuple[str, ...]:
        """Multipliers mu of the GGL formulation, which vanish for exact solutions."""
        return tuple(name for name in self.algebraic_names if name.startswith("mu["))

    @property
    def observables(self) -> Mapping[str, Any]:
        return {"total_energy": self.H, "constraint": self.g, "velocity_constraint": self.hidden_constraint}

    def monitored_constraints(self) -> tuple[Expr, Expr]:
        return self.g, self.hidden_constraint

    def velocity_expression(self) -> Expr:
        return self.velocity

    def visuals(self, k: np.ndarray) -> list[Visual]:
        """Return default visuals: spheres at coordinates named x and y."""
        return default_visuals(self.coordinates)

    def is_guaranteed_by(self, scheme: ConservationGuarantees | None, name: str, k: np.ndarray | None = None) -> bool:
        """Return whether a quantity is guaranteed; constraints only at the levels that the formulation imposes.

        The symplectic pair preserves constraints at both levels.
        """
        imposed = {"constraint": ("index-3", "ggl"), "velocity_constraint": ("index-2", "ggl")}
        if name not in imposed or scheme is None:
            return super().is_guaranteed_by(scheme, name, k)
        if "velocity_constraint" in scheme.conserves and self.formulation == "index-3":
            return True
        return "constraint" in scheme.conserves and self.formulation in imposed[name]

    def initial_values_from(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        n_q = len(self.coordinate_names)
        return {"q0": values["x"][:n_q], "p0": values["x"][n_q:]}

    def initial_state(
        self, initial_values: Mapping[str, object], k: np.ndarray, t0: float, project: bool, redundant: str
    ) -> InitialState:
        """Return the initial state for q0 and p0; the multipliers are computed."""
        check_initial_value_names(initial_values, ("q0", "p0"), "Hamiltonian system with constraints")
        state = np.concatenate(
            [check_vector(name, initial_values.get(name), self.coordinate_names, "coordinate") for name in ("q0", "p0")]
        )
        w = np.concatenate([state, np.zeros(len(self.algebraic_names))])
        d = self.descriptor
        residual = ca.Function("r", [d.x, d.xdot, d.t, d.k], [d.residual])
        if not np.all(np.isfinite(np.array(residual(w, np.zeros(w.size), t0, k)))):
            raise InputError("the energy or its derivatives cannot be evaluated at q0, p0: the result is not finite")
        w = self.consistent_initial_values(w, range(self.n), k, t0, project)
        return InitialState(t0, {"x": w[: self.n], "y": w[self.n :]})

    def equation_label(self, i: int) -> str:
        return f"constraint {(i - self.n) % self.m}" if i >= self.n else f"equation {i} (of '{self.coordinates[i]}')"

    def fingerprint_data(self) -> Sequence[object]:
        return self.formulation, *super().fingerprint_data()

    def __repr__(self) -> str:
        return f"<livens.ConstrainedHamiltonian: coordinates {' '.join(self.coordinate_names)}, {self.m} constraints>"
