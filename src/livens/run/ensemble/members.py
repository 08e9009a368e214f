"""Members of an ensemble: initial values and parameters as arrays, and their initial states."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from livens.engine.codegen.initial_state_kernel import InitialStateKernel, MatrixPattern
from livens.engine.compiled_step import CompiledStep, compiled_step
from livens.engine.ensemble.lane_run import InputTable
from livens.engine.ensemble.member_ordering import canonical_member
from livens.engine.newton.markowitz import SingularMatrixError, pivot_order
from livens.errors import InputError, LivensError
from livens.expressions.evaluate import Evaluator
from livens.models.base import InitialState, Model
from livens.models.equations_of_motion import equations_of_motion
from livens.models.initialization.derivative_array import TOLERANCE
from livens.models.system import System
from livens.run.plan import Plan
from livens.run.schedule import BoundSchedule, Schedule
from livens.run.stepping import split_interval
from livens.types import ArrayLike, Expr, FloatArray

#: Largest number of values of a block of matrices that is evaluated at once.
_BLOCK_VALUES = 4_000_000
#: Smallest ratio of smallest to largest pivot, and largest multiplier of the elimination, for which a matrix is
#: considered regular.
_MIN_PIVOT_RATIO, _MAX_PIVOT_GROWTH = 1e-7, 1e4


@dataclass(frozen=True)
class EnsembleMembers:
    """Common plan of all members, and their inputs: one row per member, or one row for all."""

    plan: Plan
    n_members: int
    initial_values: dict[str, np.ndarray]
    k: np.ndarray  # (member, parameter)
    inputs: InputTable = dataclasses.field(default_factory=InputTable.empty)

    @classmethod
    def from_plans(cls, plans: Sequence[Plan]) -> EnsembleMembers:
        """Collect plans with the same equations, scheme, step size, end time and output rows."""
        starts = {name: np.array([np.asarray(plan.start[name], float) for plan in plans]) for name in plans[0].start}
        return cls(plans[0], len(plans), starts, np.array([plan.k for plan in plans]))

    def parameters_with_largest_inputs(self, member: int) -> np.ndarray:
        """Return the parameters of a member, with the value of largest magnitude of each input over time."""
        if not self.inputs.entries.size:
            return np.asarray(self.k[member])
        k, rows = self.k[member].copy(), self.inputs.values[member if len(self.inputs.values) > 1 else 0]
        k[self.inputs.entries] = np.take_along_axis(rows, np.abs(rows).argmax(axis=0)[None], axis=0)[0]
        return k

    def initial_values_of(self, member: int) -> dict[str, np.ndarray]:
        return {name: rows[member if len(rows) > 1 else 0] for name, rows in self.initial_values.items()}


def parameter_rows(model: Model, shared: dict[str, object], values: dict[str, np.ndarray], count: int) -> np.ndarray:
    """Return the parameters of every member, shape (n_members, n_parameters)."""
    first_row = {name: rows[0] for name, rows in values.items()}
    k = np.repeat(
        model.parameter_vector({**shared, **first_row})[None], count, axis=0
    )  # names and shapes are checked here
    table = model.parameter_table
    for name, rows in values.items():
        if len(rows) > 1:
            if not np.isfinite(rows).all():
                raise InputError(f"parameter '{name}' must be finite in every member")
            for slice_ in table.lookup(name).slices:
                k[:, slice_] = rows.reshape(count, -1)
    return k


def input_table(plan: Plan, schedules: Sequence[Schedule], k: np.ndarray) -> InputTable:
    """Return the inputs of all members, or of each member, and set those of the first step in the parameters k."""
    n_regular, rest = split_interval(plan.h, plan.t0, plan.t_end)
    bound = [BoundSchedule(schedule, plan.model, plan.t0, plan.t_end, plan.h) for schedule in schedules]
    tables = [inputs.changes(k[i], plan.t0, n_regular + bool(rest)) for i, inputs in enumerate(bound)]
    steps, entries = tables[0][0], bound[0].indices
    for inputs, (own_steps, _) in zip(bound, tables, strict=True):
        if not (np.array_equal(inputs.indices, entries) and np.array_equal(own_steps, steps)):
            raise InputError("the inputs of all members must have the same names and sample times")
    values = np.array([rows for _, rows in tables])
    k[:, entries] = values[:, 0]
    return InputTable(steps, entries, values)


def initial_states(
    members: EnsembleMembers, vectorized: bool = True
) -> tuple[CompiledStep, np.ndarray, dict[int, str]]:
    """Return the compiled step, the initial state of every member (NaN if invalid), and error messages by member.

    Vectorised code for regular initial states is compiled for each model; otherwise they are those of single runs.
    """
    plan, reasons = members.plan, dict[int, str]()
    compiled = compiled_step(plan.model, plan.scheme)
    model, layout = compiled.model, compiled.layout
    z = np.full((members.n_members, layout.size), np.nan)
    valid = np.zeros(members.n_members, dtype=bool)
    if vectorized and isinstance(model, System) and set(members.initial_values) == {"q0", "v0"}:
        valid = _vectorized_initial_states(compiled, model, members, z)
    initial_by_member: dict[int, InitialState] = {}
    removed_constraints: tuple[int, ...] | None = () if valid.any() else None
    for i in np.flatnonzero(~valid):
        try:
            initial = model.initial_state(
                members.initial_values_of(int(i)), members.k[i], plan.t0, plan.project, plan.redundant
            )
        except LivensError as error:
            reasons[int(i)] = str(error)
            continue
        if removed_constraints is not None and initial.removed_constraints != removed_constraints:
            raise InputError("redundant constraints differ between members: simulate these members separately")
        initial_by_member[int(i)], removed_constraints = initial, initial.removed_constraints
    if removed_constraints:
        compiled = compiled_step(plan.model, plan.scheme, removed_constraints)
    for member, initial in initial_by_member.items():
        z[member] = compiled.layout.pack(initial.values)
    if compiled.scheme.completes_model_state or set(layout.sizes) - set(model.layout.sizes):
        _fill_scheme_state(compiled, members, z, initial_by_member)
    return compiled, z, reasons


def _vectorized_initial_states(
    compiled: CompiledStep, system: System, members: EnsembleMembers, z: np.ndarray
) -> np.ndarray:
    """Fill the states of members with regular initial conditions, vectorised.

    See `livens.models.initialization.dense` for one run.
    """
    n, layout, plan = system.n, compiled.layout, members.plan
    rows = {}
    for name in ("q0", "v0"):
        values = members.initial_values[name]
        if values.shape[1:] != (n,):
            return np.zeros(members.n_members, dtype=bool)  # the error is raised by the loop over members
        rows[name] = np.broadcast_to(values, (members.n_members, n))
    q, v = rows["q0"], rows["v0"]
    code = _initial_state_kernel(compiled, system, q, v, members.k, plan.t0)
    if code is None:
        return np.zeros(members.n_members, dtype=bool)
    valid = np.zeros(members.n_members, dtype=bool)
    block_size = max(1, _BLOCK_VALUES // code.width)
    for start in range(0, members.n_members, block_size):
        block_slice = slice(start, min(start + block_size, members.n_members))
        state = np.hstack([q[block_slice], v[block_slice], np.zeros_like(q[block_slice])])
        output = code(plan.t0, state, members.k[block_slice], np.zeros(2 + members.k.shape[1]))
        growth, largest, smallest = output[:, -3:].T
        block_valid = (output[:, 0] <= TOLERANCE) & (output[:, 1] <= TOLERANCE) & np.isfinite(output).all(axis=1)
        block_valid &= (growth <= _MAX_PIVOT_GROWTH) & (largest * _MIN_PIVOT_RATIO < smallest)
        parts = {
            "q": q[block_slice],
            "v": v[block_slice],
            "p": output[:, 4 : 4 + n],
            "multipliers": output[:, 4 + 2 * n : -3],
        }
        block = np.zeros((len(state), layout.size))
        for name, values in parts.items():
            block[:, layout[name]] = values
        z[block_slice] = np.where(block_valid[:, None], block, np.nan)
        valid[block_slice] = block_valid
    return valid


def _initial_state_kernel(
    compiled: CompiledStep, system: System, q: np.ndarray, v: np.ndarray, k: np.ndarray, t0: float
) -> InitialStateKernel | None:
    """Return the kernel of regular initial states; None if the acceleration matrix is singular.

    Pivots are chosen for the first member in sorted order, so that the result does not depend on the member order.
    """
    function, matrix, entries = compiled.cached("regular starts", lambda: _initial_state_function(system))
    reference_member = canonical_member(np.hstack([q, v]), k)
    values = entries(k[reference_member], q[reference_member], v[reference_member], t0)[0].ravel()
    try:
        order = pivot_order(matrix.jac_rows, matrix.jac_cols, values, matrix.size)
    except SingularMatrixError:
        return None
    return compiled.cached(("regular starts", order), lambda: InitialStateKernel(function, matrix, order))


def _initial_state_function(system: System) -> tuple[ca.Function, MatrixPattern, Evaluator]:
    """Return checks, momenta, nonzeros and right-hand side of the accelerations, with per-member parameters."""
    d, view = equations_of_motion(system), system.view
    checks, momenta, matrix, rhs = d.fast_initial_state
    sparse = ca.sparsify(ca.SX(matrix)) if system.m else ca.SX(0, 0)
    rows, columns = (np.array(part, dtype=np.int64) for part in sparse.sparsity().get_triplet())
    k = ca.SX.sym("k", system.parameter_count)
    outputs = [ca.densify(ca.vertcat(checks, momenta)), _column(sparse.nonzeros()), ca.densify(rhs)]
    outputs = outputs if system.m else [outputs[0], ca.SX(0, 1), ca.SX(0, 1)]
    member_outputs = [ca.substitute(ca.SX(part), d.k, k) for part in outputs]
    inputs = [k, view.state, ca.vertcat(ca.SX.sym("h"), view.t, view.k)]
    entries = Evaluator([k, d.q, d.v, d.t], [member_outputs[1]])
    return ca.Function("start", inputs, member_outputs), MatrixPattern(int(sparse.shape[0]), rows, columns), entries


def _column(values: list[Any]) -> Expr:
    return ca.vertcat(*values) if values else ca.SX(0, 1)


def _fill_scheme_state(
    compiled: CompiledStep, members: EnsembleMembers, z: np.ndarray, initial_by_member: dict[int, InitialState]
) -> None:
    """Fill the extra state of the scheme."""
    plan, layout = members.plan, compiled.layout
    scheme_state_of = scheme_state_function(compiled, plan.t0)
    for i in np.flatnonzero(np.isfinite(z).all(axis=1)):
        initial = initial_by_member.get(int(i))
        if initial is None:
            initial = InitialState(plan.t0, {name: z[i, layout[name]] for name in ("q", "v", "p", "multipliers")})
        for name, value in scheme_state_of(initial, members.k[i], plan.h).items():
            z[i, layout[name]] = value


SchemeStateFunction = Callable[[InitialState, np.ndarray, float], dict[str, Any]]


def scheme_state_function(compiled: CompiledStep, t0: float) -> SchemeStateFunction:
    """Return a function that computes the scheme's extra state from initial state, parameters and h; compiled once."""
    return compiled.cached(("memory", t0), lambda: _make_scheme_state_function(compiled, t0))


