"""Slider-crank with a motor to a given accuracy, compared with two other codes: all time except compilation."""

from __future__ import annotations

from typing import Any

from benchmarks import crank
from benchmarks.case import Log
from benchmarks.ours import Minimum
from benchmarks.peers import OtherCode
from benchmarks.peers.clock import seconds
from benchmarks.report import BenchReport, ComparisonRow, Goal
from livens import math as m
from livens.multibody.multibody import Multibody


def _torque(t: Any, angle: Any, rate: Any) -> Any:
    return 0.5 * m.sin(3 * t)


def mechanism() -> Multibody:
    """Build the mechanism in the horizontal reference configuration, assembled at the initial angle."""
    mb = Multibody(gravity=[0, -crank.GRAVITY], planar=True)
    (of_crank, of_rod), (first, second, third) = crank.moments(), crank.MASSES
    tip = [crank.CRANK, 0]
    crank_body = mb.body("crank", mass=first, inertia=of_crank, position=[crank.CRANK / 2, 0], points=dict(b=tip))
    rod = mb.body("rod", mass=second, inertia=of_rod, position=[crank.CRANK + crank.ROD / 2, 0])
    slider = mb.particle("slider", at=[crank.CRANK + crank.ROD, 0], mass=third)
    hinge = mb.revolute("hinge", mb.ground, crank_body, at=[0, 0])
    mb.revolute("pin", crank_body, rod, at=crank_body.b)
    mb.revolute("wrist", rod, slider, at=slider.reference_position)
    mb.point_on_line("guide", mb.ground, slider, axis="x")
    mb.motor(hinge, torque=_torque)
    mb.initial(hinge, angle=crank.ANGLE)
    return mb


def angle(h: float) -> float:
    """Build the model, run it and return the final crank angle."""
    run = mechanism().simulate(t_end=crank.T_END, h=h, progress=False)
    return float(run["hinge.angle"][-1]) + 0.0


class SliderCrank:
    """Each code uses the largest step ``0.01/2^n`` with sufficient accuracy."""

    name = "slider-crank"

    def __init__(self) -> None:
        self._seconds, self._h = Minimum(), crank.H
        self._peers = [
            OtherCode("exudyn", "benchmarks.peers.exudyn_slider_crank", 2),
            OtherCode("mujoco", "benchmarks.peers.mujoco_slider_crank", 2),
        ]

    def run_round(self, first: bool, log: Log) -> None:
        if first:
            while abs(angle(self._h) - crank.exact()) > crank.TOLERANCE:
                self._h /= 2
        for peer in self._peers:
            for _ in range(5):
                self._seconds.add(seconds(lambda: angle(self._h)))
            log(peer.name)
            peer.run_round()

    def add_to_report(self, report: BenchReport) -> None:
        label_prefix = f"{self.name} with motor to {crank.TOLERANCE:g} rad at {crank.T_END:g} s"
        for peer in self._peers:
            theirs, step = None, ""
            if peer.info is not None:
                theirs, step = 1e3 * float(peer.info["seconds"]), f", theirs {peer.info['h']:g}"
            elif peer.error is not None:
                report.skipped[peer.name] = peer.error
            label = f"{label_prefix} (h = {self._h:g}{step})"
            report.lines.append(
                ComparisonRow(label, 1e3 * self._seconds.value, "ms", Goal(">=", 5.0), peer.name, theirs)
            )
