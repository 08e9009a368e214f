"""Processor time of a step in a user-written loop: compiled run, single steps, single steps with new inputs.

``python -m benchmarks.robots.control_loop`` prints the times of all three.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import livens as lv
from benchmarks.case import Log
from benchmarks.ours import Minimum
from benchmarks.report import BenchReport, ComparisonRow, Goal

#: Steps per measurement, and measurements per round; the shortest time counts.
_STEPS, _REPETITIONS = 1000, 5


def cart_and_pole() -> tuple[lv.Multibody, float]:
    """Return a cart on a rail with a pole, driven by an input, and the step size in seconds."""
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    cart = mb.box("cart", size=[0.4, 0.2, 0.2], at=[0, 0, 0], mass=1.0)
    rail = mb.prismatic("rail", mb.ground, cart, at=[0, 0, 0], axis="x")
    pole = mb.rod("pole", a=[0, 0, 0], b=[0, 0, 1], mass=0.1)
    hinge = mb.revolute("hinge", cart, pole, at=[0, 0, 0], axis="y")
    mb.motor(rail, force=mb.input("push"))
    mb.initial(hinge, angle=0.05)
    return mb, 0.01


def arm_of_six_joints() -> tuple[lv.Multibody, float]:
    """Return an arm of six rods with a driven hinge at each, and the step size in seconds."""
    mb, last, position = lv.Multibody(gravity=[0, 0, -9.81]), None, np.zeros(3)
    for i in range(6):
        end = position + [0.3, 0, 0]
        rod = mb.rod(f"rod{i}", a=position, b=end, mass=1.0)
        axis = "zyyxyx"[i]
        joint = mb.revolute(f"joint{i}", last or mb.ground, rod, at=position, axis=axis)
        mb.motor(joint, torque=mb.input(f"torque{i}"))
        last, position = rod, end
    return mb, 0.001


def _hold(t: float, measured: np.ndarray) -> np.ndarray:
    """Return the torques of a PD law in six joints."""
    return -60.0 * measured[:6] - 8.0 * measured[6:]


class SampledTiming:
    """Shortest processor times per step in microseconds: an arm without and with a sampled controller, and the law."""

    def __init__(self) -> None:
        self._plain, self._controlled = (self._prepare(sampled) for sampled in (False, True))
        self.run, self.sampled, self.law = Minimum(), Minimum(), Minimum()

    @staticmethod
    def _prepare(sampled: bool) -> Any:
        mb, h = arm_of_six_joints()
        if sampled:
            inputs = [f"joint{i}.{quantity}" for quantity in ("angle", "rate") for i in range(6)]
            mb.sampled_controller("hold", *mb.joints.values(), period=h, law=_hold, inputs=inputs)
        step = lv.prepare(mb.problem("sampled", h=h, t_end=_STEPS * h))
        step.run()
        return step

    def run_round(self) -> None:
        """Measure the two runs and the law in turns."""
        measured = np.ones(12)
        for _ in range(_REPETITIONS):
            self.run.add(_microseconds(self._plain.run))
            self.sampled.add(_microseconds(self._controlled.run))
            self.law.add(_microseconds(lambda: [_hold(0.0, measured) for _ in range(_STEPS)]))


class LoopTiming:
    """Shortest processor times per step in microseconds: compiled run, single steps, single steps with new inputs."""

    def __init__(self, model: tuple[lv.Multibody, float]) -> None:
        mb, h = model
        self._step = lv.prepare(mb.problem("control loop", h=h, t_end=_STEPS * h))
        self._inputs = dict.fromkeys(mb.system.inputs, 0.1)
        self.tier = self._step.run().info.tier
        self.run, self.single, self.with_inputs = Minimum(), Minimum(), Minimum()

    def run_round(self) -> None:
        """Measure the three loops in turns."""
        for _ in range(_REPETITIONS):
            self.run.add(_microseconds(self._step.run))
            self.single.add(_microseconds(lambda: self._loop(None)))
            self.with_inputs.add(_microseconds(lambda: self._loop(self._inputs)))

    def _loop(self, inputs: dict[str, float] | None) -> None:
        state = self._step.start()
        for _ in range(_STEPS):
            state = self._step.step(state, inputs=inputs)


def _microseconds(action: Callable[[], object]) -> float:
    """Return the processor time per step in microseconds."""
    started = time.process_time()
    action()
    return (time.process_time() - started) / _STEPS * 1e6


class ControlLoop:
    """Loops that set the torques of the motors before every step."""

    name = "control in the loop"

    def __init__(self) -> None:
        self.timings = {
            "cart and pole": LoopTiming(cart_and_pole()),
            "arm of six joints": LoopTiming(arm_of_six_joints()),
        }

        self.sampled = SampledTiming()

    def run_round(self, first: bool, log: Log) -> None:
        log("sampled controller")
        self.sampled.run_round()
        for label, timing in self.timings.items():
            log(label)
            timing.run_round()

    def add_to_report(self, report: BenchReport) -> None:
        for label, timing in self.timings.items():
            overhead = timing.with_inputs.value - timing.run.value
            report.lines.append(ComparisonRow(f"{label}, new inputs at every step", timing.with_inputs.value))
            row = ComparisonRow(f"{label}, new inputs: beyond the compiled run", overhead, goal=Goal("<=", 10.0))
            report.lines.append(row)
        sampled = self.sampled
        overhead = sampled.sampled.value - sampled.run.value - sampled.law.value
        row = ComparisonRow("arm, sample of six joints: beyond run and law", overhead, goal=Goal("<=", 15.0))
        report.lines.append(row)


def main() -> None:
    """Print the times per step."""
    print(f"{'model':20} {'tier':10} {'run':>8} {'step':>8} {'inputs':>8}  us per step")
    case = ControlLoop()
    case.run_round(True, lambda _: None)
    for label, timing in case.timings.items():
        times = timing.run, timing.single, timing.with_inputs
        print(f"{label:20} {timing.tier:10} " + " ".join(f"{best.value:8.1f}" for best in times))
    sampled = case.sampled
    times = sampled.run, sampled.sampled, sampled.law
    print("sampled controller: run, run with samples, law " + " ".join(f"{best.value:8.1f}" for best in times))


if __name__ == "__main__":
    main()
