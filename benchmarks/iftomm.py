"""IFToMM benchmark of multibody codes: processor time of its five rigid problems at a given accuracy."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.case import Log
from benchmarks.ours import Minimum
from benchmarks.peers import OtherCode
from benchmarks.report import BenchReport, ComparisonRow
from livens.models.problem import Problem
from livens.problems import load
from livens.results.result import Result

#: Ratio of the first step size to that of the reference run, for problems without closed form.
_REFERENCE_REFINEMENT = 256


@dataclass(frozen=True)
class Task:
    """Problem of the benchmark: final output, tolerance, first step size and end time."""

    label: str
    problem: str
    output: str
    tolerance: float
    h: float
    t_end: float
    scheme: str = ""
    #: Name of the output for other codes, if different.
    other_output: str = ""


#: Outputs of the benchmark with a tolerance of 1 mm; for the small and fast squeezer 1 mrad. The end time of Bricard's
#: mechanism avoids its rest positions, where all errors are small.
TASKS = (
    Task("A01 simple pendulum", "simple-pendulum", "", 1e-3, 2e-2, 10.0, other_output="bob.position"),
    Task("A02 double four-bar", "double-four-bar-multibody", "upper0.position", 1e-3, 2e-2, 10.0),
    Task("A03 Andrews' squeezer", "andrews-squeezer", "", 1e-3, 1e-4, 0.03, other_output="K1.angle"),
    Task("A04 Bricard", "bricard", "rod2.end", 1e-3, 2e-2, 9.0),
    Task("A05 flyball governor", "flyball-governor", "slider.position", 1e-3, 2e-3, 10.0),
)


class TaskTiming:
    """Task with the largest sufficient step size and the minimal processor time."""

    def __init__(self, task: Task) -> None:
        self.task, self.seconds, self.h, self.error = task, Minimum(), task.h, np.inf
        self.exact = np.zeros(0)
        self.peers: list[OtherCode] = []
        self._problem: Problem = load(task.problem)

    def _run(self, h: float) -> Result:
        from livens.run.simulate import simulate

        scheme_option: dict[str, Any] = dict(scheme=self.task.scheme) if self.task.scheme else {}
        return simulate(self._problem, h=h, t_end=self.task.t_end, progress=False, **scheme_option)

    def _final_output(self, run: Result) -> np.ndarray:
        return np.asarray(run[self.task.output][-1] if self.task.output else run.q[-1])

    def choose_step_size(self) -> None:
        """Halve the step size until the final error is within the tolerance; this also compiles the code."""
        reference = self._problem.reference
        if reference is not None and not self.task.output:
            self.exact = reference(self.task.t_end)["q"]
        else:
            self.exact = self._final_output(self._run(self.task.h / _REFERENCE_REFINEMENT))
        while True:
            self.error = float(np.abs(self._final_output(self._run(self.h)) - self.exact).max())
            if self.error <= self.task.tolerance:
                break
            self.h /= 2
        task, exact = self.task, self.exact
        if task.other_output.endswith(".angle"):  # rotation of the first coordinate
            exact = self.exact[:1] - np.asarray(self._problem.q0)[:1]
        request = [task.problem, task.other_output or task.output, exact.tolist(), task.tolerance, task.h, task.t_end]
        self.peers = [
            OtherCode(code, "benchmarks.peers.iftomm", arguments=(json.dumps([code, *request]),))
            for code in ("exudyn", "mujoco")
        ]

    def run_round(self) -> None:
        start_time = time.process_time()
        self._run(self.h)
        self.seconds.add(time.process_time() - start_time)


class IFToMM:
    """Livens and other codes with the same mechanisms, once per round."""

    name = "IFToMM"

    def __init__(self, tasks: tuple[Task, ...] = TASKS) -> None:
        self._timings = [TaskTiming(task) for task in tasks]

    def run_round(self, first: bool, log: Log) -> None:
        for timing in self._timings:
            log(timing.task.label)
            if first:
                timing.choose_step_size()
            timing.run_round()
            for peer in timing.peers:
                peer.run_round()

    def add_to_report(self, report: BenchReport) -> None:
        for timing in self._timings:
            label_prefix = (
                f"{timing.task.label}: {timing.task.t_end:g} s within {timing.task.tolerance:g} (h = {timing.h:g})"
            )
            report.lines.append(ComparisonRow(f"{label_prefix}, processor time", timing.seconds.value, "s"))
            for peer in timing.peers:
                if peer.info is None:
                    report.skipped[peer.name] = peer.error or "not run"
                    continue
                theirs, error = float(peer.info["seconds"]), float(peer.info["error"])
                reached = "" if error <= timing.task.tolerance else f", off by {error:.1g}"
                label = f"{timing.task.label} (their h = {peer.info['h']:g}{reached})"
                report.lines.append(ComparisonRow(label, timing.seconds.value, "s", None, peer.name, theirs))
