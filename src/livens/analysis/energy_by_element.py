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
from livens.engine.observables.element_sums import ElementObservables
from livens.errors import InputError, suggestion
from livens.models import element_sums
from livens.models.contact_detection import ENERGY_TERMS, DetectedContacts
from livens.models.element import ElementType
from livens.models.system import System
from livens.results.result import MissingVariableError, Result
from livens.types import Expr

#: Stored energies of an element, as expressions of its model.
_STORED: dict[str, Callable[[ElementType], Any]] = {
    "kinetic_energy": lambda m: m.T,
    "potential_energy": lambda m: m.V,
}
#: Powers of an element, as expressions of its model; their time integrals are recorded by the run.
_POWERS: dict[str, Callable[[ElementType], Any]] = {
    "dissipated_energy": lambda m: ca.dot(ca.gradient(m.R, m.v), m.v),
    "supplied_energy": lambda m: ca.dot(m.F, m.v) + ca.gradient(m.V, m.t),
}


def energy_by_element(result: Result, energy: object) -> dict[str, np.ndarray]:
    """Return an energy of every element that has any, at every stored time, by the names of the elements.

    Kinetic and potential energies follow from the state. Dissipated and supplied energies are recorded as totals. The
    energy of an element is the integral of its power by the trapezoidal rule. In every step, the difference to the
    recorded total is distributed over the elements in proportion to their work, so that the sum equals the record.
    """
    known = (*_STORED, *_POWERS)
    if energy not in known:
        raise InputError(f"elements have no energy {energy!r}{suggestion(str(energy), known)}")
    system = result.system
    if not isinstance(system, System):
        raise InputError(f"only a System has elements, not a {system.type_label}")
    expression = _STORED.get(energy) or _POWERS[energy]
    contributing = [
        group.elements for group in system.element_groups if not ca.SX(expression(group.element_type)).is_zero()
    ]
    element_indices = np.sort(np.concatenate(contributing)).tolist() if contributing else []
    additional_indices: list[int] = []
    element_columns = element_sums.scattered_sums(
        system, len(system.elements), lambda e: expression(e.element_type), lambda group: group.elements[:, None]
    )
    values = _evaluate_columns(result, system, element_columns)[:, element_indices]
    contact_names, contact_values = _contact_group_terms(result, system, energy)
    values = np.column_stack([values, *contact_values])
    if energy in _POWERS:
        work = _work_per_step(values, result.t)
        if energy == "supplied_energy":
            additional = _rheonomic_work(result, system)
            additional_indices = list(additional)
            work = np.column_stack([work, *additional.values()])
        elif energy == "dissipated_energy":
            additional = _constraint_friction_work(result, system)
            additional_indices = list(additional)
            work = np.column_stack([work, *additional.values()])
        values = _scaled_to_record(work, np.diff(np.asarray(getattr(result, energy))))
    names = _element_names(system)
    energies: dict[str, np.ndarray] = {}
    for column, name in enumerate(
        [*(names[i] for i in element_indices), *contact_names, *(names[i] for i in additional_indices)]
    ):
        energies[name] = energies.get(name, 0.0) + values[:, column]
    return energies


def _contact_group_terms(result: Result, system: System, energy: str) -> tuple[list[str], list[np.ndarray]]:
    """Return names and values of energies and powers of detected contacts, which are not elements.

    The power on the bodies counts as supplied, including the losses, which come from stored energy.
    """
    detected = system.external_force
    if not isinstance(detected, DetectedContacts) or energy == "kinetic_energy":
        return [], []
    k, names, values = result.parameter_vector, list[str](), list[np.ndarray]()
    for group_index, group in enumerate(detected.groups):
        powers = np.array(
            [detected.energy_rates(q, v, k, group_index) for q, v in zip(result.q, result.v, strict=True)]
        )
        if energy == "potential_energy":
            names, values = [*names, group.name], [*values, powers[:, 1]]
        elif energy == "supplied_energy":
            names, values = [*names, group.name], [*values, powers[:, 0] + powers[:, 2:].sum(axis=1)]
        else:
            lossy = [i for i in range(2, powers.shape[1]) if powers[:, i].any()]
            names += [f"{group.name} {ENERGY_TERMS[i - 1]}" for i in lossy]
            values += [powers[:, i] for i in lossy]
    return names, values


