"""Semi-explicit scheme: expensive forces once per step, cheap forces implicitly."""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Collection, Mapping
from types import SimpleNamespace
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from livens.errors import InputError
from livens.math import Scalar
from livens.models.contact_detection import DetectedContacts
from livens.models.hamiltonian.model import Hamiltonian
from livens.models.system import System
from livens.schemes.core.scheme import Scheme
from livens.schemes.core.step_equations import ExternalForceSlot, StepEquations
from livens.schemes.discretization.force_history import ForceHistory
from livens.schemes.discretization.independent_bodies import (
    IndependentBodyEquations,
    body_class_steps,
    body_classes,
    initial_scheme_state_of_bodies,
)
from livens.schemes.discretization.phase_space_map import (
    HamiltonianFunctions,
    MapResult,
    MapScheme,
    as_hamiltonian,
    format_number,
)
from livens.schemes.discretization.quasi_velocities import quasi_velocities
from livens.schemes.discretization.semi_explicit_scaling import initial_scaling, initial_value, scaling_function
from livens.schemes.discretization.semi_explicit_step import (
    ExplicitPoint,
    SemiExplicitStep,
    explicit_force_of_momenta,
    initial_semi_explicit_state,
)
from livens.schemes.scaling import Scaling, StiffnessEstimate, user_scaling
from livens.schemes.scaling.stiffness import Stiffness
from livens.schemes.symplectic.stormer_verlet import SEPARABLE
from livens.types import Expr, FloatArray


def uses_element_path(model: object) -> bool:
    """Return True if a model is stepped in element-wise form.

    This is the case for rotating bodies, constraints, a kinetic energy that depends on the configuration, and
    element-wise values of beta. All other models are in Hamiltonian form with a constant mass matrix.
    """
    if not isinstance(model, System):
        return False
    has_element_settings = any(element.beta is not None for element in model.elements) or isinstance(
        model.external_force, DetectedContacts
    )
    return (
        has_element_settings
        or bool(model.m or model.frames)
        or not (model.constant_mass and model.separable and "phase space" in model.formulations)
    )


def constant_mass_requirement(model: Any) -> list[str]:
    """Return the unmet requirement of the Hamiltonian form: an energy T(p) + V(q) with a constant mass matrix."""
    if "phase space" not in model.formulations:
        return []
    phase = as_hamiltonian(model)
    if not phase.separable:
        return [SEPARABLE.description]
    return ["a constant mass matrix"] if phase.inverse_mass is None else []


