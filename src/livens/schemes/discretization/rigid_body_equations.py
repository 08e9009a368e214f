"""Step equations of systems of rigid bodies: element contributions and body projections.

Elements map midpoint velocities of directors to forces on directors. Bodies map their unknowns to midpoint velocities
of the directors and project the forces to as many equations. Both kernels are derived once per type.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import casadi as ca
import numpy as np

from livens.expressions.graph.interpreter import common_subexpressions
from livens.expressions.state_layout import Layout
from livens.models.base import sha256_of
from livens.models.director_bodies import DirectorBodyDofs, body_signatures, inertia_function
from livens.models.element import ElementType
from livens.models.system import System
from livens.schemes.core.step_equations import StepEquations, StepGraph, array_sha256
from livens.schemes.discretization.assembly_plan import AssemblyPlan
from livens.schemes.discretization.rigid_body_kernels import BodyKernel, RigidBodyElementKernel, RigidBodyScheme
from livens.schemes.discretization.rigid_body_step import RigidBodyStep
from livens.schemes.discretization.so3 import cross
from livens.types import Expr

#: Name of the state part with the body angular momenta.
BODY_ANGULAR_MOMENTA = "body_spins"


@dataclass(frozen=True, eq=False)
class ElementInstance:
    """Element of the system: kernel of its type, and indices."""

    kernel: RigidBodyElementKernel
    coordinates: list[int]
    constraints: slice
    parameters: list[int]


@dataclass(frozen=True, eq=False)
class BodyInstance:
    """Body of the system: kernel of its type, inertia, and indices."""

    kernel: BodyKernel
    frame: DirectorBodyDofs
    inertia: ca.Function
    parameters: list[int]
    unknowns: slice
    angular_momentum_slice: slice  # slice of the body angular momenta


class RigidBodyEquations(StepEquations):
    """Step equations of rigid bodies, with the structure of elements and bodies.

    Unknowns are those of the bodies, body by body, then the multipliers of the constraints between bodies. The
    orthonormality of the directors needs no multipliers. The multipliers of `removed_constraints` are zero.
    """

    def __init__(self, system: System, scheme: RigidBodyScheme, removed_constraints: tuple[int, ...] = ()) -> None:
        self.system, self.scheme, self.removed_constraints = system, scheme, removed_constraints
        n_rot = sum(frame.n_rot for frame in system.frames)
        self.layout = (
            system.layout.extended(**{BODY_ANGULAR_MOMENTA: n_rot})
            if scheme.stores_angular_momenta and n_rot
            else system.layout
        )
        rigidity_constraints = {i for frame in system.frames for i in frame.constraints}
        #: Enforced constraints: those with a multiplier among the unknowns.
        not_enforced = rigidity_constraints | set(removed_constraints)
        self.enforced = tuple(i for i in range(system.m) if i not in not_enforced)
        #: Enforced constraints on both levels; velocity-level constraints are enforced once.
        on_position = set(system.position_constraints) if scheme.ggl else set[int]()
        self.enforced_twice = tuple(i for i in self.enforced if i in on_position)
        body_steps = {body_type: self._body_step(*body_type) for body_type in body_signatures(system.frames)}
        sizes = {
            "bodies": sum(body_steps[frame.signature].n_unknowns for frame in system.frames),
            "lam": len(self.enforced),
        }
        self.unknowns = Layout(**sizes, **({"gam": len(self.enforced_twice)} if scheme.ggl else {}))

    def _body_step(self, dimension: int, directors: int, rotor: bool) -> RigidBodyStep:
        rotor_step = self.scheme.rotor_step if rotor else None
        return (rotor_step or self.scheme.body_step)(dimension, directors)

    @functools.cached_property
    def bodies(self) -> tuple[BodyInstance, ...]:
        """Bodies, in the order of their unknowns."""
        system, start, angular_start, instances = self.system, 0, 0, []
        kernels = {body_type: BodyKernel(self._body_step(*body_type)) for body_type in body_signatures(system.frames)}
        for frame in system.frames:
            kernel = kernels[frame.signature]
            body_step = kernel.body_step
            slices = slice(start, start + body_step.n_unknowns), slice(angular_start, angular_start + body_step.n_rot)
            parameters = list(system.element_parameters[frame.element_index])
            instances.append(BodyInstance(kernel, frame, inertia_function(system, frame), parameters, *slices))
            start, angular_start = slices[0].stop, slices[1].stop
        return tuple(instances)

    @functools.cached_property
    def elements(self) -> tuple[ElementInstance, ...]:
        """Elements with a nonzero contribution; each type is derived once."""
        system, kernels, instances = self.system, dict[tuple[ElementType, bool], RigidBodyElementKernel](), []
        body_elements = {frame.element_index for frame in system.frames}
        for index, model in enumerate(system.element_types):
            key = model, index in body_elements
            if key not in kernels:
                kernels[key] = RigidBodyElementKernel(self.scheme, *key)
            if kernels[key].is_zero:
                continue
            multipliers = system.element_constraints[index]
            dofs = (
                list(system.element_dofs[index]),
                multipliers if kernels[key].m else slice(multipliers.start, multipliers.start),
            )
            instances.append(ElementInstance(kernels[key], *dofs, list(system.element_parameters[index])))
        return tuple(instances)

    @functools.cached_property
    def equation_labels(self) -> tuple[str, ...]:
        """Labels of the equations."""
        system, names = self.system, list[str]()
        for frame in system.frames:
            names += [f"balance of momentum of {system.coordinates[i]}" for i in frame.position]
            body_name = system.elements[frame.element_index].name or system.coordinates[frame.position[0]]
            names += [f"balance of angular momentum of {body_name}"] * frame.n_rot
            names += [f"rate of rotation of {body_name}"] * self._body_step(*frame.signature).n_extra
        names += [f"constraint {system.constraint_names[i]}" for i in self.enforced]
        if self.scheme.ggl:
            names += [f"hidden constraint {system.constraint_names[i]}" for i in self.enforced_twice]
        return tuple(names)

    @property
    def n_assembled_unknowns(self) -> int:
        n_twists = self.unknowns.sizes["bodies"] if self.scheme.ggl else 0  # see `rigid_body_ggl_batches`
        return self.unknowns.size + n_twists

    def assembly_plan(self) -> AssemblyPlan:
        from livens.schemes.discretization.rigid_body_batches import rigid_body_plan  # circular import
        from livens.schemes.discretization.rigid_body_ggl_batches import rigid_body_ggl_plan

        return rigid_body_ggl_plan(self) if self.scheme.ggl else rigid_body_plan(self)

    @functools.cached_property
    def fingerprint(self) -> str:
        kernels: dict[Any, tuple[int, Any]] = {}
        index_rows: dict[Any, list[list[int]]] = {}

        def register(
            kernel: RigidBodyElementKernel | tuple[BodyKernel, ca.Function], serialize: Callable[[], Any], *indices: Any
        ) -> None:
            if kernel not in kernels:
                kernels[kernel] = len(kernels), serialize()
            index_rows.setdefault(kernel, []).append([int(i) for index_list in indices for i in index_list])

        for e in self.elements:
            multiplier_range = e.constraints.start, e.constraints.stop
            register(
                e.kernel, functools.partial(_serialize_kernels, e.kernel), e.coordinates, multiplier_range, e.parameters
            )
        for body in self.bodies:
            indices = body.frame.coordinates, body.parameters, (body.unknowns.start, body.angular_momentum_slice.start)
            register(
                (body.kernel, body.inertia), functools.partial(_serialize_kernels, body.kernel, body.inertia), *indices
            )
        fingerprint_parts = [
            (sources, array_sha256(np.array(index_rows[kernel]))) for kernel, (_, sources) in kernels.items()
        ]
        return sha256_of(
            [
                "frames",
                type(self.scheme).__name__,
                self.layout.sizes,
                self.unknowns.sizes,
                self.enforced,
                fingerprint_parts,
            ]
        )

    # -- as one graph -------------------------------------------------------------------------------------------------
    def to_single_graph(self) -> StepGraph:
        return self._graph

    @functools.cached_property
    def _graph(self) -> StepGraph:
        system, layout = self.system, self.layout
        n, m, ggl = system.n, system.m, self.scheme.ggl
        x, z = ca.SX.sym("x", self.unknowns.size), ca.SX.sym("z", layout.size)
        c = ca.SX.sym("c", 2 + system.parameter_count)
        h, t, k = c[0], c[1], c[2:]
        if system.control_indices:
            k = ca.SX(k)
            k[list(system.control_indices)] = z[layout["control"]]
        q, v, p = z[layout["q"]], z[layout["v"]], z[layout["p"]]
        body_momenta = (
            z[layout[BODY_ANGULAR_MOMENTA]]
            if BODY_ANGULAR_MOMENTA in layout
            else ca.SX.zeros(sum(b.kernel.body_step.n_rot for b in self.bodies))
        )

        def multipliers(name: str, constraints: tuple[int, ...]) -> Expr:
            values = ca.SX.zeros(m)
            if constraints:
                values[list(constraints)] = x[self.unknowns[name]]
            return values

        lam, gam = multipliers("lam", self.enforced), multipliers("gam", self.enforced_twice)
        body_arguments = [self._body_arguments(body, x, q, v, p, body_momenta, k, h) for body in self.bodies]
        v_m = self._scatter(
            n,
            [
                body.kernel.q_increment_rate(*arguments_of_body)
                for body, arguments_of_body in zip(self.bodies, body_arguments, strict=True)
            ],
        )
        residual_q, position_residual, velocity_residual = ca.SX.zeros(n), ca.SX.zeros(m), ca.SX.zeros(m)
        supplied, dissipated = z[layout["supplied_energy"]], z[layout["dissipated_energy"]]
        for e in self.elements:
            i = e.coordinates
            contribution, g, work = e.kernel.contribution(
                v_m[i], _column_slice(lam, e.constraints), q[i], h, t, k[e.parameters]
            )
            residual_q[i] += contribution
            if e.kernel.m:
                position_residual[e.constraints] = g
            supplied, dissipated = supplied + work[0], dissipated + work[1]
        correction = ca.SX.zeros(n)
        if ggl:
            constrained = [e for e in self.elements if e.kernel.m]
            for e in constrained:
                i = e.coordinates
                correction[i] += e.kernel.ggl_correction(v_m[i], gam[e.constraints], q[i], h, t, k[e.parameters])
            corrections = [correction[list(body.frame.coordinates)] for body in self.bodies]
            steps = zip(self.bodies, body_arguments, corrections, strict=True)
            v1 = self._scatter(
                n,
                [
                    body.kernel.final_velocity(*arguments_of_body, contribution)
                    for body, arguments_of_body, contribution in steps
                ],
            )
            for e in constrained:
                i = e.coordinates
                arguments = v_m[i], gam[e.constraints], q[i], v[i], v1[i], h, t, k[e.parameters]
                hessian_force, hidden_constraints, rheonomic_work = e.kernel.hidden_constraint_terms(*arguments)
                residual_q[i] += hessian_force
                supplied = supplied + rheonomic_work
                velocity_residual[e.constraints] = hidden_constraints

        body_residuals, final_states, initial_guesses = [], [], []
        for body, arguments_of_body in zip(self.bodies, body_arguments, strict=True):
            i = list(body.frame.coordinates)
            body_residuals.append(body.kernel.residual(*arguments_of_body, residual_q[i], correction[i]))
            final_states.append(body.kernel.final_state(*arguments_of_body, correction[i]))
            initial_guesses.append(body.kernel.initial_guess(q[i], v[i]))
        enforced, enforced_twice, empty = list(self.enforced), list(self.enforced_twice), ca.SX(0, 1)
        constraint_residuals = (
            [position_residual[enforced], *([velocity_residual[enforced_twice]] if enforced_twice else [])]
            if enforced
            else []
        )
        final_qvp = [self._scatter(n, [body_state[block] for body_state in final_states]) for block in range(3)]
        controls = [z[layout["control"]]] if system.control_indices else []
        additional = (
            [*controls, ca.vertcat(*(body_state[3] for body_state in final_states))]
            if BODY_ANGULAR_MOMENTA in layout
            else controls
        )
        reported = z[layout["multipliers"]]
        multiplier_guesses = [
            reported[enforced] if enforced else empty,
            *([ca.SX.zeros(len(enforced_twice))] if enforced_twice else []),
        ]
        residual = ca.densify(ca.vertcat(*body_residuals, *constraint_residuals))
        if ggl:
            variables = SimpleNamespace(v_m=v_m, lam=lam, gam=gam, q=q, v=v, v1=v1, h=h, t=t, k=k)
            jacobian, update = self._ggl_jacobian(body_arguments, residual_q, correction, variables)
        else:
            jacobian, update = self._jacobian(body_arguments, residual_q, v_m, lam, q, h, t, k)
        triplet = jacobian.sparsity().get_triplet()
        simplified = common_subexpressions([residual, ca.SX(jacobian.nz[:]), *([] if update is None else [update[0]])])
        return StepGraph(
            x=x,
            z=z,
            c=c,
            residual=simplified[0],
            jac_rows=np.array(triplet[0], dtype=np.int64),
            jac_cols=np.array(triplet[1], dtype=np.int64),
            jac_values=simplified[1],
            update_matrix=None if update is None else (simplified[2], *update[1:]),
            final_state=common_subexpressions(
                ca.densify(ca.vertcat(*final_qvp, supplied, dissipated, lam if m else empty, *additional))
            ),
            initial_guess=ca.densify(ca.vertcat(*initial_guesses, *multiplier_guesses)),
            block_sizes=tuple(self.unknowns.sizes.values()),
            equation_labels=self.equation_labels,
            layout=layout,
        )

    def _jacobian(
        self, body_arguments: Any, residual_q: Any, v_m: Expr, lam: Expr, q: Expr, h: Expr, t: Expr, k: Expr
    ) -> tuple[Any, Any]:
        """Return the Jacobian in variations at t + h, by the chain rule: elements, then bodies.

        The second result is the matrix that maps variations to increments of the unknowns.
        """
        n, m, size = self.system.n, self.system.m, self.unknowns["bodies"].stop
        d_dv, d_dlam, dg_dv = ca.SX(n, n), ca.SX(n, m), ca.SX(m, n)
        products: list[tuple[list[int], Any, Any, Any]] = []
        for e in self.elements:
            i, constraints = e.coordinates, list(range(e.constraints.start, e.constraints.stop))
            arguments = v_m[i], _column_slice(lam, e.constraints), q[i], h, t, k[e.parameters]
            jacobians = e.kernel.jacobians(*arguments)
            d_dv += _scatter_block(_unfactored_tangent(e.kernel, jacobians, arguments, i, products), i, i, (n, n))
            if constraints:
                d_dlam += _scatter_block(jacobians[1], i, constraints, (n, m))
                dg_dv += _scatter_block(jacobians[2], constraints, i, (m, n))
        kinematic_jacobian, force_map, body_jacobian = ca.SX(n, size), ca.SX(size, n), ca.SX(size, size)
        update_entries: dict[tuple[int, int], Any] = {}
        for body, arguments_of_body in zip(self.bodies, body_arguments, strict=True):
            i, y = list(body.frame.coordinates), list(range(body.unknowns.start, body.unknowns.stop))
            constraints, d_dresidual, body_kinematics, inverse_tangent = body.kernel.jacobians(
                *arguments_of_body, residual_q[i]
            )
            body_jacobian += _scatter_block(constraints, y, y, (size, size))
            force_map += _scatter_block(d_dresidual, y, i, (size, n))
            kinematic_jacobian += _scatter_block(body_kinematics, i, y, (n, size))
            rotational = range(body.kernel.body_step.dim, body.kernel.body_step.dim + body.kernel.body_step.n_rot)
            pairs = [(a, b) for a in rotational for b in rotational]
            update_entries |= {(y[a], y[b]): inverse_tangent[a, b] for a, b in pairs}
        enforced = list(self.enforced)
        jacobian = (
            body_jacobian
            + force_map @ (d_dv @ kinematic_jacobian)
            + _factored_product(products, force_map, kinematic_jacobian)
        )
        if enforced:
            zero_block = ca.SX(len(enforced), len(enforced))
            jacobian = ca.blockcat(
                [[jacobian, force_map @ d_dlam[:, enforced]], [dg_dv[enforced, :] @ kinematic_jacobian, zero_block]]
            )
        if not update_entries:
            return jacobian, None
        positions = list(update_entries)
        return jacobian, (ca.vertcat(*update_entries.values()), [i for i, _ in positions], [j for _, j in positions])

    def _ggl_jacobian(
        self, body_arguments: Any, residual_q: Any, correction: Any, variables: SimpleNamespace
    ) -> tuple[Any, Any]:
        """Return the Jacobian of the GGL equations, where elements depend on the velocities at t + h.

        Element terms: R residual, P GGL correction, g and H constraints on position and velocity level; subscripts:
        v_m, v1, lam and gam. The projections to bodies are applied before the products are formed.
        """
        n, m, size, h, t = self.system.n, self.system.m, self.unknowns["bodies"].stop, variables.h, variables.t
        of_n, of_m = (n, n), (n, m)
        R_v, P_v, R_1 = ca.SX(n, n), ca.SX(n, n), ca.SX(n, n)
        R_lam, R_gam, P_gam = ca.SX(n, m), ca.SX(n, m), ca.SX(n, m)
        g_v, H_v, H_1 = ca.SX(m, n), ca.SX(m, n), ca.SX(m, n)
        products: list[tuple[list[int], Any, Any, Any]] = []
        for e in self.elements:
            i, entries = e.coordinates, list(range(e.constraints.start, e.constraints.stop))
            arguments = (
                variables.v_m[i],
                _column_slice(variables.lam, e.constraints),
                variables.q[i],
                h,
                t,
                variables.k[e.parameters],
            )
            jacobians = e.kernel.jacobians(*arguments)
            R_v += _scatter_block(_unfactored_tangent(e.kernel, jacobians, arguments, i, products), i, i, of_n)
            if not entries:
                continue
            R_lam += _scatter_block(jacobians[1], i, entries, of_m)
            g_v += _scatter_block(jacobians[2], entries, i, (m, n))
            ggl_arguments = (
                variables.v_m[i],
                variables.gam[e.constraints],
                variables.q[i],
                variables.v[i],
                variables.v1[i],
                h,
                t,
                variables.k[e.parameters],
            )
            p_v, p_gam, b_v, b_gam, b_1, h_v, h_1 = e.kernel.ggl_jacobians.function(*ggl_arguments)
            P_v, R_v, R_1 = (
                P_v + _scatter_block(p_v, i, i, of_n),
                R_v + _scatter_block(b_v, i, i, of_n),
                R_1 + _scatter_block(b_1, i, i, of_n),
            )
            P_gam, R_gam = (
                P_gam + _scatter_block(p_gam, i, entries, of_m),
                R_gam + _scatter_block(b_gam, i, entries, of_m),
            )
            H_v, H_1 = H_v + _scatter_block(h_v, entries, i, (m, n)), H_1 + _scatter_block(h_1, entries, i, (m, n))
        square, wide, tall = (size, size), (size, n), (n, size)
        # D: body residual, Y: GGL part of the momenta, T: twist, E: v1 at fixed twist
        D, D_mu, Y, T, T_mu = (ca.SX(*square) for _ in range(5))
        D_rows, D_pull, D_1, Y_pull = (ca.SX(*wide) for _ in range(4))
        E, S = ca.SX(*tall), ca.SX(*tall)
        update_entries: dict[tuple[int, int], Any] = {}
        for body, arguments_of_body in zip(self.bodies, body_arguments, strict=True):
            i, y = list(body.frame.coordinates), list(range(body.unknowns.start, body.unknowns.stop))
            entries = iter(body.kernel.ggl_jacobians.function(*arguments_of_body, residual_q[i], correction[i]))
            D += _scatter_block(next(entries), y, y, square)
            D_rows += _scatter_block(next(entries), y, i, wide)
            D_pull += _scatter_block(next(entries), y, i, wide)
            D_mu += _scatter_block(next(entries), y, y, square)
            D_1 += _scatter_block(next(entries), y, i, wide)
            Y += _scatter_block(next(entries), y, y, square)
            Y_pull += _scatter_block(next(entries), y, i, wide)
            T += _scatter_block(next(entries), y, y, square)
            T_mu += _scatter_block(next(entries), y, y, square)
            E += _scatter_block(next(entries), i, y, tall)
            S += _scatter_block(next(entries), i, y, tall)
            inverse_tangent, start = next(entries), body.kernel.body_step.dim
            pairs = [(a, b) for a in range(start, len(y)) for b in range(start, len(y))]
            update_entries |= {(y[a], y[b]): inverse_tangent[a, b] for a, b in pairs}
        enforced, enforced_twice = list(self.enforced), list(self.enforced_twice)
        P_eta = P_v @ S
        mu_eta = Y + Y_pull @ P_eta
        twist_eta = T + T_mu @ mu_eta
        d_dv1 = D_rows @ R_1 + D_1
        body_block = D + D_rows @ (R_v @ S) + _factored_product(products, D_rows, S)
        body_block += d_dv1 @ E + (d_dv1 @ S) @ twist_eta + D_pull @ P_eta + D_mu @ mu_eta
        blocks = [[body_block]]
        if enforced:
            blocks[0].append(D_rows @ R_lam[:, enforced])
            blocks.append([g_v[enforced, :] @ S, ca.SX(len(enforced), len(enforced))])
        if enforced_twice:
            P_gam, R_gam, H_v, H_1 = (
                P_gam[:, enforced_twice],
                R_gam[:, enforced_twice],
                H_v[enforced_twice, :],
                H_1[enforced_twice, :],
            )
            mu_gam = Y_pull @ P_gam
            twist_gam = T_mu @ mu_gam
            blocks[0].append(D_rows @ R_gam + (d_dv1 @ S) @ twist_gam + D_pull @ P_gam + D_mu @ mu_gam)
            blocks[1].append(ca.SX(len(enforced), len(enforced_twice)))
            hidden = H_v @ S + H_1 @ E + (H_1 @ S) @ twist_eta
            blocks.append([hidden, ca.SX(len(enforced_twice), len(enforced)), (H_1 @ S) @ twist_gam])
        jacobian = ca.blockcat(blocks)
        if not update_entries:
            return jacobian, None
        positions = list(update_entries)
        return jacobian, (ca.vertcat(*update_entries.values()), [i for i, _ in positions], [j for _, j in positions])

    def _body_arguments(
        self, body: BodyInstance, x: Expr, q: Expr, v: Expr, p: Expr, body_momenta: Expr, k: Expr, h: Expr
    ) -> list[Expr]:
        """Return the arguments of the kernel of a body."""
        i = list(body.frame.coordinates)
        body_momentum = body_momenta[body.angular_momentum_slice] if body.kernel.body_step.n_rot else ca.SX(0, 1)
        return [x[body.unknowns], q[i], v[i], p[i], body_momentum, *body.inertia(k[body.parameters]), h]

    def _scatter(self, n: int, vectors: list[Expr]) -> Expr:
        """Scatter coordinate vectors of the bodies into a vector of the system."""
        scattered = ca.SX.zeros(n)
        for body, vector in zip(self.bodies, vectors, strict=True):
            scattered[list(body.frame.coordinates)] = vector
        return scattered


def _serialize_kernels(*kernels: object) -> list[str]:
    """Serialize the functions of kernels."""
    functions = [f for k in kernels for f in ([k] if isinstance(k, ca.Function) else vars(k).values())]
    return [f.serialize() for f in functions if isinstance(f, ca.Function)]


def body_angular_momenta(system: System, q: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Return the body angular momenta from the momenta of the directors."""
    momenta = []
    for frame in system.frames:
        if not frame.directors:
            continue
        D, P = q[list(frame.directors)], p[list(frame.directors)]  # one row per director
        spatial = np.cross(D, P).sum(axis=0) if frame.dimension == 3 else D[:, 0] @ P[:, 1] - D[:, 1] @ P[:, 0]
        momenta.append(D @ spatial if frame.dimension == 3 else np.array([spatial]))
    return np.concatenate(momenta) if momenta else np.zeros(0)


