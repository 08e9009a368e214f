"""The equations of a step as pieces: one kernel for each type of element, and all the places it is run at.

A piece takes a few unknowns, a few entries of the state and a few parameters, and adds to a few equations and to a few
entries of the state at the end of the step. A tier that works with pieces never sees the system as one graph: what it
derives and compiles does not grow with the number of elements.
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

#: What a piece is a function of, in this order.
ARGUMENTS = ("x", "z", "m", "h", "t", "k")
#: Constraints that remember what is left of them are held to so many half units in the last place of a length of one.
_REMEMBERED = 4.0


@dataclass(frozen=True)
class Local:
    """Symbols of what one instance of a piece sees: unknowns, state, memory, step, time, parameters."""

    x: Any
    z: Any
    m: Any
    h: Any
    t: Any
    k: Any

    @classmethod
    def of(cls, x: int, z: int, m: int = 0, k: int = 0) -> Local:
        """Symbols for this many of each."""
        return cls(symbols("x", x), symbols("z", z), symbols("m", m), ca.SX.sym("h"), ca.SX.sym("t"), symbols("k", k))

    @property
    def all(self) -> list[Any]:
        return [self.x, self.z, self.m, self.h, self.t, self.k]


def symbols(name: str, count: int) -> Any:
    """A column of symbols; an empty one has no column that would count as a row."""
    return ca.SX.sym(name, count) if count else ca.SX(0, 1)


def _no_places(count: int) -> np.ndarray:
    return np.zeros((count, 0), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Piece:
    """A kernel, and one row of places for each of its instances.

    `rows` and `entries`, the nonzeros of their derivative at `pattern`, are added to the equations `equations`; a place
    of -1 leaves an equation out. `ends` is added to the state at the end, `keeps` to the memory there. With `turn`, the
    Newton system is one for variations y of the unknowns, and ``turn(y)`` is the correction.
    """

    name: str
    local: Local
    rows: Any
    entries: Any
    pattern: tuple[tuple[int, int], ...]
    x: np.ndarray  # places of the unknowns
    z: np.ndarray  # of the state at the beginning
    k: np.ndarray  # of the parameters
    m: np.ndarray  # of the memory
    equations: np.ndarray
    ends: Any = field(default_factory=lambda: ca.SX(0, 1))
    end_places: np.ndarray = field(default_factory=lambda: _no_places(1))
    keeps: Any = field(default_factory=lambda: ca.SX(0, 1))
    keep_places: np.ndarray = field(default_factory=lambda: _no_places(1))
    turn: tuple[Any, Any] | None = None  # (variations, corrections of all unknowns of the piece)
    #: Increments of entries of the state, which are summed up with their rounding errors: these are in the memory.
    sums: Any = field(default_factory=lambda: ca.SX(0, 1))
    sum_places: np.ndarray = field(default_factory=lambda: _no_places(1))
    low_places: np.ndarray = field(default_factory=lambda: _no_places(1))
    #: Symbols of what pieces with `force` add to the equations of the unknowns; the end may depend on them.
    impulse: Any = None
    force: bool = False
    #: The rows as they would be without memory: residuals need not be smaller than their round-off at positions of size
    #: one, as what is left over is remembered, and put right in the next step.
    plain: Any = None

    @property
    def count(self) -> int:
        return len(self.x)

    def noise(self, library: int = 1) -> tuple[Any, Any]:
        """(errors of the unknowns, bound of the rounding of the rows, and of adding them), in units of UNIT."""
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
    """A piece, with the derivative of its rows unless that is given; what is identically zero is left out.

    `places` are those of x, z, k and m, one row for each instance; equations are numbered like unknowns if not given.
    `ends` and `keeps` are expressions with their places, which are one row for each instance too; `sums` are increments
    with the places of the sum and of its rounding error.
    """
    count = len(places["x"])
    rows = ca.densify(rows)
    jacobian = ca.sparsify(ca.jacobian(rows, local.x) if jacobian is None else jacobian)
    pattern = tuple(zip(*jacobian.sparsity().get_triplet(), strict=True)) if jacobian.nnz() else ()
    entries = ca.SX(jacobian.nz[:]) if pattern else ca.SX(0, 1)
    used = [i for i in range(rows.numel()) if not ca.SX(rows[i]).is_zero()]
    if len(used) < rows.numel():  # a row that is zero has no derivative either
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
        **where,
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
    """All pieces of a step, and what else a tier needs to know of it."""

    layout: Layout  # of the state
    unknowns: Layout
    pieces: tuple[Piece, ...]
    kinds: tuple[int, ...]  # how many unknowns of one kind follow each other
    row_names: Callable[[], tuple[str, ...]]
    #: Which unknowns are multipliers, and for the others the number of the body, or group of coordinates, they are of.
    multiplier: np.ndarray
    body: np.ndarray
    #: ``(z, c, residual)`` -> the unknowns to start from; `residual` gives the equations at given unknowns.
    guess: Callable[[np.ndarray, np.ndarray, Callable[[np.ndarray], np.ndarray]], np.ndarray]
    memory: Layout = field(default_factory=Layout)
    #: ``(z, c)`` -> the memory before the first step.
    remember: Callable[[np.ndarray, np.ndarray], np.ndarray] = lambda z, c: np.zeros(0)
    #: Positions and velocities within a step, ``(x, z, c, theta) -> {name: values}``, if the scheme has a formula.
    inside: Callable[[np.ndarray, np.ndarray, np.ndarray, float], dict[str, np.ndarray]] | None = None
    #: Estimated errors of a step and what they are measured against, ``(x, z, c) -> two arrays``, if it has them.
    error: Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]] | None = None
    estimated: Estimated | None = None
    #: Sizes of the parts of a step, in units of its own: those of a composition are several, one after the other.
    weights: tuple[float, ...] = (1.0,)

    @property
    def size(self) -> int:
        return self.unknowns.size


def mapped(function: ca.Function, count: int, *columns: np.ndarray | float) -> list[np.ndarray]:
    """A function of columns at many instances: every argument is a number, or has one column for each instance."""
    if not count:
        return [np.zeros((function.size1_out(i), 0)) for i in range(function.n_out())]
    given = [np.full((1, count), c) if np.isscalar(c) else np.asarray(c) for c in columns]
    found = function.map(count)(*given)
    return [np.array(part) for part in (found if isinstance(found, (tuple, list)) else [found])]


def constraint_increment(model: Any, q: Any, step: Any, h: Any, t: Any, k: Any) -> Any:
    """``g(q + step, t + h) - g(q, t)`` of an element's constraints, without cancellation."""
    at = ca.vertcat(model.q, model.t)
    function = ca.Function("g", [at, model.k], [ca.densify(model.g)])
    return increments(function, ca.vertcat(q, t), ca.vertcat(step, h), [k])


def carried_constraints(
    model: Any, rows: Any, chosen: list[int], m: Any, at: tuple[Any, ...], commanded: Sequence[int] = ()
) -> tuple[Any, Any, list[int]]:
    """The rows of chosen constraints of an element by increment, ``(m + [g(q1) - g(q0)])/h``, what is left of them to
    be remembered as the next m, and which of the chosen ones these are.

    `rows` are all constraints as the scheme writes them, `at` are q, its increment, h, t and the parameters. Those on
    velocity level are held for every step by itself, and those with `commanded` parameters jump between steps: of them
    nothing is remembered.
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
    """The constraints of many elements of one type, one row for each."""
    function = ca.Function("g", [model.q, model.t, model.k], [ca.densify(model.g)])
    return mapped(function, len(q), q.T, t, k.T)[0].T
