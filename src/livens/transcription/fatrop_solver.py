"""Solution of a transcription by fatrop, an interior-point method for the stages of optimal control problems.

The stages have the form ``x_{k+1} = F(x_k, u_k)`` with constraints of (x_k, u_k): x is a node, u are the inputs and the
unknowns of a step. Conditions at the end of a step are evaluated at ``F(x_k, u_k)`` in place of the next node.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import casadi as ca
import numpy as np

from livens.errors import InputError
from livens.transcription.ipopt_solver import MAX_VIOLATION, Solution, constraint_violations
from livens.transcription.nlp_blocks import INFINITE_BOUND, Block, BoundedProgram

#: Default options of fatrop.
FATROP_OPTIONS = {"tol": 1e-9, "max_iter": 1000}


def fatrop_options(options: Mapping[str, object] | None) -> dict[str, Any]:
    """Return all options of fatrop; raise InputError if fatrop is not installed or an option is unknown."""
    if not ca.has_nlpsol("fatrop"):
        raise InputError(f"CasADi {ca.CasadiMeta.version()} is installed without fatrop: use solver='ipopt'")
    unknown = [name for name in options or {} if name not in FATROP_OPTIONS]
    if unknown:
        raise InputError(
            f"option '{unknown[0]}' is not available with solver='fatrop'; available: {', '.join(FATROP_OPTIONS)}"
        )
    return {**FATROP_OPTIONS, **(options or {})}


class _Stages:
    """Partition of the variables of a program into stages; raises InputError if there is none."""

    def __init__(self, program: BoundedProgram) -> None:
        self.program = program
        self.steps, self.ends = program.blocks
        labels = self.steps.functions.labels
        self.continuity = [i for i, label in enumerate(labels) if label.startswith("continuity of ")]
        self.path = [i for i in range(len(labels)) if i not in set(self.continuity)]
        index, n = self.steps.index, len(self.continuity)
        self.n, self.count = n, self.steps.count
        rest = index[:, 2 * n :]
        is_shared = (
            (rest == rest[0]).all(axis=0) if self.count > 1 else program.lower[rest[0]] == program.upper[rest[0]]
        )
        self.nodes = np.vstack([index[:, :n], index[-1:, n : 2 * n]])
        self.controls, self.shared = rest[:, ~is_shared], rest[0, is_shared]
        fixed = program.lower == program.upper
        if not fixed[self.shared].all():
            self._refuse("end time and parameters must be fixed")
        if not fixed[self.nodes[0]].all():
            self._refuse("the start must be fixed")
        variables = np.concatenate([self.nodes.ravel(), self.controls.ravel()])
        if len(np.unique(variables)) < variables.size or variables.size + self.shared.size < program.size:
            self._refuse("inputs must be constant or have values at the stages, and conditions must not use velocities")
        allowed = {*self.nodes[-1].tolist(), *self.shared.tolist()}
        value = self.ends.functions.value
        used = {i for output in (0, 1) for i in value.jac_sparsity(output, 0).get_triplet()[1]}
        if any(self.ends.index[0, i] not in allowed for i in used):
            self._refuse("conditions at the end must depend on the last node only")

    @staticmethod
    def _refuse(reason: str) -> None:
        raise InputError(f"solver='fatrop' cannot solve this problem: {reason}; use solver='ipopt'")

    @property
    def order(self) -> np.ndarray:
        """Variables stage by stage: node, then inputs and unknowns."""
        rows = np.hstack([self.nodes[:-1], self.controls])
        return np.concatenate([rows.ravel(), self.nodes[-1]])


def solve_by_fatrop(bounded: BoundedProgram, w: np.ndarray, options: Mapping[str, object] | None = None) -> Solution:
    """Solve a program from the guess w by fatrop.

    Raises
    ------
    InputError
        If fatrop is not available, or the program has no stages: free end time, free start, free parameters, inputs
        that are continuous from step to step, or conditions that depend on several stages.
    """
    chosen, t_start = fatrop_options(options), time.perf_counter()
    stages = _Stages(bounded)
    scaled = bounded.scaled(w)
    scale, order, n = scaled.scale, stages.order, stages.n
    x = ca.MX.sym("x", order.size)
    full = ca.MX(ca.DM(np.where(np.isin(np.arange(w.size), order), 0.0, bounded.lower)))
    full[order.tolist()] = ca.DM(scale[order]) * x
    dynamics, path, cost = _stage_expressions(stages, full)
    end_values, end_cost = stages.ends.functions.value(full[stages.ends.index[0].tolist()], stages.ends.data[0])
    first = full[stages.nodes[0].tolist()] - ca.DM(bounded.lower[stages.nodes[0]])
    rows, lower, upper = list[ca.MX](), list[np.ndarray](), list[np.ndarray]()
    for k in range(stages.count):
        parts = [(dynamics[:, k], np.zeros(n), np.zeros(n))]
        parts += [(first, np.zeros(n), np.zeros(n))] if k == 0 else []
        parts.append((path[:, k], stages.steps.lower[k, stages.path], stages.steps.upper[k, stages.path]))
        for expression, low, high in parts:
            rows.append(expression)
            lower.append(low)
            upper.append(high)
    rows.append(end_values)
    lower.append(stages.ends.lower[0])
    upper.append(stages.ends.upper[0])
    low, high = np.concatenate(lower), np.concatenate(upper)
    problem = {"x": x, "f": scaled.cost_scale * (ca.sum2(cost) + end_cost), "g": ca.vertcat(*rows)}
    solver = ca.nlpsol(
        "livens", "fatrop", problem,
        {
            "print_time": False, "expand": True, "error_on_fail": False, "structure_detection": "auto",
            "equality": (low == high).tolist(),
            "fatrop": {"print_level": 0, "tolerance": float(chosen["tol"]), "max_iter": int(chosen["max_iter"])},
        },
    )  # fmt: skip
    t_ready = time.perf_counter()
    is_first = np.isin(order, stages.nodes[0])
    returned = solver(
        x0=w[order] / scale[order],
        lbx=np.where(
            is_first | (bounded.lower[order] <= -INFINITE_BOUND), -np.inf, bounded.lower[order] / scale[order]
        ),
        ubx=np.where(is_first | (bounded.upper[order] >= INFINITE_BOUND), np.inf, bounded.upper[order] / scale[order]),
        lbg=np.where(low <= -INFINITE_BOUND, -np.inf, low),
        ubg=np.where(high >= INFINITE_BOUND, np.inf, high),
    )
    stats = solver.stats()
    variables = np.where(np.isin(np.arange(w.size), order), 0.0, bounded.lower)
    variables[order] = np.array(returned["x"]).ravel() * scale[order]
    variables = np.where(np.isfinite(variables), variables, w)
    values, total = bounded.evaluate(variables)
    violations = constraint_violations(values, scaled.lower, scaled.upper)
    status = "Solve_Succeeded" if stats["success"] else f"fatrop: {stats['return_status']}"
    violation = float(violations.max(initial=0.0))
    statistics = {
        "status": status,
        "iterations": int(stats["iter_count"]),
        "variables": bounded.size,
        "constraints": scaled.n_constraints,
        "violation": violation,
        "setup_s": t_ready - t_start,
        "solve_s": time.perf_counter() - t_ready,
        "history": np.zeros((0, 2)),
    }
    duals = _duals(stages, variables, np.array(returned["lam_g"]).ravel() / scaled.cost_scale)
    converged = status == "Solve_Succeeded" and violation <= MAX_VIOLATION
    return Solution(variables, total, duals, converged, status, violations, statistics)


def _stage_expressions(stages: _Stages, full: ca.MX) -> tuple[ca.MX, ca.MX, ca.MX]:
    """Return continuity, all other constraints and cost of the steps, one column per step."""
    block, n = stages.steps, stages.n
    count = block.count
    local = ca.reshape(full[block.index.ravel().tolist()], block.index.shape[1], count)
    data = ca.DM(block.data.T)
    value = block.functions.value if count == 1 else block.functions.value.map(count)
    without_next = ca.vertcat(local[:n, :], ca.MX.zeros(n, count), local[2 * n :, :])
    final = -value(without_next, data)[0][stages.continuity, :]
    constraints, cost = value(ca.vertcat(local[:n, :], final, local[2 * n :, :]), data)
    return local[n : 2 * n, :] - final, constraints[stages.path, :], cost


def _duals(stages: _Stages, w: np.ndarray, multipliers: np.ndarray) -> np.ndarray:
    """Return the multipliers in the order of the program, for conditions and costs evaluated at the next node."""
    block, n, n_path = stages.steps, stages.n, len(stages.path)
    steps = np.zeros((block.count, block.functions.n_constraints))
    offset = 0
    for k in range(block.count):
        steps[k, stages.continuity] = multipliers[offset : offset + n]
        offset += 2 * n if k == 0 else n
        steps[k, stages.path] = multipliers[offset : offset + n_path]
        offset += n_path
        steps[k, stages.continuity] -= _next_node_gradient(block, k, w, steps[k], stages)
    return np.concatenate([steps.ravel(), multipliers[offset:]])


def _next_node_gradient(block: Block, k: int, w: np.ndarray, multipliers: np.ndarray, stages: _Stages) -> np.ndarray:
    """Return the gradient of cost and path conditions of a step with respect to its last node."""
    f, n, local = block.functions, stages.n, w[block.index[k]]
    gradient = np.array(f.gradient(local, block.data[k])[1]).ravel()
    jacobian = np.zeros((f.n_constraints, f.n_variables))
    jacobian[f.jacobian_rows, f.jacobian_columns] = np.array(f.jacobian(local, block.data[k])[1]).ravel()
    return np.asarray((gradient + multipliers[stages.path] @ jacobian[stages.path])[n : 2 * n])
