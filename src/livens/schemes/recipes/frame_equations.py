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

from livens.expressions.layout import Layout
from livens.models.element import ElementModel
from livens.models.frames import Frame, body_kinds, mass_and_euler
from livens.models.model import digest_of
from livens.models.system import System
from livens.schemes.recipes.frame_bodies import BodyRecipe, cross
from livens.schemes.recipes.frame_kernels import BodyKernel, FrameKernel, FrameScheme
from livens.schemes.recipes.pieces import Pieces
from livens.schemes.step import FlatEquations, StepEquations, table_digest

#: Name of the state part with the body angular momenta.
SPINS = "body_spins"


@dataclass(frozen=True, eq=False)
class FrameElement:
    """Element of the system: kernel of its type, and indices."""

    kernel: FrameKernel
    coordinates: list[int]
    constraints: slice
    parameters: list[int]


@dataclass(frozen=True, eq=False)
class FramePlace:
    """Body of the system: kernel of its type, inertia, and indices."""

    kernel: BodyKernel
    frame: Frame
    inertia: ca.Function
    parameters: list[int]
    unknowns: slice
    spin: slice  # slice of the body angular momenta


class FrameEquations(StepEquations):
    """Step equations of rigid bodies, with the structure of elements and bodies.

    Unknowns are those of the bodies, body by body, then the multipliers of the constraints between bodies. The
    orthonormality of the directors needs no multipliers. The multipliers of `removed_constraints` are zero.
    """

    def __init__(self, system: System, scheme: FrameScheme, dropped: tuple[int, ...] = ()) -> None:
        self.system, self.scheme, self.dropped = system, scheme, dropped
        spins = sum(frame.turning for frame in system.frames)
        self.layout = system.layout.with_(**{SPINS: spins}) if scheme.spins and spins else system.layout
        within = {i for frame in system.frames for i in frame.constraints}
        #: Enforced constraints: those with a multiplier among the unknowns.
        left_out = within | set(dropped)
        self.kept = tuple(i for i in range(system.m) if i not in left_out)
        #: Enforced constraints on both levels; velocity-level constraints are enforced once.
        on_position = set(system.position_constraints) if scheme.both_levels else set[int]()
        self.twice = tuple(i for i in self.kept if i in on_position)
        recipes = {kind: self._recipe(*kind) for kind in body_kinds(system.frames)}
        sizes = {"bodies": sum(recipes[frame.kind].size for frame in system.frames), "lam": len(self.kept)}
        self.unknowns = Layout(**sizes, **({"gam": len(self.twice)} if scheme.both_levels else {}))

    def _recipe(self, dimension: int, directors: int, rotor: bool) -> BodyRecipe:
        own = self.scheme.rotor_body if rotor else None
        return (own or self.scheme.body)(dimension, directors)

    @functools.cached_property
    def bodies(self) -> tuple[FramePlace, ...]:
        """Bodies, in the order of their unknowns."""
        system, first, spin, found = self.system, 0, 0, []
        kernels = {kind: BodyKernel(self._recipe(*kind)) for kind in body_kinds(system.frames)}
        for frame in system.frames:
            kernel = kernels[frame.kind]
            recipe = kernel.recipe
            places = slice(first, first + recipe.size), slice(spin, spin + recipe.turning)
            parameters = list(system.parameter_indices[frame.element])
            found.append(FramePlace(kernel, frame, mass_and_euler(system, frame), parameters, *places))
            first, spin = places[0].stop, places[1].stop
        return tuple(found)

    @functools.cached_property
    def elements(self) -> tuple[FrameElement, ...]:
        """Elements with a nonzero contribution; each type is derived once."""
        system, kernels, found = self.system, dict[tuple[ElementModel, bool], FrameKernel](), []
        of_bodies = {frame.element for frame in system.frames}
        for number, model in enumerate(system.models):
            key = model, number in of_bodies
            if key not in kernels:
                kernels[key] = FrameKernel(self.scheme, *key)
            if kernels[key].idle:
                continue
            own = system.multiplier_slices[number]
            places = list(system.indices[number]), own if kernels[key].m else slice(own.start, own.start)
            found.append(FrameElement(kernels[key], *places, list(system.parameter_indices[number])))
        return tuple(found)

    @functools.cached_property
    def row_names(self) -> tuple[str, ...]:
        """Labels of the equations."""
        system, names = self.system, list[str]()
        for frame in system.frames:
            names += [f"balance of momentum of {system.coordinates[i]}" for i in frame.position]
            turned = system.elements[frame.element].name or system.coordinates[frame.position[0]]
            names += [f"balance of angular momentum of {turned}"] * frame.turning
            names += [f"rate of rotation of {turned}"] * self._recipe(*frame.kind).more
        names += [f"constraint {system.constraint_names[i]}" for i in self.kept]
        if self.scheme.both_levels:
            names += [f"hidden constraint {system.constraint_names[i]}" for i in self.twice]
        return tuple(names)

    @property
    def size_in_pieces(self) -> int:
        more = self.unknowns.sizes["bodies"] if self.scheme.both_levels else 0  # see `rigid_body_ggl_batches`
        return self.unknowns.size + more

    def pieces(self) -> Pieces:
        from livens.schemes.recipes.frame_pieces import frame_pieces  # circular import
        from livens.schemes.recipes.level_pieces import level_pieces

        return level_pieces(self) if self.scheme.both_levels else frame_pieces(self)

    @functools.cached_property
    def fingerprint(self) -> str:
        kernels: dict[Any, tuple[int, Any]] = {}
        rows: dict[Any, list[list[int]]] = {}

        def note(kernel: Any, written: Callable[[], Any], *places: Any) -> None:
            if kernel not in kernels:
                kernels[kernel] = len(kernels), written()
            rows.setdefault(kernel, []).append([int(i) for part in places for i in part])

        for e in self.elements:
            own = e.constraints.start, e.constraints.stop
            note(e.kernel, functools.partial(_written, e.kernel), e.coordinates, own, e.parameters)
        for body in self.bodies:
            places = body.frame.coordinates, body.parameters, (body.unknowns.start, body.spin.start)
            note((body.kernel, body.inertia), functools.partial(_written, body.kernel, body.inertia), *places)
        parts = [(content, table_digest(np.array(rows[kernel]))) for kernel, (_, content) in kernels.items()]
        return digest_of(
            ["frames", type(self.scheme).__name__, self.layout.sizes, self.unknowns.sizes, self.kept, parts]
        )

    # -- as one graph -------------------------------------------------------------------------------------------------
    def flatten(self) -> FlatEquations:
        return self._flat

    @functools.cached_property
    def _flat(self) -> FlatEquations:
        system, layout = self.system, self.layout
        n, m, both = system.n, system.m, self.scheme.both_levels
        x, z = ca.SX.sym("x", self.unknowns.size), ca.SX.sym("z", layout.size)
        c = ca.SX.sym("c", 2 + system.parameter_count)
        h, t, k = c[0], c[1], c[2:]
        if system.controls:
            k = ca.SX(k)
            k[list(system.controls)] = z[layout["control"]]
        q, v, p = z[layout["q"]], z[layout["v"]], z[layout["p"]]
        spins = z[layout[SPINS]] if SPINS in layout else ca.SX.zeros(sum(b.kernel.recipe.turning for b in self.bodies))

        def multipliers(name: str, places: tuple[int, ...]) -> Any:
            found = ca.SX.zeros(m)
            if places:
                found[list(places)] = x[self.unknowns[name]]
            return found

        lam, gam = multipliers("lam", self.kept), multipliers("gam", self.twice)
        states = [self._state(body, x, q, v, p, spins, k, h) for body in self.bodies]
        v_m = self._spread(n, [body.kernel.rate(*state) for body, state in zip(self.bodies, states, strict=True)])
        rows, on_position, on_velocity = ca.SX.zeros(n), ca.SX.zeros(m), ca.SX.zeros(m)
        supplied, dissipated = z[layout["supplied_energy"]], z[layout["dissipated_energy"]]
        for e in self.elements:
            i = e.coordinates
            own, g, work = e.kernel.share(v_m[i], _at(lam, e.constraints), q[i], h, t, k[e.parameters])
            rows[i] += own
            if e.kernel.m:
                on_position[e.constraints] = g
            supplied, dissipated = supplied + work[0], dissipated + work[1]
        pull = ca.SX.zeros(n)
        if both:
            jointed = [e for e in self.elements if e.kernel.m]
            for e in jointed:
                i = e.coordinates
                pull[i] += e.kernel.pull(v_m[i], gam[e.constraints], q[i], h, t, k[e.parameters])
            pulled = [pull[list(body.frame.coordinates)] for body in self.bodies]
            steps = zip(self.bodies, states, pulled, strict=True)
            v1 = self._spread(n, [body.kernel.velocity(*state, own) for body, state, own in steps])
            for e in jointed:
                i = e.coordinates
                arguments = v_m[i], gam[e.constraints], q[i], v[i], v1[i], h, t, k[e.parameters]
                bent, hidden, moved = e.kernel.hidden(*arguments)
                rows[i] += bent
                supplied = supplied + moved
                on_velocity[e.constraints] = hidden

        balances, ends, guesses = [], [], []
        for body, state in zip(self.bodies, states, strict=True):
            i = list(body.frame.coordinates)
            balances.append(body.kernel.balance(*state, rows[i], pull[i]))
            ends.append(body.kernel.end(*state, pull[i]))
            guesses.append(body.kernel.guess(q[i], v[i]))
        kept, twice, none = list(self.kept), list(self.twice), ca.SX(0, 1)
        levels = [on_position[kept], *([on_velocity[twice]] if twice else [])] if kept else []
        at_end = [self._spread(n, [end[part] for end in ends]) for part in range(3)]
        held = [z[layout["control"]]] if system.controls else []
        after = [*held, ca.vertcat(*(end[3] for end in ends))] if SPINS in layout else held
        shown = z[layout["multipliers"]]
        first = [shown[kept] if kept else none, *([ca.SX.zeros(len(twice))] if twice else [])]
        residual = ca.densify(ca.vertcat(*balances, *levels))
        if both:
            at = SimpleNamespace(v_m=v_m, lam=lam, gam=gam, q=q, v=v, v1=v1, h=h, t=t, k=k)
            jacobian, turn = self._jacobian_of_both_levels(states, rows, pull, at)
        else:
            jacobian, turn = self._jacobian(states, rows, v_m, lam, q, h, t, k)
        places = jacobian.sparsity().get_triplet()
        shared = ca.cse([residual, ca.SX(jacobian.nz[:]), *([] if turn is None else [turn[0]])])
        return FlatEquations(
            x=x,
            z=z,
            c=c,
            residual=shared[0],
            rows=np.array(places[0], dtype=np.int64),
            columns=np.array(places[1], dtype=np.int64),
            jacobian=shared[1],
            turn=None if turn is None else (shared[2], *turn[1:]),
            end=ca.cse(ca.densify(ca.vertcat(*at_end, supplied, dissipated, lam if m else none, *after))),
            guess=ca.densify(ca.vertcat(*guesses, *first)),
            kinds=tuple(self.unknowns.sizes.values()),
            row_names=self.row_names,
            layout=layout,
        )

    def _jacobian(self, states: Any, rows: Any, v_m: Any, lam: Any, q: Any, h: Any, t: Any, k: Any) -> tuple[Any, Any]:
        """Return the Jacobian in variations at t + h, by the chain rule: elements, then bodies.

        The second result is the matrix that maps variations to increments of the unknowns.
        """
        n, m, size = self.system.n, self.system.m, self.unknowns["bodies"].stop
        by_v, by_lam, of_g = ca.SX(n, n), ca.SX(n, m), ca.SX(m, n)
        products: list[tuple[list[int], Any, Any, Any]] = []
        for e in self.elements:
            i, own = e.coordinates, list(range(e.constraints.start, e.constraints.stop))
            arguments = v_m[i], _at(lam, e.constraints), q[i], h, t, k[e.parameters]
            slopes = e.kernel.slopes(*arguments)
            by_v += _placed(_rest(e.kernel, slopes, arguments, i, products), i, i, (n, n))
            if own:
                by_lam += _placed(slopes[1], i, own, (n, m))
                of_g += _placed(slopes[2], own, i, (m, n))
        spread, contract, direct = ca.SX(n, size), ca.SX(size, n), ca.SX(size, size)
        turns: dict[tuple[int, int], Any] = {}
        for body, state in zip(self.bodies, states, strict=True):
            i, y = list(body.frame.coordinates), list(range(body.unknowns.start, body.unknowns.stop))
            own, by_rows, lifted, turn = body.kernel.slopes(*state, rows[i])
            direct += _placed(own, y, y, (size, size))
            contract += _placed(by_rows, y, i, (size, n))
            spread += _placed(lifted, i, y, (n, size))
            turning = range(body.kernel.recipe.d, body.kernel.recipe.d + body.kernel.recipe.turning)
            pairs = [(a, b) for a in turning for b in turning]
            turns |= {(y[a], y[b]): turn[a, b] for a, b in pairs}
        kept = list(self.kept)
        both = direct + contract @ (by_v @ spread) + _multiplied(products, contract, spread)
        if kept:
            none = ca.SX(len(kept), len(kept))
            both = ca.blockcat([[both, contract @ by_lam[:, kept]], [of_g[kept, :] @ spread, none]])
        if not turns:
            return both, None
        places = list(turns)
        return both, (ca.vertcat(*turns.values()), [i for i, _ in places], [j for _, j in places])

    def _jacobian_of_both_levels(self, states: Any, rows: Any, pull: Any, at: Any) -> tuple[Any, Any]:
        """Return the Jacobian of the GGL equations, where elements depend on the velocities at t + h.

        Element terms: R residual, P GGL correction, g and H constraints on position and velocity level; subscripts:
        v_m, v1, lam and gam. The projections to bodies are applied before the products are formed.
        """
        n, m, size, h, t = self.system.n, self.system.m, self.unknowns["bodies"].stop, at.h, at.t
        of_n, of_m = (n, n), (n, m)
        R_v, P_v, R_1 = ca.SX(n, n), ca.SX(n, n), ca.SX(n, n)
        R_lam, R_gam, P_gam = ca.SX(n, m), ca.SX(n, m), ca.SX(n, m)
        g_v, H_v, H_1 = ca.SX(m, n), ca.SX(m, n), ca.SX(m, n)
        products: list[tuple[list[int], Any, Any, Any]] = []
        for e in self.elements:
            i, own = e.coordinates, list(range(e.constraints.start, e.constraints.stop))
            arguments = at.v_m[i], _at(at.lam, e.constraints), at.q[i], h, t, at.k[e.parameters]
            slopes = e.kernel.slopes(*arguments)
            R_v += _placed(_rest(e.kernel, slopes, arguments, i, products), i, i, of_n)
            if not own:
                continue
            R_lam += _placed(slopes[1], i, own, of_m)
            g_v += _placed(slopes[2], own, i, (m, n))
            given = at.v_m[i], at.gam[e.constraints], at.q[i], at.v[i], at.v1[i], h, t, at.k[e.parameters]
            p_v, p_gam, b_v, b_gam, b_1, h_v, h_1 = e.kernel.levels.of(*given)
            P_v, R_v, R_1 = (
                P_v + _placed(p_v, i, i, of_n),
                R_v + _placed(b_v, i, i, of_n),
                R_1 + _placed(b_1, i, i, of_n),
            )
            P_gam, R_gam = P_gam + _placed(p_gam, i, own, of_m), R_gam + _placed(b_gam, i, own, of_m)
            H_v, H_1 = H_v + _placed(h_v, own, i, (m, n)), H_1 + _placed(h_1, own, i, (m, n))
        square, wide, tall = (size, size), (size, n), (n, size)
        # D: body residual, Y: GGL part of the momenta, T: twist, E: v1 at fixed twist
        D, D_mu, Y, T, T_mu = (ca.SX(*square) for _ in range(5))
        D_rows, D_pull, D_1, Y_pull = (ca.SX(*wide) for _ in range(4))
        E, S = ca.SX(*tall), ca.SX(*tall)
        turns: dict[tuple[int, int], Any] = {}
        for body, state in zip(self.bodies, states, strict=True):
            i, y = list(body.frame.coordinates), list(range(body.unknowns.start, body.unknowns.stop))
            own = iter(body.kernel.levels.of(*state, rows[i], pull[i]))
            D += _placed(next(own), y, y, square)
            D_rows += _placed(next(own), y, i, wide)
            D_pull += _placed(next(own), y, i, wide)
            D_mu += _placed(next(own), y, y, square)
            D_1 += _placed(next(own), y, i, wide)
            Y += _placed(next(own), y, y, square)
            Y_pull += _placed(next(own), y, i, wide)
            T += _placed(next(own), y, y, square)
            T_mu += _placed(next(own), y, y, square)
            E += _placed(next(own), i, y, tall)
            S += _placed(next(own), i, y, tall)
            turn, first = next(own), body.kernel.recipe.d
            pairs = [(a, b) for a in range(first, len(y)) for b in range(first, len(y))]
            turns |= {(y[a], y[b]): turn[a, b] for a, b in pairs}
        kept, twice = list(self.kept), list(self.twice)
        P_eta = P_v @ S
        mu_eta = Y + Y_pull @ P_eta
        twist_eta = T + T_mu @ mu_eta
        by_1 = D_rows @ R_1 + D_1
        own_rows = D + D_rows @ (R_v @ S) + _multiplied(products, D_rows, S)
        own_rows += by_1 @ E + (by_1 @ S) @ twist_eta + D_pull @ P_eta + D_mu @ mu_eta
        blocks = [[own_rows]]
        if kept:
            blocks[0].append(D_rows @ R_lam[:, kept])
            blocks.append([g_v[kept, :] @ S, ca.SX(len(kept), len(kept))])
        if twice:
            P_gam, R_gam, H_v, H_1 = P_gam[:, twice], R_gam[:, twice], H_v[twice, :], H_1[twice, :]
            mu_gam = Y_pull @ P_gam
            twist_gam = T_mu @ mu_gam
            blocks[0].append(D_rows @ R_gam + (by_1 @ S) @ twist_gam + D_pull @ P_gam + D_mu @ mu_gam)
            blocks[1].append(ca.SX(len(kept), len(twice)))
            hidden = H_v @ S + H_1 @ E + (H_1 @ S) @ twist_eta
            blocks.append([hidden, ca.SX(len(twice), len(kept)), (H_1 @ S) @ twist_gam])
        found = ca.blockcat(blocks)
        if not turns:
            return found, None
        places = list(turns)
        return found, (ca.vertcat(*turns.values()), [i for i, _ in places], [j for _, j in places])

    def _state(self, body: FramePlace, x: Any, q: Any, v: Any, p: Any, spins: Any, k: Any, h: Any) -> list[Any]:
        """Return the arguments of the kernel of a body."""
        i = list(body.frame.coordinates)
        spin = spins[body.spin] if body.kernel.recipe.turning else ca.SX(0, 1)
        return [x[body.unknowns], q[i], v[i], p[i], spin, *body.inertia(k[body.parameters]), h]

    def _spread(self, n: int, parts: list[Any]) -> Any:
        """Scatter coordinate vectors of the bodies into a vector of the system."""
        found = ca.SX.zeros(n)
        for body, part in zip(self.bodies, parts, strict=True):
            found[list(body.frame.coordinates)] = part
        return found


