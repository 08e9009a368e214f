"""Assembly plan of rigid bodies with constraints on position and velocity level (GGL).

In a GGL step every joint corrects the velocities of its bodies and constrains their velocities at t + h, so that all
joints of a body are coupled. The twist at t + h, ``(v1, omega1)``, is therefore an additional unknown of each body,
with the equations ::

    2 m u - p0 - m v1 = 2 sum of GGL corrections      2 J W - Pi0 - J R1^T omega1 = 2 sum of GGL corrections of Pi

and the residual is a sum over elements again. The trajectory is that of the equations without these unknowns.
"""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from livens.expressions.graph.interpreter import common_subexpressions
from livens.expressions.state_layout import Layout
from livens.models.director_bodies import inertia_function
from livens.schemes.discretization.assembly_plan import (
    AssemblyPlan,
    ElementBatch,
    KernelSymbols,
    compensated_constraints,
    make_batch,
)
from livens.schemes.discretization.element_batches import energy_balance_batch
from livens.schemes.discretization.rigid_body_batches import (
    BodyTable,
    Connectivity,
    control_dofs,
    control_hold_batch,
    elements_by_connectivity,
    initial_compensation,
    parameters_with_controls,
    reported_multipliers_batch,
)
from livens.schemes.discretization.rigid_body_equations import BODY_ANGULAR_MOMENTA, RigidBodyEquations
from livens.schemes.discretization.rigid_body_kernels import BodyKernel
from livens.schemes.discretization.rigid_body_step import (
    BodyInertia,
    BodyState,
    GGLStep,
    LieGroupStep,
    RigidBodyStep,
    StepKinematics,
)
from livens.types import Expr, ModelFunction


def unknowns_with_twists(equations: RigidBodyEquations) -> Layout:
    """Return the layout of the unknowns, including the twists of all bodies at t + h."""
    sizes = equations.unknowns.sizes
    return Layout(bodies=sizes["bodies"], twists=sizes["bodies"], lam=sizes["lam"], gam=sizes["gam"])


def rigid_body_ggl_plan(equations: RigidBodyEquations) -> AssemblyPlan:
    """Return the assembly plan of the step equations."""
    builder = _GGLBatches(equations)
    batches = [*builder.body_batches(), *builder.element_batches(), energy_balance_batch(equations.layout)]
    if equations.enforced:
        batches.append(reported_multipliers_batch(equations, builder.unknowns))
    if equations.system.control_indices:
        batches.append(control_hold_batch(equations.layout))
    unknowns = builder.unknowns
    body_index = np.full(unknowns.size, -1)
    for i, instance in enumerate(equations.bodies):
        body_index[instance.unknowns] = i
        body_index[unknowns["twists"]][instance.unknowns] = i
    return AssemblyPlan(
        layout=equations.layout,
        unknowns=unknowns,
        batches=tuple(batches),
        block_sizes=tuple(unknowns.sizes.values()),
        equation_labels=builder.equation_labels,
        is_multiplier=np.arange(unknowns.size) >= unknowns["lam"].start,
        body_index=body_index,
        initial_guess=builder.initial_guess,
        compensation_layout=builder.compensation_layout,
        initial_compensation=lambda z, c: initial_compensation(equations, builder.compensation_layout, z, c),
    )


