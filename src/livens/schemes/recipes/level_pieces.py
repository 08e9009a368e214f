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

from livens.expressions.layout import Layout
from livens.models.frames import mass_and_euler
from livens.schemes.recipes.element_pieces import ledger
from livens.schemes.recipes.frame_bodies import BodyInertia, BodyRecipe, BodyState, GGLBody, LieBody, Motion
from livens.schemes.recipes.frame_equations import SPINS, FrameEquations
from livens.schemes.recipes.frame_kernels import BodyKernel
from livens.schemes.recipes.frame_pieces import (
    Attachment,
    Bodies,
    attachments,
    command_places,
    constraint_memory,
    held_commands,
    shown_multipliers,
    with_commands,
)
from livens.schemes.recipes.pieces import Local, Piece, Pieces, carried_constraints, piece


def unknowns_with_twists(equations: FrameEquations) -> Layout:
    """Return the layout of the unknowns, including the twists of all bodies at t + h."""
    sizes = equations.unknowns.sizes
    return Layout(bodies=sizes["bodies"], twists=sizes["bodies"], lam=sizes["lam"], gam=sizes["gam"])


def level_pieces(equations: FrameEquations) -> Pieces:
    """Return the assembly plan of the step equations."""
    made = _Levels(equations)
    found = [*made.bodies(), *made.elements(), ledger(equations.layout)]
    if equations.kept:
        found.append(shown_multipliers(equations, made.unknowns))
    if equations.system.controls:
        found.append(held_commands(equations.layout))
    unknowns = made.unknowns
    body = np.full(unknowns.size, -1)
    for number, place in enumerate(equations.bodies):
        body[place.unknowns] = number
        body[unknowns["twists"]][place.unknowns] = number
    return Pieces(
        layout=equations.layout,
        unknowns=unknowns,
        pieces=tuple(found),
        kinds=tuple(unknowns.sizes.values()),
        row_names=made.row_names,
        multiplier=np.arange(unknowns.size) >= unknowns["lam"].start,
        body=body,
        guess=made.guess,
        memory=made.memory,
        remember=lambda z, c: constraint_memory(equations, made.memory, z, c),
    )


