"""Murua's partitioned method (M-PRK) on mechanical systems, with index-2 or GGL constraints."""

from __future__ import annotations

from collections.abc import Collection
from types import SimpleNamespace
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from livens import tableaus
from livens.schemes.core.scheme import Requirement, Scheme
from livens.schemes.core.step_equations import StepEquations
from livens.schemes.discretization.collocation import (
    embedded_error_weights,
    lagrange_basis,
    lagrange_integrals,
    linear_combination,
    stage_extrapolation_matrix,
)
from livens.schemes.discretization.element_scheme import ElementContribution, ElementFunctions, MechanicalState
from livens.schemes.discretization.element_step import ElementEquations
from livens.schemes.discretization.livens_runge_kutta import (
    LivensStages,
    has_constant_momentum_map,
    powers,
    total_force,
    velocity_constraint,
)
from livens.schemes.discretization.murua_dae import index_two_form, murua_step
from livens.schemes.discretization.stage_elimination import weighted_sum
from livens.schemes.tableaus.murua import MuruaTableau as Coefficients
from livens.types import Expr

#: If M depends on q, the velocities at the Lobatto nodes follow from the momenta there.
KNOWN_VELOCITIES = Requirement(
    "velocities_from_state", "a mass matrix that is regular or constant (unit quaternions have neither)"
)


class Murua(Scheme):
    """M-PRK (Symank 2025, def. 6.5, 6.9-6.14) in Livens form: order 2s, constraints on velocity level (index 2)::

        Q_i    = q0 + h sum_k a_ik V_k              dT/dv(Q_i, V_i)       = p0 + h sum_k a_ik F_k       Gauss nodes
        Qbar_i = q0 + h sum_k abar_ik V_k           dT/dv(Qbar_i, Vbar_i) = p0 + h sum_k abar_ik F_k    Lobatto nodes
        0      = G(Qbar_i) Vbar_i                   q1 = Qbar_s, v1 = Vbar_s

    Every F_k has a multiplier L_k. For constant M, Vbar_i is on the polynomial through v0 and the V_k and needs no
    momentum, so that M may be singular. Positions are not enforced and drift off the constraints.

    On other models of index 2, ``x' = f(x, z)`` with ``0 = g(x)``, such as port-Hamiltonian mechanics and multibody
    equations in the formulations "index-2" and "ggl", it is the method of thm. 6.7 (`discretization.murua_dae`).
    """

    family = "murua-<s>"
    aliases = ("M-PRK-<s>",)
    member_aliases: ClassVar[dict[str, tuple[Any, ...]]] = {"M-PRK": (3,)}
    group = "Runge-Kutta methods"
    formulations: tuple[str, ...] = ("elements", "descriptor")
    examples: ClassVar[tuple[tuple[Any, ...], ...]] = ((1,), (2,), (3,))
    symplectic, symmetric = False, True
    conserves: tuple[str, ...] = ("velocity_constraint",)
    summary, source = (
        "Murua's method: Gauss nodes for motion, Lobatto nodes for hidden constraints",
        "Symank 2025, def. 6.5",
    )
    when_to_use = "Index-2 problems in which a symmetric method of order 2s matters."
    when_to_avoid = "Position constraints have to be exact: use `murua-ggl-<s>`."
    requires = (KNOWN_VELOCITIES,)
    stabilised: ClassVar[bool] = False

    def __init__(self, s: int) -> None:
        self.coefficients = tableaus.murua(s)
        self.name = type(self).family.replace("<s>", str(s))
        self.order = 2 * s
        self.error_order = s

    def unmet_requirements(self, model: Any) -> list[str]:
        unmet = super().unmet_requirements(model)
        if not unmet and "elements" not in model.formulations and index_two_form(model) is None:
            return ["a model of index 2, x' = f(x, z) with 0 = g(x)"]
        return unmet

    def equations(self, model: Any, removed_constraints: Collection[int] = ()) -> StepEquations:
        if "elements" not in model.formulations:
            return murua_step(model.without_constraints(removed_constraints), self.coefficients)
        stage_class = _GGLStages if self.stabilised else _MuruaStages
        stage_scheme = stage_class(self.coefficients, has_constant_momentum_map(model))
        stage_scheme.error_order = self.error_order
        return ElementEquations(model, stage_scheme, tuple(removed_constraints))


class MuruaGGL(Murua):
    """M-PRK on the GGL equations (Symank 2025, def. 2.3): ``q' = v + G^T mu`` enforces ``g(q) = 0`` as well.

    At Gauss nodes ``Q'_k = V_k + G(Q_k)^T Mu_k``, at Lobatto nodes ``0 = g(Qbar_i)`` and ``0 = G(Qbar_i) Vbar_i``.
    The mu vanish with the step size.
    """

    family = "murua-ggl-<s>"
    formulations = ("elements",)
    aliases = ("M-PRK-GGL-<s>",)
    member_aliases: ClassVar[dict[str, tuple[Any, ...]]] = {"M-PRK-GGL": (3,)}
    conserves = ("constraint", "velocity_constraint")
    summary, source = "Murua's method on the GGL equations: no drift", "Symank 2025, sect. 6.3.3"
    when_to_use = "Constraints on both levels with order 2s."
    when_to_avoid = "Stiff damping: use `radau-iia-<s>`."
    stabilised = True


