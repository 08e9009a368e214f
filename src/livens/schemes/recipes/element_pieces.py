"""Assembly plan of an element scheme: batches of coordinates, of multipliers, and of each element type."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import casadi as ca
import numpy as np

from livens.expressions.layout import Layout
from livens.models.system import System
from livens.schemes.recipes.element_equations import ElementEquations, Group, named
from livens.schemes.recipes.elements import ElementScheme, State
from livens.schemes.recipes.midpoint_velocity import MidpointVelocity
from livens.schemes.recipes.pieces import (
    Local,
    Piece,
    Pieces,
    carried_constraints,
    constraint_values,
    mapped,
    piece,
)
from livens.schemes.recipes.turning import unit_multiplier
from livens.schemes.step import Estimated


def element_pieces(equations: ElementEquations) -> Pieces:
    """Return the assembly plan of the step equations, which must be unreduced."""
    assert not equations.reductions, "equations with null-space reductions have no assembly plan"
    system, scheme, unknowns = equations.system, equations.scheme, equations.unknowns
    found = [_coordinates(equations), *(_elements(equations, group) for group in equations.groups)]
    if system.m and scheme.multipliers:
        found.append(_shown(equations))
    if equations.dropped and scheme.multipliers:
        found.append(_left_out(equations))
    found.append(ledger(equations.layout))
    blocks = len(scheme.unknowns)
    multiplier = np.arange(unknowns.size) >= blocks * system.n
    body = np.full(unknowns.size, -1)
    body[: blocks * system.n] = np.tile(connected_coordinates(system), blocks)
    guess = _Guess(equations)
    carried = _carried(equations)
    error, estimated = _estimate(equations)
    return Pieces(
        layout=equations.layout,
        unknowns=unknowns,
        pieces=tuple(p for p in found if p.rows.numel() or p.ends.numel()),
        kinds=(system.n,) * blocks + (system.m,) * len(scheme.multipliers),
        row_names=lambda: equations.row_names,
        multiplier=multiplier,
        body=body,
        guess=guess,
        inside=_inside(equations),
        error=error,
        estimated=estimated,
        memory=Layout(low=system.n, gap=system.m) if carried else Layout(),
        remember=_Remembered(equations) if carried else lambda z, c: np.zeros(0),
    )


def _carried(equations: ElementEquations) -> bool:
    """Return True if the constraints are ``g(q0 + h v_m)/h`` and use the compensated form ``(g0 + increment)/h``.

    g0 is the constraint residual of the previous step, and positions are summed with compensation. The multipliers are
    then free of the round-off of the positions, which would be divided by h^2.
    """
    return isinstance(equations.scheme, MidpointVelocity)


class _Remembered:
    """Compensation before the first step: constraint residuals of the initial positions."""

    def __init__(self, equations: ElementEquations) -> None:
        self._equations = equations

    def __call__(self, z: np.ndarray, c: np.ndarray) -> np.ndarray:
        system, q, k = self._equations.system, z[self._equations.layout["q"]], c[2:]
        memory = np.zeros(system.n + system.m)
        for group in self._equations.groups:
            if group.constraints.shape[1]:
                values = constraint_values(group.kernel.model, q[group.coordinates], float(c[1]), k[group.parameters])
                memory[system.n + group.constraints] = values
        return memory


def connected_coordinates(system: System) -> np.ndarray:
    """Return the body index of each coordinate; coordinates coupled by a kinetic energy belong to one body."""
    from scipy.sparse import coo_matrix  # slow import
    from scipy.sparse.csgraph import connected_components

    rows, columns = list[int](), list[int]()
    for model, index in zip(system.models, system.indices, strict=True):
        if not model.T.is_zero():
            rows += [index[0]] * len(index)
            columns += index
    graph = coo_matrix((np.ones(len(rows)), (rows, columns)), shape=(system.n, system.n))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)


def ledger(layout: Any) -> Piece:
    """Return the batch that copies the energy balance (supplied and dissipated energy); elements add to it."""
    local = Local.of(0, 2)
    places = np.array([[layout["supplied_energy"].start, layout["dissipated_energy"].start]])
    where = {"x": np.zeros((1, 0), dtype=np.int64), "z": places}
    return piece("ledger", local, ca.SX(0, 1), where, ends=[(local.z, places)])


def state_places(layout: Any, coordinates: np.ndarray) -> np.ndarray:
    """Return the indices of q, v and p of some coordinates in the state, part after part."""
    return np.concatenate([layout[part].start + coordinates for part in ("q", "v", "p")], axis=1)


def _coordinates(equations: ElementEquations) -> Piece:
    """Return the batch of the nodal equations, one instance per coordinate."""
    system, scheme, layout = equations.system, equations.scheme, equations.layout
    local = Local.of(len(scheme.unknowns), 3)
    rows, q1, v1, p1 = equations.own(local.x, local.z[0], local.z[1], local.z[2], local.h)
    each = np.arange(system.n)[:, None]
    x = np.concatenate([equations.unknowns[name].start + each for name in scheme.unknowns], axis=1)
    z = state_places(layout, each)
    if not _carried(equations):
        return piece("coordinates", local, rows, {"x": x, "z": z}, ends=[(ca.vertcat(q1, v1, p1), z)])
    sums = [(local.h * local.x[0], z[:, :1], each)]
    return piece("coordinates", local, rows, {"x": x, "z": z}, ends=[(ca.vertcat(v1, p1), z[:, 1:])], sums=sums)


def _elements(equations: ElementEquations, group: Group) -> Piece:
    scheme, layout, unknowns = equations.scheme, equations.layout, equations.unknowns
    kernel, n = group.kernel, group.kernel.model.n
    count = len(group.elements)
    x = np.concatenate(
        [unknowns[name].start + group.coordinates for name in scheme.unknowns]
        + [unknowns[name].start + group.constraints for name in scheme.multipliers],
        axis=1,
    )
    m = group.constraints.shape[1] if _carried(equations) else 0
    local = Local.of(x.shape[1], 3 * n, m, group.parameters.shape[1])
    arguments = local.x, local.z[:n], local.z[n : 2 * n], local.z[2 * n :], local.h, local.t, local.k
    rows, entries, momentum, work = kernel.function(*arguments)
    jacobian = ca.SX(rows.numel(), local.x.numel())
    for (row, column), a in zip(kernel.pattern, ca.vertsplit(entries) if kernel.pattern else [], strict=True):
        jacobian[row, column] = a
    ledgers = [layout["supplied_energy"].start, layout["dissipated_energy"].start]
    ends = [
        (momentum, layout["p"].start + group.coordinates),
        (work, np.tile(np.array(ledgers), (count, 1))),
    ]
    equation = x.copy()
    if equations.dropped and scheme.multipliers:
        left_out = np.isin(group.constraints, equations.dropped)
        equation[:, x.shape[1] - len(scheme.multipliers) * left_out.shape[1] :][
            np.tile(left_out, len(scheme.multipliers))
        ] = -1
    places = {"x": x, "z": state_places(layout, group.coordinates), "k": group.parameters}
    if not m:
        return piece("element", local, rows, places, equation, jacobian, ends)
    places["m"] = equations.system.n + group.constraints
    at = local.z[:n], local.h * local.x[:n], local.h, local.t, local.k
    closed, left, remembered = carried_constraints(kernel.model, rows[n:], list(range(m)), local.m, at)
    keeps = [(left, places["m"][:, remembered])]
    carried = ca.vertcat(rows[:n], closed)
    return piece("element", local, carried, places, equation, jacobian, ends, keeps, plain=ca.densify(rows))


def _shown(equations: ElementEquations) -> Piece:
    """Return the batch that writes the reported multipliers."""
    scheme, each = equations.scheme, np.arange(equations.system.m)[:, None]
    x = np.concatenate([equations.unknowns[name].start + each for name in scheme.multipliers], axis=1)
    local = Local.of(x.shape[1], 0)
    blocks = SimpleNamespace(**{name: local.x[i] for i, name in enumerate(scheme.multipliers)})
    shown = equations.layout["multipliers"].start + each
    return piece("multipliers", local, ca.SX(0, 1), {"x": x}, ends=[(scheme.force_multipliers(blocks), shown)])


def _left_out(equations: ElementEquations) -> Piece:
    """Return the batch that sets the multipliers of removed constraints to zero."""
    dropped = np.array(equations.dropped)
    x = np.concatenate([equations.unknowns[name].start + dropped for name in equations.scheme.multipliers])[:, None]
    local = Local.of(1, 0)
    return piece("left out", local, local.x, {"x": x})


# -- initial guess, dense output and error estimate, batched over coordinates -----------------------------------------
class _Guess:
    """Initial guess of the scheme, batched version of `ElementEquations`."""

    def __init__(self, equations: ElementEquations) -> None:
        self._equations = equations
        scheme, h = equations.scheme, ca.SX.sym("h")
        old = State(q=ca.SX.sym("q"), v=ca.SX.sym("v"), p=ca.SX.sym("p"))
        blocks = ca.vertcat(*(ca.densify(ca.SX(block)) for block in scheme.guess(old, h)))
        self._coordinate = ca.Function("guess", [old.q, old.v, old.p, h], [blocks])
        lam = ca.SX.sym("lam")
        values = ca.vertcat(*(ca.SX(scheme.multiplier_guess(name, lam)) for name in scheme.multipliers), ca.SX(0, 1))
        self._multiplier = ca.Function("multipliers", [lam], [ca.densify(values)])
        self._turned = self._quaternion(h) if equations.system.quaternions else None

    def _quaternion(self, h: Any) -> ca.Function | None:
        four = State(q=ca.SX.sym("q", 4), v=ca.SX.sym("v", 4), p=ca.SX.sym("p", 4))
        turned = self._equations.scheme.quaternion_guess(four, h)
        return None if turned is None else ca.Function("turned", [four.q, four.v, four.p, h], [ca.vertcat(*turned)])

    def __call__(self, z: np.ndarray, c: np.ndarray, residual: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        equations = self._equations
        system, scheme, layout, unknowns, h = (
            equations.system, equations.scheme, equations.layout, equations.unknowns, float(c[0])
        )  # fmt: skip
        q, v, p = (z[layout[name]] for name in ("q", "v", "p"))
        x = np.zeros(unknowns.size)
        n, blocks = system.n, len(scheme.unknowns)
        (values,) = mapped(self._coordinate, n, q[None], v[None], p[None], h)
        x[: blocks * n] = values.ravel()
        if self._turned is not None:
            fours = np.array(system.quaternions)
            (values,) = mapped(self._turned, len(fours), q[fours].T, v[fours].T, p[fours].T, h)
            for block in range(blocks):
                x[block * n + fours] = values[4 * block : 4 * block + 4].T
        if system.m and scheme.multipliers:
            (values,) = mapped(self._multiplier, system.m, z[layout["multipliers"]][None])
            x[blocks * n :] = values.ravel()
        if type(scheme).refine is not ElementScheme.refine:
            for name, block in scheme.refine(*self._blocks(x, residual(x))).items():
                x[unknowns[name]] = np.array(block).ravel()
        if scheme.balance and system.quaternions:
            self._unit_multipliers(x, q, h, residual)
        return x

    def _blocks(self, x: np.ndarray, r: np.ndarray) -> tuple[Any, Any]:
        """Return unknowns and residual by name."""
        scheme, n, m = self._equations.scheme, self._equations.system.n, self._equations.system.m
        return named(scheme, ca.DM(x), n, m), named(scheme, ca.DM(r), n, m)

    def _unit_multipliers(self, x: np.ndarray, q: np.ndarray, h: float, residual: Any) -> None:
        """Set the unit-norm multipliers of quaternions, which are large and change their sign from step to step."""
        equations, system, scheme = self._equations, self._equations.system, self._equations.scheme
        places = equations.unknowns[scheme.multipliers[0]].start + np.array(system.quaternion_constraints)
        x[places] = 0.0
        r = residual(x)
        fours = np.array(system.quaternions)
        first = x[equations.unknowns[scheme.unknowns[0]]]
        q_m = q[fours] + h / 2 * first[fours]
        balance = r[equations.unknowns[scheme.balance]][fours]
        one = ca.SX.sym("q", 4), ca.SX.sym("r", 4), ca.SX.sym("h")
        (values,) = mapped(ca.Function("unit", one, [unit_multiplier(*one)]), len(fours), q_m.T, balance.T, h)
        x[places] = values.ravel()


def _one_coordinate(equations: ElementEquations) -> tuple[Any, State, Any]:
    x, h = ca.SX.sym("x", len(equations.scheme.unknowns)), ca.SX.sym("h")
    return x, State(q=ca.SX.sym("q"), v=ca.SX.sym("v"), p=ca.SX.sym("p")), h


def _columns(equations: ElementEquations, x: np.ndarray, z: np.ndarray) -> list[np.ndarray]:
    n, blocks = equations.system.n, len(equations.scheme.unknowns)
    return [x[: blocks * n].reshape(blocks, n), *(z[equations.layout[name]][None] for name in ("q", "v", "p"))]


def _inside(equations: ElementEquations) -> Any:
    x, old, h = _one_coordinate(equations)
    theta = ca.SX.sym("theta")
    found = equations.scheme.inside(old, named(equations.scheme, x, 1, 0), h, theta)
    if found is None:
        return None
    function = ca.Function("inside", [x, old.q, old.v, old.p, h, theta], [ca.densify(part) for part in found])

    def inside(x: np.ndarray, z: np.ndarray, c: np.ndarray, theta: float) -> dict[str, np.ndarray]:
        values = mapped(function, equations.system.n, *_columns(equations, x, z), float(c[0]), theta)
        return dict(zip(("q", "v"), (value.ravel() for value in values), strict=True))

    return inside


def _estimate(equations: ElementEquations) -> tuple[Any, Estimated | None]:
    """Return the error estimate of the scheme per coordinate, with its metadata."""
    x, old, h = _one_coordinate(equations)
    scheme, unknown = equations.scheme, named(equations.scheme, x, 1, 0)
    found = scheme.estimate(old, unknown, h)
    if found is None:
        return None, None
    size = ca.fmax(ca.fabs(old.q), ca.fabs(scheme.end(old, unknown, h)[0]))
    function = ca.Function("error", [x, old.q, old.v, old.p, h], [ca.densify(found), ca.densify(size)])
    names = tuple(equations.system.coordinates)

    def error(x: np.ndarray, z: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values = mapped(function, equations.system.n, *_columns(equations, x, z), float(c[0]))
        return values[0].ravel(), values[1].ravel()

    return error, Estimated(names, scheme.estimate_order, (0,) * len(names), False)
