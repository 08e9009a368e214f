"""Runs that differ in numbers only, as columns of numbers, and where each of them starts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
from scipy.linalg import lapack

from livens.engine.compiled import CompiledStep, compiled_step
from livens.engine.table import Table
from livens.errors import InputError, LivensError
from livens.expressions.evaluate import Evaluator
from livens.models.model import InitialState, Model
from livens.models.start import TOLERANCE
from livens.models.summed import dynamics
from livens.models.system import System
from livens.run.plan import Plan

#: Matrices with at most this many numbers are looked at together.
_SLAB = 4_000_000
#: A matrix whose reciprocal condition is greater than this is regular beyond doubt.
_REGULAR = 1e-8
#: Matrices of up to this many rows are inverted all at once; larger ones are factorised one by one.
_SMALL = 12


@dataclass(frozen=True)
class Members:
    """What all runs have in common, and the numbers in which they differ: one row for each, or one for all."""

    plan: Plan
    count: int
    starts: dict[str, np.ndarray]
    k: np.ndarray  # (member, parameter)

    @classmethod
    def of(cls, plans: Sequence[Plan]) -> Members:
        """Plans with the same equations, scheme, step, end and rows."""
        starts = {name: np.array([np.asarray(plan.start[name], float) for plan in plans]) for name in plans[0].start}
        return cls(plans[0], len(plans), starts, np.array([plan.k for plan in plans]))

    def start(self, member: int) -> dict[str, np.ndarray]:
        return {name: rows[member if len(rows) > 1 else 0] for name, rows in self.starts.items()}


def parameter_rows(model: Model, own: dict[str, Any], values: dict[str, np.ndarray], count: int) -> np.ndarray:
    """All parameters of every member: those they have in common, and columns of those that differ."""
    first = {name: rows[0] for name, rows in values.items()}
    k = np.repeat(model.parameter_vector({**own, **first})[None], count, axis=0)  # names and shapes are checked here
    table = model.parameter_table
    for name, rows in values.items():
        if len(rows) > 1:
            if not np.isfinite(rows).all():
                raise InputError(f"parameter '{name}' must be finite in every member")
            for place in table.find(name).places:
                k[:, place] = rows.reshape(count, -1)
    return k


def first_states(members: Members) -> tuple[CompiledStep, np.ndarray, dict[int, str]]:
    """The compiled step, the first state of every member, and why some have none."""
    plan, reasons = members.plan, dict[int, str]()
    compiled = compiled_step(plan.model, plan.scheme)
    model, layout = compiled.model, compiled.layout
    z = np.full((members.count, layout.size), np.nan)
    good = np.zeros(members.count, dtype=bool)
    if isinstance(model, System) and set(members.starts) == {"q0", "v0"}:
        good = _regular(compiled, model, members, z)
    begun: dict[int, InitialState] = {}
    dropped: tuple[int, ...] | None = () if good.any() else None
    for i in np.flatnonzero(~good):
        try:
            found = model.start(members.start(int(i)), members.k[i], plan.t0, plan.project, plan.redundant)
        except LivensError as error:
            reasons[int(i)] = str(error)
            continue
        if dropped is not None and found.dropped != dropped:
            raise InputError("other constraints are redundant in some members than in others: run them by themselves")
        begun[int(i)], dropped = found, found.dropped
    if dropped:
        compiled = compiled_step(plan.model, plan.scheme, dropped)
    for member, found in begun.items():
        z[member] = compiled.layout.vector(found.values)
    if set(layout.sizes) - set(model.layout.sizes):
        _remember(compiled, members, z, begun)
    return compiled, z, reasons


def _regular(compiled: CompiledStep, system: System, members: Members, z: np.ndarray) -> np.ndarray:
    """Fill in the states of members that start without any trouble, as `livens.models.start` does for one of them."""
    n, m, layout, plan = system.n, system.m, compiled.layout, members.plan
    rows = {}
    for name in ("q0", "v0"):
        values = members.starts[name]
        if values.shape[1:] != (n,):
            return np.zeros(members.count, dtype=bool)  # what is wrong is said where they start one by one
        rows[name] = np.broadcast_to(values, (members.count, n))
    table: Table = compiled.once("regular starts", lambda: _start_table(system))
    good = np.zeros(members.count, dtype=bool)
    slab = max(1, _SLAB // table.width)
    for first in range(0, members.count, slab):
        here = slice(first, min(first + slab, members.count))
        q, v, k = rows["q0"][here], rows["v0"][here], members.k[here]
        state = np.hstack([q, v, np.zeros_like(q)])
        found = table(np.full(len(q), plan.t0), state, k[0], X=np.ascontiguousarray(k))
        fine = (found[:, 0] <= TOLERANCE) & (found[:, 1] <= TOLERANCE) & np.isfinite(found[:, 3])
        multipliers = np.zeros((len(q), m))
        if m:
            A = found[:, 4 + n : 4 + n + (n + m) ** 2].reshape(-1, n + m, n + m).transpose(0, 2, 1)
            regular, solutions = _solved(A, found[:, 4 + n + (n + m) ** 2 :], fine)
            fine &= regular
            multipliers = solutions[:, n:]
        parts = {"q": q, "v": v, "p": found[:, 4 : 4 + n], "multipliers": multipliers}
        block = np.zeros((len(q), layout.size))
        for name, values in parts.items():
            block[:, layout[name]] = values
        z[here] = np.where(fine[:, None], block, np.nan)
        good[here] = fine
    return good


def _solved(A: np.ndarray, b: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which of many matrices are regular beyond doubt, and the solutions with those; all at once if they are small."""
    regular, solutions = np.zeros(len(A), dtype=bool), np.zeros_like(b)
    if A.shape[1] <= _SMALL:
        A = np.where(wanted[:, None, None], A, np.eye(A.shape[1]))
        try:
            inverse = np.linalg.inv(A)
        except np.linalg.LinAlgError:
            return regular, solutions  # a closer look is needed, one by one
        size = np.abs(A).sum(axis=1).max(axis=1) * np.abs(inverse).sum(axis=1).max(axis=1)
        return wanted & (size * _REGULAR < 1.0), np.einsum("aij,aj->ai", inverse, b)
    for i in np.flatnonzero(wanted):
        factors, pivots, info = lapack.dgetrf(A[i])
        if not info and lapack.dgecon(factors, np.abs(A[i]).sum(axis=0).max())[0] > _REGULAR:
            regular[i], solutions[i] = True, lapack.dgetrs(factors, pivots, b[i])[0].ravel()
    return regular, solutions


