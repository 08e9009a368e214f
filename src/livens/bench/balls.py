"""Balls in a box: what a ball costs in a step, among a hundred and among a thousand."""

from __future__ import annotations

from livens.bench.case import Say
from livens.bench.ours import Best
from livens.bench.report import Goal, Line, Report
from livens.problems import load
from livens.run.prepare import prepare

#: Balls -> steps that are timed, of heaps that have fallen for so long.
_STEPS, _FALLEN = {100: 10_000, 1000: 1000}, 0.3


class Balls:
    name = "balls in a box"

    def __init__(self) -> None:
        self._per_ball = {N: Best() for N in _STEPS}

    def play(self, first: bool, say: Say) -> None:
        runs = {}
        for N in _STEPS:
            problem = load("balls-in-a-box", N=N)
            step = prepare(problem)
            heap = step.run(problem.q0, problem.v0, h=problem.h, t_end=_FALLEN, every=10**6)
            runs[N] = step, heap.q[-1], heap.v[-1], problem.h
        for _ in range(2):
            for N, (step, q, v, h) in runs.items():
                say(f"{N} balls")
                found = step.run(q, v, h=h, t_end=_STEPS[N] * h, every=_STEPS[N]).statistics
                self._per_ball[N].add(found.wall_s / found.steps / N * 1e9)

    def tell(self, report: Report) -> None:
        few, many = (best.value for best in self._per_ball.values())
        for N, best in self._per_ball.items():
            report.lines.append(Line(f"{N} balls in a box: a step, for each ball", best.value / 1e3))
        case = "balls in a box: cost per ball, a thousand over a hundred"
        report.lines.append(Line(case, many / few, "", Goal("<=", 1.3)))
