"""Assembly plan of rigid bodies: body batches (inertia) and element batches in body unknowns.

The kernel of an element maps the unknowns of its bodies to midpoint velocities of the directors, and the forces on the
directors to forces and torques on the bodies. No data is stored for directors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

from livens.expressions.layout import Layout
from livens.models.frames import mass_and_euler
from livens.schemes.recipes.element_pieces import ledger
from livens.schemes.recipes.frame_bodies import BodyInertia, BodyRecipe, BodyState, LieBody
from livens.schemes.recipes.frame_equations import SPINS, FrameEquations
from livens.schemes.recipes.frame_kernels import BodyKernel, FrameKernel
from livens.schemes.recipes.pieces import (
    Local,
    Piece,
    Pieces,
    carried_constraints,
    constraint_values,
    mapped,
    piece,
    symbols,
)


def frame_pieces(equations: FrameEquations) -> Pieces:
    """Return the assembly plan of the step equations."""
    bodies = Bodies(equations)
    found = [*bodies.pieces(), *_elements(equations, bodies), ledger(equations.layout)]
    if equations.kept:
        found.append(shown_multipliers(equations, equations.unknowns))
    if equations.system.controls:
        found.append(held_commands(equations.layout))
    size, multipliers = equations.unknowns.size, len(equations.kept)
    body = np.full(size, -1)
    for number, place in enumerate(equations.bodies):
        body[place.unknowns] = number
    return Pieces(
        layout=equations.layout,
        unknowns=equations.unknowns,
        pieces=tuple(found),
        kinds=tuple(equations.unknowns.sizes.values()),
        row_names=lambda: equations.row_names,
        multiplier=np.arange(size) >= size - multipliers,
        body=body,
        guess=bodies.guess,
        memory=bodies.memory,
        remember=lambda z, c: constraint_memory(equations, bodies.memory, z, c),
    )


def constraint_memory(equations: FrameEquations, memory: Layout, z: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Return the compensation before the first step: constraint residuals of the initial positions."""
    found, q, k = np.zeros(memory.size), z[equations.layout["q"]], c[2:]
    number = np.full(equations.system.m, -1)
    number[list(equations.kept)] = memory["gap"].start + np.arange(len(equations.kept))
    groups: dict[FrameKernel, list[Any]] = {}
    for e in equations.elements:
        if e.kernel.m:
            groups.setdefault(e.kernel, []).append(e)
    for kernel, members in groups.items():
        coordinates = np.array([e.coordinates for e in members])
        parameters = np.array([e.parameters for e in members], dtype=np.int64).reshape(len(members), -1)
        values = constraint_values(kernel.model, q[coordinates], float(c[1]), k[parameters])
        places = number[np.array([range(e.constraints.start, e.constraints.stop) for e in members])]
        found[places[places >= 0]] = values[places >= 0]
    return found