class _MuruaStages(LivensStages):
    """M-PRK stages with unknowns ``D_i = (Q_i - q0)/h - c_i v0``, and ``Vbar_i - v0`` unless M is constant."""

    order, symplectic, symmetric, conserves = 0, False, False, ()  # defined by the scheme that uses this class
    summary = source = ""

    def __init__(self, coefficients: Coefficients, constant_mass: bool) -> None:
        c = self.coefficients = coefficients
        s = self.s = c.s
        self.constant_mass = constant_mass
        self.W = np.linalg.inv(c.gauss.A)
        self.E = c.A_bar @ self.W  #: from stages to Lobatto nodes
        self.deviations = tuple(f"D{i + 1}" for i in range(s))
        self.lobatto_velocities = () if constant_mass else tuple(f"B{i + 1}" for i in range(s))
        self.unknowns = (*self.deviations, *self.lobatto_velocities)
        self.multipliers = tuple(f"L{i + 1}" for i in range(s))

    # -- stages -------------------------------------------------------------------------------------------------------
    def _blocks(self, x: SimpleNamespace, names: tuple[str, ...]) -> list[Expr]:
        return [getattr(x, name) for name in names]

    def velocity_increments(self, x: SimpleNamespace) -> list[Expr]:
        """Return ``V_i - v0``."""
        D = self._blocks(x, self.deviations)
        return [weighted_sum(w, D, 0 * D[0]) for w in self.W]

    def lobatto_velocity_increments(self, x: SimpleNamespace) -> list[Expr]:
        """Return ``Vbar_i - v0``."""
        V = self.velocity_increments(x)
        return (
            self._blocks(x, self.lobatto_velocities)
            if self.lobatto_velocities
            else [weighted_sum(E, V, 0 * V[0]) for E in self.E]
        )

    def positions(self, old: MechanicalState, x: SimpleNamespace, h: Expr) -> list[Expr]:
        """Return ``Q_i``."""
        nodes_and_deviations = zip(self.coefficients.gauss.c, self._blocks(x, self.deviations), strict=True)
        return [old.q + h * (c * old.v + D) for c, D in nodes_and_deviations]

    def lobatto_positions(self, old: MechanicalState, x: SimpleNamespace, h: Expr) -> list[Expr]:
        """Return ``Qbar_i``."""
        nodes_and_weights, D = zip(self.coefficients.c_bar, self.E, strict=True), self._blocks(x, self.deviations)
        return [old.q + h * weighted_sum(E, D, old.v if c == 1 else c * old.v) for c, E in nodes_and_weights]

    # -- discretization -----------------------------------------------------------------------------------------------
    def initial_guess(self, old: MechanicalState, h: Expr) -> list[Expr]:
        return [0 * old.v] * len(self.unknowns)

    def kinematic_update(self, old: MechanicalState, x: SimpleNamespace, h: Expr) -> tuple[Expr, Expr]:
        return self.lobatto_positions(old, x, h)[-1], old.v + self.lobatto_velocity_increments(x)[-1]

    def nodal_residual(self, old: MechanicalState, x: Any, h: Expr) -> list[Expr]:
        if self.constant_mass:
            return [0 * old.p] * self.s
        return [*(-float(w.sum()) * old.p for w in self.W), *([-old.p] * self.s)]

    def nodal_momentum(self, old: MechanicalState, x: SimpleNamespace, h: Expr) -> Expr:
        return 0 * old.p

    def element_contribution(
        self, e: ElementFunctions, old: MechanicalState, new: MechanicalState, x: SimpleNamespace, h: Expr, t: Expr
    ) -> ElementContribution:
        T, s, zero = self.coefficients.gauss, self.s, ca.SX(e.n, 1)
        Q, L, times = self.positions(old, x, h), self._blocks(x, self.multipliers[:s]), [t + c * h for c in T.c]
        increments = self.velocity_increments(x)
        V = [old.v + increment for increment in increments]
        F = [total_force(e, Q[i], V[i], times[i]) - e.G(Q[i], times[i]).T @ L[i] for i in range(s)]
        if self.constant_mass:
            P = [e.T_v(Q[i], increments[i]) - e.T_v(Q[i], zero) for i in range(s)]  # minus p0
        else:
            P = [e.T_v(Q[i], V[i]) for i in range(s)]
        residuals = [weighted_sum(self.W[k], P, zero) - h * F[k] for k in range(s)]
        velocities = [old.v + increment for increment in self.lobatto_velocity_increments(x)]
        lobatto_states = list(zip(self.lobatto_positions(old, x, h), velocities, self.lobatto_times(t, h), strict=True))
        if self.lobatto_velocities:
            A_bar = self.coefficients.A_bar
            residuals += [
                e.T_v(q, v) - h * weighted_sum(a, F, zero) for (q, v, _), a in zip(lobatto_states, A_bar, strict=True)
            ]
        work = [powers(e, Q[i], V[i], L[i], times[i]) for i in range(s)]
        return ElementContribution(
            residuals=residuals,
            constraint_residuals=[velocity_constraint(e, q, v, time) for q, v, time in lobatto_states],
            momentum=e.T_v(new.q, new.v),
            supplied_work=h * linear_combination(T.b, [supplied for supplied, _ in work]),
            dissipated_work=h * linear_combination(T.b, [dissipated for _, dissipated in work]),
        )

    def lobatto_times(self, t: Expr, h: Expr) -> list[Expr]:
        return [t + (h if c == 1 else c * h) for c in self.coefficients.c_bar]

    @property
    def linear_predictor(self) -> np.ndarray:
        identity = np.eye(len(self.unknowns))
        final_velocity_row = identity[-1] if self.lobatto_velocities else self.E[-1] @ self._increments_by_unknowns()
        return stage_extrapolation_matrix(self.coefficients.gauss.c) @ np.vstack(
            [identity[: self.s], final_velocity_row]
        )

    def _increments_by_unknowns(self) -> np.ndarray:
        """Return ``V_i - v0`` as a matrix of coefficients of the unknowns."""
        return self.W

    def reported_multipliers(self, x: SimpleNamespace, old_multipliers: Expr) -> Expr:
        """Return ``gamma_0 z_0 + sum_i gamma_i Z_i``, on the polynomial through the old and the stage multipliers."""
        stages = self._blocks(x, self.multipliers[: self.s])
        return self.coefficients.gamma_0 * old_multipliers + linear_combination(self.coefficients.gamma, stages)

    def dense_output(self, old: MechanicalState, x: SimpleNamespace, h: Expr, theta: Expr) -> tuple[Expr, Expr]:
        """Return the dense output: q from derivatives at Gauss nodes, v through v0, the V_i and v1."""
        T, D = self.coefficients.gauss, self._blocks(x, self.deviations)
        q_derivatives = [weighted_sum(w, D, old.v) for w in self.W]
        nodes, V = np.concatenate([[0.0], T.c, [1.0]]), [old.v + increment for increment in self.velocity_increments(x)]
        v = linear_combination(lagrange_basis(nodes, theta), [old.v, *V, self.kinematic_update(old, x, h)[1]])
        return old.q + h * linear_combination(lagrange_integrals(T.c, theta), q_derivatives), v

    def error_estimate(self, old: MechanicalState, x: Any, h: Any) -> Expr:
        """Return the embedded error estimate of Gauss methods; the weights sum to zero."""
        T, increments = self.coefficients.gauss, self.velocity_increments(x)
        return h * linear_combination(embedded_error_weights(T.c, T.b, uses_initial_derivative=True)[1:], increments)