def _evaluate_columns(result: Result, system: System, element_columns: element_sums.ElementSums) -> np.ndarray:
    """Evaluate columns of the elements at every stored time."""
    column, blocks, first_row = (
        _Column(system, ElementObservables(element_columns), (element_columns.n_outputs,)),
        list[np.ndarray](),
        0,
    )
    segments = result.parameter_segments
    for block in rows_of(result, column.variables):
        rows = len(next(iter(block.values())))
        values = np.empty((rows, element_columns.n_outputs))
        for (start, k), (end, _) in zip(segments, [*segments[1:], (len(result.t), None)], strict=True):
            a, b = max(start - first_row, 0), min(end - first_row, rows)
            if a < b:  # parameters may change by event actions
                values[a:b] = column({name: part[a:b] for name, part in block.items()}, k)
        blocks.append(values)
        first_row += rows
    return np.concatenate(blocks)


def _work_per_step(powers: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Return the work of every step by the trapezoidal rule."""
    return np.asarray((powers[1:] + powers[:-1]) / 2 * np.diff(t)[:, None])


def _rheonomic_work(result: Result, system: System) -> dict[int, np.ndarray]:
    """Return the work ``lam.dg/dt`` of rheonomic constraints in every step, by element."""
    rheonomic = [
        group for group in system.element_groups if ca.jacobian(group.element_type.g, group.element_type.t).nnz()
    ]
    if not rheonomic:
        return {}
    if "multipliers" not in result.stored:
        raise MissingVariableError("multipliers", result.stored)
    rate: element_sums.ElementExpression = lambda e: ca.jacobian(e.element_type.g, e.element_type.t)  # noqa: E731
    rates = _evaluate_columns(
        result, system, element_sums.scattered_sums(system, system.m, rate, lambda group: group.constraints)
    )
    work = {}
    for i in sorted(int(i) for group in rheonomic for i in group.elements):
        # a multiplier acts on the step that ends in its row
        multiplier_slice = system.element_constraints[i]
        lam, element_rates = result.multipliers[1:, multiplier_slice], rates[:, multiplier_slice]
        work[i] = np.einsum("ij,ij->i", lam, (element_rates[1:] + element_rates[:-1]) / 2) * np.diff(result.t)
    return work


def _constraint_friction_work(result: Result, system: System) -> dict[int, np.ndarray]:
    """Return the friction work of constraints with Coulomb friction in every step, by element."""
    with_friction = [group for group in system.element_groups if group.element_type.has_constraint_friction]
    if not with_friction:
        return {}
    if "multipliers" not in result.stored:
        raise MissingVariableError("multipliers", result.stored)

    def speed(e: Any) -> Expr:
        slip_velocity = ca.SX.zeros(e.element_type.m)
        if e.element_type.has_constraint_friction:
            slip_velocity[0] = ca.dot(e.element_type.velocity_constraints.friction_direction, e.element_type.v)
        return slip_velocity

    speeds = _evaluate_columns(
        result, system, element_sums.scattered_sums(system, system.m, speed, lambda group: group.constraints)
    )
    work = {}
    for i in sorted(int(i) for group in with_friction for i in group.elements):
        multiplier_index = system.element_constraints[i].start
        work[i] = (
            result.multipliers[1:, multiplier_index]
            * (speeds[1:, multiplier_index] + speeds[:-1, multiplier_index])
            / 2
            * np.diff(result.t)
        )
    return work


def _scaled_to_record(work: np.ndarray, recorded: np.ndarray) -> np.ndarray:
    """Return cumulative work whose sum over the elements equals the recorded total."""
    size = np.abs(work)
    total = size.sum(axis=1, keepdims=True)
    weights = np.divide(size, total, out=np.zeros_like(size), where=total > 0)
    work = work + weights * (recorded - work.sum(axis=1))[:, None]
    return np.concatenate([np.zeros((1, work.shape[1])), np.cumsum(work, axis=0)])


def _element_names(system: System) -> list[str]:
    """Return the names of the elements; unnamed elements are numbered."""
    return [element.name or f"element {i}" for i, element in enumerate(system.elements)]
