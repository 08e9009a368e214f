"""Schemes that are written element by element, and the equations of a whole system: the sum of the elements' shares."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import casadi as ca
import numpy as np

from livens.expressions.graph.roundoff import roundoff_bound
from livens.models.element import ElementModel
from livens.models.system import System
from livens.schemes.base import Scheme
from livens.schemes.step import StepEquations


class State(SimpleNamespace):
    """Positions, velocities and momenta at one time: ``q v p``."""

    q: Any
    v: Any
    p: Any


@dataclass
class Share:
    """What one element adds to the equations of a step."""

    rows: Sequence[Any]  # one block per block of unknowns, added into the rows of its coordinates
    constraints: Sequence[Any]  # one block per block of multipliers, the element's own rows
    momentum: Any  # its share of the momenta at the end of the step
    supplied: Any = 0.0  # work of applied forces and of moving constraints in this step
    dissipated: Any = 0.0  # energy lost in this step


class ElementEnergies:
    """An element as a scheme sees it: its energies, constraints, forces and their derivatives, callable anywhere."""

    def __init__(self, model: ElementModel) -> None:
        self.model = model
        self.n, self.m, self.k = model.n, model.m, model.k
        self._functions: dict[str, ca.Function] = {}

    def _call(self, key: str, expression: Any, *arguments: Any) -> Any:
        if key not in self._functions:
            m = self.model
            symbols = [m.q, m.v, m.t] if len(arguments) == 3 else [m.q, m.t]
            self._functions[key] = ca.Function(key, [*symbols, m.k], [expression()])
        return self._functions[key](*arguments, self.k)

    def T(self, q: Any, v: Any) -> Any:
        return self._call("T", lambda: self.model.T, q, v, 0)

    def T_q(self, q: Any, v: Any) -> Any:
        return self._call("T_q", lambda: ca.gradient(self.model.T, self.model.q), q, v, 0)

    def T_v(self, q: Any, v: Any) -> Any:
        return self._call("T_v", lambda: ca.gradient(self.model.T, self.model.v), q, v, 0)

    def V(self, q: Any, t: Any) -> Any:
        return self._call("V", lambda: self.model.V, q, t)

    def V_q(self, q: Any, t: Any) -> Any:
        return self._call("V_q", lambda: ca.gradient(self.model.V, self.model.q), q, t)

    def g(self, q: Any, t: Any) -> Any:
        return self._call("g", lambda: self.model.g, q, t)

    def G(self, q: Any, t: Any) -> Any:
        return self._call("G", lambda: ca.jacobian(self.model.g, self.model.q), q, t)

    def V_t(self, q: Any, t: Any) -> Any:
        return self._call("V_t", lambda: ca.gradient(self.model.V, self.model.t), q, t)

    def g_t(self, q: Any, t: Any) -> Any:
        return self._call("g_t", lambda: ca.jacobian(self.model.g, self.model.t), q, t)

    def R_v(self, q: Any, v: Any, t: Any) -> Any:
        """The dissipative force with its sign turned: ``D_2 R``."""
        return self._call("R_v", lambda: ca.gradient(self.model.R, self.model.v), q, v, t)

    def F(self, q: Any, v: Any, t: Any) -> Any:
        return self._call("F", lambda: self.model.F, q, v, t)


class ElementScheme(Scheme):
    """How one step's equations follow from a System, element by element.

    The unknowns of a step are blocks of one entry per coordinate (`unknowns`) and blocks of one entry per constraint
    (`multipliers`). The equations are the coordinates' own part (`rows`) plus the sum of the elements' shares
    (`share`), as many per coordinate and per constraint as there are unknowns. `end` gives positions and velocities
    at the end of the step from the unknowns of the same coordinate; the momenta there are the coordinates' own part
    (`momentum`) plus the sum of the elements' shares.
    """

    unknowns: tuple[str, ...]
    multipliers: tuple[str, ...]

    def equations(self, model: System, dropped: Collection[int] = ()) -> StepEquations:
        return step_equations(model, self, dropped)

    # -- the recipe -----------------------------------------------------------------------------------------------
    def guess(self, old: State) -> Sequence[Any]:
        """The unknowns to start Newton from at the first step, and where steps are long; one block per unknown."""
        raise NotImplementedError

    def end(self, old: State, x: Any, h: Any) -> tuple[Any, Any]:
        """Positions and velocities at the end of the step."""
        raise NotImplementedError

    def rows(self, old: State, x: Any, h: Any) -> Sequence[Any]:
        """The coordinates' own part of the equations."""
        raise NotImplementedError

    def momentum(self, old: State, x: Any, h: Any) -> Any:
        """The coordinates' own part of the momenta at the end of the step."""
        raise NotImplementedError

    def share(self, e: ElementEnergies, old: State, new: State, x: Any, h: Any, t: Any) -> Share:
        """What one element adds; `new` has q and v at the end of the step.

        ``old.p`` are momenta of the coordinates, to which other elements may have contributed: a scheme that uses them
        here must require that no two elements have kinetic energy on one coordinate.
        """
        raise NotImplementedError

    def force_multipliers(self, x: Any) -> Any:
        """The multipliers a result shows for the step, from its blocks of them: the first, unless said otherwise."""
        return getattr(x, self.multipliers[0])

    def inside(self, old: State, x: Any, h: Any, theta: Any) -> tuple[Any, Any] | None:
        """Positions and velocities within the step, at ``t + theta h``; nothing if the scheme has no such formula."""
        return None

    def estimate(self, old: State, x: Any, h: Any) -> Any:
        """An estimate of the error of the positions made in the step; nothing if the scheme has none."""
        return None

    def reduce(self, equations: StepEquations, system: System) -> StepEquations:
        """The equations of the whole system with some unknowns eliminated; most schemes eliminate nothing."""
        return equations


