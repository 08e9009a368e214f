"""Balls in a box and spheres of a contact group: cost per body and step for 100 and 1000 bodies."""

from __future__ import annotations

from livens.bench.case import Say
from livens.bench.ours import Best
from livens.bench.report import Goal, Line, Report
from livens.multibody.builder import Multibody
from livens.problems import load
from livens.run.prepare import prepare

#: Number of timed steps for each number of balls, after a settling time in s.
_STEPS, _FALLEN = {100: 10_000, 1000: 1000}, 0.3
#: Number of timed steps for each number of spheres in a contact group, which lie densely on a floor.
_DRAWN, _H = {100: 2000, 1000: 200}, 5e-5


class Balls:
    name = "balls in a box"

    def __init__(self) -> None:
        self._per_ball = {N: Best() for N in _STEPS}
        self._per_sphere = {N: Best() for N in _DRAWN}

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

        self._play_drawn(say)

    def _play_drawn(self, say: Say) -> None:
        problems = {N: _spheres(N).problem(h=_H) for N in _DRAWN}
        prepared = {N: prepare(problem) for N, problem in problems.items()}
        for _ in range(3):
            for N, step in prepared.items():
                say(f"{N} spheres in a contact group")
                start = problems[N].q0, problems[N].v0
                found = step.run(*start, h=_H, t_end=_DRAWN[N] * _H, every=_DRAWN[N]).statistics
                self._per_sphere[N].add(found.wall_s / found.steps / N * 1e9)

    def tell(self, report: Report) -> None:
        few, many = (best.value for best in self._per_ball.values())
        for N, best in self._per_ball.items():
            report.lines.append(Line(f"{N} balls in a box: a step, for each ball", best.value / 1e3))
        case = "balls in a box: cost per ball, a thousand over a hundred"
        report.lines.append(Line(case, many / few, "", Goal("<=", 1.3)))
        few, many = (best.value for best in self._per_sphere.values())
        for N, best in self._per_sphere.items():
            report.lines.append(Line(f"{N} spheres in a contact group: a step, for each", best.value / 1e3))
        case = "spheres in a contact group: cost of each, 1000 over 100"
        report.lines.append(Line(case, many / few, ""))


def _spheres(count: int) -> Multibody:
    """Build spheres in five layers with a small initial penetration."""
    mb, side = Multibody(gravity=[0, 0, -9.81]), max(1, round((count / 5) ** 0.5))
    places = [
        (0.0199 * (i % side), 0.0199 * (i // side % side), 0.00999 + 0.0199 * (i // side**2)) for i in range(count)
    ]
    spheres = [mb.sphere(f"s{i}", at=at, radius=0.01, mass=0.01) for i, at in enumerate(places)]
    mb.crowd("heap", [*spheres, mb.ground], stiffness=2e4, damping=0.5, friction=0.3)
    return mb