class _GGLBatches:
    """Batches of the GGL equations, with the twists at t + h as unknowns."""

    def __init__(self, equations: RigidBodyEquations) -> None:
        self.equations, self.unknowns = equations, unknowns_with_twists(equations)
        self._body_table = BodyTable(equations)
        #: Rounding errors of positions, and constraint residuals.
        self.compensation_layout = Layout(low=equations.system.n, gap=len(equations.enforced))
        multiplier_index = {constraint: i for i, constraint in enumerate(equations.enforced)}
        self._velocity_level_index = {
            multiplier_index[constraint]: i for i, constraint in enumerate(equations.enforced_twice)
        }

    def equation_labels(self) -> tuple[str, ...]:
        names, count = self.equations.equation_labels, self.unknowns.sizes["bodies"]
        relations = tuple(f"velocity at the end of the step in the {name}" for name in names[:count])
        return (*relations, *names)

    def initial_guess(self, z: np.ndarray, c: np.ndarray, residual: ModelFunction) -> np.ndarray:
        x_without_twists, x = self._body_table.initial_guess(z, c, residual), np.zeros(self.unknowns.size)
        body_slice, multiplier_slice = self.equations.unknowns["bodies"], self.equations.unknowns["lam"]
        x[self.unknowns["bodies"]] = x[self.unknowns["twists"]] = x_without_twists[body_slice]
        x[self.unknowns["lam"]] = x_without_twists[multiplier_slice]
        return x

    def _body_unknowns(self, body: int) -> list[int]:
        """Return the indices of the unknowns of a body: mean velocities of the step, then velocities at t + h."""
        unknowns = self.equations.bodies[body].unknowns
        return [
            *range(unknowns.start, unknowns.stop),
            *(self.unknowns["twists"].start + i for i in range(unknowns.start, unknowns.stop)),
        ]

    # -- bodies -------------------------------------------------------------------------------------------------------
    def body_batches(self) -> list[ElementBatch]:
        return [self._body_batch(kernel, indices) for (kernel, _), indices in self._body_table.by_type.items()]

    def _body_batch(self, kernel: BodyKernel, indices: list[int]) -> ElementBatch:
        equations, layout, bodies = self.equations, self.equations.layout, self._body_table
        body_step, instance = kernel.body_step, equations.bodies[indices[0]]
        assert isinstance(body_step, LieGroupStep)
        n, n_rot = _n_coordinates(body_step), body_step.n_rot
        coordinates = bodies.index_table(indices, lambda body: body.frame.coordinates)
        k = bodies.index_table(indices, lambda body: body.parameters)
        state_dofs = [layout[name].start + coordinates for name in ("q", "v", "p")]
        if n_rot:
            angular_momentum_dofs = bodies.index_table(
                indices, lambda body: range(body.angular_momentum_slice.start, body.angular_momentum_slice.stop)
            )
            state_dofs.append(layout[BODY_ANGULAR_MOMENTA].start + angular_momentum_dofs)
        x = np.array([self._body_unknowns(i) for i in indices], dtype=np.int64)
        local = KernelSymbols.create(2 * body_step.n_unknowns, 3 * n + n_rot, 0, k.shape[1])
        q, v, p = local.z[:n], local.z[n : 2 * n], local.z[2 * n : 3 * n]
        old = BodyState(q, v, p, local.z[3 * n :] if n_rot else ca.SX(0, 1))
        inertia = BodyInertia(*inertia_function(equations.system, instance.frame)(local.k))
        kinematics, twist = (
            body_step.cayley_update(local.x[: body_step.n_unknowns], q, local.h),
            local.x[body_step.n_unknowns :],
        )
        momentum, body_momentum = (
            inertia.mass * twist[: body_step.dim],
            _final_body_momentum(body_step, kinematics, twist, inertia),
        )
        relation = 2 * inertia.mass * kinematics.u - p[: body_step.dim] - momentum
        if n_rot:
            relation = ca.vertcat(
                relation, 2 * body_step.body_momentum(kinematics, inertia) - old.body_angular_momentum - body_momentum
            )
        zero_force, zero_torque = ca.SX.zeros(n), ca.SX.zeros(n_rot)
        balance = body_step.residual_from_means(
            kinematics,
            old,
            zero_force,
            momentum + p[: body_step.dim],
            body_momentum + old.body_angular_momentum,
            zero_torque,
            local.h,
        )
        v1 = body_step.lift_twist(twist, kinematics)
        final_state = [
            (v1, state_dofs[1]),
            (ca.vertcat(momentum, body_step.momenta(v1, inertia)[body_step.dim :]), state_dofs[2]),
        ]
        if n_rot:
            final_state.append((body_momentum, state_dofs[3]))
        increments = [(local.h * kinematics.q_increment_rate, state_dofs[0], coordinates)]
        residual = ca.vertcat(relation, balance)
        dofs = {"x": x, "z": np.concatenate(state_dofs, axis=1), "k": k}
        simplified_residual, jacobian = _with_jacobian(residual, local)
        return make_batch("body", local, simplified_residual, dofs, None, jacobian, final_state, increments=increments)

    # -- elements -----------------------------------------------------------------------------------------------------
    def element_batches(self) -> list[ElementBatch]:
        batches = [
            self._element_batch(key, members)
            for key, members in elements_by_connectivity(self.equations, self._body_table).items()
        ]
        return [p for p in batches if p.residual.numel() or p.final_state.numel()]

    def _element_batch(self, key: Connectivity, members: list[Any]) -> ElementBatch:
        kernel, body_slots, index_in_body, body_steps, enforced, commanded = key
        equations, layout, count, n = self.equations, self.equations.layout, len(members), len(body_slots)
        chosen = [i for i, is_enforced in enumerate(enforced) if is_enforced]
        enforced_twice = [
            i for i, index in zip(chosen, members[0][2], strict=True) if index in self._velocity_level_index
        ]
        starts = np.cumsum([0, *(2 * recipe.n_unknowns for recipe in body_steps)]).tolist()
        needed_dofs = _needed_director_dofs(body_steps, body_slots, index_in_body)
        m, size = len(chosen), starts[-1] + len(chosen) + len(enforced_twice)
        local = KernelSymbols.create(size, 2 * len(needed_dofs) + len(commanded), m, len(members[0][0].parameters))
        h, k = local.h, parameters_with_controls(local, commanded)
        lam, gam = ca.SX.zeros(len(enforced)), ca.SX.zeros(len(enforced))
        for slot, i in enumerate(chosen):
            lam[i] = local.x[starts[-1] + slot]
        for slot, i in enumerate(enforced_twice):
            gam[i] = local.x[starts[-1] + m + slot]
        element_bodies = [
            _ElementBody(
                recipe, local.x[starts[i] : starts[i + 1]], _dofs_of_body(i, needed_dofs), local, len(needed_dofs)
            )
            for i, recipe in enumerate(body_steps)
        ]
        dofs_by_body = [
            [(i, index_in_body[i]) for i in range(n) if body_slots[i] == index] for index in range(len(body_steps))
        ]
        q, v, v_m, v1 = local.z[:n], local.z[len(needed_dofs) : len(needed_dofs) + n], ca.SX.zeros(n), ca.SX.zeros(n)
        for body, body_dofs in zip(element_bodies, dofs_by_body, strict=True):
            for i, j in body_dofs:
                v_m[i], v1[i] = body.kinematics.q_increment_rate[j], body.v1[j]
        empty = ca.SX(0, 1)
        forces, constraints, work = kernel.contribution(v_m, lam if enforced else empty, q, h, local.t, k)
        ggl_correction, hidden_constraints = ca.SX.zeros(n), empty
        if kernel.m:
            ggl_correction = kernel.ggl_correction(v_m, gam, q, h, local.t, k)
            hessian_force, hidden_constraints, rheonomic_work = kernel.hidden_constraint_terms(
                v_m, gam, q, v, v1, h, local.t, k
            )
            forces, work = forces + hessian_force, ca.vertcat(work[0] + rheonomic_work, work[1])
        residuals = [
            body.contribution(body_dofs, forces, ggl_correction, h)
            for body, body_dofs in zip(element_bodies, dofs_by_body, strict=True)
        ]
        compensation_dofs = self.compensation_layout["gap"].start + np.array(
            [multipliers for _, _, multipliers in members], dtype=np.int64
        )
        compensation_dofs, uncompensated_residual, compensation = compensation_dofs.reshape(count, m), None, list[Any]()
        if m:
            arguments = q, h * v_m, h, local.t, k
            constraint_residual, remainder, compensated = compensated_constraints(
                kernel.model, constraints, chosen, local.compensation, arguments, commanded
            )
            velocity_residuals = [hidden_constraints[enforced_twice]] if enforced_twice else []
            uncompensated_residual = ca.densify(ca.vertcat(*residuals, constraints[chosen], *velocity_residuals))
            residuals += [constraint_residual, *velocity_residuals]
            compensation = [(remainder, compensation_dofs[:, compensated])]
        coordinates = np.array(
            [
                [equations.bodies[element_body_indices[r]].frame.coordinates[j] for r, j in needed_dofs]
                for _, element_body_indices, _ in members
            ],
            dtype=np.int64,
        )
        z = [layout["q"].start + coordinates, layout["v"].start + coordinates]
        dofs = {
            "x": np.array(
                [
                    self._unknowns_of(element_body_indices, multipliers)
                    for _, element_body_indices, multipliers in members
                ],
                dtype=np.int64,
            ),
            "z": np.concatenate([*z, control_dofs(equations, commanded, members)], axis=1),
            "k": np.array([e.parameters for e, _, _ in members], dtype=np.int64).reshape(count, -1),
            "m": compensation_dofs,
        }
        energy_dofs = np.tile([layout["supplied_energy"].start, layout["dissipated_energy"].start], (count, 1))
        simplified_residual, jacobian = _with_jacobian(ca.vertcat(*residuals), local)
        return make_batch(
            "element",
            local,
            simplified_residual,
            dofs,
            None,
            jacobian,
            [(work, energy_dofs)],
            compensation,
            uncompensated_residual=uncompensated_residual,
        )

    def _unknowns_of(self, body_indices: list[int], multipliers: list[int]) -> list[int]:
        lam, gam = self.unknowns["lam"].start, self.unknowns["gam"].start
        hidden = [gam + self._velocity_level_index[i] for i in multipliers if i in self._velocity_level_index]
        return [
            *(i for body in body_indices for i in self._body_unknowns(body)),
            *(lam + i for i in multipliers),
            *hidden,
        ]


