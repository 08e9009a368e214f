"""Mechanisms of the IFToMM benchmark in other codes, from the same `Multibody` models; prints one line of JSON.

Each code uses the largest step ``h/2^n`` whose final error is within the tolerance.
"""

from __future__ import annotations

import importlib
import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from livens.bench.peers.clock import seconds
from livens.bench.peers.iftomm_drawings import drawing
from livens.models.element import Element
from livens.multibody.builder import Multibody
from livens.multibody.parts import Marker

#: Maximal number of step halvings.
_HALVINGS = 10
#: Exudyn names of the parameters of springs and dampers.
_SPRING = dict(stiffness="stiffness", damping="viscosity", referenceLength="length")


def in_exudyn(mb: Multibody, look: Look, t_end: float) -> Callable[[float], np.ndarray]:
    """Return the final points as a function of h: planar bodies with 3 coordinates, others with Euler parameters."""
    import exudyn

    items: Any = importlib.import_module("exudyn.itemInterface")  # untyped
    flat, none = mb.dimension == 2, [0.0, 0.0, 0.0]
    poses = _states(mb)
    container: Any = exudyn.SystemContainer()
    system = container.AddSystem()
    ground = system.AddObject(items.ObjectGround())
    numbers = {"ground": ground}
    gravity = [*(np.zeros(mb.dimension) if mb.gravity is None else mb.gravity), 0.0][:3]
    for name, part in mb.bodies.items():
        position, R, velocity, omega = poses[name]
        assert part.element is not None
        given, mass = part.element.parameters.values, part.element.mass
        if flat:
            turn = float(np.arctan2(R[1, 0], R[0, 0]))
            node = system.AddNode(
                items.Rigid2D(
                    referenceCoordinates=[*position[:2], turn], initialVelocities=[*velocity[:2], float(omega[2])]
                )
            )
            body = items.RigidBody2D(mass=mass, inertia=float(given["moment"]), nodeNumber=node)
            numbers[name] = system.AddObject(body)
            centre = system.AddMarker(items.MarkerBodyPosition(bodyNumber=numbers[name]))
            system.AddLoad(items.Force(markerNumber=centre, loadVector=[mass * g for g in gravity]))
        else:
            J = np.trace(given["euler"]) * np.eye(3) - given["euler"]
            numbers[name] = system.CreateRigidBody(
                referencePosition=position,
                referenceRotationMatrix=R,
                initialVelocity=velocity,
                initialAngularVelocity=omega,
                inertia=importlib.import_module("exudyn.rigidBodyUtilities").RigidBodyInertia(mass, J),
                gravity=gravity,
            )
    for joint in mb.joints.values():
        sides = [(joint.first, joint.parameters["X"]), (joint.second, joint.parameters["Y"])]
        if flat:
            ends = [
                system.AddMarker(
                    items.MarkerBodyRigid(bodyNumber=numbers[part.name], localPosition=[*map(float, X), 0.0])
                )
                for part, X in sides
            ]
            system.AddObject(items.RevoluteJoint2D(markerNumbers=ends))
        else:
            position, R, _, _ = poses.get(joint.second.name, (np.zeros(3), np.eye(3), none, none))
            make = {"revolute": system.CreateRevoluteJoint, "prismatic": system.CreatePrismaticJoint}[joint.what]
            make(
                bodyNumbers=[numbers[part.name] for part, _ in sides],
                position=position + R @ joint.parameters["Y"],
                axis=R @ joint.parameters["B"][:, 2],
                useGlobalFrame=True,
            )

    def marker(part: str, lever: Any) -> Any:
        place = [*map(float, lever), *([0.0] if flat else [])]
        return system.AddMarker(items.MarkerBodyRigid(bodyNumber=numbers[part], localPosition=place))

    for name, (what, said) in mb._said.items():
        values = mb._acting[name].parameters.values
        if what == "motor":  # constant torque in a joint with the ground
            turned = marker(said[0].second.name, np.zeros(mb.dimension))
            system.AddLoad(items.LoadTorqueVector(markerNumber=turned, loadVector=[0, 0, torque(mb._acting[name])]))
            continue
        points = [
            marker(end.part.name, end.lever) if isinstance(end, Marker) else marker("ground", end) for end in said
        ]
        numbered = {word: float(values[ours]) for word, ours in _SPRING.items() if ours in values}
        system.AddObject(items.ObjectConnectorSpringDamper(markerNumbers=points, **numbered))
    sensors = [
        system.AddSensor(
            items.SensorBody(
                bodyNumber=numbers[look.body],
                localPosition=[*map(float, lever), *([0.0] if flat else [])],
                storeInternal=True,
                outputVariableType=exudyn.OutputVariableType.Position,
            )
        )
        for lever in look.levers
    ]
    system.Assemble()

    def end(h: float) -> np.ndarray:
        settings: Any = exudyn.SimulationSettings()
        integration = settings.timeIntegration
        integration.numberOfSteps, integration.endTime, integration.verboseMode = round(t_end / h), t_end, 0
        integration.generalizedAlpha.spectralRadius = 0.9
        if flat:
            integration.newton.useModifiedNewton = True
            settings.linearSolver.solverType = exudyn.LinearSolverType.EXUdense
        else:  # redundant constraint: the Jacobian is singular everywhere
            settings.linearSolverType = exudyn.LinearSolverType.EigenDense
            settings.linearSolverSettings.ignoreSingularJacobian = True
        settings.solutionSettings.writeSolutionToFile = False
        settings.solutionSettings.sensorsWritePeriod = h
        try:
            system.SolveDynamic(settings, solverType=exudyn.DynamicSolverType.GeneralizedAlpha)
        except exudyn.SolverError:  # Newton failure with long steps
            return np.full((len(sensors), mb.dimension), np.nan)
        return np.array([system.GetSensorStoredData(sensor)[-1, 1 : 1 + mb.dimension] for sensor in sensors])

    return end


