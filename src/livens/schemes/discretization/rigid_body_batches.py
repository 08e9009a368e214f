"""Assembly plan of rigid bodies: body batches (inertia) and element batches in body unknowns.

The kernel of an element maps the unknowns of its bodies to midpoint velocities of the directors, and the forces on the
directors to forces and torques on the bodies. No data is stored for directors.
"""

from __future__ import annotations

from collections.abc import Callable
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
    evaluate_batch,
    evaluate_constraints,
    make_batch,
    symbols,
)
from livens.schemes.discretization.element_batches import energy_balance_batch
from livens.schemes.discretization.rigid_body_equations import BODY_ANGULAR_MOMENTA, RigidBodyEquations
from livens.schemes.discretization.rigid_body_kernels import BodyKernel, RigidBodyElementKernel
from livens.schemes.discretization.rigid_body_step import BodyInertia, BodyState, LieGroupStep, RigidBodyStep
from livens.types import Expr, ModelFunction


def rigid_body_plan(equations: RigidBodyEquations) -> AssemblyPlan:
    """Return the assembly plan of the step equations."""
    body_table = BodyTable(equations)
    batches = [*body_table.batches(), *_element_batches(equations, body_table), energy_balance_batch(equations.layout)]
    if equations.enforced:
        batches.append(reported_multipliers_batch(equations, equations.unknowns))
    if equations.system.control_indices:
        batches.append(control_hold_batch(equations.layout))
    size, multipliers = equations.unknowns.size, len(equations.enforced)
    body_index = np.full(size, -1)
    for i, instance in enumerate(equations.bodies):
        body_index[instance.unknowns] = i
    return AssemblyPlan(
        layout=equations.layout,
        unknowns=equations.unknowns,
        batches=tuple(batches),
        block_sizes=tuple(equations.unknowns.sizes.values()),
        equation_labels=lambda: equations.equation_labels,
        is_multiplier=np.arange(size) >= size - multipliers,
        body_index=body_index,
        initial_guess=body_table.initial_guess,
        compensation_layout=body_table.compensation_layout,
        initial_compensation=lambda z, c: initial_compensation(equations, body_table.compensation_layout, z, c),
    )


