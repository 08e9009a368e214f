"""Semi-explicit (IMEX) step of Systems: expensive forces A once per step, cheap forces B implicitly.

Scheme (5) of S003 paper V, for the systems of chapter 4.2 of S003: rotating bodies, configuration-dependent mass
matrix, constraints with multipliers, and for every cheap force the evaluation point `beta` in the step. Unknowns are
mean velocities, restricted to those with implicit forces or constraints.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from livens.expressions.graph.divisions import one_division
from livens.expressions.layout import Layout
from livens.models.element import Element, ElementModel
from livens.models.found_contacts import lost_power
from livens.models.summed import dynamics
from livens.models.system import System
from livens.schemes.recipes.maps import Written, map_equations
from livens.schemes.recipes.twists import twists
from livens.schemes.step import Box, FlatEquations


@dataclass(frozen=True)
class Pushed:
    """Generalized force on u, its non-conservative part, power of time-dependent potentials, and dissipated power."""

    force: Any
    free: Any
    moving: Any
    lost: Any

    @property
    def flat(self) -> Any:
        return ca.densify(ca.vertcat(self.force, self.free, self.moving, self.lost))


class SplitForces:
    """Split of the forces of a system into expensive (explicit) and cheap (implicit) forces."""

    def __init__(self, system: System) -> None:
        self.system, self.twists = system, twists(system)
        self._functions: dict[ElementModel, ca.Function] = {}
        inner = {i for frame in system.frames for i in frame.constraints}
        #: Constraints with multipliers: all except the orthonormality of directors.
        self.constraints = tuple(i for i in range(system.m) if i not in inner)
        both = range(len(system.elements))
        self.expensive = tuple(i for i in both if system.elements[i].expensive and self._acts(i))
        self.cheap = tuple(i for i in both if not system.elements[i].expensive and self._acts(i))

    def _acts(self, number: int) -> bool:
        model = self.system.models[number]
        return not model.V.is_zero() or not model.R.is_zero() or model.F.nnz() > 0

    def _element(self, number: int) -> ca.Function:
        """Return force, non-conservative part, power of the potential and dissipated power of one element type."""
        model = self.system.models[number]
        if model not in self._functions:
            friction = ca.gradient(model.R, model.v)
            free = model.F - friction
            outputs = [free - ca.gradient(model.V, model.q), free]
            outputs += [ca.gradient(model.V, model.t), ca.dot(friction, model.v)]
            self._functions[model] = ca.Function(
                "pushed", [model.q, model.v, model.t, model.k], [ca.densify(x) for x in outputs]
            )
        return self._functions[model]

    def pushed(self, numbers: Sequence[int], q: Any, u: Any, t: Any, k: Any) -> Pushed:
        """Evaluate the forces of these elements at (q, u)."""
        system, n = self.system, self.system.n
        v = self.twists.lifted(q, u)
        force, free, moving, lost = ca.SX.zeros(n), ca.SX.zeros(n), ca.SX(0), ca.SX(0)
        for number in numbers:
            i, where = list(system.indices[number]), list(system.parameter_indices[number])
            one = self._element(number)(q[i], v[i], t, k[where])
            force[i] += one[0]
            free[i] += one[1]
            moving, lost = moving + one[2], lost + one[3]
        return Pushed(self.twists.contracted(q, force), self.twists.contracted(q, free), moving, lost)

    def felt(self, beta: float, held: Collection[int], own: bool = True) -> tuple[int, ...]:
        """Return the quasi-velocities that are solved implicitly.

        These have configuration- or velocity-dependent cheap forces, constraints, or a non-diagonal or variable mass.
        With ``uses_element_beta=False`` the element-wise values of beta are ignored.
        """
        system, found = self.system, {i for i, good in enumerate(self.twists.simple) if not good}
        touched: set[int] = set()
        for number in self.cheap:
            model, one = system.models[number], system.elements[number]
            force = model.F - ca.gradient(model.R, model.v) - ca.gradient(model.V, model.q)
            if (self.beta_of(one, beta) if own else beta) and ca.depends_on(force, ca.vertcat(model.q, model.v)):
                touched |= set(system.indices[number])
        for rows, index in zip(system.multiplier_slices, system.indices, strict=True):
            if any(i in held for i in range(rows.start, rows.stop)):
                touched |= set(index)
        return tuple(sorted(found | {j for i in touched for j in self.twists.of_coordinate[i]}))

    @staticmethod
    def beta_of(element: Element, beta: float) -> float:
        return beta if element.beta is None else element.beta

    def by_beta(self, beta: float) -> dict[float, list[int]]:
        """Return the cheap elements by evaluation point beta."""
        found: dict[float, list[int]] = {}
        for number in self.cheap:
            found.setdefault(self.beta_of(self.system.elements[number], beta), []).append(number)
        return found

    def constrained(self, held: Sequence[int], q: Any, t: Any, k: Any) -> tuple[Any, Any, Any]:
        """Return these constraints and their derivatives with respect to coordinates and time."""
        d, rows = dynamics(self.system), list(held)
        outputs = [d.g[rows], d.g_q[rows, :], ca.jacobian(d.g, d.t)[rows]]
        return ca.Function("g", [d.q, d.t, d.k], outputs)(q, t, k)


@functools.lru_cache(maxsize=32)
def split_forces(system: System) -> SplitForces:
    """Return the force split of a system, cached."""
    return SplitForces(system)


def memory_size(system: System) -> int:
    """Return the size of the cached A: forces or accelerations, non-conservative forces, two powers."""
    return 2 * twists(system).size + 2


@dataclass(frozen=True)
class Ahead:
    """Evaluation point of expensive forces: `alpha` h ahead, optionally with an extrapolated velocity."""

    alpha: float
    extrapolated: bool = False
    gyroscopic: bool = True

    def __call__(self, forces: SplitForces, q: Any, u: Any, change: Any, t: Any, h: Any, k: Any) -> Any:
        """Return A for a step of size h from (q, u), after a step that changed u by `change`.

        Entries with constant diagonal mass are accelerations.
        """
        there = forces.twists.moved(q, self.alpha * h * u) if self.alpha else q
        speed = u + self.alpha * change if self.extrapolated else u
        found = forces.pushed(forces.expensive, there, speed, t + self.alpha * h, k)
        push = forces.twists.accelerations(there, speed, found.force, k, self.gyroscopic)
        return ca.vertcat(push, found.flat[forces.twists.size :])

    def asked(self, forces: SplitForces, q: Any, u: Any, change: Any, t: Any, h: Any) -> Any:
        """Return the query point of an external force for a step: coordinates, velocities, and time."""
        there = forces.twists.moved(q, self.alpha * h * u) if self.alpha else q
        speed = u + self.alpha * change if self.extrapolated else u
        return ca.densify(ca.vertcat(there, forces.twists.lifted(there, speed), t + self.alpha * h))


#: Function of coordinates, velocities, time, size of the last step, unit of fictive time, and parameters.
Scale = Callable[[Any, Any, Any, Any, Any, Any], Any]


class SplitStep:
    """Step of scheme (5) of paper V for a whole system."""

    def __init__(
        self,
        system: System,
        ahead: Ahead,
        beta: float,
        kept: bool = True,
        dropped: Collection[int] = (),
        scale: Scale | None = None,
    ) -> None:
        self.system, self.ahead, self.beta, self.kept = system, ahead, beta, kept
        #: Size of the next step per unit of fictive time, for variable steps.
        self.scale = scale
        self.forces, self.twists = split_forces(system), twists(system)
        self.held = tuple(i for i in self.forces.constraints if i not in dropped)
        self.unknown = self.forces.felt(beta, self.held)

    def start(self, q: Any, v: Any, t: Any, h: Any, k: Any) -> Any:
        """Return A of the first step; the missing previous acceleration does not reduce the order."""
        u = self.twists.twist(q, v)
        return self.ahead(self.forces, q, u, ca.SX.zeros(self.twists.size), t, h, k)

    def equations(self) -> FlatEquations:
        n, box = self.system.n, self.system.box
        more = {"A": memory_size(self.system)} if self.kept else {}
        more |= {} if box is None else {"asked": 2 * n + 1, "box": n + box.accounts}
        more |= {} if self.scale is None else {"t": 1, "scale": 1}
        layout = self.system.layout.with_(**more)
        unknowns = Layout(mean_velocity=len(self.unknown), lam=len(self.held))
        found = solved_in_closed_form(layout, unknowns, self.system.parameter_count, self.write)
        if box is None:
            return found
        return dataclasses.replace(found, box=Box(box, layout["asked"].start, n, layout["box"].start))

    def _boxed(self, old: Any, A: Any, k: Any) -> Any:
        """Return A with the external force, which is applied at its query point."""
        if self.system.box is None:
            return A
        tw, n = self.twists, self.system.n
        there, speed = old.asked[:n], old.asked[n : 2 * n]
        force = tw.contracted(there, old.box[:n])
        push = tw.accelerations(there, tw.twist(there, speed), force, k, gyroscopic=False)
        return A + ca.vertcat(push, force, 0, lost_power(old.box[n:]))

    def write(self, old: Any, x: Any, h: Any, t: Any, k: Any) -> Written:
        f, tw, size = self.forces, self.twists, self.twists.size
        unit = h
        if self.scale is not None:
            h, t = unit * old.scale, old.t
        u0 = tw.twist(old.q, old.v)
        A = self._boxed(old, old.A, k) if self.kept else self.start(old.q, old.v, t, h, k)
        push = A[:size]
        # B and the constraints act on the implicit quasi-velocities; all others have A and constant forces only
        rough, own = ca.SX(u0), list(self.unknown)
        rough[own] = x.mean_velocity
        cheap = [self._cheap(numbers, b, old, u0, rough, t, h, k) for b, numbers in f.by_beta(self.beta).items()]
        total = sum((one[0] for one in cheap), push)
        u = u0 + h / 2 * total
        u[own] = x.mean_velocity
        reaction, closed, driven = self._held(old, x, u, t, h, k)
        rows = self._rows(old, u0, u, total, reaction, h, k)
        q = tw.straightened(tw.moved(old.q, h * u))
        u1 = u0 + h * total
        u1[own] = 2 * u[own] - u0[own]
        v = tw.lifted(q, u1)
        free = A[size : 2 * size] + sum((one[1].free for one in cheap), ca.SX.zeros(size))
        lost = A[2 * size + 1] + sum((one[1].lost for one in cheap), ca.SX(0))
        moving = A[2 * size] + sum((one[1].moving for one in cheap), ca.SX(0))
        new = vars(old) | dict(q=q, v=v, p=tw.momenta(q, v, k))
        new["supplied_energy"] += h * (ca.dot(free, u) + lost + moving + driven)
        new["dissipated_energy"] += h * lost
        multipliers = ca.SX.zeros(self.system.m)
        multipliers[list(self.held)] = x.lam
        new["multipliers"] = multipliers
        following = h
        if self.scale is not None:
            new |= dict(t=t + h, scale=self.scale(q, u1, t + h, h, unit, k))
            following = unit * new["scale"]
        if self.kept:
            new["A"] = self.ahead(f, q, u1, u1 - u0, t + h, following, k)
        if self.system.box is not None:
            new |= {"asked": self.ahead.asked(f, q, u1, u1 - u0, t + h, following), "box": ca.SX.zeros(old.box.numel())}
        guess = {"mean_velocity": u0[own], "lam": old.multipliers[list(self.held)]}
        return new, [*rows, closed], guess

    def _cheap(self, numbers: list[int], b: float, old: Any, u0: Any, u: Any, t: Any, h: Any, k: Any) -> Any:
        """Return ``B((1-b) z0 + b z1)`` of these elements, as accelerations for constant diagonal mass."""
        tw = self.twists
        there, speed = tw.moved(old.q, b * h * u), u0 + 2 * b * (u - u0)
        found = self.forces.pushed(numbers, there, speed, t + b * h, k)
        return tw.accelerations(there, speed, found.force, k, gyroscopic=False), found

    def _held(self, old: Any, x: Any, u: Any, t: Any, h: Any, k: Any) -> tuple[Any, Any, Any]:
        """Return ``-G(q_m)^T lam`` on u, the constraints at t + h, and the power of rheonomic constraints."""
        tw = self.twists
        if not self.held:
            return ca.SX.zeros(tw.size), ca.SX(0, 1), ca.SX(0)
        q_m = tw.moved(old.q, h / 2 * u)
        _, G, g_t = self.forces.constrained(self.held, q_m, t + h / 2, k)
        reaction = tw.contracted(q_m, -G.T @ x.lam)
        g, _, _ = self.forces.constrained(self.held, tw.moved(old.q, h * u), t + h, k)
        return tw.accelerations(q_m, u, reaction, k, gyroscopic=False), g / h, ca.dot(g_t, x.lam)

    def _rows(self, old: Any, u0: Any, u: Any, total: Any, reaction: Any, h: Any, k: Any) -> list[Any]:
        """Return the residual of the mean velocities: velocities for constant diagonal mass, else momenta."""
        tw = self.twists
        if not self.unknown:
            return []
        rows = u - u0 - h / 2 * (total + reaction)
        if not all(tw.simple):
            q_m, others = tw.moved(old.q, h / 2 * u), [i for i, good in enumerate(tw.simple) if not good]
            v_m, count = tw.lifted(q_m, u), len(tw.plain)
            change = tw.mass_matrix(q_m, v_m, k) @ (u - u0)[:count] - h / 2 * tw.inertial_force(q_m, v_m, k)
            rows[others] = (change - h / 2 * (total + reaction)[:count])[others]
        return [rows[list(self.unknown)]]


def at_start(system: System, ahead: Ahead, values: Mapping[str, Any], t: float, h: float, k: Any) -> dict[str, Any]:
    """Return the initial scheme state: A of the first step, and the external force at its query point."""
    A, asked = start_function(system, ahead)(values["q"], values["v"], t, h, k)
    found: dict[str, Any] = {"A": np.array(A).ravel()}
    if system.box is not None:
        n, at = system.n, np.array(asked).ravel()
        found |= {"asked": at, "box": system.box(at[:n], at[n : 2 * n], at[2 * n], k)}
    return found


def from_momenta(system: System, ahead: Ahead, q: Any, p: Any, t: Any, h: Any, k: Any) -> Any:
    """Return A of the first step as an expression of coordinates and momenta."""
    bodies = twists(system)
    return ahead(split_forces(system), q, bodies.of_momenta(q, p, k), ca.SX.zeros(bodies.size), t, h, k)


@functools.lru_cache(maxsize=32)
def start_function(system: System, ahead: Ahead) -> ca.Function:
    q, v, t, h = ca.SX.sym("q", system.n), ca.SX.sym("v", system.n), ca.SX.sym("t"), ca.SX.sym("h")
    k = ca.SX.sym("k", system.parameter_count)
    bodies, forces = twists(system), split_forces(system)
    u, none = bodies.twist(q, v), ca.SX.zeros(bodies.size)
    A = ahead(forces, q, u, none, t, h, k)
    return ca.Function("A", [q, v, t, h, k], [ca.densify(A), ahead.asked(forces, q, u, none, t, h)])


def solved_in_closed_form(
    layout: Layout, unknowns: Layout, parameter_count: int, write: Callable[[Any, Any, Any, Any, Any], Written]
) -> FlatEquations:
    """Return the step graph, solved in closed form if the residual is linear with a constant diagonal Jacobian.

    This applies to decoupled linear springs and dampers; the step is then explicit.
    """
    made = map_equations(layout, unknowns, parameter_count, write)
    n = made.size
    alone = np.array_equal(made.rows, made.columns) and len(made.rows) == n
    if not n or not alone or ca.depends_on(made.jacobian, made.x):
        return _lean(made)
    still = ca.substitute(made.residual, made.x, ca.SX.zeros(n))
    solution = -still / made.jacobian

    def explicit(old: Any, x: Any, h: Any, t: Any, k: Any) -> Written:
        z = ca.vertcat(*(vars(old)[name] for name in layout.sizes))
        c = ca.vertcat(h, t, k)
        found = ca.Function("x", [made.z, made.c], [solution])(z, c)
        end = ca.Function("end", made.arguments, [made.end])(found, z, c)
        return {name: end[layout[name]] for name in layout.sizes}, [], {}

    return _lean(map_equations(layout, Layout(), parameter_count, explicit))


def _lean(made: FlatEquations) -> FlatEquations:
    """Return the graph with common subexpressions of the final state, where A is evaluated, eliminated."""
    end = one_division(made.end_function)(*made.arguments)
    return dataclasses.replace(made, end=ca.cse(end))