def step_equations(system: System, scheme: ElementScheme, dropped: Collection[int] = ()) -> StepEquations:
    """What the engine solves in every step: residual, its Jacobian, and the state at the end.

    The state is ``(q, v, p, supplied, dissipated, multipliers)``. Constraints in `dropped` are left out: their
    multipliers are zero. Every type of element is derived once and then placed as often as it occurs. Equations are
    numbered like the unknowns: blocks of coordinates first, then blocks of constraints.
    """
    n, m = system.n, system.m
    blocks, cells = len(scheme.unknowns), len(scheme.multipliers)
    x = ca.SX.sym("x", blocks * n + cells * m)
    z = ca.SX.sym("z", 3 * n + 2 + m)
    c = ca.SX.sym("c", 2 + system.parameter_count)
    h, t, k = c[0], c[1], c[2:]
    old = State(q=z[:n], v=z[n : 2 * n], p=z[2 * n : 3 * n])
    unknown = _named(scheme, x, n, m)

    q1, v1 = scheme.end(old, unknown, h)
    p1 = ca.vertsplit(ca.densify(scheme.momentum(old, unknown, h)))
    residual = ca.vertsplit(ca.densify(ca.vertcat(*scheme.rows(old, unknown, h), ca.SX(cells * m, 1))))
    supplied, dissipated = z[3 * n], z[3 * n + 1]
    jacobian = _entries(ca.jacobian(ca.vertcat(*residual), x))
    e = ca.SX.sym("e", x.numel())  # errors of the unknowns, for the bound of the residual's rounding
    own_rows = ca.Function("rows", [x, z, c], [ca.vertcat(*residual)])
    noise = ca.vertsplit(ca.densify(roundoff_bound(own_rows, [x, z, c], [e, ca.fabs(z), ca.fabs(c)])))

    parts: dict[ElementModel, _Part] = {}
    for model, index, where, slots in zip(
        system.models, system.indices, system.parameter_indices, system.multiplier_slices, strict=True
    ):
        if model not in parts:
            parts[model] = _Part(scheme, model)
        part, i = parts[model], list(index)
        places = [b * n + j for b in range(blocks) for j in i]
        places += [blocks * n + d * m + r for d in range(cells) for r in range(slots.start, slots.stop)]
        arguments = x[places], old.q[i], old.v[i], old.p[i], h, t, k[list(where)]
        rows, entries, p, work = part.function(*arguments)
        rounding = part.noise(*arguments, e[places])
        for a, row in enumerate(places):
            residual[row] += rows[a]
            noise[row] += rounding[a] + ca.fabs(rows[a])  # the share's own, and that of adding it
        for a, (row, column) in enumerate(part.pattern):
            place = places[row], places[column]
            jacobian[place] = jacobian[place] + entries[a] if place in jacobian else entries[a]
        for a, j in enumerate(i):
            p1[j] += p[a]
        supplied, dissipated = supplied + work[0], dissipated + work[1]

    for constraint in dropped:
        for d in range(cells):
            row = blocks * n + d * m + constraint
            residual[row], noise[row] = x[row], e[row]
            jacobian = {place: value for place, value in jacobian.items() if place[0] != row}
            jacobian[row, row] = ca.SX(1)

    lam = scheme.force_multipliers(unknown) if cells and m else ca.SX(0, 1)
    nonzeros = sorted(jacobian, key=lambda place: (place[1], place[0]))
    equations = StepEquations(
        x=x, z=z, c=c,
        residual=ca.vertcat(*residual),
        rows=np.array([row for row, _ in nonzeros], dtype=np.int64),
        columns=np.array([column for _, column in nonzeros], dtype=np.int64),
        jacobian=ca.vertcat(*(jacobian[place] for place in nonzeros)),
        end=ca.densify(ca.vertcat(q1, v1, *p1, supplied, dissipated, lam)),
        guess=ca.densify(ca.vertcat(*scheme.guess(old), *_first_multipliers(z[3 * n + 2 :], cells, m))),
        kinds=(n,) * blocks + (m,) * cells,
        row_names=_row_names(system, scheme),
        layout=system.layout,
        noise=ca.Function("noise", [x, z, c, e], [ca.vertcat(*noise)]),
        inside=_inside(scheme, old, unknown, h),
        error=_estimate(scheme, old, unknown, h),
    )  # fmt: skip
    return scheme.reduce(equations, system)