class Bodies:
    """Bodies of a system by body type, with index tables."""

    def __init__(self, equations: FrameEquations) -> None:
        self.equations = equations
        #: Body index of every coordinate, and index within the body.
        self.body_of = np.full(equations.system.n, -1)
        self.place_in = np.full(equations.system.n, -1)
        for number, place in enumerate(equations.bodies):
            coordinates = list(place.frame.coordinates)
            self.body_of[coordinates] = number
            self.place_in[coordinates] = np.arange(len(coordinates))
        #: Body indices by (body kernel, element type).
        self.kinds: dict[tuple[Any, Any], list[int]] = {}
        for number, place in enumerate(equations.bodies):
            key = place.kernel, equations.system.models[place.frame.element]
            self.kinds.setdefault(key, []).append(number)
        #: Compensation: rounding errors of positions and momenta, and constraint residuals.
        self.memory = Layout(low=equations.system.n, push=equations.unknowns["bodies"].stop, gap=len(equations.kept))

    def table(self, numbers: list[int], what: Callable[[Any], Any]) -> np.ndarray:
        rows = [list(what(self.equations.bodies[i])) for i in numbers]
        return np.array(rows, dtype=np.int64).reshape(len(rows), -1)

    def pieces(self) -> list[Piece]:
        return [self._kinetic(kernel, numbers) for (kernel, _), numbers in self.kinds.items()]

    def _kinetic(self, kernel: BodyKernel, numbers: list[int]) -> Piece:
        """Return the batch of one body type: inertia terms of the momentum balance, and final state."""
        equations, recipe = self.equations, kernel.recipe
        layout, first = equations.layout, equations.bodies[numbers[0]]
        n, turning = recipe.d * (1 + recipe.count), recipe.turning if SPINS in equations.layout else 0
        coordinates = self.table(numbers, lambda body: body.frame.coordinates)
        x = self.table(numbers, lambda body: range(body.unknowns.start, body.unknowns.stop))
        k = self.table(numbers, lambda body: body.parameters)
        parts = [layout[name].start + coordinates for name in ("q", "v", "p")]
        if turning:
            spins = self.table(numbers, lambda body: range(body.spin.start, body.spin.stop))
            parts.append(layout[SPINS].start + spins)
        local = Local.of(recipe.size, 3 * n + turning, 0, k.shape[1])
        q, v, p = local.z[:n], local.z[n : 2 * n], local.z[2 * n : 3 * n]
        spin = local.z[3 * n :] if turning else ca.SX.zeros(recipe.turning)
        mass, euler = mass_and_euler(equations.system, first.frame)(local.k)
        state = [local.x, q, v, p, spin, mass, euler, local.h]
        none = ca.SX.zeros(n)
        ends = kernel.end(*state, none)
        own, _, _, turn = kernel.slopes(*state, none)
        y = symbols("y", recipe.size)
        # directors use compensated summation like centres of mass, which preserves their orthonormality
        sums = [(local.h * kernel.rate(*state), parts[0], coordinates)]
        added, impulse = [*zip(ends[1:3], parts[1:3], strict=True)], None
        if type(recipe) is LieBody:
            impulse = symbols("i", recipe.size)
            motion = recipe.moved(local.x, q, local.h)
            of_centre, of_spin = recipe.pushed(motion, impulse, BodyInertia(mass, euler), local.h)
            lows = self.memory["push"].start + x
            sums.append((of_centre, parts[2][:, : recipe.d], lows[:, : recipe.d]))
            if turning:
                sums.append((of_spin, parts[3], lows[:, recipe.d :]))
            added = [(ends[1], parts[1]), (ends[2][recipe.d :], parts[2][:, recipe.d :])]
        elif turning:  # body steps with additional momentum terms are summed without compensation
            added.append((ends[3], parts[3]))
        rows, jacobian = ca.cse([kernel.balance(*state, none, none), own])
        return piece(
            "body", local, rows, {"x": x, "z": np.concatenate(parts, axis=1), "k": k}, None, jacobian, added,
            turn=(y, turn @ y) if recipe.turning else None, sums=sums, impulse=impulse,
        )  # fmt: skip

    def guess(self, z: np.ndarray, c: np.ndarray, residual: Any) -> np.ndarray:
        equations, layout = self.equations, self.equations.layout
        x = np.zeros(equations.unknowns.size)
        q, v = z[layout["q"]], z[layout["v"]]
        for (kernel, _), numbers in self.kinds.items():
            coordinates = self.table(numbers, lambda body: body.frame.coordinates)
            places = self.table(numbers, lambda body: range(body.unknowns.start, body.unknowns.stop))
            (values,) = mapped(kernel.guess, len(numbers), q[coordinates].T, v[coordinates].T)
            x[places] = values.T
        if equations.kept:
            x[equations.unknowns["lam"]] = z[layout["multipliers"]][list(equations.kept)]
        return x


#: Connectivity signature of an element: kernel, body slot and index in the body of each coordinate, body steps, mask of
#: the enforced constraints, indices of the controlled parameters.
Attachment = tuple[
    FrameKernel, tuple[int, ...], tuple[int, ...], tuple[BodyRecipe, ...], tuple[bool, ...], tuple[int, ...]
]


def attachments(equations: FrameEquations, bodies: Bodies) -> dict[Attachment, list[Any]]:
    """Return the elements by connectivity signature, each with its bodies and multipliers."""
    groups: dict[Attachment, list[Any]] = {}
    multiplier_of = {number: i for i, number in enumerate(equations.kept)}
    commands = set(equations.system.controls)
    for e in equations.elements:
        of = bodies.body_of[e.coordinates].tolist()
        roles = list(dict.fromkeys(of))
        constraints = [multiplier_of.get(i, -1) for i in range(e.constraints.start, e.constraints.stop)]
        key = (
            e.kernel,
            tuple(roles.index(b) for b in of),
            tuple(bodies.place_in[e.coordinates].tolist()),
            tuple(equations.bodies[b].kernel.recipe for b in roles),
            tuple(i >= 0 for i in constraints),
            tuple(j for j, place in enumerate(e.parameters) if place in commands),
        )
        groups.setdefault(key, []).append((e, roles, [i for i in constraints if i >= 0]))
    return groups


