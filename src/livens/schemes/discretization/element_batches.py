"""Assembly plan of an element scheme: batches of coordinates, of multipliers, and of each element type."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import casadi as ca
import numpy as np

from livens.expressions.state_layout import Layout
from livens.models.system import System
from livens.schemes.core.step_equations import ErrorEstimateInfo
from livens.schemes.discretization.assembly_plan import (
    AssemblyPlan,
    ElementBatch,
    KernelSymbols,
    compensated_constraints,
    evaluate_batch,
    evaluate_constraints,
    make_batch,
)
from livens.schemes.discretization.element_scheme import ElementScheme, MechanicalState
from livens.schemes.discretization.element_step import ElementEquations, ElementKernelGroup, unpack_unknowns
from livens.schemes.discretization.midpoint_velocity import MidpointVelocity
from livens.schemes.discretization.unit_quaternion import unit_norm_multiplier
from livens.types import Expr, ModelFunction


def element_plan(equations: ElementEquations) -> AssemblyPlan:
    """Return the assembly plan of the step equations, which must be unreduced."""
    assert not equations.reductions, "equations with null-space reductions have no assembly plan"
    system, scheme, unknowns = equations.system, equations.scheme, equations.unknowns
    batches = [_nodal_batch(equations), *(_element_batch(equations, group) for group in equations.groups)]
    if system.m and scheme.multipliers:
        batches.append(_reported_multipliers_batch(equations))
    if equations.removed_constraints and scheme.multipliers:
        batches.append(_removed_constraints_batch(equations))
    batches.append(energy_balance_batch(equations.layout))
    blocks = len(scheme.unknowns)
    is_multiplier = np.arange(unknowns.size) >= blocks * system.n
    body_index = np.full(unknowns.size, -1)
    body_index[: blocks * system.n] = np.tile(mass_coupled_dofs(system), blocks)
    initial_guess = _InitialGuess(equations)
    compensated = _uses_compensation(equations)
    error_estimate, error_info = _error_estimate(equations)
    return AssemblyPlan(
        layout=equations.layout,
        unknowns=unknowns,
        batches=tuple(p for p in batches if p.residual.numel() or p.final_state.numel()),
        block_sizes=(system.n,) * blocks + (system.m,) * len(scheme.multipliers),
        equation_labels=lambda: equations.equation_labels,
        is_multiplier=is_multiplier,
        body_index=body_index,
        initial_guess=initial_guess,
        dense_output=_dense_output(equations),
        error_estimate=error_estimate,
        error_info=error_info,
        compensation_layout=Layout(low=system.n, gap=system.m) if compensated else Layout(),
        initial_compensation=_InitialCompensation(equations) if compensated else lambda z, c: np.zeros(0),
    )


def _uses_compensation(equations: ElementEquations) -> bool:
    """Return True if the constraints are ``g(q0 + h v_m)/h`` and use the compensated form ``(g0 + increment)/h``.

    g0 is the constraint residual of the previous step, and positions are summed with compensation. The multipliers are
    then free of the round-off of the positions, which would be divided by h^2.
    """
    return isinstance(equations.scheme, MidpointVelocity)


class _InitialCompensation:
    """Compensation before the first step: constraint residuals of the initial positions."""

    def __init__(self, equations: ElementEquations) -> None:
        self._equations = equations

    def __call__(self, z: np.ndarray, c: np.ndarray) -> np.ndarray:
        system, q, k = self._equations.system, z[self._equations.layout["q"]], c[2:]
        compensation = np.zeros(system.n + system.m)
        for group in self._equations.groups:
            if group.constraints.shape[1]:
                values = evaluate_constraints(
                    group.kernel.model, q[group.coordinates], float(c[1]), k[group.parameters]
                )
                compensation[system.n + group.constraints] = values
        return compensation


def mass_coupled_dofs(system: System) -> np.ndarray:
    """Return the body index of each coordinate; coordinates coupled by a kinetic energy belong to one body."""
    from scipy.sparse import coo_matrix  # slow import
    from scipy.sparse.csgraph import connected_components

    rows, columns = list[int](), list[int]()
    for model, index in zip(system.element_types, system.element_dofs, strict=True):
        if not model.T.is_zero():
            rows += [index[0]] * len(index)
            columns += index
    graph = coo_matrix((np.ones(len(rows)), (rows, columns)), shape=(system.n, system.n))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)


def energy_balance_batch(layout: Layout) -> ElementBatch:
    """Return the batch that copies the energy balance (supplied and dissipated energy); elements add to it."""
    local = KernelSymbols.create(0, 2)
    dofs = np.array([[layout["supplied_energy"].start, layout["dissipated_energy"].start]])
    dof_tables = {"x": np.zeros((1, 0), dtype=np.int64), "z": dofs}
    return make_batch("ledger", local, ca.SX(0, 1), dof_tables, final_state=[(local.z, dofs)])


def state_dofs(layout: Layout, coordinates: np.ndarray) -> np.ndarray:
    """Return the indices of q, v and p of some coordinates in the state, part after part."""
    return np.concatenate([layout[part].start + coordinates for part in ("q", "v", "p")], axis=1)


def _nodal_batch(equations: ElementEquations) -> ElementBatch:
    """Return the batch of the nodal equations, one instance per coordinate."""
    system, scheme, layout = equations.system, equations.scheme, equations.layout
    local = KernelSymbols.create(len(scheme.unknowns), 3)
    residual, q1, v1, p1 = equations.nodal_function(local.x, local.z[0], local.z[1], local.z[2], local.h)
    each = np.arange(system.n)[:, None]
    x = np.concatenate([equations.unknowns[name].start + each for name in scheme.unknowns], axis=1)
    z = state_dofs(layout, each)
    if not _uses_compensation(equations):
        return make_batch("coordinates", local, residual, {"x": x, "z": z}, final_state=[(ca.vertcat(q1, v1, p1), z)])
    increments = [(local.h * local.x[0], z[:, :1], each)]
    return make_batch(
        "coordinates",
        local,
        residual,
        {"x": x, "z": z},
        final_state=[(ca.vertcat(v1, p1), z[:, 1:])],
        increments=increments,
    )


def _element_batch(equations: ElementEquations, group: ElementKernelGroup) -> ElementBatch:
    scheme, layout, unknowns = equations.scheme, equations.layout, equations.unknowns
    kernel, n = group.kernel, group.kernel.model.n
    count = len(group.elements)
    x = np.concatenate(
        [unknowns[name].start + group.coordinates for name in scheme.unknowns]
        + [unknowns[name].start + group.constraints for name in scheme.multipliers],
        axis=1,
    )
    m = group.constraints.shape[1] if _uses_compensation(equations) else 0
    local = KernelSymbols.create(x.shape[1], 3 * n, m, group.parameters.shape[1])
    arguments = local.x, local.z[:n], local.z[n : 2 * n], local.z[2 * n :], local.h, local.t, local.k
    residual, jac_values, momentum, work = kernel.function(*arguments)
    jacobian = ca.SX(residual.numel(), local.x.numel())
    for (row, column), a in zip(kernel.sparsity, ca.vertsplit(jac_values) if kernel.sparsity else [], strict=True):
        jacobian[row, column] = a
    energy_dofs = [layout["supplied_energy"].start, layout["dissipated_energy"].start]
    final_state = [
        (momentum, layout["p"].start + group.coordinates),
        (work, np.tile(np.array(energy_dofs), (count, 1))),
    ]
    equation_dofs = x.copy()
    if equations.removed_constraints and scheme.multipliers:
        removed = np.isin(group.constraints, equations.removed_constraints)
        equation_dofs[:, x.shape[1] - len(scheme.multipliers) * removed.shape[1] :][
            np.tile(removed, len(scheme.multipliers))
        ] = -1
    dofs = {"x": x, "z": state_dofs(layout, group.coordinates), "k": group.parameters}
    if not m:
        return make_batch("element", local, residual, dofs, equation_dofs, jacobian, final_state)
    dofs["m"] = equations.system.n + group.constraints
    arguments_at_q = local.z[:n], local.h * local.x[:n], local.h, local.t, local.k
    constraint_residual, remainder, compensated = compensated_constraints(
        kernel.model, residual[n:], list(range(m)), local.compensation, arguments_at_q
    )
    compensation = [(remainder, dofs["m"][:, compensated])]
    compensated_residual = ca.vertcat(residual[:n], constraint_residual)
    return make_batch(
        "element",
        local,
        compensated_residual,
        dofs,
        equation_dofs,
        jacobian,
        final_state,
        compensation,
        uncompensated_residual=ca.densify(residual),
    )


def _reported_multipliers_batch(equations: ElementEquations) -> ElementBatch:
    """Return the batch that writes the reported multipliers."""
    scheme, each = equations.scheme, np.arange(equations.system.m)[:, None]
    x = np.concatenate([equations.unknowns[name].start + each for name in scheme.multipliers], axis=1)
    local = KernelSymbols.create(x.shape[1], 1)
    blocks = SimpleNamespace(**{name: local.x[i] for i, name in enumerate(scheme.multipliers)})
    result_dofs = equations.layout["multipliers"].start + each
    reported = scheme.reported_multipliers(blocks, local.z)
    dofs = {"x": x, "z": result_dofs}
    return make_batch("multipliers", local, ca.SX(0, 1), dofs, final_state=[(reported, result_dofs)])


def _removed_constraints_batch(equations: ElementEquations) -> ElementBatch:
    """Return the batch that sets the multipliers of removed constraints to zero."""
    removed = np.array(equations.removed_constraints)
    x = np.concatenate([equations.unknowns[name].start + removed for name in equations.scheme.multipliers])[:, None]
    local = KernelSymbols.create(1, 0)
    return make_batch("left out", local, local.x, {"x": x})


# -- initial guess, dense output and error estimate, batched over coordinates -----------------------------------------
class _InitialGuess:
    """Initial guess of the scheme, batched version of `ElementEquations`."""

    def __init__(self, equations: ElementEquations) -> None:
        self._equations = equations
        scheme, h = equations.scheme, ca.SX.sym("h")
        old = MechanicalState(q=ca.SX.sym("q"), v=ca.SX.sym("v"), p=ca.SX.sym("p"))
        blocks = ca.vertcat(*(ca.densify(ca.SX(block)) for block in scheme.initial_guess(old, h)))
        self._coordinate = ca.Function("guess", [old.q, old.v, old.p, h], [blocks])
        lam = ca.SX.sym("lam")
        values = ca.vertcat(
            *(ca.SX(scheme.initial_multiplier_guess(name, lam)) for name in scheme.multipliers), ca.SX(0, 1)
        )
        self._multiplier = ca.Function("multipliers", [lam], [ca.densify(values)])
        self._quaternion_function = self._make_quaternion_function(h) if equations.system.quaternions else None

    def _make_quaternion_function(self, h: Expr) -> ca.Function | None:
        state = MechanicalState(q=ca.SX.sym("q", 4), v=ca.SX.sym("v", 4), p=ca.SX.sym("p", 4))
        blocks = self._equations.scheme.initial_quaternion_guess(state, h)
        return None if blocks is None else ca.Function("turned", [state.q, state.v, state.p, h], [ca.vertcat(*blocks)])

    def __call__(self, z: np.ndarray, c: np.ndarray, residual: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        equations = self._equations
        system, scheme, layout, unknowns, h = (
            equations.system, equations.scheme, equations.layout, equations.unknowns, float(c[0])
        )  # fmt: skip
        q, v, p = (z[layout[name]] for name in ("q", "v", "p"))
        x = np.zeros(unknowns.size)
        n, blocks = system.n, len(scheme.unknowns)
        (values,) = evaluate_batch(self._coordinate, n, q[None], v[None], p[None], h)
        x[: blocks * n] = values.ravel()
        if self._quaternion_function is not None:
            quat_dofs = np.array(system.quaternions)
            (values,) = evaluate_batch(
                self._quaternion_function, len(quat_dofs), q[quat_dofs].T, v[quat_dofs].T, p[quat_dofs].T, h
            )
            for block in range(blocks):
                x[block * n + quat_dofs] = values[4 * block : 4 * block + 4].T
        if system.m and scheme.multipliers:
            (values,) = evaluate_batch(self._multiplier, system.m, z[layout["multipliers"]][None])
            x[blocks * n :] = values.ravel()
        if type(scheme).refine_guess is not ElementScheme.refine_guess:
            for name, block in scheme.refine_guess(*self._unpack_pair(x, residual(x))).items():
                x[unknowns[name]] = np.array(block).ravel()
        if scheme.momentum_block and system.quaternions:
            self._unit_multipliers(x, q, h, residual)
        return x

    def _unpack_pair(self, x: np.ndarray, r: np.ndarray) -> tuple[SimpleNamespace, SimpleNamespace]:
        """Return unknowns and residual by name."""
        scheme, n, m = self._equations.scheme, self._equations.system.n, self._equations.system.m
        return unpack_unknowns(scheme, ca.DM(x), n, m), unpack_unknowns(scheme, ca.DM(r), n, m)

    def _unit_multipliers(self, x: np.ndarray, q: np.ndarray, h: float, residual: ModelFunction) -> None:
        """Set the unit-norm multipliers of quaternions, which are large and change their sign from step to step."""
        equations, system, scheme = self._equations, self._equations.system, self._equations.scheme
        dofs = equations.unknowns[scheme.multipliers[0]].start + np.array(system.quaternion_constraints)
        x[dofs] = 0.0
        r = residual(x)
        quat_dofs = np.array(system.quaternions)
        velocity = x[equations.unknowns[scheme.unknowns[0]]]
        q_m = q[quat_dofs] + h / 2 * velocity[quat_dofs]
        balance = r[equations.unknowns[scheme.momentum_block]][quat_dofs]
        symbols = ca.SX.sym("q", 4), ca.SX.sym("r", 4), ca.SX.sym("h")
        (values,) = evaluate_batch(
            ca.Function("unit", symbols, [unit_norm_multiplier(*symbols)]), len(quat_dofs), q_m.T, balance.T, h
        )
        x[dofs] = values.ravel()


def _nodal_symbols(equations: ElementEquations) -> tuple[Expr, MechanicalState, Expr]:
    x, h = ca.SX.sym("x", len(equations.scheme.unknowns)), ca.SX.sym("h")
    return x, MechanicalState(q=ca.SX.sym("q"), v=ca.SX.sym("v"), p=ca.SX.sym("p")), h


def _nodal_arguments(equations: ElementEquations, x: np.ndarray, z: np.ndarray) -> list[np.ndarray]:
    n, blocks = equations.system.n, len(equations.scheme.unknowns)
    return [x[: blocks * n].reshape(blocks, n), *(z[equations.layout[name]][None] for name in ("q", "v", "p"))]


def _dense_output(equations: ElementEquations) -> ModelFunction | None:
    x, old, h = _nodal_symbols(equations)
    theta = ca.SX.sym("theta")
    output = equations.scheme.dense_output(old, unpack_unknowns(equations.scheme, x, 1, 0), h, theta)
    if output is None:
        return None
    function = ca.Function("inside", [x, old.q, old.v, old.p, h, theta], [ca.densify(block) for block in output])

    def dense_output(x: np.ndarray, z: np.ndarray, c: np.ndarray, theta: float) -> dict[str, np.ndarray]:
        values = evaluate_batch(function, equations.system.n, *_nodal_arguments(equations, x, z), float(c[0]), theta)
        return dict(zip(("q", "v"), (value.ravel() for value in values), strict=True))

    return dense_output


def _error_estimate(equations: ElementEquations) -> tuple[Any, ErrorEstimateInfo | None]:
    """Return the error estimate of the scheme per coordinate, with its metadata."""
    x, old, h = _nodal_symbols(equations)
    scheme, unknown = equations.scheme, unpack_unknowns(equations.scheme, x, 1, 0)
    error_expression = scheme.error_estimate(old, unknown, h)
    if error_expression is None:
        return None, None
    scale = ca.fmax(ca.fabs(old.q), ca.fabs(scheme.kinematic_update(old, unknown, h)[0]))
    function = ca.Function("error", [x, old.q, old.v, old.p, h], [ca.densify(error_expression), ca.densify(scale)])
    names = tuple(equations.system.coordinates)

    def evaluate(x: np.ndarray, z: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values = evaluate_batch(function, equations.system.n, *_nodal_arguments(equations, x, z), float(c[0]))
        return values[0].ravel(), values[1].ravel()

    return evaluate, ErrorEstimateInfo(names, scheme.error_order, (0,) * len(names), False)