def _make_scheme_state_function(compiled: CompiledStep, t0: float) -> SchemeStateFunction:
    scheme, model, sizes = compiled.scheme, compiled.model, compiled.layout.sizes
    if "p" in sizes:
        q, p = ca.SX.sym("q", sizes["q"]), ca.SX.sym("p", sizes["p"])
        h: Any = ca.SX.sym("h")
        k = ca.SX.sym("k", model.parameter_count)
        expressions = scheme.symbolic_scheme_state(model, q, p, k, t0, h)
        if expressions:
            evaluate = Evaluator([q, p, k, h], list(expressions.values()))

            def scheme_state(initial: InitialState, k: np.ndarray, h: float) -> dict[str, Any]:
                values = evaluate(initial["q"], initial["p"], k, h)
                return {name: value.ravel() for name, value in zip(expressions, values, strict=True)}

            return scheme_state
    return lambda initial, k, h: scheme.initial_scheme_state(model, initial.values, k, initial.t, h)


# -- parsing of arguments ---------------------------------------------------------------------------------------------
MemberRows = dict[str, np.ndarray]


def parse_rows(
    model: Any, start: Mapping[str, Any], parameters: Mapping[str, Any] | None
) -> tuple[MemberRows, MemberRows, int]:
    """Return rows of initial values and parameters (one per member or one for all), and the number of members."""
    changes = {} if parameters is None else parameters
    if not isinstance(changes, Mapping):
        raise InputError(f"parameters must map names to values, got {changes!r}")
    starts = {name: _parse_member_rows(name, value, 1) for name, value in start.items() if value is not None}
    values = {}
    for name, value in changes.items():
        entry = model.parameter_table.entries.get(name) if isinstance(model, Model) else None
        values[name] = _parse_member_rows(f"parameter '{name}'", value, len(entry.shape) if entry is not None else 0)
    return starts, values, _count_members({**starts, **values})