def _elements(equations: FrameEquations, bodies: Bodies) -> list[Piece]:
    """Return one batch per element type and connectivity."""
    groups = attachments(equations, bodies)
    found = [_attached(equations, *key, own, bodies.memory) for key, own in groups.items()]
    return [p for p in found if p.rows.numel() or p.ends.numel()]


def _attached(
    equations: FrameEquations,
    kernel: FrameKernel,
    role: tuple[int, ...],
    place: tuple[int, ...],
    recipes: tuple[BodyRecipe, ...],
    kept: tuple[bool, ...],
    commanded: tuple[int, ...],
    members: list[Any],
    memory: Layout,
) -> Piece:
    layout, unknowns = equations.layout, equations.unknowns
    count, n, m = len(members), len(role), sum(kept)
    starts = np.cumsum([0, *(recipe.size for recipe in recipes)]).tolist()
    seen = whole_directors(recipes, role, place)
    local = Local.of(starts[-1] + m, len(seen) + len(commanded), m, len(members[0][0].parameters))
    q, h, k = local.z[:n], local.h, with_commands(local, commanded)
    y = [local.x[starts[i] : starts[i + 1]] for i in range(len(recipes))]
    lam = ca.SX.zeros(len(kept))
    if m:
        lam[[i for i, is_kept in enumerate(kept) if is_kept]] = local.x[starts[-1] :]
    gaps = memory["gap"].start + np.array([multipliers for _, _, multipliers in members], dtype=np.int64)
    gaps = gaps.reshape(count, m)
    v_m, contract, spread, bend = _kinematics(recipes, role, place, seen, y, local.z, h)
    arguments = v_m, lam if kept else ca.SX(0, 1), q, h, local.t, k
    forces, constraints, work = kernel.share(*arguments)
    _, by_lam, of_g = kernel.slopes(*arguments)
    chosen = [i for i, is_kept in enumerate(kept) if is_kept]
    corner = ca.SX(m, m)
    jacobian = _turned_slopes(kernel, arguments, contract, spread) + bend(forces)
    rows = contract @ forces
    plain, keeps = None, []
    if m:
        jacobian = ca.blockcat([[jacobian, contract @ by_lam[:, chosen]], [of_g[chosen, :] @ spread, corner]])
        at = q, h * v_m, h, local.t, k
        closed, left, remembered = carried_constraints(kernel.model, constraints, chosen, local.m, at, commanded)
        plain = ca.densify(ca.vertcat(rows, constraints[chosen]))
        rows = ca.vertcat(rows, closed)
        keeps = [(left, gaps[:, remembered])]
    x = np.array(
        [
            [j for b in roles for j in range(equations.bodies[b].unknowns.start, equations.bodies[b].unknowns.stop)]
            + ([unknowns["lam"].start + i for i in multipliers] if m else [])
            for _, roles, multipliers in members
        ],
        dtype=np.int64,
    )
    z = layout["q"].start + np.array(
        [[equations.bodies[roles[r]].frame.coordinates[j] for r, j in seen] for _, roles, _ in members], dtype=np.int64
    )
    z = np.concatenate([z, command_places(equations, commanded, members)], axis=1)
    parameters = np.array([e.parameters for e, _, _ in members], dtype=np.int64).reshape(count, -1)
    ledgers = np.tile([layout["supplied_energy"].start, layout["dissipated_energy"].start], (count, 1))
    rows, jacobian = ca.cse([rows, ca.sparsify(jacobian)])
    return piece(
        "element", local, rows, {"x": x, "z": z, "k": parameters, "m": gaps}, None, jacobian, [(work, ledgers)], keeps,
        force=True, plain=plain,
    )  # fmt: skip


def _turned_slopes(kernel: FrameKernel, arguments: Any, contract: Any, spread: Any) -> Any:
    """Return the tangent of the forces on bodies at constant lever arms, using the factored form where available."""
    if kernel.chain is None:
        return contract @ kernel.slopes(*arguments)[0] @ spread
    products, rest = kernel.chain(*arguments)
    found = contract @ rest @ spread
    for U, H, V in products:
        found += ((contract @ U) @ H) @ (V @ spread)
    return found


