"""Assembled step equations of a System: nodal residual plus the sum of the element contributions."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import casadi as ca
import numpy as np

from livens.expressions.graph.roundoff import roundoff_bound
from livens.expressions.state_layout import Layout
from livens.models.base import sha256_of
from livens.models.element import ElementType
from livens.models.system import System
from livens.schemes.core.step_equations import ErrorEstimate, StepEquations, StepGraph, array_sha256
from livens.schemes.discretization.assembly_plan import AssemblyPlan
from livens.schemes.discretization.element_scheme import (
    ElementFunctions,
    ElementScheme,
    MechanicalState,
    NullspaceReduction,
)
from livens.schemes.discretization.unit_quaternion import unit_norm_multiplier
from livens.types import Expr


class ElementKernel:
    """Compiled contribution of one element type with its Jacobian.

    Arguments are ``(x, q, v, p, h, t, k)``: the local unknowns block after block, the state and the parameters of one
    element. `function` returns (residual, nonzeros of the Jacobian at `sparsity`, momenta, work supplied and
    dissipated). `roundoff_bound` has the errors of the unknowns as additional argument and bounds the round-off of the
    residual.
    """

    def __init__(self, scheme: ElementScheme, model: ElementType) -> None:
        n, m = model.n, model.m
        x = ca.SX.sym("x", len(scheme.unknowns) * n + len(scheme.multipliers) * m)
        q, v, p, h, t = ca.SX.sym("q", n), ca.SX.sym("v", n), ca.SX.sym("p", n), ca.SX.sym("h"), ca.SX.sym("t")
        old = MechanicalState(q=q, v=v, p=p)
        unknown = unpack_unknowns(scheme, x, n, m)
        q1, v1 = scheme.kinematic_update(old, unknown, h)
        contribution = scheme.element_contribution(
            ElementFunctions(model), old, MechanicalState(q=q1, v=v1), unknown, h, t
        )
        residual = ca.densify(ca.vertcat(*contribution.residuals, *contribution.constraint_residuals))
        jacobian = _coo_entries(ca.jacobian(residual, x))
        self.model = model
        self.sparsity = list(jacobian)
        work = ca.vertcat(ca.SX(contribution.supplied_work), ca.SX(contribution.dissipated_work))
        arguments = [x, q, v, p, h, t, model.k]
        self.function = ca.Function(
            "share",
            arguments,
            [residual, ca.vertcat(*jacobian.values()), ca.densify(contribution.momentum), ca.densify(work)],
        )
        e = ca.SX.sym("e", x.numel())
        residual_function = ca.Function("rows", arguments, [residual])
        bound = roundoff_bound(residual_function, arguments, [e, *(ca.fabs(argument) for argument in arguments[1:])])
        self.roundoff_bound = ca.Function("noise", [*arguments, e], [ca.densify(bound)])


@dataclass(frozen=True, eq=False)
class ElementKernelGroup:
    """All elements of one type: their kernel and index tables with one row per element."""

    kernel: ElementKernel
    elements: np.ndarray
    coordinates: np.ndarray  # indices of the element's coordinates
    constraints: np.ndarray  # indices of the element's constraints
    parameters: np.ndarray  # indices of the element's parameters

    def unknown_dofs(self, i: int, unknowns: Layout, scheme: ElementScheme) -> list[int]:
        """Return the global indices of the unknowns and equations of element i, in the order of the kernel."""
        dofs = [unknowns[name].start + int(j) for name in scheme.unknowns for j in self.coordinates[i]]
        return dofs + [unknowns[name].start + int(j) for name in scheme.multipliers for j in self.constraints[i]]


class ElementEquations(StepEquations):
    """Step equations of a System in an element scheme, with element structure.

    Unknowns and equations have the same numbering: blocks of coordinates, then blocks of constraints. The multipliers
    of `removed_constraints` are zero. Every element type is differentiated once, independent of its multiplicity.
    """

    def __init__(self, system: System, scheme: ElementScheme, removed_constraints: tuple[int, ...] = ()) -> None:
        self.system, self.scheme, self.removed_constraints = system, scheme, removed_constraints
        self.layout = system.layout
        sizes = dict.fromkeys(scheme.unknowns, system.n) | dict.fromkeys(scheme.multipliers, system.m)
        self.unknowns = Layout(**sizes)

    @functools.cached_property
    def groups(self) -> tuple[ElementKernelGroup, ...]:
        """Elements by type, in the order of first occurrence."""
        return tuple(
            ElementKernelGroup(
                ElementKernel(self.scheme, g.element_type), g.elements, g.coordinates, g.constraints, g.parameters
            )
            for g in self.system.element_groups
        )

    @functools.cached_property
    def nodal_function(self) -> ca.Function:
        """Nodal function of one coordinate: (residual, q1, v1, nodal part of p1) of ``(x, q, v, p, h)``."""
        scheme = self.scheme
        x, h = ca.SX.sym("x", len(scheme.unknowns)), ca.SX.sym("h")
        old = MechanicalState(q=ca.SX.sym("q"), v=ca.SX.sym("v"), p=ca.SX.sym("p"))
        unknown = unpack_unknowns(scheme, x, 1, 0)
        q1, v1 = scheme.kinematic_update(old, unknown, h)
        residual = ca.densify(ca.vertcat(*scheme.nodal_residual(old, unknown, h)))
        p1 = ca.densify(scheme.nodal_momentum(old, unknown, h))
        return ca.Function("own", [x, old.q, old.v, old.p, h], [residual, q1, v1, p1])

    @functools.cached_property
    def reductions(self) -> tuple[NullspaceReduction, ...]:
        """Null-space reductions of the scheme."""
        return tuple(self.scheme.nullspace_reductions(self.system))

    @functools.cached_property
    def equation_labels(self) -> tuple[str, ...]:
        """Labels of the equations, before reductions."""
        system, scheme = self.system, self.scheme
        suffix = ["" if len(scheme.unknowns) == 1 else f" ({name})" for name in scheme.unknowns]
        balance = [f"balance of momentum of {c}{s}" for s in suffix for c in system.coordinates]
        suffix = ["" if len(scheme.multipliers) == 1 else f" ({name})" for name in scheme.multipliers]
        return (*balance, *(f"constraint {g}{s}" for s in suffix for g in system.constraint_names))

    @functools.cached_property
    def _unreduced(self) -> ElementEquations:
        """Equations before reductions, for tiers with body-wise elimination."""
        if not self.reductions:
            return self
        return ElementEquations(self.system, self.scheme.unreduced(), self.removed_constraints)

    @property
    def n_assembled_unknowns(self) -> int:
        return 0 if self._unreduced.reductions else self._unreduced.unknowns.size

    def assembly_plan(self) -> AssemblyPlan | None:
        from livens.schemes.discretization.element_batches import element_plan  # circular import

        return element_plan(self._unreduced) if self.n_assembled_unknowns else None

    @functools.cached_property
    def fingerprint(self) -> str:
        parts: list[Any] = [
            self.nodal_function.serialize(),
            self.layout.sizes,
            self.unknowns.sizes,
            self.removed_constraints,
        ]
        for group in self.groups:
            tables = group.elements, group.coordinates, group.constraints, group.parameters
            parts += [group.kernel.function.serialize(), group.kernel.sparsity, *map(array_sha256, tables)]
        parts += [(r.coordinates, r.constraints, r.size, r.equation_labels) for r in self.reductions]
        return sha256_of(["elements", self.scheme.name, parts])

    # -- as one graph -------------------------------------------------------------------------------------------------
    def to_single_graph(self) -> StepGraph:
        return self._graph

    @functools.cached_property
    def _graph(self) -> StepGraph:
        """Step graph: the assembled sum in the element order of the system."""
        system, scheme, layout = self.system, self.scheme, self.layout
        n, m = system.n, system.m
        x, z = ca.SX.sym("x", self.unknowns.size), ca.SX.sym("z", layout.size)
        c = ca.SX.sym("c", 2 + system.parameter_count)
        h, t, k = c[0], c[1], c[2:]
        old = MechanicalState(q=z[layout["q"]], v=z[layout["v"]], p=z[layout["p"]])
        unknown = unpack_unknowns(scheme, x, n, m)

        q1, v1 = scheme.kinematic_update(old, unknown, h)
        p1 = ca.vertsplit(ca.densify(scheme.nodal_momentum(old, unknown, h)))
        zeros = ca.SX(len(scheme.multipliers) * m, 1)
        residual = ca.vertsplit(ca.densify(ca.vertcat(*scheme.nodal_residual(old, unknown, h), zeros)))
        supplied, dissipated = z[layout["supplied_energy"]], z[layout["dissipated_energy"]]
        jacobian = _coo_entries(ca.jacobian(ca.vertcat(*residual), x))
        e = ca.SX.sym("e", x.numel())  # errors of the unknowns, for the round-off bound of the residual
        nodal_residual = ca.Function("rows", [x, z, c], [ca.vertcat(*residual)])
        roundoff = ca.vertsplit(ca.densify(roundoff_bound(nodal_residual, [x, z, c], [e, ca.fabs(z), ca.fabs(c)])))

        for group, i in self._element_order():
            dofs, index = group.unknown_dofs(i, self.unknowns, scheme), group.coordinates[i].tolist()
            arguments = x[dofs], old.q[index], old.v[index], old.p[index], h, t, k[group.parameters[i].tolist()]
            contribution, entries, p, work = group.kernel.function(*arguments)
            rounding = group.kernel.roundoff_bound(*arguments, e[dofs])
            for a, row in enumerate(dofs):
                residual[row] += contribution[a]
                roundoff[row] += rounding[a] + ca.fabs(contribution[a])  # of the contribution, and of its addition
            for a, (row, column) in enumerate(group.kernel.sparsity):
                position = dofs[row], dofs[column]
                jacobian[position] = jacobian[position] + entries[a] if position in jacobian else entries[a]
            for a, j in enumerate(index):
                p1[j] += p[a]
            supplied, dissipated = supplied + work[0], dissipated + work[1]

        for constraint in self.removed_constraints:
            for name in scheme.multipliers:
                row = self.unknowns[name].start + constraint
                residual[row], roundoff[row] = x[row], e[row]
                jacobian = {position: value for position, value in jacobian.items() if position[0] != row}
                jacobian[row, row] = ca.SX(1)

        lam = (
            scheme.reported_multipliers(unknown, z[layout["multipliers"]]) if scheme.multipliers and m else ca.SX(0, 1)
        )
        nonzeros = sorted(jacobian, key=lambda entry: (entry[1], entry[0]))
        assembled_residual = ca.vertcat(*residual)
        graph = StepGraph(
            x=x,
            z=z,
            c=c,
            residual=assembled_residual,
            jac_rows=np.array([row for row, _ in nonzeros], dtype=np.int64),
            jac_cols=np.array([column for _, column in nonzeros], dtype=np.int64),
            jac_values=ca.vertcat(*(jacobian[position] for position in nonzeros)),
            final_state=ca.densify(ca.vertcat(q1, v1, *p1, supplied, dissipated, lam)),
            initial_guess=self._initial_guess(old, z, c, ca.Function("residual", [x, z, c], [assembled_residual])),
            block_sizes=(n,) * len(scheme.unknowns) + (m,) * len(scheme.multipliers),
            equation_labels=self.equation_labels,
            layout=layout,
            assembled_roundoff_bound=ca.Function("noise", [x, z, c, e], [ca.vertcat(*roundoff)]),
            dense_output=self._dense_output(old, unknown, h),
            error_estimate=self._error_estimate(old, unknown, h),
            linear_predictor=self._linear_predictor(unknown),
            named_values={**vars(unknown), **scheme.named_values(old, unknown, h)},
        )
        return _apply_reductions(graph, self.reductions, self.unknowns, scheme) if self.reductions else graph

    def _element_order(self) -> list[tuple[ElementKernelGroup, int]]:
        """Return every element as (group, index in the group), in the order of the system."""
        by_index = {int(index): (group, i) for group in self.groups for i, index in enumerate(group.elements)}
        return [by_index[index] for index in sorted(by_index)]

    # -- initial guess by coordinate, quaternion and constraint -------------------------------------------------------
    def _initial_guess(self, old: MechanicalState, z: Expr, c: Expr, residual: ca.Function) -> Expr:
        scheme, system, layout, h = self.scheme, self.system, self.layout, c[0]
        blocks = [ca.SX(ca.densify(block)) for block in scheme.initial_guess(old, h)]
        for quat_dofs in system.quaternions:
            i = list(quat_dofs)
            quaternion_blocks = scheme.initial_quaternion_guess(MechanicalState(q=old.q[i], v=old.v[i], p=old.p[i]), h)
            for block, part in zip(blocks, quaternion_blocks or (), strict=quaternion_blocks is not None):
                block[i] = part
        lam = z[layout["multipliers"]] if system.m else ca.SX(0, 1)
        multipliers = [scheme.initial_multiplier_guess(name, lam) for name in scheme.multipliers] if system.m else []
        initial = ca.SX(ca.densify(ca.vertcat(*blocks, *multipliers)))
        changes = scheme.refine_guess(*self._unpack_pair(initial, residual(initial, z, c)))
        for name, block in changes.items():
            initial[self.unknowns[name]] = block
        if scheme.momentum_block and system.quaternions:
            multiplier_start = self.unknowns[scheme.multipliers[0]].start
            for constraint in system.quaternion_constraints:
                initial[multiplier_start + constraint] = 0
            x, r = self._unpack_pair(initial, residual(initial, z, c))
            for constraint, quat_dofs in zip(system.quaternion_constraints, system.quaternions, strict=True):
                i = list(quat_dofs)
                q_m = old.q[i] + h / 2 * getattr(x, scheme.unknowns[0])[i]
                initial[multiplier_start + constraint] = unit_norm_multiplier(
                    q_m, getattr(r, scheme.momentum_block)[i], h
                )
        return initial

    def _unpack_pair(self, x: Expr, r: Expr) -> tuple[SimpleNamespace, SimpleNamespace]:
        n, m = self.system.n, self.system.m
        return unpack_unknowns(self.scheme, x, n, m), unpack_unknowns(self.scheme, r, n, m)

    # -- optional parts of a scheme -----------------------------------------------------------------------------------
    def _dense_output(self, old: MechanicalState, unknown: SimpleNamespace, h: Expr) -> Any:
        theta = ca.SX.sym("theta")
        output = self.scheme.dense_output(old, unknown, h, theta)
        return None if output is None else (theta, {"q": output[0], "v": output[1]})

    def _error_estimate(self, old: MechanicalState, unknown: SimpleNamespace, h: Expr) -> ErrorEstimate | None:
        error = self.scheme.error_estimate(old, unknown, h)
        if error is None:
            return None
        return ErrorEstimate(
            errors=error,
            scales=ca.fmax(ca.fabs(old.q), ca.fabs(self.scheme.kinematic_update(old, unknown, h)[0])),
            order=self.scheme.error_order,
            names=self.system.coordinates,
        )

    def _linear_predictor(self, unknown: SimpleNamespace) -> Expr | None:
        weights = self.scheme.linear_predictor
        if weights is None:
            return None
        blocks = [getattr(unknown, name) for name in self.scheme.unknowns]
        predicted = [sum((w * block for w, block in zip(row, blocks, strict=True)), 0 * blocks[0]) for row in weights]
        n_remaining = self.unknowns.size - len(predicted) * self.system.n
        return ca.densify(ca.vertcat(*predicted, ca.SX(n_remaining, 1)))


def unpack_unknowns(scheme: ElementScheme, x: Any, n: int, m: int) -> SimpleNamespace:
    """Return the unknowns by name, for n coordinates and m constraints."""
    names = [(name, n) for name in scheme.unknowns] + [(name, m) for name in scheme.multipliers]
    blocks, start = {}, 0
    for name, size in names:
        # an empty slice of a 1x1 SX has shape (1, 0) and would count as a row
        blocks[name] = x[start : start + size] if size else ca.SX(0, 1)
        start += size
    return SimpleNamespace(**blocks)


def _coo_entries(matrix: Expr) -> dict[tuple[int, int], Expr]:
    rows, columns = matrix.sparsity().get_triplet()
    return {(row, column): matrix[row, column] for row, column in zip(rows, columns, strict=True)}


def _apply_reductions(
    e: StepGraph, reductions: tuple[NullspaceReduction, ...], unknowns: Layout, scheme: ElementScheme
) -> StepGraph:
    """Return the equations after the reductions: remaining unknowns first, then the reduced unknowns body by body."""
    velocity, multiplier = unknowns[scheme.unknowns[0]].start, unknowns[scheme.multipliers[0]].start
    replaced = {velocity + i for reduction in reductions for i in reduction.coordinates}
    eliminated = {multiplier + i for reduction in reductions for i in reduction.constraints}
    remaining = [i for i in range(e.size) if i not in replaced and i not in eliminated]
    h, q0 = e.c[0], e.z[e.layout["q"]]
    reduced_unknowns = [ca.SX.sym("w", reduction.size) for reduction in reductions]
    x_remaining = ca.SX.sym("x", len(remaining))
    x = ca.SX.zeros(e.size)
    x[remaining] = x_remaining
    for reduction, y in zip(reductions, reduced_unknowns, strict=True):
        i = list(reduction.coordinates)
        x[[velocity + j for j in i]] = reduction.prolong(q0[i], y, h)
    r = e.residual_function(x, e.z, e.c)
    final_state = e.final_state_function(x, e.z, e.c)
    initial_guess = e.initial_guess_function(e.z, e.c)
    residuals, names, reduced_guesses = [r[remaining]], [e.equation_labels[i] for i in remaining], []
    for reduction in reductions:
        i = list(reduction.coordinates)
        dofs = [velocity + j for j in i]
        residuals.append(reduction.project_residual(q0[i], x[dofs], r[dofs], h))
        names += reduction.equation_labels
        multipliers = [e.layout["multipliers"].start + j for j in reduction.constraints]
        final_state[multipliers] = reduction.recover_multipliers(q0[i], x[dofs], r[dofs], h)
        reduced_guesses.append(reduction.reduce_guess(q0[i], initial_guess[dofs]))
    n_velocities = sum(1 for i in remaining if i < multiplier)
    return StepGraph.from_residual(
        ca.vertcat(x_remaining, *reduced_unknowns),
        e.z,
        e.c,
        residual=ca.densify(ca.vertcat(*residuals)),
        final_state=ca.densify(final_state),
        initial_guess=ca.densify(ca.vertcat(initial_guess[remaining], *reduced_guesses)),
        block_sizes=(n_velocities, len(remaining) - n_velocities, sum(reduction.size for reduction in reductions)),
        equation_labels=tuple(names),
        layout=e.layout,
    )
