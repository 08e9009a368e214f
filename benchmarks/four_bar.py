"""Double four-bar linkage: closed loops with singular configurations, compared with two other codes."""

from __future__ import annotations

import numpy as np

import livens
from benchmarks.case import Log
from benchmarks.ours import LivensTiming
from benchmarks.peers import exudyn, mujoco
from benchmarks.report import BenchReport, ComparisonRow, Goal, MotionCheck
from livens.problems import load

_STEPS = 10_000


class FourBar:
    name = "double-four-bar"

    def __init__(self) -> None:
        self._problem = load("double-four-bar")
        # separate runs of livens for each code, in equal number and at about the same time
        self._comparisons = [
            (LivensTiming(self._problem, _STEPS, repeats=8), exudyn(repeats=2), Goal(">=", 50)),  # it has four settings
            (LivensTiming(self._problem, _STEPS, repeats=10), mujoco(repeats=10), Goal(">=", 5)),
        ]

    def run_round(self, first: bool, log: Log) -> None:
        for ours, peer, _ in self._comparisons:
            ours.run_round()
            log(peer.name)
            peer.run_round()

    def add_to_report(self, report: BenchReport) -> None:
        last = self._comparisons[0][0].last
        assert last is not None and self._problem.reference is not None
        exact = _tip(self._problem.reference(_STEPS * self._problem.h)["q"])
        tip, drift = _tip(last.q[-1]), last.summary.max_energy_drift
        report.motions.append(
            MotionCheck(f"livens {livens.__version__}", last.info.scheme, tip, abs(tip - exact), drift)
        )
        for ours, peer, goal in self._comparisons:
            theirs = None
            if peer.info is not None:
                theirs, x4 = float(peer.info["us_per_step"]), float(peer.info["x4_end"])
                code, setting = f"{peer.name} {peer.info['version']}", str(peer.info["setting"])
                error = float(peer.info["energy_error"])
                report.motions.append(MotionCheck(code, setting, x4, abs(x4 - exact), error))
            elif peer.error is not None:
                report.skipped[peer.name] = peer.error
            report.lines.append(
                ComparisonRow(self.name, ours.us_per_step.value, goal=goal, peer=peer.name, theirs=theirs)
            )
        report.lines.append(ComparisonRow(self.name, self._comparisons[-1][0].us_per_step.value, goal=Goal("<=", 0.8)))
        report.lines.append(ComparisonRow(f"{self.name}: relative energy drift", drift, "", Goal("<", 1e-13)))
        report.lines.append(
            ComparisonRow(f"{self.name}: largest |g|", last.summary.max_constraint, "", Goal("<", 1e-13))
        )


def _tip(q: np.ndarray) -> float:
    """Return x of the first upper joint, the top of a bar of length 1 with centre q[0:2] and direction q[2:4]."""
    return float(q[0] + 0.5 * q[2])