def _with_jacobian(residual: Expr, local: KernelSymbols) -> tuple[Expr, Expr]:
    """Return residual and Jacobian after common-subexpression elimination."""
    simplified = common_subexpressions([ca.densify(residual), ca.sparsify(ca.jacobian(residual, local.x))])
    return simplified[0], simplified[1]


def _needed_director_dofs(
    body_steps: tuple[RigidBodyStep, ...], body_slots: tuple[int, ...], index_in_body: tuple[int, ...]
) -> list[tuple[int, int]]:
    """Return an element's coordinates as (body, index in the body), completed by all directors of rotating bodies.

    A GGL correction of one director changes the angular momentum, which depends on all directors.
    """
    dofs = list(zip(body_slots, index_in_body, strict=True))
    rotating = {body for body, j in dofs if j >= body_steps[body].dim}
    director_dofs = (
        (body, j) for body in sorted(rotating) for j in range(body_steps[body].dim, _n_coordinates(body_steps[body]))
    )
    return dofs + [entry for entry in director_dofs if entry not in dofs]


def _n_coordinates(body_step: RigidBodyStep) -> int:
    """Return the number of coordinates of a body."""
    return body_step.dim * (1 + body_step.n_directors)


def _dofs_of_body(body_slot: int, needed_dofs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the dofs of a body among the dofs of an element, as (index in the element, index in the body)."""
    return [(i, j) for i, (body, j) in enumerate(needed_dofs) if body == body_slot]


def _final_body_momentum(
    body_step: LieGroupStep, kinematics: StepKinematics, twist: Expr, inertia: BodyInertia
) -> Expr:
    """Return the body angular momentum of the angular velocity at t + h."""
    if not body_step.n_directors:
        return ca.SX(0, 1)
    trace, omega = ca.trace(inertia.euler_tensor), twist[body_step.dim :]
    if body_step.dim == 2:
        return trace * omega
    return (trace * ca.SX.eye(3) - inertia.euler_tensor) @ (ca.horzcat(*kinematics.d_1).T @ omega)


class _ElementBody:
    """Body of an element: kinematics from the element's dofs; directors that the element does not use are zero."""

    def __init__(
        self, body_step: RigidBodyStep, x: Expr, dofs: list[tuple[int, int]], local: KernelSymbols, n_needed: int
    ) -> None:
        assert isinstance(body_step, GGLStep)
        self.body_step, n = body_step, _n_coordinates(body_step)
        self.q, self.v = ca.SX.zeros(n), ca.SX.zeros(n)
        for i, j in dofs:
            self.q[j], self.v[j] = local.z[i], local.z[n_needed + i]
        self.kinematics = body_step.cayley_update(x[: body_step.n_unknowns], self.q, local.h)
        self.v1 = body_step.lift_twist(x[body_step.n_unknowns :], self.kinematics)

    def contribution(self, dofs: list[tuple[int, int]], forces: Expr, ggl_correction: Expr, h: Expr) -> Expr:
        """Return the contribution of an element to the equations of the body: GGL corrections, forces and torques."""
        body_step, n = self.body_step, self.q.numel()
        force, correction = ca.SX.zeros(n), ca.SX.zeros(n)
        for i, j in dofs:
            force[j], correction[j] = forces[i], ggl_correction[i]
        linear, angular = body_step.ggl_momenta(self.kinematics, correction, h)
        balance = force[: body_step.dim]
        if body_step.n_directors:
            mean_velocity = (self.v + self.v1) / 2
            torque = body_step.total_moment(self.kinematics.d_mid, body_step.split_coordinates(force)[1:])
            torque += h * body_step.total_moment(
                body_step.split_coordinates(mean_velocity)[1:], body_step.split_coordinates(correction)[1:]
            )
            balance = ca.vertcat(balance, torque)
        return ca.vertcat(-2 * linear, -2 * angular, balance)
