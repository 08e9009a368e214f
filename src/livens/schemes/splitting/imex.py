"""IMEX splitting: kicks with expensive forces around the midpoint rule with cheap forces; symmetric and symplectic."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import SimpleNamespace
from typing import Any

import casadi as ca
import numpy as np

from livens.expressions.state_layout import Layout
from livens.models.hamiltonian.model import Hamiltonian
from livens.models.system import System
from livens.schemes.core.step_equations import StepEquations
from livens.schemes.discretization.phase_space_map import (
    HamiltonianFunctions,
    MapResult,
    MapScheme,
    StepExpressions,
    as_hamiltonian,
)
from livens.schemes.discretization.quasi_velocities import quasi_velocities
from livens.schemes.discretization.semi_explicit_step import (
    ExplicitPoint,
    ForceSplit,
    cached_force_size,
    explicit_force_of_momenta,
    force_split,
    initial_semi_explicit_state,
    solve_if_diagonal_linear,
)
from livens.schemes.splitting.semi_explicit import constant_mass_requirement, uses_element_path
from livens.types import Expr, FloatArray


class Imex(MapScheme):
    """IMEX Strang splitting: half kick with A, midpoint rule with B, half kick with A::

        p+ = p0 + h/2 A(q0)        u = M^-1 (p+ + h/2 B(q0 + h/2 u, u))        q1 = q0 + h u
        p- = p+ + h B              p1 = p- + h/2 A(q1)

    The second kick uses the same A as the first kick of the next step: one evaluation per step, without derivatives.
    Unlike scheme (5) of Modin 2009, paper V this is symplectic if all forces have potentials, as a composition of
    symplectic maps. Stiff parts in B are not damped. Velocity-dependent forces in A use the velocity before the second
    kick, which reduces the order to 1.

    Rigid bodies rotate freely in the step with B: ``I(R_m) w`` is the mean of the spatial angular momenta at both ends,
    which is symmetric and conserves the angular momentum of a free body.
    """

    name = "imex"
    order = 2
    symplectic, symmetric = True, True
    conserves = ()
    formulations = ("phase space", "elements")
    summary, source = "kicks with expensive forces around the midpoint rule with cheap ones", "docs/howto/bearing.md"
    when_to_use = "Expensive and cheap forces that all have potentials, over long times."
    when_to_avoid = "Expensive forces depend on velocities: use `semi-explicit-2:<beta>`."
    implicit = True

    @property
    def explicit_point(self) -> ExplicitPoint:
        """Evaluation point of A."""
        return EXPLICIT_POINT

    def evaluation_counts(self, steps: int, corrections: int) -> tuple[int, int]:
        """Return the counts of the expensive forces: once initially, then `evaluations_per_step` in each step."""
        return 1 + steps * self.evaluations_per_step, 0

    def unmet_requirements(self, model: Any) -> list[str]:
        if not uses_element_path(model):
            return [*super().unmet_requirements(model), *constant_mass_requirement(model)][:1]
        unmet = (
            []
            if all(quasi_velocities(model).has_constant_diagonal_mass)
            else ["a constant mass matrix, diagonal if there are bodies"]
        )
        unmet += self._unsupported_external_force(model)
        if not (model.regular_mass or model.frames):
            unmet.append("a regular mass matrix")
        if force_split(model).constraints:
            unmet.append("a model without constraints")
        if model.control_indices:
            unmet.append("a model without sampled controllers")
        return unmet

    # -- Hamiltonian form ---------------------------------------------------------------------------------------------
    def extra_state(self, model: Hamiltonian) -> dict[str, int]:
        return {"A": 2 * model.n + 1}

    def unknowns(self, model: Hamiltonian) -> dict[str, int]:
        is_implicit = ca.depends_on(model.implicit_force, ca.vertcat(model.q, model.v))
        return {"mean_velocity": model.n} if is_implicit else {}

    def initial_guess(
        self, phase: HamiltonianFunctions, old: SimpleNamespace, h: Expr, t: Expr
    ) -> Mapping[str, object]:
        return {"mean_velocity": old.v}

    def step(
        self, phase: HamiltonianFunctions, old: SimpleNamespace, x: SimpleNamespace, h: Expr, t: Expr
    ) -> MapResult:
        m, n = phase.model, phase.n
        A, A_free, A_rate = old.A[:n], old.A[n : 2 * n], old.A[2 * n]
        p_half = old.p + h / 2 * A
        implicit_function = ca.Function(
            "B", [m.q, m.v, m.t, m.k], [m.implicit_force, m.terms.F_cheap, ca.gradient(m.terms.V_cheap, m.t)]
        )
        u = getattr(x, "mean_velocity", phase.T_p(p_half))
        B, B_free, B_rate = implicit_function(old.q + h / 2 * u, u, t + h / 2, phase.k)
        mean = phase.T_p(p_half + h / 2 * B)
        residual = [u - mean] if vars(x) else []
        u = u if vars(x) else mean
        q, p = old.q + h * u, p_half + h * B
        A_next = self._explicit_force(phase, q, p, t + h)
        p_end = p + h / 2 * A_next[:n]
        kick_velocities = (old.v + phase.T_p(p_half)) / 2, (phase.T_p(p) + phase.T_p(p_end)) / 2
        kick_power = (
            ca.dot(A_free, kick_velocities[0]) + A_rate + ca.dot(A_next[n : 2 * n], kick_velocities[1]) + A_next[2 * n]
        )
        supplied = h * (kick_power / 2 + ca.dot(B_free, u) + B_rate)
        return MapResult({"q": q, "p": p_end, "A": A_next}, residual, supplied=supplied)

    def _explicit_force(self, phase: HamiltonianFunctions, q: Expr | ca.DM, p: Expr | ca.DM, t: Expr | float) -> Any:
        """Return A, its non-conservative part, and ``dV/dt`` of its potentials."""
        m = phase.model
        outputs = ca.densify(ca.vertcat(m.explicit_force, m.terms.F_expensive, ca.gradient(m.terms.V_expensive, m.t)))
        return ca.Function("A", [m.q, m.v, m.t, m.k], [outputs])(q, phase.T_p(p), t, phase.k)

    # -- element-wise form --------------------------------------------------------------------------------------------
    def equations(self, model: Any, removed_constraints: Collection[int] = ()) -> StepEquations:
        return (
            IMEXSystemStep(model).equations()
            if uses_element_path(model)
            else super().equations(model, removed_constraints)
        )

    def is_explicit(self, model: Any) -> bool:
        return (
            not self.equations(model).to_single_graph().size if uses_element_path(model) else super().is_explicit(model)
        )

    def initial_scheme_state(
        self, model: Any, values: Mapping[str, FloatArray], k: FloatArray, t: float, h: float
    ) -> dict[str, Any]:
        if uses_element_path(model):
            return initial_semi_explicit_state(model, EXPLICIT_POINT, values, t, h, k)
        phase = HamiltonianFunctions(as_hamiltonian(model), k)
        return {"A": np.array(self._explicit_force(phase, ca.DM(values["q"]), ca.DM(values["p"]), t)).ravel()}

    def scheme_state_of(self, model: Any, q: Any, p: Any, t: Any, k: Any, h: float) -> dict[str, object]:
        if uses_element_path(model):
            return {"A": explicit_force_of_momenta(model, EXPLICIT_POINT, q, p, t, h, k)}
        return {"A": self._explicit_force(HamiltonianFunctions(as_hamiltonian(model), k), q, p, t)}

    def symbolic_scheme_state(
        self, model: Any, q: Expr | ca.DM, p: Expr | ca.DM, k: Any, t: float, h: float
    ) -> dict[str, Any]:
        return self.scheme_state_of(model, q, p, t, k, h)


#: Kicks are evaluated at the state, as accelerations; gyroscopic terms belong to the step between them.
EXPLICIT_POINT = ExplicitPoint(0.0, torques=False)


class IMEXSystemStep:
    """Step of `imex` for a System with rotating bodies, or with element-wise values of beta (which are ignored)."""

    def __init__(self, system: System) -> None:
        self.system, self.forces, self.velocities = system, force_split(system), quasi_velocities(system)
        rotational = range(len(self.velocities.translational), self.velocities.size)
        self.implicit_dofs = tuple(sorted({*_implicit_dofs(self.forces), *rotational}))

    def equations(self) -> StepEquations:
        layout = self.system.layout.extended(A=cached_force_size(self.system))
        unknowns = Layout(mean_velocity=len(self.implicit_dofs))
        return solve_if_diagonal_linear(layout, unknowns, self.system.parameter_count, self.build_step)

    def build_step(self, old: SimpleNamespace, x: SimpleNamespace, h: Expr, t: Expr, k: Expr) -> StepExpressions:
        f, tw, size, implicit = self.forces, self.velocities, self.velocities.size, list(self.implicit_dofs)
        u0 = tw.from_qdot(old.q, old.v)
        u_half = u0 + h / 2 * old.A[:size]
        u = ca.SX(u_half)
        if implicit:
            u[implicit] = x.mean_velocity
        q_m = tw.retract(old.q, h / 2 * u)
        terms = f.evaluate(f.cheap, q_m, u, t + h / 2, k)
        B = tw.accelerations(q_m, u, terms.force, k, gyroscopic=False)
        mean = u_half + h / 2 * B
        residual = u - mean
        for frame, i in tw.rotational_blocks():
            momentum_before = tw.inertia_tensor(frame, old.q, k) @ u_half[i]
            residual[i] = tw.inertia_tensor(frame, q_m, k) @ u[i] - momentum_before - h / 2 * terms.force[i]
        explicit = [i for i in range(size) if i not in self.implicit_dofs]
        u[explicit] = mean[explicit]
        q = tw.orthonormalize(tw.retract(old.q, h * u))
        u_before_kick = u_half + h * B
        for frame, i in tw.rotational_blocks():
            momentum_after = tw.inertia_tensor(frame, old.q, k) @ u_half[i] + h * terms.force[i]
            u_before_kick[i] = (
                ca.solve(tw.inertia_tensor(frame, q, k), momentum_after)
                if frame.dimension == 3
                else momentum_after / tw.inertia_tensor(frame, q, k)
            )
        A_next = EXPLICIT_POINT(f, q, u_before_kick, ca.SX.zeros(size), t + h, h, k)
        u1 = u_before_kick + h / 2 * A_next[:size]
        v = tw.to_qdot(q, u1)
        new = vars(old) | dict(q=q, v=v, p=tw.momenta(q, v, k), A=A_next)
        new["multipliers"] = ca.SX.zeros(self.system.m)
        dissipated_power = (old.A[2 * size + 1] + A_next[2 * size + 1]) / 2 + terms.dissipated_power
        kick_power = ca.dot(old.A[size : 2 * size], (u0 + u_half) / 2) + ca.dot(
            A_next[size : 2 * size], (u_before_kick + u1) / 2
        )
        potential_power = (old.A[2 * size] + A_next[2 * size]) / 2 + terms.potential_power
        new["supplied_energy"] += h * (
            kick_power / 2 + ca.dot(terms.nonconservative, u) + dissipated_power + potential_power
        )
        new["dissipated_energy"] += h * dissipated_power
        return new, [residual[implicit]] if implicit else [], {"mean_velocity": u_half[implicit]}


def _implicit_dofs(forces: ForceSplit) -> tuple[int, ...]:
    return forces.implicit_dofs(0.5, (), uses_element_beta=False)
