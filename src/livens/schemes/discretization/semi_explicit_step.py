"""Semi-explicit (IMEX) step of Systems: expensive forces A once per step, cheap forces B implicitly.

Scheme (5) of Modin 2009, paper V, for the systems of chapter 4.2 of Modin 2009: rotating bodies,
configuration-dependent mass matrix, constraints with multipliers, and for every cheap force
the evaluation point `beta` in the step. Unknowns are mean velocities, restricted to those
with implicit forces or constraints.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import casadi as ca
import numpy as np

from livens.expressions.graph.interpreter import common_subexpressions
from livens.expressions.graph.merge_divisions import merge_divisions
from livens.expressions.state_layout import Layout
from livens.models.contact_detection import dissipated_power
from livens.models.element import Element, ElementType
from livens.models.equations_of_motion import equations_of_motion
from livens.models.system import System
from livens.schemes.core.step_equations import ExternalForceSlot, StepGraph
from livens.schemes.discretization import free_rotation
from livens.schemes.discretization.phase_space_map import StepExpressions, map_step_graph
from livens.schemes.discretization.quasi_velocities import quasi_velocities
from livens.types import Expr, FloatArray


@dataclass(frozen=True)
class ForceTerms:
    """Generalized force on u, its non-conservative part, power of time-dependent potentials, and dissipated power."""

    force: Expr
    nonconservative: Any
    potential_power: Any
    dissipated_power: Any

    @property
    def stacked(self) -> Expr:
        return ca.densify(ca.vertcat(self.force, self.nonconservative, self.potential_power, self.dissipated_power))


class ForceSplit:
    """Split of the forces of a system into expensive (explicit) and cheap (implicit) forces."""

    def __init__(self, system: System) -> None:
        self.system, self.velocities = system, quasi_velocities(system)
        self._functions: dict[ElementType, ca.Function] = {}
        rigidity_constraints = {i for frame in system.frames for i in frame.constraints}
        #: Constraints with multipliers: all except the orthonormality of directors.
        self.constraints = tuple(i for i in range(system.m) if i not in rigidity_constraints)
        element_indices = range(len(system.elements))
        self.expensive = tuple(i for i in element_indices if system.elements[i].expensive and self._has_force(i))
        self.cheap = tuple(i for i in element_indices if not system.elements[i].expensive and self._has_force(i))

    def _has_force(self, index: int) -> bool:
        model = self.system.element_types[index]
        return not model.V.is_zero() or not model.R.is_zero() or model.F.nnz() > 0

    def _element_function(self, index: int) -> ca.Function:
        """Return force, non-conservative part, power of the potential and dissipated power of one element type."""
        model = self.system.element_types[index]
        if model not in self._functions:
            friction = ca.gradient(model.R, model.v)
            nonconservative = model.F - friction
            outputs = [nonconservative - ca.gradient(model.V, model.q), nonconservative]
            outputs += [ca.gradient(model.V, model.t), ca.dot(friction, model.v)]
            self._functions[model] = ca.Function(
                "pushed", [model.q, model.v, model.t, model.k], [ca.densify(x) for x in outputs]
            )
        return self._functions[model]

    def evaluate(self, elements: Sequence[int], q: Any, u: Expr, t: Any, k: Any) -> ForceTerms:
        """Evaluate the forces of these elements at (q, u)."""
        system, n = self.system, self.system.n
        v = self.velocities.to_qdot(q, u)
        force, nonconservative, potential_power, dissipated_power = ca.SX.zeros(n), ca.SX.zeros(n), ca.SX(0), ca.SX(0)
        for index in elements:
            i, parameter_dofs = list(system.element_dofs[index]), list(system.element_parameters[index])
            terms = self._element_function(index)(q[i], v[i], t, k[parameter_dofs])
            force[i] += terms[0]
            nonconservative[i] += terms[1]
            potential_power, dissipated_power = potential_power + terms[2], dissipated_power + terms[3]
        return ForceTerms(
            self.velocities.generalized_force(q, force),
            self.velocities.generalized_force(q, nonconservative),
            potential_power,
            dissipated_power,
        )

    def implicit_dofs(self, beta: float, enforced: Collection[int], uses_element_beta: bool = True) -> tuple[int, ...]:
        """Return the quasi-velocities that are solved implicitly.

        These have configuration- or velocity-dependent cheap forces, constraints, or a non-diagonal or variable mass.
        With ``uses_element_beta=False`` the element-wise values of beta are ignored.
        """
        system, coupled = (
            self.system,
            {
                i
                for i, is_constant_diagonal in enumerate(self.velocities.has_constant_diagonal_mass)
                if not is_constant_diagonal
            },
        )
        implicit_coordinates: set[int] = set()
        director_dofs = {i for frame in self.velocities.rotating_bodies for d in frame.directors for i in d}
        for i_element in self.cheap:
            model, element = system.element_types[i_element], system.elements[i_element]
            force = model.F - ca.gradient(model.R, model.v) - ca.gradient(model.V, model.q)
            dofs = system.element_dofs[i_element]
            if not (self.beta_of(element, beta) if uses_element_beta else beta):
                continue
            if ca.depends_on(force, ca.vertcat(model.q, model.v)):
                implicit_coordinates |= set(dofs)
            else:  # the torque of a constant force depends on the orientation
                implicit_coordinates |= {i for j, i in enumerate(dofs) if i in director_dofs and not force[j].is_zero()}
        for multipliers, index in zip(system.element_constraints, system.element_dofs, strict=True):
            if any(i in enforced for i in range(multipliers.start, multipliers.stop)):
                implicit_coordinates |= set(index)
        return tuple(sorted(coupled | {j for i in implicit_coordinates for j in self.velocities.dofs_of_coordinate[i]}))

    @staticmethod
    def beta_of(element: Element, beta: float) -> float:
        return beta if element.beta is None else element.beta

    def by_beta(self, beta: float) -> dict[float, list[int]]:
        """Return the cheap elements by evaluation point beta."""
        elements_by_beta: dict[float, list[int]] = {}
        for index in self.cheap:
            elements_by_beta.setdefault(self.beta_of(self.system.elements[index], beta), []).append(index)
        return elements_by_beta

    def constraint_terms(self, enforced: Sequence[int], q: Any, t: Any, k: Any) -> tuple[Any, Any, Any]:
        """Return these constraints and their derivatives with respect to coordinates and time."""
        d, rows = equations_of_motion(self.system), list(enforced)
        outputs = [d.g[rows], d.G_position[rows, :], ca.jacobian(d.g, d.t)[rows]]
        return ca.Function("g", [d.q, d.t, d.k], outputs)(q, t, k)


@functools.lru_cache(maxsize=32)
def force_split(system: System) -> ForceSplit:
    """Return the force split of a system, cached."""
    return ForceSplit(system)


def cached_force_size(system: System) -> int:
    """Return the size of the cached A: forces or accelerations, non-conservative forces, two powers."""
    return 2 * quasi_velocities(system).size + 2


@dataclass(frozen=True)
class ExplicitPoint:
    """Evaluation point of expensive forces: `alpha` h ahead, optionally with an extrapolated velocity."""

    alpha: float
    extrapolate_velocity: bool = False
    #: Bodies in space have torques in A, not angular accelerations.
    torques: bool = True

    def __call__(self, forces: ForceSplit, q: Any, u: Any, change: Any, t: Any, h: Any, k: Any) -> Expr:
        """Return A for a step of size h from (q, u), after a step that changed u by `change`.

        Entries with constant diagonal mass are accelerations; bodies in space have torques.
        """
        q_eval = forces.velocities.retract(q, self.alpha * h * u) if self.alpha else q
        u_eval = u + self.alpha * change if self.extrapolate_velocity else u
        terms = forces.evaluate(forces.expensive, q_eval, u_eval, t + self.alpha * h, k)
        tw = forces.velocities
        rates = (
            tw.explicit_rates(q_eval, terms.force, k)
            if self.torques
            else tw.accelerations(q_eval, u_eval, terms.force, k, gyroscopic=False)
        )
        return ca.vertcat(rates, terms.stacked[tw.size :])

    def query_point(self, forces: ForceSplit, q: Expr, u: Expr, change: Expr, t: Expr, h: Expr) -> Expr:
        """Return the query point of an external force for a step: coordinates, velocities, and time."""
        q_eval = forces.velocities.retract(q, self.alpha * h * u) if self.alpha else q
        u_eval = u + self.alpha * change if self.extrapolate_velocity else u
        return ca.densify(ca.vertcat(q_eval, forces.velocities.to_qdot(q_eval, u_eval), t + self.alpha * h))


#: Function of coordinates, velocities, time, size of the last step, unit of fictive time, and parameters.
ScalingFunction = Callable[[Any, Any, Any, Any, Any, Any], Any]


class SemiExplicitStep:
    """Step of scheme (5) of paper V for a whole system."""

    def __init__(
        self,
        system: System,
        explicit_point: ExplicitPoint,
        beta: float,
        caches_force: bool = True,
        removed_constraints: Collection[int] = (),
        scaling: ScalingFunction | None = None,
        isotropic: bool = False,
    ) -> None:
        #: Whether the moments of inertia of all bodies are equal.
        self.isotropic = isotropic
        self.system, self.explicit_point, self.beta, self.caches_force = system, explicit_point, beta, caches_force
        #: Size of the next step per unit of fictive time, for variable steps.
        self.scaling = scaling
        self.forces, self.velocities = force_split(system), quasi_velocities(system)
        self.enforced = tuple(i for i in self.forces.constraints if i not in removed_constraints)
        self.implicit_dofs = self.forces.implicit_dofs(beta, self.enforced)

    def initial_force(self, q: Expr, v: Expr, t: Expr, h: Expr, k: Expr) -> Expr:
        """Return A of the first step; the missing previous acceleration does not reduce the order."""
        u = self.velocities.from_qdot(q, v)
        return self.explicit_point(self.forces, q, u, ca.SX.zeros(self.velocities.size), t, h, k)

    def equations(self) -> StepGraph:
        n, external_force = self.system.n, self.system.external_force
        extra_state = {"A": cached_force_size(self.system)} if self.caches_force else {}
        extra_state |= {} if external_force is None else {"asked": 2 * n + 1, "box": n + external_force.n_energy_terms}
        extra_state |= {} if self.scaling is None else {"t": 1, "scale": 1}
        layout = self.system.layout.extended(**extra_state)
        unknowns = Layout(mean_velocity=len(self.implicit_dofs), lam=len(self.enforced))
        graph = solve_if_diagonal_linear(layout, unknowns, self.system.parameter_count, self.build_step)
        if external_force is None:
            return graph
        return dataclasses.replace(
            graph, external_force=ExternalForceSlot(external_force, layout["asked"].start, n, layout["box"].start)
        )

    def _add_external_force(self, old: SimpleNamespace, A: Expr, k: Expr) -> Expr:
        """Return A with the external force, which is applied at its query point."""
        if self.system.external_force is None:
            return A
        tw, n = self.velocities, self.system.n
        q_query = old.asked[:n]
        force = tw.generalized_force(q_query, old.box[:n])
        return A + ca.vertcat(tw.explicit_rates(q_query, force, k), force, 0, dissipated_power(old.box[n:]))

    def build_step(self, old: SimpleNamespace, x: SimpleNamespace, h: Expr, t: Expr, k: Expr) -> StepExpressions:
        f, tw, size = self.forces, self.velocities, self.velocities.size
        unit = h
        if self.scaling is not None:
            h, t = unit * old.scale, old.t
        u0 = tw.from_qdot(old.q, old.v)
        A = self._add_external_force(old, old.A, k) if self.caches_force else self.initial_force(old.q, old.v, t, h, k)
        explicit_acceleration = A[:size]
        # B and the constraints act on the implicit quasi-velocities; all others have A and constant forces only
        u_trial, implicit = ca.SX(u0), list(self.implicit_dofs)
        u_trial[implicit] = x.mean_velocity
        implicit_terms = [
            self._implicit_force(elements, b, old, u0, u_trial, t, h, k) for b, elements in f.by_beta(self.beta).items()
        ]
        acceleration = sum((term[0] for term in implicit_terms), explicit_acceleration)
        u1 = u0 + h * acceleration
        u_free = free_rotation.angular_velocities(tw, old.q, u0, h * acceleration, h, k, self.isotropic)
        for _, block in tw.spatial_blocks():
            u1[block] = u_free[block]
        u = (u0 + u1) / 2
        u[implicit] = x.mean_velocity
        u1[implicit] = 2 * u[implicit] - u0[implicit]
        reaction, constraint_residual, rheonomic_power = self._constraint_terms(old, x, u0, u, t, h, k)
        q = free_rotation.configuration(tw, old.q, u0, u, h, 1)
        residual = self._residual(old, u0, u, acceleration, reaction, q, h, k)
        q = tw.orthonormalize(ca.SX(q))
        v = tw.to_qdot(q, u1)
        nonconservative = A[size : 2 * size] + sum(
            (term[1].nonconservative for term in implicit_terms), ca.SX.zeros(size)
        )
        dissipated_power = A[2 * size + 1] + sum((term[1].dissipated_power for term in implicit_terms), ca.SX(0))
        potential_power = A[2 * size] + sum((term[1].potential_power for term in implicit_terms), ca.SX(0))
        new = vars(old) | dict(q=q, v=v, p=tw.momenta(q, v, k))
        new["supplied_energy"] += h * (
            ca.dot(nonconservative, u) + dissipated_power + potential_power + rheonomic_power
        )
        new["dissipated_energy"] += h * dissipated_power
        multipliers = ca.SX.zeros(self.system.m)
        multipliers[list(self.enforced)] = x.lam
        new["multipliers"] = multipliers
        next_h = h
        if self.scaling is not None:
            new |= dict(t=t + h, scale=self.scaling(q, u1, t + h, h, unit, k))
            next_h = unit * new["scale"]
        if self.caches_force:
            new["A"] = self.explicit_point(f, q, u1, u1 - u0, t + h, next_h, k)
        if self.system.external_force is not None:
            new |= {
                "asked": self.explicit_point.query_point(f, q, u1, u1 - u0, t + h, next_h),
                "box": ca.SX.zeros(old.box.numel()),
            }
        initial_guess = {"mean_velocity": u0[implicit], "lam": old.multipliers[list(self.enforced)]}
        return new, [*residual, constraint_residual], initial_guess

    def _implicit_force(
        self, elements: list[int], b: float, old: SimpleNamespace, u0: Expr, u: Expr, t: Expr, h: Expr, k: Expr
    ) -> tuple[Expr, ForceTerms]:
        """Return ``B((1-b) z0 + b z1)`` of these elements, as accelerations for constant diagonal mass."""
        tw = self.velocities
        q_eval, u_eval = free_rotation.configuration(tw, old.q, u0, u, h, b), u0 + 2 * b * (u - u0)
        terms = self.forces.evaluate(elements, q_eval, u_eval, t + b * h, k)
        return tw.explicit_rates(q_eval, terms.force, k), terms

    def _constraint_terms(
        self, old: SimpleNamespace, x: SimpleNamespace, u0: Expr, u: Expr, t: Expr, h: Expr, k: Expr
    ) -> tuple[Expr, Expr, Expr]:
        """Return ``-G(q_m)^T lam`` on u, the constraints at t + h, and the power of rheonomic constraints."""
        tw = self.velocities
        if not self.enforced:
            return ca.SX.zeros(tw.size), ca.SX(0, 1), ca.SX(0)
        q_m, q_1 = (free_rotation.configuration(tw, old.q, u0, u, h, b) for b in (0.5, 1))
        _, G, g_t = self.forces.constraint_terms(self.enforced, q_m, t + h / 2, k)
        reaction = tw.generalized_force(q_m, -G.T @ x.lam)
        g, _, _ = self.forces.constraint_terms(self.enforced, q_1, t + h, k)
        return tw.explicit_rates(q_m, reaction, k), g / h, ca.dot(g_t, x.lam)

    def _residual(
        self, old: SimpleNamespace, u0: Expr, u: Expr, acceleration: Expr, reaction: Expr, q_1: Any, h: Expr, k: Expr
    ) -> list[Expr]:
        """Return the residual of the mean velocities: velocities for constant diagonal mass, else momenta."""
        tw = self.velocities
        if not self.implicit_dofs:
            return []
        residual = u - u0 - h / 2 * (acceleration + reaction)
        momentum_residual = free_rotation.momentum_residual(tw, old.q, u0, q_1, u, h * (acceleration + reaction), k)
        for _, block in tw.spatial_blocks():
            residual[block] = momentum_residual[block]
        if not all(tw.has_constant_diagonal_mass):
            q_m, mass_coupled = (
                tw.retract(old.q, h / 2 * u),
                [i for i, is_constant_diagonal in enumerate(tw.has_constant_diagonal_mass) if not is_constant_diagonal],
            )
            v_m, n_translational = tw.to_qdot(q_m, u), len(tw.translational)
            momentum_increment = tw.mass_matrix(q_m, v_m, k) @ (u - u0)[:n_translational] - h / 2 * tw.inertial_force(
                q_m, v_m, k
            )
            residual[mass_coupled] = (momentum_increment - h / 2 * (acceleration + reaction)[:n_translational])[
                mass_coupled
            ]
        return [residual[list(self.implicit_dofs)]]


def initial_semi_explicit_state(
    system: System, explicit_point: ExplicitPoint, values: Mapping[str, FloatArray], t: float, h: float, k: FloatArray
) -> dict[str, FloatArray]:
    """Return the initial scheme state: A of the first step, and the external force at its query point."""
    A, query = initial_force_function(system, explicit_point)(values["q"], values["v"], t, h, k)
    scheme_state: dict[str, Any] = {"A": np.array(A).ravel()}
    if system.external_force is not None:
        n, query_array = system.n, np.array(query).ravel()
        scheme_state |= {
            "asked": query_array,
            "box": system.external_force(query_array[:n], query_array[n : 2 * n], query_array[2 * n], k),
        }
    return scheme_state


def explicit_force_of_momenta(
    system: System, explicit_point: ExplicitPoint, q: Any, p: Any, t: Any, h: Any, k: Any
) -> Expr:
    """Return A of the first step as an expression of coordinates and momenta."""
    velocities = quasi_velocities(system)
    return explicit_point(
        force_split(system), q, velocities.from_momenta(q, p, k), ca.SX.zeros(velocities.size), t, h, k
    )


@functools.lru_cache(maxsize=32)
def initial_force_function(system: System, explicit_point: ExplicitPoint) -> ca.Function:
    q, v, t, h = ca.SX.sym("q", system.n), ca.SX.sym("v", system.n), ca.SX.sym("t"), ca.SX.sym("h")
    k = ca.SX.sym("k", system.parameter_count)
    velocities, forces = quasi_velocities(system), force_split(system)
    u, zero_increment = velocities.from_qdot(q, v), ca.SX.zeros(velocities.size)
    A = explicit_point(forces, q, u, zero_increment, t, h, k)
    return ca.Function(
        "A", [q, v, t, h, k], [ca.densify(A), explicit_point.query_point(forces, q, u, zero_increment, t, h)]
    )


def solve_if_diagonal_linear(
    layout: Layout,
    unknowns: Layout,
    parameter_count: int,
    build_step: Callable[[Any, Any, Any, Any, Any], StepExpressions],
) -> StepGraph:
    """Return the step graph, solved in closed form if the residual is linear with a constant diagonal Jacobian.

    This applies to decoupled linear springs and dampers; the step is then explicit.
    """
    graph = map_step_graph(layout, unknowns, parameter_count, build_step)
    n = graph.size
    is_diagonal = np.array_equal(graph.jac_rows, graph.jac_cols) and len(graph.jac_rows) == n
    if not n or not is_diagonal or ca.depends_on(graph.jac_values, graph.x):
        return _simplified(graph)
    residual_at_zero = ca.substitute(graph.residual, graph.x, ca.SX.zeros(n))
    solution = -residual_at_zero / graph.jac_values

    def build_explicit_step(old: SimpleNamespace, x: SimpleNamespace, h: Expr, t: Expr, k: Expr) -> StepExpressions:
        z = ca.vertcat(*(vars(old)[name] for name in layout.sizes))
        c = ca.vertcat(h, t, k)
        x_solution = ca.Function("x", [graph.z, graph.c], [solution])(z, c)
        final_state = ca.Function("end", graph.arguments, [graph.final_state])(x_solution, z, c)
        return {name: final_state[layout[name]] for name in layout.sizes}, [], {}

    return _simplified(map_step_graph(layout, Layout(), parameter_count, build_explicit_step))


def _simplified(graph: StepGraph) -> StepGraph:
    """Return the graph with common subexpressions of the final state, where A is evaluated, eliminated."""
    final_state = merge_divisions(graph.final_state_function)(*graph.arguments)
    return dataclasses.replace(graph, final_state=common_subexpressions(final_state))
