"""Assembled step equations of a System: nodal residual plus the sum of the element contributions."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import casadi as ca
import numpy as np

from livens.expressions.graph.roundoff import roundoff_bound
from livens.expressions.layout import Layout
from livens.models.element import ElementModel
from livens.models.model import digest_of
from livens.models.system import System
from livens.schemes.recipes.elements import ElementEnergies, ElementScheme, Reduction, State
from livens.schemes.recipes.pieces import Pieces
from livens.schemes.recipes.turning import unit_multiplier
from livens.schemes.step import ErrorEstimate, FlatEquations, StepEquations, table_digest


class ShareKernel:
    """Compiled contribution of one element type with its Jacobian.

    Arguments are ``(x, q, v, p, h, t, k)``: the local unknowns block after block, the state and the parameters of one
    element. `function` returns (residual, nonzeros of the Jacobian at `sparsity`, momenta, work supplied and
    dissipated). `roundoff_bound` has the errors of the unknowns as additional argument and bounds the round-off of the
    residual.
    """

    def __init__(self, scheme: ElementScheme, model: ElementModel) -> None:
        n, m = model.n, model.m
        x = ca.SX.sym("x", len(scheme.unknowns) * n + len(scheme.multipliers) * m)
        q, v, p, h, t = ca.SX.sym("q", n), ca.SX.sym("v", n), ca.SX.sym("p", n), ca.SX.sym("h"), ca.SX.sym("t")
        old = State(q=q, v=v, p=p)
        unknown = named(scheme, x, n, m)
        q1, v1 = scheme.end(old, unknown, h)
        share = scheme.share(ElementEnergies(model), old, State(q=q1, v=v1), unknown, h, t)
        rows = ca.densify(ca.vertcat(*share.rows, *share.constraints))
        jacobian = _entries(ca.jacobian(rows, x))
        self.model = model
        self.pattern = list(jacobian)
        work = ca.vertcat(ca.SX(share.supplied), ca.SX(share.dissipated))
        arguments = [x, q, v, p, h, t, model.k]
        self.function = ca.Function(
            "share", arguments, [rows, ca.vertcat(*jacobian.values()), ca.densify(share.momentum), ca.densify(work)]
        )
        e = ca.SX.sym("e", x.numel())
        rows_only = ca.Function("rows", arguments, [rows])
        bound = roundoff_bound(rows_only, arguments, [e, *(ca.fabs(argument) for argument in arguments[1:])])
        self.noise = ca.Function("noise", [*arguments, e], [ca.densify(bound)])


@dataclass(frozen=True, eq=False)
class Group:
    """All elements of one type: their kernel and index tables with one row per element."""

    kernel: ShareKernel
    elements: np.ndarray
    coordinates: np.ndarray  # indices of the element's coordinates
    constraints: np.ndarray  # indices of the element's constraints
    parameters: np.ndarray  # indices of the element's parameters

    def places(self, i: int, unknowns: Layout, scheme: ElementScheme) -> list[int]:
        """Return the global indices of the unknowns and equations of element i, in the order of the kernel."""
        found = [unknowns[name].start + int(j) for name in scheme.unknowns for j in self.coordinates[i]]
        return found + [unknowns[name].start + int(j) for name in scheme.multipliers for j in self.constraints[i]]


class ElementEquations(StepEquations):
    """Step equations of a System in an element scheme, with element structure.

    Unknowns and equations have the same numbering: blocks of coordinates, then blocks of constraints. The multipliers
    of `removed_constraints` are zero. Every element type is differentiated once, independent of its multiplicity.
    """

    def __init__(self, system: System, scheme: ElementScheme, dropped: tuple[int, ...] = ()) -> None:
        self.system, self.scheme, self.dropped = system, scheme, dropped
        self.layout = system.layout
        sizes = dict.fromkeys(scheme.unknowns, system.n) | dict.fromkeys(scheme.multipliers, system.m)
        self.unknowns = Layout(**sizes)

    @functools.cached_property
    def groups(self) -> tuple[Group, ...]:
        """Elements by type, in the order of first occurrence."""
        return tuple(
            Group(ShareKernel(self.scheme, g.model), g.elements, g.coordinates, g.constraints, g.parameters)
            for g in self.system.groups
        )

    @functools.cached_property
    def own(self) -> ca.Function:
        """Nodal function of one coordinate: (residual, q1, v1, nodal part of p1) of ``(x, q, v, p, h)``."""
        scheme = self.scheme
        x, h = ca.SX.sym("x", len(scheme.unknowns)), ca.SX.sym("h")
        old = State(q=ca.SX.sym("q"), v=ca.SX.sym("v"), p=ca.SX.sym("p"))
        unknown = named(scheme, x, 1, 0)
        q1, v1 = scheme.end(old, unknown, h)
        rows = ca.densify(ca.vertcat(*scheme.rows(old, unknown, h)))
        p1 = ca.densify(scheme.momentum(old, unknown, h))
        return ca.Function("own", [x, old.q, old.v, old.p, h], [rows, q1, v1, p1])

    @functools.cached_property
    def reductions(self) -> tuple[Reduction, ...]:
        """Null-space reductions of the scheme."""
        return tuple(self.scheme.reductions(self.system))

    @functools.cached_property
    def row_names(self) -> tuple[str, ...]:
        """Labels of the equations, before reductions."""
        system, scheme = self.system, self.scheme
        suffix = ["" if len(scheme.unknowns) == 1 else f" ({name})" for name in scheme.unknowns]
        balance = [f"balance of momentum of {c}{s}" for s in suffix for c in system.coordinates]
        suffix = ["" if len(scheme.multipliers) == 1 else f" ({name})" for name in scheme.multipliers]
        return (*balance, *(f"constraint {g}{s}" for s in suffix for g in system.constraint_names))

    @functools.cached_property
    def _whole(self) -> ElementEquations:
        """Equations before reductions, for tiers with body-wise elimination."""
        if not self.reductions:
            return self
        return ElementEquations(self.system, self.scheme.without_reductions(), self.dropped)

    @property
    def size_in_pieces(self) -> int:
        return 0 if self._whole.reductions else self._whole.unknowns.size

    def pieces(self) -> Pieces | None:
        from livens.schemes.recipes.element_pieces import element_pieces  # circular import

        return element_pieces(self._whole) if self.size_in_pieces else None

    @functools.cached_property
    def fingerprint(self) -> str:
        parts: list[Any] = [self.own.serialize(), self.layout.sizes, self.unknowns.sizes, self.dropped]
        for group in self.groups:
            tables = group.elements, group.coordinates, group.constraints, group.parameters
            parts += [group.kernel.function.serialize(), group.kernel.pattern, *map(table_digest, tables)]
        parts += [(r.coordinates, r.constraints, r.size, r.row_names) for r in self.reductions]
        return digest_of(["elements", self.scheme.name, parts])

    # -- as one graph -------------------------------------------------------------------------------------------------
    def flatten(self) -> FlatEquations:
        return self._flat

    @functools.cached_property
    def _flat(self) -> FlatEquations:
        """Step graph: the assembled sum in the element order of the system."""
        system, scheme, layout = self.system, self.scheme, self.layout
        n, m = system.n, system.m
        x, z = ca.SX.sym("x", self.unknowns.size), ca.SX.sym("z", layout.size)
        c = ca.SX.sym("c", 2 + system.parameter_count)
        h, t, k = c[0], c[1], c[2:]
        old = State(q=z[layout["q"]], v=z[layout["v"]], p=z[layout["p"]])
        unknown = named(scheme, x, n, m)

        q1, v1 = scheme.end(old, unknown, h)
        p1 = ca.vertsplit(ca.densify(scheme.momentum(old, unknown, h)))
        none = ca.SX(len(scheme.multipliers) * m, 1)
        residual = ca.vertsplit(ca.densify(ca.vertcat(*scheme.rows(old, unknown, h), none)))
        supplied, dissipated = z[layout["supplied_energy"]], z[layout["dissipated_energy"]]
        jacobian = _entries(ca.jacobian(ca.vertcat(*residual), x))
        e = ca.SX.sym("e", x.numel())  # errors of the unknowns, for the round-off bound of the residual
        own_rows = ca.Function("rows", [x, z, c], [ca.vertcat(*residual)])
        noise = ca.vertsplit(ca.densify(roundoff_bound(own_rows, [x, z, c], [e, ca.fabs(z), ca.fabs(c)])))

        for group, i in self._in_order():
            places, index = group.places(i, self.unknowns, scheme), group.coordinates[i].tolist()
            arguments = x[places], old.q[index], old.v[index], old.p[index], h, t, k[group.parameters[i].tolist()]
            rows, entries, p, work = group.kernel.function(*arguments)
            rounding = group.kernel.noise(*arguments, e[places])
            for a, row in enumerate(places):
                residual[row] += rows[a]
                noise[row] += rounding[a] + ca.fabs(rows[a])  # of the contribution, and of its addition
            for a, (row, column) in enumerate(group.kernel.pattern):
                place = places[row], places[column]
                jacobian[place] = jacobian[place] + entries[a] if place in jacobian else entries[a]
            for a, j in enumerate(index):
                p1[j] += p[a]
            supplied, dissipated = supplied + work[0], dissipated + work[1]

        for constraint in self.dropped:
            for name in scheme.multipliers:
                row = self.unknowns[name].start + constraint
                residual[row], noise[row] = x[row], e[row]
                jacobian = {place: value for place, value in jacobian.items() if place[0] != row}
                jacobian[row, row] = ca.SX(1)

        lam = scheme.force_multipliers(unknown) if scheme.multipliers and m else ca.SX(0, 1)
        nonzeros = sorted(jacobian, key=lambda place: (place[1], place[0]))
        sum_of_shares = ca.vertcat(*residual)
        flat = FlatEquations(
            x=x,
            z=z,
            c=c,
            residual=sum_of_shares,
            rows=np.array([row for row, _ in nonzeros], dtype=np.int64),
            columns=np.array([column for _, column in nonzeros], dtype=np.int64),
            jacobian=ca.vertcat(*(jacobian[place] for place in nonzeros)),
            end=ca.densify(ca.vertcat(q1, v1, *p1, supplied, dissipated, lam)),
            guess=self._guess(old, z, c, ca.Function("residual", [x, z, c], [sum_of_shares])),
            kinds=(n,) * len(scheme.unknowns) + (m,) * len(scheme.multipliers),
            row_names=self.row_names,
            layout=layout,
            noise=ca.Function("noise", [x, z, c, e], [ca.vertcat(*noise)]),
            inside=self._inside(old, unknown, h),
            error=self._estimate(old, unknown, h),
            onward=self._onward(unknown),
            values={**vars(unknown), **scheme.values(old, unknown, h)},
        )
        return _reduced(flat, self.reductions, self.unknowns, scheme) if self.reductions else flat

    def _in_order(self) -> list[tuple[Group, int]]:
        """Return every element as (group, index in the group), in the order of the system."""
        found = {int(number): (group, i) for group in self.groups for i, number in enumerate(group.elements)}
        return [found[number] for number in sorted(found)]

    # -- initial guess by coordinate, quaternion and constraint -------------------------------------------------------
    def _guess(self, old: State, z: Any, c: Any, residual: ca.Function) -> Any:
        scheme, system, layout, h = self.scheme, self.system, self.layout, c[0]
        blocks = [ca.SX(ca.densify(block)) for block in scheme.guess(old, h)]
        for four in system.quaternions:
            i = list(four)
            turned = scheme.quaternion_guess(State(q=old.q[i], v=old.v[i], p=old.p[i]), h)
            for block, part in zip(blocks, turned or (), strict=turned is not None):
                block[i] = part
        lam = z[layout["multipliers"]] if system.m else ca.SX(0, 1)
        multipliers = [scheme.multiplier_guess(name, lam) for name in scheme.multipliers] if system.m else []
        guess = ca.SX(ca.densify(ca.vertcat(*blocks, *multipliers)))
        changes = scheme.refine(*self._blocks(guess, residual(guess, z, c)))
        for name, block in changes.items():
            guess[self.unknowns[name]] = block
        if scheme.balance and system.quaternions:
            first = self.unknowns[scheme.multipliers[0]].start
            for number in system.quaternion_constraints:
                guess[first + number] = 0
            x, r = self._blocks(guess, residual(guess, z, c))
            for number, four in zip(system.quaternion_constraints, system.quaternions, strict=True):
                i = list(four)
                q_m = old.q[i] + h / 2 * getattr(x, scheme.unknowns[0])[i]
                guess[first + number] = unit_multiplier(q_m, getattr(r, scheme.balance)[i], h)
        return guess

    def _blocks(self, x: Any, r: Any) -> tuple[SimpleNamespace, SimpleNamespace]:
        n, m = self.system.n, self.system.m
        return named(self.scheme, x, n, m), named(self.scheme, r, n, m)

    # -- optional parts of a scheme -----------------------------------------------------------------------------------
    def _inside(self, old: State, unknown: Any, h: Any) -> Any:
        theta = ca.SX.sym("theta")
        found = self.scheme.inside(old, unknown, h, theta)
        return None if found is None else (theta, {"q": found[0], "v": found[1]})

    def _estimate(self, old: State, unknown: Any, h: Any) -> Any:
        error = self.scheme.estimate(old, unknown, h)
        if error is None:
            return None
        return ErrorEstimate(
            errors=error,
            sizes=ca.fmax(ca.fabs(old.q), ca.fabs(self.scheme.end(old, unknown, h)[0])),
            order=self.scheme.estimate_order,
            names=self.system.coordinates,
        )

    def _onward(self, unknown: Any) -> Any:
        weights = self.scheme.onward
        if weights is None:
            return None
        parts = [getattr(unknown, name) for name in self.scheme.unknowns]
        first = [sum((w * part for w, part in zip(row, parts, strict=True)), 0 * parts[0]) for row in weights]
        rest = self.unknowns.size - len(first) * self.system.n
        return ca.densify(ca.vertcat(*first, ca.SX(rest, 1)))


def named(scheme: ElementScheme, x: Any, n: int, m: int) -> SimpleNamespace:
    """Return the unknowns by name, for n coordinates and m constraints."""
    names = [(name, n) for name in scheme.unknowns] + [(name, m) for name in scheme.multipliers]
    blocks, first = {}, 0
    for name, size in names:
        # an empty slice of a 1x1 SX has shape (1, 0) and would count as a row
        blocks[name] = x[first : first + size] if size else ca.SX(0, 1)
        first += size
    return SimpleNamespace(**blocks)


def _entries(matrix: Any) -> dict[tuple[int, int], Any]:
    rows, columns = matrix.sparsity().get_triplet()
    return {(row, column): matrix[row, column] for row, column in zip(rows, columns, strict=True)}


def _reduced(
    e: FlatEquations, reductions: tuple[Reduction, ...], unknowns: Layout, scheme: ElementScheme
) -> FlatEquations:
    """Return the equations after the reductions: remaining unknowns first, then the reduced unknowns body by body."""
    velocity, multiplier = unknowns[scheme.unknowns[0]].start, unknowns[scheme.multipliers[0]].start
    inside = {velocity + i for reduction in reductions for i in reduction.coordinates}
    eliminated = {multiplier + i for reduction in reductions for i in reduction.constraints}
    kept = [i for i in range(e.size) if i not in inside and i not in eliminated]
    h, q0 = e.c[0], e.z[e.layout["q"]]
    new = [ca.SX.sym("w", reduction.size) for reduction in reductions]
    rest = ca.SX.sym("x", len(kept))
    x = ca.SX.zeros(e.size)
    x[kept] = rest
    for reduction, y in zip(reductions, new, strict=True):
        i = list(reduction.coordinates)
        x[[velocity + j for j in i]] = reduction.lift(q0[i], y, h)
    r = e.residual_function(x, e.z, e.c)
    end = e.end_function(x, e.z, e.c)
    guess = e.guess_function(e.z, e.c)
    rows, names, starts = [r[kept]], [e.row_names[i] for i in kept], []
    for reduction in reductions:
        i = list(reduction.coordinates)
        places = [velocity + j for j in i]
        rows.append(reduction.contract(q0[i], x[places], r[places], h))
        names += reduction.row_names
        multipliers = [e.layout["multipliers"].start + j for j in reduction.constraints]
        end[multipliers] = reduction.recover(q0[i], x[places], r[places], h)
        starts.append(reduction.start(q0[i], guess[places]))
    velocities = sum(1 for i in kept if i < multiplier)
    return FlatEquations.of(
        ca.vertcat(rest, *new),
        e.z,
        e.c,
        residual=ca.densify(ca.vertcat(*rows)),
        end=ca.densify(end),
        guess=ca.densify(ca.vertcat(guess[kept], *starts)),
        kinds=(velocities, len(kept) - velocities, sum(reduction.size for reduction in reductions)),
        row_names=tuple(names),
        layout=e.layout,
    )