def _inside(scheme: ElementScheme, old: State, unknown: Any, h: Any) -> Any:
    theta = ca.SX.sym("theta")
    found = scheme.inside(old, unknown, h, theta)
    return None if found is None else (theta, {"q": found[0], "v": found[1]})


def _estimate(scheme: ElementScheme, old: State, unknown: Any, h: Any) -> Any:
    error = scheme.estimate(old, unknown, h)
    return None if error is None else (error, ca.fmax(ca.fabs(old.q), ca.fabs(scheme.end(old, unknown, h)[0])))


class _Part:
    """The share of one type of element with its Jacobian, as a function of local unknowns and state."""

    def __init__(self, scheme: ElementScheme, model: ElementModel) -> None:
        n, m = model.n, model.m
        x = ca.SX.sym("x", len(scheme.unknowns) * n + len(scheme.multipliers) * m)
        q, v, p, h, t = ca.SX.sym("q", n), ca.SX.sym("v", n), ca.SX.sym("p", n), ca.SX.sym("h"), ca.SX.sym("t")
        old = State(q=q, v=v, p=p)
        unknown = _named(scheme, x, n, m)
        q1, v1 = scheme.end(old, unknown, h)
        share = scheme.share(ElementEnergies(model), old, State(q=q1, v=v1), unknown, h, t)
        rows = ca.densify(ca.vertcat(*share.rows, *share.constraints))
        jacobian = _entries(ca.jacobian(rows, x))
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


def _named(scheme: ElementScheme, x: Any, n: int, m: int) -> SimpleNamespace:
    """The unknowns by the names the scheme gave them."""
    names = [(name, n) for name in scheme.unknowns] + [(name, m) for name in scheme.multipliers]
    ends = np.cumsum([0] + [size for _, size in names])
    blocks = {}
    for (name, size), a in zip(names, ends, strict=False):
        # an empty slice of a 1x1 matrix has one row and no column, which would count as a row
        blocks[name] = x[int(a) : int(a) + size] if size else ca.SX(0, 1)
    return SimpleNamespace(**blocks)


def _first_multipliers(lam: Any, cells: int, m: int) -> list[Any]:
    """The first block starts from the multipliers of the state; others, such as of hidden constraints, from zero."""
    return [lam, ca.SX((cells - 1) * m, 1)] if cells and m else []


def _entries(matrix: Any) -> dict[tuple[int, int], Any]:
    rows, columns = matrix.sparsity().get_triplet()
    return {(row, column): matrix[row, column] for row, column in zip(rows, columns, strict=True)}


def _row_names(system: System, scheme: ElementScheme) -> tuple[str, ...]:
    suffix = ["" if len(scheme.unknowns) == 1 else f" ({name})" for name in scheme.unknowns]
    balance = [f"balance of momentum of {c}{s}" for s in suffix for c in system.coordinates]
    suffix = ["" if len(scheme.multipliers) == 1 else f" ({name})" for name in scheme.multipliers]
    return (*balance, *(f"constraint {g}{s}" for s in suffix for g in system.constraint_names))
