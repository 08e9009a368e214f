"""Members of an ensemble: initial values and parameters as arrays, and their initial states."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from livens.engine.compiled import CompiledStep, compiled_step
from livens.engine.member_order import first_member
from livens.engine.pivots import SingularMatrixError, pivot_order
from livens.engine.starts import Linear, StartCode
from livens.errors import InputError, LivensError
from livens.expressions.evaluate import Evaluator
from livens.models.consistent import TOLERANCE
from livens.models.model import InitialState, Model
from livens.models.summed import dynamics
from livens.models.system import System
from livens.run.plan import Plan

#: Largest number of values of a block of matrices that is evaluated at once.
_SLAB = 4_000_000
#: Smallest ratio of smallest to largest pivot, and largest multiplier of the elimination, for which a matrix is
#: considered regular.
_REGULAR, _GROWTH = 1e-7, 1e4


@dataclass(frozen=True)
class Members:
    """Common plan of all members, and their inputs: one row per member, or one row for all."""

    plan: Plan
    count: int
    starts: dict[str, np.ndarray]
    k: np.ndarray  # (member, parameter)

    @classmethod
    def of(cls, plans: Sequence[Plan]) -> Members:
        """Collect plans with the same equations, scheme, step size, end time and output rows."""
        starts = {name: np.array([np.asarray(plan.start[name], float) for plan in plans]) for name in plans[0].start}
        return cls(plans[0], len(plans), starts, np.array([plan.k for plan in plans]))

    def start(self, member: int) -> dict[str, np.ndarray]:
        return {name: rows[member if len(rows) > 1 else 0] for name, rows in self.starts.items()}


def parameter_rows(model: Model, own: dict[str, Any], values: dict[str, np.ndarray], count: int) -> np.ndarray:
    """Return the parameters of every member, shape (n_members, n_parameters)."""
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
    """Return the compiled step, the initial state of every member (NaN if invalid), and error messages by member."""
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
            raise InputError("redundant constraints differ between members: simulate these members separately")
        begun[int(i)], dropped = found, found.dropped
    if dropped:
        compiled = compiled_step(plan.model, plan.scheme, dropped)
    for member, found in begun.items():
        z[member] = compiled.layout.vector(found.values)
    if set(layout.sizes) - set(model.layout.sizes):
        _remember(compiled, members, z, begun)
    return compiled, z, reasons


def _regular(compiled: CompiledStep, system: System, members: Members, z: np.ndarray) -> np.ndarray:
    """Fill the states of members with regular initial conditions, vectorised; see `livens.models.start` for one run."""
    n, layout, plan = system.n, compiled.layout, members.plan
    rows = {}
    for name in ("q0", "v0"):
        values = members.starts[name]
        if values.shape[1:] != (n,):
            return np.zeros(members.count, dtype=bool)  # the error is raised by the loop over members
        rows[name] = np.broadcast_to(values, (members.count, n))
    q, v = rows["q0"], rows["v0"]
    code = _start_code(compiled, system, q, v, members.k, plan.t0)
    if code is None:
        return np.zeros(members.count, dtype=bool)
    good = np.zeros(members.count, dtype=bool)
    slab = max(1, _SLAB // code.width)
    for first in range(0, members.count, slab):
        here = slice(first, min(first + slab, members.count))
        state = np.hstack([q[here], v[here], np.zeros_like(q[here])])
        found = code(plan.t0, state, members.k[here], np.zeros(2 + members.k.shape[1]))
        growth, largest, smallest = found[:, -3:].T
        fine = (found[:, 0] <= TOLERANCE) & (found[:, 1] <= TOLERANCE) & np.isfinite(found).all(axis=1)
        fine &= (growth <= _GROWTH) & (largest * _REGULAR < smallest)
        parts = {"q": q[here], "v": v[here], "p": found[:, 4 : 4 + n], "multipliers": found[:, 4 + 2 * n : -3]}
        block = np.zeros((len(state), layout.size))
        for name, values in parts.items():
            block[:, layout[name]] = values
        z[here] = np.where(fine[:, None], block, np.nan)
        good[here] = fine
    return good


def _start_code(
    compiled: CompiledStep, system: System, q: np.ndarray, v: np.ndarray, k: np.ndarray, t0: float
) -> StartCode | None:
    """Return the kernel of regular initial states; None if the acceleration matrix is singular.

    Pivots are chosen for the first member in sorted order, so that the result does not depend on the member order.
    """
    function, matrix, entries = compiled.once("regular starts", lambda: _start_function(system))
    first = first_member(np.hstack([q, v]), k)
    values = entries(k[first], q[first], v[first], t0)[0].ravel()
    try:
        order = pivot_order(matrix.rows, matrix.columns, values, matrix.size)
    except SingularMatrixError:
        return None
    return compiled.once(("regular starts", order), lambda: StartCode(function, matrix, order))


def _start_function(system: System) -> tuple[ca.Function, Linear, Evaluator]:
    """Return checks, momenta, nonzeros and right-hand side of the accelerations, with per-member parameters."""
    d, view = dynamics(system), system.view
    checks, momenta, matrix, right = d.regular_start
    sparse = ca.sparsify(ca.SX(matrix)) if system.m else ca.SX(0, 0)
    rows, columns = (np.array(part, dtype=np.int64) for part in sparse.sparsity().get_triplet())
    k = ca.SX.sym("k", system.parameter_count)
    together = [ca.densify(ca.vertcat(checks, momenta)), _column(sparse.nonzeros()), ca.densify(right)]
    together = together if system.m else [together[0], ca.SX(0, 1), ca.SX(0, 1)]
    own = [ca.substitute(ca.SX(part), d.k, k) for part in together]
    inputs = [k, view.state, ca.vertcat(ca.SX.sym("h"), view.t, view.k)]
    entries = Evaluator([k, d.q, d.v, d.t], [own[1]])
    return ca.Function("start", inputs, own), Linear(int(sparse.shape[0]), rows, columns), entries


def _column(values: list[Any]) -> Any:
    return ca.vertcat(*values) if values else ca.SX(0, 1)


def _remember(compiled: CompiledStep, members: Members, z: np.ndarray, begun: dict[int, InitialState]) -> None:
    """Fill the extra state of the scheme."""
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
    """Return a function that computes the scheme's extra state from initial state, parameters and h; compiled once."""
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


