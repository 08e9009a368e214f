"""Very many steps of one run: energy with no trend but that of round-off, memory that does not grow."""

from __future__ import annotations

import resource

import numpy as np

import livens as lv
from torture.findings import Findings

#: Rows that are kept, whatever the number of steps.
ROWS = 2000
#: What round-off may add to the energy in a step, relative, always with the same sign: a hundredth of the last digit.
_BIAS = 2.2e-18
#: What round-off may add with any sign: such errors add up like a random walk.
_NOISE = 1e-15
#: Megabytes that memory may grow by between a short run and the long one, rows included.
_GROWTH = 32.0


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run(seed: int, first: int, count: int) -> Findings:
    """`count` steps of the simple pendulum."""
    findings, problem = Findings(), lv.problems.load("simple-pendulum")
    h, every = problem.h, max(1, count // ROWS)
    lv.simulate(problem, h=h, t_end=h * 20_000, every=10)
    before = peak_mb()
    done = lv.simulate(problem, h=h, t_end=h * count, every=every, progress=False)
    grown = peak_mb() - before
    energy = done.observe("generalized_energy")
    scale = float(np.abs(done.observe("kinetic_energy")).max())
    deviation = (energy - energy[0]) / scale
    findings.counts["steps"] = done.statistics.steps
    findings.measure("drift of energy", done.summary.max_energy_drift)
    findings.measure("constraint", done.summary.max_constraint)
    findings.measure("growth of memory in MB", grown)
    trend = abs(float(np.polyfit(np.linspace(0, 1, len(deviation)), deviation, 1)[0]))
    findings.measure("trend of energy per step", trend / count)
    allowed = _BIAS * count + _NOISE * np.sqrt(count) + 1e-14
    if done.summary.max_energy_drift > allowed:
        findings.fault(
            0, f"energy has drifted by {done.summary.max_energy_drift:.2g}, round-off explains {allowed:.2g}"
        )
    if done.summary.max_constraint > 1e-13:
        findings.fault(0, f"the constraint is violated by {done.summary.max_constraint:.2g}")
    if grown > _GROWTH:
        findings.fault(0, f"memory has grown by {grown:.0f} MB")
    return findings
