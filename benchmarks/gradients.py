"""Cost of a gradient relative to its run."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.case import Log
from benchmarks.ours import Minimum
from benchmarks.report import BenchReport, ComparisonRow, Goal

_STEPS = 10_000


@dataclass
class _GradientCase:
    problem: str
    scheme: str
    forward: Minimum = field(default_factory=Minimum)
    stored: Minimum = field(default_factory=Minimum)
    checkpointed: Minimum = field(default_factory=Minimum)
    recomputed: Minimum = field(default_factory=Minimum)  # limit of very long runs, with almost no stored states


class Gradients:
    """Gradients by all initial values and parameters, checked against the tangent of the same run."""

    name = "gradients"

    def __init__(self) -> None:
        self._cases = [
            _GradientCase("double-four-bar-damped", "livens-em"),
            _GradientCase("simple-pendulum", "livens-em"),
            _GradientCase("kepler", "gauss-2"),
            _GradientCase("kepler", "stormer-verlet"),
        ]

    def run_round(self, first: bool, log: Log) -> None:
        for case_data in self._cases:
            _timed(case_data, first)

    def add_to_report(self, report: BenchReport) -> None:
        for case_data in self._cases:
            case = f"{case_data.problem}, {case_data.scheme}: gradient by the time of its run"
            variants = (
                ("all kept", case_data.stored),
                ("checkpoints", case_data.checkpointed),
                ("all computed again", case_data.recomputed),
            )
            for label, best in variants:
                goal = None if best is case_data.recomputed else Goal("<=", 2.6)
                report.lines.append(ComparisonRow(f"{case}, {label}", best.value / case_data.forward.value, "", goal))


def _timed(case_data: _GradientCase, first: bool) -> None:
    from livens import problems
    from livens.run.derivatives import tape as tape_module
    from livens.run.derivatives.gradient import record_run
    from livens.run.plan import Plan

    problem = problems.load(case_data.problem)
    plan = Plan.from_arguments(problem, scheme=case_data.scheme, t_end=problem.t0 + _STEPS * problem.h)
    gradients: dict[tuple[int, bool], Any] = {}
    usual = tape_module.STORED_BYTES
    try:
        for keep, kept_bytes, best in (
            (True, usual, case_data.stored),
            (False, usual, case_data.checkpointed),
            (False, 0, case_data.recomputed),
        ):
            tape_module.STORED_BYTES = kept_bytes
            if first:
                _reverse_sweep(record_run(plan, None, keep)[1])
            start_time = time.process_time()
            tape = record_run(plan, None, keep)[1]
            middle_time = time.process_time()
            gradients[kept_bytes, keep] = _reverse_sweep(tape)
            end_time = time.process_time()
            if not kept_bytes:  # run without stored states
                case_data.forward.add(middle_time - start_time)
            best.add(end_time - start_time)
    finally:
        tape_module.STORED_BYTES = usual
    dc = np.zeros((1, 2 + plan.k.size))
    dc[0, 0] = 1.0  # derivative by the step size
    tangent = float(tape.tangents(np.zeros((1, tape.states.shape[1])), dc)[0, 0].sum())
    stored_gradient, *other_gradients = gradients.values()
    same = all(np.array_equal(a, b) for other in other_gradients for a, b in zip(stored_gradient, other, strict=True))
    if not same or not abs(tangent - stored_gradient[1][0]) <= 1e-6 * (1 + abs(tangent)):
        raise RuntimeError(f"the timed gradient of {case_data.problem} is wrong")


def _reverse_sweep(tape: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the derivatives of the sum of all entries of the final state."""
    gradient: tuple[np.ndarray, np.ndarray] = tape.adjoint(np.ones((1, tape.states.shape[1])))
    return gradient
