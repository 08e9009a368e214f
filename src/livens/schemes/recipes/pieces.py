"""Assembly plan of a step: batched element kernels with index tables.

An `ElementBatch` is one kernel with index tables: local unknowns, state and parameters in; contributions to residual,
Jacobian and final state out, scattered by the tables. The size of the generated code does not depend on the number of
elements, as the system is never written as one graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np

from livens.expressions.graph.increments import increments
from livens.expressions.graph.roundoff import roundoff_bound
from livens.expressions.layout import Layout
from livens.schemes.step import Estimated

#: Arguments of a kernel, in this order.
ARGUMENTS = ("x", "z", "m", "h", "t", "k")
#: Absolute tolerance of compensated constraint residuals, in units of half an ulp of 1.
_REMEMBERED = 4.0


@dataclass(frozen=True)
class Local:
    """Symbols of one kernel: unknowns, state, compensation, step size, time, parameters."""

    x: Any
    z: Any
    m: Any
    h: Any
    t: Any
    k: Any

    @classmethod
    def of(cls, x: int, z: int, m: int = 0, k: int = 0) -> Local:
        """Return new symbols of these sizes."""
        return cls(symbols("x", x), symbols("z", z), symbols("m", m), ca.SX.sym("h"), ca.SX.sym("t"), symbols("k", k))

    @property
    def all(self) -> list[Any]:
        return [self.x, self.z, self.m, self.h, self.t, self.k]


def symbols(name: str, count: int) -> Any:
    """Return a column of symbols; an empty column has shape (0, 1)."""
    return ca.SX.sym(name, count) if count else ca.SX(0, 1)


def _no_places(count: int) -> np.ndarray:
    return np.zeros((count, 0), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Piece:
    """Element kernel with one row of indices per instance.

    `residual` and `jac_values`, the nonzeros of its Jacobian at `jac_pattern`, are added to the equations
    `equation_dofs`; the index -1 skips an equation. `final_state` is added to the state at t + h, `compensation` to the
    compensation there. With `update = (y, x(y))`, the Newton system is solved for variations y of the unknowns, and
    x(y) is the increment of the unknowns.
    """

    name: str
    local: Local
    rows: Any
    entries: Any
    pattern: tuple[tuple[int, int], ...]
    x: np.ndarray  # indices of the unknowns
    z: np.ndarray  # indices in the state at t
    k: np.ndarray  # indices of the parameters
    m: np.ndarray  # indices in the compensation
    equations: np.ndarray
    ends: Any = field(default_factory=lambda: ca.SX(0, 1))
    end_places: np.ndarray = field(default_factory=lambda: _no_places(1))
    keeps: Any = field(default_factory=lambda: ca.SX(0, 1))
    keep_places: np.ndarray = field(default_factory=lambda: _no_places(1))
    turn: tuple[Any, Any] | None = None  # (variations, increments of all unknowns of the batch)
    #: Increments of the state for compensated summation: the rounding errors are part of the compensation.
    sums: Any = field(default_factory=lambda: ca.SX(0, 1))
    sum_places: np.ndarray = field(default_factory=lambda: _no_places(1))
    low_places: np.ndarray = field(default_factory=lambda: _no_places(1))
    #: Symbols of the sum of the contributions of force batches (`is_force`); the final state may depend on them.
    impulse: Any = None
    force: bool = False
    #: Residual without compensation. Its round-off at positions of size one is an acceptable residual, as the remainder
    #: is stored in the compensation and corrected in the next step.
    plain: Any = None

    @property
    def count(self) -> int:
        return len(self.x)

    def noise(self, library: int = 1) -> tuple[Any, Any]:
        """Return (errors of the unknowns, round-off bound of the residual and of its assembly), in units of UNIT."""
        e = symbols("e", self.local.x.numel())
        function = ca.Function("rows", self.local.all, [self.rows])
        errors = [e, *(ca.fabs(argument) for argument in self.local.all[1:])]
        bound = ca.densify(roundoff_bound(function, self.local.all, errors, library))
        if self.plain is not None:
            direct = roundoff_bound(ca.Function("rows", self.local.all, [self.plain]), self.local.all, errors, library)
            bound = ca.fmax(bound, ca.fmin(ca.densify(direct), _REMEMBERED / ca.fabs(self.local.h)))
        return e, bound + ca.fabs(self.rows)


def piece(
    name: str,
    local: Local,
    rows: Any,
    places: dict[str, np.ndarray],
    equations: np.ndarray | None = None,
    jacobian: Any = None,
    ends: Sequence[tuple[Any, np.ndarray]] = (),
    keeps: Sequence[tuple[Any, np.ndarray]] = (),
    turn: tuple[Any, Any] | None = None,
    sums: Sequence[tuple[Any, np.ndarray, np.ndarray]] = (),
    impulse: Any = None,
    force: bool = False,
    plain: Any = None,
) -> Piece:
    """Return a batch; the Jacobian is derived unless given, and entries that are identically zero are left out.

    `dofs` are the index tables of x, z, k and m, one row per instance; equations are numbered like unknowns by default.
    `final_state` and `compensation` are expressions with index tables; `increments` are increments with the indices of
    the sum and of its rounding error.
    """
    count = len(places["x"])
    rows = ca.densify(rows)
    jacobian = ca.sparsify(ca.jacobian(rows, local.x) if jacobian is None else jacobian)
    pattern = tuple(zip(*jacobian.sparsity().get_triplet(), strict=True)) if jacobian.nnz() else ()
    entries = ca.SX(jacobian.nz[:]) if pattern else ca.SX(0, 1)
    used = [i for i in range(rows.numel()) if not ca.SX(rows[i]).is_zero()]
    if len(used) < rows.numel():  # the Jacobian of an identically zero row is zero
        number = {row: i for i, row in enumerate(used)}
        pattern = tuple((number[row], column) for row, column in pattern)
        rows = rows[used] if used else ca.SX(0, 1)
        plain = plain[used] if plain is not None and used else None
    equations = places["x"] if equations is None else equations
    where = {name: places.get(name, _no_places(count)) for name in ("x", "z", "k", "m")}
    added, added_places = _nonzero(ends, count)
    kept, kept_places = _nonzero(keeps, count)
    return Piece(
        name=name,
        local=local,
        rows=rows,
        entries=entries,
        pattern=pattern,
        equations=equations[:, used],
        ends=added,
        end_places=added_places,
        keeps=kept,
        keep_places=kept_places,
        turn=turn,
        sums=ca.densify(ca.vertcat(*(part for part, _, _ in sums))) if sums else ca.SX(0, 1),
        sum_places=np.concatenate([z for _, z, _ in sums], axis=1) if sums else _no_places(count),
        low_places=np.concatenate([low for _, _, low in sums], axis=1) if sums else _no_places(count),
        impulse=impulse,
        force=force,
        plain=plain,
        x=where["x"],
        z=where["z"],
        k=where["k"],
        m=where["m"],
    )


def _nonzero(parts: Sequence[tuple[Any, np.ndarray]], count: int) -> tuple[Any, np.ndarray]:
    values, columns = [], []
    for expression, places in parts:
        dense = ca.densify(expression)
        for i in range(dense.numel()):
            if not ca.SX(dense[i]).is_zero():
                values.append(ca.SX(dense[i]))
                columns.append(places[:, i])
    if not values:
        return ca.SX(0, 1), _no_places(count)
    return ca.vertcat(*values), np.stack(columns, axis=1)


@dataclass(frozen=True, eq=False)
class Pieces:
    """Assembly plan: all batches of a step, block structure, initial guess and optional outputs."""

    layout: Layout  # layout of the state
    unknowns: Layout
    pieces: tuple[Piece, ...]
    kinds: tuple[int, ...]  # sizes of consecutive blocks of unknowns
    row_names: Callable[[], tuple[str, ...]]
    #: Mask of the multipliers; for other unknowns the index of the body, or group of coordinates, else -1.
    multiplier: np.ndarray
    body: np.ndarray
    #: ``(z, c, residual)`` -> initial guess of the unknowns; `residual` evaluates the equations.
    guess: Callable[[np.ndarray, np.ndarray, Callable[[np.ndarray], np.ndarray]], np.ndarray]
    memory: Layout = field(default_factory=Layout)
    #: ``(z, c)`` -> compensation before the first step.
    remember: Callable[[np.ndarray, np.ndarray], np.ndarray] = lambda z, c: np.zeros(0)
    #: Dense output ``(x, z, c, theta) -> {name: values}``, if available.
    inside: Callable[[np.ndarray, np.ndarray, np.ndarray, float], dict[str, np.ndarray]] | None = None
    #: Error estimate ``(x, z, c) -> (errors, scales)``, if available.
    error: Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]] | None = None
    estimated: Estimated | None = None
    #: Substep sizes in units of h: (1.0,), or the weights of a composition.
    weights: tuple[float, ...] = (1.0,)

    @property
    def size(self) -> int:
        return self.unknowns.size


def mapped(function: ca.Function, count: int, *columns: np.ndarray | float) -> list[np.ndarray]:
    """Evaluate a function at many instances; an argument is a scalar or has one column per instance."""
    if not count:
        return [np.zeros((function.size1_out(i), 0)) for i in range(function.n_out())]
    given = [np.full((1, count), c) if np.isscalar(c) else np.asarray(c) for c in columns]
    found = function.map(count)(*given)
    return [np.array(part) for part in (found if isinstance(found, (tuple, list)) else [found])]


def constraint_increment(model: Any, q: Any, step: Any, h: Any, t: Any, k: Any) -> Any:
    """Return ``g(q + step, t + h) - g(q, t)`` of an element's constraints, without cancellation."""
    at = ca.vertcat(model.q, model.t)
    function = ca.Function("g", [at, model.k], [ca.densify(model.g)])
    return increments(function, ca.vertcat(q, t), ca.vertcat(step, h), [k])


