"""Balls in a box, and contact groups of spheres and of mixed shapes: cost per body and step for 100 and 1000 bodies."""

from __future__ import annotations

from benchmarks.case import Log
from benchmarks.ours import Minimum
from benchmarks.report import BenchReport, ComparisonRow, Goal
from livens.multibody.multibody import Multibody
from livens.problems import load
from livens.run.prepare import prepare

#: Number of timed steps for each number of balls, after a settling time in s.
_STEPS, _SETTLING_TIME = {100: 10_000, 1000: 1000}, 0.3
#: Number of timed steps for each number of spheres in a contact group, which lie densely on a floor.
_GROUP_STEPS, _H = {100: 2000, 1000: 200}, 5e-5


class Balls:
    name = "balls in a box"

    def __init__(self) -> None:
        self._per_ball = {N: Minimum() for N in _STEPS}
        self._per_body = {title: {N: Minimum() for N in _GROUP_STEPS} for title in _GROUPS}

    def run_round(self, first: bool, log: Log) -> None:
        runs = {}
        for N in _STEPS:
            problem = load("balls-in-a-box", N=N)
            step = prepare(problem)
            heap = step.run(problem.q0, problem.v0, h=problem.h, t_end=_SETTLING_TIME, every=10**6)
            runs[N] = step, heap.q[-1], heap.v[-1], problem.h
        for _ in range(2):
            for N, (step, q, v, h) in runs.items():
                log(f"{N} balls")
                statistics = step.run(q, v, h=h, t_end=_STEPS[N] * h, every=_STEPS[N]).statistics
                self._per_ball[N].add(statistics.wall_s / statistics.steps / N * 1e9)

        self._run_contact_groups(log)

    def _run_contact_groups(self, log: Log) -> None:
        for title, build in _GROUPS.items():
            problems = {N: build(N).problem(h=_H) for N in _GROUP_STEPS}
            prepared = {N: prepare(problem) for N, problem in problems.items()}
            for _ in range(3):
                for N, step in prepared.items():
                    log(f"{N} {title} in a contact group")
                    initial = problems[N].q0, problems[N].v0
                    statistics = step.run(*initial, h=_H, t_end=_GROUP_STEPS[N] * _H, every=_GROUP_STEPS[N]).statistics
                    self._per_body[title][N].add(statistics.wall_s / statistics.steps / N * 1e9)

    def add_to_report(self, report: BenchReport) -> None:
        few, many = (best.value for best in self._per_ball.values())
        for N, best in self._per_ball.items():
            report.lines.append(ComparisonRow(f"{N} balls in a box: a step, for each ball", best.value / 1e3))
        case = "balls in a box: cost per ball, a thousand over a hundred"
        report.lines.append(ComparisonRow(case, many / few, "", Goal("<=", 1.3)))
        for title, per_body in self._per_body.items():
            few, many = (best.value for best in per_body.values())
            for N, best in per_body.items():
                report.lines.append(
                    ComparisonRow(f"{N} {title} in a contact group: a step, for each", best.value / 1e3)
                )
            case = f"{title} in a contact group: cost of each, 1000 over 100"
            goal = ("", Goal("<=", 1.3)) if title != "spheres" else ("",)
            report.lines.append(ComparisonRow(case, many / few, *goal))


def _spheres(count: int) -> Multibody:
    """Build spheres in five layers with a small initial penetration."""
    mb, side = Multibody(gravity=[0, 0, -9.81]), max(1, round((count / 5) ** 0.5))
    positions = [
        (0.0199 * (i % side), 0.0199 * (i // side % side), 0.00999 + 0.0199 * (i // side**2)) for i in range(count)
    ]
    spheres = [mb.sphere(f"s{i}", at=at, radius=0.01, mass=0.01) for i, at in enumerate(positions)]
    mb.contact_group("heap", [*spheres, mb.ground], stiffness=2e4, dissipation=0.5, friction=0.3)
    return mb


def _mixed(count: int) -> Multibody:
    """Build spheres, boxes and capsules in turn, in five layers with gaps smaller than the margin."""
    mb, side = Multibody(gravity=[0, 0, -9.81]), max(1, round((count / 5) ** 0.5))
    bodies = []
    for i in range(count):
        x, y, z = 0.03 * (i % side), 0.03 * (i // side % side), 0.0101 + 0.0202 * (i // side**2)
        if i % 3 == 0:
            bodies.append(mb.sphere(f"b{i}", at=[x, y, z], radius=0.01, mass=0.01))
        elif i % 3 == 1:
            bodies.append(mb.box(f"b{i}", at=[x, y, z], size=[0.018, 0.018, 0.02], mass=0.01))
        else:
            bodies.append(mb.rod(f"b{i}", a=[x - 0.004, y, z], b=[x + 0.004, y, z], radius=0.01, mass=0.01))
    mb.contact_group("heap", [*bodies, mb.ground], stiffness=2e4, dissipation=0.5, friction=0.3)
    return mb


#: Contact groups: title, and function of the number of bodies.
_GROUPS = {"spheres": _spheres, "spheres, boxes and capsules": _mixed}
