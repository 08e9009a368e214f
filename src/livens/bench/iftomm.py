"""IFToMM benchmark of multibody codes: processor time of its five rigid problems at a given accuracy."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from livens.bench.case import Say
from livens.bench.ours import Best
from livens.bench.peers import Peer
from livens.bench.report import Line, Report
from livens.models.problem import Problem
from livens.problems import load
from livens.results.result import Result

#: Ratio of the first step size to that of the reference run, for problems without closed form.
_FINER = 256


@dataclass(frozen=True)
class Task:
    """Problem of the benchmark: final output, tolerance, first step size and end time."""

    label: str
    problem: str
    look: str
    tolerance: float
    h: float
    t_end: float
    scheme: str = ""
    #: Name of the output for other codes, if different.
    theirs: str = ""


#: Outputs of the benchmark with a tolerance of 1 mm; for the small and fast squeezer 1 mrad. The end time of Bricard's
#: mechanism avoids its rest positions, where all errors are small.
TASKS = (
    Task("A01 simple pendulum", "simple-pendulum", "", 1e-3, 2e-2, 10.0, theirs="bob.position"),
    Task("A02 double four-bar", "drawn-four-bar", "upper0.position", 1e-3, 2e-2, 10.0),
    Task("A03 Andrews' squeezer", "andrews-squeezer", "", 1e-3, 1e-4, 0.03, theirs="K1.angle"),
    Task("A04 Bricard", "bricard", "rod2.end", 1e-3, 2e-2, 9.0),
    Task("A05 flyball governor", "flyball-governor", "slider.position", 1e-3, 2e-3, 10.0),
)


class Measured:
    """Task with the largest sufficient step size and the minimal processor time."""

    def __init__(self, task: Task) -> None:
        self.task, self.seconds, self.h, self.error = task, Best(), task.h, np.inf
        self.exact = np.zeros(0)
        self.peers: list[Peer] = []
        self._problem: Problem = load(task.problem)

    def _run(self, h: float) -> Result:
        from livens.run.simulate import simulate

        more: dict[str, Any] = dict(scheme=self.task.scheme) if self.task.scheme else {}
        return simulate(self._problem, h=h, t_end=self.task.t_end, progress=False, **more)

    def _end(self, run: Result) -> np.ndarray:
        return np.asarray(run[self.task.look][-1] if self.task.look else run.q[-1])

    def choose(self) -> None:
        """Halve the step size until the final error is within the tolerance; this also compiles the code."""
        reference = self._problem.reference
        if reference is not None and not self.task.look:
            self.exact = reference(self.task.t_end)["q"]
        else:
            self.exact = self._end(self._run(self.task.h / _FINER))
        while True:
            self.error = float(np.abs(self._end(self._run(self.h)) - self.exact).max())
            if self.error <= self.task.tolerance:
                break
            self.h /= 2
        one, exact = self.task, self.exact
        if one.theirs.endswith(".angle"):  # rotation of the first coordinate
            exact = self.exact[:1] - np.asarray(self._problem.q0)[:1]
        asked = [one.problem, one.theirs or one.look, exact.tolist(), one.tolerance, one.h, one.t_end]
        self.peers = [
            Peer(code, "livens.bench.peers.iftomm", arguments=(json.dumps([code, *asked]),))
            for code in ("exudyn", "mujoco")
        ]

    def play(self) -> None:
        begun = time.process_time()
        self._run(self.h)
        self.seconds.add(time.process_time() - begun)


class IFToMM:
    """Livens and other codes with the same mechanisms, once per round."""

    name = "IFToMM"

    def __init__(self, tasks: tuple[Task, ...] = TASKS) -> None:
        self._measured = [Measured(task) for task in tasks]

    def play(self, first: bool, say: Say) -> None:
        for one in self._measured:
            say(one.task.label)
            if first:
                one.choose()
            one.play()
            for peer in one.peers:
                peer.play()

    def tell(self, report: Report) -> None:
        for one in self._measured:
            words = f"{one.task.label}: {one.task.t_end:g} s within {one.task.tolerance:g} (h = {one.h:g})"
            report.lines.append(Line(f"{words}, processor time", one.seconds.value, "s"))
            for peer in one.peers:
                if peer.facts is None:
                    report.skipped[peer.name] = peer.trouble or "not run"
                    continue
                theirs, error = float(peer.facts["seconds"]), float(peer.facts["error"])
                reached = "" if error <= one.task.tolerance else f", off by {error:.1g}"
                label = f"{one.task.label} (their h = {peer.facts['h']:g}{reached})"
                report.lines.append(Line(label, one.seconds.value, "s", None, peer.name, theirs))