class _GGLStages(_MuruaStages):
    """GGL stages with the stage velocities ``V_i - v0`` as additional unknowns, as ``Q' = V + G^T mu``."""

    def __init__(self, coefficients: Coefficients, constant_mass: bool) -> None:
        super().__init__(coefficients, constant_mass)
        self.stage_velocities = tuple(f"V{i + 1}" for i in range(self.s))
        self.unknowns = (*self.deviations, *self.stage_velocities, *self.lobatto_velocities)
        self.multipliers = (*self.multipliers, *(f"M{i + 1}" for i in range(self.s)))

    def velocity_increments(self, x: SimpleNamespace) -> list[Expr]:
        return self._blocks(x, self.stage_velocities)

    def _increments_by_unknowns(self) -> np.ndarray:
        return np.eye(len(self.unknowns))[self.s : 2 * self.s]

    def initial_multiplier_guess(self, name: str, lam: Expr) -> Expr:
        return 0 * lam if name.startswith("M") else lam

    def nodal_residual(self, old: MechanicalState, x: Any, h: Expr) -> list[Expr]:
        residual, D = super().nodal_residual(old, x, h), self._blocks(x, self.deviations)
        kinematic_residual = [
            weighted_sum(w, D, 0 * old.v) - V for w, V in zip(self.W, self.velocity_increments(x), strict=True)
        ]
        return [*residual[: self.s], *kinematic_residual, *residual[self.s :]]

    def element_contribution(
        self, e: ElementFunctions, old: MechanicalState, new: MechanicalState, x: SimpleNamespace, h: Expr, t: Expr
    ) -> ElementContribution:
        contribution, s = super().element_contribution(e, old, new, x, h, t), self.s
        times = [t + c * h for c in self.coefficients.gauss.c]
        Q, Mu = self.positions(old, x, h), self._blocks(x, self.multipliers[s:])
        kinematic_contribution = [-e.G(Q[i], times[i]).T @ Mu[i] for i in range(s)]
        contribution.residuals = [*contribution.residuals[:s], *kinematic_contribution, *contribution.residuals[s:]]
        lobatto_points = zip(self.lobatto_positions(old, x, h), self.lobatto_times(t, h), strict=True)
        contribution.constraint_residuals = [
            *contribution.constraint_residuals,
            *(e.g(q, time) / h for q, time in lobatto_points),
        ]
        return contribution
