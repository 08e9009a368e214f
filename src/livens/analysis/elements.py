"""Energy balance by element: stored, dissipated and supplied energy.

>>> import livens as lv
>>> run = lv.simulate(lv.problems.load("double-four-bar-damped"), t_end=0.1)
>>> accounts = run.observe("dissipated_energy", by="element")
>>> bool(abs(sum(accounts.values()) - run.dissipated_energy).max() < 1e-12 * run.dissipated_energy[-1])
True
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

from livens.analysis.observables import _Column, rows_of
from livens.engine.element_table import ElementTable
from livens.errors import InputError, suggestion
from livens.models import columns
from livens.models.element import ElementModel
from livens.models.found_contacts import ACCOUNTS, FoundContacts
from livens.models.system import System
from livens.results.result import MissingVariableError, Result

#: Stored energies of an element, as expressions of its model.
_STORED: dict[str, Callable[[ElementModel], Any]] = {
    "kinetic_energy": lambda m: m.T,
    "potential_energy": lambda m: m.V,
}
#: Powers of an element, as expressions of its model; their time integrals are recorded by the run.
_POWERS: dict[str, Callable[[ElementModel], Any]] = {
    "dissipated_energy": lambda m: ca.dot(ca.gradient(m.R, m.v), m.v),
    "supplied_energy": lambda m: ca.dot(m.F, m.v) + ca.gradient(m.V, m.t),
}


def by_element(result: Result, what: Any) -> dict[str, np.ndarray]:
    """Return an energy of every element that has any, at every stored time, by the names of the elements.

    Kinetic and potential energies follow from the state. Dissipated and supplied energies are recorded as totals. The
    energy of an element is the integral of its power by the trapezoidal rule. In every step, the difference to the
    recorded total is distributed over the elements in proportion to their work, so that the sum equals the record.
    """
    known = (*_STORED, *_POWERS)
    if what not in known:
        raise InputError(f"elements have no energy {what!r}{suggestion(str(what), known)}")
    system = result.system
    if not isinstance(system, System):
        raise InputError(f"only a System has elements, not a {system.kind}")
    expression = _STORED.get(what) or _POWERS[what]
    having = [group.elements for group in system.groups if not ca.SX(expression(group.model)).is_zero()]
    owners = np.sort(np.concatenate(having)).tolist() if having else []
    moving: list[int] = []
    own = columns.placed(
        system, len(system.elements), lambda e: expression(e.model), lambda group: group.elements[:, None]
    )
    values = _table(result, system, own)[:, owners]
    found_names, found_values = _of_crowds(result, system, what)
    values = np.column_stack([values, *found_values])
    if what in _POWERS:
        works = _steps_of(values, result.t)
        if what == "supplied_energy":
            more = _moving_constraints(result, system)
            moving = list(more)
            works = np.column_stack([works, *more.values()])
        elif what == "dissipated_energy":
            more = _rubbing(result, system)
            moving = list(more)
            works = np.column_stack([works, *more.values()])
        values = _balanced(works, np.diff(np.asarray(getattr(result, what))))
    names = _names(system)
    found: dict[str, np.ndarray] = {}
    for column, name in enumerate([*(names[i] for i in owners), *found_names, *(names[i] for i in moving)]):
        found[name] = found.get(name, 0.0) + values[:, column]
    return found


def _of_crowds(result: Result, system: System, what: str) -> tuple[list[str], list[np.ndarray]]:
    """Return names and values of energies and powers of detected contacts, which are not elements.

    The power on the bodies counts as supplied, including the losses, which come from stored energy.
    """
    box = system.box
    if not isinstance(box, FoundContacts) or what == "kinetic_energy":
        return [], []
    k, names, values = result.parameter_vector, list[str](), list[np.ndarray]()
    for number, group in enumerate(box.groups):
        powers = np.array([box.powers(q, v, k, number) for q, v in zip(result.q, result.v, strict=True)])
        if what == "potential_energy":
            names, values = [*names, group.name], [*values, powers[:, 1]]
        elif what == "supplied_energy":
            names, values = [*names, group.name], [*values, powers[:, 0] + powers[:, 2:].sum(axis=1)]
        else:
            lossy = [i for i in range(2, powers.shape[1]) if powers[:, i].any()]
            names += [f"{group.name} {ACCOUNTS[i - 1]}" for i in lossy]
            values += [powers[:, i] for i in lossy]
    return names, values


def _table(result: Result, system: System, own: columns.ElementColumns) -> np.ndarray:
    """Evaluate columns of the elements at every stored time."""
    column, found, first = _Column(system, ElementTable(own), (own.width,)), list[np.ndarray](), 0
    pieces = result.parameter_pieces
    for block in rows_of(result, column.variables):
        rows = len(next(iter(block.values())))
        values = np.empty((rows, own.width))
        for (start, k), (end, _) in zip(pieces, [*pieces[1:], (len(result.t), None)], strict=True):
            a, b = max(start - first, 0), min(end - first, rows)
            if a < b:  # parameters may change by event actions
                values[a:b] = column({name: part[a:b] for name, part in block.items()}, k)
        found.append(values)
        first += rows
    return np.concatenate(found)


def _steps_of(powers: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Return the work of every step by the trapezoidal rule."""
    return np.asarray((powers[1:] + powers[:-1]) / 2 * np.diff(t)[:, None])


