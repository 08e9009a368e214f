"""Observables of large systems as sums over elements: the compiled code does not grow with the number of elements.

A reduction is a sum over elements, or the maximum of their entries. Bilinear forms of the state (``p.v``, momentum maps
of translations and rotations) are added to sums. The state vector is ``(q, v, p)``, followed by the multipliers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np

from livens.models.element import ElementModel
from livens.models.groups import TypeGroup
from livens.models.symmetry import has_linear_generators
from livens.models.system import System


@dataclass(frozen=True, eq=False)
class Local:
    """Symbols of one element type in an expression."""

    model: ElementModel
    p: Any
    lam: Any

    @property
    def state(self) -> Any:
        """Entries that are gathered from the state vector of the system."""
        return ca.vertcat(self.model.q, self.model.v, self.p, self.lam)


#: Expression of the symbols of one element type.
Says = Callable[[Local], Any]


@dataclass(frozen=True, eq=False)
class Products:
    """Bilinear form ``sum values z[rows] z[columns]`` in COO format; a negative column stands for the factor 1."""

    first: np.ndarray
    second: np.ndarray
    values: np.ndarray

    @property
    def sizes(self) -> Products:
        """Bilinear form of the condition of the sum: absolute terms, times 2 if quadratic in the state."""
        factors = np.where(self.second < 0, 1.0, 2.0)
        return Products(self.first, self.second, factors * np.abs(self.values))


@dataclass(frozen=True)
class Column:
    """Scalar observable of a state: a sum over elements and bilinear forms, or the maximum over elements."""

    add: Says | None = None
    largest: Says | None = None
    products: Products | None = None
    absolute: bool = False  # sum the absolute values of the terms of the bilinear form


@dataclass(frozen=True, eq=False)
class GroupColumns:
    """Batched kernel of one element type: a function of (local state, nothing, time and parameters).

    Its outputs are the contributions to `sum_targets`, then those to `max_targets`, then those added to the outputs in
    `scatter`, which has one row per element.
    """

    group: TypeGroup
    function: ca.Function
    places: np.ndarray  # indices of the local state in the state vector, one row per element
    sums: tuple[int, ...]
    largest: tuple[int, ...]
    placed: np.ndarray


@dataclass(frozen=True, eq=False)
class ElementColumns:
    """Observables of states as sums over elements."""

    width: int
    shared: int  # number of parameters shared by all elements
    groups: tuple[GroupColumns, ...]
    products: tuple[tuple[int, bool, Products], ...] = field(default=())


def columns(system: System, wanted: Sequence[Column]) -> ElementColumns:
    """Return the element sums with one output per reduction."""
    groups = []
    for group in system.groups:
        local = _local(group.model)
        sums = {j: ca.SX(c.add(local)) for j, c in enumerate(wanted) if c.add is not None}
        sums = {j: value for j, value in sums.items() if not value.is_zero()}
        largest = {j: ca.densify(ca.SX(c.largest(local))) for j, c in enumerate(wanted) if c.largest is not None}
        largest = {j: ca.mmax(ca.fabs(value)) for j, value in largest.items() if value.numel()}
        if sums or largest:
            none = np.zeros((group.count, 0), dtype=np.int64)
            outputs = ca.vertcat(*sums.values(), *largest.values())
            groups.append(_group(system, group, local, outputs, tuple(sums), tuple(largest), none))
    products = [(j, c.absolute, c.products) for j, c in enumerate(wanted) if c.products is not None]
    return ElementColumns(len(wanted), system.shared.size, tuple(groups), tuple(products))


def placed(system: System, width: int, says: Says, where: Callable[[TypeGroup], np.ndarray]) -> ElementColumns:
    """Return element sums with `n_outputs` outputs, such as one per constraint, scattered to the given targets."""
    groups = []
    for group in system.groups:
        local = _local(group.model)
        values = ca.densify(ca.SX(says(local)))
        if values.numel():
            groups.append(_group(system, group, local, values, (), (), where(group)))
    return ElementColumns(width, system.shared.size, tuple(groups))


def _local(model: ElementModel) -> Local:
    return Local(model, ca.SX.sym("p", model.n), ca.SX.sym("lam", model.m) if model.m else ca.SX(0, 1))


def _group(
    system: System,
    group: TypeGroup,
    local: Local,
    values: Any,
    sums: tuple[int, ...],
    largest: tuple[int, ...],
    table: np.ndarray,
) -> GroupColumns:
    n, model = system.n, group.model
    at = group.coordinates
    places = np.concatenate([at, n + at, 2 * n + at, 3 * n + group.constraints], axis=1)
    used = [i for i, needed in enumerate(ca.which_depends(values, local.state, 1, False)) if needed]
    nothing = ca.SX.sym("z", 0)
    inputs = [local.state[used] if used else ca.SX.sym("x", 0), nothing, ca.vertcat(model.t, model.k)]
    rest = [i for i in range(local.state.numel()) if i not in set(used)]
    if rest:  # expressions may contain symbols that they do not depend on
        values = ca.substitute(values, local.state[rest], ca.SX.zeros(len(rest)))
    function = ca.Function("columns", inputs, [ca.densify(values)])
    return GroupColumns(group, function, places[:, used], sums, largest, table)


# -- observables ------------------------------------------------------------------------------------------------------
def _rate(local: Local) -> Any:
    model = local.model
    return ca.jtimes(model.g, model.q, model.v) + ca.jacobian(model.g, model.t)


def _products_of_p_and_v(system: System) -> Products:
    each = np.arange(system.n)
    return Products(2 * system.n + each, system.n + each, np.ones(system.n))


def _kinetic_of_momenta(local: Local) -> Any:
    """Return ``p.M^-1 p/2 + V`` of an element that shares its mass coordinates with no other element."""
    model = local.model
    if model.T.is_zero():
        return model.V
    M = model.mass
    for four in model.quaternions:
        i = list(four)
        a = ca.substitute(ca.trace(M[i, i]), model.q[i], ca.DM([1, 0, 0, 0])) / 2
        direction = ca.SX(model.n, 1)
        direction[i] = model.q[i]
        M = M + a * direction @ direction.T
    return ca.dot(local.p, ca.solve(M, local.p)) / 2 + model.V


def _alone(system: System) -> bool:
    """Return whether no coordinate has mass in two elements and all quaternions are declared by elements."""
    moving = [group for group in system.groups if not group.model.T.is_zero()]
    moved = np.concatenate([group.coordinates.ravel() for group in moving])
    declared = sum(group.count * len(group.model.quaternions) for group in moving)
    return len(np.unique(moved)) == len(moved) and declared == len(system.quaternions)


def momentum_products(system: System, name: str) -> list[Products] | None:
    """Return the components of a momentum map ``p.xi(q)`` as bilinear forms; None if xi is not linear in q."""
    generator = system.momentum_symmetry(name)
    if not has_linear_generators(generator):
        return None
    return _momentum_products(generator, system.n)


@functools.lru_cache(maxsize=32)
def _momentum_products(generator: ca.Function, n: int) -> list[Products]:
    q = ca.SX.sym("q", n)
    xi = generator(q)
    found = []
    for j in range(xi.shape[1]):
        slopes = ca.jacobian(xi[:, j], q)
        rows, columns_ = (np.array(part, dtype=np.int64) for part in slopes.sparsity().get_triplet())
        values = np.array(ca.DM(ca.evalf(ca.SX(slopes.nz[:])))).ravel() if rows.size else np.zeros(0)
        shift = np.array(ca.DM(generator(ca.DM.zeros(n)))[:, j].full()).ravel()
        moved = np.flatnonzero(shift)
        first = np.concatenate([2 * n + rows, 2 * n + moved])
        second = np.concatenate([columns_, np.full(moved.size, -1)])
        found.append(Products(first, second, np.concatenate([values, shift[moved]])))
    return found


def energy_column(system: System, name: str) -> Column | None:
    """Return the reduction of an energy by its name; None if the energy is not a sum over elements."""
    if name == "kinetic_energy":
        return Column(lambda e: e.model.T)
    if name == "potential_energy":
        return Column(lambda e: e.model.V)
    if name == "total_energy":
        return Column(lambda e: e.model.T + e.model.V)
    if name == "generalized_energy":
        return Column(lambda e: e.model.V - e.model.T, products=_products_of_p_and_v(system))
    if name == "hamiltonian" and system.regular_augmented_mass and system.quadratic_kinetic_energy and _alone(system):
        return Column(_kinetic_of_momenta)
    return None


def watched(system: System, energy: str, momenta: Sequence[str]) -> tuple[ElementColumns, np.ndarray] | None:
    """Return element sums of the monitored quantities, and the number of components of each momentum map.

    The outputs are the energy, its scale, the constraint residuals at both levels and the momenta. None is returned if
    one of them is not a sum over elements.
    """
    first = energy_column(system, energy)
    maps = [momentum_products(system, name) for name in momenta]
    if first is None or any(m is None for m in maps):
        return None
    found = [
        first,
        Column(lambda e: e.model.T),
        Column(largest=lambda e: e.model.g),
        Column(largest=_rate),
        *(Column(products=product) for m in maps if m is not None for product in m),
    ]
    return columns(system, found), np.array([len(m) for m in maps if m is not None], dtype=np.int64)


#: Name of the observable "maximum absolute velocity over all coordinates".
SPEED = "largest velocity"


def named(system: System, name: str) -> ElementColumns | None:
    """Return the element sums of an observable by its name; None if it is not a sum over elements."""
    if name == SPEED:
        return columns(system, [Column(largest=lambda e: e.model.v)])
    if name == "constraint":
        return placed(system, system.m, lambda e: e.model.g, lambda group: group.constraints)
    if name == "velocity_constraint":
        return placed(system, system.m, _rate, lambda group: group.constraints)
    if name == "constraint_forces":
        forces = lambda e: ca.jacobian(e.model.g, e.model.q).T @ e.lam if e.model.m else ca.SX(0, 1)  # noqa: E731
        return placed(system, system.n, forces, lambda group: group.coordinates)
    if name in system.symmetries:
        products = momentum_products(system, name)
        return None if products is None else columns(system, [Column(products=product) for product in products])
    column = energy_column(system, name)
    return None if column is None else columns(system, [column])


# -- roundoff ---------------------------------------------------------------------------------------------------------
def _terms(says: Says) -> Says:
    """Return the expression of the condition ``max(|J| |z|, |f|)`` of an element expression f with Jacobian J."""

    def size(local: Local) -> Any:
        value, z = ca.SX(says(local)), local.state
        return ca.fmax(ca.fabs(ca.jacobian(value, z)) @ ca.fabs(z), ca.fabs(value)) if value.numel() else value

    return size


def term_columns(system: System, names: Sequence[str]) -> tuple[ElementColumns, list[slice]] | None:
    """Return element sums of the magnitudes of the terms of observables, and the output slice of each observable."""
    found: list[Column] = []
    slices = []
    for name in names:
        before = len(found)
        if name in ("constraint", "velocity_constraint"):
            found.append(Column(largest=_terms(_rate if name == "velocity_constraint" else lambda e: e.model.g)))
        elif name in system.symmetries:
            products = momentum_products(system, name)
            if products is None:
                return None
            found += [Column(products=product.sizes, absolute=True) for product in products]
        else:
            column = energy_column(system, name)
            if column is None or column.add is None:
                return None
            own = column.products
            found.append(Column(_terms(column.add), None, None if own is None else own.sizes, True))
        slices.append(slice(before, len(found)))
    return columns(system, found), slices
