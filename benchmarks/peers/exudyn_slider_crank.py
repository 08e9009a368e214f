"""Slider-crank of `benchmarks.crank` in Exudyn with generalised alpha; prints one line of JSON."""

from __future__ import annotations

import importlib
import json
import math
import sys
from typing import Any

import exudyn
import numpy as np

from benchmarks import crank
from benchmarks.peers.clock import seconds

items: Any = importlib.import_module("exudyn.itemInterface")  # untyped


def angle(h: float) -> float:
    """Build the model, run it and return the final crank angle."""
    container: Any = exudyn.SystemContainer()
    system = container.AddSystem()
    a, b = crank.ANGLE, crank.rod_angle(crank.ANGLE)
    tip = crank.CRANK * np.array([math.cos(a), math.sin(a)])
    end = tip + crank.ROD * np.array([math.cos(b), math.sin(b)])
    ground = system.AddObject(items.ObjectGround())
    bodies = []
    for mass, moment, position, body_angle in zip(
        crank.MASSES[:2], crank.moments(), (tip / 2, (tip + end) / 2), (a, b), strict=True
    ):
        node = system.AddNode(items.Rigid2D(referenceCoordinates=[*position, body_angle]))
        bodies.append(system.AddObject(items.RigidBody2D(mass=mass, inertia=moment, nodeNumber=node)))
    node = system.AddNode(items.Point2D(referenceCoordinates=[*end]))
    slider = system.AddObject(items.MassPoint2D(mass=crank.MASSES[2], nodeNumber=node))
    for body, mass in zip((*bodies, slider), crank.MASSES, strict=True):
        centre = system.AddMarker(items.MarkerBodyPosition(bodyNumber=body))
        system.AddLoad(items.Force(markerNumber=centre, loadVector=[0.0, -mass * crank.GRAVITY, 0.0]))
    half = crank.CRANK / 2, crank.ROD / 2
    pins = [(ground, 0.0, bodies[0], -half[0]), (bodies[0], half[0], bodies[1], -half[1])]
    for first, x, second, y in pins:
        ends = [
            system.AddMarker(items.MarkerBodyPosition(bodyNumber=body, localPosition=[local_x, 0.0, 0.0]))
            for body, local_x in ((first, x), (second, y))
        ]
        system.AddObject(items.RevoluteJoint2D(markerNumbers=ends))
    ends = [
        system.AddMarker(items.MarkerBodyPosition(bodyNumber=body, localPosition=[local_x, 0.0, 0.0]))
        for body, local_x in ((bodies[1], half[1]), (slider, 0.0))
    ]
    system.AddObject(items.RevoluteJoint2D(markerNumbers=ends))
    line = [system.AddMarker(items.MarkerNodeCoordinate(nodeNumber=node, coordinate=1))]
    fixed = system.AddNode(items.NodePointGround())
    line.insert(0, system.AddMarker(items.MarkerNodeCoordinate(nodeNumber=fixed, coordinate=0)))
    # coordinates are displacements from the reference configuration, where the slider is on the line
    system.AddObject(items.CoordinateConstraint(markerNumbers=line))
    torque_marker = system.AddMarker(items.MarkerBodyRigid(bodyNumber=bodies[0]))
    system.AddLoad(
        items.Torque(
            markerNumber=torque_marker,
            loadVector=[0.0, 0.0, 0.0],
            loadVectorUserFunction=lambda _, t, load: [0.0, 0.0, 0.5 * math.sin(3 * t)],
        )
    )
    system.Assemble()
    settings = exudyn.SimulationSettings()
    integration = settings.timeIntegration
    integration.numberOfSteps, integration.endTime = round(crank.T_END / h), crank.T_END
    integration.verboseMode = 0
    integration.generalizedAlpha.spectralRadius = 0.9
    integration.newton.useModifiedNewton = True
    settings.linearSolver.solverType = exudyn.LinearSolverType.EXUdense
    settings.solution.file.write = False
    settings.solution.sensors.writePeriod = crank.T_END
    system.SolveDynamic(settings, solverType=exudyn.DynamicSolverType.GeneralizedAlpha)
    return crank.ANGLE + float(system.systemData.GetODE2Coordinates()[2])


def main(repeats: int) -> dict[str, Any]:
    h = crank.H
    while abs(angle(h) - crank.exact()) > crank.TOLERANCE:
        h /= 2
    best = min(seconds(lambda: angle(h)) for _ in range(repeats))
    return {
        "peer": "exudyn",
        "version": exudyn.config.Version(),
        "setting": "generalised alpha, modified Newton",
        "h": h,
        "seconds": best,
        "us_per_step": best / round(crank.T_END / h) * 1e6,
        "error": abs(angle(h) - crank.exact()),
    }


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)))
