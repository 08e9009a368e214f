"""Cost of a gradient relative to its run."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from livens.bench.case import Say
from livens.bench.ours import Best
from livens.bench.report import Goal, Line, Report

_STEPS = 10_000


@dataclass
class _Kind:
    problem: str
    scheme: str
    forward: Best = field(default_factory=Best)
    kept: Best = field(default_factory=Best)
    again: Best = field(default_factory=Best)
    long: Best = field(default_factory=Best)  # limit of very long runs, with almost no stored states


class Gradients:
    """Gradients by all initial values and parameters, checked against the tangent of the same run."""

    name = "gradients"

    def __init__(self) -> None:
        self._kinds = [
            _Kind("double-four-bar-damped", "livens-em"),
            _Kind("simple-pendulum", "livens-em"),
            _Kind("kepler", "gauss-2"),
            _Kind("kepler", "stormer-verlet"),
        ]

    def play(self, first: bool, say: Say) -> None:
        for kind in self._kinds:
            _timed(kind, first)

    def tell(self, report: Report) -> None:
        for kind in self._kinds:
            case = f"{kind.problem}, {kind.scheme}: gradient by the time of its run"
            found = ("all kept", kind.kept), ("checkpoints", kind.again), ("all computed again", kind.long)
            for what, best in found:
                goal = None if best is kind.long else Goal("<=", 2.6)
                report.lines.append(Line(f"{case}, {what}", best.value / kind.forward.value, "", goal))


def _timed(kind: _Kind, first: bool) -> None:
    from livens import problems
    from livens.run import tape as tape_module
    from livens.run.gradient import tape_of
    from livens.run.plan import Plan

    problem = problems.load(kind.problem)
    plan = Plan.of(problem, scheme=kind.scheme, t_end=problem.t0 + _STEPS * problem.h)
    found: dict[tuple[int, bool], Any] = {}
    usual = tape_module.KEPT_BYTES
    try:
        for keep, kept_bytes, best in ((True, usual, kind.kept), (False, usual, kind.again), (False, 0, kind.long)):
            tape_module.KEPT_BYTES = kept_bytes
            if first:
                _way_back(tape_of(plan, None, keep)[1])
            begun = time.process_time()
            tape = tape_of(plan, None, keep)[1]
            between = time.process_time()
            found[kept_bytes, keep] = _way_back(tape)
            ended = time.process_time()
            if not kept_bytes:  # run without stored states
                kind.forward.add(between - begun)
            best.add(ended - begun)
    finally:
        tape_module.KEPT_BYTES = usual
    dc = np.zeros((1, 2 + plan.k.size))
    dc[0, 0] = 1.0  # derivative by the step size
    forth = float(tape.forth(np.zeros((1, tape.states.shape[1])), dc)[0, 0].sum())
    whole, *others = found.values()
    same = all(np.array_equal(a, b) for other in others for a, b in zip(whole, other, strict=True))
    if not same or not abs(forth - whole[1][0]) <= 1e-6 * (1 + abs(forth)):
        raise RuntimeError(f"the timed gradient of {kind.problem} is wrong")


def _way_back(tape: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the derivatives of the sum of all entries of the final state."""
    back: tuple[np.ndarray, np.ndarray] = tape.back(np.ones((1, tape.states.shape[1])))
    return back