def in_mujoco(mb: Multibody, look: Look, t_end: float) -> Callable[[float], np.ndarray]:
    """Return the final points as a function of h; loops are closed by soft constraints as stiff as the step allows."""
    import mujoco

    with tempfile.TemporaryDirectory() as folder:
        mb.to_mjcf(Path(folder) / "drawn.xml")
        model = mujoco.MjModel.from_xml_path(str(Path(folder) / "drawn.xml"))
    levers = np.zeros((len(look.levers), 3))
    levers[:, : mb.dimension] = look.levers
    torques = [torque(mb._acting[name]) for name, (what, _) in mb._said.items() if what == "motor"]

    def end(h: float) -> np.ndarray:
        model.opt.timestep, model.opt.integrator = h, mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        model.eq_solref[:], model.eq_solimp[:, :3] = [2 * h, 1.0], [0.9999, 0.9999, 1e-3]
        data = mujoco.MjData(model)
        mujoco.mj_resetDataKeyframe(model, data, 0)
        data.ctrl[:] = torques
        mujoco.mj_step(model, data, round(t_end / h))
        mujoco.mj_forward(model, data)
        body = data.body(look.body)
        return np.asarray(body.xpos + levers @ body.xmat.reshape(3, 3).T)[:, : mb.dimension]

    return end


def torque(motor: Element) -> float:
    """Return the torque of a motor with a constant law."""
    through: Any = motor.functions["forces"]
    return float(through.energy([1.0, 0.0], [0.0, 0.0], 0.0, None)[1])


def _states(mb: Multibody) -> dict[str, tuple[Any, Any, Any, Any]]:
    """Return initial positions, rotation matrices, velocities and angular velocities of all bodies."""
    from livens.multibody.exports.mjcf import poses

    return {name: (x.position, x.rotation, x.velocity, x.omega) for name, x in poses(mb, *mb.started).items()}


@dataclass(frozen=True)
class Look:
    """Final output: a point of a body, or a rotation angle given by two points."""

    body: str
    levers: list[np.ndarray]

    @classmethod
    def of(cls, mb: Multibody, name: str) -> Look:
        body, _, point = name.partition(".")
        part = mb.bodies[body]
        if point == "angle":
            return cls(body, [np.zeros(mb.dimension), np.eye(mb.dimension)[0]])
        return cls(body, [part.markers["centre" if point == "position" else point].lever])

    def error(self, points: np.ndarray, exact: Any) -> float:
        """Return the error of the output; angles modulo a full turn."""
        if len(self.levers) == 1:
            return float(np.abs(points[0] - exact).max())
        x, y = points[1, :2] - points[0, :2]
        gap = float(np.arctan2(y, x)) - float(np.ravel(exact)[0])
        return float(abs(np.arctan2(np.sin(gap), np.cos(gap)))) if np.isfinite(gap) else np.inf


def main(code: str, problem: str, look: str, exact: list[float], tolerance: float, h: float, t_end: float) -> Any:
    mb = drawing(problem)
    seen = Look.of(mb, look)
    make: Callable[..., Callable[[float], np.ndarray]] = {"exudyn": in_exudyn, "mujoco": in_mujoco}[code]
    end = make(mb, seen, t_end)
    for _ in range(_HALVINGS):
        error = seen.error(end(h), exact)
        if error <= tolerance:
            break
        h /= 2
    took = seconds(lambda: end(h))
    return {"peer": code, "h": h, "error": error, "seconds": took, "us_per_step": took * h / t_end * 1e6}


if __name__ == "__main__":
    print(json.dumps(main(*json.loads(sys.argv[1]))))