# -- parsing of arguments ---------------------------------------------------------------------------------------------
Rows = dict[str, np.ndarray]


def read_rows(model: Any, start: Mapping[str, Any], parameters: Mapping[str, Any] | None) -> tuple[Rows, Rows, int]:
    """Return rows of initial values and parameters (one per member or one for all), and the number of members."""
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
    """Yield initial values and parameters of each member."""
    starts, values, count = read_rows(model, start, parameters)
    for i in range(count):
        yield member_of(starts, i), member_of(values, i)


def _rows(name: str, value: Any, dimensions: int) -> np.ndarray:
    """Return an array with one row per member, or one row; a row has `dimensions` dimensions."""
    try:
        found = np.array(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} must be numeric, one row per member, got {value!r}") from None
    if found.ndim not in (dimensions, dimensions + 1):
        raise InputError(f"{name} must have {dimensions} dimensions, or {dimensions + 1} with one row per member")
    return found if found.ndim == dimensions + 1 else found[None]


def _members(given: Mapping[str, np.ndarray]) -> int:
    counts = {name: len(rows) for name, rows in given.items() if len(rows) != 1}
    if len(set(counts.values())) > 1:
        told = ", ".join(f"{name} {count}" for name, count in counts.items())
        raise InputError(f"inputs must have the same number of rows, or one row; got {told}")
    return next(iter(counts.values()), 1)


def member_of(rows: Mapping[str, np.ndarray], i: int) -> dict[str, Any]:
    return {name: found[i if len(found) > 1 else 0] for name, found in rows.items()}
