"""Double four-bar linkage in Exudyn with generalised alpha; prints one line of JSON.

Bars are planar rigid bodies with three coordinates and revolute joints. The fastest of four solver settings counts
(modified or full Newton, dense or sparse matrices).
"""

from __future__ import annotations

import importlib
import itertools
import json
import math
import sys
from typing import Any

import exudyn
import numpy as np

from benchmarks.peers.clock import seconds

items: Any = importlib.import_module("exudyn.itemInterface")  # untyped

H, STEPS = 1e-3, 10_000
MASS, LENGTH, GRAVITY, SPEED = 1.0, 1.0, 9.81, 1.0
HALF, INERTIA = LENGTH / 2, MASS * LENGTH**2 / 12


class Linkage:
    """Three upright lower bars on the ground and two upper bars on their tops, which move to the right."""

    def __init__(self) -> None:
        self._container = exudyn.SystemContainer()  # owns the system
        self.system: Any = self._container.AddSystem()
        ground = self.system.AddObject(items.ObjectGround())
        rate = SPEED / LENGTH
        lower = [self._bar(i * LENGTH, HALF, math.pi / 2, SPEED / 2, -rate) for i in range(3)]
        upper = [self._bar((i + 0.5) * LENGTH, LENGTH, 0.0, SPEED, 0.0) for i in range(2)]
        for i, bar in enumerate(lower):
            self._pin(ground, i * LENGTH, bar, -HALF)
        for i, bar in enumerate(upper):
            self._pin(lower[i], HALF, bar, -HALF)
            self._pin(bar, HALF, lower[i + 1], HALF)
        # one stored point per step is the minimum of a usual simulation
        self._tip = self.system.AddSensor(
            items.SensorBody(
                bodyNumber=lower[0],
                localPosition=[HALF, 0.0, 0.0],
                storeInternal=True,
                outputVariableType=exudyn.OutputVariableType.Position,
            )
        )
        self.system.Assemble()

    def _bar(self, x: float, y: float, angle: float, vx: float, rate: float) -> Any:
        node = items.Rigid2D(referenceCoordinates=[x, y, angle], initialVelocities=[vx, 0.0, rate])
        number = self.system.AddNode(node)
        bar = self.system.AddObject(items.RigidBody2D(mass=MASS, inertia=INERTIA, nodeNumber=number))
        centre = self.system.AddMarker(items.MarkerBodyPosition(bodyNumber=bar))
        self.system.AddLoad(items.Force(markerNumber=centre, loadVector=[0.0, -MASS * GRAVITY, 0.0]))
        return bar

    def _pin(self, first: Any, x_first: float, second: Any, x_second: float) -> None:
        ends = [
            self.system.AddMarker(items.MarkerBodyRigid(bodyNumber=body, localPosition=[x, 0.0, 0.0]))
            for body, x in ((first, x_first), (second, x_second))
        ]
        self.system.AddObject(items.RevoluteJoint2D(markerNumbers=ends))

    def solve(self, modified: bool, solver: str) -> float:
        """Run from the initial state and return the time in s."""
        settings = exudyn.SimulationSettings()
        integration = settings.timeIntegration
        integration.numberOfSteps, integration.endTime, integration.verboseMode = STEPS, STEPS * H, 0
        integration.generalizedAlpha.spectralRadius = 0.9
        integration.newton.useModifiedNewton = modified
        settings.linearSolver.solverType = getattr(exudyn.LinearSolverType, solver)
        settings.solution.file.write = False
        settings.solution.sensors.writePeriod = H
        method = exudyn.DynamicSolverType.GeneralizedAlpha
        return seconds(lambda: self.system.SolveDynamic(settings, solverType=method))

    def tip(self) -> float:
        """Return the final x coordinate of the first upper joint."""
        return float(self.system.GetSensorStoredData(self._tip)[-1, 1])

    def energy(self) -> float:
        """Return the energy of the current state."""
        q, v = self.system.systemData.GetODE2Coordinates(), self.system.systemData.GetODE2Coordinates_t()
        heights = q[1::3] + np.array([HALF] * 3 + [LENGTH] * 2)  # coordinates are displacements from the start
        kinetic = 0.5 * MASS * np.sum(v[0::3] ** 2 + v[1::3] ** 2) + 0.5 * INERTIA * np.sum(v[2::3] ** 2)
        return float(kinetic + MASS * GRAVITY * heights.sum())

    def energy_error(self, modified: bool, solver: str) -> float:
        """Return the largest relative energy deviation of a run."""
        energies: list[float] = []

        def record_energy(_: Any, __: float) -> bool:
            energies.append(self.energy())
            return True

        self.system.SetPreStepUserFunction(record_energy)  # calls Python in each step: not for timing
        self.solve(modified, solver)
        energies.append(self.energy())
        return max(abs(energy / energies[0] - 1) for energy in energies)


def main(repeats: int) -> dict[str, Any]:
    linkage = Linkage()
    best, chosen, tip = math.inf, (True, "EXUdense"), math.nan
    for _, modified, solver in itertools.product(range(repeats), (True, False), ("EXUdense", "EigenSparse")):
        took = linkage.solve(modified, solver)
        if took < best:
            best, chosen, tip = took, (modified, solver), linkage.tip()
    return {
        "peer": "exudyn",
        "version": exudyn.config.Version(),
        "setting": f"generalised alpha, {'modified' if chosen[0] else 'full'} Newton, {chosen[1]}",
        "us_per_step": best / STEPS * 1e6,
        "x4_end": tip,
        "energy_error": linkage.energy_error(*chosen),
    }


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)))
