"""Discrete Lagrangians: mechanical systems given by the action of one step."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

import casadi as ca
import numpy as np

from livens.errors import InputError, ModelError, explain_call_errors, suggestion
from livens.expressions.name_parsing import Names, parse_names
from livens.expressions.parameters import ParameterNamespace, Parameters
from livens.expressions.probe import Probe
from livens.expressions.state_layout import Layout
from livens.expressions.tracing import FunctionTracer
from livens.math import from_casadi
from livens.models.base import (
    ConservationGuarantees,
    InitialState,
    Model,
    SymbolicState,
    check_initial_value_names,
    serialize_expressions,
)
from livens.models.initialization.gauss_newton import gauss_newton, inconsistent_values_error
from livens.models.symmetry import is_linear_generator, trace_generator
from livens.scene.scene import Visual, default_visuals
from livens.types import Expr, ModelFunction
from livens.validation import check_vector

#: Largest residual of the constraints at consistent initial values, in their units.
_CONSISTENCY_TOLERANCE = 1e-10


@explain_call_errors
class DiscreteLagrangian(Model):
    """Discrete Lagrangian ``L_d(q0, q1, h)``, an approximation of the action of one step (Modin 2009, 2.6.4).

    The discrete Euler-Lagrange equations are::

        p0 = -D_1 L_d(q0, q1, h) - f_d^- + h G(q0)^T lam        E_d = -dL_d/dh
        p1 =  D_2 L_d(q0, q1, h) + f_d^+                        0 = g(q1)

    with ``G = Dg``. They define a step of (q, p) that is symplectic for every L_d without discrete forces ``f_d``. The
    motion has the order r if ``L_d`` agrees with the action of the exact motion up to ``O(h^(r+1))``, and the discrete
    forces with the impulses of the forces. With constraints, momenta that differ by ``G(q)^T lam`` are equivalent.

    Parameters
    ----------
    coordinates : str, sequence of str or int
        Names of the coordinates, or their number.
    lagrangian : callable
        Discrete Lagrangian, a function of any of ``q0 q1 h t k`` with the time t at the beginning of the step.
    forces : callable, optional
        Discrete forces of the Lagrange-d'Alembert principle, a function of any of ``q0 q1 h t k`` that returns
        ``[f_minus, f_plus]``: the impulses of the forces in the step that belong to q0 and to q1.
    constraints : callable, optional
        Position constraints: a function of ``q k`` that returns a list of independent residuals.
    parameters : mapping, optional
        Parameter values by name, available to functions as ``k``.
    symmetries : mapping of str to callable, optional
        Generators of momentum maps by name, as for `System`.
    visual : callable, optional
        Function of ``q t k`` that returns shapes, see `livens.shapes`.

    Raises
    ------
    InputError
        If there is no coordinate.
    ModelError
        If the discrete Lagrangian is invalid, or does not determine q1.

    Examples
    --------
    >>> import numpy as np, livens as lv
    >>> pendulum = lv.DiscreteLagrangian(
    ...     "angle",
    ...     lagrangian=lambda q0, q1, h: (q1[0] - q0[0]) ** 2 / (2 * h) + h * lv.math.cos((q0[0] + q1[0]) / 2),
    ... )
    >>> run = lv.simulate(pendulum, q0=[1.0], p0=[0.0], h=0.1, t_end=10.0)
    >>> midpoint = lv.Hamiltonian("a", kinetic=lambda p: p[0] ** 2 / 2, potential=lambda q: -lv.math.cos(q[0]))
    >>> other = lv.simulate(midpoint, q0=[1.0], p0=[0.0], scheme="implicit-midpoint", h=0.1, t_end=10.0)
    >>> bool(np.abs(run.q - other.q).max() < 1e-13)
    True
    """

    type_label = "DiscreteLagrangian"
    formulations = ("discrete Lagrangian",)
    default_scheme = "discrete-euler-lagrange"
    error_norm_variables = ("q", "p")

    def __init__(
        self,
        coordinates: Names,
        *,
        lagrangian: ModelFunction,
        forces: ModelFunction | None = None,
        constraints: ModelFunction | None = None,
        parameters: Mapping[str, object] | None = None,
        symmetries: Mapping[str, ModelFunction] | None = None,
        visual: ModelFunction | None = None,
    ) -> None:
        self.coordinates = parse_names("coordinates", coordinates, "q", singular="coordinate")
        self.n = n = len(self.coordinates)
        if not n:
            raise InputError("a discrete Lagrangian needs at least one coordinate")
        if not callable(lagrangian):
            raise ModelError(f"lagrangian must be a function of q0, q1, h, t, k, got {lagrangian!r}")
        self.model_parameters, self._visual = Parameters(parameters), visual
        self.q0, self.q1 = ca.SX.sym("q0", n), ca.SX.sym("q1", n)
        self.h, self.t, self.k = ca.SX.sym("h"), ca.SX.sym("t"), ca.SX.sym("k", self.model_parameters.size)
        namespace = ParameterNamespace(self.model_parameters.unpack_symbols(self.k))
        trace = FunctionTracer({"q0": self.q0, "q1": self.q1, "h": from_casadi(self.h)[0], "t": self.t, "k": namespace})
        self.Ld = trace.check_shape(
            "lagrangian", trace.trace("lagrangian", lagrangian, ("q0", "q1", "h", "t", "k")), ()
        )
        #: Impulses f_d^- and f_d^+ of the discrete forces.
        self.impulses = ca.SX.zeros(n), ca.SX.zeros(n)
        self.has_forces = forces is not None
        if forces is not None:
            values = trace.check_shape("forces", trace.trace("forces", forces, ("q0", "q1", "h", "t", "k")), (2, n))
            self.impulses = ca.densify(values[0, :].T), ca.densify(values[1, :].T)
        self.q = ca.SX.sym("q", n)
        self.g = ca.SX(0, 1)
        if constraints is not None:
            at_position = FunctionTracer({"q": self.q, "k": namespace})
            self.g = ca.densify(
                at_position.as_column("constraints", at_position.trace("constraints", constraints, "qk"))
            )
        self.m = int(self.g.numel())
        if symmetries is not None and not isinstance(symmetries, Mapping):
            raise ModelError(f"symmetries must map names to functions, got {symmetries!r}")
        self.symmetries = {name: trace_generator(name, f, n) for name, f in (symmetries or {}).items()}
        symbols = [self.q0, self.q1, self.h, self.t, self.k]
        determinant = ca.det(ca.jacobian(ca.gradient(self.Ld, self.q0), self.q1))
        if Probe(symbols, seed=9, fixed={4: self.parameter_vector()}).is_zero(determinant) is True:
            raise ModelError("the discrete Lagrangian does not determine q1: the matrix of D_1 D_2 L_d is singular")

    @functools.cached_property
    def action(self) -> ca.Function:
        """Momenta at both ends, discrete energy and work of the forces: a CasADi function of (q0, q1, h, t, k)."""
        before, after = self.impulses
        outputs = [
            -ca.gradient(self.Ld, self.q0) - before,
            ca.gradient(self.Ld, self.q1) + after,
            -ca.gradient(self.Ld, self.h),
            ca.dot(before + after, self.q1 - self.q0) / self.h,
        ]
        arguments = [self.q0, self.q1, self.h, self.t, self.k]
        return ca.Function("action", arguments, [ca.densify(output) for output in outputs])

    @functools.cached_property
    def constraint(self) -> ca.Function:
        """Position constraints and their Jacobian: a CasADi function of (q, k)."""
        return ca.Function("constraint", [self.q, self.k], [self.g, ca.densify(ca.jacobian(self.g, self.q))])

    # -- interface to a run -------------------------------------------------------------------------------------------
    @property
    def layout(self) -> Layout:
        parts = Layout(q=self.n, v=self.n, p=self.n, discrete_energy=1)
        parts = parts.extended(multipliers=self.m) if self.m else parts
        return parts.extended(supplied_energy=1, dissipated_energy=1) if self.has_forces else parts

    @functools.cached_property
    def view(self) -> SymbolicState:
        return DiscreteLagrangianSymbols(self)

    def initial_state(
        self, initial_values: Mapping[str, object], k: np.ndarray, t0: float, project: bool, redundant: str
    ) -> InitialState:
        """Return the initial state for q0 and p0; velocity and discrete energy are those of the first step."""
        check_initial_value_names(initial_values, ("q0", "p0"), "discrete Lagrangian")
        q, p = (check_vector(name, initial_values.get(name), self.coordinates, "coordinate") for name in ("q0", "p0"))
        if self.m:
            q = self._consistent_position(q, k, project)
        return InitialState(t0, {"q": q, "v": np.zeros(self.n), "p": p, "discrete_energy": np.zeros(1)})

    def _consistent_position(self, q: np.ndarray, k: np.ndarray, project: bool) -> np.ndarray:
        """Return q if it satisfies the constraints, or the position nearby if `project`; raise InputError otherwise."""

        def correction(x: np.ndarray) -> np.ndarray:
            g, G = (np.array(part) for part in self.constraint(x, k))
            return np.asarray(np.linalg.lstsq(G, g.ravel(), rcond=None)[0])

        residual = float(np.abs(np.array(self.constraint(q, k)[0])).max())
        if residual <= _CONSISTENCY_TOLERANCE:
            return q
        nearby, converged = gauss_newton(correction, q)
        if project and converged:
            return nearby
        raise inconsistent_values_error(
            f"inconsistent initial values: a constraint is violated by {residual:.3g}",
            [f"q0 of '{name}'" for name in self.coordinates],
            nearby if converged else None,
        )

    def initial_values_from(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {f"{name}0": values[name] for name in ("q", "p")}

    def monitored_energy(self, conserved: tuple[str, ...]) -> str:
        return "discrete_energy"

    def energy_scale(self) -> Expr:
        symbols = self.view.symbols
        return ca.fabs(ca.dot(symbols["p"], symbols["v"])) / 2

    def velocity_derivatives(self, state: InitialState, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return zero matrices: no step depends on the reported velocity.

        Parameters
        ----------
        state : InitialState
            State with q and p.
        k : ndarray of shape (parameter_count,)
            Parameter vector.

        Returns
        -------
        tuple of ndarray
            Partial derivatives of v with respect to q and p, each of shape (n, n).
        """
        return np.zeros((self.n, self.n)), np.zeros((self.n, self.n))

    @functools.cached_property
    def autonomous(self) -> bool:
        """True if the discrete Lagrangian does not depend on time explicitly."""
        return not ca.depends_on(self.Ld, self.t)

    @functools.cached_property
    def conservative(self) -> bool:
        return self.autonomous and not self.has_forces

    def monitored_constraints(self) -> tuple[Expr, Expr]:
        g = ca.Function("g", [self.q, self.k], [self.g])(self.view.symbols["q"], self.k)
        return (g if self.m else ca.SX(0, 1)), ca.SX(0, 1)

    def is_invariant(self, name: str, k: np.ndarray) -> bool:
        """Return whether a momentum map is conserved: by the discrete Lagrangian, the forces and the constraints."""
        xi, (before, after) = self.symmetries[name], self.impulses
        G = ca.jacobian(self.g, self.q)
        rates = []
        for i in range(xi.size2_out(0)):
            at_start, at_end = xi(self.q0)[:, i], xi(self.q1)[:, i]
            rates.append(ca.jtimes(self.Ld, self.q0, at_start) + ca.jtimes(self.Ld, self.q1, at_end))
            rates.append(ca.dot(before, at_start) + ca.dot(after, at_end))
            rates.append(G @ xi(self.q)[:, i])
        probe = Probe([self.q0, self.q1, self.h, self.t, self.k, self.q], seed=8, fixed={4: k})
        return probe.is_zero(ca.vertcat(*rates), 1 + ca.fabs(self.Ld), 1e-10) is True

    def is_guaranteed_by(self, scheme: ConservationGuarantees | None, name: str, k: np.ndarray | None = None) -> bool:
        """Return whether an observable is conserved, by name or as a momentum map with generators linear in q."""
        if scheme is not None and "momentum_maps" in scheme.conserves and name in self.symmetries:
            return is_linear_generator(self.symmetries[name])
        return super().is_guaranteed_by(scheme, name, k)

    def visuals(self, k: np.ndarray) -> list[Visual]:
        if self._visual is None:
            return default_visuals(self.coordinates)
        return [Visual(self._visual, range(self.n), self.model_parameters.unpack(k[: self.model_parameters.size]))]

    def fingerprint_data(self) -> Sequence[object]:
        arguments = [self.q0, self.q1, self.h, self.t, self.k, self.q]
        return serialize_expressions(arguments, [self.Ld, *self.impulses, self.g]), [
            g.serialize() for g in self.symmetries.values()
        ]

    def __repr__(self) -> str:
        return f"<livens.DiscreteLagrangian: coordinates {' '.join(self.coordinates)}>"


class DiscreteLagrangianSymbols(SymbolicState):
    """Symbols of the state of a discrete Lagrangian: v and the discrete energy are those of the last step."""

    def __init__(self, model: DiscreteLagrangian) -> None:
        n = model.n
        self.symbols = {"q": ca.SX.sym("q", n), "v": ca.SX.sym("v", n), "p": ca.SX.sym("p", n)}
        self.symbols["discrete_energy"] = ca.SX.sym("discrete_energy")
        self.t, self.k, self._model = model.t, model.k, model

    def observable(self, name: str) -> Expr:
        if name == "discrete_energy":
            return self.symbols[name]
        if name == "constraint" and self._model.m:
            return self._model.monitored_constraints()[0]
        if name in self._model.symmetries:
            return self._model.symmetries[name](self.symbols["q"]).T @ self.symbols["p"]
        raise InputError(f"unknown observable '{name}'{suggestion(str(name), self.observable_names)}")

    @property
    def observable_names(self) -> tuple[str, ...]:
        return ("discrete_energy", *(("constraint",) if self._model.m else ()), *self._model.symmetries)