def whole_directors(
    recipes: tuple[BodyRecipe, ...], role: tuple[int, ...], place: tuple[int, ...]
) -> list[tuple[int, int]]:
    """Return an element's coordinates as (body, index in the body), completed to whole directors, which rotate."""
    seen = list(zip(role, place, strict=True))
    for body, j in tuple(seen):
        d = recipes[body].d
        seen += [(body, i) for i in range(j // d * d, j // d * d + d) if j >= d and (body, i) not in seen]
    return seen


def _kinematics(
    recipes: tuple[BodyRecipe, ...],
    role: tuple[int, ...],
    place: tuple[int, ...],
    seen: list[tuple[int, int]],
    y: list[Any],
    q: Any,
    h: Any,
) -> tuple[Any, Any, Any, Callable[[Any], Any]]:
    """Return midpoint velocities, force map to bodies, kinematic Jacobian and geometric stiffness of an element.

    The geometric stiffness is the derivative of the forces on bodies at constant forces on the coordinates: lever arms
    rotate with the bodies.
    """
    n, size = len(role), sum(recipe.size for recipe in recipes)
    v_m, contract, spread = ca.SX.zeros(n), ca.SX(size, n), ca.SX(n, size)
    bends: list[tuple[int, int, list[int], Any, Any]] = []
    first = 0
    for number, recipe in enumerate(recipes):
        own = [i for i in range(n) if role[i] == number]
        inside = [place[i] for i in own]
        all_q = ca.SX.sym("q", recipe.d * (1 + recipe.count))
        known = ca.SX(all_q)
        for i, (body, j) in enumerate(seen):
            if body == number:
                known[j] = q[i]
        motion = recipe.moved(y[number], known, h)
        force = ca.SX.sym("f", all_q.numel())
        old = BodyState(known, ca.SX.zeros(all_q.numel()), ca.SX.zeros(all_q.numel()), ca.SX.zeros(recipe.turning))
        still = BodyInertia(ca.SX(0), ca.SX(recipe.count, recipe.count))
        direct, by_force = recipe.slopes(motion, old, force, still, h)
        columns = slice(first, first + recipe.size)
        v_m[own] = motion.rate[inside]
        contract[columns, own] = by_force[:, inside]
        spread[own, columns] = recipe.spread(motion)[inside, :]
        bends.append((first, recipe.size, own, (force, inside), direct))
        first += recipe.size

    def bend(forces: Any) -> Any:
        found = ca.SX(size, size)
        for start, width, own, (force, inside), direct in bends:
            values = ca.SX.zeros(force.numel())
            for i, j in zip(own, inside, strict=True):
                values[j] = forces[i]
            at = slice(start, start + width)
            found[at, at] = ca.substitute(ca.SX(direct), force, values)
        return found

    return v_m, contract, spread, bend


def shown_multipliers(equations: FrameEquations, unknowns: Layout) -> Piece:
    """Return the batch that writes the reported multipliers; multipliers without an unknown remain zero."""
    local, each = Local.of(1, 0), np.arange(len(equations.kept))[:, None]
    shown = equations.layout["multipliers"].start + np.array(equations.kept)[:, None]
    x = unknowns["lam"].start + each
    return piece("multipliers", local, ca.SX(0, 1), {"x": x}, ends=[(local.x, shown)])


def held_commands(layout: Layout) -> Piece:
    """Return the batch that holds the outputs of sampled controllers over the step."""
    local, places = Local.of(0, 1), np.arange(layout["control"].start, layout["control"].stop)[:, None]
    none = np.zeros((len(places), 0), dtype=np.int64)
    return piece("commands", local, ca.SX(0, 1), {"x": none, "z": places}, ends=[(local.z, places)])


def with_commands(local: Local, commanded: tuple[int, ...]) -> Any:
    """Return the parameters of an element, with controller outputs taken from the last entries of its state."""
    k = ca.SX(local.k)
    for j, command in zip(commanded, ca.vertsplit(local.z)[-len(commanded) :] if commanded else [], strict=True):
        k[j] = command
    return k


def command_places(equations: FrameEquations, commanded: tuple[int, ...], members: list[Any]) -> np.ndarray:
    """Return the state indices of the controller outputs used by these elements."""
    first, controls = equations.layout["control"].start if commanded else 0, equations.system.controls
    said = [[first + controls.index(e.parameters[j]) for j in commanded] for e, _, _ in members]
    return np.array(said, dtype=np.int64).reshape(len(members), len(commanded))
