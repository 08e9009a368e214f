"""What a gradient costs beside the run it is the gradient of."""

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


class Gradients:
    """By all initial values and all parameters; what is found is compared with the tangent of the same run."""

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
            for what, best, goal in (("all kept", kind.kept, 2.6), ("checkpoints", kind.again, 2.6)):
                report.lines.append(Line(f"{case}, {what}", best.value / kind.forward.value, "", Goal("<", goal)))


def _timed(kind: _Kind, first: bool) -> None:
    from livens import problems
    from livens.run.gradient import tape_of
    from livens.run.plan import Plan

    problem = problems.load(kind.problem)
    plan = Plan.of(problem, scheme=kind.scheme, t_end=problem.t0 + _STEPS * problem.h)
    found: dict[bool, Any] = {}
    for keep in (True, False):
        if first:
            _way_back(tape_of(plan, None, keep)[1])
        begun = time.process_time()
        tape = tape_of(plan, None, keep)[1]
        between = time.process_time()
        found[keep] = _way_back(tape)
        ended = time.process_time()
        if not keep:
            kind.forward.add(between - begun)
        (kind.kept if keep else kind.again).add(ended - begun)
    dc = np.zeros((1, 2 + plan.k.size))
    dc[0, 0] = 1.0  # by the size of all steps, which every problem has
    forth = float(tape.forth(np.zeros((1, tape.states.shape[1])), dc)[0, 0].sum())
    same = all(np.array_equal(a, b) for a, b in zip(found[True], found[False], strict=True))
    if not same or not abs(forth - found[True][1][0]) <= 1e-6 * (1 + abs(forth)):
        raise RuntimeError(f"the gradient of {kind.problem} that was timed is wrong")


def _way_back(tape: Any) -> tuple[np.ndarray, np.ndarray]:
    """Derivatives of the sum of all entries of the last state."""
    back: tuple[np.ndarray, np.ndarray] = tape.back(np.ones((1, tape.states.shape[1])))
    return back