def carried_constraints(
    model: Any, rows: Any, chosen: list[int], m: Any, at: tuple[Any, ...], commanded: Sequence[int] = ()
) -> tuple[Any, Any, list[int]]:
    """Return compensated residuals ``(m + [g(q1) - g(q0)])/h`` of constraints, the next m, and the compensated indices.

    `residual` contains all constraints in the form of the scheme, `arguments` are q, its increment, h, t and the
    parameters. Constraints on velocity level are not compensated, as they hold in every step by themselves. Constraints
    with `commanded` parameters are not compensated either, as they jump between steps.
    """
    said = model.k[list(commanded)] if commanded else None
    steady = [i for i in range(model.on_position) if said is None or not ca.depends_on(model.g[i], said)]
    remembered = [place for place, i in enumerate(chosen) if i in steady]
    found = [rows[i] for i in chosen]
    left = ca.SX(0, 1)
    if remembered:
        increment, h = constraint_increment(model, *at), at[2]
        left = ca.densify(ca.vertcat(*(m[place] + increment[chosen[place]] for place in remembered)))
        for number, place in enumerate(remembered):
            found[place] = left[number] / h
    return ca.densify(ca.vertcat(*found)), left, remembered


def constraint_values(model: Any, q: np.ndarray, t: float, k: np.ndarray) -> np.ndarray:
    """Evaluate the constraints of many elements of one type, one row per element."""
    function = ca.Function("g", [model.q, model.t, model.k], [ca.densify(model.g)])
    return mapped(function, len(q), q.T, t, k.T)[0].T
