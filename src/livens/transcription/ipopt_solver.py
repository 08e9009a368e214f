"""Solution of a transcription by IPOPT: options, progress, interruption and the best iterate."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from livens.errors import InputError
from livens.run.interrupt import Interrupt
from livens.run.progress import Progress
from livens.transcription.nlp_blocks import INFINITE_BOUND, BlockProgram, BoundedProgram

#: Default options of IPOPT. The METIS ordering of MUMPS (5) factorises the steps of a motion several times faster.
#: Violations of 1e-12 leave momenta and energies exact to round-off; where rounding prevents them, five iterates at the
#: acceptable level are a solution as well.
IPOPT_OPTIONS = {
    "mumps_pivot_order": 5,
    "tol": 1e-9,
    "constr_viol_tol": 1e-12,
    "acceptable_tol": 1e-9,
    "acceptable_constr_viol_tol": 1e-10,
    "acceptable_iter": 5,
    "max_iter": 1000,
    "print_level": 0,
    "sb": "yes",
}
#: Linear solvers of IPOPT that may be requested; others of the wheel may end the process.
LINEAR_SOLVERS = ("mumps", "ma27", "ma57", "ma77", "ma86", "ma97")
#: Largest violation of a constraint in a converged motion.
MAX_VIOLATION = 1e-7
#: Violations below this value do not distinguish iterates; their costs do.
_FEASIBLE = 1e-8


@dataclass(frozen=True, eq=False)
class Solution:
    """Result of IPOPT: variables, cost, multipliers of the constraints and statistics."""

    w: np.ndarray
    cost: float
    duals: np.ndarray  # in the units of the constraints and of the cost
    converged: bool
    status: str
    violations: np.ndarray  # of all constraints at w
    statistics: dict[str, Any]


class _Monitor(ca.Callback):
    """Iteration callback: progress bar, Ctrl-C, and the best iterate so far."""

    def __init__(
        self, program: BlockProgram, lower: np.ndarray, upper: np.ndarray, interrupt: Interrupt, bar: Progress
    ) -> None:
        ca.Callback.__init__(self)
        self._sizes = {
            "x": program.size,
            "f": 1,
            "g": program.n_constraints,
            "lam_x": program.size,
            "lam_g": program.n_constraints,
            "lam_p": 0,
        }
        self._program, self._bounds, self._interrupt, self._bar = program, (lower, upper), interrupt, bar
        self.iterations, self._best_key = 0, (np.inf, np.inf)
        self.best: np.ndarray | None = None
        self.history: list[tuple[float, float]] = []
        self.construct("livens_monitor", {})

    def get_n_in(self) -> int:
        return int(ca.nlpsol_n_out())

    def get_n_out(self) -> int:
        return 1

    def get_name_in(self, i: int) -> str:
        return str(ca.nlpsol_out(i))

    def get_name_out(self, i: int) -> str:
        return "ret"

    def get_sparsity_in(self, i: int) -> ca.Sparsity:
        return ca.Sparsity.dense(self._sizes[ca.nlpsol_out(i)], 1)

    def eval(self, arguments: Sequence[ca.DM]) -> list[int]:
        named = dict(zip(map(ca.nlpsol_out, range(len(arguments))), arguments, strict=True))
        x, g, f = np.array(named["x"]).ravel(), np.array(named["g"]).ravel(), float(named["f"])
        violation = float(max(
            constraint_violations(g, self._program.lower, self._program.upper).max(initial=0.0),
            constraint_violations(x, *self._bounds).max(initial=0.0),
        ))  # fmt: skip
        cost = f / self._program.cost_scale
        self.history.append((cost, violation))
        key = max(violation, _FEASIBLE), cost
        if key < self._best_key or self.best is None:
            self.best, self._best_key = x.copy(), key
        self.iterations += 1
        self._bar.update(self.iterations, f"infeasibility {violation:.1e}")
        return [int(self._interrupt.requested)]


def constraint_violations(values: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Return how far values are outside their bounds; infinite for NaN."""
    outside = np.maximum(np.maximum(lower - values, values - upper), 0.0)
    return np.where(np.isnan(outside), np.inf, outside)