def iterate_rows(
    model: Model, start: Mapping[str, object], parameters: Mapping[str, object] | None
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield initial values and parameters of each member."""
    starts, values, count = parse_rows(model, start, parameters)
    for i in range(count):
        yield member_row(starts, i), member_row(values, i)


def _parse_member_rows(name: str, value: ArrayLike, dimensions: int) -> np.ndarray:
    """Return an array with one row per member, or one row; a row has `dimensions` dimensions."""
    try:
        rows = np.array(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} must be numeric, one row per member, got {value!r}") from None
    if rows.ndim not in (dimensions, dimensions + 1):
        raise InputError(f"{name} must have {dimensions} dimensions, or {dimensions + 1} with one row per member")
    return rows if rows.ndim == dimensions + 1 else rows[None]


def _count_members(rows_by_name: Mapping[str, np.ndarray]) -> int:
    counts = {name: len(rows) for name, rows in rows_by_name.items() if len(rows) != 1}
    if len(set(counts.values())) > 1:
        listing = ", ".join(f"{name} {count}" for name, count in counts.items())
        raise InputError(f"inputs must have the same number of rows, or one row; got {listing}")
    return next(iter(counts.values()), 1)


def member_row(rows: Mapping[str, np.ndarray], i: int) -> dict[str, FloatArray] | dict[str, float]:
    return {name: values[i if len(values) > 1 else 0] for name, values in rows.items()}
