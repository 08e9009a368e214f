"""Observables of a run, computed from its stored states in blocks of rows.

A run in a file is read a block of rows at a time, so that a reduction of ten million rows needs little memory.

>>> import livens as lv
>>> from livens import observe
>>> run = lv.simulate(lv.problems.load("simple-pendulum"), t_end=1.0)
>>> run.observe("total_energy").shape, run.observe("constraint").shape
((1001,), (1001, 1))
>>> run.observe(lambda q, v: q[0] * v[1] - q[1] * v[0]).shape
(1001,)
>>> bool(observe.reduce(run, "constraint", "largest")[0] < 1e-14)
True
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

import casadi as ca
import numpy as np

from livens.engine.element_table import ElementTable
from livens.engine.table import Table
from livens.errors import InputError, suggestion
from livens.expressions.variables import VARIABLES
from livens.models import observable as own_observable
from livens.models.columns import SPEED
from livens.models.model import Model
from livens.models.summed import OBSERVABLES
from livens.results.result import MissingVariableError, Result

#: Variables that the run itself stores.
RECORDED = ("supplied_energy", "dissipated_energy", "multipliers", "step_size", "newton_iterations")
#: ``constraint_forces`` are ``G(q)^T lam`` with the multipliers of the step that ends there, in the balance of momentum
#: ``p' = dL/dq - G^T lam + F``. ``energy_balance_defect`` is ``E - E_0 - supplied + dissipated`` with ``E = p.v - L``.
NAMES = (*OBSERVABLES, *RECORDED, "constraint_forces", "energy_balance_defect")
#: Reference magnitude of energies in reports.
MAGNITUDE = "magnitude of energy"
#: Observables with one column per constraint or coordinate, also if there is only one.
_COLUMNS = ("constraint", "velocity_constraint", "constraint_forces")
#: Maximum number of values in a block of rows.
_BLOCK = 1_000_000

#: A name of NAMES or of the system's symmetries, or a function of some of q, v, p, t, k.
Observable = str | Callable[..., Any]

_REDUCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "largest": (lambda block: np.abs(block).max(axis=0), np.maximum),  # np.maximum propagates NaN
    "max": (lambda block: block.max(axis=0), np.maximum),
    "min": (lambda block: block.min(axis=0), np.minimum),
    "sum": (lambda block: block.sum(axis=0), np.add),
    "first": (lambda block: block[0].copy(), lambda old, new: old),
    "last": (lambda block: block[-1].copy(), lambda old, new: new),
}


def expression(model: Model, name: str) -> Any:
    """Return the symbolic expression of an observable in the variables of the model's view.

    Parameters
    ----------
    model : Model
        Model with the observable.
    name : str
        Name of the observable.

    Returns
    -------
    casadi.SX
        Expression of the observable.
    """
    return model.view.expression(name)


class _Column:
    """Observable of a model, compiled for evaluation on blocks of rows."""

    def __init__(
        self, model: Model, table: Table | ElementTable, shape: tuple[int, ...], multipliers: bool = False
    ) -> None:
        self._parts = tuple(model.view.symbols)
        self._table, self._shape = table, shape
        self.variables = ("t", *self._parts, *(("multipliers",) if multipliers else ()))

    def __call__(self, block: dict[str, np.ndarray], k: np.ndarray) -> np.ndarray:
        rows, whole = len(block["t"]), " ".join(self._parts)
        if whole not in block:  # shared by all observables: for large systems stacking takes as long as evaluating
            block[whole] = np.hstack([block[name].reshape(rows, -1) for name in self._parts])
        Z = block[whole]
        X = np.ascontiguousarray(block["multipliers"]) if "multipliers" in self.variables else None
        return self._table(block["t"], Z, k, X).reshape(rows, *self._shape)


@functools.lru_cache(maxsize=32)
def _known(digest: str) -> dict[str, _Column]:
    """Return the cache of compiled observables by name, for models with this fingerprint."""
    return {}


def _named(model: Model, name: str) -> _Column:
    known = _known(model.digest)
    if name == "hamiltonian" and model.observable_sums(name) is None:
        expression(model, name)  # raises if there is none, which depends on parameter values outside the fingerprint
    if name not in known:
        known[name] = _summed(model, name) or _whole(model, name)
    return known[name]


def _summed(model: Model, name: str) -> _Column | None:
    """Return an observable of a large system as a sum over its elements; None if the system is not large."""
    sums = model.observable_sums("kinetic_energy" if name == MAGNITUDE else name)
    if sums is None:
        return None
    shape = (sums.width,) if name in _COLUMNS or sums.width != 1 else ()
    return _Column(model, ElementTable(sums), shape, name == "constraint_forces")


def _whole(model: Model, name: str) -> _Column:
    lam = None
    if name == "constraint_forces" and "multipliers" in model.layout:
        lam = ca.SX.sym("lam", len(model.constraint_names))
        columns = model.view.constraint_forces(lam)
    elif name == MAGNITUDE:
        columns = ca.SX(model.magnitude())
    elif name == SPEED:
        columns = ca.norm_inf(ca.vertcat(0, model.velocities()))
    else:
        columns = expression(model, name)
    width = columns.numel()
    shape = (width,) if name in _COLUMNS or width != 1 else ()
    return _Column(model, Table(model, columns, lam), shape, lam is not None)


def _column(system: Model, what: Observable) -> _Column:
    """Compile an observable; functions are read on every call (closures may have changed), native code is cached."""
    if isinstance(what, str):
        return _named(system, what)
    if not callable(what):
        raise InputError(f"an observable is a name or a function of q, v, p, t, k; got {what!r}")
    column, shape = own_observable.read(system, what)
    return _Column(system, Table(system, column), shape)


def walk(
    result: Result, observables: Sequence[Observable], rows: int | None = None
) -> Iterator[tuple[np.ndarray, list[np.ndarray]]]:
    """Iterate over times and observables of a run in blocks of rows.

    Parameters
    ----------
    result : Result
        Run to read.
    observables : sequence of str or callable
        Observables, also the variables t, q, v, p.
    rows : int, optional
        Number of rows per block.

    Yields
    ------
    t : ndarray of shape (n_rows,)
        Times of the block.
    values : list of ndarray
        Values of the observables, each of shape (n_rows, ...).
    """
    columns: list[_Column | str] = []
    for what in observables:
        if what == "energy_balance_defect":
            columns.append(_column(result.system, _balanced(result.system)))
        else:
            raw = isinstance(what, str) and what in VARIABLES
            columns.append(what if isinstance(what, str) and raw else _column(result.system, what))
    pieces = result.parameter_pieces if any(isinstance(c, _Column) for c in columns) else [(0, np.zeros(0))]
    variables = {"t"} | {v for c in columns for v in (c.variables if isinstance(c, _Column) else (c,))}
    if "energy_balance_defect" in observables:
        variables |= {"supplied_energy", "dissipated_energy"}
    first: float | None = None
    passed = 0
    for block in rows_of(result, sorted(variables), rows):
        values = [block[c] if isinstance(c, str) else _in_pieces(c, block, pieces, passed) for c in columns]
        passed += len(block["t"])
        for i, what in enumerate(observables):
            if what == "energy_balance_defect":
                first = float(values[i][0]) if first is None else first
                values[i] = values[i] - first - block["supplied_energy"] + block["dissipated_energy"]
        yield block["t"], values


def _in_pieces(
    column: _Column, block: dict[str, np.ndarray], pieces: list[tuple[int, np.ndarray]], passed: int
) -> np.ndarray:
    """Evaluate a column on a block that begins at row `first_row`, with the parameter values valid at each row."""
    if len(pieces) == 1:
        return column(block, pieces[0][1])
    rows = len(block["t"])
    edges = [min(max(first - passed, 0), rows) for first, _ in pieces] + [rows]
    parts = [
        column({name: values[a:b] for name, values in block.items()}, k)
        for a, b, (_, k) in zip(edges, edges[1:], pieces, strict=False)
        if b > a
    ]
    return np.concatenate(parts)


def _balanced(model: Model) -> str:
    """Return the name of the energy that enters the energy balance."""
    return "generalized_energy" if "generalized_energy" in model.view.names else model.watched_energy(())


def rows_of(result: Result, variables: Sequence[str], rows: int | None = None) -> Iterator[dict[str, np.ndarray]]:
    """Iterate over stored variables of a run in blocks of rows.

    Parameters
    ----------
    result : Result
        Run to read.
    variables : sequence of str
        Names of stored variables.
    rows : int, optional
        Number of rows per block.

    Yields
    ------
    dict of str to ndarray
        Variables of the block by name.
    """
    if rows is None:
        facts = result.facts
        rows = max(1, _BLOCK // (3 * len(facts.coordinates) + len(facts.constraint_names) + 3))
    stored = getattr(result._arrays, "blocks", None)
    if stored is not None:
        yield from stored(variables, rows)
        return
    for a in range(0, len(result.t), rows):
        yield {name: getattr(result, name)[a : a + rows] for name in variables}


@overload
def observe(result: Result, what: Observable, *, increments: bool = False, by: None = None) -> np.ndarray: ...
@overload
def observe(result: Result, what: Observable, *, increments: bool = False, by: str) -> dict[str, np.ndarray]: ...
def observe(
    result: Result, what: Observable, *, increments: bool = False, by: str | None = None
) -> np.ndarray | dict[str, np.ndarray]:
    """Return an observable at every stored time.

    Parameters
    ----------
    result : Result
        Run to observe.
    observable : str or callable
        A name (see `livens.observe.NAMES`; symmetries of a system are names too), or a function of some of
        ``q v p t k``, written like a model function, that returns a number or an array.
    increments : bool, default False
        Return the change from each stored time to the next.
    by : {None, "element"}, optional
        With "element", return the energy of every element that has any. Valid for ``kinetic_energy``,
        ``potential_energy``, ``dissipated_energy`` and ``supplied_energy``, see `livens.analysis.energy_by_element`.

    Returns
    -------
    ndarray of shape (n_rows, ...) or dict of str to ndarray
        Values over time; with ``by="element"``, by the names of the elements.

    Raises
    ------
    InputError
        If the observable is unknown, or if the run does not store the variables that it requires.
    """
    if by not in (None, "element"):
        raise InputError(f'by must be None or "element", got {by!r}')
    try:
        if by is not None:
            from livens.analysis.elements import by_element

            accounts = by_element(result, what)
            return {name: np.diff(account) for name, account in accounts.items()} if increments else accounts
        return _observed(result, what, increments)
    except MissingVariableError as error:
        raise InputError(f"the observable {what!r} cannot be computed: {error}") from None


def _observed(result: Result, what: Observable, increments: bool) -> np.ndarray:
    if isinstance(what, str) and what in RECORDED:
        table = np.asarray(getattr(result, what))
    else:
        parts = [values[0] for _, values in walk(result, [what])]
        table = parts[0] if len(parts) == 1 else np.concatenate(parts)
    return np.diff(table, axis=0) if increments else table


def reduce(result: Result, what: Observable, how: str = "largest", *, rows: int | None = None) -> np.ndarray:
    """Reduce an observable over a run to one value per component, in constant memory.

    Parameters
    ----------
    result : Result
        Run to reduce.
    observable : str or callable
        Name or function, as in `observe`.
    how : {"largest", "max", "min", "sum", "mean", "first", "last"}, default "largest"
        Reduction; "largest" is the largest absolute value.
    rows : int, optional
        Number of rows per block.

    Returns
    -------
    ndarray
        Reduced value of every component.

    Raises
    ------
    InputError
        If the reduction is unknown, or if the run has no rows.
    """
    if how not in _REDUCTIONS and how != "mean":
        raise InputError(f"unknown reduction '{how}'{suggestion(str(how), [*_REDUCTIONS, 'mean'])}")
    of_block, combine = _REDUCTIONS["sum" if how == "mean" else how]
    total, count = None, 0
    for t, (values,) in walk(result, [what], rows):
        part = of_block(values)
        total = part if total is None else combine(total, part)
        count += len(t)
    if total is None:
        raise InputError("the run has no rows")
    return np.asarray(total / count if how == "mean" else total)


Result.attach("observe", observe)