def ipopt_options(options: Mapping[str, object] | None) -> dict[str, Any]:
    """Return all options of IPOPT; raise InputError for linear solvers that end the process."""
    if options is not None and not isinstance(options, Mapping):
        raise InputError(f"ipopt must map names of options to values, got {options!r}")
    chosen = {**IPOPT_OPTIONS, **(options or {})}
    linear_solver = chosen.get("linear_solver", "mumps")
    if linear_solver not in LINEAR_SOLVERS:
        raise InputError(f"linear_solver must be one of {', '.join(LINEAR_SOLVERS)}, got {linear_solver!r}")
    return chosen


def solve(
    bounded: BoundedProgram, w: np.ndarray, options: Mapping[str, object] | None = None, progress: bool | None = None
) -> Solution:
    """Solve a program from the guess w; Ctrl-C stops after the current iteration and keeps the best iterate."""
    chosen, t_start = ipopt_options(options), time.perf_counter()
    program = bounded.scaled(w)
    scale = program.scale
    lower = np.where(bounded.lower <= -INFINITE_BOUND, -np.inf, bounded.lower / scale)
    upper = np.where(bounded.upper >= INFINITE_BOUND, np.inf, bounded.upper / scale)
    with Interrupt() as interrupt, Progress(bounded.title, int(chosen["max_iter"]), progress, "iterations") as bar:
        interrupt.install()
        monitor = _Monitor(program, lower, upper, interrupt, bar)
        try:
            solver = program.solver(
                {"print_time": False, "iteration_callback": monitor, "error_on_fail": False, "ipopt": chosen}
            )
        except RuntimeError as error:
            raise InputError(f"IPOPT does not accept an option: {_last_line(error)}") from None
        t_ready = time.perf_counter()
        returned = solver(x0=w / scale, lbx=lower, ubx=upper, lbg=program.lower, ubg=program.upper)
    stats = solver.stats()
    status = "Interrupted" if interrupt.requested else str(stats["return_status"])
    x = np.array(returned["x"]).ravel()
    has_own_level = any(name.startswith("acceptable") for name in options or ())
    succeeded = status == "Solve_Succeeded" or (status == "Solved_To_Acceptable_Level" and not has_own_level)
    if not succeeded and monitor.best is not None:
        x = monitor.best
    variables = x * scale
    values, cost = bounded.evaluate(variables)
    violations = constraint_violations(values, program.lower, program.upper)
    converged = succeeded and float(violations.max(initial=0.0)) <= MAX_VIOLATION
    statistics = {
        "status": status,
        "iterations": int(stats["iter_count"]),
        "variables": bounded.size,
        "constraints": program.n_constraints,
        "jacobian_nonzeros": program.jacobian_sparsity.nnz(),
        "hessian_nonzeros": program.hessian_sparsity.nnz(),
        "violation": float(violations.max(initial=0.0)),
        "setup_s": t_ready - t_start,
        "solve_s": time.perf_counter() - t_ready,
        "history": np.array(monitor.history).reshape(-1, 2),
    }
    duals = np.array(returned["lam_g"]).ravel() / program.cost_scale
    return Solution(variables, cost, duals, converged, status, violations, statistics)


def interrupted(bounded: BoundedProgram, w: np.ndarray) -> Solution:
    """Return the guess w as the solution of a search that was interrupted before its first iteration."""
    program = bounded.scaled(w)
    values, cost = bounded.evaluate(w)
    violations = constraint_violations(values, program.lower, program.upper)
    statistics = {
        "status": "Interrupted",
        "iterations": 0,
        "variables": bounded.size,
        "constraints": program.n_constraints,
        "violation": float(violations.max(initial=0.0)),
        "setup_s": 0.0,
        "solve_s": 0.0,
        "history": np.zeros((0, 2)),
    }
    return Solution(w, cost, np.zeros(program.n_constraints), False, "Interrupted", violations, statistics)


def _last_line(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[-1].strip() if lines else str(error)