def body_angular_momenta_expression(system: System, q: Expr, p: Expr) -> Expr:
    """Return the body angular momenta as an expression of symbols."""
    momenta = [ca.SX(0, 1)]
    for frame in system.frames:
        if not frame.directors:
            continue
        D, P = ([x[list(dofs)] for dofs in frame.directors] for x in (q, p))
        if frame.dimension == 3:
            spatial = sum((cross(d, f) for d, f in zip(D, P, strict=True)), ca.SX.zeros(3))
            momenta += [ca.dot(d, spatial) for d in D]
        else:
            momenta.append(D[0][0] * P[0][1] - D[0][1] * P[0][0] + D[1][0] * P[1][1] - D[1][1] * P[1][0])
    return ca.vertcat(*momenta)


def _unfactored_tangent(
    kernel: RigidBodyElementKernel, jacobians: Any, arguments: Any, dofs: list[int], products: list[Any]
) -> Expr:
    """Return the unfactored part of an element's tangent in v_m, and append the factored part to `products`."""
    if kernel.factored_tangent is None:
        return jacobians[0]
    factors, remainder = kernel.factored_tangent(*arguments)
    products += [(dofs, *product) for product in factors]
    return remainder


def _factored_product(products: list[Any], force_map: Expr, kinematic_jacobian: Expr) -> Expr:
    """Return the sum of ``contract U H V spread`` over all products, multiplied from the outside inwards."""
    total = ca.SX(force_map.size1(), kinematic_jacobian.size2())
    for dofs, U, H, V in products:
        total += (force_map[:, dofs] @ U) @ (H @ (V @ kinematic_jacobian[dofs, :]))
    return total


def _scatter_block(block: Any, rows: list[int], columns: list[int], shape: tuple[int, int]) -> Expr:
    """Return a matrix with the nonzeros of a block at its rows and columns."""
    block = ca.sparsify(block)
    i, j = block.sparsity().get_triplet()
    return ca.SX.triplet([rows[a] for a in i], [columns[b] for b in j], ca.SX(block.nz[:]), *shape)


def _column_slice(values: Expr, index: slice) -> Expr:
    """Return a slice of a column; an empty slice gets shape (0, 1), as shape (1, 0) would count as a row."""
    return values[index] if index.stop > index.start else ca.SX(0, 1)