class SemiExplicit(MapScheme):
    """Semi-explicit scheme for ``M q'' = A + B`` with expensive forces A and cheap forces B (Modin 2009, V, 5)::

        A* = A(q0 + a h v0, v0, t0 + a h)          B* = B((1-b) z0 + b z1), z = (q, v, t)
        q1 = q0 + h v0 + h^2/2 M^-1 (A* + B*)      p1 = p0 + h (A* + B*)

    A* depends on the state at t only. It is evaluated at the end of the previous step and cached in the state, so that
    Newton iterations do not evaluate A, and A is not differentiated: one evaluation per step. (A shorter last step uses
    the A* of a full step, which does not reduce the order.) The unknown is the mean velocity ``(q1 - q0)/h``; without
    cheap forces, or with b = 0, the step is explicit. As A is not differentiated, it may be a `livens.ExternalForce`.

    On Systems this is chapter 4.2 of Modin 2009: rigid bodies move on the rotation group, constraints have multipliers,
    and every cheap element may have its own beta. Masses may depend on the configuration; inertial forces are evaluated
    at the midpoint. Only velocities with forces B or constraints are unknowns; linear springs and dampers on one
    coordinate each are solved in closed form. Bodies in space rotate freely around the kick of the torques, which is
    symmetric (`discretization.free_rotation`); gyroscopic terms belong neither to A nor to B.

    Stable for ``b >= 1/2`` and any stiffness and damping in B, if those of A are in the region of theorem 3. Of order 2
    for ``a = b = 1/2`` if A does not depend on velocities, else of order 1. Symmetric for these values, so that it can
    be composed (A is then evaluated within the steps); symplectic only if the Hessians of A and B commute.

    With a scaling s, steps in time are ``h = eps s`` (eq. 14). The estimate (15), `livens.scaling.stiffness_estimate`,
    evaluates A at two more points; the largest stable eps is then 2.

    With a tolerance (`livens.StepControl`) step sizes follow an estimate of the local error, see
    `discretization.force_history`. A is then extrapolated to the evaluation point of a longer or shorter step; it is
    evaluated once per accepted step, and not in rejected steps.
    """

    family = "semi-explicit:<alpha>,<beta>"
    examples: ClassVar[tuple[tuple[Any, ...], ...]] = ((0.5, 0.5), (0.5, 0.6))
    symplectic = symmetric = False
    conserves = ()
    summary, source = "expensive forces once per step, cheap ones implicit", "Modin 2009, paper V (5)"
    when_to_use = "Expensive or externally compiled forces, evaluated once per step, beside stiff cheap forces."
    when_to_avoid = "Energy has to be exact, or expensive forces are stiff."

    formulations = ("phase space", "elements")
    supports_external_forces = True
    #: Forces of previous steps are part of the state, for error-controlled steps.
    uses_force_history: bool = False

    def __init__(
        self,
        alpha: float,
        beta: float,
        scaling: Scaling | StiffnessEstimate | None = None,
        caches_explicit_force: bool = True,
    ) -> None:
        self.alpha, self.beta, self.scaling = alpha, beta, scaling
        #: A is cached from the end of the previous step; not in substeps of a composition, which differ in size.
        self.caches_explicit_force = caches_explicit_force
        self.symmetric = alpha == beta == 0.5
        self.name = f"semi-explicit:{format_number(alpha)},{format_number(beta)}"
        self.order = 2 if alpha == beta == 0.5 else 1
        self.implicit, self.fictive = beta != 0.0, scaling is not None
        self.evaluations_per_step = 3 if isinstance(scaling, StiffnessEstimate) else 1

    def __eq__(self, other: object) -> bool:
        key = self.name, self.scaling, self.caches_explicit_force, self.uses_force_history
        return isinstance(other, SemiExplicit) and key == (
            other.name,
            other.scaling,
            other.caches_explicit_force,
            other.uses_force_history,
        )

    def __hash__(self) -> int:
        return hash((self.name, self.scaling, self.caches_explicit_force, self.uses_force_history))

    def with_error_control(self) -> Scheme:
        if self.fictive or not self.caches_explicit_force:
            return self
        scheme = copy.copy(self)
        scheme.uses_force_history, scheme.error_order, scheme.implicit = True, self.order, True
        return scheme

    def as_substep(self) -> Scheme:
        return SemiExplicit(self.alpha, self.beta, self.scaling, caches_explicit_force=False)

    def with_scaling(self, scaling: object) -> Scheme:
        if not isinstance(scaling, (Scaling, StiffnessEstimate)):
            if not callable(scaling):
                requirement = "takes a scaling such as livens.scaling.stiffness_estimate(1.0)"
                raise InputError(f"scheme '{self.name}' {requirement}, got {scaling!r}")
            scaling = user_scaling(scaling)
        if isinstance(scaling, StiffnessEstimate) and not self.alpha:
            raise InputError(f"the scaling {scaling} evaluates forces at alpha h, which is 0 in scheme '{self.name}'")
        return SemiExplicit(self.alpha, self.beta, scaling)

    def evaluation_counts(self, steps: int, corrections: int) -> tuple[int, int]:
        """Return the counts of the expensive forces: once initially, then `evaluations_per_step` in each step."""
        return 1 + steps * self.evaluations_per_step, 0

    def unmet_requirements(self, model: Any) -> list[str]:
        if not uses_element_path(model):
            unmet = [*super().unmet_requirements(model), *constant_mass_requirement(model)][:1]
            if (
                not unmet
                and getattr(model, "external_force", None) is not None
                and (self.fictive or not self.caches_explicit_force)
            ):
                unmet = ["a fixed step size with an external force: no scaling, no composition"]
            return unmet
        unmet = [] if model.regular_mass or model.frames else ["a regular mass matrix"]
        if not model.quadratic_kinetic_energy:
            unmet.append("a kinetic energy that is quadratic in the velocities")
        if model.has_velocity_constraints:
            unmet.append("constraints on positions, not on velocities (rolling, gears)")
        if model.control_indices:
            unmet.append("a model without sampled controllers")
        if self.uses_force_history or (
            model.external_force is not None and (self.fictive or not self.caches_explicit_force)
        ):
            unmet.append("steps of equal size, or a model with a constant mass matrix and without constraints")
        if self.fictive and not all(quasi_velocities(model).has_constant_diagonal_mass):
            unmet.append("steps of equal size, or masses that do not depend on the configuration")
        return unmet

    @property
    def explicit_point(self) -> ExplicitPoint:
        """Evaluation point of A."""
        return ExplicitPoint(self.alpha)

    def _system_step(self, model: System, removed_constraints: Collection[int] = ()) -> SemiExplicitStep:
        scaling = None if self.scaling is None else scaling_function(model, self.scaling, self.alpha)
        return SemiExplicitStep(
            model, self.explicit_point, self.beta, self.caches_explicit_force, removed_constraints, scaling
        )

    def equations(self, model: Any, removed_constraints: Collection[int] = ()) -> StepEquations:
        if uses_element_path(model):
            system_graph = functools.cache(lambda: self._system_step(model, removed_constraints).equations())
            steps = (
                ()
                if self.fictive or not self.caches_explicit_force
                else body_class_steps(model, self.explicit_point, self.beta)
            )
            return (
                IndependentBodyEquations(
                    model,
                    body_classes(model),
                    steps,
                    lambda: body_class_steps(model, self.explicit_point, self.beta, isotropic=True),
                    system_graph,
                )
                if steps
                else system_graph()
            )
        equations = super().equations(model, removed_constraints)
        external_force = as_hamiltonian(model).external_force
        if external_force is None:
            return equations
        layout, n = equations.layout, model.n
        return dataclasses.replace(
            equations.to_single_graph(),
            external_force=ExternalForceSlot(external_force, layout["asked"].start, n, layout["box"].start),
        )

    def is_explicit(self, model: Any) -> bool:
        if isinstance(self.equations(model), IndependentBodyEquations):
            return True
        return (
            not self.equations(model).to_single_graph().size if uses_element_path(model) else super().is_explicit(model)
        )

    def extra_state(self, model: Hamiltonian) -> dict[str, int]:
        cached = {"A": 2 * model.n + 1} if self.caches_explicit_force else {}
        external = {} if model.external_force is None else {"asked": 2 * model.n + 1, "box": model.n}
        history = ForceHistory.state_sizes(model.n) if self.uses_force_history else {}
        return cached | ({"t": 1, "scale": 1} if self.fictive else {}) | external | history

    def initial_scheme_state(
        self, model: Any, values: Mapping[str, FloatArray], k: FloatArray, t: float, h: float
    ) -> dict[str, Any]:
        if uses_element_path(model):
            scaling_state: dict[str, Any] = {}
            if self.scaling is not None:
                scaling = scaling_function(model, self.scaling, self.alpha)
                scaling_state = {"t": t, "scale": initial_scaling(model, scaling, self.scaling, values, t, h, k)}
                h *= scaling_state["scale"]
            if (
                self.caches_explicit_force
                and not self.fictive
                and body_class_steps(model, self.explicit_point, self.beta)
            ):
                return initial_scheme_state_of_bodies(model, self.explicit_point, values, t, h, k)
            return scaling_state | (
                initial_semi_explicit_state(model, self.explicit_point, values, t, h, k)
                if self.caches_explicit_force
                else {}
            )
        phase, scheme_state = HamiltonianFunctions(as_hamiltonian(model), k), dict[str, Any]()
        q, p = ca.DM(values["q"]), ca.DM(values["p"])
        if self.scaling is not None:
            unit = h
            scale = initial_value(
                lambda last_h: float(self._scaling_value(phase, q, p, t, last_h, unit)), self.scaling, unit
            )
            if not (np.isfinite(scale) and scale > 0):
                message = f"the scaling {self.scaling} is {scale:g} in the initial state"
                raise InputError(f"{message}; it must be finite and greater than 0")
            scheme_state = {"t": t, "scale": scale}
            h *= scale
        if self.uses_force_history:  # the size of the first step is not determined yet
            h = 0.0
        if self.caches_explicit_force:
            scheme_state["A"] = np.array(self._explicit_force(phase, q, p, t, h)).ravel()
        if phase.model.external_force is not None:
            query = np.array(self._query_point(phase, q, p, t, h)).ravel()
            n = phase.n
            force = phase.model.external_force(query[:n], query[n : 2 * n], query[2 * n], k)
            scheme_state |= {"asked": query, "box": force}
        if self.uses_force_history:
            scheme_state |= ForceHistory.initial(
                self._stored_explicit_force(SimpleNamespace(**scheme_state), phase.n), phase.n
            )
        return scheme_state

    @staticmethod
    def _stored_explicit_force(state: SimpleNamespace, n: int) -> Expr | FloatArray | ca.DM:
        """Return the stored expensive forces, including an external force."""
        if not hasattr(state, "box"):
            return state.A
        return ca.vertcat(state.A[:n] + state.box, state.A[n : 2 * n] + state.box, state.A[2 * n])

    def scheme_state_of(self, model: Any, q: Any, p: Any, t: Any, k: Any, h: Any) -> dict[str, object]:
        """Return the expensive forces for equal steps; with a scaling, the step size depends on the previous step."""
        if self.fictive or not self.caches_explicit_force:
            return {}
        if getattr(model, "external_force", None) is not None:
            raise InputError("an external force has no derivatives")
        if uses_element_path(model):
            return {"A": explicit_force_of_momenta(model, self.explicit_point, q, p, t, h, k)}
        return {"A": self._explicit_force(HamiltonianFunctions(as_hamiltonian(model), k), q, p, t, h)}

    def symbolic_scheme_state(self, model: Any, q: Any, p: Any, k: Any, t: float, h: float) -> dict[str, Any]:
        return self.scheme_state_of(model, q, p, t, k, h)

    def unknowns(self, model: Hamiltonian) -> dict[str, int]:
        state = ca.vertcat(model.q, model.v)
        is_implicit = self.uses_force_history or any(
            beta and ca.depends_on(F - ca.gradient(V, model.q), state)
            for beta, (V, F) in self._implicit_forces(model).items()
        )
        return {"mean_velocity": model.n} if is_implicit else {}

    def initial_guess(
        self, phase: HamiltonianFunctions, old: SimpleNamespace, h: Expr, t: Expr
    ) -> Mapping[str, object]:
        return {"mean_velocity": old.v}

    def step(
        self, phase: HamiltonianFunctions, old: SimpleNamespace, x: SimpleNamespace, h: Expr, t: Expr
    ) -> MapResult:
        m, n, new = phase.model, phase.n, {}
        eps, size, t = (h, h * old.scale, old.t) if self.fictive else (h, h, t)
        explicit_force = (
            self._stored_explicit_force(old, n)
            if self.caches_explicit_force
            else self._explicit_force(phase, old.q, old.p, t, size)
        )
        force_history = ForceHistory(old, self.explicit_point.alpha, h) if self.uses_force_history else None
        if force_history is not None:
            explicit_force = force_history.extrapolated(explicit_force)
        A, A_free, A_rate = explicit_force[:n], explicit_force[n : 2 * n], explicit_force[2 * n]
        W = ca.Function("W", [m.k], [ca.densify(m.inverse_mass)])(phase.k)
        u = getattr(x, "mean_velocity", old.v)
        B, B_free, B_rate = ca.SX.zeros(n), ca.SX.zeros(n), ca.SX(0)
        for beta, (V, F) in self._implicit_forces(m).items():
            q_b, v_b, t_b = old.q + beta * size * u, old.v + 2 * beta * (u - old.v), t + beta * size
            outputs = [ca.densify(F - ca.gradient(V, m.q)), ca.densify(F), ca.gradient(V, m.t)]
            terms = ca.Function("B", [m.q, m.v, m.t, m.k], outputs)(q_b, v_b, t_b, phase.k)
            B, B_free, B_rate = B + terms[0], B_free + terms[1], B_rate + terms[2]
        mean = old.v + size / 2 * (W @ (A + B))
        residual = [u - mean] if vars(x) else []
        u = u if vars(x) else mean
        q, p, t = old.q + size * u, old.p + size * (A + B), t + size
        supplied = size * (ca.dot(A_free + B_free, u) + A_rate + B_rate)
        if self.fictive:
            new = {"t": t, "scale": self._scaling_value(phase, q, p, t, size, eps)}
            size = eps * new["scale"]
        if self.caches_explicit_force:
            new["A"] = self._explicit_force(phase, q, p, t, size, 2 * (u - old.v))
        if m.external_force is not None:
            new |= {"asked": self._query_point(phase, q, p, t, size, 2 * (u - old.v)), "box": ca.SX.zeros(n)}
        error = None
        if force_history is not None:
            new |= force_history.updated(self._stored_explicit_force(old, n), A + B)
            evaluation_points = [self.explicit_point.alpha, *self._implicit_forces(m)]
            shifts = *(abs(0.5 - beta) for beta in evaluation_points), self._velocity_lag(m)
            error = force_history.error_estimate(m.coordinates, W, A + B, (old.q, old.p), (q, p), max(shifts))
        return MapResult({"q": q, "p": p, **new}, residual, supplied=supplied, error_estimate=error)

    def _implicit_forces(self, model: Hamiltonian) -> dict[float, tuple[Any, Any]]:
        """Return potentials and non-conservative forces of the cheap forces, by evaluation point beta."""
        if not model.terms.by_beta:
            return {self.beta: (model.terms.V_cheap, model.terms.F_cheap)}
        by_beta: dict[float, tuple[Any, Any]] = {}
        for terms, (V, F) in model.terms.by_beta.items():
            beta = self.beta if terms is None else terms
            previous = by_beta.get(beta, (ca.SX(0), ca.SX.zeros(model.n)))
            by_beta[beta] = previous[0] + V, previous[1] + F
        return {beta: terms for beta, terms in by_beta.items() if not (terms[0].is_zero() and terms[1].is_zero())}

    def _velocity_lag(self, model: Hamiltonian) -> float:
        """Return the distance from the midpoint at which A uses velocities, in units of h; 0 if it does not."""
        depends_on_velocity = (
            model.external_force is not None and model.external_force.depends_on_velocity
        ) or ca.depends_on(model.explicit_force, model.v)
        return 0.5 if depends_on_velocity and not self.explicit_point.extrapolate_velocity else 0.0

    def _query_point(
        self,
        phase: HamiltonianFunctions,
        q: Expr | ca.DM,
        p: Expr | ca.DM,
        t: Expr | float,
        h: Expr | float,
        change: Expr | float = 0.0,
    ) -> Expr | ca.DM:
        """Return the query point of an external force: coordinates, velocities and time, as in `_explicit_force`."""
        v, a = phase.T_p(p), self.explicit_point.alpha
        v_eval = v + a * change if self.explicit_point.extrapolate_velocity else v
        return ca.vertcat(q + a * h * v, v_eval, t + a * h)

    def _explicit_force(
        self,
        phase: HamiltonianFunctions,
        q: Expr | ca.DM,
        p: Expr | ca.DM,
        t: Expr | float,
        h: Expr | float,
        change: Expr | float = 0.0,
    ) -> Any:
        """Return A* of a step of size h from this state, its non-conservative part, and ``dV/dt`` of its potentials.

        `change` is the velocity increment of the previous step.
        """
        m, v, a = phase.model, phase.T_p(p), self.explicit_point.alpha
        outputs = ca.densify(ca.vertcat(m.explicit_force, m.terms.F_expensive, ca.gradient(m.terms.V_expensive, m.t)))
        v_eval = v + a * change if self.explicit_point.extrapolate_velocity else v
        return ca.Function("A", [m.q, m.v, m.t, m.k], [outputs])(q + a * h * v, v_eval, t + a * h, phase.k)

    def _scaling_value(
        self, phase: HamiltonianFunctions, q: Any, p: Any, t: Any, last_h: Any, unit: Any
    ) -> Expr | ca.DM:
        """Return the scaling at this state, after a step of size `last_h`, with a `unit` of fictive time."""
        m, size, eps = phase.model, ca.SX.sym("h"), ca.SX.sym("eps")
        if isinstance(self.scaling, StiffnessEstimate):
            s = self.scaling.expression(m, size, self.alpha)
        elif isinstance(self.scaling, Stiffness):
            s = self.scaling.expression(m, Scalar(eps))
        else:
            assert self.scaling is not None
            s = self.scaling.expression(m)
        scaling = ca.Function("s", [m.q, m.p, m.v, m.t, m.k, size, eps], [s])
        return scaling(q, p, phase.T_p(p), t, phase.k, last_h, unit)