def _start_table(system: System) -> Table:
    """What a start without any trouble needs, of members with parameters of their own."""
    d = dynamics(system)
    checks, momenta, matrix, right = d.regular_start
    columns = [checks, momenta, *([ca.vec(ca.densify(matrix)), right] if system.m else [])]
    k = ca.SX.sym("k", system.parameter_count)
    together = ca.substitute(ca.vertcat(*(ca.densify(part) for part in columns)), d.k, k)
    return Table(system, together, k)


def _remember(compiled: CompiledStep, members: Members, z: np.ndarray, begun: dict[int, InitialState]) -> None:
    """What the scheme adds to the states."""
    plan, layout = members.plan, compiled.layout
    memory = memory_of(compiled, plan.t0)
    for i in np.flatnonzero(np.isfinite(z).all(axis=1)):
        found = begun.get(int(i))
        if found is None:
            found = InitialState(plan.t0, {name: z[i, layout[name]] for name in ("q", "v", "p", "multipliers")})
        for name, value in memory(found, members.k[i], plan.h).items():
            z[i, layout[name]] = value


Memory = Callable[[InitialState, np.ndarray, float], dict[str, Any]]


def memory_of(compiled: CompiledStep, t0: float) -> Memory:
    """What the scheme adds to a first state, of given parameters and h: by expressions, if there are any, made once."""
    return compiled.once(("memory", t0), lambda: _memory(compiled, t0))


def _memory(compiled: CompiledStep, t0: float) -> Memory:
    scheme, model, sizes = compiled.scheme, compiled.model, compiled.layout.sizes
    if "p" in sizes:
        q, p = ca.SX.sym("q", sizes["q"]), ca.SX.sym("p", sizes["p"])
        h: Any = ca.SX.sym("h")
        k = ca.SX.sym("k", model.parameter_count)
        expressions = scheme.memory_expressions(model, q, p, k, t0, h)
        if expressions:
            evaluate = Evaluator([q, p, k, h], list(expressions.values()))

            def evaluated(initial: InitialState, k: np.ndarray, h: float) -> dict[str, Any]:
                found = evaluate(initial["q"], initial["p"], k, h)
                return {name: value.ravel() for name, value in zip(expressions, found, strict=True)}

            return evaluated
    return lambda initial, k, h: scheme.memory(model, initial.values, k, initial.t, h)


# -- as users give them -----------------------------------------------------------------------------------------------
Rows = dict[str, np.ndarray]


def read_rows(model: Any, start: Mapping[str, Any], parameters: Mapping[str, Any] | None) -> tuple[Rows, Rows, int]:
    """Initial values and parameters, one row for each member or one for all, and how many members there are."""
    changes = {} if parameters is None else parameters
    if not isinstance(changes, Mapping):
        raise InputError(f"parameters must map names to values, got {changes!r}")
    starts = {name: _rows(name, value, 1) for name, value in start.items() if value is not None}
    values = {}
    for name, value in changes.items():
        entry = model.parameter_table.entries.get(name) if isinstance(model, Model) else None
        values[name] = _rows(f"parameter '{name}'", value, len(entry.shape) if entry is not None else 0)
    return starts, values, _members({**starts, **values})


def rows_of(
    model: Model, start: Mapping[str, Any], parameters: Mapping[str, Any] | None
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Initial values and parameters of one member after the other."""
    starts, values, count = read_rows(model, start, parameters)
    for i in range(count):
        yield member_of(starts, i), member_of(values, i)


def _rows(name: str, value: Any, dimensions: int) -> np.ndarray:
    """Numbers of one or of many members; those of one have `dimensions` dimensions."""
    try:
        found = np.array(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} must be numbers, one row for each member, got {value!r}") from None
    if found.ndim not in (dimensions, dimensions + 1):
        raise InputError(f"{name} must have {dimensions} dimensions, or {dimensions + 1} with one row for each member")
    return found if found.ndim == dimensions + 1 else found[None]


def _members(given: Mapping[str, np.ndarray]) -> int:
    counts = {name: len(rows) for name, rows in given.items() if len(rows) != 1}
    if len(set(counts.values())) > 1:
        told = ", ".join(f"{name} {count}" for name, count in counts.items())
        raise InputError(f"every member needs a row of each: there are {told}")
    return next(iter(counts.values()), 1)


def member_of(rows: Mapping[str, np.ndarray], i: int) -> dict[str, Any]:
    return {name: found[i if len(found) > 1 else 0] for name, found in rows.items()}
