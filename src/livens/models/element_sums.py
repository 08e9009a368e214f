"""Observables of large systems as sums over elements: the compiled code does not grow with the number of elements.

A reduction is a sum over elements, or the maximum of their entries. Bilinear forms of the state (``p.v``, momentum maps
of translations and rotations) are added to sums. The state vector is ``(q, v, p)``, followed by the multipliers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import casadi as ca
import numpy as np

from livens.expressions.parameters import Parameters
from livens.models.element import ElementType
from livens.models.element_groups import ElementGroup
from livens.models.energy_round_off import energy_round_off_terms
from livens.models.symmetry import is_linear_generator
from livens.models.system import System
from livens.types import Expr


@dataclass(frozen=True, eq=False)
class ElementSymbols:
    """Symbols of one element type in an expression."""

    element_type: ElementType
    p: Any
    lam: Any

    @property
    def state(self) -> Expr:
        """Entries that are gathered from the state vector of the system."""
        return ca.vertcat(self.element_type.q, self.element_type.v, self.p, self.lam)


class SumOfElements(Protocol):
    """Protocol of a model whose observables are sums over elements."""

    n: int
    model_parameters: Parameters

    @property
    def element_groups(self) -> tuple[ElementGroup, ...]: ...


#: Expression of the symbols of one element type.
ElementExpression = Callable[[ElementSymbols], Any]


@dataclass(frozen=True, eq=False)
class BilinearForm:
    """Bilinear form ``sum values z[rows] z[columns]`` in COO format; a negative column stands for the factor 1."""

    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray

    @property
    def condition(self) -> BilinearForm:
        """Bilinear form of the condition of the sum: absolute terms, times 2 if quadratic in the state."""
        factors = np.where(self.columns < 0, 1.0, 2.0)
        return BilinearForm(self.rows, self.columns, factors * np.abs(self.values))


@dataclass(frozen=True)
class Reduction:
    """Scalar observable of a state: a sum over elements and bilinear forms, or the maximum over elements."""

    sum: ElementExpression | None = None
    max_abs: ElementExpression | None = None
    bilinear: BilinearForm | None = None
    absolute: bool = False  # sum the absolute values of the terms of the bilinear form


@dataclass(frozen=True, eq=False)
class GroupKernel:
    """Batched kernel of one element type: a function of (local state, nothing, time and parameters).

    Its outputs are the contributions to `sum_targets`, then those to `max_targets`, then those added to the outputs in
    `scatter`, which has one row per element.
    """

    group: ElementGroup
    function: ca.Function
    state_dofs: np.ndarray  # indices of the local state in the state vector, one row per element
    sum_targets: tuple[int, ...]
    max_targets: tuple[int, ...]
    scatter: np.ndarray


@dataclass(frozen=True, eq=False)
class ElementSums:
    """Observables of states as sums over elements."""

    n_outputs: int
    n_shared: int  # number of parameters shared by all elements
    groups: tuple[GroupKernel, ...]
    bilinear: tuple[tuple[int, bool, BilinearForm], ...] = field(default=())


def element_sums(system: SumOfElements, reductions: Sequence[Reduction]) -> ElementSums:
    """Return the element sums with one output per reduction."""
    groups = []
    for group in system.element_groups:
        symbols = _symbols(group.element_type)
        sums = {j: ca.SX(c.sum(symbols)) for j, c in enumerate(reductions) if c.sum is not None}
        sums = {j: value for j, value in sums.items() if not value.is_zero()}
        maxima = {j: ca.densify(ca.SX(c.max_abs(symbols))) for j, c in enumerate(reductions) if c.max_abs is not None}
        maxima = {j: ca.mmax(ca.fabs(value)) for j, value in maxima.items() if value.numel()}
        if sums or maxima:
            no_scatter = np.zeros((group.count, 0), dtype=np.int64)
            outputs = ca.vertcat(*sums.values(), *maxima.values())
            groups.append(_kernel(system, group, symbols, outputs, tuple(sums), tuple(maxima), no_scatter))
    bilinear = [(j, c.absolute, c.bilinear) for j, c in enumerate(reductions) if c.bilinear is not None]
    return ElementSums(len(reductions), system.model_parameters.size, tuple(groups), tuple(bilinear))


def scattered_sums(
    system: System, n_outputs: int, expression: ElementExpression, targets: Callable[[ElementGroup], np.ndarray]
) -> ElementSums:
    """Return element sums with `n_outputs` outputs, such as one per constraint, scattered to the given targets."""
    groups = []
    for group in system.element_groups:
        symbols = _symbols(group.element_type)
        values = ca.densify(ca.SX(expression(symbols)))
        if values.numel():
            groups.append(_kernel(system, group, symbols, values, (), (), targets(group)))
    return ElementSums(n_outputs, system.model_parameters.size, tuple(groups))


def _symbols(model: ElementType) -> ElementSymbols:
    return ElementSymbols(model, ca.SX.sym("p", model.n), ca.SX.sym("lam", model.m) if model.m else ca.SX(0, 1))


def _kernel(
    system: SumOfElements,
    group: ElementGroup,
    symbols: ElementSymbols,
    values: Expr,
    sum_targets: tuple[int, ...],
    max_targets: tuple[int, ...],
    scatter: np.ndarray,
) -> GroupKernel:
    n, model = system.n, group.element_type
    dofs = group.coordinates
    state_dofs = np.concatenate([dofs, n + dofs, 2 * n + dofs, 3 * n + group.constraints], axis=1)
    used = [i for i, needed in enumerate(ca.which_depends(values, symbols.state, 1, False)) if needed]
    no_unknowns = ca.SX.sym("z", 0)
    inputs = [symbols.state[used] if used else ca.SX.sym("x", 0), no_unknowns, ca.vertcat(model.t, model.k)]
    unused = [i for i in range(symbols.state.numel()) if i not in set(used)]
    if unused:  # expressions may contain symbols that they do not depend on
        values = ca.substitute(values, symbols.state[unused], ca.SX.zeros(len(unused)))
    function = ca.Function("columns", inputs, [ca.densify(values)])
    return GroupKernel(group, function, state_dofs[:, used], sum_targets, max_targets, scatter)


# -- observables ------------------------------------------------------------------------------------------------------
def _constraint_velocity(symbols: ElementSymbols) -> Expr:
    return symbols.element_type.g_dot


def _p_dot_v(system: System) -> BilinearForm:
    dofs = np.arange(system.n)
    return BilinearForm(2 * system.n + dofs, system.n + dofs, np.ones(system.n))


def _element_hamiltonian(symbols: ElementSymbols) -> Expr:
    """Return ``p.M^-1 p/2 + V`` of an element that shares its mass coordinates with no other element."""
    model = symbols.element_type
    if model.T.is_zero():
        return model.V
    M = model.mass
    for quat in model.quaternions:
        i = list(quat)
        a = ca.substitute(ca.trace(M[i, i]), model.q[i], ca.DM([1, 0, 0, 0])) / 2
        direction = ca.SX(model.n, 1)
        direction[i] = model.q[i]
        M = M + a * direction @ direction.T
    return ca.dot(symbols.p, ca.solve(M, symbols.p)) / 2 + model.V


def _masses_are_disjoint(system: System) -> bool:
    """Return whether no coordinate has mass in two elements and all quaternions are declared by elements."""
    massive_groups = [group for group in system.element_groups if not group.element_type.T.is_zero()]
    massive_dofs = np.concatenate([group.coordinates.ravel() for group in massive_groups])
    n_quaternions = sum(group.count * len(group.element_type.quaternions) for group in massive_groups)
    return len(np.unique(massive_dofs)) == len(massive_dofs) and n_quaternions == len(system.quaternions)


def momentum_map_forms(system: System, name: str) -> list[BilinearForm] | None:
    """Return the components of a momentum map ``p.xi(q)`` as bilinear forms; None if xi is not linear in q."""
    generator = system.symmetry_generator(name)
    if not is_linear_generator(generator):
        return None
    return _momentum_map_forms(generator, system.n)


@functools.lru_cache(maxsize=32)
def _momentum_map_forms(generator: ca.Function, n: int) -> list[BilinearForm]:
    q = ca.SX.sym("q", n)
    xi = generator(q)
    forms = []
    for j in range(xi.shape[1]):
        jacobian = ca.jacobian(xi[:, j], q)
        rows, columns_ = (np.array(part, dtype=np.int64) for part in jacobian.sparsity().get_triplet())
        values = np.array(ca.DM(ca.evalf(ca.SX(jacobian.nz[:])))).ravel() if rows.size else np.zeros(0)
        offset = np.array(ca.DM(generator(ca.DM.zeros(n)))[:, j].full()).ravel()
        shifted_dofs = np.flatnonzero(offset)
        form_rows = np.concatenate([2 * n + rows, 2 * n + shifted_dofs])
        form_columns = np.concatenate([columns_, np.full(shifted_dofs.size, -1)])
        forms.append(BilinearForm(form_rows, form_columns, np.concatenate([values, offset[shifted_dofs]])))
    return forms


def energy_reduction(system: System, name: str) -> Reduction | None:
    """Return the reduction of an energy by its name; None if the energy is not a sum over elements."""
    if name == "kinetic_energy":
        return Reduction(lambda e: e.element_type.T)
    if name == "potential_energy":
        return Reduction(lambda e: e.element_type.V)
    if name == "total_energy":
        return Reduction(lambda e: e.element_type.T + e.element_type.V)
    if name == "generalized_energy":
        return Reduction(lambda e: e.element_type.V - e.element_type.T, bilinear=_p_dot_v(system))
    if (
        name == "hamiltonian"
        and system.regular_augmented_mass
        and system.quadratic_kinetic_energy
        and _masses_are_disjoint(system)
    ):
        return Reduction(_element_hamiltonian)
    return None


def monitored_sums(system: System, energy: str, momenta: Sequence[str]) -> tuple[ElementSums, np.ndarray] | None:
    """Return element sums of the monitored quantities, and the number of components of each momentum map.

    The outputs are the energy, its scale, the constraint residuals at both levels and the momenta. None is returned if
    one of them is not a sum over elements.
    """
    energy_sum = energy_reduction(system, energy)
    momentum_maps = [momentum_map_forms(system, name) for name in momenta]
    if energy_sum is None or any(m is None for m in momentum_maps):
        return None
    reductions = [
        energy_sum,
        Reduction(lambda e: e.element_type.T),
        Reduction(max_abs=lambda e: e.element_type.g),
        Reduction(max_abs=_constraint_velocity),
        *(Reduction(bilinear=product) for m in momentum_maps if m is not None for product in m),
    ]
    return element_sums(system, reductions), np.array([len(m) for m in momentum_maps if m is not None], dtype=np.int64)


#: Name of the observable "maximum absolute velocity over all coordinates".
MAX_VELOCITY = "largest velocity"


def observable_sums(system: System, name: str) -> ElementSums | None:
    """Return the element sums of an observable by its name; None if it is not a sum over elements."""
    if name == MAX_VELOCITY:
        return element_sums(system, [Reduction(max_abs=lambda e: e.element_type.v)])
    if name == "constraint":
        return scattered_sums(system, system.m, lambda e: e.element_type.g, lambda group: group.constraints)
    if name == "velocity_constraint":
        return scattered_sums(system, system.m, _constraint_velocity, lambda group: group.constraints)
    if name == "constraint_forces":
        forces = lambda e: (  # noqa: E731
            ca.jacobian(e.element_type.g, e.element_type.q).T @ e.lam if e.element_type.m else ca.SX(0, 1)
        )
        return scattered_sums(system, system.n, forces, lambda group: group.coordinates)
    if name in system.symmetries:
        forms = momentum_map_forms(system, name)
        return None if forms is None else element_sums(system, [Reduction(bilinear=product) for product in forms])
    reduction = energy_reduction(system, name)
    return None if reduction is None else element_sums(system, [reduction])


# -- roundoff ---------------------------------------------------------------------------------------------------------
def _condition(expression: ElementExpression) -> ElementExpression:
    """Return the expression of the condition ``max(|J| |z|, |f|)`` of an element expression f with Jacobian J."""

    def condition(symbols: ElementSymbols) -> Expr:
        value, z = ca.SX(expression(symbols)), symbols.state
        return ca.fmax(ca.fabs(ca.jacobian(value, z)) @ ca.fabs(z), ca.fabs(value)) if value.numel() else value

    return condition


def roundoff_sums(system: System, names: Sequence[str]) -> tuple[ElementSums, list[slice]] | None:
    """Return element sums of the magnitudes of the terms of observables, and the output slice of each observable."""
    reductions: list[Reduction] = []
    slices = []
    for name in names:
        first_column = len(reductions)
        if name in ("constraint", "velocity_constraint"):
            reductions.append(
                Reduction(
                    max_abs=_condition(
                        _constraint_velocity if name == "velocity_constraint" else lambda e: e.element_type.g
                    )
                )
            )
        elif name in system.symmetries:
            forms = momentum_map_forms(system, name)
            if forms is None:
                return None
            reductions += [Reduction(bilinear=product.condition, absolute=True) for product in forms]
        else:
            reduction = energy_reduction(system, name)
            if reduction is None or reduction.sum is None:
                return None
            form = reduction.bilinear
            reductions.append(
                Reduction(_condition(reduction.sum), None, None if form is None else form.condition, True)
            )
        slices.append(slice(first_column, len(reductions)))
    return element_sums(system, reductions), slices


def energy_round_off_sums(system: System) -> ElementSums:
    """Return `energy_round_off_terms` as sums over elements."""

    def term(index: int) -> ElementExpression:
        return lambda e: energy_round_off_terms(
            ca.SX(e.element_type.T), ca.SX(e.element_type.V), e.element_type.q, e.element_type.v
        )[index]

    return element_sums(system, [Reduction(term(index)) for index in range(4)])
