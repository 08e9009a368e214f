"""Reversible adaptive steps of any symmetric scheme with an integrated step density."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping
from typing import Any

import casadi as ca
import numpy as np

from livens.errors import InputError
from livens.expressions.state_layout import Layout
from livens.models.equations_of_motion import equations_of_motion
from livens.models.system import System
from livens.schemes.core.registry import get
from livens.schemes.core.scheme import Scheme
from livens.schemes.core.step_equations import StepEquations, StepGraph
from livens.schemes.discretization.phase_space_map import HamiltonianFunctions, as_hamiltonian
from livens.schemes.discretization.semi_explicit_scaling import inverse_effective_mass
from livens.schemes.discretization.time_transformation import CONSERVATIVE, TimeTransformed, check_scale
from livens.schemes.scaling.base import Scaling, StepMeans
from livens.schemes.scaling.user_defined import UserScaling
from livens.schemes.time_transformed.step_density import density_step
from livens.schemes.time_transformed.step_density_equations import StepDensityEquations
from livens.types import Expr, FloatArray

#: Formulations of models that can be combined with a step density.
_FORMULATIONS = ("phase space", "elements", "port-hamiltonian", "descriptor")
#: Compliance of constraints in the equations of accelerations, in 1/kg.
_COMPLIANCE = 1e-9
#: Largest number of accelerations and multipliers of a dense solution.
_MAX_DENSE = 200


class StepDensityOver(TimeTransformed):
    """`step-density` with any symmetric base scheme in place of Stoermer-Verlet (Modin 2009, alg. 3.2.1)::

        rho += eps/2 xi(q, p);   one step of size eps/rho;   rho += eps/2 xi(q, p)

    with ``xi = {Q, H}/Q``. Step sizes are those of the density to second order; the state at its time has the order of
    the base scheme. Quantities that the base scheme conserves for every step size are conserved.

    For a mechanical system with constraints, forces or dissipation, ``xi = dlog Q/dq . v`` if Q is a function of the
    coordinates. If the scaling g depends on velocities or forces, the size of a step is an unknown of its equations,
    ``log(size/eps) = log g`` with mean values of the step (Hairer, Lubich, Wanner 2006, VIII.3.1). The size is an
    unknown also for models of first order, such as port-Hamiltonian systems. Constraints, energy and momenta are then
    those of the base scheme.
    """

    family = "step-density:<scheme>"
    examples = (("gauss-2",), ("implicit-midpoint",), ("livens-em",), ("lie-em",))
    source = "Modin 2009, sect. 3.2"
    when_to_use = "Reversible adaptive steps with a symmetric scheme of your choice."
    when_to_avoid = "The motion is not reversible: energy drifts."
    formulations: tuple[str, ...] = ("phase space",)
    symmetric = True

    def __init__(self, scheme: str | Scheme) -> None:
        self.base = base = get(scheme)
        if not base.symmetric:
            raise InputError(f"scheme '{base.name}' is not symmetric: adaptive steps of it are not reversible")
        if base.fictive or base.selects_step_size:
            raise InputError(f"scheme '{base.name}' selects its step sizes and cannot be combined with a step density")
        self.name, self.order = f"step-density:{base.name}", base.order
        self.conserves, self.odd_under_reversal = base.conserves, base.odd_under_reversal
        self.formulations = tuple(name for name in _FORMULATIONS if name in base.formulations)
        if not self.formulations:
            raise InputError(
                f"scheme '{base.name}' cannot be combined with a step density: it needs a scheme for mechanical "
                "systems, or for models in coordinates and momenta"
            )
        needs_conservative = {"phase space"} >= {*self.formulations} - {"elements"}
        self.requires = (*base.requires, *([CONSERVATIVE] if needs_conservative else []))
        self.supports_velocity_constraints = base.supports_velocity_constraints
        self.steps_on_trees = base.steps_on_trees
        self.implicit, self.evaluations_per_step = base.implicit, base.evaluations_per_step
        self.summary = f"{base.name} with reversible adaptive steps"

    def _uses_elements(self, model: Any) -> bool:
        """Return True for a mechanical system whose base scheme is used in its form with constraints and forces."""
        is_element_model = isinstance(model, System) and "elements" in self.formulations
        has_phase_space = "phase space" in self.formulations and "phase space" in getattr(model, "formulations", ())
        return is_element_model and not (has_phase_space and model.conservative)

    def _uses_states(self, model: object) -> bool:
        """Return True for a model of first order, whose states are not coordinates and momenta."""
        formulations = {*getattr(model, "formulations", ())}
        return not {"phase space", "elements"} & formulations and bool(formulations & {*self.formulations})

    def unmet_requirements(self, model: Any) -> list[str]:
        if self._uses_elements(model):
            return self.base.unmet_requirements(model) or self._unsupported_external_force(model)
        if self._uses_states(model):
            return self.base.unmet_requirements(model)
        if "phase space" not in model.formulations:
            return super().unmet_requirements(model)
        return list(
            dict.fromkeys(
                [*self.base.unmet_requirements(model), *([] if model.conservative else [CONSERVATIVE.description])]
            )
        )

    def initial_scheme_state(
        self, model: Any, values: Mapping[str, FloatArray], k: FloatArray, t: float, h: float
    ) -> dict[str, Any]:
        if self._uses_elements(model):
            scale = check_scale(self.scaling, self._initial_scaling_of_system(model, values, k, t, h))
        elif self._uses_states(model):
            x, zero = ca.SX(ca.DM(values["x"])), ca.SX.zeros(model.view.symbols["x"].numel())
            scale = check_scale(self.scaling, float(ca.evalf(self._scaling_of_states(model, x, zero, ca.SX(ca.DM(k))))))
        else:
            scale = self.initial_scaling(as_hamiltonian(model), k, values["q"], values["p"])
        state = {**self.base.initial_scheme_state(model, values, k, t, h * scale), "t": t, "step_density": 1 / scale}
        if self.needs_acceleration(model):
            state["mean_acceleration"] = self._initial_acceleration(model, values, k, t)
        return state

    def needs_acceleration(self, model: object) -> bool:
        """Return True if accelerations in the middle of a step are unknowns of the step."""
        return self._uses_elements(model) and isinstance(self.scaling, Scaling) and self.scaling.uses_acceleration

    def _initial_scaling_of_system(
        self, model: Any, values: Mapping[str, FloatArray], k: FloatArray, t: float, h: float
    ) -> float:
        """Return g in the initial state."""
        scaling, view = self._scaling_of_coordinates(model), model.view
        if scaling is not None:
            return float(ca.Function("g", [view.symbols["q"], view.k], [scaling])(values["q"], k))
        multipliers = values.get("multipliers", np.zeros(len(model.constraint_names)))
        arguments = (values["q"], values["v"], t, k, h, multipliers, self._initial_acceleration(model, values, k, t))
        return float(ca.evalf(self._scaling_of_step(model, *(ca.SX(ca.DM(value)) for value in arguments))))

    def _initial_acceleration(
        self, model: object, values: Mapping[str, FloatArray], k: FloatArray, t: float
    ) -> FloatArray:
        """Return accelerations and multipliers of the initial state if the scaling needs them, else no values."""
        if not self.needs_acceleration(model):
            return np.zeros(0)
        matrix, right = (np.array(part) for part in _accelerations(model)(values["q"], values["v"], t, k))
        return np.asarray(np.linalg.solve(matrix, right).ravel(), dtype=np.float64)

    def _scaling_of_step(
        self, model: Any, q: Expr, v: Expr, t: Expr, k: Expr, unit: Expr, multipliers: Expr, acceleration: Expr
    ) -> Expr:
        """Return g of the mean values of a step."""
        if not isinstance(self.scaling, Scaling):
            raise InputError(f"the scaling {self.scaling} is not symmetric in time; use it with semi-explicit")

        def mass(force: Expr) -> Expr:
            return inverse_effective_mass(model, q, k)(force)

        a = acceleration[: model.n] if self.scaling.uses_acceleration else None
        return self.scaling.for_system(model, StepMeans(q, v, t, k, unit, mass, multipliers, a))

    def scaling_of_step(
        self, model: object, layout: Layout, old: Expr, new: Expr, c: Expr, unit: Expr, acceleration: Expr
    ) -> Expr:
        """Return g of a step between two states of the base scheme; c are its size, start time and parameters."""
        k = c[2:]
        if self._uses_states(model):
            x, rate, _ = _means(layout["x"], old, new, c[0], c[1])
            return self._scaling_of_states(model, x, rate, k)
        multipliers = new[layout["multipliers"]] if "multipliers" in layout else ca.SX(0, 1)
        means = _means(layout["q"], old, new, c[0], c[1])
        return self._scaling_of_step(model, *means, k, unit, multipliers, acceleration)

    def accelerations_of_step(
        self, model: object, layout: Layout, old: FloatArray, new: FloatArray, c: FloatArray
    ) -> FloatArray:
        """Return accelerations and multipliers in the middle of a step between two states of the base scheme."""
        matrix, right = _accelerations(model)(*_means(layout["q"], old, new, c[0], c[1]), c[2:])
        if matrix.shape[0] <= _MAX_DENSE:
            return np.asarray(np.linalg.solve(matrix.full(), right.full().ravel()), dtype=np.float64)
        from scipy.sparse.linalg import spsolve

        return np.asarray(spsolve(matrix.sparse(), right.full().ravel()), dtype=np.float64)

    def _scaling_of_states(self, model: object, x: Expr, rate: Expr, k: Expr) -> Expr:
        """Return g of the mean values of a step of a model of first order."""
        return self._required_scaling().for_states(model, x, rate, k)

    def _required_scaling(self) -> Scaling:
        """Return the scaling; raise InputError without one."""
        if not isinstance(self.scaling, Scaling):
            raise InputError(
                f"scheme '{self.name}' needs a scaling function for its steps, such as "
                "scaling=lambda q: ...; see livens.scaling"
            )
        return self.scaling

    def _scaling_of_coordinates(self, model: Any) -> Expr | None:
        """Return the scaling of a mechanical system if it is a function of the coordinates alone, else None."""
        if self.scaling is None:
            self._required_scaling()
        if not isinstance(self.scaling, UserScaling):
            return None
        scaling = self.scaling.expression(model)
        return None if ca.depends_on(scaling, model.view.symbols["v"]) else scaling

    def log_density_rate(self, model: Any, k: Expr) -> Callable[[Expr, Expr, Expr], Any]:
        """Return the time derivative ``xi`` of log Q as a function of (q, v, p)."""
        if self._uses_elements(model):
            scaling = self._scaling_of_coordinates(model)
            assert scaling is not None
            log = -ca.log(scaling)
            symbols = [model.view.symbols[name] for name in "qv"]
            of_velocity = ca.Function("rate", [*symbols, model.view.k], [ca.jtimes(log, *symbols)])
            return lambda q, v, p: of_velocity(q, v, k)
        hamiltonian = as_hamiltonian(model)
        log = -ca.log(self.checked_scaling(hamiltonian).expression(hamiltonian))
        rate, phase = hamiltonian.bracket(log, hamiltonian.H), HamiltonianFunctions(hamiltonian, k)
        return lambda q, v, p: phase.evaluate("rate", rate, q, p, 0)

    def integrates_density(self, model: Any) -> bool:
        """Return True if the density is integrated; False if the step size is an unknown of the step."""
        if self._uses_states(model):
            return False
        return not self._uses_elements(model) or self._scaling_of_coordinates(model) is not None

    def equations(self, model: Any, removed_constraints: Collection[int] = ()) -> StepEquations:
        return StepDensityEquations(self, model, self.base.equations(model, removed_constraints))

    def single_graph(self, model: Any, e: StepGraph) -> StepGraph:
        """Return the graph of the equations e of the base scheme with a step density."""
        if not self.integrates_density(model):
            return self._graph_with_step_size(model, e)
        layout = e.layout.extended(t=1, step_density=1)
        n = e.layout.size
        z, c = ca.SX.sym("z", layout.size), ca.SX.sym("c", e.c.numel())
        x, k, time, density = e.x, c[2:], z[n], z[n + 1]
        log_density_rate = self.log_density_rate(model, k)

        def rate_at(state: Expr) -> Expr:
            return log_density_rate(*(state[e.layout[name]] for name in "qvp"))

        def base(size: Expr) -> tuple[Expr, Expr]:
            state = e.final_state_function(x, z[:n], ca.vertcat(size, time, k))
            return state, rate_at(state)

        size, state, after, _ = density_step(density, rate_at(z[:n]), c[0], base)
        inputs = ca.vertcat(size, time, k)
        return StepGraph.from_residual(
            x,
            z,
            c,
            residual=ca.densify(e.residual_function(x, z[:n], inputs)) if e.size else ca.SX(0, 1),
            final_state=ca.densify(ca.vertcat(state, time + size, after)),
            initial_guess=ca.densify(e.initial_guess_function(z[:n], inputs)) if e.size else ca.SX(0, 1),
            block_sizes=e.block_sizes,
            equation_labels=e.equation_labels,
            layout=layout,
        )

    def _graph_with_step_size(self, model: Any, e: StepGraph) -> StepGraph:
        """Return the equations of the base scheme with the step size as a further unknown, ``log(size/eps)``."""
        n, needs_acceleration = e.layout.size, self.needs_acceleration(model)
        n_accelerations = model.n + model.m if needs_acceleration else 0
        layout = e.layout.extended(t=1, step_density=1)
        if needs_acceleration:
            layout = layout.extended(mean_acceleration=n_accelerations)
        x, s, a = e.x, ca.SX.sym("log_size"), ca.SX.sym("acceleration", n_accelerations)
        z, c = ca.SX.sym("z", layout.size), ca.SX.sym("c", e.c.numel())
        old, time, density, k = z[:n], z[n], z[n + 1], c[2:]
        size = c[0] * ca.exp(s)
        inputs = ca.vertcat(size, time, k)
        state = e.final_state_function(x, old, inputs)
        scaling = self.scaling_of_step(model, e.layout, old, state, inputs, c[0], a)
        balance = ca.SX(0, 1)
        if needs_acceleration:
            matrix, right = _accelerations(model)(*_means(e.layout["q"], old, state, size, time), k)
            balance = ca.mtimes(matrix, a) - right
        guess = ca.vertcat(c[0] / density, time, k)
        return StepGraph.from_residual(
            ca.vertcat(x, a, s),
            z,
            c,
            residual=ca.densify(ca.vertcat(e.residual_function(x, old, inputs), balance, s - ca.log(scaling))),
            final_state=ca.densify(ca.vertcat(state, time + size, ca.exp(-s), a)),
            initial_guess=ca.densify(ca.vertcat(e.initial_guess_function(old, guess), z[n + 2 :], -ca.log(density))),
            block_sizes=(*e.block_sizes, *([n_accelerations] if needs_acceleration else []), 1),
            equation_labels=(*e.equation_labels, *(["acceleration"] * n_accelerations), "step size"),
            layout=layout,
        )


def _means(positions: slice, old: Any, new: Any, size: Any, time: Any) -> tuple[Any, Any, Any]:
    """Return mean position, mean rate and time in the middle of a step, which reversal of time maps to themselves."""
    q0, q1 = old[positions], new[positions]
    return (q0 + q1) / 2, (q1 - q0) / size, time + size / 2


@functools.lru_cache(maxsize=64)
def _accelerations(system: System) -> ca.Function:
    """Return matrix and right-hand side of accelerations and multipliers as functions of (q, v, t, k).

    The compliance of the constraints makes the matrix regular for redundant constraints and in singular positions.
    """
    e = equations_of_motion(system)
    matrix, right = e.kkt_system
    compliance = ca.diagcat(ca.SX(system.n, system.n), -_COMPLIANCE * ca.SX.eye(system.m))
    return ca.Function("accelerations", [e.q, e.v, e.t, e.k], [matrix + compliance, ca.densify(right)])