class _Levels:
    """Batches of the GGL equations, with the twists at t + h as unknowns."""

    def __init__(self, equations: FrameEquations) -> None:
        self.equations, self.unknowns = equations, unknowns_with_twists(equations)
        self._bodies = Bodies(equations)
        #: Rounding errors of positions, and constraint residuals.
        self.memory = Layout(low=equations.system.n, gap=len(equations.kept))
        number_of = {number: i for i, number in enumerate(equations.kept)}
        self._twice = {number_of[number]: i for i, number in enumerate(equations.twice)}

    def row_names(self) -> tuple[str, ...]:
        names, count = self.equations.row_names, self.unknowns.sizes["bodies"]
        relations = tuple(f"velocity at the end of the step in the {name}" for name in names[:count])
        return (*relations, *names)

    def guess(self, z: np.ndarray, c: np.ndarray, residual: Any) -> np.ndarray:
        plain, x = self._bodies.guess(z, c, residual), np.zeros(self.unknowns.size)
        of_bodies, of_joints = self.equations.unknowns["bodies"], self.equations.unknowns["lam"]
        x[self.unknowns["bodies"]] = x[self.unknowns["twists"]] = plain[of_bodies]
        x[self.unknowns["lam"]] = plain[of_joints]
        return x

    def _places(self, number: int) -> list[int]:
        """Return the indices of the unknowns of a body: mean velocities of the step, then velocities at t + h."""
        own = self.equations.bodies[number].unknowns
        return [*range(own.start, own.stop), *(self.unknowns["twists"].start + i for i in range(own.start, own.stop))]

    # -- bodies -------------------------------------------------------------------------------------------------------
    def bodies(self) -> list[Piece]:
        return [self._body(kernel, numbers) for (kernel, _), numbers in self._bodies.kinds.items()]

    def _body(self, kernel: BodyKernel, numbers: list[int]) -> Piece:
        equations, layout, bodies = self.equations, self.equations.layout, self._bodies
        recipe, first = kernel.recipe, equations.bodies[numbers[0]]
        assert isinstance(recipe, LieBody)
        n, turning = _length(recipe), recipe.turning
        coordinates = bodies.table(numbers, lambda body: body.frame.coordinates)
        k = bodies.table(numbers, lambda body: body.parameters)
        parts = [layout[name].start + coordinates for name in ("q", "v", "p")]
        if turning:
            spins = bodies.table(numbers, lambda body: range(body.spin.start, body.spin.stop))
            parts.append(layout[SPINS].start + spins)
        x = np.array([self._places(number) for number in numbers], dtype=np.int64)
        local = Local.of(2 * recipe.size, 3 * n + turning, 0, k.shape[1])
        q, v, p = local.z[:n], local.z[n : 2 * n], local.z[2 * n : 3 * n]
        old = BodyState(q, v, p, local.z[3 * n :] if turning else ca.SX(0, 1))
        inertia = BodyInertia(*mass_and_euler(equations.system, first.frame)(local.k))
        motion, twist = recipe.moved(local.x[: recipe.size], q, local.h), local.x[recipe.size :]
        momentum, spin = inertia.mass * twist[: recipe.d], _spin(recipe, motion, twist, inertia)
        relation = 2 * inertia.mass * motion.u - p[: recipe.d] - momentum
        if turning:
            relation = ca.vertcat(relation, 2 * recipe.spin_of(motion, inertia) - old.spin - spin)
        none, still = ca.SX.zeros(n), ca.SX.zeros(turning)
        balance = recipe.balanced(motion, old, none, momentum + p[: recipe.d], spin + old.spin, still, local.h)
        v1 = recipe.lifted(twist, motion)
        ends = [(v1, parts[1]), (ca.vertcat(momentum, recipe.momenta(v1, inertia)[recipe.d :]), parts[2])]
        if turning:
            ends.append((spin, parts[3]))
        sums = [(local.h * motion.rate, parts[0], coordinates)]
        rows = ca.vertcat(relation, balance)
        places = {"x": x, "z": np.concatenate(parts, axis=1), "k": k}
        found, jacobian = _shared(rows, local)
        return piece("body", local, found, places, None, jacobian, ends, sums=sums)

    # -- elements -----------------------------------------------------------------------------------------------------
    def elements(self) -> list[Piece]:
        found = [self._element(key, own) for key, own in attachments(self.equations, self._bodies).items()]
        return [p for p in found if p.rows.numel() or p.ends.numel()]

    def _element(self, key: Attachment, members: list[Any]) -> Piece:
        kernel, role, place, recipes, kept, commanded = key
        equations, layout, count, n = self.equations, self.equations.layout, len(members), len(role)
        chosen = [i for i, is_kept in enumerate(kept) if is_kept]
        twice = [i for i, number in zip(chosen, members[0][2], strict=True) if number in self._twice]
        starts = np.cumsum([0, *(2 * recipe.size for recipe in recipes)]).tolist()
        seen = _all_directors(recipes, role, place)
        m, size = len(chosen), starts[-1] + len(chosen) + len(twice)
        local = Local.of(size, 2 * len(seen) + len(commanded), m, len(members[0][0].parameters))
        h, k = local.h, with_commands(local, commanded)
        lam, gam = ca.SX.zeros(len(kept)), ca.SX.zeros(len(kept))
        for place_in, i in enumerate(chosen):
            lam[i] = local.x[starts[-1] + place_in]
        for place_in, i in enumerate(twice):
            gam[i] = local.x[starts[-1] + m + place_in]
        attached = [
            _Attached(recipe, local.x[starts[i] : starts[i + 1]], _entries(i, seen), local, len(seen))
            for i, recipe in enumerate(recipes)
        ]
        inside = [[(i, place[i]) for i in range(n) if role[i] == number] for number in range(len(recipes))]
        q, v, v_m, v1 = local.z[:n], local.z[len(seen) : len(seen) + n], ca.SX.zeros(n), ca.SX.zeros(n)
        for body, own in zip(attached, inside, strict=True):
            for i, j in own:
                v_m[i], v1[i] = body.motion.rate[j], body.v1[j]
        none = ca.SX(0, 1)
        forces, constraints, work = kernel.share(v_m, lam if kept else none, q, h, local.t, k)
        pull, hidden = ca.SX.zeros(n), none
        if kernel.m:
            pull = kernel.pull(v_m, gam, q, h, local.t, k)
            bent, hidden, moved = kernel.hidden(v_m, gam, q, v, v1, h, local.t, k)
            forces, work = forces + bent, ca.vertcat(work[0] + moved, work[1])
        rows = [body.pushed(own, forces, pull, h) for body, own in zip(attached, inside, strict=True)]
        gaps = self.memory["gap"].start + np.array([numbers for _, _, numbers in members], dtype=np.int64)
        gaps, plain, keeps = gaps.reshape(count, m), None, list[Any]()
        if m:
            at = q, h * v_m, h, local.t, k
            closed, left, remembered = carried_constraints(kernel.model, constraints, chosen, local.m, at, commanded)
            on_velocity = [hidden[twice]] if twice else []
            plain = ca.densify(ca.vertcat(*rows, constraints[chosen], *on_velocity))
            rows += [closed, *on_velocity]
            keeps = [(left, gaps[:, remembered])]
        coordinates = np.array(
            [[equations.bodies[roles[r]].frame.coordinates[j] for r, j in seen] for _, roles, _ in members],
            dtype=np.int64,
        )
        z = [layout["q"].start + coordinates, layout["v"].start + coordinates]
        places = {
            "x": np.array([self._unknowns_of(roles, numbers) for _, roles, numbers in members], dtype=np.int64),
            "z": np.concatenate([*z, command_places(equations, commanded, members)], axis=1),
            "k": np.array([e.parameters for e, _, _ in members], dtype=np.int64).reshape(count, -1),
            "m": gaps,
        }
        ledgers = np.tile([layout["supplied_energy"].start, layout["dissipated_energy"].start], (count, 1))
        found, jacobian = _shared(ca.vertcat(*rows), local)
        return piece("element", local, found, places, None, jacobian, [(work, ledgers)], keeps, plain=plain)

    def _unknowns_of(self, roles: list[int], multipliers: list[int]) -> list[int]:
        lam, gam = self.unknowns["lam"].start, self.unknowns["gam"].start
        hidden = [gam + self._twice[i] for i in multipliers if i in self._twice]
        return [*(i for body in roles for i in self._places(body)), *(lam + i for i in multipliers), *hidden]


