"""Very many steps of one run: energy that wanders as round-off does, but has no trend, and memory that does not grow.

Rounding errors of either sign add up like a random walk: what they add to the energy over many steps is as often
negative as positive, and grows with the square root of their number. A trend is a mean of these increments that differs
from zero by more than that explains.
"""

from __future__ import annotations

import resource

import numpy as np

import livens as lv
from torture.findings import Findings

#: Rows that are kept, whatever the number of steps.
ROWS = 2000
#: The mean increment of the energy between rows may differ from zero by this many of its standard errors: random walks
#: do so once in 16,000 runs.
_SIGMAS = 4.0
#: What round-off may add to the energy in a step, relative to the largest kinetic energy, with any sign.
_NOISE = 3e-16
#: Megabytes that memory may grow by between a short run and the long one, rows included.
_GROWTH = 32.0


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def trend(energy: np.ndarray) -> float:
    """Return the mean increment of the energy from row to row, in units of its standard error."""
    increments = np.diff(energy)
    return float(increments.mean() / (increments.std(ddof=1) / np.sqrt(len(increments))))


def run(seed: int, first: int, count: int) -> Findings:
    """Take `count` steps of the simple pendulum."""
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
    beyond = trend(deviation)
    findings.measure("trend of energy in standard errors", abs(beyond))
    findings.measure("end of energy per step", abs(deviation[-1]) / count)
    if abs(beyond) > _SIGMAS:
        findings.fault(
            0, f"energy has a trend: {deviation[-1] / count:.2g} in every step, {beyond:.1f} standard errors"
        )
    allowed = 5 * _NOISE * np.sqrt(count) + 1e-14
    if done.summary.max_energy_drift > allowed:
        findings.fault(
            0, f"energy has drifted by {done.summary.max_energy_drift:.2g}, a random walk explains {allowed:.2g}"
        )
    if done.summary.max_constraint > 1e-13:
        findings.fault(0, f"the constraint is violated by {done.summary.max_constraint:.2g}")
    if grown > _GROWTH:
        findings.fault(0, f"memory has grown by {grown:.0f} MB")
    return findings
