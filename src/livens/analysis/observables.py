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
from collections.abc import Iterator, Sequence
from typing import Any, overload

import casadi as ca
import numpy as np

from livens.engine.observables.element_sums import ElementObservables
from livens.engine.observables.kernel_table import ObservableKernel
from livens.errors import InputError, suggestion
from livens.expressions.result_variables import RESULT_VARIABLES
from livens.models import observable as own_observable
from livens.models.base import Model
from livens.models.element_sums import MAX_VELOCITY
from livens.models.equations_of_motion import OBSERVABLES
from livens.results.result import MissingVariableError, Result
from livens.types import ModelFunction

__all__ = ["NAMES", "expression", "iterate_blocks", "observe", "reduce", "rows_of"]

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
Observable = str | ModelFunction

_REDUCTIONS: dict[str, tuple[ModelFunction, ModelFunction]] = {
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
    return model.view.observable(name)


class _Column:
    """Observable of a model, compiled for evaluation on blocks of rows."""

    def __init__(
        self,
        model: Model,
        table: ObservableKernel | ElementObservables,
        shape: tuple[int, ...],
        multipliers: bool = False,
    ) -> None:
        self._parts = tuple(model.view.symbols)
        self._table, self._shape = table, shape
        self.variables = ("t", *self._parts, *(("multipliers",) if multipliers else ()))

    def __call__(self, block: dict[str, np.ndarray], k: np.ndarray) -> np.ndarray:
        rows, state_key = len(block["t"]), " ".join(self._parts)
        if state_key not in block:  # shared by all observables: for large systems stacking takes as long as evaluating
            block[state_key] = np.hstack([block[name].reshape(rows, -1) for name in self._parts])
        Z = block[state_key]
        X = np.ascontiguousarray(block["multipliers"]) if "multipliers" in self.variables else None
        return self._table(block["t"], Z, k, X).reshape(rows, *self._shape)


@functools.lru_cache(maxsize=32)
def _cached_columns(fingerprint: str) -> dict[str, _Column]:
    """Return the cache of compiled observables by name, for models with this fingerprint."""
    return {}


def _named_column(model: Model, name: str) -> _Column:
    cache = _cached_columns(model.fingerprint)
    if name == "hamiltonian" and model.observable_element_sums(name) is None:
        expression(model, name)  # raises if there is none, which depends on parameter values outside the fingerprint
    if name not in cache:
        cache[name] = _element_sum_column(model, name) or _expression_column(model, name)
    return cache[name]


def _element_sum_column(model: Model, name: str) -> _Column | None:
    """Return an observable of a large system as a sum over its elements; None if the system is not large."""
    sums = model.observable_element_sums("kinetic_energy" if name == MAGNITUDE else name)
    if sums is None:
        return None
    shape = (sums.n_outputs,) if name in _COLUMNS or sums.n_outputs != 1 else ()
    return _Column(model, ElementObservables(sums), shape, name == "constraint_forces")


def _expression_column(model: Model, name: str) -> _Column:
    lam = None
    if name == "constraint_forces" and "multipliers" in model.layout:
        lam = ca.SX.sym("lam", len(model.constraint_names))
        columns = model.view.constraint_forces(lam)
    elif name == MAGNITUDE:
        columns = ca.SX(model.energy_scale())
    elif name == MAX_VELOCITY:
        columns = ca.norm_inf(ca.vertcat(0, model.velocity_expression()))
    else:
        columns = expression(model, name)
    width = columns.numel()
    shape = (width,) if name in _COLUMNS or width != 1 else ()
    return _Column(model, ObservableKernel(model, columns, lam), shape, lam is not None)


def _column(system: Model, observable: Observable) -> _Column:
    """Compile an observable; functions are read on every call (closures may have changed), native code is cached."""
    if isinstance(observable, str):
        return _named_column(system, observable)
    if not callable(observable):
        raise InputError(f"an observable is a name or a function of q, v, p, t, k; got {observable!r}")
    column, shape = own_observable.trace_observable(system, observable)
    return _Column(system, ObservableKernel(system, column), shape)


def iterate_blocks(
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
    for observable in observables:
        if observable == "energy_balance_defect":
            columns.append(_column(result.system, _balance_energy(result.system)))
        else:
            raw = isinstance(observable, str) and observable in RESULT_VARIABLES
            columns.append(observable if isinstance(observable, str) and raw else _column(result.system, observable))
    segments = result.parameter_segments if any(isinstance(c, _Column) for c in columns) else [(0, np.zeros(0))]
    variables = {"t"} | {v for c in columns for v in (c.variables if isinstance(c, _Column) else (c,))}
    if "energy_balance_defect" in observables:
        variables |= {"supplied_energy", "dissipated_energy"}
    initial_energy: float | None = None
    first_row = 0
    for block in rows_of(result, sorted(variables), rows):
        values = [
            block[c] if isinstance(c, str) else _with_parameter_segments(c, block, segments, first_row) for c in columns
        ]
        first_row += len(block["t"])
        for i, observable in enumerate(observables):
            if observable == "energy_balance_defect":
                initial_energy = float(values[i][0]) if initial_energy is None else initial_energy
                values[i] = values[i] - initial_energy - block["supplied_energy"] + block["dissipated_energy"]
        yield block["t"], values


def _with_parameter_segments(
    column: _Column, block: dict[str, np.ndarray], segments: list[tuple[int, np.ndarray]], first_row: int
) -> np.ndarray:
    """Evaluate a column on a block that begins at row `first_row`, with the parameter values valid at each row."""
    if len(segments) == 1:
        return column(block, segments[0][1])
    rows = len(block["t"])
    edges = [min(max(start - first_row, 0), rows) for start, _ in segments] + [rows]
    parts = [
        column({name: values[a:b] for name, values in block.items()}, k)
        for a, b, (_, k) in zip(edges, edges[1:], segments, strict=False)
        if b > a
    ]
    return np.concatenate(parts)


def _balance_energy(model: Model) -> str:
    """Return the name of the energy that enters the energy balance."""
    return "generalized_energy" if "generalized_energy" in model.view.observable_names else model.monitored_energy(())


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
        info = result.info
        rows = max(1, _BLOCK // (3 * len(info.coordinates) + len(info.constraint_names) + 3))
    stored = getattr(result._arrays, "blocks", None)
    if stored is not None:
        yield from stored(variables, rows)
        return
    for a in range(0, len(result.t), rows):
        yield {name: getattr(result, name)[a : a + rows] for name in variables}


@overload
def observe(result: Result, observable: Observable, *, increments: bool = False, by: None = None) -> np.ndarray: ...
@overload
def observe(result: Result, observable: Observable, *, increments: bool = False, by: str) -> dict[str, np.ndarray]: ...
def observe(
    result: Result, observable: Observable, *, increments: bool = False, by: str | None = None
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
            from livens.analysis.energy_by_element import energy_by_element

            energy_terms = energy_by_element(result, observable)
            return {name: np.diff(values) for name, values in energy_terms.items()} if increments else energy_terms
        return _observed(result, observable, increments)
    except MissingVariableError as error:
        raise InputError(f"the observable {observable!r} cannot be computed: {error}") from None


def _observed(result: Result, observable: Observable, increments: bool) -> np.ndarray:
    if isinstance(observable, str) and observable in RECORDED:
        table = np.asarray(getattr(result, observable))
    else:
        parts = [values[0] for _, values in iterate_blocks(result, [observable])]
        table = parts[0] if len(parts) == 1 else np.concatenate(parts)
    return np.diff(table, axis=0) if increments else table


def reduce(result: Result, observable: Observable, how: str = "largest", *, rows: int | None = None) -> np.ndarray:
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
    for t, (values,) in iterate_blocks(result, [observable], rows):
        reduced = of_block(values)
        total = reduced if total is None else combine(total, reduced)
        count += len(t)
    if total is None:
        raise InputError("the run has no rows")
    return np.asarray(total / count if how == "mean" else total)


Result.attach("observe", observe)