def _moving_constraints(result: Result, system: System) -> dict[int, np.ndarray]:
    """Return the work ``lam.dg/dt`` of rheonomic constraints in every step, by element."""
    moving = [group for group in system.groups if ca.jacobian(group.model.g, group.model.t).nnz()]
    if not moving:
        return {}
    if "multipliers" not in result.stored:
        raise MissingVariableError("multipliers", result.stored)
    rate: columns.Says = lambda e: ca.jacobian(e.model.g, e.model.t)  # noqa: E731
    rates = _table(result, system, columns.placed(system, system.m, rate, lambda group: group.constraints))
    found = {}
    for i in sorted(int(i) for group in moving for i in group.elements):
        # a multiplier acts on the step that ends in its row
        own = system.multiplier_slices[i]
        lam, here = result.multipliers[1:, own], rates[:, own]
        found[i] = np.einsum("ij,ij->i", lam, (here[1:] + here[:-1]) / 2) * np.diff(result.t)
    return found


def _rubbing(result: Result, system: System) -> dict[int, np.ndarray]:
    """Return the friction work of constraints with Coulomb friction in every step, by element."""
    rubbing = [group for group in system.groups if group.model.rubs]
    if not rubbing:
        return {}
    if "multipliers" not in result.stored:
        raise MissingVariableError("multipliers", result.stored)

    def speed(e: Any) -> Any:
        lost = ca.SX.zeros(e.model.m)
        if e.model.rubs:
            lost[0] = ca.dot(e.model.rates.drag, e.model.v)
        return lost

    speeds = _table(result, system, columns.placed(system, system.m, speed, lambda group: group.constraints))
    found = {}
    for i in sorted(int(i) for group in rubbing for i in group.elements):
        own = system.multiplier_slices[i].start
        found[i] = result.multipliers[1:, own] * (speeds[1:, own] + speeds[:-1, own]) / 2 * np.diff(result.t)
    return found


def _balanced(works: np.ndarray, recorded: np.ndarray) -> np.ndarray:
    """Return cumulative work whose sum over the elements equals the recorded total."""
    size = np.abs(works)
    total = size.sum(axis=1, keepdims=True)
    shares = np.divide(size, total, out=np.zeros_like(size), where=total > 0)
    works = works + shares * (recorded - works.sum(axis=1))[:, None]
    return np.concatenate([np.zeros((1, works.shape[1])), np.cumsum(works, axis=0)])


def _names(system: System) -> list[str]:
    """Return the names of the elements; unnamed elements are numbered."""
    return [element.name or f"element {i}" for i, element in enumerate(system.elements)]