def _shared(rows: Any, local: Local) -> tuple[Any, Any]:
    """Return residual and Jacobian after common-subexpression elimination."""
    found = ca.cse([ca.densify(rows), ca.sparsify(ca.jacobian(rows, local.x))])
    return found[0], found[1]


def _all_directors(
    recipes: tuple[BodyRecipe, ...], role: tuple[int, ...], place: tuple[int, ...]
) -> list[tuple[int, int]]:
    """Return an element's coordinates as (body, index in the body), completed by all directors of rotating bodies.

    A GGL correction of one director changes the angular momentum, which depends on all directors.
    """
    seen = list(zip(role, place, strict=True))
    turned = {body for body, j in seen if j >= recipes[body].d}
    others = ((body, j) for body in sorted(turned) for j in range(recipes[body].d, _length(recipes[body])))
    return seen + [entry for entry in others if entry not in seen]


def _length(recipe: BodyRecipe) -> int:
    """Return the number of coordinates of a body."""
    return recipe.d * (1 + recipe.count)


def _entries(number: int, seen: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the dofs of a body among the dofs of an element, as (index in the element, index in the body)."""
    return [(i, j) for i, (body, j) in enumerate(seen) if body == number]


def _spin(recipe: LieBody, motion: Motion, twist: Any, inertia: BodyInertia) -> Any:
    """Return the body angular momentum of the angular velocity at t + h."""
    if not recipe.count:
        return ca.SX(0, 1)
    trace, omega = ca.trace(inertia.euler), twist[recipe.d :]
    if recipe.d == 2:
        return trace * omega
    return (trace * ca.SX.eye(3) - inertia.euler) @ (ca.horzcat(*motion.end).T @ omega)


class _Attached:
    """Body of an element: kinematics from the element's dofs; directors that the element does not use are zero."""

    def __init__(self, recipe: Any, x: Any, entries: list[tuple[int, int]], local: Local, seen: int) -> None:
        assert isinstance(recipe, GGLBody)
        self.recipe, n = recipe, _length(recipe)
        self.q, self.v = ca.SX.zeros(n), ca.SX.zeros(n)
        for i, j in entries:
            self.q[j], self.v[j] = local.z[i], local.z[seen + i]
        self.motion = recipe.moved(x[: recipe.size], self.q, local.h)
        self.v1 = recipe.lifted(x[recipe.size :], self.motion)

    def pushed(self, own: list[tuple[int, int]], forces: Any, pull: Any, h: Any) -> Any:
        """Return the contribution of an element to the equations of the body: GGL corrections, forces and torques."""
        recipe, n = self.recipe, self.q.numel()
        force, drawn = ca.SX.zeros(n), ca.SX.zeros(n)
        for i, j in own:
            force[j], drawn[j] = forces[i], pull[i]
        of_centre, of_spin = recipe.drawn(self.motion, drawn, h)
        balance = force[: recipe.d]
        if recipe.count:
            mean = (self.v + self.v1) / 2
            torque = recipe.moment(self.motion.mid, recipe.parts(force)[1:])
            torque += h * recipe.moment(recipe.parts(mean)[1:], recipe.parts(drawn)[1:])
            balance = ca.vertcat(balance, torque)
        return ca.vertcat(-2 * of_centre, -2 * of_spin, balance)
