"""Kernels of rigid-body steps: functions of one element type and of one body type."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import casadi as ca

from livens.models.element import ElementType
from livens.schemes.discretization.element_scheme import ElementFunctions, ElementScheme, MechanicalState
from livens.schemes.discretization.factored_tangent import DerivativeFunction, FactoredTangent, factored_tangent
from livens.schemes.discretization.rigid_body_step import BodyInertia, BodyState, GGLStep, RigidBodyStep
from livens.types import Expr


class RigidBodyScheme:
    """Mixin of schemes for rigid bodies in director coordinates: body discretization and element contribution.

    The element contribution is that of an `ElementScheme` with midpoint velocities as unknowns, without kinetic energy.
    """

    body_step: type[RigidBodyStep]
    #: Discretization of rotor bodies; None: rotors are discretized as other bodies.
    rotor_step: type[RigidBodyStep] | None = None
    #: Body angular momenta are part of the state.
    stores_angular_momenta: bool = True
    #: Constraints are enforced on velocity level too: `ggl_correction` and `hidden_constraint_terms` are defined.
    ggl: bool = False

    def force_scheme(self) -> ElementScheme:
        """Return the element scheme whose contributions are the forces on the directors."""
        raise NotImplementedError

    def ggl_correction(self, e: ElementFunctions, q: Expr, v_m: Expr, gam: Expr, h: Expr, t: Expr) -> Expr:
        """Return the GGL correction of an element to the velocity."""
        raise NotImplementedError

    def hidden_constraint_terms(
        self, e: ElementFunctions, q: Expr, v_m: Expr, v: Expr, v1: Expr, gam: Expr, h: Expr, t: Expr
    ) -> tuple[Expr, Expr, Expr]:
        """Return the hidden-constraint force, the hidden constraints, and the work of rheonomic constraints."""
        raise NotImplementedError


class RigidBodyElementKernel:
    """Kernel of one element type, as functions of its local unknowns, state and parameters."""

    def __init__(self, scheme: RigidBodyScheme, model: ElementType, is_body: bool) -> None:
        model = _without_mass(model, is_body)
        n, m = model.n, model.m
        v_m, lam, gam = ca.SX.sym("v_m", n), _symbols("lam", m), _symbols("gam", m)
        q, v, v1, h, t = ca.SX.sym("q", n), ca.SX.sym("v", n), ca.SX.sym("v1", n), ca.SX.sym("h"), ca.SX.sym("t")
        energies, unknown = ElementFunctions(model), SimpleNamespace(v_m=v_m, lam=lam)
        contribution = scheme.force_scheme().element_contribution(
            energies, MechanicalState(q=q, v=v_m, p=v_m), MechanicalState(q=q + h * v_m), unknown, h, t
        )
        residual, constraints = (
            ca.densify(ca.vertcat(*contribution.residuals)),
            _stack(contribution.constraint_residuals, m),
        )
        work = ca.densify(ca.vertcat(ca.SX(contribution.supplied_work), ca.SX(contribution.dissipated_work)))
        self.model, self.m, self.is_zero = model, m, not m and _is_zero(residual)
        arguments = [v_m, lam, q, h, t, model.k]
        self.contribution = ca.Function("share", arguments, [residual, constraints, work])
        #: Factored derivative with respect to v_m, where available; see `factored_tangent`.
        self.factored_tangent: FactoredTangent | None = factored_tangent(scheme.force_scheme(), model, arguments)
        d_dv = ca.jacobian(residual, v_m) if self.factored_tangent is None else ca.SX(n, n)
        self.jacobians = ca.Function(
            "slopes", arguments, [d_dv, ca.jacobian(residual, lam), ca.jacobian(constraints, v_m)]
        )
        if scheme.ggl and m:
            ggl_correction = ca.densify(scheme.ggl_correction(energies, q, v_m, gam, h, t))
            self.ggl_correction = ca.Function("pull", [v_m, gam, q, h, t, model.k], [ggl_correction])
            hidden_terms = scheme.hidden_constraint_terms(energies, q, v_m, v, v1, gam, h, t)
            arguments = [v_m, gam, q, v, v1, h, t, model.k]
            self.hidden_constraint_terms = ca.Function(
                "hidden", arguments, [ca.densify(ca.SX(term)) for term in hidden_terms]
            )
            derivatives = [
                (ggl_correction, v_m),
                (ggl_correction, gam),
                *((hidden_terms[0], x) for x in (v_m, gam, v1)),
                *((hidden_terms[1], x) for x in (v_m, v1)),
            ]
            self.ggl_jacobians = DerivativeFunction(
                ca.Function("levels", arguments, [ca.jacobian(ca.SX(y), x) for y, x in derivatives])
            )


class BodyKernel:
    """Kernel of one body type, as functions of its unknowns y, its state and its inertia.

    Arguments are ``(y, q, v, p, spin, mass, euler, h)``, followed by the residual and the GGL correction of the
    elements where needed. `q_increment_rate` returns ``(q1 - q0)/h``, `residual` the equations, `final_state` the parts
    of the state at t + h. `jacobians` returns the derivatives of the residual with respect to variations and to the
    element residuals, of the increment rate with respect to variations, and of y with respect to variations.
    """

    def __init__(self, body_step: RigidBodyStep) -> None:
        self.body_step, n, n_directors = body_step, body_step.dim * (1 + body_step.n_directors), body_step.n_directors
        y, h, mass, euler = (
            ca.SX.sym("y", body_step.n_unknowns),
            ca.SX.sym("h"),
            ca.SX.sym("m"),
            ca.SX.sym("E", n_directors, n_directors),
        )
        q, v, p, element_residual, ggl_correction = (ca.SX.sym(name, n) for name in ("q", "v", "p", "r", "f"))
        body_angular_momentum = _symbols("Pi", body_step.n_rot)
        old, inertia, kinematics = (
            BodyState(q, v, p, body_angular_momentum),
            BodyInertia(mass, euler),
            body_step.cayley_update(y, q, h),
        )
        state = [y, q, v, p, body_angular_momentum, mass, euler, h]
        self.q_increment_rate = ca.Function("rate", state, [kinematics.q_increment_rate])
        self.final_velocity = ca.Function(
            "velocity",
            [*state, ggl_correction],
            [body_step.final_velocity(kinematics, old, ggl_correction, inertia, h)],
        )
        residual = body_step.residual(kinematics, old, element_residual, ggl_correction, inertia, h)
        self.residual = ca.Function("balance", [*state, element_residual, ggl_correction], [residual])
        new = body_step.final_state(kinematics, old, ggl_correction, inertia, h)
        self.final_state = ca.Function(
            "end", [*state, ggl_correction], [new.q, new.v, new.p, new.body_angular_momentum]
        )
        self.initial_guess = ca.Function("guess", [q, v], [body_step.initial_guess(q, v)])
        jacobians = [
            *body_step.balance_jacobians(kinematics, old, element_residual, inertia, h),
            body_step.kinematic_jacobian(kinematics),
            body_step.inverse_tangent(kinematics, h),
        ]
        self.jacobians = ca.Function("slopes", [*state, element_residual], [ca.sparsify(block) for block in jacobians])
        if isinstance(body_step, GGLStep):
            ggl_blocks = [
                ca.sparsify(block)
                for block in body_step.ggl_jacobians(kinematics, old, element_residual, ggl_correction, inertia, h)
            ]
            self.ggl_jacobians = DerivativeFunction(
                ca.Function("levels", [*state, element_residual, ggl_correction], ggl_blocks)
            )


def _without_mass(model: ElementType, is_body: bool) -> ElementType:
    """Return the element type without kinetic energy and, for bodies, without rigidity constraints."""
    invariants = {role: function for role, function in model.invariant_forms.items() if role != "kinetic"}
    symbols = model.q, model.v, model.t, model.k, model.quaternions
    g = (
        ca.SX(0, 1)
        if is_body
        else model.g[: model.n_position_constraints]
        if model.n_position_constraints
        else ca.SX(0, 1)
    )
    return ElementType(*symbols, ca.SX(0), model.V, model.R, model.F, g, invariants, model.velocity_constraints)


def _symbols(name: str, count: int) -> Expr:
    return ca.SX.sym(name, count) if count else ca.SX(0, 1)


def _stack(blocks: Sequence[Expr], count: int) -> Expr:
    return ca.densify(ca.vertcat(*blocks)) if count else ca.SX(0, 1)


def _is_zero(residual: Expr) -> bool:
    return all(ca.SX(residual[i]).is_zero() for i in range(residual.numel()))