def _written(*kernels: Any) -> list[str]:
    """Serialize the functions of kernels."""
    functions = [f for k in kernels for f in ([k] if isinstance(k, ca.Function) else vars(k).values())]
    return [f.serialize() for f in functions if isinstance(f, ca.Function)]


def spins_at(system: System, q: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Return the body angular momenta from the momenta of the directors."""
    found = []
    for frame in system.frames:
        if not frame.directors:
            continue
        D, P = q[list(frame.directors)], p[list(frame.directors)]  # one row per director
        turning = np.cross(D, P).sum(axis=0) if frame.dimension == 3 else D[:, 0] @ P[:, 1] - D[:, 1] @ P[:, 0]
        found.append(D @ turning if frame.dimension == 3 else np.array([turning]))
    return np.concatenate(found) if found else np.zeros(0)


def spin_expressions(system: System, q: Any, p: Any) -> Any:
    """Return the body angular momenta as an expression of symbols."""
    found = [ca.SX(0, 1)]
    for frame in system.frames:
        if not frame.directors:
            continue
        D, P = ([x[list(places)] for places in frame.directors] for x in (q, p))
        if frame.dimension == 3:
            turning = sum((cross(d, f) for d, f in zip(D, P, strict=True)), ca.SX.zeros(3))
            found += [ca.dot(d, turning) for d in D]
        else:
            found.append(D[0][0] * P[0][1] - D[0][1] * P[0][0] + D[1][0] * P[1][1] - D[1][1] * P[1][0])
    return ca.vertcat(*found)


def _rest(kernel: FrameKernel, slopes: Any, arguments: Any, places: list[int], products: list[Any]) -> Any:
    """Return the unfactored part of an element's tangent in v_m, and append the factored part to `products`."""
    if kernel.chain is None:
        return slopes[0]
    found, rest = kernel.chain(*arguments)
    products += [(places, *one) for one in found]
    return rest


def _multiplied(products: list[Any], contract: Any, spread: Any) -> Any:
    """Return the sum of ``contract U H V spread`` over all products, multiplied from the outside inwards."""
    found = ca.SX(contract.size1(), spread.size2())
    for places, U, H, V in products:
        found += (contract[:, places] @ U) @ (H @ (V @ spread[places, :]))
    return found


def _placed(block: Any, rows: list[int], columns: list[int], shape: tuple[int, int]) -> Any:
    """Return a matrix with the nonzeros of a block at its rows and columns."""
    block = ca.sparsify(block)
    i, j = block.sparsity().get_triplet()
    return ca.SX.triplet([rows[a] for a in i], [columns[b] for b in j], ca.SX(block.nz[:]), *shape)


def _at(values: Any, where: slice) -> Any:
    """Return a slice of a column; an empty slice gets shape (0, 1), as shape (1, 0) would count as a row."""
    return values[where] if where.stop > where.start else ca.SX(0, 1)