def initial_compensation(equations: RigidBodyEquations, layout: Layout, z: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Return the compensation before the first step: constraint residuals of the initial positions."""
    compensation, q, k = np.zeros(layout.size), z[equations.layout["q"]], c[2:]
    index = np.full(equations.system.m, -1)
    index[list(equations.enforced)] = layout["gap"].start + np.arange(len(equations.enforced))
    groups: dict[RigidBodyElementKernel, list[Any]] = {}
    for e in equations.elements:
        if e.kernel.m:
            groups.setdefault(e.kernel, []).append(e)
    for kernel, members in groups.items():
        coordinates = np.array([e.coordinates for e in members])
        parameters = np.array([e.parameters for e in members], dtype=np.int64).reshape(len(members), -1)
        values = evaluate_constraints(kernel.model, q[coordinates], float(c[1]), k[parameters])
        dofs = index[np.array([range(e.constraints.start, e.constraints.stop) for e in members])]
        compensation[dofs[dofs >= 0]] = values[dofs >= 0]
    return compensation


class BodyTable:
    """Bodies of a system by body type, with index tables."""

    def __init__(self, equations: RigidBodyEquations) -> None:
        self.equations = equations
        #: Body index of every coordinate, and index within the body.
        self.body_index = np.full(equations.system.n, -1)
        self.index_in_body = np.full(equations.system.n, -1)
        for i, instance in enumerate(equations.bodies):
            coordinates = list(instance.frame.coordinates)
            self.body_index[coordinates] = i
            self.index_in_body[coordinates] = np.arange(len(coordinates))
        #: Body indices by (body kernel, element type).
        self.by_type: dict[tuple[Any, Any], list[int]] = {}
        for i, instance in enumerate(equations.bodies):
            key = instance.kernel, equations.system.element_types[instance.frame.element_index]
            self.by_type.setdefault(key, []).append(i)
        #: Compensation: rounding errors of positions and momenta, and constraint residuals.
        self.compensation_layout = Layout(
            low=equations.system.n, push=equations.unknowns["bodies"].stop, gap=len(equations.enforced)
        )

    def index_table(self, indices: list[int], indices_of: Callable[[Any], Any]) -> np.ndarray:
        rows = [list(indices_of(self.equations.bodies[i])) for i in indices]
        return np.array(rows, dtype=np.int64).reshape(len(rows), -1)

    def batches(self) -> list[ElementBatch]:
        return [self._body_batch(kernel, indices) for (kernel, _), indices in self.by_type.items()]

    def _body_batch(self, kernel: BodyKernel, indices: list[int]) -> ElementBatch:
        """Return the batch of one body type: inertia terms of the momentum balance, and final state."""
        equations, body_step = self.equations, kernel.body_step
        layout, instance = equations.layout, equations.bodies[indices[0]]
        n, n_rot = (
            body_step.dim * (1 + body_step.n_directors),
            body_step.n_rot if BODY_ANGULAR_MOMENTA in equations.layout else 0,
        )
        coordinates = self.index_table(indices, lambda body: body.frame.coordinates)
        x = self.index_table(indices, lambda body: range(body.unknowns.start, body.unknowns.stop))
        k = self.index_table(indices, lambda body: body.parameters)
        state_dofs = [layout[name].start + coordinates for name in ("q", "v", "p")]
        if n_rot:
            angular_momentum_dofs = self.index_table(
                indices, lambda body: range(body.angular_momentum_slice.start, body.angular_momentum_slice.stop)
            )
            state_dofs.append(layout[BODY_ANGULAR_MOMENTA].start + angular_momentum_dofs)
        local = KernelSymbols.create(body_step.n_unknowns, 3 * n + n_rot, 0, k.shape[1])
        q, v, p = local.z[:n], local.z[n : 2 * n], local.z[2 * n : 3 * n]
        body_momentum = local.z[3 * n :] if n_rot else ca.SX.zeros(body_step.n_rot)
        mass, euler = inertia_function(equations.system, instance.frame)(local.k)
        state = [local.x, q, v, p, body_momentum, mass, euler, local.h]
        zero_force = ca.SX.zeros(n)
        final_values = kernel.final_state(*state, zero_force)
        balance_jacobian, _, _, inverse_tangent = kernel.jacobians(*state, zero_force)
        y = symbols("y", body_step.n_unknowns)
        # directors use compensated summation like centres of mass, which preserves their orthonormality
        increments = [(local.h * kernel.q_increment_rate(*state), state_dofs[0], coordinates)]
        final_state, impulse = [*zip(final_values[1:3], state_dofs[1:3], strict=True)], None
        if type(body_step) is LieGroupStep:
            impulse = symbols("i", body_step.n_unknowns)
            kinematics = body_step.cayley_update(local.x, q, local.h)
            linear_increment, angular_increment = body_step.momentum_increments(
                kinematics, impulse, BodyInertia(mass, euler), local.h
            )
            low_dofs = self.compensation_layout["push"].start + x
            increments.append((linear_increment, state_dofs[2][:, : body_step.dim], low_dofs[:, : body_step.dim]))
            if n_rot:
                increments.append((angular_increment, state_dofs[3], low_dofs[:, body_step.dim :]))
            final_state = [
                (final_values[1], state_dofs[1]),
                (final_values[2][body_step.dim :], state_dofs[2][:, body_step.dim :]),
            ]
        elif n_rot:  # body steps with additional momentum terms are summed without compensation
            final_state.append((final_values[3], state_dofs[3]))
        residual, jacobian = common_subexpressions([kernel.residual(*state, zero_force, zero_force), balance_jacobian])
        return make_batch(
            "body", local, residual, {"x": x, "z": np.concatenate(state_dofs, axis=1), "k": k}, None, jacobian,
            final_state, update=(y, inverse_tangent @ y) if body_step.n_rot else None,
            increments=increments, impulse=impulse,
        )  # fmt: skip

    def initial_guess(self, z: np.ndarray, c: np.ndarray, residual: ModelFunction) -> np.ndarray:
        equations, layout = self.equations, self.equations.layout
        x = np.zeros(equations.unknowns.size)
        q, v = z[layout["q"]], z[layout["v"]]
        for (kernel, _), indices in self.by_type.items():
            coordinates = self.index_table(indices, lambda body: body.frame.coordinates)
            dofs = self.index_table(indices, lambda body: range(body.unknowns.start, body.unknowns.stop))
            (values,) = evaluate_batch(kernel.initial_guess, len(indices), q[coordinates].T, v[coordinates].T)
            x[dofs] = values.T
        if equations.enforced:
            x[equations.unknowns["lam"]] = z[layout["multipliers"]][list(equations.enforced)]
        return x


#: Connectivity signature of an element: kernel, body slot and index in the body of each coordinate, body steps, mask of
#: the enforced constraints, indices of the controlled parameters.
Connectivity = tuple[
    RigidBodyElementKernel,
    tuple[int, ...],
    tuple[int, ...],
    tuple[RigidBodyStep, ...],
    tuple[bool, ...],
    tuple[int, ...],
]


def elements_by_connectivity(equations: RigidBodyEquations, body_table: BodyTable) -> dict[Connectivity, list[Any]]:
    """Return the elements by connectivity signature, each with its bodies and multipliers."""
    groups: dict[Connectivity, list[Any]] = {}
    multiplier_of = {constraint: i for i, constraint in enumerate(equations.enforced)}
    commands = set(equations.system.control_indices)
    for e in equations.elements:
        body_indices = body_table.body_index[e.coordinates].tolist()
        element_bodies = list(dict.fromkeys(body_indices))
        constraints = [multiplier_of.get(i, -1) for i in range(e.constraints.start, e.constraints.stop)]
        key = (
            e.kernel,
            tuple(element_bodies.index(body) for body in body_indices),
            tuple(body_table.index_in_body[e.coordinates].tolist()),
            tuple(equations.bodies[body].kernel.body_step for body in element_bodies),
            tuple(i >= 0 for i in constraints),
            tuple(j for j, index in enumerate(e.parameters) if index in commands),
        )
        groups.setdefault(key, []).append((e, element_bodies, [i for i in constraints if i >= 0]))
    return groups


def _element_batches(equations: RigidBodyEquations, body_table: BodyTable) -> list[ElementBatch]:
    """Return one batch per element type and connectivity."""
    groups = elements_by_connectivity(equations, body_table)
    batches = [
        _element_batch(equations, *key, members, body_table.compensation_layout) for key, members in groups.items()
    ]
    return [p for p in batches if p.residual.numel() or p.final_state.numel()]


def _element_batch(
    equations: RigidBodyEquations,
    kernel: RigidBodyElementKernel,
    body_slots: tuple[int, ...],
    index_in_body: tuple[int, ...],
    body_steps: tuple[RigidBodyStep, ...],
    enforced: tuple[bool, ...],
    commanded: tuple[int, ...],
    members: list[Any],
    compensation_layout: Layout,
) -> ElementBatch:
    layout, unknowns = equations.layout, equations.unknowns
    count, n, m = len(members), len(body_slots), sum(enforced)
    starts = np.cumsum([0, *(body_step.n_unknowns for body_step in body_steps)]).tolist()
    needed_dofs = needed_director_dofs(body_steps, body_slots, index_in_body)
    local = KernelSymbols.create(starts[-1] + m, len(needed_dofs) + len(commanded), m, len(members[0][0].parameters))
    q, h, k = local.z[:n], local.h, parameters_with_controls(local, commanded)
    y = [local.x[starts[i] : starts[i + 1]] for i in range(len(body_steps))]
    lam = ca.SX.zeros(len(enforced))
    if m:
        lam[[i for i, is_enforced in enumerate(enforced) if is_enforced]] = local.x[starts[-1] :]
    compensation_dofs = compensation_layout["gap"].start + np.array(
        [multipliers for _, _, multipliers in members], dtype=np.int64
    )
    compensation_dofs = compensation_dofs.reshape(count, m)
    v_m, force_map, kinematic_jacobian, geometric_stiffness = _element_kinematics(
        body_steps, body_slots, index_in_body, needed_dofs, y, local.z, h
    )
    arguments = v_m, lam if enforced else ca.SX(0, 1), q, h, local.t, k
    forces, constraints, work = kernel.contribution(*arguments)
    _, d_dlam, dg_dv = kernel.jacobians(*arguments)
    chosen = [i for i, is_enforced in enumerate(enforced) if is_enforced]
    zero_block = ca.SX(m, m)
    jacobian = _reduced_tangent(kernel, arguments, force_map, kinematic_jacobian) + geometric_stiffness(forces)
    residual = force_map @ forces
    uncompensated_residual, compensation = None, []
    if m:
        jacobian = ca.blockcat(
            [[jacobian, force_map @ d_dlam[:, chosen]], [dg_dv[chosen, :] @ kinematic_jacobian, zero_block]]
        )
        arguments_at_q = q, h * v_m, h, local.t, k
        constraint_residual, remainder, compensated = compensated_constraints(
            kernel.model, constraints, chosen, local.compensation, arguments_at_q, commanded
        )
        uncompensated_residual = ca.densify(ca.vertcat(residual, constraints[chosen]))
        residual = ca.vertcat(residual, constraint_residual)
        compensation = [(remainder, compensation_dofs[:, compensated])]
    x = np.array(
        [
            [
                j
                for b in element_bodies
                for j in range(equations.bodies[b].unknowns.start, equations.bodies[b].unknowns.stop)
            ]
            + ([unknowns["lam"].start + i for i in multipliers] if m else [])
            for _, element_bodies, multipliers in members
        ],
        dtype=np.int64,
    )
    z = layout["q"].start + np.array(
        [
            [equations.bodies[element_bodies[r]].frame.coordinates[j] for r, j in needed_dofs]
            for _, element_bodies, _ in members
        ],
        dtype=np.int64,
    )
    z = np.concatenate([z, control_dofs(equations, commanded, members)], axis=1)
    parameters = np.array([e.parameters for e, _, _ in members], dtype=np.int64).reshape(count, -1)
    energy_dofs = np.tile([layout["supplied_energy"].start, layout["dissipated_energy"].start], (count, 1))
    residual, jacobian = common_subexpressions([residual, ca.sparsify(jacobian)])
    return make_batch(
        "element", local, residual, {"x": x, "z": z, "k": parameters, "m": compensation_dofs}, None, jacobian,
        [(work, energy_dofs)], compensation, is_force=True, uncompensated_residual=uncompensated_residual,
    )  # fmt: skip


def _reduced_tangent(
    kernel: RigidBodyElementKernel,
    arguments: tuple[Expr, Expr, Expr, Expr, Expr, Expr],
    force_map: Expr,
    kinematic_jacobian: Expr,
) -> Expr:
    """Return the tangent of the forces on bodies at constant lever arms, using the factored form where available."""
    if kernel.factored_tangent is None:
        return force_map @ kernel.jacobians(*arguments)[0] @ kinematic_jacobian
    products, remainder = kernel.factored_tangent(*arguments)
    tangent = force_map @ remainder @ kinematic_jacobian
    for U, H, V in products:
        tangent += ((force_map @ U) @ H) @ (V @ kinematic_jacobian)
    return tangent


def needed_director_dofs(
    body_steps: tuple[RigidBodyStep, ...], body_slots: tuple[int, ...], index_in_body: tuple[int, ...]
) -> list[tuple[int, int]]:
    """Return an element's coordinates as (body, index in the body), completed to whole directors, which rotate."""
    dofs = list(zip(body_slots, index_in_body, strict=True))
    for body, j in tuple(dofs):
        d = body_steps[body].dim
        dofs += [(body, i) for i in range(j // d * d, j // d * d + d) if j >= d and (body, i) not in dofs]
    return dofs


def _element_kinematics(
    body_steps: tuple[RigidBodyStep, ...],
    body_slots: tuple[int, ...],
    index_in_body: tuple[int, ...],
    needed_dofs: list[tuple[int, int]],
    y: list[Any],
    q: Expr,
    h: Expr,
) -> tuple[Expr, Expr, Expr, ModelFunction]:
    """Return midpoint velocities, force map to bodies, kinematic Jacobian and geometric stiffness of an element.

    The geometric stiffness is the derivative of the forces on bodies at constant forces on the coordinates: lever arms
    rotate with the bodies.
    """
    n, size = len(body_slots), sum(body_step.n_unknowns for body_step in body_steps)
    v_m, force_map, kinematic_jacobian = ca.SX.zeros(n), ca.SX(size, n), ca.SX(n, size)
    stiffness_blocks: list[tuple[int, int, list[int], Any, Any]] = []
    offset = 0
    for slot, body_step in enumerate(body_steps):
        element_dofs = [i for i in range(n) if body_slots[i] == slot]
        body_dofs = [index_in_body[i] for i in element_dofs]
        all_q = ca.SX.sym("q", body_step.dim * (1 + body_step.n_directors))
        q_body = ca.SX(all_q)
        for i, (body, j) in enumerate(needed_dofs):
            if body == slot:
                q_body[j] = q[i]
        kinematics = body_step.cayley_update(y[slot], q_body, h)
        force = ca.SX.sym("f", all_q.numel())
        old = BodyState(q_body, ca.SX.zeros(all_q.numel()), ca.SX.zeros(all_q.numel()), ca.SX.zeros(body_step.n_rot))
        zero_inertia = BodyInertia(ca.SX(0), ca.SX(body_step.n_directors, body_step.n_directors))
        stiffness, d_dforce = body_step.balance_jacobians(kinematics, old, force, zero_inertia, h)
        columns = slice(offset, offset + body_step.n_unknowns)
        v_m[element_dofs] = kinematics.q_increment_rate[body_dofs]
        force_map[columns, element_dofs] = d_dforce[:, body_dofs]
        kinematic_jacobian[element_dofs, columns] = body_step.kinematic_jacobian(kinematics)[body_dofs, :]
        stiffness_blocks.append((offset, body_step.n_unknowns, element_dofs, (force, body_dofs), stiffness))
        offset += body_step.n_unknowns

    def geometric_stiffness(forces: Expr) -> Expr:
        total = ca.SX(size, size)
        for block_start, width, element_dofs, (force, body_dofs), stiffness in stiffness_blocks:
            values = ca.SX.zeros(force.numel())
            for i, j in zip(element_dofs, body_dofs, strict=True):
                values[j] = forces[i]
            block = slice(block_start, block_start + width)
            total[block, block] = ca.substitute(ca.SX(stiffness), force, values)
        return total

    return v_m, force_map, kinematic_jacobian, geometric_stiffness


def reported_multipliers_batch(equations: RigidBodyEquations, unknowns: Layout) -> ElementBatch:
    """Return the batch that writes the reported multipliers; multipliers without an unknown remain zero."""
    local, each = KernelSymbols.create(1, 0), np.arange(len(equations.enforced))[:, None]
    result_dofs = equations.layout["multipliers"].start + np.array(equations.enforced)[:, None]
    x = unknowns["lam"].start + each
    return make_batch("multipliers", local, ca.SX(0, 1), {"x": x}, final_state=[(local.x, result_dofs)])


def control_hold_batch(layout: Layout) -> ElementBatch:
    """Return the batch that holds the outputs of sampled controllers over the step."""
    local, dofs = KernelSymbols.create(0, 1), np.arange(layout["control"].start, layout["control"].stop)[:, None]
    no_dofs = np.zeros((len(dofs), 0), dtype=np.int64)
    return make_batch("commands", local, ca.SX(0, 1), {"x": no_dofs, "z": dofs}, final_state=[(local.z, dofs)])


def parameters_with_controls(local: KernelSymbols, commanded: tuple[int, ...]) -> Expr:
    """Return the parameters of an element, with controller outputs taken from the last entries of its state."""
    k = ca.SX(local.k)
    for j, command in zip(commanded, ca.vertsplit(local.z)[-len(commanded) :] if commanded else [], strict=True):
        k[j] = command
    return k


def control_dofs(equations: RigidBodyEquations, commanded: tuple[int, ...], members: list[Any]) -> np.ndarray:
    """Return the state indices of the controller outputs used by these elements."""
    start, controls = equations.layout["control"].start if commanded else 0, equations.system.control_indices
    dofs = [[start + controls.index(e.parameters[j]) for j in commanded] for e, _, _ in members]
    return np.array(dofs, dtype=np.int64).reshape(len(members), len(commanded))
